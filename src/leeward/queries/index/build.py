"""Building an index: rows to bitmaps, contributions bounded, everything written at once.

Through an engine the data are cut by patient into stretches; a kernel makes each stretch's bitmaps and they are put one
behind the other, so that the file is the same, byte for byte, on every engine and for every cut.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict, Unpack

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
from pyroaring import BitMap

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.queries.index import store
from leeward.queries.index.counts import Index
from leeward.queries.index.rows import (
    Bitmaps,
    Domains,
    Stretch,
    qids_of_events,
    qids_of_table,
    row_kind,
    rows_of_events,
    rows_of_table,
)
from leeward.queries.index.store import Meta, Qid
from leeward.queries.language.vocabulary import AnyText, Vocabulary
from leeward.randomness import Randomness

PATIENTS_A_STRETCH = 500_000
PIECE = pa.schema(
    [("stretch", pa.int64()), ("column", pa.string()), ("value", pa.string()), ("data", pa.binary())]
)
PATIENTS, LEFT_OUT = "\x00patients", "\x00left out"
"""In the place of a column: the rows of each patient, and a count of what was left out."""


@dataclass(frozen=True)
class Built:
    """A written index, and counts of what was left out, by reason (for the custodian)."""

    index: Index
    left_out: Mapping[str, int]


class Options(TypedDict, total=False):
    max_rows_per_patient: int | None
    """Bounds contributions: of a patient with more rows so many are kept, drawn at random."""
    parent: str | None
    """Identity of the data set that this one descends from."""
    about_patients: int | None
    """How many patients there are, to be public: a number that the custodian states."""
    randomness: Randomness | None
    synthetic: bool
    """Whether the patients are made up."""


def index_table(
    table: pl.DataFrame,
    out: str | Path,
    *,
    terms: Vocabulary | None = None,
    domains: Domains | None = None,
    leave_out: Sequence[str] = (),
    **options: Unpack[Options],
) -> Built:
    """Index a table of notes (`patient`, `terms` as lists of text, `note`, quasi-identifiers).

    terms : the public vocabulary; None: any text is a term
    domains : quasi-identifier -> permissible values: (first, last) of months and whole numbers, all values of texts
    leave_out : columns that are not to be asked for

    BadInput: columns or values that cannot be indexed, or something stands at `out`.
    """
    table = table.drop(leave_out)
    if "terms" not in table.columns:
        raise BadInput("a table of notes has the columns patient and terms; this one lacks 'terms'.")
    vocabulary = terms or AnyText()
    qids = qids_of_table(table.schema, domains or {})
    return _finish(out, rows_of_table(table, qids, vocabulary), vocabulary, qids, "note", options)


def index_cohort(
    cohort: Cohort,
    out: str | Path,
    *,
    terms: Vocabulary | None = None,
    domains: Domains | None = None,
    row: str | None = None,
    **options: Unpack[Options],
) -> Built:
    """Index a cohort: codes as terms, attributes as quasi-identifiers, the months of visits as `when`; as
    `index_table`. `row`: 'visit' (default where visits or dates are known) or 'patient'."""
    columns = cohort.columns_of_events()
    people = cohort.patients
    attributes = {} if people is None else dict(people.schema)
    vocabulary = terms or AnyText()
    kind = row_kind(columns, row)
    qids = qids_of_events(columns, attributes, domains or {}, kind)

    def rows(events: pl.DataFrame) -> Stretch:
        if people is not None:
            held = people.select("patient", *(c for c in people.columns if c != "patient"))
            events = events.drop([c for c in held.columns if c != "patient" and c in events.columns])
            events = events.join(held, on="patient", how="left")
        return rows_of_events(events, qids, vocabulary, kind)

    return _finish(out, _join(map(rows, cohort.parts())), vocabulary, qids, kind, options)


def index_events(
    source: str | Path | pl.DataFrame,
    out: str | Path,
    engine: Any,
    *,
    terms: Vocabulary,
    attributes: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    domains: Domains | None = None,
    row: str | None = None,
    patients_a_stretch: int = PATIENTS_A_STRETCH,
    **options: Unpack[Options],
) -> Built:
    """Index recorded codes through an engine (`leeward.engine.Engine`); the same bytes as `index_cohort`.

    `source` is Parquet or a frame with `patient`, `code`, where known `visit`, `date`, `age` (or the columns that
    `columns` maps from these names), and the columns named in `attributes`, which say the same in every event of a
    patient.
    """
    frame = engine.frame(source)
    if columns is not None:
        available = frame.collect_schema().names()
        for column in (*columns.values(), *attributes):
            if column not in available:
                raise BadInput(f"the source has no column {column!r}; it has {', '.join(available)}.")
        own = [nw.col(column).alias(role) for role, column in columns.items()]
        frame = frame.select(*own, *attributes)
    available = frame.collect_schema().names()
    names = [name for name in ("patient", "code", "visit", "date", "age") if name in available]
    if names[:2] != ["patient", "code"]:
        raise BadInput("events have the columns patient and code.")
    frame = frame.select(*names, *attributes).drop_nulls(["patient", "code"])
    schema = engine.collect(frame.head(0)).schema
    if schema["patient"] == pl.String:  # blanks around it make no other patient, as when the reader reads
        frame = frame.with_columns(nw.col("patient").str.strip_chars()).filter(nw.col("patient") != "")
    kind = row_kind(names, row)
    qids = qids_of_events(names, {name: schema[name] for name in attributes}, domains or {}, kind)
    patients = engine.collect(frame.select("patient").unique())["patient"].sort()
    if not len(patients):
        raise BadInput("the source has no event with a patient and a code.")
    cuts = patients.gather_every(patients_a_stretch)[1:].to_list()
    number = sum(((nw.col("patient") >= nw.lit(cut)).cast(nw.Int64) for cut in cuts), nw.lit(0, nw.Int64))
    kernel = partial(_kernel, qids=qids, terms=terms, kind=kind)
    pieces = engine.map_groups(frame.with_columns(stretch=number), "stretch", kernel, PIECE, order=())
    return _finish(out, _join(_stretches(pieces)), terms, qids, kind, options)


def _kernel(table: pa.Table, *, qids: tuple[Qid, ...], terms: Vocabulary, kind: str) -> pa.Table:
    events = pl.DataFrame(pl.from_arrow(table))
    number = int(events["stretch"][0])
    made = rows_of_events(events.drop("stretch"), qids, terms, kind)
    rows = [(PATIENTS, "", made.rows_of_patient.tobytes())]
    rows += [(LEFT_OUT, why, str(count).encode()) for why, count in made.left_out.items()]
    rows += [(column, value, bitmap.serialize()) for (column, value), bitmap in made.bitmaps.items()]
    return pa.table([[number] * len(rows), *zip(*rows, strict=True)], schema=PIECE)


def _stretches(pieces: pa.Table) -> Iterator[Stretch]:
    """The stretches of `_kernel`, in the order of their numbers."""
    rows = zip(*(pieces.column(name).to_pylist() for name in PIECE.names), strict=True)
    for _, own in groupby(sorted(rows, key=itemgetter(0)), itemgetter(0)):
        (_, _, _, patients), *found = own  # of a stretch the patients come first
        left_out = {value: int(data) for _, column, value, data in found if column == LEFT_OUT}
        bitmaps = {
            (column, value): BitMap.deserialize(data)
            for _, column, value, data in found
            if column != LEFT_OUT
        }
        yield Stretch(np.frombuffer(patients, np.int32), bitmaps, left_out)


def _join(stretches: Iterable[Stretch]) -> Stretch:
    """All stretches, one behind the other."""
    parts: dict[tuple[str, str], list[BitMap]] = {}
    left_out: Counter[str] = Counter()
    rows_of_patient = []
    base = 0
    for each in stretches:
        for key, bitmap in each.bitmaps.items():
            parts.setdefault(key, []).append(bitmap.shift(base))
        left_out.update(each.left_out)
        rows_of_patient.append(each.rows_of_patient)
        base += int(each.rows_of_patient.sum())
    bitmaps = {key: BitMap.union(*found) for key, found in parts.items()}
    return Stretch(np.concatenate(rows_of_patient), bitmaps, left_out)


def _finish(
    out: str | Path, whole: Stretch, terms: Vocabulary, qids: tuple[Qid, ...], row: str, options: Options
) -> Built:
    about, limit = options.get("about_patients"), options.get("max_rows_per_patient")
    _require_positive("the stated number of patients", about)
    _require_positive("the most rows of a patient", limit)
    identity = _identity(whole)
    seeded = False
    if row == "patient":
        limit = 1
    elif whole.rows_of_patient.max(initial=0) > (limit or np.inf):
        randomness = options.get("randomness") or Randomness.of(None)
        whole = _limit_rows(whole, limit or 1, randomness)
        seeded = randomness.seeded
    rows, patients = int(whole.rows_of_patient.sum()), len(whole.rows_of_patient)
    patient_of_row = np.repeat(np.arange(patients, dtype=np.int32), whole.rows_of_patient)
    names, aliases = terms.to_tables()
    store.write(
        out,
        Meta(
            identity, options.get("parent"), row, qids, terms.name, terms.public, limit, seeded,
            options.get("synthetic", False), about,
        ),
        rows=rows,
        patients=patients,
        tables={"vocabulary": names, "aliases": aliases},
        bitmaps=[(*key, _pack(whole.bitmaps[key])) for key in sorted(whole.bitmaps)],
        patient_of_row=patient_of_row.tobytes() if rows != patients else None,
    )  # fmt: skip
    return Built(Index(out), {why: count for why, count in whole.left_out.items() if count})


def _require_positive(name: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise BadInput(f"{name} must be at least 1; got {number}.")


def _pack(bitmap: BitMap) -> bytes:
    """Serialize a set in one form, whatever operations made it."""
    fresh = BitMap(np.frombuffer(bitmap.to_array(), np.uint32))
    fresh.run_optimize()
    data: bytes = fresh.serialize()
    return data


def _identity(stretch: Stretch) -> str:
    """A digest of which rows belong together and which terms they hold."""
    digest = hashlib.blake2b(stretch.rows_of_patient.tobytes(), digest_size=16)
    for column, value in sorted(stretch.bitmaps):
        if column == "":
            digest.update(value.encode() + b"\x00" + _pack(stretch.bitmaps[column, value]))
    return digest.hexdigest()


def _limit_rows(stretch: Stretch, limit: int, randomness: Randomness) -> Stretch:
    """At most `limit` rows of each patient, each set of rows equally likely, so that a patient more or less changes
    no other contribution."""
    counts = stretch.rows_of_patient.astype(np.int64)
    rows = int(counts.sum())
    patient = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    order = np.lexsort((randomness.stream("rows of a patient").permutation(rows), patient))
    place = np.empty(rows, np.int64)
    place[order] = np.arange(rows) - starts[patient]
    keep = place < limit
    renumbered = np.cumsum(keep) - 1

    bitmaps: Bitmaps = {}
    for key, bitmap in stretch.bitmaps.items():
        held = np.frombuffer(bitmap.to_array(), np.uint32)
        if len(left := held[keep[held]]):
            bitmaps[key] = BitMap(renumbered[left].astype(np.uint32))
    left_out = {**stretch.left_out, "rows above the most that a patient may have": int((~keep).sum())}
    return Stretch(np.minimum(stretch.rows_of_patient, limit).astype(np.int32), bitmaps, left_out)
