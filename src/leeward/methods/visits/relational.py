"""The steps that count, join and filter, as Narwhals expressions: the same on Polars and on Spark.

They work on the lens's numbers (`patient`, `visit`, `code`), not on identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.engine import Engine, Frame


def code_frequencies(engine: Engine, entries: Frame, codes: int) -> NDArray[np.int64]:
    """Patients with each code in at least one visit, int64[codes]."""
    held = entries.select("patient", "code").unique(["patient", "code"], keep="any")
    counted = engine.collect(held.group_by("code").agg(patients=nw.len()))
    found = np.zeros(codes, np.int64)
    found[counted["code"].to_numpy()] = counted["patients"].to_numpy()
    return found


def holders_of(engine: Engine, entries: Frame, codes: Sequence[int]) -> dict[int, set[int]]:
    """The patients of each of some (rare) codes."""
    wanted = engine.frame(pl.DataFrame({"code": pl.Series(codes, dtype=pl.Int32)}))
    found = engine.collect(entries.join(wanted, on="code", how="inner").select("patient", "code"))
    holders: dict[int, set[int]] = {code: set() for code in codes}
    for patient, code in found.select("patient", "code").iter_rows():
        holders[code].add(patient)
    return holders


def relabel(engine: Engine, entries: Frame, label_of: NDArray[np.int32]) -> pl.DataFrame:
    """`visit`, `label` of every entry whose code has a label (not -1), each pair once."""
    kept = np.flatnonzero(label_of >= 0).astype(np.int32)
    mapping = engine.frame(pl.DataFrame({"code": kept, "label": label_of[kept]}))
    mapped = entries.join(mapping, on="code", how="inner").select("visit", "label")
    if len(np.unique(label_of[kept])) < len(kept):  # two codes of a visit may have become one
        mapped = mapped.unique(["visit", "label"], keep="any")
    return engine.collect(mapped)


def visit_arrays(
    mapped: pl.DataFrame, visits: int, labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(offsets, values) of every visit, labels ascending, from (visit, label) pairs in any order."""
    keys = mapped["visit"].cast(pl.Int64).to_numpy() * np.int64(labels) + mapped["label"].to_numpy()
    keys.sort()
    offsets = np.zeros(visits + 1, np.int64)
    np.cumsum(np.bincount(keys // labels, minlength=visits), out=offsets[1:])
    return offsets, (keys % labels).astype(np.int32)
