"""What README and docs/reference/spec.md name is there; what they run, conftest.py runs."""

from __future__ import annotations

import re
from pathlib import Path

from leeward.cohort.readers.formats import READERS
from leeward.methods import METHODS
from leeward.release.spec import parse
from leeward.runs.protect import method_of

TREE = Path(__file__).resolve().parents[2]


def blocks(document: str, language: str) -> list[str]:
    text = (TREE / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_every_method_is_in_the_readme() -> None:
    text = (TREE / "README.md").read_text(encoding="utf-8")
    assert {method.command for method in METHODS.values()} <= set(re.findall(r"`([\w-]+)`", text))


def test_the_readmes_picture_is_there_and_small() -> None:
    (picture,) = re.findall(r"!\[[^]]{20,}\]\((\S+)\)", (TREE / "README.md").read_text(encoding="utf-8"))
    assert 10_000 < (TREE / picture).stat().st_size < 300_000


def test_the_specs_of_the_documents_parse() -> None:
    specs = [parse(block) for block in blocks("docs/reference/spec.md", "yaml")]
    assert [method_of(spec.method).name for spec in specs] == ["disassociation", "visits"]


def test_the_page_of_the_spec_names_every_format() -> None:
    page = (TREE / "docs/reference/parameters/spec.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `format` .*", page, re.MULTILINE)
    assert set(READERS) <= set(re.findall(r"\w+", row))
