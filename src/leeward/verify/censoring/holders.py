"""Who holds each released record: of a population, counted up to k by the postings of the record's rarest code; and the
patient whom the custodian names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.compiled import njit
from leeward.verify.checks import Check, Source, of_count, other_payload, payload_of
from leeward.verify.flat import Longs, Mentioned, Numbered, count_keys, distinct, find, offsets_of
from leeward.verify.manifest import Share


@dataclass(frozen=True)
class Shown:
    """The mentions of released records: `place` of the record in the file (ascending), the place of the code among
    `codes`, and how often it is mentioned."""

    codes: list[str]
    place: Longs
    code: Longs
    shows: Longs

    @staticmethod
    def of(table: pa.Table) -> Shown:
        lists = table["codes"]
        flat = pc.list_flatten(lists).combine_chunks()
        packed = flat.dictionary_encode() if len(flat) else pa.array([], pa.string()).dictionary_encode()
        codes = [str(code) for code in packed.dictionary.to_pylist()]
        place = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        keys, shows = count_keys(place * max(1, len(codes)) + packed.indices.to_numpy())
        return Shown(codes, *np.divmod(keys, max(1, len(codes))), shows)

    def select(self, rows: Longs) -> Shown:
        """The mentions of the records at some places, ascending, which are numbered anew."""
        new = np.searchsorted(rows, self.place)
        kept = np.flatnonzero(new < len(rows))
        kept = kept[rows[new[kept]] == self.place[kept]]
        return Shown(self.codes, new[kept], self.code[kept], self.shows[kept])

    def among(self, codes: Sequence[str]) -> Longs:
        """The place of each mention's code among other codes, -1 where they lack it."""
        places = {code: place for place, code in enumerate(codes)}
        return np.array([places.get(code, -1) for code in self.codes], np.int64)[self.code]


@dataclass(frozen=True)
class Postings:
    """Per code the people who hold it, ascending, with their mentions: code c has people[starts[c]:starts[c + 1]]."""

    n: int
    codes: list[str]
    starts: Longs
    people: Longs
    has: Longs

    @staticmethod
    def of(events: Numbered | Mentioned) -> Postings:
        keys, has = events.mentions
        person, code = np.divmod(keys, events.width)
        order = np.argsort(code.astype(np.min_scalar_type(events.width)), kind="stable")  # 16 bits: by radix
        starts = offsets_of(np.bincount(code, minlength=events.width))
        return Postings(len(events.patients), events.codes, starts, person[order], has[order])

    def owners(self, record: Sequence[tuple[str, int]]) -> Longs:
        """The people who hold a whole record, codes with their mentions."""
        found = np.arange(self.n)
        for code, count in record:
            place = self.places.get(code, -1)
            own = slice(self.starts[place], self.starts[place + 1]) if place >= 0 else slice(0)
            found = found[find(self.people[own][self.has[own] >= count], found, -1) >= 0]
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        return {code: place for place, code in enumerate(self.codes)}

    def holders(self, shown: Shown, records: int, enough: int) -> Longs:
        """For each record how many people hold all of it; counted up to `enough`."""
        codes = shown.among(self.codes)
        sizes = np.where(codes >= 0, np.diff(self.starts, append=0)[codes], 0)
        rarest = np.lexsort((sizes, shown.place))
        offsets = np.searchsorted(shown.place, np.arange(records + 1)).astype(np.int64)
        counts: Longs = count_holders(
            offsets, codes[rarest], shown.shows[rarest], self.starts, self.people, self.has, self.n, enough
        )
        return counts


@njit
def count_holders(
    offsets: Longs, codes: Longs, shows: Longs, starts: Longs, people: Longs, has: Longs, n: int, enough: int
) -> Longs:
    """People who hold each record: those of its rarest code, which is its first one (-1: nobody's), looked up among the
    holders of each other code."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    for record in range(len(offsets) - 1):
        first, last = offsets[record], offsets[record + 1]
        if first == last:
            counts[record] = n
        elif codes[first] >= 0:
            for p in range(starts[codes[first]], starts[codes[first] + 1]):
                whole = has[p] >= shows[first]
                for i in range(first + 1, last):
                    low, high = starts[codes[i]], starts[codes[i] + 1]
                    at = low + np.searchsorted(people[low:high], people[p])
                    whole = whole and at < high and people[at] == people[p] and has[at] >= shows[i]
                    if not whole:
                        break
                counts[record] += whole
                if counts[record] >= enough:
                    break
    return counts


def check_owners(share: Share, table: pa.Table, shown: Shown, source: Source) -> list[Check]:
    """Every record is a part of its patient's record, with that patient's payload; none without custody, whose
    `data/records.parquet` names the place of each record's patient among the sample's, ascending."""
    owners = owners_of(share, source)
    if owners is None:
        return []
    whole = owners.height == table.num_rows == owners["record"].n_unique() == owners["patient"].n_unique()
    if not whole or owners["patient"].null_count():
        return [Check("own_patients", False, "custody/data/records.parquet does not name each patient once.")]
    names = payload_of(share.manifest["parameters"])
    released = pl.DataFrame(pl.from_arrow(table.drop(["codes"])))
    place = released.select("record").join(owners, on="record", how="left", maintain_order="left")["place"]
    wrong = set(released["record"].gather(more_than_own(place.fill_null(-1).to_numpy(), shown, source)))
    released = released.join(owners.select("record", "patient"), on="record")
    once = released.height == table.num_rows == released["record"].n_unique()
    if names and source.patients is not None:
        wrong |= set(other_payload(released, source.patients, "patient", names)["record"])
    return [
        of_count(
            "own_patients",
            len(wrong) + (not once),
            "Every record is a part of the record of the patient whom custody names, with that patient's payload.",
            "records hold codes that the patient named in custody does not have, or a different payload.",
        )
    ]


def owners_of(share: Share, source: Source) -> pl.DataFrame | None:
    """`record`, `place`, `patient`: the patient whom custody names for each record, null for none; None without it."""
    file = share.kept("records.parquet")
    if file is None:
        return None
    said = pl.read_parquet(file).select("record", pl.col("place").cast(pl.Int64))
    patients = source.numbered.patients.to_frame("patient").with_row_index("place")
    return said.join(patients.with_columns(pl.col("place").cast(pl.Int64)), on="place", how="left")


def more_than_own(owner: Longs, shown: Shown, source: Source) -> Longs:
    """Places of records with a mention that their patient lacks. `owner`: of the record at each place of the file, the
    place of its patient among the source's, -1 for none."""
    keys, has = source.numbered.mentions
    code = shown.among(source.numbered.codes)
    asked = owner[shown.place] * source.numbered.width + code
    at = np.minimum(np.searchsorted(keys, asked), max(len(keys) - 1, 0))
    held = np.where((code >= 0) & (keys[at] == asked), has[at], 0) if len(keys) else np.zeros(len(asked))
    return distinct(shown.place[shown.shows > held])
