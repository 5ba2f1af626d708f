"""Annotators that learned from annotated notes: a support vector machine and a conditional random field."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.annotators.dictionary import load as load_dictionary
from leeward.notes.annotators.learned.features import Looked, look
from leeward.notes.annotators.learned.linear import LinearAnnotator
from leeward.notes.spans import Annotator
from leeward.version import __version__

NAMES = ("svm", "crf")

FORMAT = 2
"""Format of a folder of models; a card without one is of format 1, which has no digests."""

CARD = "model.json"
"""Provenance of the models, and under `sha256` the digests of their files."""

__all__ = ["CARD", "NAMES", "LinearAnnotator", "Looked", "load", "look", "model_folder", "require_whole"]


def model_folder() -> Path:
    """The folder of the models that come with Leeward; `README.md` there says how they were made."""
    return Path(str(resources.files("leeward.notes") / "models"))


@cache
def load(name: str, folder: Path | None = None, dictionary: Annotator | None = None) -> LinearAnnotator:
    """A learned annotator, `svm` or `crf`, of the `folder` that `leeward notes train` wrote (default: shipped). Hits of
    the `dictionary` are features: the project's own by default, which the shipped models were trained with. Raises
    BadInput for an unknown name or a file that is no model."""
    if name not in NAMES:
        raise BadInput(f"there is no learned annotator {name!r}; there are {' and '.join(NAMES)}.")
    from leeward.notes.annotators.learned import crf, svm

    folder = folder or model_folder()
    file, load_model = (svm.FILE, svm.load) if name == "svm" else (crf.FILE, crf.load)
    require_whole(folder / file)
    return load_model(folder, dictionary or load_dictionary("leeward"))


def require_whole(file: Path) -> None:
    """Raise BadInput when a model's file does not match its card: CRFsuite ends the process on a damaged one."""
    if not file.is_file():
        raise BadInput(f"{file}: no such file; train a model with `leeward notes train`.")
    card = file.with_name(CARD)
    try:
        content = dict(json.loads(card.read_text(encoding="utf-8")))
        found, made_by = content.get("format", 1), content.get("leeward")
        known = content["sha256"][file.name] if found == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise BadInput(
            f"{card}: names no SHA-256 of {file.name}: it is missing or damaged; train the models again with `leeward "
            "notes train`."
        ) from None
    if found != FORMAT:
        raise BadInput(
            f"{card}: Leeward {made_by} made these models in format {found}; this is Leeward {__version__}, which "
            f"reads format {FORMAT}: train them again with `leeward notes train`."
        )
    if hashlib.sha256(file.read_bytes()).hexdigest() != known:
        raise BadInput(
            f"{file}: is not the file that {CARD} names; copy the folder again, or train the models again."
        )
