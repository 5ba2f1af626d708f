"""The attacker of two releases of visits that hold the same person, each anonymized by itself: intersection.

    python tests/attacks/twice.py share/ other/share/ known.csv COLUMN

Knows that the person is in both, and the codes of one visit (`known.csv`: one line a known visit, the person's value
of COLUMN, to judge the outcome, then the codes of that visit, commas between); wants the value of COLUMN, which rides
along in both. In each release the candidates are the records that show most of the visit; their values are what that
release leaves possible. The guess is the value whose shares of the candidates of both have the greatest product; where
both leave just one value, it is *single* (S. R. Ganta, S. P. Kasiviswanathan, A. Smith, *Composition attacks and
auxiliary information in data privacy*, KDD 2008).
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

Codes = frozenset[str]


@dataclass(frozen=True)
class Twice:
    """Of `known` visits that both releases show something of: right guesses (of equally likely values a share each) and
    single values that are right, from the first release alone and from both; `fewest` candidates in either."""

    known: int
    fewest: int
    right_alone: float
    right: float
    single_alone: int
    single: int


class Seen:
    """One release: its records' visits and values."""

    def __init__(self, share: Path, column: str) -> None:
        merged = json.loads((share / "release.json").read_text())["parameters"].get("merge_visits", False)
        self.merged = bool(merged)
        self.value = dict(pl.read_parquet(share / "data" / "records.parquet").select("record", column).rows())
        self.records: dict[Codes, set[int]] = defaultdict(set)
        visits = pl.read_parquet(share / "data" / "visits.parquet").select("record", "codes")
        for record, codes in visits.rows():
            self.records[frozenset(codes)].add(record)
        self.label = {code: label for codes in self.records for label in codes for code in label.split("|")}

    def candidates(self, visit: Codes) -> set[int]:
        """The records that show most of the visit: visits apart show a part of it and nothing else."""
        image = frozenset(self.label[code] for code in visit if code in self.label)
        found: dict[int, set[int]] = defaultdict(set)
        for codes, records in self.records.items():
            shown = codes & image
            if shown and (self.merged or shown == codes):
                found[len(shown)] |= records
        return found[max(found)] if found else set()


def attack(one: Path, two: Path, column: str, known: Iterable[tuple[object, Codes]]) -> Twice:
    """Guess the value of `column` for each (true value, codes of one visit); the truth only judges."""
    seen = [Seen(share, column) for share in (one, two)]
    total = single_alone = single = 0
    right_alone = right = 0.0
    fewest = sys.maxsize
    for truth, visit in known:
        candidates = [release.candidates(visit) for release in seen]
        if not all(candidates):
            continue
        total += 1
        fewest = min(fewest, *map(len, candidates))
        first, second = (
            Counter(release.value[record] for record in records)
            for release, records in zip(seen, candidates, strict=True)
        )
        both = {value: count * second[value] for value, count in first.items() if value in second}
        right_alone += likeliest(first, truth)
        right += likeliest(both, truth)
        single_alone += [*first] == [truth]
        single += [*both] == [truth]
    return Twice(total, fewest if total else 0, right_alone, right, single_alone, single)


def likeliest(weight: Mapping[object, int], truth: object) -> float:
    """The chance that the likeliest value is the true one, ties at random."""
    best = [value for value, each in weight.items() if each == max(weight.values())]
    return (truth in best) / len(best) if best else 0.0


def main() -> None:
    one, two, file, column = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    kind = type(next(iter(Seen(one, column).value.values())))
    lines = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()]
    known = [(kind(value), frozenset(codes)) for value, *codes in lines]
    sys.stdout.write(f"{attack(one, two, column, known)}\n")


if __name__ == "__main__":
    main()
