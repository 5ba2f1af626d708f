"""One mutation by its name, and the checks that refute it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.forging import restate
from tests.mutations import bench

from leeward.verify import verify


@cache
def sound(name: str) -> bench.Made:
    """The release of a case, made once."""
    return bench.make(name, bench.cases()[name], Path(mkdtemp()) / "out")


def refuting(name: str, mutation: str, target: Path, *, alone: bool = False) -> set[str]:
    """The names of the checks that fail on a case's release with one mutation: with source and custody, or of the share
    alone."""
    made = sound(name)
    found = next(each for each in bench.mutations(made, random=0) if each.name == mutation)
    shutil.copytree(made.out, target)
    found.change(target)
    if found.restated:
        restate(target)
    with bench.verifying(name):
        seen = verify(bench.sent(target, target.parent)) if alone else verify(target, made.source)
    return {check.name for check in seen.failures}
