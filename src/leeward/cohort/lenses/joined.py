"""The lens of all patients, from the lenses of their parts: what a cohort on the disk is read into.

A lens holds 4 bytes a code and 8 a patient or visit, some tenth of the events that it is made of. Patients ascend from
part to part, so the arrays of all of them are the parts' arrays one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import polars as pl

from leeward.arrays import offsets_of

Lens = TypeVar("Lens")


def join(parts: Sequence[Lens]) -> Lens:
    """`parts`: lenses (`CodeSets`, `CodeCounts`, `Visits`, `Trajectories`) of consecutive patients."""
    if len(parts) == 1:
        return parts[0]
    codes = sorted(set().union(*(part.codes for part in parts)))  # type: ignore[attr-defined]
    number = {code: place for place, code in enumerate(codes)}
    found: dict[str, Any] = {"codes": tuple(codes)}
    for name in (each.name for each in fields(parts[0])):  # type: ignore[arg-type]  # a dataclass
        arrays = [getattr(part, name) for part in parts]
        if name == "values":
            arrays = [
                np.array([number[code] for code in part.codes], np.int32)[part.values]  # type: ignore[attr-defined]
                for part in parts
            ]
        if name.endswith("offsets"):
            found[name] = offsets_of(np.concatenate([np.diff(each) for each in arrays]))
        elif name == "patients":
            found[name] = pl.concat(arrays, rechunk=True)
        elif name != "codes":
            found[name] = np.concatenate(arrays)
    return type(parts[0])(**found)
