"""Hierarchies of demographic values: intervals of years, prefixes of digit strings, a file, or exact and nothing else
(docs/methods/whole-patient.md#hierarchies)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from leeward.errors import BadInput
from leeward.vocabulary import Hierarchy

ROOT = "*"
"""What is published in the place of a value that is not: the root of every hierarchy but a file's."""

MISSING = "(missing)"
"""The category of patients without a value, directly below the root."""

WIDTHS = (5, 10, 20, 40)
"""Years of the intervals, each made of whole ones below it, counted from 0."""

INTERVAL = re.compile(r"([\[(]?)\s*(\d{1,6})\s*(?:-|–|,|to)\s*(\d{1,6})\s*([\])]?)")
OPEN_END = re.compile(r"(?:>=?|≥)\s*(\d{1,6})|(\d{1,6})\s*\+")
PREFIXED = re.compile(r"[0-9A-Za-z][0-9A-Za-z -]*")


def interval_of(text: str) -> tuple[int, int] | None:
    """First and last whole number of `73`, `73.5`, `70-79`, `[70-80)`, `(69, 79]`; None for other texts.

    A bracket that is open leaves its end out.
    """
    whole, point, rest = text.partition(".")
    if whole.isdigit() and (not point or rest.isdigit()):
        return int(whole), int(whole)
    found = INTERVAL.fullmatch(text)
    if found is None:
        return None
    first = int(found[2]) + (found[1] == "(")
    last = int(found[3]) - (found[4] == ")")
    return (first, last) if first <= last else None


def interval_label(first: int, last: int) -> str:
    """`73`, or `70-79`."""
    return str(first) if first == last else f"{first}-{last}"


def block_around(first: int, last: int, width: int) -> tuple[int, int] | None:
    """The block of `width` numbers that holds the interval; None where it crosses a border of blocks."""
    low = first - first % width
    return (low, low + width - 1) if last < low + width else None


def interval_tree(name: str, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """Intervals of 5, 10, 20 and 40 around the values, and the label of each value.

    Raises BadInput for values that are neither numbers nor intervals (their number only).
    """
    label: dict[str, str] = {}
    parent: dict[str, str] = {}
    strange = 0
    for text in values:
        bounds = interval_of(text)
        if bounds is None:
            if text == MISSING or OPEN_END.fullmatch(text):
                label[text] = text
                parent[text] = ROOT
            else:
                strange += 1
            continue
        label[text] = below = interval_label(*bounds)
        for width in WIDTHS:
            block = block_around(*bounds, width)
            if block is None or bounds[1] - bounds[0] + 1 >= width:
                continue
            above = interval_label(*block)
            parent[below] = below = above  # the targets are assigned from left to right
        parent[below] = ROOT
    if strange:
        raise BadInput(
            f"column `{name}`: {strange:,} of {len(values):,} distinct values are neither numbers nor intervals such "
            "as 70-79 or [70-80); correct them, name the texts that mean 'no value' (--missing), or give the column "
            "another hierarchy (--hierarchies)."
        )
    return _tree(name, parent), label


def prefix_tree(name: str, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """Prefixes of digit strings: 44113, 4411*, 441**, …; the label of each value is the value.

    Raises BadInput for values with other characters than letters, digits, blanks and hyphens (their number only).
    """
    strange = sum(text != MISSING and not PREFIXED.fullmatch(text) for text in values)
    if strange:
        raise BadInput(
            f"column `{name}`: {strange:,} of {len(values):,} distinct values have characters that a prefix cannot "
            "keep; use letters, digits, blanks and hyphens, or give the column another hierarchy (--hierarchies)."
        )
    parent: dict[str, str] = {}
    for text in values:
        below = text
        if text != MISSING:
            for kept in range(len(text) - 1, 0, -1):
                above = text[:kept] + "*" * (len(text) - kept)
                parent[below] = below = above
        parent[below] = ROOT
    return _tree(name, parent), {text: text for text in values}


def exact_tree(name: str, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """Every value directly below the root: published as it is, or not at all."""
    if ROOT in values:
        raise BadInput(f"column `{name}` has the value {ROOT}, which stands for 'not published'; rename it.")
    return _tree(name, dict.fromkeys(values, ROOT)), {text: text for text in values}


def file_tree(name: str, path: str | Hierarchy, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """A CSV with the columns node,parent, or what was read from one. Raises BadInput where it lacks a value (their
    number only)."""
    if isinstance(path, str) and not Path(path).is_file():
        raise BadInput(
            f"`hierarchies.{name}` is neither intervals, prefix, exact nor a file; name one of these, or a CSV with "
            "the columns node,parent."
        )
    tree = Hierarchy.from_csv(path) if isinstance(path, str) else path
    lacking = [text for text in values if text not in tree]
    unknown = sum(text != MISSING for text in lacking)
    if unknown:
        raise BadInput(
            f"{tree.name} lacks {unknown:,} of the {len(values):,} distinct values of column `{name}`; add them "
            "to the hierarchy, or correct the values."
        )
    if lacking:
        tree = Hierarchy.from_pairs([*tree.to_pairs(), (MISSING, tree.labels[0])], tree.name)
    return tree, {text: text for text in values}


def _tree(name: str, parent: dict[str, str]) -> Hierarchy:
    """The tree of these (node, parent) pairs below `ROOT`, siblings in the order of their labels."""
    return Hierarchy.from_pairs(
        [(ROOT, None), *((node, parent[node]) for node in sorted(parent, key=natural))], name
    )


def natural(label: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers in a label by their value, so that 9 comes before 10."""
    parts = re.findall(r"\d+|\D+", label)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
