"""Compiled kernels: found again when nothing they depend on changed, made again when anything did."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import leeward

SOURCE = Path(leeward.__file__).resolve().parent.parent

CALLER = """
from callee import LIMIT, add
from leeward.compiled import njit

@njit(nogil=True)
def total(n):
    found = 0
    for i in range(n):
        found = add(found, i) + LIMIT
    return found
"""
CALLEE = """
from leeward.compiled import njit

LIMIT = {limit}

@njit
def add(a, b):
    return a + b + {more}
"""
RUN = """
from caller import total
from leeward.compiled import compilations
print(total(3), compilations.count)
"""


class Modules:
    """Two modules of kernels in a folder, run in a process of their own with a cache of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "caller.py").write_text(CALLER)
        self.callee(limit=0, more=0)

    def callee(self, limit: int, more: int, comment: str = "") -> None:
        (self.folder / "callee.py").write_text(comment + CALLEE.format(limit=limit, more=more))

    def run(self) -> tuple[int, int]:
        """What the kernel returns, and how many functions were compiled."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{self.folder}",
            "NUMBA_CACHE_DIR": str(self.folder / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-B", "-c", RUN],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        value, compiled = done.stdout.split()
        return int(value), int(compiled)


def test_a_changed_callee_or_constant_in_another_file_is_compiled_again(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    value, compiled = modules.run()
    assert value == 3
    assert compiled > 0
    assert modules.run() == (3, 0)
    modules.callee(limit=0, more=0, comment="# A comment, and lines that move.\n\n")
    assert modules.run() == (3, 0)
    modules.callee(limit=0, more=10)
    assert modules.run()[0] == 33
    modules.callee(limit=100, more=0)
    assert modules.run()[0] == 303


RENAMED = """
from typing import NamedTuple
import numpy as np
from leeward.compiled import njit

class {name}(NamedTuple):
    values: np.ndarray

@njit(cache=True)
def total(given):
    return given.values.sum()

if __name__ == "__main__":
    import renamed
    assert renamed.total(renamed.{name}(np.arange(4))) == 6
"""


def test_a_kernel_whose_argument_was_renamed_is_compiled_again(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("Before", "After", "Before"):
        (tmp_path / "renamed.py").write_text(RENAMED.format(name=name))
        done = subprocess.run(
            [sys.executable, "renamed.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    assert [*(tmp_path / "cache").rglob("*.nbi")]


def test_a_caller_is_compiled_against_a_callee_that_was_loaded(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    _, all_of_it = modules.run()
    caller = tmp_path / "caller.py"
    caller.write_text(caller.read_text().replace("found = 0", "found = 1000"))
    value, compiled = modules.run()
    assert value == 1003
    assert 0 < compiled < all_of_it


NOWHERE = """
from numba.core import caching
caching.InTreeCacheLocator.from_function = classmethod(lambda cls, *rest: None)  # as if its folder were read-only
from pathlib import Path
from caller import total
from leeward.compiled import private_folder
print(total(3), len(list(Path(private_folder()).rglob("*.nbc"))), private_folder())
"""


def test_without_a_folder_to_write_in_kernels_still_run(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SOURCE}{os.pathsep}{modules.folder}",
        "NUMBA_CACHE_DIR": f"{os.devnull}/cache",
        "HOME": f"{os.devnull}/home",
        "XDG_CACHE_HOME": f"{os.devnull}/cache",
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", NOWHERE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    value, files, folder = done.stdout.split()
    assert int(value) == 3
    assert int(files) >= 1
    assert not Path(folder).exists()


def test_a_kernel_that_is_loaded_needs_nothing_of_the_compiler(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    code = (
        "import sys; from caller import total; assert total(3) == 3; "
        "print(*(name in sys.modules for name in ('numba.np.linalg', 'numba.cpython.listobj', 'scipy.linalg')))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{modules.folder}"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    needed = [
        subprocess.run(
            [sys.executable, "-B", "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.split()
        for _ in range(2)
    ]
    assert needed[0][0] == "True"
    assert needed[1] == ["False", "False", "False"]


def test_every_kernel_is_one_that_ships_with_the_package() -> None:
    """Numba's own `njit` compiles anew on a machine where the package's kernels would have been read."""
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"^\s*from numba import .*\bn?jit\b|@numba\.", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert found == []
