"""`leeward spec init METHOD …`: the spec that flags mean."""

from __future__ import annotations

import copy
import functools
import re
from pathlib import Path
from typing import Any

import click

from leeward.cli.main import LazyGroup
from leeward.methods import METHODS

NOT_IN_A_SPEC = {
    "out": "",
    "threads": None,
    "allow_memory": False,
    "as_json": False,
    "reason": None,
    "register": None,
}
"""Flags of a run that are flags of `leeward protect`, too."""


class Written(LazyGroup):
    """The commands of the methods, which write the spec of their flags instead of running it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The method's command with `-o SPEC.yaml` in the place of the flags that no spec has."""
        from leeward.cli.main import leeward

        found = leeward.get_command(ctx, cmd_name) if cmd_name in self.table else None
        if found is None:
            return None
        command = copy.copy(found)
        command.params = [each for each in found.params if each.name not in NOT_IN_A_SPEC]
        command.params.append(click.Option(["-o", "--out", "spec_file"], metavar="SPEC.yaml", help=OUT))
        example = re.search(rf"leeward ({cmd_name} .*) -o ", found.help or "")
        command.help = (
            f"Write the spec of `leeward {cmd_name}` with these flags. Nothing is read or released.\n\n"
            + (f"\b\nExample:\n  leeward spec init {example[1]} -o spec.yaml" if example else "")
        )
        command.callback = functools.partial(_write, found.callback)
        return command


OUT = "The spec to write; must not exist yet [default: print it]."


def _write(callback: Any, *, spec_file: str | None, **flags: Any) -> None:
    if spec_file is not None:
        from leeward.errors import BadInput
        from leeward.paths import require_new

        if Path(spec_file).suffix not in (".yaml", ".yml"):
            raise BadInput(
                f"{spec_file}: a spec ends in .yaml; -o names it, and `leeward protect` the release."
            )
        require_new(spec_file)

    def write(spec: Any) -> None:
        from leeward.release.spec import resolve_paths
        from leeward.runs.reference import comment_spec

        if spec_file is None:
            return click.echo(comment_spec(spec), nl=False)
        path = Path(spec_file)
        # Paths of flags are those of the working directory, paths in a spec those of its folder.
        kept = spec if path.absolute().parent == Path.cwd() else resolve_paths(spec, Path.cwd())
        path.write_text(comment_spec(kept), encoding="utf-8")
        click.echo(f"{spec_file}: run it with `leeward protect {spec_file} -o OUT`.", err=True)

    click.get_current_context().obj = write
    callback(**NOT_IN_A_SPEC, **flags)


@click.group()
def spec() -> None:
    """Work with specs: files that define what to release and how.

    \b
    Example:
      leeward spec init disassociate events.csv --patient pid --code icd --k 5 --m 2 -o spec.yaml
      leeward protect spec.yaml -o release
    """


@spec.command(
    cls=Written, table={each.command: ("", each.line) for each in METHODS.values()}, no_args_is_help=True
)
def init() -> None:
    """Turn the flags of a method's command into a spec that explains each key.

    \b
    Example:
      leeward spec init visits events.csv --visit enc --k 5 -o spec.yaml
    """
