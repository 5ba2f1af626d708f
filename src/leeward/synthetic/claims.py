"""Synthetic inpatient claims: ordered diagnoses, recurring chronic codes, a long tail of rare codes.

The shape is that of public inpatient claim files: 1.8 claims per patient, up to ten ordered diagnoses per claim (most
claims fill eight or more), about 14 distinct codes per patient, thousands of distinct codes of which most are rare. A
patient has one to four syndromes; a syndrome prefers the codes of two chapters of ICD-9-CM, so that comorbidity
follows chapters. Chronic codes of a patient's claim tend to come back in the later ones; the first diagnosis of a
claim is always a new draw. Parameters come from published counts of such files and were not fitted to any release.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.arrays import Int64s
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.synthetic.codes import MAX_CODES, check_target, code_catalogue, code_weights, write_table
from leeward.vocabulary.icd import ICD9CM

CODES = 6_700
"""Codes of the catalogue; about 5,800 of them occur in 58,000 patients."""
DIAGNOSES = 10
"""Diagnosis columns of a claim."""

CLAIMS = (0.62, 0.19, 0.09, 0.045, 0.025, 0.015, 0.01, 0.005)
"""Share of patients with 1, 2, … claims; mean 1.83."""

FILLED = (0.0, 0.01, 0.02, 0.03, 0.045, 0.06, 0.075, 0.09, 0.27, 0.40)
"""Share of claims with 1, 2, … ten diagnoses; mean 8.5."""

SYNDROMES = 60
SYNDROMES_HELD = (0.3, 0.4, 0.2, 0.1)
"""Share of patients with one, two, three and four syndromes."""

PREFERENCE = 6.0
"""Factor by which a syndrome prefers codes of its own chapters, relative to their frequency."""

SYNDROME_SHARE = 0.75
"""Share of a claim's codes that come from the patient's syndromes; the others come from all codes."""

CHRONIC_SHARE, RECURS = 0.35, 0.12
"""Share of chronic codes, and the chance that one of an earlier claim recurs in a later one."""

BLOCK_PATIENTS = 10_000
"""Patients per random stream; part of the format, since the same seed gives the same file."""

TRIED = 3
"""Codes drawn per wanted diagnosis; duplicates within the claim are skipped."""

FIRST_DAY, DAYS = date(2008, 1, 1), 1_096
YOUNGEST, OLDEST = 25, 99


def write_claims(
    path: str | Path,
    patients: int,
    codes: int = CODES,
    seed: int | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write claims of made-up patients in wide form.

    The columns are `patient`, `claim` (1, 2, … for each patient), `date`, `age` (completed years), `sex` (`F`, `M`)
    and `diag_1` to `diag_10`, empty after the last diagnosis of the claim.

    Parameters
    ----------
    path : str or Path
        `.parquet`, `.csv` or `.csv.gz` file to write.
    patients : int
        Number of patients.
    codes : int, optional
        Number of codes to draw from, 100 to 12,000; rare ones may not occur in small files.
    seed : int, optional
        The same seed gives the same file; without one, files differ each time.
    progress : callable, optional
        Called with the number of patients drawn so far.

    Returns
    -------
    int
        Number of claims.

    Raises
    ------
    BadInput
        A number is out of range, the ending is another one, or the folder does not exist.

    Examples
    --------
    >>> import leeward as lw
    >>> lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    552
    """
    target = Path(path)
    _check(target, patients, codes)
    randomness = Randomness.of(seed)
    model = _model(codes)
    frames = []
    for first in range(0, patients, BLOCK_PATIENTS):
        n = min(BLOCK_PATIENTS, patients - first)
        frames.append(_block(first, n, model, randomness.stream("synthetic claims", first)))
        if progress:
            progress(first + n)
    frame = pl.concat(frames).with_columns(claim=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))
    frame = frame.select(
        "patient", "claim", "date", "age", "sex", *(f"diag_{i + 1}" for i in range(DIAGNOSES))
    )
    write_table(frame, target)
    return frame.height


def _check(target: Path, patients: int, codes: int) -> None:
    if patients < 1:
        raise BadInput(f"`patients` must be at least 1; got {patients}.")
    if not 100 <= codes <= MAX_CODES:
        raise BadInput(f"`codes` must be between 100 and {MAX_CODES}; got {codes}.")
    check_target(target)


def _model(codes: int) -> dict[str, Any]:
    """Build the distribution of patients, the same for every seed.

    catalogue : the codes; upto : float64[syndromes + 1, codes], cumulative shares, the last row without a syndrome;
    prevalence : float64[syndromes]; chronic : bool[codes].
    """
    draws = Randomness.of(0).stream("synthetic claims", "model", codes)
    catalogue = code_catalogue(codes)
    weight = code_weights(codes)
    chapters = np.unique([str(ICD9CM.level(code, 3)) for code in catalogue], return_inverse=True)[1]
    number = int(chapters.max()) + 1
    common = np.bincount(chapters, weights=weight, minlength=number)
    rows = []
    for _ in range(SYNDROMES):
        own = draws.choice(number, size=2, replace=False, p=common / common.sum())
        taste = np.exp(0.9 * draws.normal(size=codes))
        row = weight * taste * np.where(np.isin(chapters, own), PREFERENCE, 1.0)
        rows.append(row / row.sum())
    upto = np.cumsum(np.vstack([*rows, weight]), axis=1)
    prevalence = 1.0 / np.arange(1, SYNDROMES + 1) ** 0.7
    return {
        "catalogue": pl.Series(catalogue),
        "upto": upto / upto[:, -1:],
        "prevalence": np.cumsum(prevalence / prevalence.sum()),
        "chronic": draws.random(codes) < CHRONIC_SHARE,
    }


def _block(first: int, n: int, model: dict[str, Any], draws: np.random.Generator) -> pl.DataFrame:
    claims_of = 1 + np.searchsorted(np.cumsum(CLAIMS) / sum(CLAIMS), draws.random(n), side="right")
    held = 1 + np.searchsorted(np.cumsum(SYNDROMES_HELD), draws.random(n), side="right")
    own = np.searchsorted(model["prevalence"], draws.random((n, len(SYNDROMES_HELD))), side="right")
    age = np.clip(np.round(72 + 13 * draws.normal(size=n)), YOUNGEST, OLDEST).astype(np.int64)
    sex = np.where(draws.random(n) < 0.55, "F", "M")
    patient = np.repeat(np.arange(n), claims_of)
    start = np.cumsum(claims_of) - claims_of
    filled = 1 + np.searchsorted(np.cumsum(FILLED) / sum(FILLED), draws.random(len(patient)), side="right")
    day = np.sort(draws.integers(0, DAYS, len(patient)) + patient * DAYS) - patient * DAYS
    drawn = _codes(draws, model, patient, own, held)
    carried = draws.random((len(patient), DIAGNOSES))
    diagnoses = np.full((len(patient), DIAGNOSES), -1, np.int64)
    for p in range(n):
        lasting: list[int] = []
        for c in range(start[p], start[p] + claims_of[p]):
            back = [code for code, u in zip(lasting, carried[c], strict=False) if u < RECURS]
            new = dict.fromkeys(drawn[c].tolist())
            line = list(dict.fromkeys([*list(new)[:1], *back, *new]))[: filled[c]]
            diagnoses[c, : len(line)] = line
            fresh = [code for code in line if model["chronic"][code] and code not in lasting]
            lasting = [*lasting, *fresh][:DIAGNOSES]
    names = model["catalogue"]
    columns = {
        f"diag_{i + 1}": names.gather(pl.Series(np.maximum(diagnoses[:, i], 0))).set(
            pl.Series(diagnoses[:, i] < 0), None
        )
        for i in range(DIAGNOSES)
    }
    dates = pl.Series([FIRST_DAY + timedelta(days=int(d)) for d in range(DAYS)]).gather(pl.Series(day))
    return pl.DataFrame(
        {
            "patient": patient + first + 1,
            "date": dates,
            "age": np.minimum(age[patient] + day // 366, OLDEST),
            "sex": sex[patient],
            **columns,
        }
    )


def _codes(
    draws: np.random.Generator,
    model: dict[str, Any],
    patient: Int64s,
    own: Int64s,
    held: Int64s,
) -> Int64s:
    """Draw candidate codes of each claim, in order of preference: int64[claims, TRIED · DIAGNOSES]."""
    shape = (len(patient), TRIED * DIAGNOSES)
    which = (draws.random(shape) * held[patient][:, None]).astype(np.int64)
    syndrome = np.take_along_axis(own[patient], which, axis=1)
    syndrome[draws.random(shape) >= SYNDROME_SHARE] = SYNDROMES
    u = draws.random(shape)
    found = np.empty(shape, np.int64)
    for s in range(SYNDROMES + 1):
        here = syndrome == s
        found[here] = np.searchsorted(model["upto"][s], u[here], side="right")
    return np.minimum(found, len(model["catalogue"]) - 1)
