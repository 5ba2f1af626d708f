"""The command of a method that has no file of its own here: everything follows from its row and its parameters.

`getattr(leeward.cli.methods, "k-anonymity")` is the command of the method of that name.
"""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_source, with_table
from leeward.cli.running import run_and_tell
from leeward.fields import declarations
from leeward.methods import METHODS


def __getattr__(name: str) -> click.Command:
    if name not in METHODS:
        raise AttributeError(name)
    return command_of(name)


def command_of(name: str) -> click.Command:
    """The command of a method: input flags for its kind of source, one flag per parameter, and the run flags."""
    method = METHODS[name]
    kind, read = ("TABLE", with_table) if method.source == "table" else ("EVENTS", with_source)
    cls = method.parameters_class()
    given = " ".join(
        f"{each.flag} {5 if each.hint is int else each.name.upper()}"
        for each in declarations(cls)
        if each.required
    )

    def run(source: Any, **flags: Any) -> None:
        run_and_tell(name, source, **flags)

    run.__doc__ = f"""{method.line}

    {cls.__doc__}

    \b
    Example:
      leeward {method.command} FILE.csv {given} -o release

    {kind} is a CSV, TSV or Parquet file. Exit status: 0 done; 2 bad input; 3 the guarantee cannot be met on this
    data; 4 verification failed. In the last three cases nothing is written.
    """
    decorated = parameter_options(cls)(read(run_options(run)))
    return click.command(method.command)(click.argument("path", metavar=kind)(decorated))
