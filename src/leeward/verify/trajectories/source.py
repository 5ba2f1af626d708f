"""Released trajectories against the data that they come from: every record must generalize a patient of its own.

`custody/data/records.parquet` is a witness. What it says is checked, and it proves what otherwise a matching must find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source, failing, of_count, payload_of, unlike_counts
from leeward.verify.classes import Placed, class_source, find_patients, largest_flow
from leeward.verify.flat import Ints, Longs, distinct, offsets_of, places_of, rank
from leeward.verify.kernels import generalizes, number_lists
from leeward.verify.manifest import Share
from leeward.verify.trajectories.layout import COMMON, OLDEST, Released, Tree, tree_of
from leeward.vocabulary import built_in, load

MOST_RECORDS, MOST_EDGES = 50_000, 20_000_000
"""Up to so many records and pairs of group and possible owner they are matched one to one; beyond, groups are drawn
and looked at singly."""

SAMPLED_GROUPS = 2_000

OPEN_END, OPEN_END_OWN = 127, 150
"""The oldest age below an open-ended label (`90+`) of the built-in trees, and of a custodian's own."""


@dataclass(frozen=True)
class Originals:
    """Trajectories of the source as leaves: original o has the pairs offsets[o]:offsets[o + 1] and copies[o]
    patients."""

    offsets: Longs
    codes: Longs
    ages: Longs
    copies: Longs


@dataclass(frozen=True)
class Fitting:
    """Which records may be whose by payload and demographics. Records have a `payload` number and, as `of_class`, the
    place of their class; originals have the payload number `carried` and the number `vector` of their exact
    demographics. `fits` is bool[vectors, classes]."""

    payload: Longs
    of_class: Longs
    carried: Longs
    vector: Longs
    fits: NDArray[np.bool_]

    def of(self, records: Longs, originals: Longs) -> NDArray[np.bool_]:
        """Whether each record may be of the original in the same place."""
        same = self.carried[originals] == self.payload[records]
        return same & self.fits[self.vector[originals], self.of_class[records]]


def against_source(
    released: Released, share: Share, source: Source, placed: Placed | None = None
) -> list[Check]:
    """The patients are all there, with their payload, and each record has an owner that it generalizes and whose
    demographics fit its class."""
    time = "date" if "time" in share.manifest["parameters"] else "age"
    if time not in next(source.parts()).events.columns:
        return [Check("source_patients", False, f"The source has no {time}s, so it cannot be the release's.")]
    own_ages = share.manifest["parameters"].get("ages") == "custom"
    usable = pl.concat([usable_rows(part, released, own_ages, time) for part in source.parts()])
    checks: list[Check] = []
    values: list[tuple[str, ...]] | None = []
    if placed is not None:
        everybody = usable["patient"].unique().sort()
        people, values = find_patients(share, placed.classes, source, everybody)
        if len(people) < len(everybody):
            usable = usable.filter(pl.col("patient").is_in(people.implode()))
        checks.append(class_source(placed.classes, values, all_released=True))
    read = accounts(released, share, usable)
    if values is None:
        return [*checks, *read]
    if (pairs := vocabulary_pairs(released, share, usable, source.vocabulary)) is not None:
        whole, _ = tree_of(pairs)
        assert whole is not None  # a vocabulary's hierarchy is a tree
        checks.append(check_code_hierarchy(released, pairs, whole, usable, share.guarantee("k")))
        if not checks[-1].passed:
            return [*checks, *read]
        node = np.array([whole.index.get(label, -1) for label in (*released.code_tree.labels, "")], np.int64)
        released = replace(released, codes=node[released.codes], code_tree=whole)
    frame, unknown = leaves_of(usable, released.code_tree)
    if unknown:
        detail = f"{unknown:,} codes of the source are not leaves of the code hierarchy."
        return [Check("source_values", False, detail)]
    return [*checks, *owner_checks(released, share, source, frame, placed, values), *read]


def owner_checks(
    released: Released,
    share: Share,
    source: Source,
    frame: pl.DataFrame,
    placed: Placed | None,
    values: list[tuple[str, ...]],
) -> list[Check]:
    """As many patients as records, with the same payload, and an owner of each record: the one that custody names, or
    by a matching. `frame`: see `leaves_of`; `values`: the patients' exact demographics."""
    patients = frame["patient"].unique(maintain_order=True)
    n, people = len(released.offsets) - 1, len(patients)
    detail = f"{n:,} records, {people:,} patients with a usable age in the source."
    checks = [Check("source_patients", people == n, detail, {"records": n, "patients": people})]
    names = payload_of(share.manifest["parameters"])
    payload, carried = np.zeros(n, np.int64), np.zeros(people, np.int64)
    if names and source.patients is not None:
        # Equal values of a record and a patient have equal numbers.
        own = patients.to_frame("patient").join(
            source.patients, on="patient", how="left", maintain_order="left"
        )
        shown = [
            each.select(pl.col(names).cast(pl.String).fill_null("\0")) for each in (released.records, own)
        ]
        numbers = pl.concat(shown).select(pl.struct(names).rank("dense")).to_series().to_numpy()
        payload, carried = np.split(numbers.astype(np.int64), [released.records.height])
        same = np.array_equal(np.sort(payload), np.sort(carried))
        detail = f"The payload is {'' if same else 'not '}that of the patients."
        checks.append(Check("source_payload", same, detail))
    if failing(checks):
        return checks
    fitting = fitting_of(payload, carried, placed, values)
    in_order = share.manifest["parameters"].get("order", "kept") == "kept"
    finder = Finder(released, originals_of(frame), fitting, in_order)
    place = named_places(share, n)
    if place is not None:
        checks.append(check_owners(finder, place))
        if checks[-1].passed:  # a matching: custody names it
            proven = "Every record can be given a patient of its own: custody names one, whom it generalizes."
            return [*checks, Check("owners", True, proven, {"matched": True})]
    return [*checks, match_owners(finder.distinct(), n)]


def accounts(released: Released, share: Share, usable: pl.DataFrame) -> list[Check]:
    """Nothing was lost on the way in or out: each code has as many pairs in the source as the method says that it read,
    and each published code as many in the release as it says that it meant to show."""
    file = share.kept("codes.parquet")
    if file is None:
        return []
    said = pl.read_parquet(file)
    labels = pl.Series(released.code_tree.labels, dtype=pl.String)
    shown = labels.gather(released.codes).alias("code").to_frame()
    return [
        of_count(
            f"pairs_{column}",
            unlike_counts(said.select("code", column), counted.cast({"code": pl.String})),
            f"Each code has as many pairs in the {of} as the method counted.",
            f"codes have a different number of pairs in the {of} than the method counted.",
        )
        for column, of, counted in (
            ("read", "source", usable.group_by(code="text").len()),
            ("shown", "release", shown.group_by("code").len()),
        )
    ]


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
    return None if vocabulary is None else vocabulary.hierarchy(usable["text"].unique().to_list()).to_pairs()


def are_k(patients: Longs, k: int) -> bool:
    """Whether k different patients are among these; the first few mostly tell."""
    return len(np.unique(patients[: 64 * k])) >= k or len(np.unique(patients)) >= k


def check_code_hierarchy(
    released: Released, pairs: list[tuple[str, str]], whole: Tree, usable: pl.DataFrame, k: int
) -> Check:
    """The published hierarchy is the part of the vocabulary's that k patients have a code below, row by row."""
    people, patient = rank(usable["patient"])
    leaf = number_texts(usable["text"], whole).astype(np.int64)
    leaf, numbers = np.divmod(distinct(leaf * len(people) + patient), len(people))
    bounds = np.searchsorted(leaf, np.stack([whole.low, whole.high])).T.tolist()
    common = {
        label
        for label, (first, last) in zip(whole.labels, bounds, strict=True)
        if are_k(numbers[first:last], k)
    }
    published = set(released.code_tree.labels)
    part, _ = tree_of([pair for pair in pairs if pair[0] in common])
    return of_count(
        "hierarchy_lists_common_codes",
        len(published ^ common) or int(not released.code_tree.equals(part)),
        f"The code hierarchy lists the {len(published):,} nodes that at least {k} patients have a code below.",
        f"nodes are listed that fewer than {k} patients have a code below, or are missing, or stand elsewhere.",
    )


def usable_rows(source: Source, released: Released, own_ages: bool, time: str) -> pl.DataFrame:
    """`patient`, `text` (the code), `age` (leaf of the age tree), `rank` (the leaf's place in order of age): the source
    in numbers. A date counts by its month, from the year 0."""
    tree = released.age_tree
    spans = sorted((*released.spans[tree.index[label]].tolist(), leaf) for label, leaf in tree.leaf.items())
    _, last, leaf = np.array(spans, np.int64).T
    oldest = int(last.max())
    if oldest == OLDEST:
        oldest = OPEN_END_OWN if own_ages else OPEN_END
    years = np.full(OLDEST + 1, -1, np.int64)
    for place, (low, high, _) in enumerate(spans):
        years[low : high + 1] = place
    code = source.events["code"]
    if not isinstance(code.dtype, pl.Enum):
        code = code.cast(pl.String)
        code = code.cast(pl.Enum(code.drop_nulls().unique().sort()))
    date = pl.col("date").dt
    age = pl.col("age") if time == "age" else date.year() * 12 + date.month() - 1
    events = source.events.select("patient", text=code, age=age.cast(pl.Float64).floor())
    readable = pl.col("age").is_not_null() & pl.col("age").is_not_nan()
    usable = events.filter(readable & pl.col("age").is_between(0, oldest))
    places = years[usable["age"].to_numpy().astype(np.int64)]
    ranked = usable.with_columns(
        age=pl.Series(leaf.astype(np.int16)[places]), rank=pl.Series(places.astype(np.int16))
    )
    return ranked.filter(pl.col("rank") >= 0)


def leaves_of(usable: pl.DataFrame, codes: Tree) -> tuple[pl.DataFrame, int]:
    """`patient`, `code`, `age` as leaf numbers, patients ascending and their rows in order; and how many codes are
    unknown."""
    leaf = number_texts(usable["text"], codes)
    unknown = usable["text"].filter(pl.Series(leaf < 0)).n_unique()
    frame = usable.with_columns(code=pl.Series(leaf))
    return frame.sort("patient", "rank", "text").select("patient", "code", "age"), unknown


def number_texts(texts: pl.Series, codes: Tree) -> Ints:
    """The leaf of each code, -1 where the tree has none, or where there is no code."""
    kind = texts.dtype
    assert isinstance(kind, pl.Enum)
    leaf = np.array([codes.leaf.get(code, -1) for code in kind.categories.to_list()], np.int32)
    return np.append(leaf, np.int32(-1))[texts.to_physical().fill_null(len(leaf)).to_numpy()]


def fitting_of(
    payload: Longs, carried: Longs, placed: Placed | None, values: list[tuple[str, ...]]
) -> Fitting:
    if placed is None:
        alone = np.zeros(max(len(payload), len(carried)), np.int64)
        return Fitting(
            payload, alone[: len(payload)], carried, alone[: len(carried)], np.ones((1, 1), np.bool_)
        )
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    fits = np.stack([placed.classes.fit(value) for value in numbers])
    vector = np.array([numbers[value] for value in values], np.int64)
    return Fitting(payload, placed.of_record, carried, vector, fits)


def originals_of(frame: pl.DataFrame) -> Originals:
    lengths = frame.select(pl.col("patient").rle()).unnest("patient")["len"].to_numpy().astype(np.int64)
    codes, ages = (frame[name].to_numpy().astype(np.int64) for name in ("code", "age"))
    return Originals(offsets_of(lengths), codes, ages, np.ones(len(lengths), np.int64))


@dataclass(frozen=True)
class Finder:
    """Finds the originals that a published trajectory can stand for."""

    released: Released
    originals: Originals
    fitting: Fitting
    in_order: bool

    def distinct(self) -> Finder:
        """The same with each distinct (trajectory, payload, demographics) once."""
        o, fitting = self.originals, self.fitting
        shape = number_lists(o.offsets, o.codes << 32 | o.ages)
        kinds = np.stack([shape, fitting.carried, fitting.vector])
        _, first, copies = np.unique(kinds, axis=1, return_index=True, return_counts=True)
        lengths = np.diff(o.offsets)[first]
        at = places_of(o.offsets[first], lengths)
        originals = Originals(offsets_of(lengths), o.codes[at], o.ages[at], copies.astype(np.int64))
        fitting = replace(fitting, carried=fitting.carried[first], vector=fitting.vector[first])
        return Finder(self.released, originals, fitting, self.in_order)

    @cached_property
    def intervals(self) -> tuple[Longs, Longs, Longs, Longs]:
        """The leaves of each published pair: codes from, up to; ages from, up to."""
        r = self.released
        codes, ages = r.code_tree, r.age_tree
        return codes.low[r.codes], codes.high[r.codes], ages.low[r.ages], ages.high[r.ages]

    def match(self, records: Longs, originals: Longs) -> NDArray[np.bool_]:
        """Whether each record can stand for the original in the same place."""
        o = self.originals
        pairs = generalizes(
            self.released.offsets,
            *self.intervals,
            o.offsets,
            o.codes,
            o.ages,
            records,
            originals,
            self.in_order,
        )
        return np.asarray(pairs) & self.fitting.of(records, originals)

    @cached_property
    def holders(self) -> tuple[Longs, Longs]:
        """(starts, originals): those with code leaf c are originals[starts[c]:starts[c + 1]]."""
        owner = np.repeat(np.arange(len(self.originals.copies)), np.diff(self.originals.offsets))
        counts = np.bincount(self.originals.codes, minlength=len(self.released.code_tree.leaf))
        return offsets_of(counts), owner[np.argsort(self.originals.codes, kind="stable")]

    def owners(self, record: int) -> Longs:
        """The originals that the record can stand for, ascending: looked for among those with its rarest code."""
        r, (starts, owner) = self.released, self.holders
        codes = r.codes[r.offsets[record] : r.offsets[record + 1]]
        own = np.ones(len(self.originals.copies), np.bool_)
        if len(codes):
            low, high = starts[r.code_tree.low[codes]], starts[r.code_tree.high[codes]]
            rarest = np.argmin(high - low)
            own[:] = False
            own[owner[low[rarest] : high[rarest]]] = True
        candidates = np.flatnonzero(own)
        return candidates[self.match(np.full(len(candidates), record), candidates)]


def match_owners(finder: Finder, n: int) -> Check:
    """Records can be given to patients one to one, each generalizing its own (a matching exists); beyond what can be
    matched, some groups, each by itself, have enough patients that they can stand for."""
    alike = pl.DataFrame({"kind": finder.released.kind, "payload": finder.fitting.payload}).with_row_index()
    groups = alike.group_by("kind", "payload").agg(pl.col("index").min(), pl.len()).sort("kind", "payload")
    first, sizes = groups["index"].to_list(), groups["len"].to_numpy().astype(np.int64)
    copies = finder.originals.copies
    edges = owners_of(finder, first) if n <= MOST_RECORDS else None
    if edges is not None:
        return of_count(
            "owners",
            int(sizes.sum()) - largest_flow(sizes, edges, copies),
            "Every record can be given a patient of its own whom it generalizes, "
            + ("in order." if finder.in_order else "pair by pair, one to one."),
            "records generalize no patient that is left for them.",
            {"groups": len(first), "matched": True},
        )
    chosen = range(0, len(first), max(1, len(first) // SAMPLED_GROUPS))
    short = sum(int(copies[finder.owners(first[i])].sum()) < sizes[i] for i in chosen)
    return of_count(
        "owners",
        short,
        f"Each of {len(chosen):,} groups drawn has enough patients that it can stand for (too many to be matched).",
        "groups have more records than patients that they can stand for.",
        {"groups": len(chosen), "matched": False},
    )


def owners_of(finder: Finder, records: list[int]) -> list[Longs] | None:
    """The originals that each record can stand for; None for too many."""
    found: list[Longs] = []
    total = 0
    for record in records:
        found.append(finder.owners(record))
        total += len(found[-1])
        if total > MOST_EDGES:
            return None
    return found


def named_places(share: Share, n: int) -> Longs | None:
    """For each record the place of its patient, ascending identifiers (-1 where custody does not name each once); None
    without custody."""
    file = share.kept("records.parquet")
    if file is None or not {"record", "place"} <= set(pl.read_parquet_schema(file)):
        return None
    table = pl.read_parquet(file).sort("record")
    once = all(np.array_equal(table[name].sort().to_numpy(), np.arange(n)) for name in ("record", "place"))
    return table["place"].to_numpy().astype(np.int64) if once else np.full(n, -1, np.int64)


def check_owners(finder: Finder, place: Longs) -> Check:
    """Each record generalizes the patient whom custody names (`place`), and has that patient's payload and labels."""
    records = np.flatnonzero(place >= 0)
    return of_count(
        "own_patients",
        len(place) - int(finder.match(records, place[records]).sum()),
        "Every record generalizes the patient whom custody names, with that patient's payload and labels that fit.",
        "records do not generalize the patient whom custody names, have another payload, or labels that do not fit the "
        "patient.",
        {"records": len(place)},
    )
