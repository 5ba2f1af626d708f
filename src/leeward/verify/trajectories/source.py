"""Released trajectories against the data that they come from: every record must generalize a patient of its own.

`custody/data/records.parquet` is a witness. What it says is checked, and it proves what otherwise a matching must find.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify import kernels
from leeward.verify.checks import Check, Source, of_count, payload_of, unlike_counts
from leeward.verify.classes import Classes, class_source, find_patients, largest_flow
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share
from leeward.verify.trajectories.layout import (
    COMMON,
    OLDEST,
    Released,
    Tree,
    number_records,
    span_of,
    tree_of,
)
from leeward.vocabulary import built_in, load

MOST_RECORDS, MOST_EDGES = 50_000, 20_000_000
"""Up to so many records and pairs of group and possible owner they are matched one to one; beyond, groups are drawn
and looked at singly."""

SAMPLED_GROUPS = 2_000

OPEN_END, OPEN_END_OWN = 127, 150
"""The oldest age below an open-ended label (`90+`) of the built-in trees, and of a custodian's own."""


@dataclass
class Originals:
    """Distinct (trajectory, payload, demographics) of the source, as leaves: original o has offsets[o]:offsets[o + 1].

    copies : patients a distinct one.
    """

    offsets: Longs
    codes: Longs
    ages: Longs
    copies: Longs


def against_source(
    released: Released, share: Share, source: Source, classed: Classed | None = None
) -> list[Check]:
    """The patients are all there, with their payload, and each record has an owner that it generalizes and whose
    demographics fit its class."""
    if "age" not in source.events.columns:
        return [Check("source_patients", False, "The source has no ages, so it cannot be the release's.")]
    payload = payload_of(share.manifest["parameters"])
    usable = usable_rows(source, released, share.manifest["parameters"].get("ages") == "custom")
    checks: list[Check] = []
    values: list[tuple[str, ...]] | None = []
    if classed is not None:
        everybody = usable["patient"].unique().sort()
        people, values = find_patients(share, classed.classes, source, everybody)
        if len(people) < len(everybody):
            usable = usable.filter(pl.col("patient").is_in(people.implode()))
        checks.append(class_source(classed.classes, values, all_released=True))
    read = accounts(released, share, usable)
    if values is None:
        return [*checks, *read]
    if (pairs := vocabulary_pairs(released, share, usable, source.vocabulary)) is not None:
        whole, _ = tree_of(pairs)
        assert whole is not None  # a vocabulary's hierarchy is a tree
        checks.append(check_code_hierarchy(released, pairs, whole, usable, share.guarantee("k")))
        if not checks[-1].passed:
            return [*checks, *read]
        released = on_tree(released, whole)
    frame, unknown = leaves_of(usable, released.code_tree)
    if unknown:
        return [
            Check(
                "source_values", False, f"{unknown:,} codes of the source are no leaf of the code hierarchy."
            )
        ]
    n = len(released.offsets) - 1
    patients = frame["patient"].n_unique()
    detail = f"{n:,} records, {patients:,} patients with a usable age in the source."
    checks.append(Check("source_patients", patients == n, detail, {"records": n, "patients": patients}))
    carried, keys = payload_numbers(released, source, payload)
    mine = number_payload(released, keys, payload)
    checks += check_payload(mine, carried, frame)
    if not all(check.passed for check in checks):
        return [*checks, *read]
    in_order = share.manifest["parameters"].get("order", "kept") == "kept"
    fitting = fitting_of(mine, frame, carried, classed, values)
    place = places_of(share, n)
    if place is not None:
        fits = np.array([fitting.of(r, place[r : r + 1])[0] for r in range(n)], np.bool_)
        checks.append(check_owners(released, frame, place, fits, in_order))
        if checks[-1].passed:  # a matching: custody names it
            proven = "Every record can be given a patient of its own: custody names one, whom it generalizes."
            return [*checks, Check("owners", True, proven, {"matched": True}), *read]
    originals, fitting.carried, fitting.vector = originals_of(frame, fitting)
    groups = groups_of(released, fitting.payload)
    checks.append(match_owners(released, groups, originals, fitting, n, in_order))
    return [*checks, *read]


def check_payload(mine: Longs, carried: pl.DataFrame | None, frame: pl.DataFrame) -> list[Check]:
    """The records have the payload of the patients, in whatever order; no check without payload."""
    if carried is None:
        return []
    patient = frame.select("patient").unique().join(carried, on="patient", how="left")
    same = np.array_equal(np.sort(mine), np.sort(patient["payload"].fill_null(-1).to_numpy()))
    detail = f"The payload is {'' if same else 'not '}that of the patients."
    return [Check("source_payload", same, detail)]


def accounts(released: Released, share: Share, usable: pl.DataFrame) -> list[Check]:
    """Nothing was lost on the way in or out: each code has as many pairs in the source as the method says that it read,
    and each published code as many in the release as it says that it meant to show."""
    file = share.folder.parent / "custody" / "data" / "codes.parquet"
    if not file.is_file():
        return []
    said = pl.read_parquet(file)
    labels = pl.Series(released.code_tree.labels, dtype=pl.String)
    found = {
        "read": usable.group_by(code="text").len("found"),
        "shown": labels.gather(released.codes).alias("code").to_frame().group_by("code").len("found"),
    }
    checks = []
    for column, counted in found.items():
        wrong = unlike_counts(said.select("code", column), counted)
        name, of = ("pairs_read", "source") if column == "read" else ("pairs_shown", "release")
        checks.append(
            of_count(
                name,
                wrong,
                f"Each code has as many pairs in the {of} as the method counted.",
                f"codes have another number of pairs in the {of} than the method counted.",
            )
        )
    return checks


def vocabulary_pairs(
    released: Released, share: Share, usable: pl.DataFrame, named: str | None
) -> list[tuple[str, str]] | None:
    """(node, parent) of the vocabulary's hierarchy over the codes of the source, where the release says that it lists
    only the codes that k patients have; None where the hierarchy is a stated one. `named`: the source's vocabulary,
    where it is no classification that the root names."""
    if share.manifest["parameters"].get("listed_codes") != COMMON:
        return None
    vocabulary = built_in(released.code_tree.labels[0])
    if vocabulary is None and named is not None:
        vocabulary = load(named)
    if vocabulary is None:
        return None
    return vocabulary.hierarchy(usable["text"].unique().to_list()).to_pairs()


def are_k(patients: NDArray[np.int64], k: int) -> bool:
    """Whether k different patients are among these; the first few mostly tell."""
    return len(np.unique(patients[: 64 * k])) >= k or len(np.unique(patients)) >= k


def check_code_hierarchy(
    released: Released, pairs: list[tuple[str, str]], whole: Tree, usable: pl.DataFrame, k: int
) -> Check:
    """The published hierarchy is the part of the vocabulary's that k patients have a code below, row by row."""
    rows = usable.select("patient", "text").unique()
    leaf = np.array([whole.leaf[code] for code in rows["text"].to_list()], np.int64)
    order = np.argsort(leaf, kind="stable")
    leaf, patient = leaf[order], rows["patient"].rank("dense").to_numpy().astype(np.int64)[order]
    bounds = np.searchsorted(leaf, np.stack([whole.low, whole.high])).T.tolist()
    common = {
        label
        for label, (first, last) in zip(whole.labels, bounds, strict=True)
        if are_k(patient[first:last], k)
    }
    published = set(released.code_tree.labels)
    part, _ = tree_of([pair for pair in pairs if pair[0] in common])
    return of_count(
        "hierarchy_lists_common_codes",
        len(published ^ common) or int(not released.code_tree.equals(part)),
        f"The code hierarchy lists the {len(published):,} nodes that at least {k} patients have a code below.",
        f"nodes are listed that fewer than {k} patients have a code below, or are missing, or stand elsewhere.",
    )


def on_tree(released: Released, whole: Tree) -> Released:
    """The published codes as nodes of a larger tree."""
    labels = [*released.code_tree.labels, ""]
    node = np.array([whole.index.get(label, -1) for label in labels], np.int64)
    return replace(released, codes=node[released.codes], code_tree=whole)


def usable_rows(source: Source, released: Released, own_ages: bool) -> pl.DataFrame:
    """`patient`, `text` (the code), `age` (leaf of the age tree), `rank` (the leaf's place in order of age)."""
    bounds = sorted((*span_of(label), leaf) for label, leaf in released.age_tree.leaf.items())
    leaf_of_year = np.full(OLDEST + 1, -1, np.int64)
    for first, last, leaf in bounds:
        leaf_of_year[first : last + 1] = leaf
    rank_of_leaf = np.zeros(len(bounds), np.int64)
    rank_of_leaf[[leaf for _, _, leaf in bounds]] = np.arange(len(bounds))
    oldest = max(last for _, last, _ in bounds)
    if oldest == OLDEST:
        oldest = OPEN_END_OWN if own_ages else OPEN_END
    events = source.events.select(
        "patient", text=pl.col("code").cast(pl.String), age=pl.col("age").cast(pl.Float64).floor()
    )
    readable = pl.col("age").is_not_null() & pl.col("age").is_not_nan()
    usable = events.filter(readable & pl.col("age").is_between(0, oldest))
    leaf = leaf_of_year[usable["age"].to_numpy().astype(np.int64)]
    ranks = rank_of_leaf[np.maximum(leaf, 0)]
    return usable.with_columns(age=pl.Series(leaf), rank=pl.Series(ranks)).filter(pl.col("age") >= 0)


def leaves_of(usable: pl.DataFrame, codes: Tree) -> tuple[pl.DataFrame, int]:
    """`patient`, `code`, `age` as leaf numbers, in order; and how many codes are unknown."""
    distinct = usable["text"].unique()
    numbers = pl.Series([codes.leaf.get(code, -1) for code in distinct.to_list()], dtype=pl.Int64)
    frame = usable.with_columns(code=pl.col("text").replace_strict(distinct, numbers))
    unknown = int((numbers < 0).sum())
    return frame.sort("patient", "rank", "text").select("patient", "code", "age"), unknown


def payload_numbers(
    released: Released, source: Source, payload: list[str]
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """`patient`, `payload` (a number for each distinct combination of values), and the numbers' own table."""
    if not payload or source.patients is None:
        return None, None
    texts = source.patients.select(
        "patient", *(pl.col(name).cast(pl.String).fill_null("\0") for name in payload)
    )
    keys = texts.select(payload).unique().sort(payload).with_row_index("payload").cast({"payload": pl.Int64})
    return texts.join(keys, on=payload, how="left").select("patient", "payload"), keys


def number_payload(released: Released, keys: pl.DataFrame | None, payload: list[str]) -> Longs:
    """The payload number of each released record; -1 for values that no patient has."""
    if keys is None:
        return np.zeros(len(released.offsets) - 1, np.int64)
    texts = released.records.select(pl.col(name).cast(pl.String).fill_null("\0") for name in payload)
    return texts.join(keys, on=payload, how="left", maintain_order="left")["payload"].fill_null(-1).to_numpy()


def originals_of(frame: pl.DataFrame, fitting: Fitting) -> tuple[Originals, Longs, Longs]:
    """The distinct (trajectory, payload, demographics) of the source, rows of a patient stand together; and of each its
    payload number and its demographics' number."""
    codes, ages = (frame[name].to_numpy().astype(np.int64) for name in ("code", "age"))
    lengths = frame.select(pl.col("patient").rle()).unnest("patient")["len"].to_numpy().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    shape = number_records(codes << 32 | ages, offsets)
    _, first, copies = np.unique(
        np.stack([shape, fitting.carried, fitting.vector]), axis=1, return_index=True, return_counts=True
    )
    ends = np.cumsum(lengths[first])
    at = np.arange(int(ends[-1])) + np.repeat(offsets[first] - (ends - lengths[first]), lengths[first])
    originals = Originals(
        np.concatenate([[0], ends]).astype(np.int64), codes[at], ages[at], copies.astype(np.int64)
    )
    return originals, fitting.carried[first], fitting.vector[first]


def groups_of(released: Released, payload: Longs) -> list[tuple[int, int, int]]:
    """(a record of the group, its payload number, how many records) of each (published trajectory, payload)."""
    table = pl.DataFrame({"kind": released.kind, "payload": payload, "record": np.arange(len(payload))})
    found = table.group_by("kind", "payload").agg(pl.col("record").min(), pl.len()).sort("kind", "payload")
    return list(
        zip(found["record"].to_list(), found["payload"].to_list(), found["len"].to_list(), strict=True)
    )


@dataclass
class Finder:
    """Finds the originals that a published trajectory can stand for."""

    released: Released
    originals: Originals
    fitting: Fitting
    in_order: bool = True
    known: dict[int, Longs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        o = self.originals
        self.width = len(self.released.age_tree.leaf)
        codes = len(self.released.code_tree.leaf)
        used, code = np.unique(o.codes, return_inverse=True)
        # Only codes that occur get cells: hierarchies may have many thousands.
        self.used = used
        cells = code * self.width + o.ages
        owner = np.repeat(np.arange(len(o.copies)), np.diff(o.offsets))
        order = np.argsort(cells, kind="stable")
        counts = np.bincount(cells, minlength=len(used) * self.width)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.holder = owner[order]
        self.sums = np.zeros((len(used) + 1, self.width + 1), np.int64)
        self.sums[1:, 1:] = counts.reshape(len(used), self.width).cumsum(0).cumsum(1)
        self.seen = np.full(len(o.copies), -1, np.int64)
        self.everyone = np.arange(len(o.copies))
        self.buffer, self.held = np.empty(len(o.copies), np.int64), np.empty(len(o.copies), np.int64)
        self.columns = np.searchsorted(used, np.arange(codes + 1))

    def rectangles(self, record: int) -> tuple[Longs, Longs, Longs, Longs]:
        """Leaf intervals of the record's pairs."""
        r = self.released
        span = slice(int(r.offsets[record]), int(r.offsets[record + 1]))
        codes, ages = r.codes[span], r.ages[span]
        return r.code_tree.low[codes], r.code_tree.high[codes], r.age_tree.low[ages], r.age_tree.high[ages]

    def rarest(self, record: int) -> tuple[int, int]:
        """(pairs of the source inside the record's rarest pair, its place); everybody for an empty record."""
        c_low, c_high, a_low, a_high = self.rectangles(record)
        best = (len(self.holder) + 1, -1)
        for i in range(len(c_low)):
            inside = kernels.grid_sum(
                self.sums, self.columns[c_low[i]], self.columns[c_high[i]], a_low[i], a_high[i]
            )
            best = min(best, (int(inside), i))
        return best

    def owners(self, record: int) -> Longs:
        """The originals that the record can stand for, ascending."""
        c_low, c_high, a_low, a_high = self.rectangles(record)
        inside, place = self.rarest(record)
        candidates = self.everyone
        if place >= 0 and inside < len(self.everyone):
            found = kernels.holders(
                self.columns[c_low[place]], self.columns[c_high[place]], a_low[place], a_high[place],
                self.starts, self.holder, self.width, self.seen, record, self.held,
            )  # fmt: skip
            candidates = self.held[:found]
        o = self.originals
        matches = kernels.owners if self.in_order else kernels.owners_in_any_order
        found = matches(c_low, c_high, a_low, a_high, candidates, o.offsets, o.codes, o.ages, self.buffer)
        owners = np.sort(self.buffer[:found])
        return owners[self.fitting.of(record, owners)]


def match_owners(
    released: Released,
    groups: list[tuple[int, int, int]],
    originals: Originals,
    fitting: Fitting,
    n: int,
    in_order: bool = True,
) -> Check:
    """Records can be given to patients one to one, each generalizing its own (a matching exists)."""
    finder = Finder(released, originals, fitting, in_order)
    edges = owners_of(finder, groups) if n <= MOST_RECORDS else None
    if edges is None:
        return _check_sample(finder, groups)
    needs = np.array([size for _, _, size in groups], np.int64)
    return of_count(
        "owners",
        int(needs.sum()) - largest_flow(needs, edges, originals.copies),
        "Every record can be given a patient of its own whom it generalizes, "
        + ("in order." if in_order else "pair by pair, one to one."),
        "records generalize no patient that is left for them.",
        {"groups": len(groups), "matched": True},
    )


def owners_of(finder: Finder, groups: list[tuple[int, int, int]]) -> list[Longs] | None:
    """The originals of each group; None for too many."""
    found: list[Longs] = []
    total = 0
    for record, _, _ in groups:
        found.append(finder.owners(record))
        total += len(found[-1])
        if total > MOST_EDGES:
            return None
    return found


def _check_sample(finder: Finder, groups: list[tuple[int, int, int]]) -> Check:
    """Beyond what can be matched: some groups, each by itself, have enough patients that they can stand for."""
    chosen = groups[:: max(1, len(groups) // SAMPLED_GROUPS)]
    copies = finder.originals.copies
    short = sum(int(copies[finder.owners(r)].sum()) < size for r, _, size in chosen)
    return of_count(
        "owners",
        short,
        f"Each of {len(chosen):,} groups drawn has enough patients that it can stand for (too many to be matched).",
        "groups have fewer patients that they can stand for than records.",
        {"groups": len(chosen), "matched": False},
    )


@dataclass(frozen=True)
class Classed:
    """The classes of demographics of a release, and the place among them of each record's."""

    classes: Classes
    of_record: Longs


@dataclass
class Fitting:
    """Which records may be whose by payload and demographics.

    payload, of_class : of each record its payload number, and the place of its class; carried, vector : of each patient
    (ascending) the payload number, and the number of the exact demographics
    fits : bool[vectors, classes]
    """

    payload: Longs
    carried: Longs
    of_class: Longs
    vector: Longs
    fits: NDArray[np.bool_]

    def of(self, record: int, patients: Longs) -> NDArray[np.bool_]:
        """Which of some patients a record may be of."""
        same = self.carried[patients] == self.payload[record]
        return same & self.fits[self.vector[patients], self.of_class[record]]


def fitting_of(
    payload: Longs,
    frame: pl.DataFrame,
    carried: pl.DataFrame | None,
    classed: Classed | None,
    values: list[tuple[str, ...]],
) -> Fitting:
    """What payload and demographics say of records and patients, the patients in ascending order."""
    ascending = frame.select("patient").unique().sort("patient")
    n = ascending.height
    own = np.zeros(n, np.int64)
    if carried is not None:
        joined = ascending.join(carried, on="patient", how="left", maintain_order="left")
        own = joined["payload"].fill_null(-1).to_numpy().astype(np.int64)
    if classed is None:
        alone = np.zeros(max(n, len(payload)), np.int64)
        return Fitting(payload, own, alone[: len(payload)], alone[:n], np.ones((1, 1), np.bool_))
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    fits = np.stack([classed.classes.fit(value) for value in numbers])
    vector = np.array([numbers[value] for value in values], np.int64)
    return Fitting(payload, own, classed.of_record, vector, fits)


def places_of(share: Share, n: int) -> Longs | None:
    """For each record the place of its patient, ascending identifiers; None where custody does not say it."""
    file = share.folder.parent / "custody" / "data" / "records.parquet"
    if share.folder.name != "share" or not file.is_file():
        return None
    table = pl.read_parquet(file)
    if not {"record", "place"} <= set(table.columns):
        return None
    table = table.sort("record")
    ranks = np.arange(n)
    fits = np.array_equal(table["record"].to_numpy(), ranks) and np.array_equal(
        np.sort(table["place"].to_numpy()), ranks
    )
    return table["place"].to_numpy().astype(np.int64) if fits else np.full(n, -1, np.int64)


def check_owners(
    released: Released,
    frame: pl.DataFrame,
    place: Longs,
    fitting: NDArray[np.bool_],
    in_order: bool,
) -> Check:
    """Each record generalizes the pairs of its patient and has the patient's payload, and labels that fit.

    frame : `patient`, `code`, `age` (leaves), patients ascending, a patient's rows in order.  fitting : whether
    a record has the payload of the patient whom custody names, and a class that fits the patient.
    """
    runs = frame.select(pl.col("patient").rle()).unnest("patient")
    offsets = np.concatenate([[0], np.cumsum(runs["len"].to_numpy())]).astype(np.int64)
    codes, ages = (frame[name].to_numpy().astype(np.int64) for name in ("code", "age"))
    r = released
    matches = kernels.owners if in_order else kernels.owners_in_any_order
    buffer, one = np.empty(1, np.int64), np.empty(1, np.int64)
    low, high = r.code_tree.low[r.codes], r.code_tree.high[r.codes]
    first, last = r.age_tree.low[r.ages], r.age_tree.high[r.ages]
    wrong = 0
    for record in range(len(r.offsets) - 1):
        span = slice(int(r.offsets[record]), int(r.offsets[record + 1]))
        one[0] = place[record]
        fits = place[record] >= 0 and fitting[record]
        wrong += not (
            fits
            and matches(low[span], high[span], first[span], last[span], one, offsets, codes, ages, buffer)
        )
    return of_count(
        "own_patients",
        wrong,
        "Every record generalizes the patient whom custody names, with that patient's payload and labels that fit.",
        "records do not generalize the patient whom custody names, have another payload, or labels that do not fit the "
        "patient.",
        {"records": len(place)},
    )
