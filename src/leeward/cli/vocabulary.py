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
@click.argument("kind", type=click.Choice(["phecode", "hierarchy", "omop"]))
@click.argument("file", metavar="FILE")
def add(kind: str, file: str) -> None:
    """Check FILE and keep a copy as the vocabulary of its KIND, replacing the last one.

    \b
    phecode    a phecode map (CSV, gz too): a column of codes, `phecode`, and where present phenotype, category
               and exclusion range
    hierarchy  CSV `node,parent`, or lines `leaf;parent;…;*`; then --vocabulary hierarchy
    omop       CONCEPT_ANCESTOR of an OMOP vocabulary (or a folder with it); OMOP sources use it by themselves

    LEEWARD_HOME names another data directory.
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.vocabulary import registry

    folder = Path(file)
    if kind == "omop" and folder.is_dir():
        inside = [
            each for each in sorted(folder.iterdir()) if each.name.lower().startswith("concept_ancestor.csv")
        ]
        file = str(inside[0]) if inside else file
    if not Path(file).is_file():
        raise BadInput(f"{file}: there is no such file.")
    click.echo(f"Kept as {registry.add(kind, file)}.")


@vocabulary.command("list")
def list_() -> None:
    """List the vocabularies that were added, and the built-in ones."""
    from leeward.vocabulary import VOCABULARIES, registry

    for name in VOCABULARIES:
        click.echo(f"{name:<14} built in")
    for kind, path in registry.added().items():
        click.echo(f"{kind:<14} {path}")


@vocabulary.command()
@click.argument("kind", type=click.Choice(["phecode", "hierarchy", "omop"]))
def remove(kind: str) -> None:
    """Delete the added vocabulary of a KIND."""
    from leeward.vocabulary import registry

    click.echo(f"Removed {registry.remove(kind)}.")
