"""What a release says that grows batch by batch (docs/methods/refresh.md), beside what its method says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.contracts.contract import Words, texts_of

TEXT = texts_of("versions")

MOST = 60
"""Batches of a line: the batches in which a record showed are the bits of a number."""

UNITS = {"apart": "patient in each batch", "kept": "patient"}
"""What the guarantee is about: where a returning patient gets a new record, patient and batch."""


def of_versions(words: Words, manifest: Mapping[str, Any]) -> Words:
    """The words of a method for a release whose manifest has `versions`; unchanged for any other."""
    if "versions" not in manifest:
        return words
    kept = manifest["returning"] == "kept"
    attacker, limits = (TEXT.kept, TEXT.limits_kept) if kept else (TEXT.apart, TEXT.limits_apart)
    return replace(
        words,
        attacker=words.attacker.rstrip(".") + ". " + attacker,
        not_protected=(*words.not_protected, *limits),
        readme=words.readme
        + "\n"
        + TEXT.readme.format(version=len(manifest["versions"]))
        + TEXT.numbers[manifest["returning"]],
        unit=UNITS[manifest["returning"]],
    )
