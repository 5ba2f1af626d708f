"""Where this computer's user keeps what must outlive an index: remembered heads of ledgers, known data sets.

`LEEWARD_STATE` names the folder; by default `leeward` in `XDG_STATE_HOME`, else in `~/.local/state`.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "LEEWARD_STATE"


def state_folder(name: str) -> Path | None:
    """The folder `name` of the state, for its owner alone; None where none can be made."""
    given = os.environ.get(VARIABLE)
    try:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "leeward"
        folder = (Path(given) if given else base) / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # read-only, or no home
        return None
    return folder if os.access(folder, os.W_OK) else None
