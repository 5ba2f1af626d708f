"""Environments with what a page says to install and nothing else: as an empty machine has it, never the checkout.

Distributions are links to those of the tests' environment, which are of requirements/dev.txt; leeward is a wheel of the
checkout.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Set
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(sysconfig.get_path("purelib"))
VARIABLES = dict(os.environ)  # pages have a home of their own, without pip's cache


@functools.cache
def environment(*needs: str) -> Path:
    """The folder of programs of an environment with some requirements: `environment("leeward[models]", "pandas")`."""
    venv, wheel = temporary_folder(), checkout_wheel()
    run("venv", "--without-pip", venv)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(venv)}))
    link_distributions(brought(wheel, ["leeward", *needs]) - {"leeward"}, site, SITE)
    python = venv / "bin" / "python"
    run("pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile", wheel)
    return venv / "bin"


@functools.cache
def checkout_wheel() -> Path:
    folder = temporary_folder()
    run("hatchling", "build", "--target", "wheel", "--directory", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def temporary_folder() -> Path:
    """A folder that lasts as long as this process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def run(module: str, *arguments: str | Path) -> None:
    subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        cwd=ROOT,
        env=VARIABLES,
        timeout=900,
        stdout=subprocess.DEVNULL,
    )


def brought(wheel: Path, needs: Iterable[str]) -> frozenset[str]:
    """The distributions that requirements bring, by their metadata."""
    left, seen = [Requirement(each) for each in needs], set()
    while left:
        each = left.pop()
        name = canonicalize_name(each.name)
        path = [str(wheel)] if name == "leeward" else sys.path
        lines = next(iter(metadata.distributions(name=name, path=path))).requires or ()
        for extra in {(name, extra) for extra in {*each.extras, ""}} - seen:
            seen.add(extra)
            more = map(Requirement, lines)
            left += [one for one in more if one.marker is None or one.marker.evaluate({"extra": extra[1]})]
    return frozenset(name for name, _ in seen)


def link_distributions(names: Set[str], folder: Path, site: Path) -> None:
    """Links in a folder to what some distributions have in `site`, where those of this environment are found."""
    for each in metadata.distributions(path=[str(SITE)]):
        if canonicalize_name(each.name) in names:
            for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
                link = folder / top
                if not link.is_symlink():  # of a namespace that two share
                    link.symlink_to(site / top)
