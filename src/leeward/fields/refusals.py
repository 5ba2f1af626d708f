"""Descriptions of accepted values, and the sentence that refuses any other value."""

from __future__ import annotations

import numbers
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leeward import errors
from leeward.errors import BadInput
from leeward.fields.declarations import LARGEST, Declaration, Parameter, choices_of, options_of, split

Locations = Sequence[tuple[int | str, ...]]
"""Where in a value errors are, as pydantic has them: places in lists and keys of mappings."""


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


def refusal(each: Declaration, value: Any, locations: Locations) -> BadParameter:
    """The sentence: the parameter, what it must be, and the kind of value that was given."""
    place = next((part for part in locations[0] if isinstance(part, int)), None)
    if isinstance(value, list | tuple) and place is not None and place < len(value):
        must = _must(_arguments_of(each.hint, tuple)[0], each.parameter, value[place])
        return BadParameter(f"{each.name}[{place + 1}]", must)
    entries = _arguments_of(each.hint, Mapping)
    if entries and isinstance(value, Mapping):
        return _refused_entry(each, entries[0], entries[1], value, locations)
    return BadParameter(each.name, _must(each.hint, each.parameter, value))


def _refused_entry(
    each: Declaration, of_key: Any, of_value: Any, value: Mapping[Any, Any], locations: Locations
) -> BadParameter:
    others = [key for key in value if not isinstance(key, str)]
    if of_key is str and others:
        words = f'must have keys of text, quoted as in "250"; got {kind_of(others[0])}.'
        return BadParameter(each.name, words)
    key = next(part for location in locations for part in location if part in value)
    return BadParameter(f"{each.name}.{key}", _must(of_value, each.parameter, value[key]))


def _arguments_of(hint: Any, origin: type) -> tuple[Any, ...]:
    """What the tuple or the mapping holds that is among the options of a type; empty without one."""
    return next((typing.get_args(each) for each in options_of(hint) if typing.get_origin(each) is origin), ())


def _must(hint: Any, parameter: Parameter, value: Any) -> str:
    inner, own = split(hint)
    given = _given(inner, value)
    end = "" if given.endswith("?") else "."
    return f"must be {describe_values(inner, own or parameter)}; got {given}{end}"


def _given(hint: Any, value: Any) -> str:
    """A number that is out of its range and a word that is no choice, or else the kind of a value."""
    options = options_of(hint)
    choices = [choice for option in options for choice in choices_of(option)]
    if isinstance(value, str) and choices:
        close = errors.nearest(value, choices)
        return f"`{value}`; did you mean `{close}`?" if close else f"`{value}`"
    if not _is_number_of(options, value):
        return kind_of(value)
    large = int in options and isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST
    return f"{value}{', more than 2**63 - 1' if large else ''}"


def _is_number_of(options: Sequence[Any], value: Any) -> bool:
    """Whether the number is of the right kind, and so outside its range."""
    kinds = (numbers.Real,) if float in options else (numbers.Integral,) if int in options else ()
    return isinstance(value, kinds) and not isinstance(value, bool)


def _describe(hint: Any, parameter: Parameter) -> str:
    hint, own = split(hint)
    parameter = own or parameter
    if choices := choices_of(hint):
        *others, last = (f"`{choice}`" for choice in choices)
        return " or ".join(filter(None, [", ".join(others), last]))
    if hint in KINDS:
        return _range(KINDS[hint], parameter) if hint in (int, float) else KINDS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is not tuple:
        return "a mapping"
    if arguments == (float, float):
        return _range("two numbers", parameter)
    return "text or a list of text" if arguments[0] is str else "a list"


KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _range(kind: str, parameter: Parameter) -> str:
    ge, gt, le, lt = (
        None if limit is None else f"{limit:,}"
        for limit in (parameter.ge, parameter.gt, parameter.le, parameter.lt)
    )
    if ge and le:
        return f"{kind} from {ge} to {le}"
    words = {"of at least": ge, "above": gt, "at most": le, "below": lt}
    limits = [f"{word} {limit}" for word, limit in words.items() if limit]
    return f"{kind} {' and '.join(limits)}" if limits else kind
