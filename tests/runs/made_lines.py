"""Made-up patients who come again, in batches, and the versions that are released of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import GuaranteeUnreachable

COLUMNS = {"patient": "patient", "code": "code", "visit": "visit"}


def visits(patients: int, batches: int, codes: int, seed: int, again: float = 0.3) -> list[pl.DataFrame]:
    """The rows of each batch: half of the patients come in the first one, the others later; `again` of those who came
    come in each batch after."""
    draw = random.Random(seed)
    rows: list[list[tuple[str, str, int]]] = [[] for _ in range(batches)]
    number = 0
    for patient in range(patients):
        entry = 0 if patient < patients // 2 else draw.randrange(batches)
        for batch in range(entry, batches):
            if batch == entry or draw.random() < again:
                number += 1
                own = {int(codes * draw.random() ** 2) for _ in range(draw.randint(1, 3))}
                rows[batch] += [(f"p{patient:04d}", f"4{code:02d}", number) for code in sorted(own)]
    return [pl.DataFrame(each, schema=["patient", "code", "visit"], orient="row") for each in rows]


def cohort(rows: pl.DataFrame) -> Cohort:
    return lw.read(rows, columns=COLUMNS)


def line(folder: Path, method: Any, batches: Sequence[pl.DataFrame], **options: Any) -> list[Path]:
    """The versions released of some batches; a batch with too few patients comes with the next one."""
    first = cohort(batches[0])
    lw.protect(first, method, folder / "1", seed=1, measures=(), tell=print)
    found, kept = [folder / "1"], pl.DataFrame()
    for number, rows in enumerate(batches[1:], 2):
        kept = pl.concat([kept, rows]) if kept.height else rows
        out = folder / str(number)
        try:
            lw.refresh(found[-1], cohort(kept), out, seed=number, published=first, tell=print, **options)
        except GuaranteeUnreachable:
            continue
        found.append(out)
        kept = pl.DataFrame()
    return found
