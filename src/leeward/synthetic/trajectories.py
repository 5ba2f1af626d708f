"""Synthetic (code, age) trajectories shaped like Table 3 of Tamersoy (2011), with the correlation of real records.

Every patient has one or two latent conditions. A condition brings codes that come together, and an age. Chronic codes
recur from year to year, acute ones seldom do; patients with many codes are seen in more years. The mean numbers of
pairs, codes and ages per patient are those of the shape; they are calibrated on a small sample of patients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from leeward.arrays import Float64s, Int64s
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.synthetic.codes import file_aside

CHUNK_PATIENTS = 50_000
PILOT_PATIENTS = 20_000

YOUNGEST, OLDEST = 1, 102
MOST_AGES = 24
FRAILTY_SHAPE = 2.0
"""Parameter of the gamma factor that gives some patients many codes in many years."""

OWN_SHARE, BACKGROUND = 1_000.0, 0.03
"""Weight of a code of a patient's own condition, and of any other."""

DECAY = 0.4
"""Decrease of the weight from one of a condition's codes to the next: the first ones nearly always occur."""

MAIN_YEAR = 0.9
"""Share of codes that first occur in the patient's main year."""

SECOND = 0.08
"""Share of patients whose second condition is drawn anew."""

ACUTE = 0.15
"""Recurrence of an acute code, relative to a chronic one's 1."""

# Conditions: (share of patients, mean age, spread, codes); codes ending in ! are chronic.
CONDITIONS: tuple[tuple[float, float, float, str], ...] = (
    (0.24, 61, 12, "401.9! 272.4! 250.00! 401.1! 278.00! 585.9! 414.01! V58.69"),
    (0.13, 68, 11, "428.0! 427.31! 414.01! 786.50 786.05 285.9 782.3 276.8 584.9"),
    (0.13, 55, 14, "724.2! 724.5! 719.46 715.90! 729.5 733.00! 305.1!"),
    (0.12, 38, 22, "493.90! 477.9! 466.0 465.9 473.9 486 496!"),
    (0.12, 9, 7, "382.9 462 465.9 372.30 493.90! 787.91 V70.0 V72.31"),
    (0.10, 42, 14, "311! 300.00! 784.0 780.79 305.1! 780.2"),
    (0.09, 45, 17, "530.81! 789.00 787.01 787.91 599.0 276.1 285.9"),
    (0.07, 72, 9, "366.16! 365.9! 244.9! 733.00! 401.9! V76.12"),
)


@dataclass(frozen=True)
class Shape:
    """Shape of a set: patients in the thesis, and mean pairs, distinct codes and distinct ages per patient."""

    patients: int
    pairs: float
    codes: float
    ages: float
    conditions: tuple[tuple[float, float, float, str], ...]


D4_CONDITIONS = (
    (0.38, 60, 13, "401! 272! 250!"),
    (0.30, 66, 12, "401! 272!"),
    (0.20, 50, 15, "724!"),
    (0.12, 57, 13, "250! 401!"),
)

SETS: dict[str, Shape] = {
    "d50-pop": Shape(27_639, 9.32, 5.88, 3.10, CONDITIONS),
    "d4-pop": Shape(16_052, 4.05, 1.65, 2.78, D4_CONDITIONS),
    "d4-smp": Shape(1_896, 6.39, 1.96, 4.04, D4_CONDITIONS),
}
"""The sets of Table 3."""


@dataclass(frozen=True)
class _Model:
    """Parameters solved for a shape: `weights[conditions, codes]` are log weights, `chronic` is how readily each code
    recurs."""

    shape: Shape
    codes: tuple[str, ...]
    weights: Float64s
    chronic: Float64s
    more_codes: float = 1.0
    more_ages: float = 1.0
    recurrence: float = 0.3


def write_trajectories(
    path: str | Path,
    patients: int | None = None,
    shape: str = "d50-pop",
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write `patient, code, age` rows and return their number.

    The file is `.parquet` or `.csv`, written aside, then renamed; `shape` is one of SETS, whose number of patients is
    the default. The same seed gives the same rows; None draws anew.
    Raises BadInput for another shape, no patient, or a file of another kind.
    """
    target = Path(path)
    if shape not in SETS:
        raise BadInput(f"`shape` must be one of {', '.join(SETS)}; got {shape}.")
    n = SETS[shape].patients if patients is None else patients
    if n < 1:
        raise BadInput(f"`patients` must be at least 1; got {n}.")
    if target.suffix not in (".parquet", ".csv"):
        raise BadInput(f"{target.name}: trajectories are written as .parquet or .csv.")
    randomness = Randomness.of(seed)
    model = _solve(_model_of(SETS[shape]), randomness.stream("trajectories", "pilot"))
    schema = pa.schema([("patient", pa.int64()), ("code", pa.string()), ("age", pa.int32())])
    rows = 0
    writer_of = pq.ParquetWriter if target.suffix == ".parquet" else pcsv.CSVWriter
    with file_aside(target) as aside, writer_of(aside, schema) as writer:
        for first in range(0, n, CHUNK_PATIENTS):
            many = min(CHUNK_PATIENTS, n - first)
            made = _draw(model, randomness.stream("trajectories", first), many)
            rows += made.height
            writer.write_table(made.with_columns(pl.col("patient") + first + 1).to_arrow().cast(schema))
            if progress is not None:
                progress(first + many)
    return rows


def _model_of(shape: Shape) -> _Model:
    listed = [text.split() for *_, text in shape.conditions]
    codes = tuple(sorted({code.rstrip("!") for each in listed for code in each}))
    place = {code: number for number, code in enumerate(codes)}
    chronic = np.full(len(codes), ACUTE)
    weights = np.full((len(listed), len(codes)), BACKGROUND)
    for condition, each in enumerate(listed):
        for rank, code in enumerate(each):
            weights[condition, place[code.rstrip("!")]] += OWN_SHARE * DECAY**rank
            if code.endswith("!"):
                chronic[place[code.rstrip("!")]] = 1.0
    return _Model(shape, codes, np.log(weights), chronic)


def _solve(model: _Model, random: np.random.Generator) -> _Model:
    """Solve for the parameters that give the shape's means, on a pilot redrawn from the same random numbers."""
    seed = int(random.integers(0, 2**62))

    def means(trial: _Model) -> tuple[float, float, float]:
        drawn = _draw(trial, np.random.Generator(np.random.Philox(seed)), PILOT_PATIENTS)
        codes = drawn.select("patient", "code").n_unique() / PILOT_PATIENTS
        ages = drawn.select("patient", "age").n_unique() / PILOT_PATIENTS
        return drawn.height / PILOT_PATIENTS, codes, ages

    shape = model.shape
    for _ in range(12):  # each mean depends on its own parameter, and hardly on the others
        pairs, codes, ages = means(model)
        model = replace(
            model,
            more_codes=model.more_codes * (shape.codes - 1) / max(codes - 1, 0.01),
            more_ages=model.more_ages * (shape.ages - 1) / max(ages - 1, 0.01),
            recurrence=min(1.0, model.recurrence * ((shape.pairs - codes) / max(pairs - codes, 0.01)) ** 0.8),
        )
    return model


def _draw(model: _Model, random: np.random.Generator, n: int) -> pl.DataFrame:
    """Draw distinct sorted rows: `patient` (0 … n − 1), `code`, `age`."""
    shares = np.array([share for share, *_ in model.shape.conditions])
    condition = random.choice(len(shares), n, p=shares / shares.sum())
    second = random.choice(len(shares), n, p=shares / shares.sum())
    second = np.where(random.random(n) < SECOND, second, condition)
    frailty = random.gamma(FRAILTY_SHAPE, 1 / FRAILTY_SHAPE, n)
    n_codes = 1 + np.minimum(random.poisson(model.more_codes * frailty), len(model.codes) - 1)
    n_ages = 1 + np.minimum(random.poisson(model.more_ages * (0.3 + 0.7 * frailty)), MOST_AGES - 1)
    years = _years(model, random, condition, n_ages)
    owner, code = _codes(model, random, condition, second, n_codes)
    main = (random.random(n) * n_ages).astype(np.int64)
    first = (random.random(len(code)) * n_ages[owner]).astype(np.int64)
    first = np.where(random.random(len(code)) < MAIN_YEAR, main[owner], first)
    again = random.random((len(code), MOST_AGES)) < (model.recurrence * model.chronic[code])[:, None]
    again &= np.arange(MOST_AGES) < n_ages[owner][:, None]
    again[np.arange(len(code)), first] = True
    # A year in which nothing was recorded is no year of the trajectory: the patient's first code fills it.
    covered = np.zeros((n, MOST_AGES), np.bool_)
    np.logical_or.at(covered, owner, again)
    leading = np.concatenate([[0], np.cumsum(n_codes)[:-1]])
    again[leading] |= ~covered & (np.arange(MOST_AGES) < n_ages[:, None])
    row, year = np.nonzero(again)
    names = pl.Series(model.codes, dtype=pl.String)
    return pl.DataFrame(
        {
            "patient": owner[row],
            "code": names.gather(code[row]),
            "age": years[owner[row], year].astype(np.int32),
        }
    ).sort("patient", "age", "code")


def _years(model: _Model, random: np.random.Generator, condition: Int64s, n_ages: Int64s) -> Int64s:
    """Draw distinct ascending ages, int64[n, MOST_AGES]; only the first n_ages of a row are used."""
    middle = np.array([age for _, age, *_ in model.shape.conditions])
    spread = np.array([s for *_, s, _ in model.shape.conditions])
    start = np.rint(random.normal(middle[condition], spread[condition])).astype(np.int64)
    gaps = random.geometric(0.75, (len(condition), MOST_AGES))
    gaps[:, 0] = 0
    years = np.cumsum(gaps, axis=1)
    last = years[np.arange(len(condition)), n_ages - 1]
    start = np.clip(start - last // 2, YOUNGEST, np.maximum(OLDEST - last, YOUNGEST))
    return np.minimum(start[:, None] + years, OLDEST)


def _codes(
    model: _Model,
    random: np.random.Generator,
    condition: Int64s,
    second: Int64s,
    n_codes: Int64s,
) -> tuple[Int64s, Int64s]:
    """Draw (patient, code) of each patient's distinct codes, weighted without replacement (Gumbel top-k)."""
    keys = np.logaddexp(model.weights[condition], model.weights[second])
    keys += random.gumbel(size=keys.shape)
    ranked = np.argsort(-keys, axis=1)
    chosen = np.arange(keys.shape[1]) < n_codes[:, None]
    owner = np.nonzero(chosen)[0]
    return owner, ranked[chosen]
