"""What a measure returns, frozen data classes that become JSON and are read back from it; and measures by their names:
a method has one table of functions, from which follow the options and the refusals.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from leeward.engine import beside
from leeward.errors import BadInput
from leeward.release import Release


@dataclasses.dataclass(frozen=True)
class Figures:
    """A base of frozen data classes whose fields are figures, texts, tuples of them, and further `Figures`.

    Maps of texts to such values may be among them. A field whose default is None is left out where it is None. NaN
    becomes null.
    """

    def to_json(self) -> dict[str, Any]:
        """As `measures.json` has it."""
        return {
            each.name: plain(value)
            for each in dataclasses.fields(self)
            if (value := getattr(self, each.name)) is not None or each.default is not None
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The same figures from what `to_json` gave; keys that this version does not know are passed over."""
        hints = _hints(cls)  # type: ignore[arg-type]  # a class can be hashed
        return cls(
            **{
                each.name: _convert(hints[each.name], content[each.name])
                for each in dataclasses.fields(cls)
                if each.name in content
            }
        )

    @classmethod
    def of(cls, measures: Mapping[str, Any], name: str) -> Self | None:
        """The figures of a measure in `measures.json`; None where it was not asked for."""
        return cls.from_json(measures[name]) if measures.get(name) else None


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def plain(value: Any) -> Any:
    """Figures, and lists and mappings of them, as JSON has them."""
    if isinstance(value, Figures):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and value != value else value


def _convert(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [each for each in get_args(hint) if each is not type(None)]
    if isinstance(hint, type) and issubclass(hint, Figures):
        return hint.from_json(value)
    if get_origin(hint) is tuple:
        return tuple(_convert(get_args(hint)[0], each) for each in value)
    if get_origin(hint) is Mapping:
        return {name: _convert(get_args(hint)[1], each) for name, each in value.items()}
    return value


JOINT = "demographics"
"""The measure of demographics and codes together, which releases without demographics do not have."""

Measures = Mapping[str, Callable[..., Any]]
"""Measure -> its function, bound to what it looks at. Parameters that are left have defaults: they are its options."""


def figures_of(
    release: Release, measures: Measures, wanted: Sequence[Mapping[str, Any]], *, apart: str = ""
) -> dict[str, Any]:
    """The figures asked for, JSON-able; one that a measure has none of (None) is left out.

    Parameters
    ----------
    wanted : sequence of mappings
        Measure -> options. A measure asked for twice adds up its `workloads`.
    apart : str
        A measure that runs in a thread beside the others.

    Raises
    ------
    BadInput
        An unknown measure or option.
    """
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
