"""Normalisation of codes: only the distinct ones, so a big file costs no more than a small one; and which
classification of diagnoses they are of, unless the caller says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from leeward.arrays import Bools, Int32s, Int64s, UInt32s, count_noun
from leeward.cohort.notices import Notice
from leeward.cohort.readers.values import NO_VALUE_TEXTS
from leeward.errors import BadInput

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
        "icd": ("icd", "icd9,icd10", "icd9+icd10"),
        "icd-undotted": ("icd-undotted",),
        "none": ("none",),
    }.items()
    for name in names
}
"""How files name the vocabularies, in lower case."""

ICD_NAMES = ("icd9", "icd10", "icd", "icd-undotted")
"""The classifications of diagnoses."""


@dataclass(frozen=True)
class Rules:
    name: str | None
    """What the cohort's `vocabulary` becomes."""
    title: str
    """What messages call it."""
    clean: Callable[[str], tuple[str | None, bool]]
    """Text to (standard writing or None where it has not the form of a code, whether zeros were put back)."""
    known: Callable[[str], bool]
    """Whether a code in standard writing is of the vocabulary."""


def rules_of(vocabulary: str) -> Rules:
    """The rules of 'icd9', 'icd10', 'icd' (or another of their names), 'none', or of a hierarchy file `node,parent`."""
    from leeward.vocabulary import user_tree
    from leeward.vocabulary.omop import BY_CODE, is_concept_ancestor

    name = VOCABULARY_NAMES.get(vocabulary.strip().lower())
    if name == "none":
        return AS_WRITTEN
    if name is not None:
        from leeward.vocabulary.icd import BY_NAME

        icd = BY_NAME[name]
        return Rules(name, icd.name, icd.clean, icd.is_known)
    open_to_all = vocabulary.strip().lower()
    tree = Path(vocabulary.removesuffix(BY_CODE))
    if open_to_all == "flat" or user_tree(open_to_all) is not None or is_concept_ancestor(tree):
        return replace(AS_WRITTEN, name=vocabulary, title=Path(vocabulary).name)
    if not Path(vocabulary).suffix:
        raise BadInput(
            f"No vocabulary '{vocabulary}': give icd9, icd10, icd (both), flat, none, one that was added (`leeward "
            "vocabulary list`), or a file with the columns node,parent (CSV)."
        )
    from leeward.vocabulary import Hierarchy

    leaves = frozenset(Hierarchy.from_csv(vocabulary).leaf_labels())
    return replace(AS_WRITTEN, name=vocabulary, title=Path(vocabulary).name, known=leaves.__contains__)


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
    joined: Bools
    vocabulary: str | None = None
    title: str = "its vocabulary"
    guess: Notice | None = None
    others: str = ""
    """What the unknown codes may be, for a message."""

    @staticmethod
    def by(rules: Rules, texts: Sequence[str]) -> Normalised:
        """All texts by the rules of one vocabulary; what has not the form of a code stays as written."""
        return Normalised.by_each([rules] * len(texts), texts)

    @staticmethod
    def by_each(rules: Sequence[Rules], texts: Sequence[str]) -> Normalised:
        codes: list[str] = []
        unknown, restored, joined = np.zeros((3, len(texts)), np.bool_)
        for i, (rule, text) in enumerate(zip(rules, texts, strict=True)):
            standard, zeros = rule.clean(text)
            if standard is not None and rule.known(standard):
                restored[i] = zeros
                codes.append(standard)
            else:
                unknown[i], joined[i] = True, _joins(text, rule)
                codes.append(as_written(text))
        names = {rule.name for rule in rules}
        only = AS_WRITTEN if len(names) != 1 else rules[0]
        if {"icd9", "icd10"} <= names <= {"icd9", "icd10", "icd"}:
            only = rules_of("icd")
        title = "their vocabularies" if len(names) != 1 and only is AS_WRITTEN else only.title
        return Normalised(tuple(codes), unknown, restored, joined, only.name, title)

    def without(self, which: Bools, texts: Sequence[str]) -> Normalised:
        """The same, where the texts of `which` are not recognised either."""
        triples = zip(self.codes, texts, which, strict=True)
        codes = tuple(as_written(text) if out else code for code, text, out in triples)
        return replace(self, codes=codes, unknown=self.unknown | which, restored=self.restored & ~which)

    def as_enum(self, numbers: Int32s) -> pl.Series:
        """The codes of `numbers` as an Enum of the distinct codes, sorted."""
        kind = pl.Enum(sorted(set(self.codes)))
        return pl.Series("code", self.codes, dtype=kind).gather(numbers)

    def notices(
        self, numbers: Int32s, rows: UInt32s, where: str, entries: Int64s | None = None
    ) -> list[Notice]:
        """What was repaired or is unknown, with its rows; `numbers` holds the number of each event's text.

        `where` names the columns of codes. Where only some of the events are at hand, `entries` says how often each of
        the texts occurs.
        """
        found = [self.guess] if self.guess else []
        words = [code.lower() in NO_VALUE_TEXTS for code in self.codes]
        for kind, mask, tell in (
            ("looks missing", np.array(words, np.bool_), self._tell_missing),
            (JOINED_CODES, self.joined, self._tell_joined),
            ("restored leading zeros", self.restored, self._tell_restored),
            (UNKNOWN_CODE, self.unknown & ~self.joined, self._tell_unknown),
        ):
            if mask.any():
                at = rows[mask[numbers]]
                hits = len(at) if entries is None else int(entries[mask].sum())
                codes = sorted({self.codes[i] for i in np.flatnonzero(mask)})
                found.append(Notice.of_rows(kind, tell(hits, codes, where), at, hits))
        return found

    def _tell_missing(self, hits: int, words: Sequence[str], where: str) -> str:
        """Of codes that are what tables write where there is none; the words are ours, not a patient's."""
        quoted = ", ".join(f"'{word}'" for word in words)
        says, what = ("entry says", "a code") if hits == 1 else ("entries say", "codes")
        return (
            f"{hits:,} {says} {quoted}, which may mean 'no code' and would be released as {what}: leave out with "
            + " ".join(f"--missing {word!r}" for word in words)
        )

    def _tell_joined(self, hits: int, cells: Sequence[str], where: str) -> str:
        separator = max(SEPARATORS, key="".join(cells).count)
        return (
            f"{count_noun('cell', hits)}{where} {'holds' if hits == 1 else 'hold'} several codes, each of "
            f"which would count as one code: split them with --code-separator '{separator}'"
        )

    def _tell_restored(self, hits: int, codes: Sequence[str], where: str) -> str:
        return f"{_count(hits, codes)} had lost leading zeros, which were restored (8 became 008)"

    def _tell_unknown(self, hits: int, codes: Sequence[str], where: str) -> str:
        formless = ""
        if self.vocabulary in ICD_NAMES:
            from leeward.vocabulary.icd import ICD9CM, ICD10CM

            count = sum(ICD9CM.normalise(code) is None and ICD10CM.normalise(code) is None for code in codes)
            told = f" ({count_noun('code', count)} without the form of a code: slips, or words for 'none')"
            formless = told if count else ""
        return (
            f"{_count(hits, codes)} are not {self.title} codes{formless}: kept as written, and released as "
            f"codes unless repaired or left out (--missing){self.others}"
        )


def _count(hits: int, codes: Sequence[str]) -> str:
    return f"{count_noun('entry', hits, 'entries')} with {count_noun('distinct code', len(codes))}"


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
        return float(self.entries[which].sum() / max(self.entries.sum(), 1))

    def vocabulary(self, texts: Sequence[str]) -> str | None:
        """`icd9`, `icd10`, `icd` or `icd-undotted`; None where the texts are of none."""
        known = self.ninth | self.tenth
        telling = np.array([len(text) >= 4 or not text.isdigit() for text in texts], np.bool_)
        drugs = np.array([bool(ATC.fullmatch(text)) for text in texts], np.bool_)
        count = max(int(known.sum()), 1)
        recognised = (
            known.mean() >= SHARE_DISTINCT,
            self.share(known) >= SHARE_RECOGNISED,
            (known & ~self.restored).sum() >= SHARE_INTACT * count,
            (known & telling & ~self.restored).sum() >= SHARE_TELLING * count,
            drugs.sum() <= count / 2,
        )
        if not all(recognised):
            return None
        ninth, tenth = self.share(self.ninth & ~self.tenth), self.share(self.surely_tenth)
        if min(ninth, tenth) >= SHARE_OF_BOTH * self.share(known):
            return self.of_both(texts)
        return "icd9" if ninth >= tenth else "icd10"

    def of_both(self, texts: Sequence[str]) -> str:
        """The vocabulary of a source with codes of both: whether its E codes without a dot can be told apart."""
        tenth = np.flatnonzero(self.tenth & ~self.ninth).tolist()
        long = ["." in texts[i] for i in tenth if len(texts[i]) > 3]
        return (
            "icd"
            if not self.either.any() or sum(long) >= max(SHARE_DOTTED * len(long), 1)
            else "icd-undotted"
        )


SHARE_LOOKS = 0.5
"""A notice says that a vocabulary could be named when at least this share of the entries is of one."""

UNKNOWN_CODE = "unknown code"
"""The kind of the notice that counts entries which are not of the vocabulary."""

SHARE_UNKNOWN = 0.05
"""More unrecognised entries than this share are an error, unless they are accepted."""

JOINED_CODES = "several codes in a cell"
"""The kind of the notice that counts cells whose parts are codes."""

FEW_JOINED = 5
"""More such cells are an error, unless unrecognised entries are accepted."""

SEPARATORS = ",;|"
"""What tables write between several codes in a cell."""


def _parts(text: str) -> list[str]:
    return [part for each in re.split(f"[{SEPARATORS}]", text) if (part := each.strip())]


def _joins(text: str, rules: Rules) -> bool:
    """Whether a text is several codes: of the rules' vocabulary, for ICD of either classification."""
    rules = rules_of("icd") if rules.name in ICD_NAMES else rules
    parts = _parts(text)
    return len(parts) > 1 and all(
        code is not None and rules.known(code) for code, _ in map(rules.clean, parts)
    )


def _find_several_codes(texts: Sequence[str], entries: Int64s) -> Bools:
    """Which texts are several codes, where the source is of a classification of diagnoses once they are read apart."""
    none = np.zeros(len(texts), np.bool_)
    if not any(sign in text for text in texts for sign in SEPARATORS):
        return none
    counts: Counter[str] = Counter()
    for text, count in zip(texts, entries, strict=True):
        counts.update(dict.fromkeys(_parts(text), int(count)))
    distinct = list(counts)
    if Seen.of(distinct, np.array(list(counts.values()), np.int64)).vocabulary(distinct) is None:
        return none
    return np.array([_joins(text, rules_of("icd")) for text in texts], np.bool_)


def normalise(texts: Sequence[str], vocabulary: str | None, entries: Int64s | None = None) -> Normalised:
    """Codes as the vocabulary writes them (`rules_of`; None recognises ICD). `entries`: occurrences of each text."""
    counts = np.ones(len(texts), np.int64) if entries is None else entries
    named = vocabulary if vocabulary is None else VOCABULARY_NAMES.get(vocabulary.strip().lower(), vocabulary)
    if named not in (None, "icd9", "icd10", "icd"):
        return Normalised.by(rules_of(str(named)), texts)
    seen = Seen.of(texts, counts)
    found = seen.vocabulary(texts) if named is None else named
    if found is None:
        joined = _find_several_codes(texts, counts)
        return replace(Normalised.by(AS_WRITTEN, texts), guess=_likeness_notice(seen), joined=joined)
    if named == "icd":
        found = seen.of_both(texts)
    normalised = Normalised.by(rules_of(found), texts)
    if found == "icd9" and seen.share(seen.surely_tenth) >= SHARE_OF_BOTH:
        normalised = normalised.without(seen.either, texts)  # beside ICD-10 codes, E876 may be E87.6
    if named is None:
        normalised = replace(normalised, guess=_recognition_notice(normalised, seen))
    return replace(normalised, others=_others(found, seen))


def _recognition_notice(normalised: Normalised, seen: Seen) -> Notice:
    total = int(seen.entries.sum())
    if normalised.vocabulary in ("icd", "icd-undotted"):
        known = ~normalised.unknown
        parts = [
            (seen.ninth & known, "ICD-9-CM codes"),
            (seen.tenth & ~seen.ninth & known, "ICD-10-CM codes"),
            (~known, "neither"),
        ]
        split = ", ".join(f"{100 * seen.share(mask):.1f} % {what}" for mask, what in parts if mask.any())
        message = (
            f"{total:,} entries: {split}; each is read in its own vocabulary (name the vocabulary to be sure)"
        )
        if normalised.vocabulary == "icd-undotted":
            unclear = int(seen.entries[seen.either].sum())
            message += (
                f"; {unclear:,} entries such as E876 could be either and are kept as written: give the "
                f"column with their vocabulary (--vocabulary-column)"
            )
    else:
        count = int((~normalised.unknown).sum())
        message = (
            f"{count:,} of {len(normalised.codes):,} distinct codes are {normalised.title} codes, so all "
            f"are read as such (name the vocabulary to be sure)"
        )
    return Notice("vocabulary recognised", message, len(normalised.codes))


def _likeness_notice(seen: Seen) -> Notice | None:
    share = seen.share((seen.ninth & ~seen.restored) | seen.tenth)
    if share < SHARE_LOOKS:
        return None
    message = (
        f"{100 * share:.0f} % of the entries look like ICD codes, too few to read them as such: all are "
        f"kept as written; if they are ICD codes, name the vocabulary (icd9, icd10, icd)"
    )
    return Notice("vocabulary not recognised", message, int(seen.entries.sum()))


def _others(found: str, seen: Seen) -> str:
    """What the unrecognised entries may be, for a message; empty where nothing can be said."""
    other, name = (
        (seen.tenth & ~seen.ninth, "ICD-10-CM") if found == "icd9" else (seen.ninth & ~seen.tenth, "ICD-9-CM")
    )
    share = seen.share(other) if found in ("icd9", "icd10") else 0.0
    if found == "icd-undotted":
        return "; E codes without a dot may be either: give the column with their vocabulary (--vocabulary-column)"
    return f"; {100 * share:.0f} % look like {name}: read both with --vocabulary icd" if share >= 0.01 else ""
