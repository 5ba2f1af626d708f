"""What is declared of a field: its type, its parameter and its default, read from the class."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

LARGEST = 2**63 - 1
"""Whole numbers above it are refused: compiled code does not hold them."""


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
    shown : `given`, `always` or `never`
        When a manifest shows it. `given`: unless it is None, empty, false or the default.
    when : (field, value), optional
        A manifest shows it only where another field has this value; True: any but none, empty and false.
    form : str, optional
        Regular expression of the texts that a manifest shows. Another text names a file, and `word` is shown for it, or
        the file's name without its folder (`file:PATH`).
    word : str, optional
        See `form`; without a form, what the method can make of the value beside its choices.
    found : bool
        The run finds the value where none is given, so that no spec tells it.
    ascending : bool
        A list or mapping is shown in ascending order, not as given.
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
    shown: Literal["given", "always", "never"] = "given"
    when: tuple[str, Any] | None = None
    form: str | None = None
    word: str | None = None
    found: bool = False
    ascending: bool = False


@dataclass(frozen=True)
class Declaration:
    """A field with its parameter: what all generators read."""

    name: str
    hint: Any
    parameter: Parameter
    default: Any
    given: bool = True
    """Whether a user can give it; else the run finds it (`init=False`)."""

    @property
    def required(self) -> bool:
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


def declarations(cls: Any) -> tuple[Declaration, ...]:
    """The declared fields of a class that a user can give: its own in its order, and those of its bases
    where it annotates `inherited`, or after its own."""
    return tuple(each for each in _declarations(cls) if each.given)


def stated(cls: Any) -> tuple[Declaration, ...]:
    """The declared fields that a manifest can show, those that the run finds too."""
    return tuple(each for each in _declarations(cls) if each.parameter.shown != "never")


def text_of(cls: type) -> str:
    """The docstring without its sections."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return min((text.partition(f"\n\n{name}\n")[0] for name in ("Parameters", "Examples")), key=len)


@functools.cache
def _declarations(cls: Any) -> tuple[Declaration, ...]:
    modules = {
        name: sys.modules[base.__module__].__dict__
        for base in reversed(cls.__mro__)
        for name in inspect.get_annotations(base)
    }
    own = {name: place for place, name in enumerate(inspect.get_annotations(cls))}
    above = own.get("inherited", len(own))
    found = []
    for field in sorted(dataclasses.fields(cls), key=lambda field: own.get(field.name, above)):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        # Not typing.get_type_hints: it evaluates in the class, where a function in a parameter sees no module.
        hint = eval(field.type, modules[field.name]) if isinstance(field.type, str) else field.type
        hint, parameter = split(hint)
        found.append(Declaration(field.name, hint, parameter or Parameter(), default, field.init))
    return tuple(found)


def choices_of(hint: Any) -> tuple[str, ...]:
    hint, _ = split(hint)
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def options_of(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def split(hint: Any) -> tuple[Any, Parameter | None]:
    """A type without its parameter, and the parameter."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, None
    inner, *further = typing.get_args(hint)
    return inner, next((each for each in further if isinstance(each, Parameter)), None)
