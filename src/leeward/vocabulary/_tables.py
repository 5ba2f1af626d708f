"""The tables of a classification from `data/NAME.tsv` (columns: data/README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from leeward.vocabulary.classification import Part, expand


@dataclass(frozen=True)
class Tables:
    """Chapters and sections in order, categories that are not there, categories placed by hand."""

    chapters: tuple[Part, ...]
    sections: tuple[Part, ...]
    gaps: frozenset[str]
    placed: Mapping[str, str]


def tables_of(name: str) -> Tables:
    """The tables of `icd9cm` or `icd10cm`."""
    text = resources.files("leeward.vocabulary").joinpath("data", f"{name}.tsv").read_text("utf-8")
    rows: dict[str, list[tuple[str, str]]] = {"chapter": [], "section": [], "gap": [], "placed": []}
    for line in text.splitlines()[1:]:
        kind, label, title = line.split("\t")
        rows[kind].append((label, title))
    return Tables(
        tuple(_part(label, title) for label, title in rows["chapter"]),
        tuple(_part(label, title) for label, title in rows["section"]),
        expand(" ".join(label for label, _ in rows["gap"])),
        dict(rows["placed"]),
    )


def _part(label: str, title: str) -> Part:
    first, _, last = label.partition("-")
    return Part(label, first, last, title)
