"""Identifying numbers and codes: records, accounts, plans, licences, vehicles, devices, and others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from leeward.notes.annotators.rules.patterns import Rule, count_digits, find_all, is_free, mark
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
_HASH = re.compile(r"#\s?(\d{4,})")
_IMAGE = re.compile(r"[\w-]+\.(?:jpe?g|png|gif|tiff?|heic|bmp|dcm)\b", re.IGNORECASE)
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


def find(text: str, low: str, fields: Sequence[Label]) -> Iterator[Span]:
    yield from SSN_RULE.find(text, low)
    yield from _in_fields(text, fields)
    yield from _after_words(text, low)
    yield from find_all(RULES, text, low)


def _in_fields(text: str, fields: Sequence[Label]) -> Iterator[Span]:
    for field in fields:
        likeness = field.meaning in ("biometric", "photo")
        if not likeness and field.meaning not in NUMBERS:
            continue
        end = line_end(text, field.value, field.end)
        at = field.value + len(text[field.value : end]) - len(text[field.value : end].lstrip("# ("))
        matches = (pattern.match(text, at, end) for pattern in (_SPACED, _CODE, _TOKEN))
        match = next(filter(None, matches), None)
        if match and (likeness or count_digits(match.group())):
            yield mark(*match.span(), field.meaning)


def _after_words(text: str, low: str) -> Iterator[Span]:
    for word in _ALL.finditer(low):
        joined = _JOIN.match(low, word.end())
        match = joined and _CODE.match(text, joined.end())
        if joined and match and _is_code_of(text, word.group(), match, bool(joined["sure"].strip(" ("))):
            yield mark(*match.span(), WORDS[word.group()])


def _is_code_of(text: str, word: str, match: re.Match[str], sure: bool) -> bool:
    """Whether the text after a word is its code, not a measurement."""
    code = match.group()
    digits = count_digits(code)
    if word in STRICT and not sure and digits < (5 if code == code.lower() else 3):
        return False
    if word in ("bed", "room"):
        return digits <= 5 and text[match.end() : match.end() + 1] not in "%/"
    fewest = 6 if "/" in code else 2 if sure else 4
    return digits >= fewest and not _UNIT.match(text, match.end())


def _is_long_number(text: str, match: re.Match[str]) -> bool:
    start, number = match.start(), match.group()
    marked = len(number) >= 7 or text[max(0, start - 1) : start] in "#("
    measured = not is_free(text, start, ".,$") or _UNIT.match(text, match.end())
    return marked and not measured and bool(number.strip("0")) and not number.endswith("000")


def _is_code(text: str, match: re.Match[str]) -> bool:
    start, code = match.start(), match.group()
    formed = code[0].isalpha() or len(code) >= 8 or code[2] == "-"
    return formed and is_free(text, start, "-./+") and not _UNIT.match(text, match.end())


def _is_group(text: str, match: re.Match[str]) -> bool:
    code = match.group()
    digits = count_digits(code)
    return digits >= 7 and is_free(text, match.start(), "-./+") and not _DATED.fullmatch(code)


def _is_ssn(text: str, match: re.Match[str]) -> bool:
    """Whether a number is no part of a longer one; without hyphens it needs `SSN` before it."""
    start = match.start()
    whole = not text[max(0, start - 1) : start].isdigit() and text[max(0, start - 1) : start] != "-"
    return whole and ("-" in match.group() or "ss" in text[max(0, start - 20) : start].lower())


SSN_RULE = Rule("ssn", SSN, ("-", "ss"), fits=_is_ssn)
RULES = (
    Rule("other_id", _LONG, fits=_is_long_number),
    Rule("other_id", _PATTERN, fits=_is_code),
    Rule("other_id", _GROUPS, ("-",), fits=_is_group),
    Rule("vehicle", _VIN, near=re.compile(r"[A-HJ-NPR-Z\d][A-HJ-NPR-Z\d]{16}")),
    Rule("other_id", _HASH, ("#",)),
    Rule("photo", _IMAGE, (".jp", ".png", ".gif", ".tif", ".heic", ".bmp", ".dcm")),
    Rule("photo", _PHOTO, ("photo", "face", "shot", "selfie", "portrait", "picture"), low=True),
    Rule("biometric", _BIOMETRIC, ("print", "recognition", "biometric", "iris", "retina"), low=True),
)
