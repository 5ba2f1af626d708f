"""Descriptions of accepted values, and the sentence that refuses any other value."""

from __future__ import annotations

import numbers
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leeward import errors
from leeward.errors import BadInput
from leeward.fields.declarations import LARGEST, Declaration, Parameter, choices_of, options_of, split
from leeward.fields.fitting import for_pydantic


class BadParameter(BadInput):
    """A parameter's value that does not fit; the sentence can name the field, the spec's key or the flag."""

    def __init__(self, name: str, rest: str) -> None:
        super().__init__(f"`{name}` {rest}")
        self.name, self.rest = name, rest

    def inside(self, where: str) -> BadParameter:
        """The same of a key inside `where`."""
        return BadParameter(f"{where}.{self.name}" if where else self.name, self.rest)


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known word, and all of them."""
    names = sorted(known)
    close = errors.nearest(word, names)
    hint = f"; did you mean `{close}`?" if close else "."
    return f"{hint} Known: {', '.join(names)}."


def describe_values(hint: Any, parameter: Parameter) -> str:
    """Human-readable description of the accepted values: the type and its range or choices."""
    known = [_describe(option, parameter) for option in options_of(hint) if option is not type(None)]
    known = [words for words in known if not any(other.startswith(f"{words} or ") for other in known)]
    return " or ".join(dict.fromkeys(known))


def kind_of(value: Any) -> str:
    """The kind of a value as a person calls it, never the value."""
    if value is None:
        return "nothing"
    for kind, words in (
        (bool, "true or false"),
        (numbers.Integral, "a whole number"),
        (numbers.Real, "a decimal number"),
        (str, "text"),
        (Mapping, "a mapping"),
        ((list, tuple, set, frozenset), "a list"),
    ):
        if isinstance(value, kind):
            return words
    return type(value).__name__


def refusal(each: Declaration, value: Any, places: Sequence[int]) -> BadParameter:
    """The sentence: the parameter, what it must be, and the kind of value that was given."""
    options = [option for option in options_of(each.hint) if option is not type(None)]
    if isinstance(value, list | tuple) and places and places[0] < len(value):
        items = typing.get_args(next(option for option in options if typing.get_origin(option) is tuple))
        item, place = value[places[0]], places[0] + 1
        return BadParameter(f"{each.name}[{place}]", _must(items[0], each.parameter, item))
    for option in options:
        origin = typing.get_origin(option)
        if isinstance(value, Mapping) and isinstance(origin, type) and issubclass(origin, Mapping):
            of_key, of_value = typing.get_args(option)
            for key, item in value.items():
                if of_key is str and not isinstance(key, str):
                    return BadParameter(
                        each.name, f'must have keys of text, quoted as in "250"; got {kind_of(key)}.'
                    )
                if not _fits(of_value, each.parameter, item):
                    return BadParameter(f"{each.name}.{key}", _must(of_value, each.parameter, item))
    return BadParameter(each.name, _must(each.hint, each.parameter, value))


def _must(hint: Any, parameter: Parameter, value: Any) -> str:
    inner, own = split(hint)
    hint, parameter = inner, own or parameter
    choices = [choice for option in options_of(hint) for choice in choices_of(option)]
    if isinstance(value, str) and choices:
        close = errors.nearest(value, choices)
        given = f"got `{value}`; did you mean `{close}`?" if close else f"got `{value}`."
    elif isinstance(value, numbers.Real) and _is_number_kind(hint, value):
        large = isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST and int in options_of(hint)
        given = f"got {value}{', more than 2**63 - 1' if large else ''}."
    else:
        given = f"got {kind_of(value)}."
    return f"must be {describe_values(hint, parameter)}; {given}"


def _is_number_kind(hint: Any, value: Any) -> bool:
    """Whether the number is of the right kind, and so outside its range."""
    kinds = options_of(hint)
    whole = isinstance(value, numbers.Integral)
    return not isinstance(value, bool) and ((whole and int in kinds) or float in kinds)


def _fits(hint: Any, parameter: Parameter, value: Any) -> bool:
    import pydantic

    config = pydantic.ConfigDict(strict=True, allow_inf_nan=False)
    try:
        pydantic.TypeAdapter(for_pydantic(hint, parameter), config=config).validate_python(value)
    except pydantic.ValidationError:
        return False
    return True


def _describe(hint: Any, parameter: Parameter) -> str:
    hint, own = split(hint)
    parameter = own or parameter
    if hint in (int, float):
        return _range("a whole number" if hint is int else "a number", parameter)
    if hint in (bool, str):
        return "true or false" if hint is bool else "text"
    choices = choices_of(hint)
    if choices:
        quoted = [f"`{choice}`" for choice in choices]
        return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if arguments == (float, float):
            return _range("two numbers", parameter)
        return "text or a list of text" if arguments[0] is str else "a list"
    return "a mapping"


def _range(kind: str, parameter: Parameter) -> str:
    ge, gt, le, lt = (
        None if limit is None else f"{limit:,}"
        for limit in (parameter.ge, parameter.gt, parameter.le, parameter.lt)
    )
    if ge and le:
        return f"{kind} from {ge} to {le}"
    limits = [f"of at least {ge}"] if ge else [f"above {gt}"] if gt else []
    limits += [f"at most {le}"] if le else [f"below {lt}"] if lt else []
    return f"{kind} {' and '.join(limits)}" if limits else kind
