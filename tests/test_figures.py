"""A figure in a text is the one that its page of figures has: written by a script, with command and commit."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [TREE / "README.md", *(TREE / "docs").glob("*.md")]
    + [
        page
        for folder in ("methods", "how-to", "tutorials", "decisions", "reference")
        for page in (TREE / "docs" / folder).glob("*.md")
    ]
)
NUMBER = re.compile(
    r"(?<![\w.,])(?!\d{3}\.\d\d?\b)(\d[\d,]*\.\d+|\.\d+|\d[\d,]*(?= ?%| of \d)|(?<=\d of )\d[\d,]*)(?!\w)"
)
"""Decimals, percentages and "286 of 832", but no ICD codes: what was measured. Other whole numbers are mostly sizes."""
CITED = re.compile(r"\]\((?:\.\./|docs/)?(benchmarks|studies)/((?!index|README)[\w-]+)\.md")
CODE = re.compile(r"^```.*?^```|^ {4}.*?$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^## Worked example.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NO_FIGURE = re.compile(
    r"!\[[^\]]*\]|\]\([^)]*\)|`[^`]*`|\b(?:C?Python|R|CDM|htmx|Apache|MPL)[ -][\d.]+(?: to [\d.]+)?"
)
"""Pictures, addresses, what is typed or set (code, parameters, formulas), versions."""


def unfounded(paragraph: str, figures: str) -> list[str]:
    """The figures of a paragraph that the pages it cites do not have, at the digits that it gives."""
    known = [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\.?\d*|\.\d+", figures)]
    wrong = []
    for number in NUMBER.findall(NO_FIGURE.sub(" ", paragraph)):
        digits = len(number.partition(".")[2])
        value = float(number.replace(",", ""))
        if not any(round(each * scale, digits) == value for each in known for scale in (1, 100, 0.01)):
            wrong.append(number)
    return wrong


def without_source(page: str) -> dict[str, list[str]]:
    """The figures of each paragraph that no page of figures it cites has, or all of them where it cites none."""
    prose = EXAMPLE.sub("", CODE.sub("", page))
    found = {
        paragraph: unfounded(paragraph, "\n".join(figures_of(*source) for source in CITED.findall(paragraph)))
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", prose)
        if "`python benchmarks/" not in paragraph  # its own command: such a paragraph is a source
    }
    return {paragraph: figures for paragraph, figures in found.items() if figures}


def figures_of(folder: str, name: str) -> str:
    """A page of figures, with its tables in files."""
    page = TREE / "docs" / folder / f"{name}.md"
    files = [file.read_text(encoding="utf-8") for file in page.with_suffix("").glob("*.csv")]
    rows = [" | ".join(row) for file in files for row in csv.reader(file.splitlines())]
    return "\n".join([page.read_text(encoding="utf-8"), *rows])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TREE)))
def test_a_paragraph_s_figures_are_those_of_the_pages_that_it_cites(page: Path) -> None:
    assert without_source(page.read_text(encoding="utf-8")) == {}


def test_a_page_s_figures_are_those_of_its_files_too() -> None:
    page = TREE / "docs" / "benchmarks" / "safe.md"
    file = next(page.with_suffix("").glob("*.csv")).read_text(encoding="utf-8")
    figure = re.search(r"\d\.\d{4}", file).group()  # type: ignore[union-attr]  # it has figures
    assert unfounded(figure, figures_of("benchmarks", "safe")) == []
    assert unfounded(figure, page.read_text(encoding="utf-8")) == [figure]


@pytest.mark.parametrize(
    "planted",
    [
        "It keeps 26.7 % of the codes.",
        "- 286 of 832 cells",
        "| UCI | 0.31 |",
        "0.7777 ([here](../benchmarks/safe.md))",
    ],
)
def test_a_planted_figure_is_found(planted: str) -> None:
    page = (TREE / "docs/methods/disassociation.md").read_text(encoding="utf-8")
    assert list(without_source(page.replace("## Guarantee", f"{planted}\n\n## Guarantee"))) == [planted]


MEASURED = (
    "benchmarks",
    "disassociation-algorithm-known",
    r"^UCI \| 5 \| counts(?: \| [\d.]+){4} \| ([\d.]+)%",
)
"""The share of UCI's occurrences that are in item chunks by default, k = 5, m = 2: where it is measured."""

ALSO = [
    ("benchmarks", "safe", r"^UCI \| 5 \| no(?: \| [\d.]+){5} \| ([\d.]+)%"),
    ("studies", "options", r"^\| UCI \(development\) \| default(?: \| [\d.]+){2} \| ([\d.]+)%"),
    ("studies", "whole-patient", r"^\| none \| [^|]+ \| 0\.(\d+) \(1, 0\)"),
    (
        "studies",
        "whole-patient",
        r"^\| disassociation \| [^|]+ \| 21 .*occurrences in item chunks \| 0\.(\d+)",
    ),
    ("studies", "whole-patient", r"^\| disassociation \| occurrences in item chunks \| [^|]+ \| 0\.(\d+) →"),
]
"""Pages that have it too."""


def quantity(folder: str, name: str, where: str) -> str:
    """A figure of a page in percent, with one digit behind the point."""
    found, *_ = re.findall(where, figures_of(folder, name), re.MULTILINE)
    return f"{float(found) / (1 if '.' in found else 10):.1f}"


@pytest.mark.parametrize(("folder", "name", "where"), ALSO)
def test_one_quantity_has_one_value_or_today_s_beside_it(folder: str, name: str, where: str) -> None:
    today = quantity(*MEASURED)
    text = (TREE / "docs" / folder / f"{name}.md").read_text(encoding="utf-8")
    cited = re.search(rf"\b{today} %[^.]*\]\((?:\.\./benchmarks/)?{MEASURED[1]}\.md\)", text)
    assert quantity(folder, name, where) == today or cited


def test_a_wrong_figure_is_found() -> None:
    page = "| a | 0.1147 | 26.68% | 1,234.5 |"
    assert unfounded("It is .115, 26.7 % ([here](../benchmarks/x.md)), 1,234.5 of `0.9`.", page) == []
    assert unfounded("It is .116 and 27.1 %.", page) == [".116", "27.1"]
