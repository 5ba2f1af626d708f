"""Environments with what a page says to install and nothing else: as an empty machine has it, never the checkout.

Distributions are those of requirements/dev.txt, with its hashes; leeward is a wheel of this checkout. What `leeward`
alone brings is installed once, and the other environments lie over it.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache" / "environments"
VARIABLES = dict(os.environ)  # pages have a home of their own, without pip's cache
LOCK = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")


@functools.cache
def environment(*needs: str) -> Path:
    """The folder of programs of an environment with some requirements: `environment("leeward[models]", "pandas")`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        shutil.rmtree(FOLDER / "dist", ignore_errors=True)
        run("hatchling", "build", "--target", "wheel", "--directory", FOLDER / "dist")
        (wheel,) = (FOLDER / "dist").glob("*.whl")
        core, everything = (brought(wheel, each) for each in (["leeward"], ["leeward", *needs]))
        venv = made(core, wheel)
        if everything != core:
            venv = made(everything - core, wheel, over=venv)
    return venv / "bin"


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


def made(names: frozenset[str], wheel: Path, over: Path | None = None) -> Path:
    """An environment with some distributions of the lock file, over those of another, and with today's leeward."""
    parts = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE | re.IGNORECASE)
    lock = "".join(part for part in parts if re.split(r"[\[=]", part)[0] in names)
    venv = FOLDER / hashlib.sha256(f"{sys.version} {lock} {over}".encode()).hexdigest()[:16]
    holds, digest = venv / "leeward.sha256", hashlib.sha256(wheel.read_bytes()).hexdigest()
    pip = "--python", venv / "bin" / "python", "install", "--quiet", "--no-deps", "--no-compile"
    if not holds.exists():
        run("venv", "--clear", "--without-pip", venv)
        if over:
            here, there = (sysconfig.get_path("purelib", vars={"base": str(each)}) for each in (venv, over))
            Path(here, "over.pth").write_text(f"{there}\n", encoding="utf-8")
        (venv / "requirements.txt").write_text(lock, encoding="utf-8")
        run("pip", *pip, "--require-hashes", "--requirement", venv / "requirements.txt")
    if not holds.exists() or holds.read_text(encoding="utf-8") != digest:
        run("pip", *pip, "--force-reinstall", wheel)
        holds.write_text(digest, encoding="utf-8")
    return venv
