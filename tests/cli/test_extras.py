"""The core without the extra `models`: it releases and verifies what does not need it, and says in one sentence what
does. No module of the core imports at its top what only an extra brings."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run

from leeward.analysis.phewas.associations import scan
from leeward.cli import warm
from leeward.errors import BadInput, require_extra

TREE = Path(__file__).resolve().parent.parent.parent
SOURCE = TREE / "src" / "leeward"
PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))["project"]

ROOMS_OF_EXTRAS = (
    "portal",
    "queries",
    "register",
    "notes",
    "runs/portal.py",
    "runs/index.py",
    "runs/itemsets.py",
    "connect.py",
)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not installed without `models`."""
    for name in ("scipy", "sklearn", "threadpoolctl", "joblib"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def registry(tmp_path: Path, leeward: Run) -> Path:
    path = tmp_path / "registry.csv"
    assert leeward("synth", "registry", "--patients", 200, "--seed", 1, "-o", path).status == 0
    return path


def sentence(what: str) -> str:
    return f"{what} needs leeward[models]: pip install 'leeward[models]'."


def test_condense_says_what_it_needs(leeward: Run, core: None, registry: Path) -> None:
    run = leeward("condense", registry, "--k", 20, "-o", registry.parent / "out")
    assert (run.status, run.err.splitlines()[-1]) == (2, f"leeward: {sentence('`condense`')}")
    assert not (registry.parent / "out").exists()


def test_k_anonymity_is_released_without_the_measures_that_need_it(
    leeward: Run,
    core: None,
    registry: Path,
) -> None:
    out = registry.parent / "out"
    asked = ("--k", 5, "--quasi-identifiers", "DiagAge,Stage", "--seed", 1, "-o", out)
    run = leeward("k-anonymize", registry, *asked)
    assert run.status == 0
    said = f"not measured: linkage, closest ({sentence('The nearest row')})"
    assert " ".join(run.out.split()).count(said) == 1
    assert "(The nearest row needs leeward[models]" in (out / "custody" / "report.html").read_text("utf-8")


def test_a_model_and_a_phewas_say_what_they_need(core: None) -> None:
    from leeward.analysis.regression import fit

    with pytest.raises(BadInput, match=re.escape(sentence("PheWAS"))):
        scan(None, pl.DataFrame(), ["snp"])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=re.escape(sentence("Fitting models"))):
        fit("cox", None)  # type: ignore[arg-type]


def test_classes_of_demographics_are_verified_in_the_core(leeward: Run, core: None, tmp_path: Path) -> None:
    """The flow that gives the patients their classes is the verifier's own."""
    rows = (f"{p},{code},{'fm'[p % 2]}\n" for p in range(60) for code in (f"c{p % 4}", f"d{p % 5}"))
    (tmp_path / "codes.csv").write_text("patient,code,sex\n" + "".join(rows))
    asked = (
        "--demographics",
        "sex",
        "--vocabulary",
        "none",
        "--k",
        3,
        "--m",
        2,
        "--seed",
        1,
        "-o",
        tmp_path / "out",
    )
    assert leeward("disassociate", tmp_path / "codes.csv", *asked).status == 0
    run = leeward("verify", tmp_path / "out", "--source", tmp_path / "codes.csv", "--all")
    assert (run.status, "class_source" in run.out) == (0, True), run.out


def test_warm_passes_over_what_needs_an_extra(
    core: None, leeward: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_STATE", "")  # which it sets for its process
    ran: list[str] = []
    monkeypatch.setattr(warm, "_run", lambda arguments: ran.append(arguments[0]) or 0)
    assert leeward("warm").status == 0
    assert "condense" not in ran
    assert {"disassociate", "k-anonymize", "notes", "index"} <= set(ran)


def test_an_extra_that_is_there_is_no_error() -> None:
    require_extra("`condense`", "models", "scipy", "sklearn")


def of_the_core() -> set[str]:
    """The modules that the core's own requirements bring, and what these rest on."""
    names = {re.split(r"[<>=!~;\[ ]", each)[0] for each in PROJECT["dependencies"]} | {"llvmlite"}
    return {
        module
        for module, brings in metadata.packages_distributions().items()
        if names & {*map(str.lower, brings)}
    }


def imported_at_the_top(text: str) -> set[str]:
    """What a module imports as it is imported: at its top, in a class or a branch, not in a function or for types."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(ast.parse(text).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)
    return found


def test_the_core_imports_nothing_of_an_extra() -> None:
    known = of_the_core() | set(sys.stdlib_module_names) | {"leeward"}
    found = {
        name: sorted(others)
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(ROOMS_OF_EXTRAS)
        and (others := imported_at_the_top(path.read_text(encoding="utf-8")) - known)
    }
    assert found == {}


def test_an_import_of_an_extra_would_be_found() -> None:
    text = "import scipy.stats\nif TYPE_CHECKING:\n    import pandas\ndef f():\n    import sklearn\n"
    assert imported_at_the_top(text) == {"scipy"}
    assert {"numpy", "llvmlite", "yaml"} <= of_the_core() and not {"scipy", "duckdb"} & of_the_core()
