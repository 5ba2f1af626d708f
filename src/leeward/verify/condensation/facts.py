"""What the words of a condensed table rest on beside its parameters: what only the custodian knows."""

from __future__ import annotations

import re
from typing import Any

from leeward.contracts.condensation import ALGORITHMS, has_own_values
from leeward.verify.manifest import README, Share

BROKEN = re.compile(r"^- `([^`\n]+)`: broken in (\d+\.\d) % of the rows$", re.MULTILINE)


def facts_of(share: Share) -> list[dict[str, Any]]:
    """Every algorithm that `auto` can have chosen. Whether columns lack a declared domain is the source's matter, and
    so is which relations it keeps: those that the README says are broken are taken from there.
    """
    parameters = share.manifest["parameters"]
    try:
        text = (share.folder / README).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    broken = [(relation, float(percent)) for relation, percent in BROKEN.findall(text)]
    chosen = parameters["algorithm"]
    return [
        {"algorithm": algorithm, "observed": observed, "broken": broken}
        for algorithm in (ALGORITHMS if chosen == "auto" else [chosen])
        for observed in ([False] if has_own_values(parameters, algorithm) else [True, False])
    ]
