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


def refuting(name: str, mutation: str, target: Path) -> set[str]:
    """The names of the checks that fail, with source and custody, on a case's release with one mutation."""
    made = sound(name)
    found = next(each for each in bench.mutations(made, random=0) if each.name == mutation)
    shutil.copytree(made.out, target)
    found.change(target)
    restate(target)
    return {check.name for check in verify(target, made.source).failures}
