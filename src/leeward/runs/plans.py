"""Plans as callers give them: files, mappings, plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leeward.advise.plan import Plan


def plan_of(plan: Plan | Mapping[str, Any] | str | Path) -> Plan:
    """The plan from its file or mapping; a file without codes of which models alone are wanted is a table."""
    from leeward.advise.plan import Plan, Regression, load
    from leeward.fields import build

    found: Plan
    if isinstance(plan, Plan):
        found = plan
    elif isinstance(plan, Mapping):
        found = build(Plan, plan, "")
    else:
        found = load(plan)
    source = found.source
    if source is None or source.path is None or source.format is not None or "code" in source.columns:
        return found
    if Path(source.path).is_file() and all(isinstance(line, Regression) for line in found.lines):
        return dataclasses.replace(found, source=dataclasses.replace(source, format="table"))
    return found
