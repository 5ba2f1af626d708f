"""The annotators and their ensemble by name, as evaluation and studies compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leeward.notes.annotators import learned
from leeward.notes.annotators.rules import Rules
from leeward.notes.pipeline import Reader
from leeward.notes.spans import Annotator, Span


def members(models: Path | None = None) -> dict[str, Callable[[str], Sequence[Span]]]:
    """`rules`, `dictionary`, `svm`, `crf` and `ensemble`, each from a text to its spans.

    Every one is followed by ConText, so that what is asserted can be compared. `models` is a folder that
    `leeward notes train` wrote; the shipped models by default.
    """
    dictionary: Any = learned.load_dictionary()
    one: dict[str, Annotator] = {
        "rules": Rules(),
        "dictionary": dictionary,
        **{name: learned.load(name, models) for name in learned.NAMES},
    }
    readers = {name: Reader((member,), dictionary, dictionary.plain_words) for name, member in one.items()}
    readers["ensemble"] = Reader(tuple(one.values()), dictionary, dictionary.plain_words)
    return {name: reader.read for name, reader in readers.items()}
