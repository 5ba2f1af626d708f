"""State that must outlive an index: remembered heads of ledgers, known data sets.

In the account's own folder, `leeward` in `XDG_STATE_HOME`, else in `~/.local/state`; and in the machine's,
`/var/lib/leeward`, where its administrator has made one: what one account has seen the others know then.
`LEEWARD_STATE` names one folder in place of both. What is kept is for its owner alone; in the machine's folder, and in
the one that is named, for the folder's group where that may write to it.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from leeward.errors import BadInput

VARIABLE: Final = "LEEWARD_STATE"
MACHINE: Final = Path("/var/lib/leeward")


def state_folders(name: str) -> list[Path]:
    """The folders `name` of the state: the account's, where one can be made, and the machine's. BadInput where the
    machine's, or the one that `LEEWARD_STATE` names, cannot be written."""
    own = account_folder(name)
    shared = MACHINE.is_dir() and not os.environ.get(VARIABLE)
    return [each for each in (own, _folder_for_all(MACHINE, name) if shared else None) if each is not None]


def account_folder(name: str) -> Path | None:
    """The folder `name` of the account's state, None where none can be made; BadInput where `LEEWARD_STATE` names
    one that cannot be written."""
    given = os.environ.get(VARIABLE)
    if given:
        return _folder_for_all(Path(given), name)
    try:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        own = base / "leeward" / name
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # read-only, or no home
        return None
    return own if os.access(own, os.W_OK) else None


def _folder_for_all(base: Path, name: str) -> Path:
    folder = base / name
    try:
        if not folder.is_dir():
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_for_a_group(base):
                os.chown(folder, -1, base.stat().st_gid)
                folder.chmod(0o2770)
    except OSError:
        writable = False
    else:
        writable = os.access(folder, os.W_OK)
    if not writable:
        raise BadInput(
            f"{folder}: what Leeward must remember (last entries of ledgers, data sets that were indexed, keys of "
            "recipients) is kept here, and it cannot be written, so an older copy of a ledger would not be noticed. "
            f"Nothing was answered or written. Let this account write to {base}."
        )
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: for its owner, and for the group that may write to its folder."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    mode = 0o660 if _is_for_a_group(path.parent) else 0o600
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    aside.replace(path)


def _is_for_a_group(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IWGRP)
