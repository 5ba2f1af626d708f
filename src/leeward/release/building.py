"""Mappings (from YAML, or a command's flags) to frozen parameter classes, with errors a person can act on."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from leeward.errors import BadInput

T = TypeVar("T")

KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
"""How a person calls a type."""


def build(
    cls: type[T], content: Mapping[str, Any], where: str, *, aliases: Mapping[str, str] | None = None
) -> T:
    """An object of the dataclass `cls` from a mapping of its field names.

    Nested dataclasses are built from nested mappings, tuples from lists. `aliases` maps a spec's word to the
    field's name where they differ (`utility` for `policy`). `where` is the path of the mapping in the spec,
    for messages; empty at the top.

    Raises
    ------
    BadInput
        An unknown key (named with the nearest known one), a missing key, a value of the wrong type.
    """
    if not isinstance(content, Mapping):
        raise BadInput(f"`{where or 'spec'}` takes a mapping of keys and values; got {_kind(content)}.")
    # T is a dataclass, which no type can say.
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    words = {word: name for word, name in (aliases or {}).items() if name in fields and word not in fields}
    known = [name for name in fields if name not in words.values()] + list(words)
    check_keys(content, known, where, also=fields)
    hints = typing.get_type_hints(cls)
    values = {}
    for word, value in content.items():
        name = words.get(word, word)
        if name in values:
            raise BadInput(f"`{_path(where, word)}` and its other name are both given; keep one.")
        values[name] = _value(hints[name], value, _path(where, word))
    for name, each in fields.items():
        if name not in values and _required(each):
            raise BadInput(f"`{_path(where, name)}` is missing; give it a value.")
    return cls(**values)


def check_keys(
    content: Mapping[str, Any], known: Iterable[str], where: str, *, also: Iterable[str] = ()
) -> None:
    """BadInput at the first key of `content` that is not in `known` (nor silently in `also`)."""
    names = list(known)
    accepted = {*names, *also}
    for key in content:
        if key not in accepted:
            place = f" in `{where}`" if where else ""
            raise BadInput(f"unknown key `{key}`{place}{nearest(str(key), names)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known word, and all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean `{close[0]}`?" if close else "."
    return f"{hint} Known: {', '.join(names)}."


def _required(each: dataclasses.Field[Any]) -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def _path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return KINDS.get(type(value), type(value).__name__)


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint` says. Types we have no rule for pass: the class's own check judges them."""
    options = _options(hint)
    if isinstance(value, Mapping) and any(
        (typing.get_origin(option) or option) is Mapping for option in options
    ):
        return value  # the class takes mappings as they are, and judges them itself
    for option in options:
        fits, converted = _fits(option, value, where)
        if fits:
            return converted
    wanted = " or ".join(dict.fromkeys(_wanted(option) for option in options if option is not type(None)))
    raise BadInput(f"`{where}` must be {wanted}; got {_kind(value)}.")


def _options(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _fits(hint: Any, value: Any, where: str) -> tuple[bool, Any]:
    origin = typing.get_origin(hint) or hint
    if hint is type(None):
        return value is None, None
    if origin in (int, float, bool, str):
        return _scalar(origin, value)
    if origin is typing.Literal:
        choices = typing.get_args(hint)
        if isinstance(value, str) and value not in choices and all(isinstance(c, str) for c in choices):
            raise BadInput(f"`{where}`: unknown `{value}`{nearest(value, choices)}")
        return value in choices, value
    if origin in (tuple, list, Sequence):
        return _many(hint, value, where)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        if isinstance(value, origin):
            return True, value
        return (True, build(origin, value, where)) if isinstance(value, Mapping) else (False, None)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping), value
    return True, value


def _scalar(kind: type, value: Any) -> tuple[bool, Any]:
    """YAML already tells numbers from text; 5 is a fine 5.0, true is not 1, and "5" is not 5."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return True, float(value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), value


def _many(hint: Any, value: Any, where: str) -> tuple[bool, Any]:
    inner = next((arg for arg in typing.get_args(hint) if arg is not Ellipsis), Any)
    if isinstance(value, str) and inner is str:
        return True, (value,)
    if not isinstance(value, list | tuple):
        return False, None
    return True, tuple(_value(inner, item, f"{where}[{n}]") for n, item in enumerate(value, start=1))


def _wanted(hint: Any) -> str:
    origin = typing.get_origin(hint) or hint
    if origin in KINDS:
        return KINDS[origin]
    if origin in (tuple, list, Sequence):
        return "a list"
    if origin is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(hint))
    return "a mapping"
