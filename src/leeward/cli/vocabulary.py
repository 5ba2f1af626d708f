"""`leeward vocabulary add KIND FILE`."""

from __future__ import annotations

import click


@click.group()
def vocabulary() -> None:
    """Vocabularies of your own, kept in your data directory.

    \b
    Example:
      leeward vocabulary add phecode phecode_map.csv
    """


@vocabulary.command()
@click.argument("kind", type=click.Choice(["phecode", "hierarchy"]))
@click.argument("file", metavar="FILE")
def add(kind: str, file: str) -> None:
    """Check FILE and keep a copy as the vocabulary of its KIND, replacing the last one.

    \b
    phecode    a phecode map (CSV, gz too): a column of codes, `phecode`, and where present phenotype, category
               and exclusion range
    hierarchy  CSV `node,parent`, lines `leaf;parent;…;*`, or OMOP CONCEPT_ANCESTOR

    LEEWARD_HOME names another data directory.
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.vocabulary import registry

    if not Path(file).is_file():
        raise BadInput(f"{file}: there is no such file.")
    click.echo(f"Kept as {registry.add(kind, file)}.")
