"""An index that is open for questions, with the ledger that pays for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leeward.errors import BadInput
from leeward.queries import ledger as books
from leeward.queries.index.counts import Index
from leeward.queries.ledger import Ledger, Terms

LINK: Final = "ledger.json"
"""In an index's folder: where the ledger of its data set is, if it is another index's."""


@dataclass(frozen=True)
class IndexSession:
    """An index with the ledger that pays for its answers, and the terms on which it answers. Threads may share it."""

    index: Index
    ledger: Ledger
    terms: Terms


def open_session(path: str | Path, ledger_url: str | None = None, *, checked: bool = True) -> IndexSession:
    """Open an index and the ledger that pays for it: the one in its folder, or the one at a URL.

    BadInput for what is no index or of another version; LedgerUnreachable without a ledger that knows its data set, or
    (`checked`) where the ledger disagrees with its log or with a head that was remembered.
    """
    index = Index.open(path)
    ledger = books.open_ledger(ledger_of(index.path) if ledger_url is None else ledger_url, index.path)
    terms = books.terms_of(ledger, index.meta.id)
    if checked:
        books.check_opening(ledger, index.meta.id)
    return IndexSession(index, ledger, terms)


def ledger_of(folder: Path) -> str | Path:
    """Where the budget of the index in `folder` is kept: in the folder, or where its `ledger.json` says, for data that
    were indexed before."""
    link = folder / LINK
    if not link.is_file() or (folder / books.EMBEDDED).is_file():
        return folder
    try:
        return Path(json.loads(link.read_text(encoding="utf-8"))["folder"])
    except (ValueError, KeyError, TypeError, OSError):
        raise BadInput(f"{link}: damaged; name the ledger with --ledger URL.") from None
