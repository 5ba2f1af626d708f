"""Calls of the library: an argument of the wrong kind is BadInput, by what the function's own annotations say."""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.fields.declarations import LARGEST
from leeward.fields.refusals import kind_of

ELSEWHERE = {
    "Cohort": "leeward.cohort.cohort:Cohort",
    "Plan": "leeward.advise.plan:Plan",
    "Release": "leeward.release:Release",
    "pl": "polars:",
}
"""Names in annotations that their modules import for the types alone: "module:attribute"."""

MAKERS = {"Cohort": "lw.read(…)", "Method": "lw.Disassociation(…)", "Release": "lw.open(…)"}
"""What gives an object of a class, for messages."""

NUMBERS = {int: numbers.Integral, float: numbers.Real}
CLASSES: dict[Any, Any] = {**NUMBERS, Path: os.PathLike, Any: object}
"""What stands for a type of an annotation."""

LISTS = (Sequence, Iterable)

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"} | {
    Mapping: "a mapping", Sequence: "a list", Iterable: "a list", tuple: "a list", Callable: "a function",
}  # fmt: skip


@functools.cache
def check_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing arguments that do not fit its annotations, and paths that no file system has."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        hints, given = _hints_of(function), signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                given.arguments[name] = {key: _take(key, hints[name], each) for key, each in value.items()}
            else:
                given.arguments[name] = _take(name, hints[name], value)
        return function(*given.args, **given.kwargs)

    return call


def _take(name: str, hint: Any, value: Any) -> Any:
    """The value, whole numbers of NumPy as Python's; BadInput where it does not fit."""
    if not _fits(hint, value):
        raise BadInput(f"`{name}` must be {_describe(hint)}; got {_describe_given(hint, value)}.")
    if isinstance(value, str) or (Path in _options_of(hint) and isinstance(value, os.PathLike)):
        _refuse_unwritable(name, value, is_path=Path in _options_of(hint))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if abs(int(value)) > LARGEST:
            raise BadInput(f"`{name}` must be {_describe(hint)}; got one beyond 2**63 - 1.")
        return int(value)
    return value


@functools.cache
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    names = dict(vars(sys.modules[function.__module__]))
    written = {name: hint for name, hint in inspect.get_annotations(function).items() if name != "return"}
    for name, place in ELSEWHERE.items():
        if name not in names and any(name in hint for hint in written.values()):
            module, _, attribute = place.partition(":")
            found = importlib.import_module(module)
            names[name] = getattr(found, attribute) if attribute else found
    return {name: eval(hint, names) for name, hint in written.items()}


def _options_of(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _fits(hint: Any, value: Any) -> bool:
    options, origin = _options_of(hint), typing.get_origin(hint)
    if len(options) > 1:
        return any(_fits(each, value) for each in options)
    if origin is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    # of the class, and refused
    though: Any = bool if hint in NUMBERS else (str, bytes) if origin in LISTS else ()
    if not isinstance(value, CLASSES.get(hint, origin or hint)) or isinstance(value, though):
        return False
    return not list(_misfits(hint, value))


def _misfits(hint: Any, value: Any) -> Iterator[Any]:
    """What does not fit inside a mapping or a list; an iterator is left as it is."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    sides: Iterable[tuple[Any, Any]] = ()
    if origin is Mapping and isinstance(value, Mapping):
        sides = zip(cycle(inside), chain.from_iterable(value.items()), strict=False)
    elif origin in LISTS and isinstance(value, Iterable) and not isinstance(value, str | bytes | Iterator):
        sides = ((inside[0], item) for item in value)
    return (item for kind, item in sides if not _fits(kind, item))


def _describe(hint: Any) -> str:
    kind, inside = typing.get_origin(hint) or hint, typing.get_args(hint)
    if len(_options_of(hint)) > 1:
        return " or ".join(dict.fromkeys(_describe(each) for each in inside if each is not types.NoneType))
    if kind is typing.Literal:
        return " or ".join(f"`{each}`" for each in inside)
    if kind in WORDS:
        return WORDS[kind] + (" of text" if kind in LISTS and inside == (str,) else "")
    maker = MAKERS.get(hint.__name__)
    return f"a {hint.__name__}" + (f" (`{maker}` gives one)" if maker else "")


def _describe_given(hint: Any, value: Any) -> str:
    for each in _options_of(hint):
        for item in _misfits(each, value):
            return f"{kind_of(item)} in it"
    return kind_of(value)


def _refuse_unwritable(name: str, text: str | os.PathLike[str], *, is_path: bool) -> None:
    """BadInput for text that cannot be written down, and for a path that no file system takes."""
    try:
        str(text).encode()
        if is_path and "://" not in str(text):
            Path(text).stat()
    except ValueError:
        raise BadInput(f"`{name}` has a character that no text or path may have.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BadInput(f"`{name}`: the path is longer than file systems allow.") from None
