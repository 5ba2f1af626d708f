"""A method that exists nowhere else is added to a copy of the repository, as CONTRIBUTING says; all follows.

`trial/` has eleven of its twelve files; the twelfth is the row of METHODS, added here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
TRIAL = Path(__file__).resolve().parent / "trial"
ROW = """
    "suppression": Method(
        "leeward.methods.suppression.parameters:Suppression",
        "suppress",
        "Release diagnosis codes of at least k patients.",
    ),
}
\"\"\"Each method by its name in a spec."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy with the method in it."""
    copy = tmp_path_factory.mktemp("trial") / "leeward"
    ignored = shutil.ignore_patterns("__pycache__", "trial", "studies", "images")
    for name in ("src", "tests", "docs", "scripts"):
        shutil.copytree(TREE / name, copy / name, ignore=ignored)
    for name in ("README.md", "CONTRIBUTING.md", "pyproject.toml"):
        shutil.copy(TREE / name, copy / name)
    shutil.copytree(TRIAL, copy, dirs_exist_ok=True)
    registry = copy / "src/leeward/methods/__init__.py"
    text = registry.read_text(encoding="utf-8")
    assert '\n}\n"""Each method by its name in a spec.' in text
    registry.write_text(text.replace('\n}\n"""Each method by its name in a spec.', ROW), encoding="utf-8")
    assert run(copy, "scripts/reference.py").returncode == 0
    return copy


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}"}
    return subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=300
    )


def leeward(tree: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run(tree, "-c", "from leeward.cli import main; main()", *map(str, arguments))


def test_it_has_at_most_twelve_files_and_contributing_lists_them() -> None:
    files = sorted(str(path.relative_to(TRIAL)) for path in TRIAL.rglob("*") if path.suffix in (".py", ".md"))
    page = (TREE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = {
        name.replace("{method}", "suppression") for name in re.findall(r"`((?:src|docs|tests)/[^`]*)`", page)
    }
    assert len(files) + 1 <= 12
    assert {*files, "src/leeward/methods/__init__.py"} <= listed


def test_the_command_releases_verifies_and_reports(tree: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("patient,code\n" + "".join(f"p{n},401.{n % 3}\n" for n in range(12)) + "p1,250.0\n")
    assert "suppress" in leeward(tree, "--help").stdout
    shown = leeward(tree, "suppress", "--help").stdout
    assert "Minimum number of patients who have each released code." in " ".join(shown.split())
    done = leeward(tree, "suppress", events, "--k", 3, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "codes of k patients" in (tmp_path / "out/custody/report.html").read_text()
    assert leeward(tree, "verify", tmp_path / "out").returncode == 0
    refused = leeward(tree, "suppress", events, "--k", "5.5", "-o", tmp_path / "no")
    assert refused.returncode == 2
    assert "`--k` must be a whole number of at least 2; got a decimal number." in refused.stderr


def test_a_spec_its_schema_and_the_page_of_parameters_have_it(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("patient,code\n" + "".join(f"p{n},401.{n % 2}\n" for n in range(8)))
    spec = tmp_path / "spec.yaml"
    spec.write_text("source: {path: events.csv}\nmethod: {name: suppression, k: 3}\n")
    done = leeward(tree, "protect", spec, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert '"const": "suppression"' in leeward(tree, "protect", "--schema").stdout
    page = tree / "docs/reference/parameters/suppression.md"
    assert "Minimum number of patients who have each released code." in page.read_text(encoding="utf-8")


FIELD = """    zeal: Annotated[int, Parameter("How much is tried.", ge=1)] = 1

    def rules(self) -> None:"""


def test_a_parameter_is_one_field(tree: Path, tmp_path: Path) -> None:
    """A field more of a shipped method, and what is generated: command, manifest and verifier have it."""
    events, out = tmp_path / "events.csv", tmp_path / "out"
    events.write_text("patient,code\n" + "".join(f"p{n},401.{n % 3}\n" for n in range(12)))
    fields = tree / "src/leeward/methods/linked/parameters.py"
    text = fields.read_text(encoding="utf-8")
    assert text.count(FIELD[FIELD.index("    def") :]) == 1
    fields.write_text(text.replace(FIELD[FIELD.index("    def") :], FIELD), encoding="utf-8")
    try:
        assert run(tree, "scripts/reference.py").returncode == 0
        done = leeward(tree, "link", events, "--k", 3, "--zeal", 2, "-o", out)
        assert done.returncode == 0, done.stderr
        file = out / "share/release.json"
        written = file.read_text(encoding="utf-8")
        assert list(json.loads(written)["parameters"].items())[-1] == ("zeal", 2)
        assert leeward(tree, "link", events, "--k", 3, "-o", tmp_path / "default").returncode == 0
        for other, check in (("0", "parameters:"), ('"2"', "parameters:"), ("3", "parameters_of_spec:")):
            file.write_text(written.replace('"zeal": 2', f'"zeal": {other}'), encoding="utf-8")
            found = leeward(tree, "verify", out)
            assert found.returncode == 4 and check in found.stdout + found.stderr
    finally:
        fields.write_text(text, encoding="utf-8")
        run(tree, "scripts/reference.py")


MEASURE = """

def widest(release: Release, cohort: Cohort, *, least: int = 1) -> dict[str, int]:
    return {"codes": int((cohort.code_sets().lengths() >= least).sum())}


def kept(release"""


def test_a_measure_is_a_function_and_a_section(tree: Path, tmp_path: Path) -> None:
    """Two files of a shipped method, beside its page and a test: the option, the figures and the report follow."""
    folder, events, out = tree / "src/leeward/methods/linked", tmp_path / "events.csv", tmp_path / "out"
    events.write_text("patient,code\n" + "".join(f"p{n},401.{n % 3}\n" for n in range(12)) + "p1,401.0\n")
    changes = {
        "measures.py": (("(kept, views,", "(kept, widest, views,"), ("\n\ndef kept(release", MEASURE)),
        "report.py": (
            (
                "        plain_words(release),\n    ]",
                '        Section("Wide", (str(measures["widest"]),)),\n    ]',
            ),
        ),
    }
    before = {name: (folder / name).read_text(encoding="utf-8") for name in changes}
    try:
        for name, pairs in changes.items():
            text = before[name]
            for old, new in pairs:
                assert text.count(old) == 1
                text = text.replace(old, new)
            (folder / name).write_text(text, encoding="utf-8")
        wanted = tmp_path / "spec.yaml"
        wanted.write_text(
            "source: {path: events.csv}\nmethod: {name: linked, k: 3}\nmeasure: [{widest: {least: 2}}]\n"
        )
        done = leeward(tree, "protect", wanted, "-o", out)
        assert done.returncode == 0, done.stderr
        assert json.loads((out / "custody/measures.json").read_text())["widest"] == {"codes": 1}
        assert "&#39;codes&#39;: 1" in (out / "custody/report.html").read_text(encoding="utf-8")
        done = leeward(tree, "measure", out, "--source", events, "--measure", "wide")
        assert done.returncode == 2 and "known: kept, widest, views, demographics" in " ".join(
            done.stderr.split()
        )
    finally:
        for name, text in before.items():
            (folder / name).write_text(text, encoding="utf-8")


READER = '''"""Lines of a patient and a code with a bar between them."""

from dataclasses import replace

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.tables import read_tables


def read_bars(asked: Request) -> Cohort:
    """A cohort of the file."""
    return read_tables(replace(asked, source=pl.read_csv(asked.path, separator="|", infer_schema=False), name="bars"))
'''


def test_a_source_format_is_a_reader_and_a_row(tree: Path, tmp_path: Path) -> None:
    """Two files of src, beside its name in `format`'s help and a test: the command, a spec and messages have it."""
    reader, registry = (tree / "src/leeward/cohort/readers" / name for name in ("bars.py", "formats.py"))
    events, out, spec = tmp_path / "events.txt", tmp_path / "out", tmp_path / "spec.yaml"
    events.write_text("patient|code\n" + "".join(f"p{n}|401.{n % 3}\n" for n in range(12)))
    spec.write_text("source: {path: events.txt, format: bars}\nmethod: {name: linked, k: 3}\n")
    before = registry.read_text(encoding="utf-8")
    first, row = '    "events": Format(', '    "bars": Format(read_bars),\n'
    imported = "from leeward.cohort.cohort import Cohort\n"
    assert before.count(first) == before.count(imported) == 1
    text = before.replace(first, row + first)
    text = text.replace(imported, imported + "from leeward.cohort.readers.bars import read_bars\n")
    try:
        reader.write_text(READER, encoding="utf-8")
        registry.write_text(text, encoding="utf-8")
        done = leeward(tree, "profile", events, "--source-format", "bars")
        assert done.returncode == 0, done.stderr
        done = leeward(tree, "protect", spec, "-o", out)
        assert done.returncode == 0, done.stderr
        assert leeward(tree, "verify", out, "--source", events, "--source-format", "bars").returncode == 0
        done = leeward(tree, "profile", events, "--source-format", "bar")
        assert done.returncode == 2 and "bars" in done.stderr
    finally:
        reader.unlink(missing_ok=True)
        registry.write_text(before, encoding="utf-8")


def test_its_tests_and_the_laws_pass(tree: Path) -> None:
    own = [
        "tests/methods/suppression",
        "tests/verify/test_suppression.py",
        "tests/attacks/test_suppression.py",
    ]
    laws = [f"tests/laws/test_{name}.py" for name in ("releases", "contracts", "smallest_groups")]
    laws.append("tests/methods/test_parameters.py")
    for places, which in ((own, ""), (laws, "suppression and not engine")):
        done = run(tree, "-m", "pytest", "-q", *places, "-k", which)
        assert done.returncode == 0, done.stdout[-3000:]
        assert "passed" in done.stdout


REFUTED = "tests/laws/test_completeness.py::test_every_check_was_refuted[suppression] PASSED"


def test_every_check_of_its_verifier_was_refuted(tree: Path) -> None:
    """The law speaks where all tests of the verifier run, so nothing is chosen here. Other laws ask for lines in pages
    that the copy does not have."""
    places = [
        "tests/methods/suppression",
        "tests/verify/test_suppression.py",
        "tests/laws/test_completeness.py",
    ]
    done = run(tree, "-m", "pytest", "-v", *places)
    assert REFUTED in done.stdout, done.stdout[-3000:]


def test_without_its_contract_nothing_is_released_and_nothing_verified(tree: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("patient,code\n" + "".join(f"p{n},401.{n % 3}\n" for n in range(12)))
    assert leeward(tree, "suppress", events, "--k", 3, "-o", tmp_path / "out").returncode == 0
    contract = tree / "src/leeward/contracts/suppression.py"
    aside = contract.rename(tmp_path / "contract.py")
    try:
        verified = leeward(tree, "verify", tmp_path / "out")
        done = leeward(tree, "suppress", events, "--k", 3, "-o", tmp_path / "no")
    finally:
        shutil.move(aside, contract)
    assert verified.returncode == 4 and "no contract" in verified.stdout + verified.stderr
    assert done.returncode != 0 and not (tmp_path / "no").exists()


def test_a_file_of_names_that_its_contract_does_not_name_is_refused(tree: Path, tmp_path: Path) -> None:
    """A method that also releases the patients' identifiers."""
    events = tmp_path / "events.csv"
    events.write_text("patient,code\n" + "".join(f"p{n},401.{n % 3}\n" for n in range(12)))
    method = tree / "src/leeward/methods/suppression/method.py"
    text = method.read_text(encoding="utf-8")
    table = 'ReleaseTable.of("records.parquet", frame.to_arrow()),'
    names = 'ReleaseTable.of("names.parquet", cohort.require_events().select("patient").to_arrow()),'
    assert table in text
    try:
        method.write_text(text.replace(table, f"{table} {names}"), encoding="utf-8")
        done = leeward(tree, "suppress", events, "--k", 3, "-o", tmp_path / "out")
    finally:
        method.write_text(text, encoding="utf-8")
    assert done.returncode == 4 and "files_of_contract: " in done.stderr
    assert not (tmp_path / "out").exists()
