"""Normalisation of codes: only the distinct ones, so a big file costs no more than a small one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Bools, Int32s, Int64s, UInt32s
from leeward.cohort.cohort import Notice
from leeward.errors import BadInput

NO_CODE = -1
"""The number of a missing code."""

ROWS_KEPT = 1000
"""A notice keeps at most this many row numbers."""

ROWS_SHOWN = 20
"""A message lists at most this many."""

VOCABULARY_NAMES = {
    name: vocabulary
    for vocabulary, names in {
        "icd9": ("icd9", "icd-9", "icd9cm", "icd-9-cm", "9", "09", "9.0", "http://hl7.org/fhir/sid/icd-9-cm"),
        "icd10": (
            "icd10",
            "icd-10",
            "icd10cm",
            "icd-10-cm",
            "10",
            "10.0",
            "http://hl7.org/fhir/sid/icd-10-cm",
        ),
    }.items()
    for name in names
}
"""How files name the vocabularies, in lower case."""


def row_text(rows: Int64s) -> str:
    """'row 4' or 'rows 4, 9, …' for a message."""
    shown = ", ".join(str(row) for row in rows[:ROWS_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > ROWS_SHOWN else ''}"


@dataclass
class CodeNumbers:
    """Numbers the distinct texts of a column in order of appearance, over many batches."""

    missing: frozenset[str]
    texts: list[str] = field(default_factory=list)
    _number_of: dict[str, int] = field(default_factory=dict)

    def number(self, column: pa.Array, name: str, title: str) -> Int32s:
        """The number of each value, NO_CODE where it is null, blank or a text for 'missing'."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = _as_texts(column.dictionary, name, title)
        _refuse_line_breaks(values, name, title)
        table = np.array([*map(self._number, values), NO_CODE], np.int32)
        indices = column.indices
        if indices.null_count:
            indices = indices.fill_null(len(values))
        # By way of Polars: pyarrow's own conversion imports pandas, which costs more than a million rows.
        return table[pl.Series(pl.from_arrow(indices)).to_numpy()]

    def _number(self, value: str | None) -> int:
        text = value.strip() if value is not None else ""
        if not text or text in self.missing:
            return NO_CODE
        number = self._number_of.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def _refuse_line_breaks(values: list[str | None], name: str, title: str) -> None:
    """A value over several lines is what a quote that is never closed makes of the rows after it."""
    if any(value is not None and "\n" in value for value in values):
        raise BadInput(
            f"{name}: a value in column '{title}' goes over several lines; "
            f"look for a quote that is not closed."
        )


def _as_texts(values: pa.Array, name: str, title: str) -> list[str | None]:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return values.to_pylist()
    if pa.types.is_integer(kind):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if pa.types.is_null(kind):
        return [None] * len(values)
    if pa.types.is_floating(kind):
        numbers = [None if v is None or v != v else v for v in values.to_pylist()]
        if all(v is None or v.is_integer() for v in numbers):
            return [None if v is None else str(int(v)) for v in numbers]
        raise BadInput(
            f"{name}: column '{title}' holds codes as decimal numbers, where 250.1 and 250.10 are the same; "
            f"store them as text."
        )
    raise BadInput(f"{name}: column '{title}' holds {kind}, not codes; codes are text or whole numbers.")


@dataclass(frozen=True)
class Rules:
    """How one vocabulary writes its codes."""

    name: str | None
    """What the cohort's `vocabulary` becomes."""
    title: str
    """What messages call it."""
    clean: Callable[[str], tuple[str | None, bool]]
    """Text to (standard writing or None where it has not the form of a code, whether zeros were put back)."""
    known: Callable[[str], bool]
    """Whether a code in standard writing is of the vocabulary."""


def rules_of(vocabulary: str) -> Rules:
    """The rules of 'icd9', 'icd10' (or another of their names) or of a hierarchy file `node,parent`."""
    name = VOCABULARY_NAMES.get(vocabulary.strip().lower())
    if name == "icd9":
        from leeward.vocabulary.icd9cm import ICD9CM

        return Rules(name, ICD9CM.name, ICD9CM.clean, ICD9CM.is_known)
    if name == "icd10":
        from leeward.vocabulary.icd10cm import ICD10CM

        return Rules(name, ICD10CM.name, ICD10CM.clean, ICD10CM.is_known)
    if not Path(vocabulary).suffix:
        raise BadInput(
            f"No vocabulary '{vocabulary}': give icd9, icd10 or a file of the form node,parent (CSV)."
        )
    from leeward.vocabulary import Hierarchy

    leaves = frozenset(Hierarchy.from_csv(vocabulary).leaf_labels())
    return Rules(
        vocabulary, Path(vocabulary).name, lambda text: (as_written(text), False), leaves.__contains__
    )


def as_written(text: str) -> str:
    """The code without outer blanks and with single blanks inside."""
    return " ".join(text.split())


AS_WRITTEN = Rules(None, "any vocabulary", lambda text: (as_written(text), False), lambda code: True)
"""Codes of no vocabulary that we know: taken as they are."""


@dataclass(frozen=True)
class Normalised:
    """The standard code of each distinct source text, and what was found on the way."""

    codes: tuple[str, ...]
    unknown: Bools
    restored: Bools
    vocabulary: str | None = None
    title: str = "its vocabulary"
    guess: Notice | None = None

    @staticmethod
    def by(rules: Rules, texts: Sequence[str]) -> Normalised:
        """All texts by the rules of one vocabulary; what has not the form of a code stays as written."""
        return Normalised.by_each([rules] * len(texts), texts)

    @staticmethod
    def by_each(rules: Sequence[Rules], texts: Sequence[str]) -> Normalised:
        """Each text by its own rules."""
        codes: list[str] = []
        unknown = np.zeros(len(texts), np.bool_)
        restored = np.zeros(len(texts), np.bool_)
        for i, (rule, text) in enumerate(zip(rules, texts, strict=True)):
            standard, restored[i] = rule.clean(text)
            codes.append(standard if standard is not None else as_written(text))
            unknown[i] = standard is None or not rule.known(standard)
        names = {rule.name for rule in rules}
        only = rules[0] if len(names) == 1 else None
        return Normalised(
            tuple(codes),
            unknown,
            restored,
            only.name if only else None,
            only.title if only else "their vocabularies",
        )

    def as_enum(self, numbers: Int32s) -> pl.Series:
        """The codes of `numbers` as an Enum of the distinct codes, sorted."""
        kind = pl.Enum(sorted(set(self.codes)))
        return pl.Series("code", self.codes, dtype=kind).gather(numbers)

    def notices(self, numbers: Int32s, rows: UInt32s) -> list[Notice]:
        """What was repaired or is unknown, with its rows; `numbers` holds the number of each event's text."""
        found = [self.guess] if self.guess else []
        for kind, mask, what in (
            (
                "restored leading zeros",
                self.restored,
                "had lost leading zeros, which were put back (8 became 008)",
            ),
            ("unknown code", self.unknown, f"are not of {self.title}: kept as written"),
        ):
            if mask.any():
                at = rows[mask[numbers]]
                distinct = len({code for code, hit in zip(self.codes, mask, strict=True) if hit})
                message = f"{len(at):,} entries with {distinct:,} distinct codes {what}"
                found.append(Notice(kind, message, len(at), tuple(int(row) for row in at[:ROWS_KEPT])))
        return found


SHARE_KNOWN = 0.95
"""A vocabulary is recognised when at least this share of the distinct codes is of it."""

SHARE_INTACT = 0.75
"""… and at least this share without putting leading zeros back."""

SHARE_TELLING = 0.02
"""… and at least this share has four or more characters or a letter: numbers such as 1 … 999 tell nothing."""


def normalise(texts: Sequence[str], vocabulary: str | None) -> Normalised:
    """Codes in the standard writing of 'icd9', 'icd10' or a hierarchy file; None recognises the first two."""
    if vocabulary is not None:
        return Normalised.by(rules_of(vocabulary), texts)
    for name in ("icd9", "icd10"):
        rules = rules_of(name)
        tried = Normalised.by(rules, texts)
        known = ~tried.unknown
        telling = np.array([len(text) >= 4 or not text.isdigit() for text in texts], np.bool_)
        if (
            known.mean() >= SHARE_KNOWN
            and (known & ~tried.restored).mean() >= SHARE_INTACT
            and (known & telling & ~tried.restored).mean() >= SHARE_TELLING
        ):
            message = (
                f"{int(known.sum()):,} of {len(texts):,} distinct codes are of {rules.title}, "
                f"so all are read as such (name the vocabulary to be sure)"
            )
            return replace(tried, guess=Notice("vocabulary recognised", message, len(texts)))
    return Normalised.by(AS_WRITTEN, texts)
