"""Importing Leeward changes nothing of other packages: a notebook that also uses them works as without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import leeward

SOURCE = Path(leeward.__file__).resolve().parent.parent

FOREIGN = """
import numba

@numba.njit(cache=True)
def add(a, b):
    return a + b

@numba.njit(cache=True)
def total(n):
    found = 0
    for i in range(n):
        found = add(found, i)
    return found
"""

IMPORT_ALL = """
import importlib, pkgutil
import leeward

def import_leeward():
    for each in pkgutil.walk_packages(leeward.__path__, "leeward."):
        if not each.name.endswith("__main__") and "migrations" not in each.name:
            importlib.import_module(each.name)
"""

LOADED = (
    IMPORT_ALL
    + """
import json, sys
import_leeward()
print(json.dumps([name for name in sys.modules if name.partition(".")[0] != "leeward"]))
"""
)

CHANGED = """
import gc, importlib, json, os, sys, types, warnings

warnings.simplefilter("ignore")
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception:  # a name that a package makes while it is imported, such as `six.moves`
        pass

def of_leeward(name):
    return name.partition(".")[0] == "leeward"

def attributes():
    # All that modules and their classes hold, by identity: what a dictionary or a list holds may change.
    found, seen = {}, set()
    for name, module in list(sys.modules.items()):
        if of_leeward(name) or not isinstance(module, types.ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            found[name, attribute] = value
            if isinstance(value, type) and id(value) not in seen:
                seen.add(id(value))
                for member, inner in list(vars(value).items()):
                    found[f"{value.__module__}.{value.__qualname__}", member] = inner
    return found

def of_process():
    collector = gc.get_threshold(), gc.isenabled()
    finders = list(sys.meta_path), list(sys.path_hooks)
    return collector, finders, sys.getswitchinterval(), dict(os.environ), list(warnings.filters)

before, process = attributes(), of_process()
"""

COUNTERS = ["sqlalchemy.util.langhelpers._creation_order"]
"""Numbers that a package counts up by itself whenever it is used."""

COMPARED = """
import_leeward()
after = attributes()
changed = sorted(".".join(key) for key, value in before.items() if after.get(key) is not value)
print(json.dumps([changed, of_process() == process, len(before)]))
"""


def run(code: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """A Python process with a kernel cache of its own, and nothing of what Leeward may have set in this one."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "MPLCONFIGDIR") if name in os.environ},
        "PYTHONPATH": f"{SOURCE}{os.pathsep}{folder}",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_functions_that_another_package_caches_are_read_without_leeward(tmp_path: Path) -> None:
    (tmp_path / "foreign.py").write_text(FOREIGN)
    calls = "import foreign; print(foreign.total(4), *foreign.total.stats.cache_hits.values())"
    for first, second in (("import leeward.compiled; ", ""), ("", "import leeward.compiled; ")):
        compiled = run(first + calls, tmp_path)
        assert compiled.stdout.split() == ["6"], compiled.stderr
        loaded = run(second + calls, tmp_path)
        assert loaded.stdout.split() == ["6", "1"], loaded.stderr
        for each in (tmp_path / "cache").rglob("*.nb?"):
            each.unlink()


def test_importing_all_of_leeward_changes_no_attribute_of_another_package(tmp_path: Path) -> None:
    loaded = run(LOADED, tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    compared = run(CHANGED + IMPORT_ALL + COMPARED, tmp_path, loaded.stdout.splitlines()[-1])
    assert compared.returncode == 0, compared.stderr
    changed, process_is_the_same, looked_at = json.loads(compared.stdout.splitlines()[-1])
    assert looked_at > 100_000
    assert changed == COUNTERS
    assert process_is_the_same
