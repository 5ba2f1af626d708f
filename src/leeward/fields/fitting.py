"""A declared type as pydantic takes it: strict, with its range, lists as tuples and NumPy's numbers as Python's."""

from __future__ import annotations

import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from leeward.fields.declarations import LARGEST, Parameter, split


def for_pydantic(hint: Any, parameter: Parameter) -> Any:
    """The type with its ranges as pydantic takes them."""
    from pydantic import BeforeValidator, Field

    inner, own = split(hint)
    if own is not None:
        return for_pydantic(inner, own)
    if hint in (int, float):
        limits = {
            side: limit
            for side in ("ge", "gt", "le", "lt")
            if (limit := getattr(parameter, side)) is not None
        }
        read = BeforeValidator(_whole_number if hint is int else _plain_number)
        return typing.Annotated[hint, Field(**limits), read]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(for_pydantic(each, parameter) for each in arguments)]  # noqa: UP007
    if origin is tuple:
        items = tuple(each if each is Ellipsis else for_pydantic(each, parameter) for each in arguments)
        made = tuple[items]  # type: ignore[valid-type]  # made at run time
        if arguments == (str, Ellipsis):
            read = BeforeValidator(_many_texts, json_schema_input_type=str | list[str])
        else:
            many = 0 if Ellipsis in arguments else len(arguments)
            limits = {"min_length": many, "max_length": many} if many else {}
            listed = typing.Annotated[list[items[0]], Field(**limits)]  # type: ignore[valid-type]
            read = BeforeValidator(_many, json_schema_input_type=listed)
        return typing.Annotated[made, read]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return Mapping[tuple(for_pydantic(each, parameter) for each in arguments)]  # type: ignore[misc]
    return hint


def _plain_number(value: Any) -> Any:
    """NumPy's whole numbers as Python's; everything else as it is."""
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


def _whole_number(value: Any) -> Any:
    """As `_plain_number`; ValueError above what compiled code counts to."""
    if isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST:
        raise ValueError("too large")
    return _plain_number(value)


def _many(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _many_texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else _many(value)
