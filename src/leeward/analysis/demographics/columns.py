"""Demographic columns of a cohort, each over its hierarchy (intervals of years, prefixes of digit strings, a file, or
exact and nothing else), and the level at which a column is published (docs/methods/whole-patient.md#hierarchies).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from leeward.arrays import Bools, Float64s, Int32s, Int64s
from leeward.errors import BadInput, did_you_mean
from leeward.vocabulary import Hierarchy

ROOT = "*"
"""What is published in the place of a value that is not: the root of every hierarchy but a file's."""

KEPT = 1_000.0
"""Weight of a column that the recipient must have, against 1 of the others."""

MISSING = "(missing)"
"""The category of patients without a value, directly below the root."""

WIDTHS = (5, 10, 20, 40)
"""Years of the intervals, each made of whole ones below it, counted from 0."""

INTERVAL = re.compile(r"([\[(]?)\s*(\d{1,6})\s*(?:-|–|,|to)\s*(\d{1,6})\s*([\])]?)")
OPEN_END = re.compile(r"(?:>=?|≥)\s*(\d{1,6})|(\d{1,6})\s*\+")
PREFIXED = re.compile(r"[0-9A-Za-z][0-9A-Za-z -]{0,63}")  # one longer has as many levels, and nobody's use


def interval_of(text: str) -> tuple[int, int] | None:
    """First and last whole number of `73`, `73.5`, `70-79`, `[70-80)`, `(69, 79]` (an open bracket leaves its end
    out); None for other texts."""
    whole, point, rest = text.partition(".")
    if whole.isdigit() and (not point or rest.isdigit()):
        return int(whole), int(whole)
    found = INTERVAL.fullmatch(text)
    if found is None:
        return None
    first = int(found[2]) + (found[1] == "(")
    last = int(found[3]) - (found[4] == ")")
    return (first, last) if first <= last else None


def _labels_around(first: int, last: int) -> list[str]:
    """The label of an interval, such as `73` or `70-79`, and those of the blocks of `WIDTHS` that hold it."""
    blocks = [(first - first % width, width) for width in WIDTHS if last - first + 1 < width]
    above = [f"{low}-{low + width - 1}" for low, width in blocks if last < low + width]
    return [str(first) if first == last else f"{first}-{last}", *above]


def interval_tree(name: str, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """Intervals of 5, 10, 20 and 40 around the values, and each value's label; BadInput for other texts (their
    number)."""
    label: dict[str, str] = {}
    parent: dict[str, str] = {}
    strange = 0
    for text in values:
        bounds = interval_of(text)
        if bounds is None and text != MISSING and not OPEN_END.fullmatch(text):
            strange += 1
            continue
        path = [text] if bounds is None else _labels_around(*bounds)
        label[text] = path[0]
        parent |= zip(path, [*path[1:], ROOT], strict=True)
    if strange:
        raise BadInput(
            f"column `{name}`: {strange:,} of {len(values):,} distinct values are neither numbers nor intervals such "
            "as 70-79 or [70-80); correct them, name the texts that mean 'no value' (--missing), or give the column "
            "another hierarchy (--hierarchies)."
        )
    return _tree(name, parent), label


def prefix_tree(name: str, values: Sequence[str]) -> tuple[Hierarchy, dict[str, str]]:
    """Prefixes of digit strings (44113, 4411*, 441**, …), and each value's label; BadInput (the number of values)
    for other characters than letters, digits, blanks and hyphens, or more than 64 of them."""
    strange = sum(text != MISSING and not PREFIXED.fullmatch(text) for text in values)
    if strange:
        raise BadInput(
            f"column `{name}`: {strange:,} of {len(values):,} distinct values have characters that a prefix cannot "
            "keep; use at most 64 letters, digits, blanks and hyphens, or give the column another hierarchy "
            "(--hierarchies)."
        )
    parent: dict[str, str] = {}
    for text in values:
        shorter = range(len(text) - 1, 0, -1) if text != MISSING else ()
        above = [text[:kept] + "*" * (len(text) - kept) for kept in shorter]
        parent |= zip([text, *above], [*above, ROOT], strict=True)
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


Level = int | str
"""How finely a column is published: years of an interval, characters of a prefix, steps below the root of a file's
hierarchy; or `exact`, or `all` (nothing)."""

TREES = {"intervals": interval_tree, "prefix": prefix_tree, "exact": exact_tree}
"""The kinds of hierarchies that are made of the values."""

AGES = re.compile(r"(^|[^a-z])(age|ages|year|years|yob)([^a-z]|$)", re.IGNORECASE)
POST_CODES = re.compile(r"(^|[^a-z])(zip|zipcode|zip_code|postcode|postal_code|plz)([^a-z]|$)", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,63}")
"""Names that can be a column and a file of a release."""

RESERVED = frozenset({"class", "records", "patient", "record", "codes", "code", "node", "visit", "row"})

MOST_UNIQUE = 0.5
"""A column in which a larger share of the patients has a value of their own is an identifier."""


@dataclass(frozen=True)
class Column:
    """One demographic column.

    kind : `intervals`, `prefix`, `exact` or `file`
    tree : its hierarchy; what occurs is a node of it
    node : int32[records], the node of each record's own value
    missing : the number of records without a value
    """

    name: str
    kind: str
    tree: Hierarchy
    node: Int32s
    missing: int

    def at(self, level: Level) -> Int32s:
        """int32[nodes]: the node that is published for each node at a level. BadInput for a level it has not."""
        nodes = len(self.tree)
        if level == "exact":
            return np.arange(nodes, dtype=np.int32)
        if level == "all":
            return np.zeros(nodes, np.int32)
        stays, found = self._stays(level), np.zeros(nodes, np.int32)
        for node in range(1, nodes):  # parents come before children
            found[node] = node if stays[node] else found[self.tree.parent[node]]
        return found

    def _stays(self, level: Level) -> Bools:
        """bool[nodes]: whether a node is at this level or above it."""
        if not isinstance(level, int) or isinstance(level, bool) or self.kind == "exact":
            raise BadInput(f"`keep.{self.name}`: {self.levels_text()}.")
        if self.kind == "intervals":
            return self._intervals(level)
        if self.kind == "prefix":
            kept = np.array([len(label.rstrip("*")) for label in self.tree.labels])
            kept[[i for i, label in enumerate(self.tree.labels) if label == MISSING]] = 0
            return np.asarray(kept <= level)
        return np.asarray(self.tree.depth <= level)

    def _intervals(self, width: int) -> Bools:
        if width not in (1, *WIDTHS):
            raise BadInput(f"`keep.{self.name}`: {self.levels_text()}.")
        widths = self._widths
        wide = int((widths[self.node] > width).sum())
        if wide:
            raise BadInput(
                f"`keep.{self.name}`: {wide:,} records have an interval of more than {width}, and none can be "
                "published finer than it is given; keep a larger interval."
            )
        above = self.tree.parent
        # The widest interval of at most `width` is published: what is directly below a wider one, or below the root.
        highest = (widths[np.maximum(above, 0)] > width) | (above <= 0)
        return np.asarray(highest | (widths > width))

    @property
    def _widths(self) -> Int64s:
        """int64[nodes]: the numbers in each interval; 0 for labels that are none."""
        bounds = [interval_of(label) or (1, 0) for label in self.tree.labels]
        return np.array([last - first + 1 for first, last in bounds], np.int64)

    def levels_text(self) -> str:
        return {
            "intervals": "keep 1, 5, 10, 20 or 40 years, exact or all",
            "prefix": "keep a number of characters, exact or all",
            "exact": "this column has no hierarchy; keep exact or all, or name one with `hierarchies`",
            "file": "keep a number of steps below the root, exact or all",
        }[self.kind]

    def levels(self) -> list[Level]:
        """All levels, the finest first; of levels that tell the same records apart only the finest."""
        wanted: Iterable[Level] = ()
        if self.kind == "intervals":
            widest = max(1, int(self._widths[self.node].max(initial=0)))
            wanted = (width for width in (1, *WIDTHS) if width >= widest)
        elif self.kind == "prefix":
            wanted = range(max(map(len, self.tree.labels)), 0, -1)
        elif self.kind == "file":
            wanted = range(int(self.tree.depth.max()), 0, -1)
        first: dict[bytes, Level] = {}
        for level in ("exact", *wanted, "all"):
            apart = np.unique(self.at(level)[self.node], return_inverse=True)[1]
            first.setdefault(apart.tobytes(), level)
        return list(first.values())

    @property
    def losses(self) -> Float64s:
        """LM of each node: its leaves by all; 0 for a leaf, 1 for the root (docs/methods/trajectories.md#loss)."""
        found = self.tree.losses.copy()
        found[0] = 1.0
        return np.asarray(found)


@dataclass(frozen=True)
class Columns:
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def records(self) -> int:
        return len(self.columns[0].node)

    def vectors(self, levels: Mapping[str, Level]) -> Int32s:
        """int32[records, columns]: each record's nodes at the levels, `exact` where none is named."""
        return np.stack(
            [column.at(levels.get(column.name, "exact"))[column.node] for column in self.columns], axis=1
        ).astype(np.int32)

    def labels(self, vector: Sequence[int] | Int32s) -> tuple[str, ...]:
        return tuple(column.tree.labels[int(node)] for column, node in zip(self.columns, vector, strict=True))

    def loss(self, vectors: Int32s, weights: Float64s | None = None) -> Float64s:
        """The (weighted) mean LM of each vector, float64."""
        losses = np.stack([column.losses[vectors[..., i]] for i, column in enumerate(self.columns)], axis=-1)
        return np.asarray(np.average(losses, axis=-1, weights=weights))

    def weights(self, kept: frozenset[str]) -> Float64s:
        """Weights of the columns where classes are joined: what the recipient must have is generalized last."""
        return np.array([KEPT if name in kept else 1.0 for name in self.names])

    def take(self, records: Int64s | Bools) -> Columns:
        return Columns(tuple(replace(column, node=column.node[records]) for column in self.columns))


def columns_of(
    patients: pl.DataFrame | None,
    wanted: pl.Series,
    names: Sequence[str],
    hierarchies: Mapping[str, str | Hierarchy],
    keep: Mapping[str, Level],
    source: str,
) -> Columns:
    """The demographic columns `names` of the patients `wanted`, in that order. BadInput: a column that is not there,
    a patient twice, an identifier, a hierarchy that lacks a value, a level that a column does not have."""
    rows = values_of(patients, wanted, names, source)
    found = tuple(_column(rows[name], hierarchies.get(name), keep.get(name), source) for name in names)
    for column in found:
        if column.name in keep:
            column.at(keep[column.name])
    return Columns(found)


def values_of(
    patients: pl.DataFrame | None, wanted: pl.Series, names: Sequence[str], source: str
) -> pl.DataFrame:
    """The columns `names` of the patients `wanted`, one row each in that order, null where nothing is known.
    BadInput for a column that is not there or cannot be published under its name, and a patient twice."""
    for name in names:
        _require_column(name, [] if patients is None else patients.columns, source)
    assert patients is not None  # for the types: a column was found
    doubled = int(patients["patient"].is_duplicated().sum())
    if doubled:
        raise BadInput(
            f"{source}: {doubled:,} rows of the patients are of patients who occur more than once; keep one row each."
        )
    table = patients.select("patient", *names)
    people = wanted.alias("patient").to_frame()
    return people.join(table, on="patient", how="left", maintain_order="left").drop("patient")


def _require_column(name: str, columns: Sequence[str], source: str) -> None:
    available = [each for each in columns if each != "patient"]
    if name not in available:
        listed = f" Its columns: {', '.join(available)}." if available else " None were read: name them."
        raise BadInput(
            f"{source}: no column '{name}' of the patients.{did_you_mean(name, available)}{listed}"
        )
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise BadInput(
            f"{source}: a column of a release cannot be named '{name}'; rename it (letters, digits, `_`, `.`, `-` "
            "and blanks, and none of the names that a release has already)."
        )


def texts_of(values: pl.Series) -> pl.Series:
    """A column as text: whole numbers without a point, missing values as `(missing)`."""
    if values.dtype.is_float():
        values = values.fill_nan(None)
        known = values.drop_nulls()
        whole = bool(((known == known.floor()) & (known.abs() < 2.0**63)).all())
        values = values.floor().cast(pl.Int64) if whole else values
    text = values.cast(pl.String).str.strip_chars()
    return text.set(text == "", None).fill_null(MISSING)


def kind_of(name: str, values: pl.Series) -> str:
    known = values.filter(values != MISSING)
    numeric = len(known) > 0 and bool(known.str.contains(r"^\d+(\.\d+)?$").all())
    if POST_CODES.search(name):
        return "prefix"
    if AGES.search(name) and (numeric or any(map(interval_of, known.head(20)))):
        return "intervals"
    return "intervals" if len(known) and not numeric and all(map(interval_of, known)) else "exact"


def _column(values: pl.Series, hierarchy: str | Hierarchy | None, level: Level | None, source: str) -> Column:
    name = values.name
    text = texts_of(values)
    counts = text.value_counts().sort(name)
    distinct = counts[name].to_list()
    kind = str(hierarchy) if hierarchy in TREES else "file" if hierarchy else kind_of(name, counts[name])
    lone = int((counts["count"] == 1).sum())
    bare = kind == "exact" or level == "exact"
    if bare and level != "all" and lone > MOST_UNIQUE * len(text) and len(text) > 1:
        raise BadInput(
            f"{source}: column `{name}` is an identifier: {lone:,} of {len(text):,} patients have a unique "
            f"value. Leave it out, or give it a hierarchy (`hierarchies`) and keep a level of it (`keep`)."
        )
    tree, label = TREES[kind](name, distinct) if kind in TREES else file_tree(name, hierarchy or "", distinct)
    number = {each: tree.index[label[each]] for each in distinct}
    node = text.replace_strict(number, return_dtype=pl.Int32).to_numpy()
    return Column(name, kind, tree, node, int((text == MISSING).sum()))
