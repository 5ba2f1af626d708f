"""The table of rooms holds: who may import whom (docs/decisions/0001-rooms.md).

Imports are read from the syntax tree, so that one inside a function counts like one at the top of a file.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "leeward"

ROOMS: dict[str, frozenset[str]] = {
    "vocabulary": frozenset(),
    "engine": frozenset(),
    "contracts": frozenset({"vocabulary"}),
    "release": frozenset({"vocabulary", "contracts"}),
    "cohort": frozenset({"vocabulary"}),
    "analysis": frozenset({"vocabulary", "engine", "release", "cohort"}),
    "synthetic": frozenset({"vocabulary", "engine", "cohort", "analysis", "notes"}),
    "report": frozenset({"release"}),
    "methods": frozenset({"vocabulary", "contracts", "engine", "release", "cohort", "analysis", "report"}),
    "verify": frozenset({"vocabulary", "contracts"}),
    "notes": frozenset({"vocabulary", "cohort"}),
    "queries": frozenset({"cohort", "analysis", "release", "report"}),
    "register": frozenset({"release", "queries", "composition"}),
    "advise": frozenset(
        {"vocabulary", "engine", "release", "cohort", "analysis", "report", "methods", "queries"}
    ),
    "composition": frozenset({"contracts", "release", "cohort", "methods"}),
    "portal": frozenset({"release", "report", "verify", "queries", "engine"}),
}
# Small modules beside the rooms that every room may import; they import no room themselves.
SHARED = frozenset(
    {
        "arrays",
        "compiled",
        "compiling",
        "errors",
        "fields",
        "loading",
        "memory",
        "pages",
        "paths",
        "postgres",
        "randomness",
        "texts",
        "version",
    }
)
# The doors of the house: they may import everything.
DOORS = frozenset({"__init__", "cli", "runs"})


def imported(source: str, module: str, is_package: bool = False) -> list[tuple[int, str]]:
    """Line and full name of each module of leeward that `source`, the text of `module`, imports anywhere."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".")[: None if is_package and node.level == 1 else is_package - node.level]
                base = ".".join([*up, base]) if base else ".".join(up)
            if base == "leeward":  # from leeward import protect
                found += [(node.lineno, f"leeward.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, base))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                found.append((node.lineno, node.args[0].value))
    return [(line, name) for line, name in found if name == "leeward" or name.startswith("leeward.")]


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What in `source` breaks the table, one sentence an import."""
    room = module.split(".")[1] if "." in module else "__init__"
    if room in DOORS:
        return []
    if room not in ROOMS and room not in SHARED:
        return [f"{module}: {room} is neither a room nor shared: give it its line in the table"]
    allowed = SHARED | {room} | ROOMS.get(room, frozenset())
    if room == "verify":
        allowed -= {"arrays", "fields", "paths", "randomness"}
    broken = []
    for line, name in imported(source, module, is_package):
        target = name.split(".")[1] if "." in name else "leeward itself"
        if target not in allowed:
            broken.append(f"{module}, line {line}: {room} may not import {target}")
    return broken


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(("leeward", *(part for part in parts if part != "__init__")))
        found.append((name, path))
    return found


def test_every_import_is_in_the_table() -> None:
    found = modules()
    assert len(found) > 10
    broken = [
        sentence
        for module, path in found
        for sentence in violations(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    ]
    assert broken == []


def test_shared_modules_import_no_room() -> None:
    for module in SHARED:
        assert violations("from leeward.cohort import Cohort", f"leeward.{module}") != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("leeward.verify.chunks", "from leeward.methods.disassociation import kernels"),
        ("leeward.verify.chunks", "import leeward.methods"),
        ("leeward.verify.chunks", "from leeward.release import manifest"),
        ("leeward.verify.chunks", "from leeward import protect"),
        ("leeward.verify.chunks", "import leeward as lw"),
        ("leeward.verify.chunks", "def check():\n    from leeward.runs.measure import are\n"),
        ("leeward.verify.chunks", "from ..protect import disassociation"),
        ("leeward.verify.chunks", "import importlib\nimportlib.import_module('leeward.methods')"),
        ("leeward.vocabulary", "if True:\n    from leeward.cohort import Cohort\n"),
        ("leeward.engine.local", "from leeward.cohort.lenses.code_sets import CodeSets"),
        ("leeward.cohort.readers", "from leeward.engine import local"),
        ("leeward.report.page", "from leeward.verify import verify"),
        ("leeward.portal.app", "from leeward.cohort import Cohort"),
        ("leeward.release.writer", "from leeward.cli.main import main"),
        ("leeward.errors", "from leeward.vocabulary import icd9"),
        ("leeward.attic.things", "import json"),
    ],
)
def test_a_violation_is_caught(module: str, source: str) -> None:
    assert violations(source, module) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "leeward.verify.chunks",
            "from leeward.vocabulary import icd9\nfrom leeward.errors import VerificationFailed",
        ),
        ("leeward.verify.chunks", "from . import counting\nfrom .counting import pairs\nimport numpy"),
        (
            "leeward.methods.disassociation.method",
            "from leeward.cohort import Cohort\nimport leeward.engine.local",
        ),
        (
            "leeward.cli.methods",
            "from leeward.methods import disassociation\nfrom leeward.report import page",
        ),
        ("leeward.cohort.synth", "from leeward.randomness import generator\nimport leewardish"),
    ],
)
def test_what_the_table_allows_passes(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_relative_imports_inside_a_package_are_resolved() -> None:
    assert imported("from .lenses import x", "leeward.cohort", is_package=True) == [
        (1, "leeward.cohort.lenses")
    ]
    assert imported("from .lenses import x", "leeward.cohort.cohort") == [(1, "leeward.cohort.lenses")]
    assert imported("from ..protect import x", "leeward.verify.chunks") == [(1, "leeward.protect")]
    assert imported("from .. import protect", "leeward.verify.chunks") == [(1, "leeward.protect")]
    assert imported("from .. import protect", "leeward.verify", is_package=True) == [(1, "leeward.protect")]


def test_the_page_has_the_same_table() -> None:
    page = (SOURCE.parents[1] / "docs/decisions/0001-rooms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE)
    assert {room: frozenset(re.findall(r"`(\w+)`", allowed)) for room, allowed in rows} == ROOMS
    assert all(f"`{module}`" in page for module in SHARED)


def test_the_verifier_shares_no_code_with_a_method() -> None:
    """The strongest line of the table, said once more by itself: it reads releases, with code of its own; what it
    shares is data."""
    assert ROOMS["verify"] == {"vocabulary", "contracts"} and ROOMS["contracts"] == {"vocabulary"}
    assert violations("from leeward.randomness import Randomness", "leeward.verify.checks") != []
    assert ROOMS["vocabulary"] == frozenset()


RUN = 5
"""So many lines in a row, alike in the verifier and outside, are a copy."""


def runs(path: Path) -> set[tuple[str, ...]]:
    """Every run of lines of a file, without blank lines, comments and imports."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "import ", "from "))]
    return {tuple(lines[at : at + RUN]) for at in range(len(lines) - RUN + 1)}


def test_the_verifier_has_no_copy_of_what_stands_elsewhere() -> None:
    """What both sides need is data and stands once, in `contracts`; code of the verifier is its own."""
    inside = {path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] == "verify"}
    outside = set().union(*(runs(path) for path in SOURCE.rglob("*.py") if path not in inside))
    assert len(inside) > 30 and len(outside) > 10_000
    copied = {path.relative_to(SOURCE).as_posix(): runs(path) & outside for path in inside}
    assert {path: found for path, found in copied.items() if found} == {}
