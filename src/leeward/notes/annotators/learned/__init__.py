"""Annotators that learned from annotated notes: a support vector machine and a conditional random field."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.annotators.learned.features import Looked, look
from leeward.notes.annotators.learned.linear import LinearAnnotator
from leeward.notes.spans import Annotator

NAMES = ("svm", "crf")

__all__ = ["NAMES", "LinearAnnotator", "Looked", "load", "look", "shipped"]


def shipped() -> Path:
    """The folder of the models that come with Leeward; `README.md` there says how they were made."""
    return Path(str(resources.files("leeward.notes") / "models"))


@cache
def load(name: str, folder: Path | None = None, dictionary: Annotator | None = None) -> LinearAnnotator:
    """A learned annotator, `svm` or `crf`.

    Parameters
    ----------
    folder
        Where `leeward notes train` wrote; the shipped models by default.
    dictionary
        Whose hits are features: the project's own by default, which the shipped models were trained with. Whoever
        runs a dictionary anyway calls `annotate_with(text, its_spans)`, or `look` once and `annotate_looked` for both.

    Raises BadInput for an unknown name or a file that is no model.
    """
    if name not in NAMES:
        raise BadInput(f"there is no learned annotator {name!r}; there are {' and '.join(NAMES)}.")
    from leeward.notes.annotators.learned import crf, svm

    if dictionary is None:
        dictionary = own_dictionary()
    read = svm.load if name == "svm" else crf.load
    return read(folder or shipped(), dictionary)


@cache
def own_dictionary() -> Annotator:
    """The dictionary of the project's lexicon."""
    from leeward.notes.annotators.dictionary import Dictionary
    from leeward.notes.lexicon.loaders import load as load_lexicon

    return Dictionary(load_lexicon("leeward"))
