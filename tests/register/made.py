"""Registers and entries for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from leeward.register import entering, sketch
from leeward.register.entering import Entered
from leeward.register.store import Facts, Register, open_register

KEY = b"k" * 32


def opened(folder: Path, url: str | None = None, key: bytes = KEY) -> Register:
    return open_register(url or str(folder / "register.db"), key, folder / "register.secret")


def entered(
    register: Register,
    patients: Iterable[int] | None,
    *,
    published: bool = True,
    **facts: Any,
) -> Entered:
    """Enter a release of these patients, and say that it is published."""
    made = None if patients is None else sketch.sketch_of(pl.Series(list(patients)), register.key)
    found = entering.enter(register, Facts(**{"method": "visits", "k": 5, **facts}), made)
    if published:
        digests = {"share": "share", "content": f"content of {found.facts.id}", "source": None}
        entering.publish(found, Path("somewhere"), **digests)
    return found
