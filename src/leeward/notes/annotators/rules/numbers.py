"""Identifying numbers and codes: records, accounts, plans, licences, vehicles, devices, and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from leeward.notes.annotators.rules import hints
from leeward.notes.annotators.rules.words import NUMBERS, words
from leeward.notes.field_labels import Label, line_end
from leeward.notes.spans import Span

# Patterns for whole texts begin with a character set, to which the engine skips; `\d{1,3}` is none.
SSN = re.compile(r"[\dXx*](?:(?<=\d)\d\d(?:-\d\d-| \d\d )\d{4}|(?<!\d)[Xx*]{2}-[Xx*]{2}-\d{4})(?![\d-])")

_WORDS = {
    "record_number": """mrn, medical record, med rec, record number, record no, record #, chart number, chart no,
        chart #, unit number, unit no, hospital number, hospital no, patient id, patient number, patient #, nhs, mr#,
        mr #""",
    "ssn": "ssn, social security",
    "account_number": "account, acct, billing number, invoice, claim, card number, credit card",
    "plan_number": """member, policy, subscriber, group number, group #, insurance, health plan, beneficiary,
        medicare, medicaid, hicn""",
    "licence_number": "license, licence, dea, npi, certificate, certification, passport, dl#",
    "vehicle": "vin, plate, license plate, licence plate, vehicle",
    "device": "serial, s/n, sn#, device, pacemaker, implant, pump, lot, model, udi",
    "biometric": """fingerprint, voiceprint, voice print, retinal scan, retina scan, iris scan, biometric, palm print,
        facial recognition, face recognition, dna profile""",
    "photo": "photo, headshot, image file",
    "other_id": """accession, specimen, case, encounter, visit number, visit id, study id, subject, participant,
        protocol, trial, reference, confirmation, order, requisition, badge, employee, student, military, job,
        dictation, labelled, labeled, identifier, identification, id""",
    "address": "bed, room",
}
WORDS = {" ".join(word.split()): meaning for meaning, listed in _WORDS.items() for word in listed.split(",")}
"""Word of running text (lower case) -> category of a number after it."""

STRICT = words(
    """account member policy insurance medicare medicaid vehicle device pacemaker implant pump model case encounter
    subject participant protocol trial reference confirmation order claim photo bed room lot license licence
    certification certificate dea student employee military job specimen plate"""
) | {"health plan", "license plate", "licence plate"}
"""Words that are common without a number: they need `number`, `#`, `ID` or a colon, or a code that looks like one."""

_BY_LETTER = {
    letter: sorted((w for w in WORDS if w[0] == letter), key=len, reverse=True)
    for letter in {w[0] for w in WORDS}
}
_ALL = re.compile(
    r"\b(?:"
    + "|".join(
        f"{c}(?:{'|'.join(re.escape(w[1:]) for w in words)})" for c, words in sorted(_BY_LETTER.items())
    )
    + r")(?![a-rt-z])"
)
_JOIN = re.compile(
    r"s?(?P<sure>(?:\s*(?:\((?!\d{3}\))|numbers?\b|num\b\.?|no\b\.?|nr\b\.?|id\b|identifiers?\b|code\b"
    r"|ending in\b|last (?:4|four)"
    r"(?: digits)?\b|profile\b|template\b|hash\b|plate\b|file\b|card\b|reference\b|scan\b|serial\b|ref\b\.?"
    r"|sn\b|#|:|=))*)"
    r"\s*(?:(?:is|was|of|as|are)\s+)?\s*[#:]?\s*"
)
_CODE = re.compile(
    r"[A-Za-z]{0,6}[-_/.]?(?:[A-Za-z]{0,4}[-_]?)?\d[A-Za-z\d]*(?:[-_/. ]?[A-Za-z]{0,4}\d[A-Za-z\d]*"
    r"|[-_/][A-Za-z\d]+)*"
)
_SPACED = re.compile(r"[A-Z]{1,4} \d{4,}")
_TOKEN = re.compile(r"[A-Za-z\d][\w/-]*")
_UNIT = re.compile(
    r"\s*(?:mg|mcg|ml|cm|mm|kg|g\b|units?|iu|%|bpm|mmhg|/\d|years?|yrs?|days?|weeks?|months?|hours?|hrs?|minutes?|"
    r"times|x\b|k\b|cc|cells|steps|calories|kcal|lbs?|dollars|copies)",
    re.IGNORECASE,
)
_LONG = re.compile(r"\d\d{5,}")
_PATTERN = re.compile(
    r"[A-Z\d](?:(?<=[A-Z])(?:[A-Z]{0,3}[-:]?\d{2}[-:]\d{3,7}|[A-Z]{1,4}[-#]?\d{5,12}|[A-Z]{0,2}\d{6,12})"
    r"|(?<=\d)\d{1,3}-\d{4,8})\b"
)
_GROUPS = re.compile(r"\d\d{1,3}(?:-(?:[A-Z]|\d{2,6})){1,3}-\d{2,6}(?![\w-])")
_DATED = re.compile(r"(?:19|20)\d\d-\d\d-\d\d|\d\d-\d\d-(?:19|20)\d\d")
_VIN = re.compile(r"\b(?=[A-HJ-NPR-Z\d]*\d)(?=[A-HJ-NPR-Z\d]*[A-HJ-NPR-Z])[A-HJ-NPR-Z\d]{17}\b")
_LONG_CODE = re.compile(r"[A-HJ-NPR-Z\d][A-HJ-NPR-Z\d]{16}")
_HASH = re.compile(r"#\s?(\d{4,})")
_IMAGE = re.compile(r"[\w-]+\.(?:jpe?g|png|gif|tiff?|heic|bmp|dcm)\b", re.IGNORECASE)
_IMAGES = (".jp", ".png", ".gif", ".tif", ".heic", ".bmp", ".dcm")
_PHOTO = re.compile(
    r"\b(?:full[- ]face\s+)?(?:photo(?:graph)?s?|headshots?|portraits?|selfies?|picture id"
    r"|photo id)\s+(?:of (?:the |his |her )?"
    r"(?:patient|face)|on file|id\b|attached|in (?:the )?chart)|\bfull[- ]face (?:photo(?:graph)?s?|images?"
    r"|pictures?)"
)
_BIOMETRIC = re.compile(
    r"\b(?:fingerprints?|finger prints?|voice ?prints?|palm ?prints?|(?:retinal?"
    r"|iris) (?:scan )?(?:identification|id|template)"
    r"|facial recognition|face recognition|biometric (?:identifiers?|id|data|template|scan))\b"
)


_RAREST = {
    word: next((part for part in parts if part in ("number", "id", "file", "n")), parts[0])
    for word in WORDS
    if (parts := re.findall("[a-z]+", word))
} | {"patient #": "#"}
"""Of each of WORDS a word that is in it; of `patient number` the second, as `patient` is in every note."""
_NUMBERED = re.compile(rf"(?:{'|'.join(sorted(map(re.escape, set(_RAREST.values()))))})(?![a-rt-z])")
SAYS_NUMBER = hints.hint(lambda _, small: _NUMBERED.match(small), "#")
SAYS_IMAGE = hints.word_hint(("jpg", "jpeg", "png", "gif", "tif", "tiff", "heic", "bmp", "dcm"))
SAYS_PHOTO = hints.parts(("photo", "face", "shot", "selfie", "portrait", "picture"))
SAYS_BODY = hints.parts(("print", "recognition", "biometric", "iris", "retina"))


def find(text: str, low: str, fields: Sequence[Label], said: int = hints.EVERY) -> Iterator[Span]:
    """Spans of numbers and codes."""
    if said & hints.FOUR_FIGURES and ("-" in text or "ss" in low):
        for match in SSN.finditer(text):
            start = match.start()
            inside = start > 0 and (text[start - 1].isdigit() or text[start - 1] == "-")
            if not inside and ("-" in match.group() or "ss" in low[max(0, start - 20) : start]):
                yield Span(*match.span(), "EID", "ssn", source="rules")
    yield from _in_fields(text, fields)
    if said & hints.FIGURE:
        if said & SAYS_NUMBER:
            yield from _after_words(text, low)
        yield from _by_form(text, said)
    yield from _likenesses(text, low, said)


def _in_fields(text: str, fields: Sequence[Label]) -> Iterator[Span]:
    for field in fields:
        if field.meaning in NUMBERS or field.meaning in ("biometric", "photo"):
            end = line_end(text, field.value, field.end)
            at = field.value
            while at < end and text[at] in "# (":
                at += 1
            match = _SPACED.match(text, at, end) or _CODE.match(text, at, end) or _TOKEN.match(text, at, end)
            if match and (any(c.isdigit() for c in match.group()) or field.meaning in ("biometric", "photo")):
                yield Span(*match.span(), "EID", field.meaning, source="rules")


def _after_words(text: str, low: str) -> Iterator[Span]:
    for word in _ALL.finditer(low):
        joined = _JOIN.match(low, word.end())
        if joined is None:
            continue
        match = _CODE.match(text, joined.end())
        if match is None:
            continue
        sure = bool(joined.group("sure").strip(" ("))
        if _is_code_of(text, word.group(), match, sure):
            yield Span(*match.span(), "EID", WORDS[word.group()], source="rules")


def _is_code_of(text: str, word: str, match: re.Match[str], sure: bool) -> bool:
    """Whether the text after a word is its code, not a measurement."""
    code = match.group()
    digits = sum(c.isdigit() for c in code)
    looks_like_one = digits >= 5 or (digits >= 3 and any(c.isupper() for c in code))
    if word in STRICT and not sure and not looks_like_one:
        return False
    if word in ("bed", "room"):
        return digits <= 5 and text[match.end() : match.end() + 1] not in "%/"
    fewest = 6 if "/" in code else 2 if sure else 4
    return digits >= fewest and not _UNIT.match(text, match.end())


def _is_free(text: str, start: int, signs: str) -> bool:
    """Whether no letter, figure or one of these signs is before a place."""
    return start == 0 or not (text[start - 1].isalnum() or text[start - 1] in signs)


def _is_long_number(text: str, match: re.Match[str]) -> bool:
    start, number = match.start(), match.group()
    marked = len(number) >= 7 or text[max(0, start - 1) : start] in "#("
    measured = not _is_free(text, start, ".,$") or _UNIT.match(text, match.end())
    return marked and not measured and bool(number.strip("0")) and not number.endswith("000")


def _is_code(text: str, match: re.Match[str]) -> bool:
    start, code = match.start(), match.group()
    formed = code[0].isalpha() or len(code) >= 8 or code[2] == "-"
    return formed and _is_free(text, start, "-./+") and not _UNIT.match(text, match.end())


def _is_group(text: str, match: re.Match[str]) -> bool:
    code = match.group()
    digits = sum(c.isdigit() for c in code)
    return digits >= 7 and _is_free(text, match.start(), "-./+") and not _DATED.fullmatch(code)


def _by_form(text: str, said: int) -> Iterator[Span]:
    """Find codes that do not look like measurements."""
    forms: tuple[tuple[object, re.Pattern[str], str, Callable[[str, re.Match[str]], bool]], ...] = (
        (said & hints.SIX_FIGURES, _LONG, "other_id", _is_long_number),
        (said & hints.THREE_FIGURES, _PATTERN, "other_id", _is_code),
        (text.count("-") > 1, _GROUPS, "other_id", _is_group),
        (_LONG_CODE.search(text), _VIN, "vehicle", lambda text, match: True),
        ("#" in text, _HASH, "other_id", lambda text, match: True),
    )
    for needed, pattern, category, fits in forms:
        for match in pattern.finditer(text) if needed else ():
            if fits(text, match):
                yield Span(*match.span(pattern.groups), "EID", category, source="rules")


def _likenesses(text: str, low: str, said: int) -> Iterator[Span]:
    """Mentions of fingerprints, voices and faces, and names of image files."""
    if said & SAYS_IMAGE and any(end in low for end in _IMAGES):
        for match in _IMAGE.finditer(text):
            yield Span(*match.span(), "EID", "photo", source="rules")
    if said & SAYS_PHOTO:
        for match in _PHOTO.finditer(low):
            yield Span(*match.span(), "EID", "photo", source="rules")
    if said & SAYS_BODY:
        for match in _BIOMETRIC.finditer(low):
            yield Span(*match.span(), "EID", "biometric", source="rules")
