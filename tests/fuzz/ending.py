"""Commands run in this process, and the sources and releases that they are given."""

from __future__ import annotations

import csv
import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from leeward.cli.main import status_of

CODES = ["401.9", "250.00", "272.4", "428.0"]
STATUSES = frozenset({0, 2, 3, 4})


def ended(arguments: list[str], folder: Path) -> int:
    """The exit status of a command; AssertionError for a fault of Leeward's, control sequences, what is left aside."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        status = status_of(arguments)
    command, text = arguments[0], said.getvalue()
    assert status in STATUSES, f"{command} ended with {status}: {text[-300:]}"
    assert "\x1b" not in text, f"{command} wrote a control sequence"
    assert not list(folder.glob("*.partial-*")), f"{command} left something aside"
    if status and command != "explore":  # whose folder holds the points that are done
        assert not (folder / "out").exists(), f"{command} ended with {status} and left a folder"
    return status


def sources(folder: Path) -> Path:
    """Events and a table of 60 patients, made once a process."""
    made = folder.parent / "sources-of-the-fuzzer"
    if not made.exists():
        made.mkdir()
        random = Random(1)
        rows = [
            [p, code, 40 + p % 9, f"2020-01-{p % 27 + 1:02d}", f"{p}-{v}", "fm"[p % 2]]
            for p in range(60) for v in range(2) for code in random.sample(CODES, 2)
        ]  # fmt: skip
        write_rows(made / "events.csv", ["patient", "code", "age", "date", "visit", "sex"], rows)
        table = [[round(random.gauss(5, 1), 2), round(random.gauss(2, 1), 2), "ab"[p % 2]] for p in range(60)]
        write_rows(made / "table.csv", ["x", "y", "g"], table)
    return made


def write_rows(file: Path, names: list[str], rows: list[list[Any]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([names, *rows])
    file.write_bytes(out.getvalue().encode("utf-8", "surrogatepass"))


RELEASES = {
    "disassociate": ["events.csv", "--k", "3", "--m", "2"],
    "constrain": ["events.csv", "--k", "3", "--m", "2", "--policy", "hierarchy:1"],
    "censor": ["events.csv", "--population", "events.csv", "--k", "3"],
    "trajectories": ["events.csv", "--age", "age", "--k", "3"],
    "visits": ["events.csv", "--visit", "visit", "--k", "3"],
    "link": ["events.csv", "--attributes", "sex", "--demographics", "sex", "--k", "3"],
    "condense": ["table.csv", "--k", "10"],
    "k-anonymize": ["table.csv", "--k", "5"],
}


def release(command: str, folder: Path) -> Path:
    """A release that verifies, made once a process."""
    made = folder.parent / f"release-of-the-fuzzer-{command}"
    if not made.exists():
        source, *flags = [
            str(sources(folder) / each) if each.endswith(".csv") else each for each in RELEASES[command]
        ]
        assert ended([command, source, *flags, "-o", str(made)], folder) == 0
    return made


def odd_path(random: Random, folder: Path, good: Path) -> Path:
    """A link, a pipe, a folder or nothing, where a file is due."""
    path = folder / f"odd-{random.randrange(10**6)}{random.choice(['.csv', '.parquet', '.yaml', ''])}"
    kind = random.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind < 5:
        path.symlink_to(random.choice([good, "/dev/zero", "/dev/null", path, folder, "nowhere", good.parent]))
    return path
