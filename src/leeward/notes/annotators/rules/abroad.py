"""Foreign addresses, what follows a street, and companies by their legal form.

The forms are those of the countries' postal services: name before number (`Hauptstraße 12`, `Via Roma 3`, `Calle Mayor
8`), number before name (`12 rue de Lille`, `14 Abbey Close`), boxes and military addresses; behind them unit, town and
postal code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leeward.notes.annotators.rules.patterns import Rule, find_all, mark
from leeward.notes.annotators.rules.words import ABBREVIATIONS, REPORT_WORDS, words
from leeward.notes.spans import Span

_CAP = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’.-]*"
_SMALL = r"(?:d[aeio]|del|della|delle|dei|degli|des|dos|las?|les?|los|of|the|am|an|der|den|van|von|zu|y|e|du)"
_PARTICLE = rf"(?:{_SMALL}[ ]|[dl]['’])"
_NAME = rf"(?:{_PARTICLE}){{0,3}}{_CAP}(?:[ ](?:{_PARTICLE}){{0,3}}{_CAP}){{0,4}}"
_NUMBER = r"\d{1,5}(?:\s?(?:[A-Za-z]|bis|ter)\b)?(?:[-/]\d{1,4}[a-z]?)?"

_ENDINGS = (
    "close gardens garden mews grove walk green hill hills rise row park view meadow meadows ridge run path crossing "
    "point cove hollow glen valley heights estate estates station junction esplanade parade quay wharf end bank drove "
    "croft yard gate common cross field fields vale orchard pass bend creek mill mount mountain forest farm freeway "
    "expressway bypass landing lake lakes harbor haven falls ferry ford fork forks key knoll knolls mall mission oval "
    "pines plains port ranch river shore shores spring springs spur stream summit trace track union village vista well "
    "wells stravenue street avenue road boulevard lane drive court way place terrace circle highway parkway square "
    "trail route crescent"
)
_SUFFIX = (
    "straße|strasse|straat|str\\.|weg|gasse|allee|allé|platz|damm|ufer|gade|gata|gatan|gaten|vej|veien|vegen|vägen|"
    "väg|laan|plein|kade|singel|tie|katu|kuja|polku|stræde|stien|bakken|parken|ring|markt|berg|hof|stieg"
)
_BESIDE = (
    "Straße|Strasse|Str\\.|Weg|Gasse|Allee|Platz|utca|út|tér|körút|gade|gata|tie|katu|vei|vej|straat|laan|plein|ulica|"
    "ulice|náměstí|cad\\.|Caddesi|Sokak|sk\\."
)
_PREFIX = (
    "Via|Viale|Piazza|Piazzale|Corso|Largo|Vicolo|Strada|Rue|Boulevard|Chemin|Allée|Impasse|Quai|Cours|Calle|C/|"
    "Avenida|Avda|Av|Plaza|Paseo|Carrera|Camino|Ronda|Rua|Travessa|Praça|Estrada|Bulevardul|Aleea|ul|ulica|Ulica|ulice|"
    "Ulitsa|Al|Aleja|os|Jalan|Jl|Am|An der|An den|Auf der|Auf dem|Im|In der|Unter den|Zum|Zur|Beim|Hinter der|Calea|Trg"
)
_FRENCH = "rue|avenue|boulevard|place|chemin|allée|impasse|quai|route|cours|square|faubourg|via|viale"
_CAPITAL_ENDINGS = "|".join(ending.capitalize() for ending in _ENDINGS.split())
_FORMS = (
    # Hauptstraße 12, Lange Gasse 3a, Kossuth utca 8
    rf"(?:{_CAP}[ -]){{0,3}}[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+(?:{_SUFFIX})[ ]{_NUMBER}",
    rf"{_CAP}(?:[ ]{_CAP}){{0,2}}[ ](?:{_BESIDE})[ ]{_NUMBER}",
    # Via Roma 12, Calle Mayor, 8
    rf"(?:{_PREFIX})\.?[ ]{_NAME},?[ ](?:n[°ºo.]{{1,2}}[ ]?)?{_NUMBER}",
    # 12, rue de Lille
    rf"{_NUMBER},?[ ](?:{_FRENCH})[ ]{_NAME}",
    # 14 Abbey Close
    rf"{_NUMBER}[ ](?:[NSEW]{{1,2}}\.?[ ])?(?:{_CAP}[ ]){{1,4}}?(?:{_CAPITAL_ENDINGS})\b",
)
_ADDRESS = re.compile(rf"(?=[A-ZÀ-ÖØ-ÞĀ-Ž\dou])(?:{'|'.join(f'(?:{form})' for form in _FORMS)})")
"""Quick check of how a form can begin, before any is tried; `ou`: of `os`, `ul`."""
_NEAR = re.compile(
    r"[\w.'’-],?[ ](?:n[°º.]?\s?)?\d{1,5}(?![\d/%]|[.,]\d)|\b\d{1,5}[A-Za-z]?,?[ ]"
    r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž]|rue|av|bou|pla|che|all|imp|qua|rou|cou|via)"
)
_BOXES = "PSC|CMR|RR|HC|Unit|Postfach|Casella [Pp]ostale|Apartado(?: de [Cc]orreos)?|Boîte [Pp]ostale|Caixa [Pp]ostal"
_SHIPS, _POSTS = "USNS|USNV|USS|USCGC", "APO|FPO|DPO"
_BOX = re.compile(
    rf"\b(?:{_BOXES})\s?\d+(?:,?\s+Box\s+\d+)?|\b(?:{_SHIPS})\s[A-Z][a-z]+|\b(?:{_POSTS})[ ,]+(?:AA|AE|AP)\b"
)
_BOX_SIGNS = ("PSC", "CMR", "RR", "HC", "Unit", "Post", "Casella", "Apartado", "Boîte", "Caixa", "US", "PO")
_POSTAL = re.compile(
    r"[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}\b|[A-Z]\d[A-Z]\s?\d[A-Z]\d\b|(?:[A-Z]{1,3}-)?\d{3}\s?\d{2,3}(?:-\d{3,4})?\b|"
    r"(?:[A-Z]{1,3}-)?\d{4,6}(?:-\d{3,4})?(?:\s?[A-Z]{2}\b)?|\d{2}-\d{3}\b"
)
_GB_CA = re.compile(
    r"[A-Z](?<!\w.)(?:[A-Z]?\d[A-Z\d]?\s\d[ABD-HJLNP-UW-Z]{2}|(?<=[ABCEGHJ-NPRSTVXY])\d[A-Z]\s\d[A-Z]\d)\b"
)
_UNIT = re.compile(
    r"(?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|Room|Rm|Bldg|Building|Flat|App|Appartamento|Piso|Studio|Lot|Level|Block)"
    r"\b\.?\s*#?\s*\w*\d[\w-]*|#\s?\w+"
)
_WORD = r"(?:(?:St|Ste|Ft|Mt)\.|[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]*)"
_TOWN = re.compile(rf"{_WORD}(?:(?:[ -]|[ -](?:{_SMALL}|upon|am|sur|on)[ -]){_WORD}){{0,3}}")
_PART = re.compile(r"[ ]*(?:,|\n|\s-\s|[ ])[ ]*")
_LEGAL = (
    r"Ltd|Limited|PLC|Plc|plc|GmbH|AG|S\.A\.S?|SA|SpA|S\.p\.A|S\.?r\.?l|SRL|B\.V|BV|N\.V|NV|AB|A/S|ApS|Oyj?|KG|KGaA|LLP|"
    r"LLC|Inc|Corp|Co|Pty|Bros|Sons|Brothers|Industries|Holdings|Airlines|Enterprises|Technologies|Bank|Motors"
)
_LEGAL_FORM = re.compile("|".join(rf"{form}\b" for form in _LEGAL.split("|")) + rf"|&[ ]{_CAP}")
_JOINT = r"(?:[ ]|[ ](?:&|und|et|y|e)[ ]|[ ]and[ ](?=Sons|Brothers|Co)|, )"
_COMPANY = re.compile(
    rf"{_CAP}(?:{_JOINT}{_CAP}){{0,4}},?[ ](?:{_LEGAL})\b\.?|{_CAP}(?:[ ]{_CAP})?[ ]&[ ]{_CAP}"
)


_SAID_CODE = re.compile(
    r"\b(?i:zip(?:[ -]?code)?|(?:postal|post)[ -]?code)(?: (?i:is|was|of|area|to|for|in|number))*[ :#]*"
    r"((?:[A-Z]{1,3}-?)?\d[\dA-Z]{1,5}(?:[ -](?:\d[\dA-Z]{1,3}|[A-Z]{2}))?)\b"
)
"""`postcode 7412 SL`: whatever form the code has."""


def _firsts(alternatives: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?:^|\|)([^\W\d_]+)", alternatives))


_LETTERS = re.compile(r"[^\W\d_]+")
_STREETS = _firsts(_BESIDE) | _firsts(_FRENCH) | _firsts(_CAPITAL_ENDINGS)
_STREET_ENDS = tuple(_firsts(_SUFFIX) | _firsts(_PREFIX))


def may_have_street(text: str) -> bool:
    """Whether a text has a word that an address needs, for speed."""
    there = set(_LETTERS.findall(text))
    return (
        not _STREETS.isdisjoint(there) or any(word.endswith(_STREET_ENDS) for word in there) or "C/" in text
    )


RULES = (
    Rule("zip", _SAID_CODE, ("zip", "post"), "QID"),
    Rule("zip", _GB_CA, (), "QID"),
    Rule("facility", _COMPANY, fits=lambda _, match: _is_proper(match.group()), near=_LEGAL_FORM),
)


def find(text: str, low: str) -> Iterator[Span]:
    """Spans of addresses (EID), of the towns and postal codes behind them (QID), and of companies (EID)."""
    past = 0
    for near in _NEAR.finditer(text) if may_have_street(text) else ():
        start = _begin(text, near.start(), past)
        match = _ADDRESS.search(text, start, near.end() + 60)
        if match and match.start() <= near.end() and _is_proper(match.group()):
            found = [mark(*match.span(), "address"), *_behind(text, match.end())]
            past = found[-1].end
            yield from found
    for box in _BOX.finditer(text) if any(sign in text for sign in _BOX_SIGNS) else ():
        yield mark(*box.span(), "address")
        yield from _behind(text, box.end())
    yield from find_all(RULES, text, low)


def _begin(text: str, at: int, past: int) -> int:
    """Start of a street's name: up to four words before a place on its line."""
    start = at
    for _ in range(4):
        blank = text.rfind(" ", past, max(past, start - 1))
        line = text.rfind("\n", past, start)
        before = max(blank, line, past - 1)
        if before >= start - 1 or not text[before + 1 : before + 2].isalpha():
            break
        start = before + 1
        if before == line:
            break
    return max(start, past)


def _is_proper(phrase: str) -> bool:
    """Whether a capitalized word is no report word, so that `2 Normal View` is no address."""
    return any(
        word[0].isupper() and len(word) > 2 and word.lower() not in _COMMON
        for word in re.findall(r"[^\W\d_]+", phrase)
    )


_COMMON = REPORT_WORDS | words(f"{_ENDINGS} ltd limited plc gmbh inc corp bank industries llc")


def _behind(text: str, at: int) -> Iterator[Span]:
    """Find what follows a street: unit, town, state, postal code, country, separated by commas or line ends."""
    for _ in range(6):
        part = _PART.match(text, at)
        if part is None:
            return
        if unit := _UNIT.match(text, part.end()):
            yield mark(*unit.span(), "address")
            at = unit.end()
        elif code := _POSTAL.match(text, part.end()):
            yield mark(*code.span(), "zip", "QID")
            at = code.end()
        elif town := _town(text, part):
            yield mark(*town.span(), "place", "QID")
            at = town.end()
        else:
            return


def _town(text: str, part: re.Match[str]) -> re.Match[str] | None:
    """A town or state behind part of an address. A town needs a comma before it, or a postal code on one side."""
    town = _TOWN.match(text, part.end())
    if town is None or town.group() in ABBREVIATIONS:
        return town
    before, after = text[max(0, part.start() - 1) : part.start()], text[town.end() : town.end() + 4]
    apart = part.group().strip(" ") or before.isdigit() or re.match(r",?\s+[A-Z]?\d", after)
    return town if apart and town.group().split()[0].lower() not in REPORT_WORDS else None
