"""What condensation protects and costs: the recipient's models, marginals, conditional privacy, linkage attacks.

Measures: `models` (coefficients before and after, the paper's three metrics, over the repetitions in custody, beside
bootstrap resamples of the original), `marginals`, `correlations`, `survival`, `privacy` (ALGORITHMS §6.6), `linkage`
(nearest released row from one's own group) and `closest` (distance to the closest record).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.table import Column, Floats, Table, encoded
from leeward.engine import beside
from leeward.errors import BadInput
from leeward.methods.condensation.measures import attacks, models
from leeward.methods.condensation.measures.privacy import conditional_privacy
from leeward.release import Release

DEFAULTS: tuple[dict[str, dict[str, Any]], ...] = (
    {"models": {}},
    {"survival": {}},
    {"marginals": {}},
    {"correlations": {}},
    {"privacy": {}},
    {"linkage": {}},
    {"closest": {}},
)
SEED = 20140110
"""Of samples and resamples: the same release gives the same figures."""

CORRELATED = 30
"""Columns (numbers and dummies) of a correlation matrix, at most."""

BLOCK = 1 << 18
"""Rows that are summed at a time."""

PAIRED = 100_000
"""Rows that conditional privacy is estimated from: of a larger table as many groups as have about so many."""

Longs = NDArray[np.int64]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Both:
    """A table before and after.

    table : the original; made : the release, with the original's column types
    source_row, source_group, group : the custody's groups (source rows from 0; group of each released row), or None
    """

    release: Release
    table: Table
    made: pl.DataFrame
    source_row: Longs | None
    source_group: Longs | None
    group: Longs | None
    _dummies: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def columns(self, name: str) -> tuple[Column, Floats, Floats]:
        """A column with its values before and after."""
        column = self.table.column(name)
        return column, self.table.encoded(name), encoded(self.made[name], column, "release")


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a condensed or k-anonymous table.

    Raises
    ------
    BadInput
        An unknown measure or option, or a source that is not the release's.
    """
    both = both_of(release, cohort)
    known: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
        "models": (models.models, ("bootstrap", "most_rows")),
        "survival": (models.survival, ("points",)),
        "marginals": (marginals, ()),
        "correlations": (correlations, ()),
        "privacy": (privacy, ("bins", "permutations")),
        "linkage": (attacks.linkage, ("sample",)),
        "closest": (attacks.closest, ("sample",)),
    }
    asked = {name: options for each in wanted for name, options in each.items()}
    for name, options in asked.items():
        if name not in known:
            raise BadInput(f"`measure`: no measure `{name}` for tables; known: {', '.join(known)}.")
        allowed = known[name][1]
        for key in options:
            if key not in allowed:
                listed = f"; known: {', '.join(allowed)}" if allowed else ""
                raise BadInput(f"`measure.{name}`: no option `{key}`{listed}.")
    with beside() as other:  # the models' fits, half of the work; the rest shares its dummies
        fitted = {
            name: other.submit(models.models, both, **options)
            for name, options in asked.items()
            if name == "models"
        }
        figures = {
            name: known[name][0](both, **options) for name, options in asked.items() if name not in fitted
        }
        figures |= {name: later.result() for name, later in fitted.items()}
    return {name: figures[name] for name in asked if figures[name] is not None}


def both_of(release: Release, cohort: Cohort) -> Both:
    """Bring the release and its source together."""
    table = cohort.table()
    made = release.table("table.parquet").collect()
    if made.columns != table.frame.columns:
        raise BadInput(
            f"{table.name}: its columns are not those of the release; give the source it was made from."
        )
    made = made.with_columns(
        [
            pl.col(name).cast(kind)
            for name, kind in table.frame.schema.items()
            if isinstance(kind, pl.Enum | pl.Categorical)
        ]
    )
    folder = None if release.custody is None else release.custody / "data"
    if folder is None or not (folder / "source_rows.parquet").is_file():
        return Both(release, table, made, None, None, None)
    source = pl.read_parquet(folder / "source_rows.parquet").sort("row")
    released = pl.read_parquet(folder / "released_rows.parquet").sort("record")
    return Both(
        release,
        table,
        made,
        source["row"].to_numpy() - 1,
        source["group"].to_numpy(),
        released["group"].to_numpy(),
    )


def marginals(both: Both) -> dict[str, Any]:
    """Means, medians, sums and standard deviations of numbers, frequencies of levels, missing values."""
    numbers, levels = [], []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        if column.kind in ("levels", "ordered"):
            levels += _frequencies(column, before, after)
        elif not np.isnan(before).all():
            numbers.append({"column": column.name, "before": _moments(before), "after": _moments(after)})
    return {
        "rows": {"before": len(both.table), "after": both.made.height},
        "numbers": numbers,
        "levels": levels,
    }


def _moments(values: Floats) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    if not len(known):
        return {"mean": None, "median": None, "sum": None, "sd": None, "missing": len(values)}
    return {
        "mean": float(known.mean()),
        "median": float(np.median(known)),
        "sum": float(known.sum()),
        "sd": float(known.std()),
        "missing": int(len(values) - len(known)),
    }


def _frequencies(column: Column, before: Floats, after: Floats) -> list[dict[str, Any]]:
    rows = []
    for number, level in enumerate((*column.levels, None)):
        counts = [int((np.isnan(v) if level is None else v == number).sum()) for v in (before, after)]
        if any(counts):
            shown = "(missing)" if level is None else str(level)
            rows.append({"column": column.name, "level": shown, "before": counts[0], "after": counts[1]})
    return rows


def correlations(both: Both) -> dict[str, Any]:
    """Pearson correlations of numbers and dummies before and after (the first level of each column left out)."""
    names, before, after, first = dummies(both)
    shown = [place for place in range(len(names)) if not first[place]][:CORRELATED]
    names = [names[place] for place in shown]
    matrices = [_correlation(each, shown) for each in (before, after)]
    gap = np.abs(matrices[0] - matrices[1])[np.triu_indices(len(names), 1)]
    return {
        "columns": names,
        "before": np.round(matrices[0], 4).tolist(),
        "after": np.round(matrices[1], 4).tolist(),
        "mean_difference": float(gap.mean()) if len(gap) else 0.0,
        "largest_difference": float(gap.max()) if len(gap) else 0.0,
    }


def _correlation(values: Singles, columns: list[int]) -> Floats:
    """Of some columns; sums run over blocks of rows, so that a large table is not copied."""
    blocks = range(0, len(values), BLOCK)
    mean = sum(values[start : start + BLOCK, columns].sum(axis=0, dtype=np.float64) for start in blocks)
    mean /= len(values)
    products = np.zeros((len(columns), len(columns)))
    for start in blocks:
        moved = values[start : start + BLOCK, columns] - mean
        products += moved.T @ moved
    spread = np.sqrt(np.diagonal(products))
    found: Floats = products / np.outer(*(2 * [np.where(spread > 0, spread, 1.0)]))
    return found


def dummies(both: Both) -> tuple[list[str], Singles, Singles, list[bool]]:
    """Numbers and dummies of both tables in the original's standard deviations, missing values at its mean.

    Names, two float32[rows, columns], and which columns are the first level of theirs (computed once).
    """
    if "all" not in both._dummies:
        both._dummies["all"] = _dummies(both)
    found: tuple[list[str], Singles, Singles, list[bool]] = both._dummies["all"]
    return found


def _dummies(both: Both) -> tuple[list[str], Singles, Singles, list[bool]]:
    columns = [each for each in both.table.columns if each.missing < len(both.table)]
    names = [
        name
        for each in columns
        for name in (
            [f"{each.name}={level}" for level in each.levels] if each.is_categorical else [each.name]
        )
    ]
    first = [
        each.is_categorical and place == 0 and len(each.levels) > 1
        for each in columns
        for place in range(len(each.levels) if each.is_categorical else 1)
    ]
    sides = tuple(np.empty((rows, len(names)), np.float32) for rows in (len(both.table), both.made.height))
    place = 0
    for each in columns:  # a column at a time: large tables do not stand in memory twice
        column, *values = both.columns(each.name)
        for number in range(len(column.levels)) if column.is_categorical else (None,):
            before, after = values if number is None else [(v == number).astype(float) for v in values]
            sides[0][:, place], sides[1][:, place] = _scaled(before, after)
            place += 1
    return names, sides[0], sides[1], first


def _scaled(before: Floats, after: Floats) -> tuple[Singles, Singles]:
    """Both in standard deviations of `before`, missing values at its mean, in single precision."""
    middle, spread = float(np.nanmean(before)), float(np.nanstd(before))
    scale = spread if spread > 0 else 1.0
    one, two = (
        np.nan_to_num((each - middle) / scale, nan=0.0).astype(np.float32) for each in (before, after)
    )
    return one, two


def privacy(both: Both, bins: int = 20, permutations: int = 20) -> dict[str, Any] | None:
    """Π(original | released) of each column: rows paired inside their groups by random permutations, averaged.

    A number has `bins` equal bins over the original's range (their width is stated); levels give 1 … number of levels.
    """
    if bins < 2 or permutations < 1:
        raise BadInput("`measure.privacy`: `bins` must be at least 2 and `permutations` at least 1.")
    if both.group is None or both.source_row is None or both.source_group is None:
        return None
    random = np.random.Generator(np.random.Philox(SEED))
    chosen = _some_groups(both.group, random)
    source = np.flatnonzero(chosen[both.source_group])
    source = source[np.argsort(both.source_group[source], kind="stable")]
    order = both.source_row[source]
    made = np.flatnonzero(chosen[both.group])
    # Groups are whole numbers: adding a number below 1 shuffles inside them.
    pairings = [made[np.argsort(both.group[made] + random.random(len(made)))] for _ in range(permutations)]
    rows = []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        before = before[order]
        known = ~np.isnan(before)
        if not known.any():
            continue
        found = []
        width = None
        for pairing in pairings:
            a, b = before, after[pairing]
            both_known = known & ~np.isnan(b)
            value, width = conditional_privacy(
                a[both_known], b[both_known], bins=None if column.kind in ("levels", "ordered") else bins
            )
            found.append(value)
        rows.append({"column": column.name, "privacy": float(np.mean(found)), "bin_width": width})
    return {
        "bins": bins,
        "permutations": permutations,
        "pairing": "within groups, at random",
        "rows": len(made),
        "columns": rows,
    }


def _some_groups(group: Longs, random: np.random.Generator) -> NDArray[np.bool_]:
    """Groups with about `PAIRED` rows between them, at random; all of a smaller table."""
    sizes = np.bincount(group)
    chosen = np.zeros(len(sizes), bool)
    if len(group) <= PAIRED:
        chosen[:] = True
    else:
        chosen[random.choice(len(sizes), max(1, len(sizes) * PAIRED // len(group)), replace=False)] = True
    return chosen
