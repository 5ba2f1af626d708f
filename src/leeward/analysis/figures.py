"""Measures by their names: a method has one table of functions, from which follow the options and the refusals."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward.errors import BadInput
from leeward.release import Release


def plain(value: Any) -> Any:
    """Data classes, lists and mappings of figures as JSON has them. A field whose default is None is left out where it
    is None; NaN becomes null."""
    if dataclasses.is_dataclass(value):
        return {
            each.name: plain(item)
            for each in dataclasses.fields(value)
            if (item := getattr(value, each.name)) is not None or each.default is not None
        }
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and value != value else value


JOINT = "demographics"
"""The measure of demographics and codes together, which releases without demographics do not have."""

Measures = Mapping[str, Callable[..., Any]]
"""Measure -> its function, bound to what it looks at. Parameters that are left have defaults: they are its options."""


def figures_of(
    release: Release, measures: Measures, wanted: Sequence[Mapping[str, Any]], *, apart: str = ""
) -> dict[str, Any]:
    """The figures asked for, JSON-able, without those that a measure has none of (None). `wanted`: measure ->
    options; one asked for twice adds up its `workloads`. `apart` runs in a thread beside the others. BadInput for an
    unknown measure or option."""
    from leeward.engine import beside

    asked = [(name, options) for each in wanted for name, options in each.items()]
    for name, options in asked:
        _check_options(name, options, measures, release.method)
    if not release.parameters.get("demographics"):
        asked = [(name, options) for name, options in asked if name != JOINT]
    with beside() as other:
        later = [other.submit(measures[name], **options) for name, options in asked if name == apart]
        made = [None if name == apart else measures[name](**options) for name, options in asked]
    waiting = iter(later)
    found: dict[str, Any] = {}
    for (name, _), each in zip(asked, made, strict=True):
        figures = plain(next(waiting).result() if name == apart else each)
        if name in found and "workloads" in figures:
            figures["workloads"] = found[name]["workloads"] + figures["workloads"]
        if figures is not None:
            found[name] = figures
    return found


def _check_options(name: str, options: Mapping[str, Any], measures: Measures, method: str) -> None:
    if name not in measures:
        raise BadInput(f"`measure`: no measure `{name}` for {method}; known: {', '.join(measures)}.")
    bound = getattr(measures[name], "keywords", {})
    known = sorted(
        each.name
        for each in inspect.signature(measures[name]).parameters.values()
        if each.default is not each.empty and each.name not in bound
    )
    for option in options:
        if option not in known:
            raise BadInput(
                f"`measure: {name}`: unknown option `{option}`; known: {', '.join(known) or 'none'}."
            )
