"""What the codes of a source look like: of which classification of diagnoses they are, unless the caller says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leeward.arrays import Bools, Int64s

SHARE_RECOGNISED = 0.75
"""A vocabulary is recognised when at least this share of the entries is of it."""

SHARE_DISTINCT = 1 / 3
"""… and at least this share of the distinct codes, so that a few frequent ones do not decide alone."""

SHARE_INTACT = 0.75
"""… and at least this share of these without putting leading zeros back."""

SHARE_TELLING = 0.02
"""… and at least this share of these has four or more characters or a letter: numbers such as 1 … 999 tell nothing."""

SHARE_OF_BOTH = 0.01
"""Both classifications are there when each has at least this share of the recognised entries to itself."""

SHARE_DOTTED = 0.95
"""Codes of ICD-10-CM are written with dots when at least this share of those longer than a category is."""

ATC = re.compile(r"[A-Z]\d\d[A-Z]{2}\d\d")
"""Codes of drugs, whose beginning looks like ICD-10."""


@dataclass(frozen=True)
class Seen:
    """What the distinct texts of a source look like; one entry a text.

    ninth, tenth : of ICD-9-CM, of ICD-10-CM (by form and category).
    either : an E code without a dot that both have.
    surely_tenth : of ICD-10-CM alone, and no E code without a dot, which a slip makes of one of ICD-9-CM.
    restored : of ICD-9-CM only once leading zeros are put back.
    entries : how many entries have the text.
    """

    ninth: Bools
    tenth: Bools
    either: Bools
    surely_tenth: Bools
    restored: Bools
    entries: Int64s

    @staticmethod
    def of(texts: Sequence[str], entries: Int64s) -> Seen:
        from leeward.vocabulary.icd import ICD9CM, ICD10CM, could_be_either, is_e_without_dot

        cleaned = [ICD9CM.clean(text) for text in texts]
        ninth = np.array([code is not None and ICD9CM.is_known(code) for code, _ in cleaned], np.bool_)
        tenth = np.array([ICD10CM.is_known(text) for text in texts], np.bool_)
        return Seen(
            ninth,
            tenth,
            np.array([could_be_either(text) for text in texts], np.bool_),
            tenth & ~ninth & ~np.array([is_e_without_dot(text) for text in texts], np.bool_),
            np.array([zeros for _, zeros in cleaned], np.bool_),
            entries,
        )

    def share(self, which: Bools) -> float:
        """The share of the entries."""
        return float(self.entries[which].sum() / max(self.entries.sum(), 1))

    def vocabulary(self, texts: Sequence[str]) -> str | None:
        """`icd9`, `icd10`, `icd` or `icd-undotted`; None where the texts are of none."""
        known = self.ninth | self.tenth
        telling = np.array([len(text) >= 4 or not text.isdigit() for text in texts], np.bool_)
        drugs = np.array([bool(ATC.fullmatch(text)) for text in texts], np.bool_)
        count = max(int(known.sum()), 1)
        if (
            known.mean() < SHARE_DISTINCT
            or self.share(known) < SHARE_RECOGNISED
            or (known & ~self.restored).sum() < SHARE_INTACT * count
            or (known & telling & ~self.restored).sum() < SHARE_TELLING * count
            or drugs.sum() > count / 2
        ):
            return None
        ninth, tenth = self.share(self.ninth & ~self.tenth), self.share(self.surely_tenth)
        least = SHARE_OF_BOTH * self.share(known)
        if min(ninth, tenth) >= least:
            return self.both(texts)
        return "icd9" if ninth >= tenth else "icd10"

    def both(self, texts: Sequence[str]) -> str:
        """The vocabulary of a source with codes of both: whether its E codes without a dot can be told apart."""
        long = [
            "." in text
            for text, tenth in zip(texts, self.tenth & ~self.ninth, strict=True)
            if tenth and len(text) > 3
        ]
        return (
            "icd"
            if not self.either.any() or sum(long) >= max(SHARE_DOTTED * len(long), 1)
            else "icd-undotted"
        )
