"""The budget of indexed data: where it is kept, and how data that were indexed before by this account are recognised,
so that indexing them again gives no second one.

Each index leaves a record in every state folder (`leeward.queries.state`: the account's, and the machine's where there
is one): the data set's id, where its ledger is, and a sketch of its patients: keyed hashes of what each patient's rows
hold, the smallest `SKETCH` of the distinct ones. The same rows have the same id, in whatever order; a patient less, or
a year more, keeps most of the sketch. The key stays in the folder, and without it a hash says nothing about a patient.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.queries.answer.api import login_name
from leeward.queries.answer.plan import LINK
from leeward.queries.index.counts import Index
from leeward.queries.ledger import budgets, families, opening, spending
from leeward.queries.ledger.engines import parse_url, place_of
from leeward.queries.privacy.accounting import to_epsilon
from leeward.queries.state import state_folders, write_whole
from leeward.release.aside import own_file

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


def parent_of(text: str | None) -> str | None:
    """The identity of a parent: of the index in a folder, or as it is written."""
    return Index(text).meta.id if text is not None and Path(text).is_dir() else text


def place_of_budget(
    index: Index, folder: Path, url: str | None, parent: str | None, reason: str | None
) -> str | Path | None:
    """Where the budget of the data is: at `url`, with an earlier index of the same data, or (None) in the folder.
    BadInput for data that share most patients with an earlier data set, unless that is named as parent or a reason is
    given."""
    for known in [] if reason is not None or parent is not None else find_similar(index):
        same, place = known.id == index.meta.id, Path(known.place)
        if same and (url is not None or "://" in known.place):
            continue  # a ledger that many indexes share knows the data itself
        if same and os.access(place / opening.EMBEDDED, os.R_OK | os.W_OK):
            own_file(folder / LINK).write_text(json.dumps({"folder": known.place}) + "\n", encoding="utf-8")
            return place
        what = "hold the same rows as" if same else "share most of their patients with"
        raise BadInput(
            f"these data {what} a data set that was indexed before, in {known.place}, and would get a second budget "
            "for the same patients. Name it with --parent, to spend its budget; or say with --new-budget REASON why "
            "these patients get another one."
        )
    return url


def register(data_set: budgets.DataSet, place: str | Path, folder: Path) -> float:
    """Give a data set its budget, and allot all of it to whoever indexes where nobody has it by default. Returns the
    epsilon left for one more answer: less than the budget where the ledger knew the data."""
    ledger = opening.make_ledger(place, folder)
    try:
        new = budgets.register(ledger, data_set)
        if new and data_set.parent is None and data_set.default_allotment == "none":
            with suppress(BadInput):  # the system does not say who that is
                budgets.allot(ledger, data_set.id, login_name(), data_set.budget.epsilon)
        return to_epsilon(spending.left(ledger, data_set.id, None).anybody)
    finally:
        families.close(ledger)


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


def remember(index: Index, place: str | Path) -> None:
    """Leave a record of an index whose budget is in a folder, or in the database of a URL."""
    kept = place_of(parse_url(place)) if isinstance(place, str) else str(place)
    for folder in state_folders(FOLDER):
        known = Known(index.meta.id, kept, hashes_of(index, _key(folder))[:SKETCH].tolist())
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
