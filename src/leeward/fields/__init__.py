"""Parameters, each declared once beside its field: type, range, choices, one-line help and default.

    @dataclass(frozen=True, kw_only=True)
    class Censoring(Declared):
        k: Annotated[int, Parameter("Minimum number of people …", ge=2)]
        scope: Annotated[Literal["global", "record"], Parameter("…")] = "global"

From that come the checks on construction (in a library call as in a spec), the reader of specs and their JSON Schema,
the flags of a command with their help and defaults, what a manifest shows, and docs/reference/parameters. Rules between
fields are in the class's `rules`.

pydantic decides whether a value fits; it is imported when the first object is made, so that help texts are fast.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import numbers
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.errors import BadInput
from leeward.fields.declarations import (
    LARGEST,
    Declaration,
    Parameter,
    declarations,
    options_of,
    split,
    stated,
    text_of,
)
from leeward.fields.refusals import BadParameter, describe_values, kind_of, nearest, refusal

__all__ = [
    "BadParameter",
    "Declaration",
    "Declared",
    "Parameter",
    "build",
    "check_keys",
    "declarations",
    "describe_values",
    "document",
    "nearest",
    "schema",
    "stated",
    "text_of",
]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A frozen data class whose fields are declared; a value that does not fit is BadInput.

    Text is taken as a list of one where a list of text is wanted; NumPy's whole numbers become Python's.
    """

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in declarations(type(self))}
        for name, value in check_values(type(self), given).items():
            object.__setattr__(self, name, value)
        self.rules()

    def rules(self) -> None:
        """Rules between fields; BadInput where one is broken."""


def document(cls: type) -> None:
    """Add the declared fields to a class's docstring, as its section "Parameters"."""
    text, whole = text_of(cls), inspect.cleandoc(cls.__doc__ or "")
    lines = [f"{text}\n\nParameters\n----------"]
    for each in declarations(cls):
        kind = describe_values(each.hint, each.parameter) + ("" if each.required else ", optional")
        default = each.default_text
        lines += [
            f"{each.name} : {kind}",
            f"    {each.parameter.help}{f' Default: {default}.' if default else ''}",
        ]
    cls.__doc__ = "\n".join(lines) + "\n\nExamples\n" + whole.partition("\n\nExamples\n")[2]


def check_values(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values as the class keeps them. BadParameter at the first that does not fit its declaration."""
    import pydantic

    known = _by_name(cls)
    # What was parsed already (a policy, a model, a source) is judged by the class's own rules.
    found = dict(given)
    for name, value in given.items():
        if dataclasses.is_dataclass(value):
            continue
        try:
            found[name] = adapter_of(cls, name).validate_python(value)
        except pydantic.ValidationError as error:
            raise refusal(known[name], value, [each["loc"] for each in error.errors()]) from None
    return found


def build(
    cls: type[Any], content: Mapping[str, Any], where: str, *, aliases: Mapping[str, str] | None = None
) -> Any:
    """An object of the declared class `cls` from a mapping of its field names.

    Nested declared classes are built from nested mappings. `aliases` maps a spec's word to the field's name where they
    differ (`utility` for `policy`). `where` is the path of the mapping in the spec, for messages; empty at the top.

    Raises
    ------
    BadInput
        An unknown key (with the nearest known one), a missing key, a value that does not fit.
    """
    if not isinstance(content, Mapping):
        raise BadInput(f"`{where or 'spec'}` must be a mapping; got {kind_of(content)}.")
    known = _by_name(cls)
    words = _words(aliases or {}, known)
    check_keys(content, {*known, *words} - {*words.values()}, where, also=known)
    values: dict[str, Any] = {}
    for word, value in content.items():
        name, path = words.get(word, word), ".".join(filter(None, [where, word]))
        if name in values:
            raise BadInput(f"`{path}` and its other name are both given; keep one.")
        inner = _nested_class(known[name].hint)
        is_made = inner is None or value is None or dataclasses.is_dataclass(value)
        values[name] = value if is_made else build(inner, value, path)
    for name, each in known.items():
        if name not in values and each.required:
            raise BadParameter(name, "is missing; give it a value.").inside(where)
    try:
        return cls(**values)
    except BadParameter as error:
        raise error.inside(where) from None


def _by_name(cls: type) -> dict[str, Declaration]:
    return {each.name: each for each in declarations(cls)}


def _words(aliases: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    return {word: name for word, name in aliases.items() if name in known and word not in known}


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


def is_declared(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Declared)


def _nested_class(hint: Any) -> Any:
    """The declared class that a mapping is built into; None where the field takes mappings as they are."""
    options = options_of(hint)
    if any(typing.get_origin(option) is Mapping for option in options):
        return None
    return next((option for option in options if is_declared(option)), None)


def schema(cls: type, *, title: str | None = None) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the mapping that `build` reads."""
    properties = {each.name: _property(cls, each) for each in declarations(cls)}
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [each.name for each in declarations(cls) if each.required]
    if required:
        found["required"] = required
    return {"title": title, **found} if title else found


def _property(cls: type, each: Declaration) -> dict[str, Any]:
    nested = _nested_class(each.hint)
    found = schema(nested) if nested else dict(adapter_of(cls, each.name).json_schema(mode="validation"))
    if nested and type(None) in options_of(each.hint):
        found = {"anyOf": [found, {"type": "null"}]}
    if each.parameter.help:
        found["description"] = each.parameter.help
    if isinstance(each.default, bool | int | float | str):
        found["default"] = each.default
    return found


@functools.cache
def adapter_of(cls: type, name: str) -> Any:
    """pydantic's adapter of a field."""
    import pydantic

    each = next(each for each in (*declarations(cls), *stated(cls)) if each.name == name)
    config = pydantic.ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    hint = _for_pydantic(each.hint, each.parameter)
    return pydantic.TypeAdapter(hint) if is_declared(each.hint) else pydantic.TypeAdapter(hint, config=config)


def _for_pydantic(hint: Any, parameter: Parameter) -> Any:
    """The type as pydantic takes it: with its range, lists as tuples and NumPy's numbers as Python's."""
    from pydantic import BeforeValidator, Field

    inner, own = split(hint)
    if own is not None:
        return _for_pydantic(inner, own)
    if hint in (int, float):
        sides = ("ge", "gt", "le", "lt")
        limits = {side: limit for side in sides if (limit := getattr(parameter, side)) is not None}
        read = BeforeValidator(_whole_number if hint is int else _plain_number)
        return typing.Annotated[hint, Field(**limits), read]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    fitted = tuple(_for_pydantic(each, parameter) for each in arguments)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[fitted]  # noqa: UP007
    if origin is Mapping:
        return Mapping[fitted]  # type: ignore[misc,valid-type]  # made at run time
    return _tuple(arguments, fitted) if origin is tuple else hint


def _tuple(arguments: tuple[Any, ...], fitted: tuple[Any, ...]) -> Any:
    from pydantic import BeforeValidator, Field

    if arguments == (str, Ellipsis):
        read = BeforeValidator(_many_texts, json_schema_input_type=str | list[str])
    else:
        many = {} if Ellipsis in arguments else {"min_length": len(arguments), "max_length": len(arguments)}
        listed = typing.Annotated[list[fitted[0]], Field(**many)]  # type: ignore[valid-type]
        read = BeforeValidator(_many, json_schema_input_type=listed)
    return typing.Annotated[tuple[fitted], read]  # type: ignore[valid-type]


def _plain_number(value: Any) -> Any:
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
