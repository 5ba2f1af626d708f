"""Presidio's answer to some texts: run by `study_notes.py` with an interpreter that has presidio-analyzer.

Reads JSON lines (a text each) from standard input and writes a JSON list of `[start, end, entity, score]` a line.
spaCy is a blank English pipeline: no statistical model, so Presidio's own recognizers (patterns, checksums, context
words) are what is compared, as in a hospital where models may not be downloaded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine


class Blank(NlpEngine):  # type: ignore[misc]  # presidio is not installed where the project is checked
    """spaCy's blank English pipeline: tokens and nothing else."""

    def __init__(self) -> None:
        self.nlp = spacy.blank("en")

    def load(self) -> None:
        """Nothing to load."""

    def is_loaded(self) -> bool:
        return True

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        doc = self.nlp(text)
        words = [token.text.lower() for token in doc]
        return NlpArtifacts([], doc, [token.idx for token in doc], words, self, language, [])

    def process_batch(self, texts: Any, language: str, **kwargs: Any) -> Any:
        return ((text, self.process_text(text, language)) for text in texts)

    def is_stopword(self, word: str, language: str) -> bool:
        return bool(self.nlp.vocab[word].is_stop)

    def is_punct(self, word: str, language: str) -> bool:
        return bool(self.nlp.vocab[word].is_punct)

    def get_supported_entities(self) -> list[str]:
        return []

    def get_supported_languages(self) -> list[str]:
        return ["en"]


def main() -> None:
    analyzer = AnalyzerEngine(nlp_engine=Blank(), supported_languages=["en"])
    for line in sys.stdin:
        found = analyzer.analyze(json.loads(line), language="en")
        answer = [[one.start, one.end, one.entity_type, one.score] for one in found]
        sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
