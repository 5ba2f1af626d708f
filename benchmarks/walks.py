"""A cohort's way through the code: files that a run enters, returns to files left before, names of one object.

One made-up cohort is released with each method, and every call of a function of Leeward's on the main thread is seen
(`sys.setprofile`). Counted is what somebody meets who reads the run in the order of its calls, each function once:

- files: files of `src/leeward` whose code runs;
- returns: how often the next function stands in a file that was left before;
- names: the names of arguments and variables that hold the method's parameters, or the cohort.

    python benchmarks/walks.py [METHOD ...]
"""

from __future__ import annotations

import argparse
import functools
import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import leeward as lw

SRC = str(Path(lw.__file__).parent) + "/"


def trace_calls(run: Callable[[], object], followed: list[object]) -> tuple[list[tuple[str, str]], set[str]]:
    """The functions that `run` calls, each once and in order, as file and name; the names of the followed objects."""
    calls: dict[tuple[str, str], None] = {}
    names: set[str] = set()
    wanted = {id(each) for each in followed}

    def look(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(SRC):
            return
        # A module or class that is imported on the way is no function.
        if not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if event == "call":
            calls[code.co_filename.removeprefix(SRC), code.co_qualname] = None
        names.update(name for name, value in frame.f_locals.items() if id(value) in wanted)

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(calls), names


def count_returns(calls: list[tuple[str, str]]) -> int:
    """How often the next function stands in a file that was entered and left before."""
    files = [file for file, _ in calls]
    stays = [file for i, file in enumerate(files) if i == 0 or files[i - 1] != file]
    return len(stays) - len(set(stays))


def methods() -> dict[str, tuple[lw.Cohort, Any]]:
    """Each method on a small made-up cohort."""
    import numpy as np
    import polars as pl

    folder = Path(tempfile.mkdtemp())
    lw.synth.write_codes(folder / "events.csv", patients=300, seed=1)
    codes = lw.read(folder / "events.csv", columns={"patient": "patient", "code": "code"})
    draw = np.random.default_rng(1)
    rows = 2_000
    visits = pl.DataFrame(
        {
            "patient": draw.integers(0, 300, rows),
            "visit": draw.integers(0, 700, rows),
            "code": [f"{c}" for c in draw.choice([401, 402, 410, 411, 413, 414, 424, 427, 428], rows)],
        }
    ).with_columns(visit=pl.col("patient") * 1000 + pl.col("visit") % 3)
    cohort = lw.read(
        visits, columns={"patient": "patient", "visit": "visit", "code": "code"}, vocabulary="icd9"
    )
    table = pl.DataFrame(
        {
            "id": np.arange(300),
            "age": draw.integers(30, 90, 300),
            "size": draw.normal(20, 5, 300).round(1),
            "grade": draw.integers(1, 4, 300),
            "event": draw.integers(0, 2, 300),
        }
    )
    registry = lw.read(table, format="table", columns={"patient": "id"})
    plan = [{"logistic": {"response": "event", "covariates": ["age", "size", "grade"]}}]
    return {
        "disassociation": (codes, lw.Disassociation(k=5, m=2)),
        "visits": (cohort, lw.Visits(k=5)),
        "condensation": (registry, lw.Condensation(k=5, plan=plan)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*")
    asked = parser.parse_args().methods
    for name, (cohort, method) in methods().items():
        if asked and name not in asked:
            continue
        out = Path(tempfile.mkdtemp()) / "release"
        calls, names = trace_calls(functools.partial(lw.protect, cohort, method, out), [cohort, method])
        files = {file for file, _ in calls}
        inside = [call for call in calls if call[0].startswith("methods/")]
        print(
            f"{name}: {len(calls)} functions in {len(files)} files, {count_returns(calls)} returns; in methods/ "
            f"{len(inside)} functions, {len({f for f, _ in inside})} files, {count_returns(inside)} returns; "
            f"{len(names)} names of the parameters or the cohort: {', '.join(sorted(names))}"
        )


if __name__ == "__main__":
    main()
