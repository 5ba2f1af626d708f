"""What the benchmarks share: the machine's description, commands measured from outside, docs/benchmarks/index.md."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
SECTION = re.compile(r"<!-- (\w[\w-]*) -->.*?<!-- end of \1 -->", re.DOTALL)
"""What `write_section` put into a page."""

MOST_ROWS = 12
"""A page shows tables of up to so many rows; longer ones are files beside it."""


@dataclass(frozen=True)
class Run:
    """A finished command: seconds by the clock, processor seconds, peak memory of the process in MB."""

    wall: float
    cpu: float
    peak: float


def machine() -> str:
    """What the figures were taken on."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "polars", "pyarrow"))
    cores = len(os.sched_getaffinity(0))
    return f"{cpu}, {cores} cores, {memory:.0f} GiB; Python {platform.python_version()}, {packages}"


def commit() -> str:
    """The commit that was measured, marked where the tree differs from it; pages that benchmarks write do not count."""
    found = _git("describe", "--always", "--abbrev=10").strip()
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"{found or 'unknown'}{'-dirty' if changed else ''}"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout


def measured(command: Sequence[str]) -> Run:
    """Run a command to its end and ask the operating system what it took; an error if it failed."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed ({process.returncode}): {errors.decode()[-400:]}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def leeward(*arguments: str) -> list[str]:
    """The command line of this interpreter's Leeward."""
    return [str(Path(sys.executable).parent / "leeward"), *arguments]


def median_seconds(work: Callable[[], Any], repeat: int, *, warm_up: bool = True) -> float:
    """Median seconds of `repeat` runs, after one that is not counted."""
    if warm_up:
        work()
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def half_of(values: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean (Student's t)."""
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


def once(file: Path | None, key: str, work: Callable[[], Any]) -> Any:
    """What `work` gives, or gave when an earlier run kept it in the JSON `file`: a long run can go on in pieces."""
    known = json.loads(file.read_text(encoding="utf-8")) if file and file.is_file() else {}
    if key not in known:
        known[key] = work()
        if file:
            file.write_text(json.dumps(known, indent=0), encoding="utf-8")
    return known[key]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def write_page(name: str, title: str, command: str, body: str) -> None:
    """Write docs/benchmarks/NAME.md: the machine, the commit and the command, then the body."""
    text = f"# {title}\n\n{taken_by(command)}\n\n{body.strip()}\n"
    save(FOLDER / f"{name}.md", text)


def save(page: Path, text: str) -> None:
    """Write a page. Each table of more than MOST_ROWS rows becomes PAGE/HEADING.csv, and the page has a link to it."""
    folder = page.with_suffix("")
    taken = set(re.findall(rf"\]\({page.stem}/([\w-]+)\.csv\)", text))  # tables that were moved before
    heading = page.stem

    def moved(found: re.Match[str]) -> str:
        nonlocal heading
        if found[1]:
            heading = re.sub(r"[^a-z0-9]+", "-", found[1].lower()).strip("-")[:40].rstrip("-")
            return found[0]
        names = (heading if n == 1 else f"{heading}-{n}" for n in count(1))
        name = next(each for each in names if each not in taken)
        taken.add(name)
        head, _, *rows = (cells_of(line) for line in found[0].splitlines())
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows])
        return f"Table ({len(rows)} rows): [{name}.csv]({page.stem}/{name}.csv)\n"

    text = re.sub(rf"^#+ (.*)|(?:^\|.*\n){{{MOST_ROWS + 3},}}", moved, text, flags=re.MULTILINE)
    page.write_text(text, encoding="utf-8")
    for file in folder.glob("*.csv"):
        if file.stem not in taken:
            file.unlink()


def cells_of(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def write_section(
    name: str, title: str, command: str, body: str, page: Path, measured: str = "", before: str = ""
) -> None:
    """Put a section into a page, in place of the one of that name; a new one stands before the text `before`, or last.
    `measured`: the commit, where it is not this one."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    section = f"{begin}\n## {title}\n\n{taken_by(command, text, measured)}\n\n{body.strip()}\n{end}\n"
    if begin in text:
        before, rest = text.split(begin, 1)
        after = rest.split(end, 1)[1].lstrip("\n")
        text = before + section + (f"\n{after}" if after else "")
    elif before:
        text = text.replace(before, f"{section}\n{before}", 1)
    else:
        text = text.rstrip("\n") + "\n\n" + section
    save(page, text)


def taken_by(command: str, page: str = "", measured: str = "") -> str:
    """The machine, unless the text of the page names it outside its sections already, commit and command."""
    where = machine()
    outside = SECTION.sub("", page)
    return f"{'' if where in outside else f'{where}. '}Commit {measured or commit()}. Command: `{command}`"


if __name__ == "__main__":  # of pages into which people put what a script printed: their long tables
    for argument in sys.argv[1:]:
        save(Path(argument), Path(argument).read_text(encoding="utf-8"))
