"""The attacker of a k-anonymous table: knows all quasi-identifiers of a patient, and the algorithm.

    python tests/attacks/k_anonymity.py share/ known.csv

The attacker takes the released rows that are nearest in the quasi-identifiers (ranks of numbers, equality of levels)
and all rows that agree with them: the candidates. Reads `share/` and the background knowledge only.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray


@dataclass(frozen=True)
class Attack:
    """Of `asked` patients: how many have fewer than k candidates, and the fewest that one has."""

    asked: int
    below_k: int
    fewest: int


def attack(share: Path, known: pl.DataFrame) -> Attack:
    """The attack on a release."""
    manifest = json.loads((share / "release.json").read_text(encoding="utf-8"))
    table = pl.read_parquet(share / "data" / "table.parquet")
    return candidates(
        table, known, manifest["parameters"]["quasi_identifiers"], int(manifest["guarantee"]["k"])
    )


def candidates(released: pl.DataFrame, known: pl.DataFrame, names: list[str], k: int) -> Attack:
    """The candidates of each known row among the released ones."""
    classes = released.group_by(names, maintain_order=True).len()
    sizes = classes["len"].to_numpy()[gaps_of(classes, known, names).argmin(axis=1)]
    return Attack(known.height, int((sizes < k).sum()), int(sizes.min()))


def gaps_of(classes: pl.DataFrame, known: pl.DataFrame, names: list[str]) -> NDArray[np.float64]:
    """How far each known row is from each class."""
    gaps = np.zeros((known.height, classes.height))
    for name in names:
        if known[name].dtype.is_numeric():
            ordered = np.sort(known[name].drop_nulls().to_numpy())
            own, theirs = (
                np.searchsorted(ordered, each[name].fill_null(ordered[0]).to_numpy()) / len(ordered)
                for each in (known, classes)
            )
            gaps += np.abs(own[:, None] - theirs[None, :])
        else:
            own_levels, their_levels = (
                each[name].cast(pl.String).fill_null("").to_numpy() for each in (known, classes)
            )
            gaps += own_levels[:, None] != their_levels[None, :]
    return gaps


def guess(share: Path, known: pl.DataFrame, column: str) -> list[tuple[float, float]]:
    """Of each known patient, who belongs to the nearest class: how often its most frequent value of a column is there,
    and how often that value is in the whole table."""
    manifest = json.loads((share / "release.json").read_text(encoding="utf-8"))
    names = manifest["parameters"]["quasi_identifiers"]
    table = pl.read_parquet(share / "data" / "table.parquet")
    classes = table.group_by(names, maintain_order=True).agg(pl.col(column))
    nearest = gaps_of(classes, known, names).argmin(axis=1)
    whole = Counter(table[column].to_list())
    found = []
    for values in classes[column].gather(nearest).to_list():
        value, often = Counter(each for each in values if each is not None).most_common(1)[0]
        found.append((often / len(values), whole[value] / table.height))
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{attack(Path(sys.argv[1]), pl.read_csv(sys.argv[2]))}\n")
