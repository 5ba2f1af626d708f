"""Parameters, each declared once beside its field: type, range, choices, one-line help and default.

    @dataclass(frozen=True, kw_only=True)
    class Censoring(Declared):
        k: Annotated[int, Parameter("Minimum number of people …", ge=2)]
        scope: Annotated[Literal["global", "record"], Parameter("…")] = "global"

From that come the checks on construction (in a library call as in a spec), the reader of specs and their JSON Schema,
the flags of a command with their help and defaults, what a manifest shows, and docs/parameters.md. Rules between
fields are in the class's `rules`.

pydantic decides whether a value fits; it is imported when the first object is made, so that help texts are fast.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leeward import errors
from leeward.errors import BadInput

LARGEST = 2**63 - 1
"""Whole numbers above it are refused: compiled code does not hold them."""

OMIT: Any = object()
"""What a `shown` function returns to leave its parameter out of the manifest."""


@dataclass(frozen=True)
class Parameter:
    """What is declared of a field beside its type.

    Attributes
    ----------
    help : str
        One line, for help texts, the schema and the reference page.
    ge, gt, le, lt : float, optional
        The range of a number (of each number, inside a list or a mapping).
    default : str, optional
        What None means, in words, where that is not "none".
    metavar : str, optional
        How the command's help writes the value.
    flag : str, optional
        The command's flag where it is not the field's name; empty: no flag.
    shown : `given`, `always`, `never`, or a function
        When a manifest shows it. `given`: unless None, empty or false. A function is called with the parameters and
        returns what is shown, or `OMIT`.
    """

    help: str = ""
    _: dataclasses.KW_ONLY
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    default: str | None = None
    metavar: str | None = None
    flag: str | None = None
    shown: Literal["given", "always", "never"] | Callable[[Any], Any] = "given"


@dataclass(frozen=True)
class Declaration:
    """A field with its parameter: what all generators read."""

    name: str
    hint: Any
    parameter: Parameter
    default: Any

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is dataclasses.MISSING

    @property
    def flag(self) -> str:
        """The command's flag, for example `--max-cluster`; empty where it has none."""
        return f"--{self.name.replace('_', '-')}" if self.parameter.flag is None else self.parameter.flag

    @property
    def default_text(self) -> str | None:
        """The default in words; None where there is none."""
        if self.parameter.default is not None:
            return self.parameter.default
        if self.required or self.default is None or self.default in ((), {}):
            return None
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


class BadParameter(BadInput):
    """A parameter's value that does not fit; the sentence can name the field, the spec's key or the flag."""

    def __init__(self, name: str, rest: str) -> None:
        super().__init__(f"`{name}` {rest}")
        self.name, self.rest = name, rest

    def inside(self, where: str) -> BadParameter:
        """The same of a key inside `where`."""
        return BadParameter(f"{where}.{self.name}" if where else self.name, self.rest)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A frozen data class whose fields are declared; a value that does not fit is BadInput.

    Text is taken as a list of one where a list of text is wanted; NumPy's whole numbers become Python's.
    """

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in declarations(type(self))}
        for name, value in checked(type(self), given).items():
            object.__setattr__(self, name, value)
        self.rules()

    def rules(self) -> None:
        """Rules between fields; BadInput where one is broken."""


def declarations(cls: Any) -> tuple[Declaration, ...]:
    """The declared fields of a class, in its order."""
    return _declarations(cls)


@functools.cache
def _declarations(cls: Any) -> tuple[Declaration, ...]:
    modules = {
        name: sys.modules[base.__module__].__dict__
        for base in reversed(cls.__mro__)
        for name in inspect.get_annotations(base)
    }
    found = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        # Not typing.get_type_hints: it evaluates in the class, where a function in a parameter sees no module.
        hint = eval(field.type, modules[field.name]) if isinstance(field.type, str) else field.type
        hint, parameter = _split(hint)
        found.append(Declaration(field.name, hint, parameter or Parameter(), default))
    return tuple(found)


def checked(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values as the class keeps them. BadParameter at the first that does not fit its declaration."""
    import pydantic

    known = {each.name: each for each in declarations(cls)}
    # What was parsed already (a policy, a model, a source) is judged by the class's own rules.
    parsed = {name: value for name, value in given.items() if dataclasses.is_dataclass(value)}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in parsed:
            found[name] = value
            continue
        try:
            found[name] = _adapter(cls, name).validate_python(value)
        except pydantic.ValidationError as error:
            places = [part for part in error.errors()[0]["loc"] if isinstance(part, int)]
            raise _refusal(known[name], value, places) from None
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
    known = {each.name: each for each in declarations(cls)}
    words = {word: name for word, name in (aliases or {}).items() if name in known and word not in known}
    shown = [name for name in known if name not in words.values()] + list(words)
    check_keys(content, shown, where, also=known)
    values: dict[str, Any] = {}
    for word, value in content.items():
        name = words.get(word, word)
        path = f"{where}.{word}" if where else word
        if name in values:
            raise BadInput(f"`{path}` and its other name are both given; keep one.")
        inner = _nested(known[name].hint)
        values[name] = build(inner, value, path) if inner is not None and _unbuilt(value) else value
    for name, each in known.items():
        if name not in values and each.required:
            raise BadParameter(name, "is missing; give it a value.").inside(where)
    try:
        return cls(**values)
    except BadParameter as error:
        raise error.inside(where) from None


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
    close = errors.nearest(word, names)
    hint = f"; did you mean `{close}`?" if close else "."
    return f"{hint} Known: {', '.join(names)}."


def is_declared(hint: Any) -> bool:
    """Whether a type is a declared class."""
    return isinstance(hint, type) and issubclass(hint, Declared)


def _nested(hint: Any) -> Any:
    """The declared class that a mapping is built into; None where the field takes mappings as they are."""
    options = _options(hint)
    if any(typing.get_origin(option) is Mapping for option in options):
        return None
    return next((option for option in options if is_declared(option)), None)


def wanted(hint: Any, parameter: Parameter) -> str:
    """What a value must be, in words: the type and its range or choices."""
    known = [_wanted(option, parameter) for option in _options(hint) if option is not type(None)]
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


def schema(cls: type, *, title: str | None = None) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the mapping that `build` reads."""
    properties = {each.name: _property(cls, each) for each in declarations(cls)}
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [each.name for each in declarations(cls) if each.required]
    if required:
        found["required"] = required
    return {"title": title, **found} if title else found


def _property(cls: type, each: Declaration) -> dict[str, Any]:
    nested = _nested(each.hint)
    found: dict[str, Any]
    if nested:
        found = schema(nested)
        if type(None) in _options(each.hint):
            found = {"anyOf": [found, {"type": "null"}]}
    else:
        found = dict(_adapter(cls, each.name).json_schema(mode="validation"))
    if each.parameter.help:
        found["description"] = each.parameter.help
    plain = isinstance(each.default, bool | int | float | str)
    return found | ({"default": each.default} if plain else {})


@functools.cache
def _adapter(cls: type, name: str) -> Any:
    """What decides whether a value fits the field."""
    import pydantic

    (each,) = (each for each in declarations(cls) if each.name == name)
    config = pydantic.ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    hint = _for_pydantic(each.hint, each.parameter)
    return pydantic.TypeAdapter(hint) if is_declared(each.hint) else pydantic.TypeAdapter(hint, config=config)


def _for_pydantic(hint: Any, parameter: Parameter) -> Any:
    """The type with its ranges as pydantic takes them."""
    from pydantic import BeforeValidator, Field

    inner, own = _split(hint)
    if own is not None:
        return _for_pydantic(inner, own)
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
        return typing.Union[tuple(_for_pydantic(each, parameter) for each in arguments)]  # noqa: UP007
    if origin is tuple:
        items = tuple(each if each is Ellipsis else _for_pydantic(each, parameter) for each in arguments)
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
        return Mapping[tuple(_for_pydantic(each, parameter) for each in arguments)]  # type: ignore[misc]
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


def _refusal(each: Declaration, value: Any, places: Sequence[int]) -> BadParameter:
    """The sentence: the parameter, what it must be, and the kind of value that was given."""
    options = [option for option in _options(each.hint) if option is not type(None)]
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
    inner, own = _split(hint)
    hint, parameter = inner, own or parameter
    choices = [choice for option in _options(hint) for choice in _choices(option)]
    if isinstance(value, str) and choices:
        close = errors.nearest(value, choices)
        given = f"got `{value}`; did you mean `{close}`?" if close else f"got `{value}`."
    elif isinstance(value, numbers.Real) and _number_wanted(hint, value):
        large = isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST and int in _options(hint)
        given = f"got {value}{', more than 2**63 - 1' if large else ''}."
    else:
        given = f"got {kind_of(value)}."
    return f"must be {wanted(hint, parameter)}; {given}"


def _number_wanted(hint: Any, value: Any) -> bool:
    """Whether the number is of the right kind, and so outside its range."""
    kinds = _options(hint)
    whole = isinstance(value, numbers.Integral)
    return not isinstance(value, bool) and ((whole and int in kinds) or float in kinds)


def _fits(hint: Any, parameter: Parameter, value: Any) -> bool:
    import pydantic

    config = pydantic.ConfigDict(strict=True, allow_inf_nan=False)
    try:
        pydantic.TypeAdapter(_for_pydantic(hint, parameter), config=config).validate_python(value)
    except pydantic.ValidationError:
        return False
    return True


def _wanted(hint: Any, parameter: Parameter) -> str:
    hint, own = _split(hint)
    parameter = own or parameter
    if hint in (int, float):
        return _range("a whole number" if hint is int else "a number", parameter)
    if hint in (bool, str):
        return "true or false" if hint is bool else "text"
    choices = _choices(hint)
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


def _choices(hint: Any) -> tuple[str, ...]:
    hint, _ = _split(hint)
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _split(hint: Any) -> tuple[Any, Parameter | None]:
    """A type without its parameter, and the parameter."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, None
    inner, *further = typing.get_args(hint)
    return inner, next((each for each in further if isinstance(each, Parameter)), None)


def _unbuilt(value: Any) -> bool:
    """Whether a nested class is still to be made: neither made, nor left out."""
    return value is not None and not dataclasses.is_dataclass(value)
