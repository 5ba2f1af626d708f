"""The flags of a method's command, made from the declarations of its parameters (leeward.fields)."""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from leeward.cli.options import Option, content_of, number_of, split_pairs, stack
from leeward.errors import BadInput
from leeward.fields import BadParameter, Declaration, declarations
from leeward.fields.declarations import choices_of, options_of

FLAGS = {
    "formats": "--format", "hierarchy": "--vocabulary", "drop": "--drop", "domains": "--domains",
    "date_format": "--date-format",
}  # fmt: skip
"""Keys of a spec that are not parameters of a method -> their flags."""


def parameter_options(cls: type, *, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> Option:
    """One flag per parameter, with its help and its true default.

    A flag that is left out reaches the command as None: the default is that of the class. `required` must be given on
    the command line though the class has a default; `optional` the other way round.
    """
    return stack(
        *(
            _option(cls, each, (each.required or each.name in required) and each.name not in optional)
            for each in declarations(cls)
            if each.flag
        )
    )


def name_flags(message: str, cls: type, others: Mapping[str, str]) -> str:
    """A message about parameters (`max_cluster`, `method.k`, `odd_ages: leave out`, `safe: true`) that names their
    flags (`--max-cluster`, `--k`, `--odd-ages 'leave out'`, `--safe`)."""
    flags = {**{each.name: each.flag for each in declarations(cls) if each.flag}, **others}

    def flag_name(match: re.Match[str]) -> str:
        if match[1] not in flags:
            return match[0]
        value = "" if match[3] in (None, "true") else f" {shlex.quote(match[3])}"
        return f"`{flags[match[1]]}{match[2] or value}`"

    return re.sub(r"`(?:method\.)?(\w+)(?:([.\[][^`]*)|: ([^`]*))?`", flag_name, message)


def from_text(each: Declaration, text: str) -> Any:
    """A flag's text as the value it writes; what cannot be read stays text, and the class refuses it.

    Raises
    ------
    BadInput
        An empty name between commas; a file that is missing or cannot be read.
    """
    arguments = {typing.get_origin(hint) or hint: typing.get_args(hint) for hint in options_of(each.hint)}
    if tuple in arguments:
        return _list_of(text, each, arguments[tuple][0])
    if Mapping in arguments and str not in arguments:
        colons = str in options_of(arguments[Mapping][1]) or ":" in (each.parameter.metavar or "")
        return pairs_of(text, each) if colons else numbers_of(text, each)
    return number_of(text) if {int, float} & arguments.keys() else text


def _list_of(text: str, each: Declaration, of: Any) -> Any:
    """Values between commas; a list of anything is in a file."""
    if of is Any:
        return content_of(text, each.name, list)
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise BadParameter(each.flag, "must be values separated by commas; one is empty.")
    return tuple(parts if of is str else map(number_of, parts))


def pairs_of(text: str, each: Declaration) -> dict[str, Any]:
    """`age:10,sex:exact`: names with values after a colon.

    Raises
    ------
    BadInput
        An entry without a colon, an empty name or value, a name twice.
    """
    pairs = split_pairs(text.split(","), ":")
    for place, pair in enumerate(pairs, start=1):
        if not all(pair):
            raise BadInput(f"{each.flag}: entry {place} is not written NAME:VALUE.")
    if len(dict(pairs)) < len(pairs):
        raise BadInput(f"{each.flag}: a name occurs twice; keep one value for each.")
    if "float" in str(each.hint):
        return {name: number_of(value) for name, value in pairs}
    takes_numbers = "int" in str(each.hint)
    return {name: int(value) if takes_numbers and value.isdigit() else value for name, value in pairs}


def numbers_of(text: str, each: Declaration) -> dict[str, int]:
    """`250=4,401=2`, or a CSV file with a column `code` and one of the numbers (`cap`).

    Raises
    ------
    BadInput
        Neither, an entry that is not a code with a whole number, or a code twice.
    """
    where = each.flag
    if "=" in text:
        pairs = split_pairs(text.split(","), "=")
    elif Path(text).is_file():
        where, pairs = text, _rows_of_file(text, each.name.removesuffix("s"))
    else:
        raise BadInput(f"{where}: `{text}` is neither CODE=N nor a file.")
    for place, (code, number) in enumerate(pairs, start=1):
        if not code or not number.isdigit():
            raise BadInput(f"{where}: entry {place} is not a code with a whole number.")
    if len(dict(pairs)) < len(pairs):
        raise BadInput(f"{where}: a code occurs twice; keep one number for each.")
    return {code: int(number) for code, number in pairs}


def _rows_of_file(path: str, column: str) -> list[tuple[str, str]]:
    import csv

    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if not {"code", column} <= set(rows.fieldnames or ()):
            raise BadInput(f"{path}: the columns `code` and `{column}` are needed.")
        return [(str(row["code"]).strip(), str(row[column]).strip()) for row in rows]


def _option(cls: type, each: Declaration, required: bool) -> Option:
    text = name_flags(each.parameter.help, cls, {})
    if each.hint is bool:
        if each.default:
            flag = f"{each.flag}/--no-{each.flag.removeprefix('--')}"
            return click.option(flag, each.name, default=None, help=f"{text} [default: {each.flag}]")
        return click.option(each.flag, each.name, is_flag=True, default=None, help=text)
    if each.default_text is not None and not required:
        text += f" [default: {each.default_text}]"
    return click.option(each.flag, each.name, type=_Text(each), required=required, help=text)


class _Text(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click
    name = "text"

    def __init__(self, each: Declaration) -> None:
        self.each = each

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The declared metavar; else the choices; else the name in capitals."""
        choices = [choice for option in options_of(self.each.hint) for choice in choices_of(option)]
        if self.each.parameter.metavar is not None:
            return self.each.parameter.metavar
        return f"[{'|'.join(choices)}]" if choices else self.each.name.upper()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return from_text(self.each, value) if isinstance(value, str) else value
