"""What ICD-9-CM and ICD-10-CM have in common: chapters, sections, categories, and codes that extend a category.

A classification is a table of ranges. A code's category is its beginning (three characters; four for the E codes of
ICD-9-CM), a section is a run of categories, a chapter a run of sections. Labels of sections and chapters are their
ranges (`250`'s section is `249-259`), as in the disassociation paper; where a chapter has one section of the same range
the chapter's label says so (`280-289 (chapter)`), because labels are unique.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Self

from leeward.errors import BadInput
from leeward.vocabulary.base import Vocabulary, require_codes, sibling_runs
from leeward.vocabulary.hierarchy import Hierarchy


@dataclass(frozen=True)
class Part:
    """A chapter or a section: its label, the categories at both ends, its title."""

    label: str
    first: str
    last: str
    title: str


class Diagnoses(Vocabulary):
    """Classifications of diagnoses: every code has a place, and one that they lack hangs below the root."""

    @property
    @abstractmethod
    def level_names(self) -> tuple[str, ...]:
        """The kinds of nodes from codes to root."""

    @property
    def other_label(self) -> str:
        """The node above codes that have no place."""
        return f"not in {self.name}"

    @abstractmethod
    def clean(self, code: str) -> tuple[str | None, bool]:
        """The canonical form of a text (dotted, upper case, no blanks; None if it has not the form of a code), and
        whether leading zeros were put back."""

    def normalise(self, code: str) -> str | None:
        return self.clean(code)[0]

    @abstractmethod
    def path(self, code: str) -> list[tuple[str, int]]:
        """(label, level) from below the root down to the code."""

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy over exactly these codes: one leaf a code, and the prefixes, sections and chapters above.

        Codes are taken as they are spelt (normalise them first). A code that is the beginning of another
        one gets a leaf of its own and the inner node a star: with 250 and 250.00, the inner node `250.*` is
        above `250` and `250.0`, which is above `250.00`. Codes that the classification has no place for
        hang under `not in …`, below the root, so that every code of the input is in the tree. Raises
        BadInput if there is no code.
        """
        distinct = require_codes(codes, self)
        pairs: dict[str, str | None] = {self.name: None}
        levels = {self.name: len(self.level_names) - 1}
        for code in distinct:
            above = self.name
            for label, level in self.path(code):
                pairs.setdefault(label, above)
                levels.setdefault(label, level)
                above = label
        full = Hierarchy.from_pairs(pairs.items(), self.name, levels, self.level_names)
        return full.restrict(distinct)

    def _check_level(self, n: int) -> int:
        if n not in (1, 2, 3):
            raise BadInput(
                f"{self.name}: hierarchy level {n}; it is 1 (category), 2 (section) or 3 (chapter)."
            )
        return n


@dataclass(frozen=True)
class Classification(Diagnoses):
    """A diagnosis classification written as ranges; use `icd.ICD9CM` and `icd.ICD10CM`.

    chapters, sections : in the classification's order; every section is in one chapter.
    gaps : categories inside a section that the classification does not have.
    placed : section labels of categories that their spelling would put elsewhere (C4A, M1A, …).
    digits : what a code of each length beyond its category is called, longest first; the category comes last.
    """

    chapters: tuple[Part, ...]
    sections: tuple[Part, ...]
    gaps: frozenset[str]
    placed: Mapping[str, str]
    digits: tuple[str, ...]

    @classmethod
    def read(cls, name: str, table: str, digits: tuple[str, ...]) -> Self:
        """The classification of `data/TABLE.tsv` (columns: data/README.md)."""
        text = resources.files("leeward.vocabulary").joinpath("data", f"{table}.tsv").read_text("utf-8")
        rows: dict[str, list[tuple[str, str]]] = {"chapter": [], "section": [], "gap": [], "placed": []}
        for line in text.splitlines()[1:]:
            kind, label, title = line.split("\t")
            rows[kind].append((label, title))
        gaps = expand(" ".join(label for label, _ in rows["gap"]))
        return cls(name, _parts(rows["chapter"]), _parts(rows["section"]), gaps, dict(rows["placed"]), digits)

    @abstractmethod
    def category_of(self, code: str) -> str:
        """The category of a canonical code."""

    def is_known(self, code: str) -> bool:
        """Whether the code has the form of this classification and its category exists; subdivisions are not looked
        up."""
        canonical = self.normalise(code)
        if canonical is None:
            return False
        category = self.category_of(canonical)
        return category not in self.gaps and self._section_of(category) is not None

    def category(self, code: str) -> str:
        """The three-character category (`E812` for E codes of ICD-9-CM); the code itself if it has none."""
        canonical = self.normalise(code)
        return code if canonical is None else self.category_of(canonical)

    def level(self, code: str, n: int) -> str:
        """The code at a policy level: 0 the code, 1 category, 2 and 3 the label of its section or chapter (the category
        where the classification has none for it). Raises BadInput."""
        if n == 0:
            return self.normalise(code) or code
        category = self.category(code)
        part = None if self._check_level(n) == 1 else self._section_of(category)
        return category if part is None else part.label if n == 2 else self._chapter_of[part.label].label

    def title(self, node: str) -> str:
        """The title of a chapter or section, by label; the root's is the classification's name, others their label."""
        return self._titles.get(node, node)

    @property
    def level_names(self) -> tuple[str, ...]:
        """The kinds of nodes from codes to root: `5-digit`, `4-digit`, `3-digit`, `section`, `chapter`, `root`."""
        return (*self.digits, "section", "chapter", "root")

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """As `Vocabulary.level_groups`, in classification order; a code without a place is a group by itself."""
        return super().level_groups(codes, self._check_level(n))

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        """Disjoint groups of `n` sibling codes, consecutive in code order (Loukides 2014, Section 6: `sim n`).

        Runs of `n` are cut inside a category first (295.00 … 295.04); what a category has left over is joined with the
        left-overs of its section, then of its chapter, and cut likewise; what a chapter has left (fewer than `n`) forms
        a smaller group. No group crosses a chapter; a code that is left alone, or that the classification has no place
        for, is in no group. Raises BadInput for n < 2.
        """
        in_order = sorted(set(codes), key=self.order)
        placed = [code for code in in_order if self._section_of(self.category(code)) is not None]
        return sibling_runs(placed, [tuple(self.level(code, n) for n in (1, 2, 3)) for code in placed], n)

    def order(self, code: str) -> tuple[int, str]:
        """A sorting key: the classification's own order of sections, then the code; codes without a place last."""
        part = self._section_of(self.category(code))
        return (len(self.sections) if part is None else self._section_number[part.label], code)

    def _section_of(self, category: str) -> Part | None:
        label = self.placed.get(category)
        if label is not None:
            return self.sections[self._section_number[label]]
        place = bisect_right(self._starts, category) - 1
        if place < 0 or not category[1:].isdigit():
            return None
        part = self._by_start[place]
        return part if len(category) == len(part.last) and category <= part.last else None

    def path(self, code: str) -> list[tuple[str, int]]:
        """(label, level) from below the root down to the code."""
        category_level = len(self.digits) - 1
        canonical = self.normalise(code)
        part = None if canonical is None else self._section_of(self.category_of(canonical))
        if canonical is None or part is None:
            return [(self.other_label, category_level + 2), (code, 0)]
        category = self.category_of(canonical)
        path = [(self._chapter_of[part.label].label, category_level + 2), (part.label, category_level + 1)]
        path.append((category, category_level))
        tail = canonical[len(category) + 1 :]
        path += [(f"{category}.{tail[:n]}", category_level - n) for n in range(1, len(tail) + 1)]
        if canonical != code:  # an unusual spelling of the code stays a leaf of its own
            path.append((code, path[-1][1]))
        return path

    @cached_property
    def _by_start(self) -> list[Part]:
        spelt = [part for part in self.sections if part.first not in self.placed]
        return sorted(spelt, key=lambda part: part.first)

    @cached_property
    def _starts(self) -> list[str]:
        return [part.first for part in self._by_start]

    @cached_property
    def _section_number(self) -> dict[str, int]:
        return {part.label: number for number, part in enumerate(self.sections)}

    @cached_property
    def _chapter_of(self) -> dict[str, Part]:
        """The chapter of each section, by the section's label; a chapter of the same range gets a label of its own."""
        found = {}
        for part in self.sections:
            chapter = next(c for c in self.chapters if c.first <= part.first <= c.last)
            same = chapter.label == part.label
            found[part.label] = replace(chapter, label=f"{chapter.label} (chapter)") if same else chapter
        return found

    @cached_property
    def _titles(self) -> Mapping[str, str]:
        titles = {part.label: part.title for part in self.sections}
        titles |= {part.label: part.title for part in self._chapter_of.values()}
        return titles | {self.name: self.name, self.other_label: f"Codes that are not in {self.name}"}


def _parts(rows: Sequence[tuple[str, str]]) -> tuple[Part, ...]:
    return tuple(
        Part(label, first, last, title) for label, title in rows for first, _, last in [label.partition("-")]
    )


def expand(ranges: str) -> frozenset[str]:
    """Categories from blank-separated ranges with the same letter: `"019 043-044 E020-E028"`."""
    found: list[str] = []
    for item in ranges.split():
        first, _, last = item.partition("-")
        letter = first[0] if first[0].isalpha() else ""
        low, high = first[len(letter) :], (last or first)[len(letter) :]
        found += [f"{letter}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return frozenset(found)
