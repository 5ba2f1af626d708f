"""What README and docs show is run, so that it cannot lie."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leeward.cli.main import COMMANDS
from leeward.methods import METHODS
from leeward.release.spec import COLUMNS, SourceSpec, Spec, parse
from leeward.runs.protect import method_of

TREE = Path(__file__).resolve().parents[2]


def blocks(document: str, language: str) -> list[str]:
    text = (TREE / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_readmes_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "Estimate(low=" in shown and "expected=0.0" not in shown
    assert "passed" in shown
    assert (tmp_path / "release/custody/report.html").is_file()
    assert str(Path("release/custody/report.html")) in shown


def test_every_command_is_in_the_readme() -> None:
    text = (TREE / "README.md").read_text(encoding="utf-8")
    of_methods = {method.command for method in METHODS.values()}  # on docs/parameters.md, which is generated
    assert set(re.findall(r"`leeward ([\w-]+)", text)) >= set(COMMANDS) - of_methods
    assert "(docs/parameters.md)" in text


def test_the_readmes_picture_is_there_and_small() -> None:
    (picture,) = re.findall(r"!\[[^]]{20,}\]\((\S+)\)", (TREE / "README.md").read_text(encoding="utf-8"))
    assert 10_000 < (TREE / picture).stat().st_size < 300_000


def test_the_specs_of_the_documents_parse() -> None:
    (block,) = blocks("docs/spec.md", "yaml")
    assert method_of(parse(block).method).name == "disassociation"


def test_the_page_of_the_spec_names_every_key() -> None:
    page = (TREE / "docs/spec.md").read_text(encoding="utf-8")
    of_tables = {"drop", "domains"}
    for key in {*Spec.__dataclass_fields__, *SourceSpec.__dataclass_fields__} - of_tables - {"name"}:
        assert f"| `{key}` |" in page
    assert set(COLUMNS) - {"note", "text"} <= set(re.findall(r"`(\w+)`", page))
