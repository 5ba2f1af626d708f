"""`leeward notes`: what can be done with clinical notes."""

from __future__ import annotations

import click

from leeward.cli.main import LazyGroup

ACTIONS: dict[str, tuple[str, str]] = {
    "annotate": (
        "leeward.cli.notes_annotate:annotate",
        "Notes to a table of quasi-identifiers and health terms, texts without identities.",
    ),
    "decrypt": ("leeward.cli.notes_annotate:decrypt", "Put encrypted identities back, with the key."),
    "train": ("leeward.cli.notes_learn:train", "Train the learned annotators on annotated notes."),
    "evaluate": ("leeward.cli.notes_learn:evaluate", "Measure the annotators against annotated notes."),
}
"""Each thing that can be done with notes. A new one adds a row."""


@click.group(cls=LazyGroup, table=ACTIONS)
def notes() -> None:
    """Clinical notes: identities found and taken out, a table of quasi-identifiers and health terms.

    \b
    Example:
      leeward notes annotate notes.csv -o OUT
    """
