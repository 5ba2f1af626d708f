"""The last entry of the register as it was seen, in a small file beside the key.

A copy of the register from yesterday agrees with itself; only something outside of it can tell that it is old.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from leeward.errors import BadInput
from leeward.queries.ledger.chain import Entry
from leeward.queries.state import write_whole
from leeward.release.aside import alone_in

REPAIR = "`leeward releases repair FOLDER…`, with the folders of all releases, enters what is missing"


class OlderRegister(BadInput):
    """The register is not the one that was seen last: nothing is released until it is repaired."""


@dataclass(frozen=True)
class Head:
    """How many entries there are, the last hash, and the releases entered so far."""

    entries: int
    head: str
    releases: list[str]


def head_file(key_file: Path) -> Path:
    return key_file.with_name(f"{key_file.name}.head")


def read_head(file: Path) -> Head | None:
    """What is remembered; None where there is nothing. OlderRegister where it cannot be read."""
    try:
        return Head(**json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OSError):
        raise OlderRegister(
            f"{file}: the last entry of the register that was seen cannot be read. Nothing was released. {REPAIR}."
        ) from None


def remember(file: Path, entries: Sequence[Entry], releases: Iterable[str], *, anew: bool = False) -> None:
    """Write the head where it is kept, unless a later one is there already; `anew`: whatever is there."""
    head = Head(len(entries), entries[-1].hash, sorted(releases))
    with alone_in(file.parent):
        before = None
        with suppress(OlderRegister):
            before = None if anew else read_head(file)
        if before is None or before.entries < head.entries:
            write_whole(file, json.dumps(asdict(head)).encode())


def require_seen(place: str, head: Head | None, entries: Sequence[Entry]) -> None:
    """OlderRegister where the register lacks the entry that was seen last, or nothing is remembered of one in use."""
    if head is None and entries:
        raise OlderRegister(
            f"{place}: the file beside the register's key that remembers its last entry is not there, so an older copy "
            f"could not be told from the newest. Nothing was released. {REPAIR}."
        )
    if head is None:
        return
    here = entries[head.entries - 1] if 0 < head.entries <= len(entries) else None
    if here is None or here.hash != head.head:
        raise OlderRegister(
            f"{place}: this is an older or another copy of the register: entry {head.entries} was seen before and is "
            f"not among its {len(entries)} entries. Nothing was released. Put the newest copy back, or {REPAIR}."
        )
