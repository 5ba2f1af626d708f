"""Who of a population holds each released record: a count up to k, by the postings of the record's rarest code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

from leeward.compiled import njit
from leeward.verify.flat import heads_of
from leeward.verify.numbered import Numbered

Longs = NDArray[np.int64]


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
        """The records of a file."""
        lists = table["codes"]
        flat = pc.list_flatten(lists).combine_chunks()
        packed = flat.dictionary_encode() if len(flat) else pa.array([], pa.string()).dictionary_encode()
        codes = [str(code) for code in packed.dictionary.to_pylist()]
        place = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        keys = np.sort(place * max(1, len(codes)) + packed.indices.to_numpy())
        starts = np.flatnonzero(heads_of(keys))
        place, code = np.divmod(keys[starts], max(1, len(codes)))
        return Shown(codes, place, code, np.diff(np.append(starts, len(keys))))

    def taken(self, rows: Longs) -> Shown:
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
    def of(events: Numbered) -> Postings:
        """The postings of a population's events."""
        keys, has = events.mentions
        person, code = np.divmod(keys, events.width)
        shape = (len(events.patients), events.width)
        by_code = csr_array(
            (has, code, np.searchsorted(person, np.arange(shape[0] + 1))), shape=shape
        ).tocsc()
        starts, people = (each.astype(np.int64) for each in (by_code.indptr, by_code.indices))
        return Postings(shape[0], events.codes, starts, people, by_code.data)

    def holders(self, shown: Shown, records: int, enough: int) -> Longs:
        """For each record how many people hold all of it; counted up to `enough`."""
        offsets = np.searchsorted(shown.place, np.arange(records + 1)).astype(np.int64)
        counts: Longs = count_holders(
            offsets, shown.among(self.codes), shown.shows, self.starts, self.people, self.has, self.n, enough
        )
        return counts


@njit
def count_holders(
    offsets: Longs, codes: Longs, shows: Longs, starts: Longs, people: Longs, has: Longs, n: int, enough: int
) -> Longs:
    """People who hold each record: those of its rarest code, looked up among the holders of each other code."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    for record in range(len(offsets) - 1):
        first, last = offsets[record], offsets[record + 1]
        if first == last:
            counts[record] = n
            continue
        rarest, fewest = first, np.int64(-1)
        for i in range(first, last):
            size = starts[codes[i] + 1] - starts[codes[i]] if codes[i] >= 0 else np.int64(0)
            if fewest < 0 or size < fewest:
                rarest, fewest = i, size
        if fewest == 0:
            continue
        for p in range(starts[codes[rarest]], starts[codes[rarest] + 1]):
            if has[p] < shows[rarest]:
                continue
            whole = True
            for i in range(first, last):
                if i == rarest:
                    continue
                low, high = starts[codes[i]], starts[codes[i] + 1]
                at = low + np.searchsorted(people[low:high], people[p])
                if at == high or people[at] != people[p] or has[at] < shows[i]:
                    whole = False
                    break
            if whole:
                counts[record] += 1
                if counts[record] >= enough:
                    break
    return counts
