"""A shortcut's own flags, derived from its method's parameter class: a parameter is described once, there."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import types
import typing
from collections.abc import Callable
from typing import Any

import click

NOT_FLAGS = frozenset({"sensitive_codes"})

POLICY_METAVAR = "hierarchy:1|similarity:10|frequency:0.0125|file:PATH"


def method_options(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command one argument, `parameters`: the spec's `method:` mapping, made of the method's flags."""
    from leeward.protect import METHODS

    module, _, attribute = METHODS[name].partition(":")
    cls = getattr(importlib.import_module(module), attribute)
    fields = [each for each in dataclasses.fields(cls) if each.init]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = {each.name: kwargs.pop(each.name) for each in fields}
            parameters = {key: value for key, value in given.items() if value not in (None, ())}
            return function(*args, parameters={"name": name, **parameters}, **kwargs)

        hints, helps = typing.get_type_hints(cls), documented(cls)
        decorated: Callable[..., Any] = wrapper
        for each in reversed(fields):
            decorated = _option(each, hints[each.name], helps.get(each.name))(decorated)
        return decorated

    return decorate


def documented(cls: type) -> dict[str, str]:
    """What the class's docstring (NumPy style) says of each parameter, its first sentence."""
    found: dict[str, str] = {}
    name = ""
    for line in (cls.__doc__ or "").splitlines():
        head = re.match(r"^ {4}(\w+)(?: : .*)?$", line)
        if head:
            name = head.group(1)
        elif name and line.startswith(" " * 8):
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
        elif line.strip():
            name = ""
    return {key: re.split(r"(?<=[.])\s|;", text)[0].rstrip(".") + "." for key, text in found.items()}


def _option(each: dataclasses.Field[Any], hint: Any, text: str | None) -> Callable[..., Any]:
    flag = f"--{each.name.replace('_', '-')}"
    required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    shown = f"{text or ''}{_default_text(each)}" or None
    if each.name == "policy":
        return click.option(flag, each.name, metavar=POLICY_METAVAR, help=shown)
    kinds = _kinds(hint)
    if bool in kinds:
        return click.option(f"{flag}/--no-{flag[2:]}", each.name, default=None, help=shown)
    if tuple in kinds:
        return click.option(
            flag, each.name, multiple=True, metavar="TEXT", help=f"{shown or ''} Repeatable.".strip()
        )
    choices = next(
        (list(typing.get_args(o)) for o in _options(hint) if typing.get_origin(o) is typing.Literal), None
    )
    if choices:
        return click.option(flag, each.name, type=click.Choice(choices), help=shown)
    kind = int if int in kinds else float if float in kinds else str
    return click.option(flag, each.name, type=kind, required=required, help=shown)


def _default_text(each: dataclasses.Field[Any]) -> str:
    if each.default in (dataclasses.MISSING, None, ()):
        return ""
    return f" [default: {str(each.default).lower() if isinstance(each.default, bool) else each.default}]"


def _options(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _kinds(hint: Any) -> set[Any]:
    return {typing.get_origin(option) or option for option in _options(hint)}
