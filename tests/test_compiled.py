"""Compiled kernels: found again when nothing they depend on changed, made again when anything did."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leeward
from leeward import compiled
from leeward.compiled import njit

SOURCE = Path(leeward.__file__).resolve().parent.parent

CALLER = """
from callee import LIMIT, add
from leeward.compiled import njit

@njit
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
from leeward.compiling import compilations
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

    def run(self, cache: Path | None = None) -> tuple[int, int]:
        """What the kernel returns, and how many functions were compiled."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{self.folder}",
            "NUMBA_CACHE_DIR": str(cache or self.folder / "cache"),
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

@njit
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
    assert [*(tmp_path / "cache").rglob("*.nbc")]


def test_a_caller_is_compiled_against_a_callee_that_was_loaded(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    _, all_of_it = modules.run()
    caller = tmp_path / "caller.py"
    caller.write_text(caller.read_text().replace("found = 0", "found = 1000"))
    value, compiled = modules.run()
    assert value == 1003
    assert 0 < compiled < all_of_it


@pytest.mark.parametrize("home", [f"{os.devnull}/home", None])
def test_without_a_folder_to_write_in_kernels_still_run(tmp_path: Path, home: str | None) -> None:
    modules = Modules(tmp_path)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{modules.folder}"}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        environment.pop(name, None)
    code = "import pathlib\n"
    if home is None:  # as of an account that the system does not know
        code += "pathlib.Path.home = classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError()))\n"
    else:
        environment["HOME"] = home
    done = subprocess.run(
        [sys.executable, "-B", "-c", code + RUN],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["3", "2"]


def test_a_second_copy_of_the_code_compiles_nothing(tmp_path: Path) -> None:
    copies = [tmp_path / "one", tmp_path / "two"]
    for copy in copies:
        copy.mkdir()
    first, second = (Modules(copy) for copy in copies)
    assert first.run(tmp_path / "cache") == (3, 2)
    assert second.run(tmp_path / "cache") == (3, 0)


def test_a_file_that_was_cut_off_is_compiled_again_and_old_ones_are_removed(tmp_path: Path) -> None:
    modules = Modules(tmp_path)
    modules.run()
    files = [*(tmp_path / "cache/leeward-kernels").iterdir()]
    for each in files:
        each.write_bytes(each.read_bytes()[:-1])
    old = files[0].with_name("gone-0123456789abcdef.nbc")
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    assert modules.run() == (3, 2)
    assert modules.run() == (3, 0)
    assert sorted((tmp_path / "cache/leeward-kernels").iterdir()) == sorted(files)


FIELDS = """
from typing import NamedTuple
from leeward.compiled import njit

class Pair(NamedTuple):
    {first}: int
    {second}: int

@njit
def left(given):
    return given.left

if __name__ == "__main__":
    import fields
    print(fields.left(fields.Pair(left=1, right=2)))
"""


def test_fields_that_change_places_compile_again(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for first, second in (("left", "right"), ("right", "left")):
        (tmp_path / "fields.py").write_text(FIELDS.format(first=first, second=second))
        done = subprocess.run(
            [sys.executable, "-B", "fields.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=True, timeout=300,
        )  # fmt: skip
        assert done.stdout == "1\n"


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


def test_kernels_pass_whole_numbers_in_one_type_and_inner_ones_are_python_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @njit(inner=True)
    def add(n: Any, more: Any) -> Any:
        return n + more

    @njit
    def total(values: Any) -> Any:
        found = 0
        for each in values:
            found = add(found, each)
        return add(found, True)

    assert total(np.array([1, 2], np.int32)) == total(np.array([1, 2])) == 4
    assert len(total.signatures) == 2
    assert sorted(str(given) for given in add.overloads) == ["(int64, bool)", "(int64, int64)"]
    assert add("1", "2") == "12"


def test_kernels_of_a_package_that_cannot_be_written_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    compiled._write(tmp_path / "kernel.nbc", ["parts"])
    monkeypatch.setattr(os, "utime", refuse)
    assert compiled._read(tmp_path / "kernel.nbc") == ["parts"]


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
