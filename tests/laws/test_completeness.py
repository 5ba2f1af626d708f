"""No method without verifier, worked example, oracle, attack, page and command; no check without a break."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import leeward as lw
from leeward.cli.main import COMMANDS, leeward
from leeward.methods import METHODS
from leeward.verify import CHECKERS

TREE = Path(__file__).resolve().parents[2]


def folder(name: str) -> str:
    return METHODS[name].folder.rpartition(".")[2]


def texts(*places: Path) -> str:
    files = [
        path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def find_tests(*files: Path) -> list[str]:
    return re.findall(r"^def (test_\w+)", texts(*files), re.MULTILINE)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_public_name_and_its_command(name: str) -> None:
    cls = METHODS[name].parameters_class()
    assert getattr(lw, METHODS[name].class_name) is cls and METHODS[name].class_name in dir(lw)
    assert cls.name == name
    command = leeward.get_command(None, METHODS[name].command)  # type: ignore[arg-type]  # needs no context
    assert METHODS[name].command in COMMANDS and command is not None
    assert {"--k", "--out", "--seed"} <= {flag for option in command.params for flag in option.opts}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_verifier(name: str) -> None:
    module, _, function = CHECKERS[name].partition(":")
    assert function == "check" and module.startswith("leeward.verify.")
    assert (TREE / f"tests/verify/test_{folder(name)}.py").is_file()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page(name: str) -> None:
    page = (TREE / f"docs/methods/{name}.md").read_text(encoding="utf-8")
    assert "uarantee" in page and "ttacker" in page and len(page) > 500


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_worked_example(name: str) -> None:
    room = TREE / f"tests/methods/{folder(name)}"
    assert re.search(r"def test_\w*example", texts(room)) or find_tests(*room.glob("test_worked_example*.py"))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_an_oracle(name: str) -> None:
    assert (TREE / f"tests/oracles/{folder(name)}.py").is_file()
    compared = texts(TREE / f"tests/methods/{folder(name)}", TREE / f"tests/verify/test_{folder(name)}.py")
    assert re.search(rf"from tests\.oracles(\.| import .*\b){folder(name)}\b", compared)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_an_attack(name: str) -> None:
    assert find_tests(TREE / f"tests/attacks/test_{folder(name)}.py")


def test_every_public_name_can_be_imported() -> None:
    assert set(lw.__all__) == {name for name in lw.__all__ if getattr(lw, name) is not None}
    wanted = {
        "profile",
        "index",
        "itemsets",
        "budget",
        "audit",
        "decrypt",
        "run",
        "open",
        "query",
        "annotate",
    }
    assert wanted <= set(dir(lw))


def check_names(source: Path) -> set[str]:
    """The names of the checks in a verifier's files: the first argument of `Check`, `of_count` and their like."""
    found = set()
    for node in ast.walk(ast.parse(texts(source))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            makes = node.func.id == "Check" or node.func.id in MAKERS
            if makes and isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value)
    return found


MAKERS = frozenset({"of_count", "count_check", "contained_check", "shared"})
"""Functions of verifiers that make a check of the name that is their first argument."""

VERIFIERS = sorted(
    path.name for path in (TREE / "src/leeward/verify").iterdir() if (path / "check.py").is_file()
)


def files_with_breaks(verifier: str) -> set[Path]:
    """The test files in which releases are broken for a verifier, one way a test."""
    rooms = (TREE / "tests" / room / verifier for room in ("verify", "methods"))
    found = {file for room in rooms if room.is_dir() for file in room.glob("test_*.py")}
    return found | {TREE / f"tests/verify/test_{verifier}.py"}


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_every_check_was_refuted(verifier: str) -> None:
    """Each check failed on some release in the tests of the verifier, which have all run before (tests/conftest.py)."""
    from tests.conftest import REFUTED

    names = check_names(TREE / "src/leeward/verify" / verifier)
    assert names and names - REFUTED == set()


CALLS = {
    "audit": "audit",
    "budget": "budget",
    "cohort": "extract",
    "compare": "compare",
    "demo": "protect",
    "dossier": "dossier",
    "estimate": "estimate",
    "explore": "explore",
    "index": "index",
    "itemsets": "itemsets",
    "measure": "measure",
    "notes": "annotate",
    "omop": "omop",
    "profile": "profile",
    "protect": "run",
    "query": "query",
    "recommend": "recommend",
    "refresh": "refresh",
    "releases": "releases",
    "show": "open",
    "split": "split",
    "synth": "synth",
    "verify": "verify",
}
"""The call that does what a command does. `vocabulary` copies a file, `spec` writes flags down, `warm` compiles and
`serve` waits for browsers: they concern no cohort."""


def test_what_a_command_does_one_call_does() -> None:
    of_methods = {method.command for method in METHODS.values()}
    assert set(CALLS) | {"serve", "spec", "vocabulary", "warm"} == set(COMMANDS) - of_methods
    assert set(CALLS.values()) <= set(lw.__all__)


def test_warm_runs_every_method() -> None:
    from leeward.cli.warm import RUNS

    assert {method.command for method in METHODS.values()} <= {line.split()[0] for line in RUNS}


def test_public_names_are_the_same_for_type_checkers() -> None:
    """A type checker needs imports that it can read; they name the same things from the same modules."""
    tree = ast.parse((TREE / "src/leeward/__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        (each.asname or each.name): node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    imported["synth"], imported["open"] = imported.pop("synthetic"), imported.pop("open_release")
    assert set(imported) == set(lw._WHERE)
    for name, module in imported.items():
        where = lw._WHERE[name].partition(":")[0]
        assert where == module or where.startswith(f"{module}."), name
