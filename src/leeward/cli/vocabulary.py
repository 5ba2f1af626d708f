"""`leeward vocabulary add|list|remove`."""

from __future__ import annotations

import click


@click.group()
def vocabulary() -> None:
    """Vocabularies of your own, kept in your data directory.

    \b
    Example:
      leeward vocabulary add phecode phecode_map.csv
      leeward vocabulary add SnomedCT_InternationalRF2
    """


@vocabulary.command()
@click.argument("words", metavar="[KIND] FILE|FOLDER", nargs=-1, required=True)
def add(words: tuple[str, ...]) -> None:
    """Check FILE and keep a copy as the vocabulary of its KIND, replacing the last one.

    \b
    phecode    a phecode map (CSV, gz too): a column of codes, `phecode`, and where present phenotype, category
               and exclusion range
    hierarchy  CSV `node,parent`, or lines `leaf;parent;…;*`; then --vocabulary hierarchy
    omop       CONCEPT_ANCESTOR of an OMOP vocabulary (or a folder with it); OMOP sources use it by themselves
    snomed     a folder with an RF2 snapshot of SNOMED CT: its is-a as a tree, and its names; then --vocabulary snomed,
               and sources of FHIR and Synthea use it by themselves

    A folder needs no KIND. LEEWARD_HOME names another data directory.
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.vocabulary import registry, rf2

    if len(words) > 2:
        raise click.UsageError("give one KIND and one FILE or FOLDER.")
    kind, file = words if len(words) == 2 else (None, words[0])
    folder = Path(file)
    if kind is None:
        kind = "snomed" if rf2.is_release(folder) else "omop" if folder.is_dir() else None
    if kind is None:
        raise BadInput(f"{file}: say which KIND it is: {', '.join(registry.KINDS)}.")
    if kind == "omop" and folder.is_dir():
        inside = [
            each for each in sorted(folder.iterdir()) if each.name.lower().startswith("concept_ancestor.csv")
        ]
        if not inside:
            raise BadInput(
                f"{file}: holds neither OMOP's CONCEPT_ANCESTOR.csv nor SNOMED's sct2_Concept_*.txt."
            )
        file = str(inside[0])
    if not (folder.is_dir() if kind == "snomed" else Path(file).is_file()):
        raise BadInput(f"{file}: there is no such {'folder' if kind == 'snomed' else 'file'}.")
    click.echo(f"Kept as {registry.add(kind, file)}.")


@vocabulary.command("list")
def list_() -> None:
    """List the vocabularies that were added, and the built-in ones."""
    from leeward.vocabulary import VOCABULARIES, registry

    for name in VOCABULARIES:
        click.echo(f"{name:<14} built in")
    for kind, path in registry.list_all().items():
        click.echo(f"{kind:<14} {path}")


@vocabulary.command()
@click.argument("kind", metavar="KIND")
def remove(kind: str) -> None:
    """Delete the added vocabulary of a KIND."""
    from leeward.vocabulary import registry

    click.echo(f"Removed {registry.remove(kind)}.")
