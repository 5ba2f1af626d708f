"""Small changes of src/ that the tests have to notice: `python scripts/mutants.py [ROOM or NAME …]`.

Each file of `mutants/` is a room with one table a change: in `file` (below src/leeward) the text `old`, which stands
there exactly once, becomes `new`, and one of `tests` must fail then. `accepted` is the reason why none can. Changes are
made one at a time in a copy of this tree (.cache/mutants), whose kernels stay compiled from one run to the next. Exit
status 1 if a change survives without a reason. `make test` does not run it: all of it takes about an hour.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS, WORK = ROOT / "scripts" / "mutants", ROOT / ".cache" / "mutants"
COPY, KERNELS, TRIED = WORK / "tree", WORK / "kernels", WORK / "tried"
SOURCE = Path("src") / "leeward"
SECONDS = 300
"""After so long a change counts as not noticed."""
ENDS = {1: "killed", 0: "survived", None: "out of time"}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it is, and which tests must fail; `accepted` says why none can."""

    room: str
    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str]
    accepted: str = ""


def read_mutants() -> list[Mutant]:
    """All changes, room by room; TypeError for a table with a key too many or too few."""
    rooms = {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOMS.glob("*.toml"))
    }
    return [Mutant(room, name, **row) for room, rows in rooms.items() for name, row in rows.items()]


def change_text(mutant: Mutant) -> str:
    """The file with the change; ValueError unless what is changed stands there exactly once."""
    text = (ROOT / SOURCE / mutant.file).read_text(encoding="utf-8")
    if (times := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.name}: `old` stands {times} times in {mutant.file}, not once.")
    return text.replace(mutant.old, mutant.new)


def copy_tree() -> None:
    """The files that Git knows or would add, with their times: what is compiled of them stays right."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    shutil.rmtree(COPY, ignore_errors=True)
    for name in names:
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)


def run_tests(tests: Sequence[str], kernels: Path, seconds: float | None = None) -> int | None:
    """pytest's exit status in the copy; None when time runs out. With a limit nothing is shown or remembered."""
    environment = {**os.environ, "PYTHONPATH": str(COPY / "src"), "NUMBA_CACHE_DIR": str(kernels)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"} if seconds else {}
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
    shown = subprocess.DEVNULL if seconds else None
    with subprocess.Popen(pytest, cwd=COPY, env=environment, stdout=shown, start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def try_change(mutant: Mutant) -> str:
    """`killed`, `survived` or `out of time`; RuntimeError when its tests cannot be run at all."""
    shutil.rmtree(TRIED, ignore_errors=True)
    shutil.copytree(KERNELS, TRIED)
    (COPY / SOURCE / mutant.file).write_text(change_text(mutant), encoding="utf-8")
    status = run_tests(mutant.tests, TRIED, SECONDS)
    shutil.copy2(ROOT / SOURCE / mutant.file, COPY / SOURCE / mutant.file)
    if status not in ENDS:
        raise RuntimeError(f"{mutant.name}: status {status} of `pytest {' '.join(mutant.tests)}`.")
    return ENDS[status]


def main(wanted: Sequence[str]) -> int:
    """Try the changes of the rooms or of the names given, or all, and print what became of them."""
    mutants = [each for each in read_mutants() if not wanted or {each.room, each.name} & set(wanted)]
    copy_tree()
    KERNELS.mkdir(parents=True, exist_ok=True)
    if run_tests(sorted({test for each in mutants for test in each.tests}), KERNELS) != 0:
        raise SystemExit("The tests fail without a change, or there are none.")
    found: list[tuple[Mutant, str]] = []
    for mutant in mutants:
        found.append((mutant, try_change(mutant)))
        print(f"{found[-1][1]:12} {mutant.room}: {mutant.name}. {mutant.accepted}", flush=True)
    print("\n| room | changes |", " | ".join(ENDS.values()), "|\n|---|---:|---:|---:|---:|")
    for room in [*dict.fromkeys(each.room for each in mutants), "all"]:
        ends = [end for mutant, end in found if room in (mutant.room, "all")]
        print("|", " | ".join([room, str(len(ends)), *(str(ends.count(end)) for end in ENDS.values())]), "|")
    return int(any(end != "killed" and not mutant.accepted for mutant, end in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
