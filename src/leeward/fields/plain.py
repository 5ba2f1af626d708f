"""Values that fit as they stand, seen without pydantic: importing it takes a command longer than all its other checks.

What is not plain may fit too: pydantic decides, and what is plain it would keep as it is (tests/fields/test_plain.py).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from leeward.fields.declarations import LARGEST, Parameter, split

NOT_PLAIN: Any = object()
"""What `plain` returns for all that pydantic must look at."""


def plain(hint: Any, parameter: Parameter, value: Any) -> Any:
    """The value as pydantic would keep it, or NOT_PLAIN."""
    inner, own = split(hint)
    if own is not None:
        return plain(inner, own, value)
    if hint is Any:
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, parameter, value)
    if origin is Literal:
        fits = type(value) is str and value in arguments
    elif hint is None or hint is types.NoneType:
        fits = value is None
    elif hint is bool:
        fits = type(value) is bool
    elif hint is int:
        fits = type(value) is int and abs(value) <= LARGEST and _in_range(parameter, value)
    elif hint is str:
        fits = type(value) is str
    elif origin is tuple and arguments[1:] == (Ellipsis,) and type(value) is tuple:
        fits = all(plain(arguments[0], parameter, each) is not NOT_PLAIN for each in value)
    elif origin is Mapping and type(value) is dict:
        kept = {each: plain(arguments[1], parameter, inside) for each, inside in value.items()}
        known = all(plain(arguments[0], parameter, each) is not NOT_PLAIN for each in value)
        return kept if known and all(each is not NOT_PLAIN for each in kept.values()) else NOT_PLAIN
    else:
        fits = False
    return value if fits else NOT_PLAIN


def _one_of(options: tuple[Any, ...], parameter: Parameter, value: Any) -> Any:
    """As the first option that it plainly is; text where a list of text is wanted too is not plain."""
    if value is not None and any(typing.get_origin(split(each)[0]) is tuple for each in options):
        return NOT_PLAIN
    found = (plain(each, parameter, value) for each in options)
    return next((each for each in found if each is not NOT_PLAIN), NOT_PLAIN)


def _in_range(parameter: Parameter, value: float) -> bool:
    return (
        (parameter.ge is None or value >= parameter.ge)
        and (parameter.gt is None or value > parameter.gt)
        and (parameter.le is None or value <= parameter.le)
        and (parameter.lt is None or value < parameter.lt)
    )
