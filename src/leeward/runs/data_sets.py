"""Data sets that were indexed before by this account, so that indexing again gives no second budget.

Each index leaves a record in every state folder (`leeward.queries.state`: the account's, and the machine's where there
is one): the data set's id, where its ledger is, and a sketch of its patients: keyed hashes of what each patient's rows
hold, the smallest `SKETCH` of the distinct ones. The same rows have the same id, in whatever order; a patient less, or
a year more, keeps most of the sketch. The key stays in the folder, and without it a hash says nothing about a patient.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from leeward.queries.index.counts import Index
from leeward.queries.state import state_folders, write_whole

FOLDER: Final = "data sets"
SKETCH: Final = 512
SHARED: Final = 0.5
"""Above this share of the smaller one two data sets are taken to hold the same patients."""


@dataclass(frozen=True)
class Known:
    """A data set that was indexed: `place` is the index's folder with the ledger, or the database's address."""

    id: str
    place: str
    sketch: list[int]


def find_similar(index: Index) -> list[Known]:
    """The records that share most of the patients of an index, the same data first."""
    found: dict[str, Known] = {}
    for folder in state_folders(FOLDER):
        mine = hashes_of(index, _key(folder))
        for path in sorted(folder.glob("*.json")):
            try:
                known = Known(**json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError, OSError):
                continue
            if known.id == index.meta.id or overlap(mine, known.sketch) > SHARED:
                found[known.id] = known
    return sorted(found.values(), key=lambda known: known.id != index.meta.id)


def remember(index: Index, place: str) -> None:
    """Leave a record of an index whose budget is at `place`."""
    for folder in state_folders(FOLDER):
        known = Known(index.meta.id, place, hashes_of(index, _key(folder))[:SKETCH].tolist())
        write_whole(folder / f"{index.meta.id}.json", json.dumps(asdict(known)).encode())


def overlap(mine: NDArray[np.uint64], sketch: list[int]) -> float:
    """The share of patients that a data set, by all of its hashes, has in common with one that a sketch was made of, as
    a part of the smaller one: by the hashes up to where the sketch ends."""
    end = sketch[-1] if len(sketch) == SKETCH else 2**63
    covered = mine[: np.searchsorted(mine, np.uint64(end), side="right")]
    common = np.intersect1d(covered, np.array(sketch, np.uint64))
    return len(common) / max(1, min(len(covered), len(sketch)))


def hashes_of(index: Index, key: bytes) -> NDArray[np.uint64]:
    """The distinct keyed hashes of patients' rows, below 2^63, ascending."""
    rows = np.zeros(index.rows, np.uint64)
    for name in index.held(""):
        digest = hashlib.blake2b(name.encode(), key=key, digest_size=8).digest()
        held = np.frombuffer(index.bitmap("", name).to_array(), np.uint32)
        rows[held] += np.frombuffer(digest, np.uint64)[0]
    rows = _mix(rows)
    patients = np.zeros(index.patients, np.uint64)
    numbers = np.concatenate([index.patients_of_rows(low, high) for low, high in index.stretches(500_000)])
    np.add.at(patients, numbers, rows)
    found: NDArray[np.uint64] = np.unique(_mix(patients) >> np.uint64(1))
    return found


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each value's bits mixed (the finalizer of SplitMix64), so that sums of them are no sums of terms."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed


def _key(folder: Path) -> bytes:
    """The key of a state folder, made where it is not there."""
    path = folder / "key"
    if not path.is_file():
        write_whole(path, secrets.token_bytes(32))
    return path.read_bytes()
