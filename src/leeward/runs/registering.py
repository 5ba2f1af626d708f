"""The budget of indexed data: where it is kept, who may spend it, and how the same data are recognised again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.queries.index.build import Built
    from leeward.queries.privacy.accounting import Budget


def parent_of(text: str | None) -> str | None:
    """The identity of a parent: of the index in a folder, or as it is written."""
    from leeward.queries.index.counts import Index

    return Index.open(text).meta.id if text is not None and Path(text).is_dir() else text


def place_of_budget(
    built: Built, folder: Path, url: str | None, parent: str | None, reason: str | None
) -> str | Path | None:
    """Where the budget of the data is: at `url`, with an index of the same data that was made before, or (None) in the
    folder.

    BadInput for data that share most of their patients with a data set indexed before, unless that is named as their
    parent or a reason is given.
    """
    from leeward.queries.answer.plan import LINK
    from leeward.queries.ledger.opening import EMBEDDED
    from leeward.runs.data_sets import find_similar

    for known in [] if reason is not None or parent is not None else find_similar(built.index):
        same, place = known.id == built.index.meta.id, Path(known.place)
        if same and (url is not None or "://" in known.place):
            continue  # a ledger that many indexes share knows the data itself
        if same and os.access(place / EMBEDDED, os.R_OK | os.W_OK):
            link = folder / LINK
            link.touch(mode=0o600)
            link.write_text(json.dumps({"folder": known.place}) + "\n", encoding="utf-8")
            return place
        what = "hold the same rows as" if same else "share most of their patients with"
        raise BadInput(
            f"these data {what} a data set that was indexed before, in {known.place}, and would get a second budget "
            "for the same patients. Name it with --parent, to spend its budget; or say with --new-budget REASON why "
            "these patients get another one."
        )
    return url


def register(
    built: Built,
    folder: Path,
    budget: Budget,
    place: str | Path | None,
    *,
    unit: str,
    threshold: int | None,
    default: str,
    separately: bool,
    reason: str | None,
) -> float:
    """Give the data set its budget in the ledger, and whoever indexes all of it where nobody has it by default.

    Returns the epsilon that is left for one more answer: less than the budget where the ledger knew the data.
    """
    from leeward.queries.answer.api import login_name
    from leeward.queries.ledger import budgets, families, opening, spending
    from leeward.queries.privacy.accounting import to_epsilon

    ledger = opening.make_ledger(place or folder, folder)
    meta = built.index.meta
    data_set = budgets.DataSet(
        reason=reason,
        id=meta.id,
        budget=budget,
        parent=meta.parent,
        unit=unit,
        threshold=threshold,
        default_allotment=default,
        charge_projects_separately=separately,
    )
    try:
        if budgets.register(ledger, data_set) and meta.parent is None and default == "none":
            with suppress(BadInput):  # the system does not say who that is
                budgets.allot(ledger, meta.id, login_name(), budget.epsilon)
        return to_epsilon(spending.left(ledger, meta.id, None).anybody)
    finally:
        families.close(ledger)


def remember_data_set(built: Built, out: Path, place: str | Path | None) -> None:
    """Leave a record of the data set, so that indexing it again is recognised."""
    from leeward.queries.ledger.engines import parse_url, place_of
    from leeward.runs.data_sets import remember

    if place is None:
        remember(built.index, str(out))
    else:
        remember(built.index, place_of(parse_url(place)) if isinstance(place, str) else str(place))
