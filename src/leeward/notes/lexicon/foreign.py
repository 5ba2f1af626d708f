"""Lexicons from foreign vocabularies: OMOP, UMLS (RRF), SNOMED CT (RF2) and ontologies in OBO format 1.2 or 1.4.

UMLS comes under the licence of the US National Library of Medicine, SNOMED CT under that of SNOMED International;
Leeward ships neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Concept, Key, Lexicon, Term, text_key
from leeward.notes.lexicon.lists import Names
from leeward.notes.lexicon.tables import load_lexicon, plain_rows, rows
from leeward.vocabulary._text import lines
from leeward.vocabulary.rf2 import FULLY_SPECIFIED, IS_A, SYNONYM, active_rows, component, require_file


@dataclass
class Entry:
    """A vocabulary's concept: one name, any number of synonyms; `rank` 0 comes before 1."""

    kind: str
    name: str
    synonyms: list[str] = field(default_factory=list)
    rank: int = 0


def lexicon(name: str, entries: dict[str, Entry]) -> Lexicon:
    """Build a lexicon from a foreign vocabulary's entries by id, with terms made safe for free text.

    Synonyms of fewer than three letters or digits are left out. An abbreviation in capitals counts in capitals
    only. A single word that is everyday English or a person's name counts only beside another health term,
    unless the project's own lexicon knows it as a plain term. A term shared by several concepts goes to the one
    that has it as its name, then to the lower rank, then to the smaller id. Raises BadInput if nothing is left.
    """
    if not entries:
        raise BadInput(f"{name}: no concept of a kind that notes speak of, or none that is active.")
    doubtful = _everyday_words()
    owner: dict[Key, tuple[int, int, str]] = {}
    for id_, entry in entries.items():
        for place, text in enumerate((entry.name, *entry.synonyms)):
            bid = (min(place, 1), entry.rank, id_)
            key = text_key(text)
            if key not in owner or bid < owner[key]:
                owner[key] = bid
    concepts = []
    for id_, entry in entries.items():
        terms = {entry.name: _guard(entry.name, doubtful)}
        if owner[text_key(entry.name)][2] != id_:
            terms[entry.name] = terms[entry.name]._replace(ambiguous=True)
        for text in entry.synonyms:
            key = text_key(text)
            if owner[key][2] == id_ and sum(map(len, key)) >= 3:
                terms.setdefault(text, _guard(text, doubtful))
        concepts.append(Concept(id_, entry.kind, tuple(terms.values())))
    return Lexicon(name, tuple(concepts))


def _guard(text: str, doubtful: frozenset[str]) -> Term:
    clean = " ".join(text.split())
    key = text_key(clean)
    exact = re.fullmatch(r"[A-Z]{2,5}", clean) is not None
    return Term(clean, exact=exact, ambiguous=not key or (len(key) == 1 and not exact and key[0] in doubtful))


def _everyday_words() -> frozenset[str]:
    names = Names.common()
    own = {
        key[0]
        for concept in load_lexicon().concepts
        for term in concept.terms
        if not term.ambiguous and not term.exact and len(key := text_key(term.text)) == 1
    }
    return (names.ordinary | names.first | names.last) - own


KINDS_OF_DOMAINS = {
    "condition": "disease",
    "drug": "drug",
    "measurement": "test",
    "procedure": "procedure",
    "observation": "finding",
}
ENGLISH = "4180186"
"""OMOP's concept for the language."""


def load_omop(path: Path) -> Lexicon:
    """Read the file, or the folder with both files; ids are concept ids. Concepts that are no longer valid or of other
    domains are left out; a shared term goes to the standard concept. Raises BadInput naming file, row and column."""
    file = next(iter(_files_named(path, "concept.csv")), None) if path.is_dir() else path
    if file is None:
        raise BadInput(f"{path.name}: no CONCEPT.csv in this folder.")
    entries: dict[str, Entry] = {}
    columns = ("concept_id", "concept_name", "domain_id", "standard_concept", "invalid_reason")
    for row, (id_, name, domain, standard, invalid) in rows(file, columns):
        kind = KINDS_OF_DOMAINS.get(domain.lower())
        if kind and name and invalid.upper() not in ("D", "U"):
            entries[_concept_id(file, row, id_)] = Entry(kind, name, rank=int(standard.upper() != "S"))
    for beside in _files_named(file.parent, "concept_synonym.csv"):
        of_synonyms = ("concept_id", "concept_synonym_name", "language_concept_id")
        for row, (id_, name, language) in rows(beside, of_synonyms):
            entry = entries.get(_concept_id(beside, row, id_))
            if entry and name and language in (ENGLISH, "0", ""):
                entry.synonyms.append(name)
    return lexicon(file.name, entries)


def _files_named(folder: Path, name: str) -> list[Path]:
    """Files of a folder with a name, ignoring case."""
    return sorted(f for f in folder.iterdir() if f.name.lower() in (name, name + ".gz"))


def _concept_id(path: Path, row: int, text: str) -> str:
    if not text.isdecimal():
        raise BadInput(f"{path.name}, row {row}: the column 'concept_id' needs a whole number.")
    return text


KINDS_OF_TYPES = {
    "T184": "symptom",
    **dict.fromkeys(
        ("T019", "T020", "T037", "T046", "T047", "T048", "T049", "T050", "T190", "T191"), "disease"
    ),
    "T033": "finding",
    **dict.fromkeys(("T034", "T059", "T060", "T201"), "test"),
    **dict.fromkeys(("T109", "T121", "T125", "T127", "T129", "T195", "T200"), "drug"),
    **dict.fromkeys(("T058", "T061", "T074"), "procedure"),
}
"""Semantic types that occur in notes. A concept of several types gets the first of its kinds in `ORDER`."""

ORDER = ("symptom", "disease", "drug", "test", "procedure", "finding")

CONSO = {"CUI": 0, "LAT": 1, "TS": 2, "STT": 4, "ISPREF": 6, "STR": 14, "SUPPRESS": 16}


def load_umls(path: Path) -> Lexicon:
    """Read both files from the folder `path` (or the folder of the file `path`); ids are CUIs. Only English terms that
    are not suppressed count; the preferred form of the preferred term is the name. Raises BadInput naming file, row and
    column."""
    folder = path if path.is_dir() else path.parent
    kinds = _kinds_of_concepts(_rrf_file(folder, "MRSTY.RRF"))
    entries: dict[str, Entry] = {}
    preferred: set[str] = set()
    file = _rrf_file(folder, "MRCONSO.RRF")
    for row, (cui, language, status, form, first, text, suppressed) in plain_rows(file, "|", 17, CONSO):
        if not (cui[:1] == "C" and cui[1:].isdecimal()):
            raise BadInput(f"{file.name}, row {row}: the column 'CUI' needs C and digits.")
        if language != "ENG" or suppressed != "N" or cui not in kinds or not text:
            continue
        entry = entries.setdefault(cui, Entry(kinds[cui], text))
        is_preferred = (status, form, first) == ("P", "PF", "Y") and cui not in preferred
        if is_preferred:
            preferred.add(cui)
            text, entry.name = entry.name, text
        if text != entry.name:
            entry.synonyms.append(text)
    return lexicon(file.name, entries)


def _kinds_of_concepts(file: Path) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for row, (cui, type_) in plain_rows(file, "|", 4, {"CUI": 0, "TUI": 1}):
        if not (type_[:1] == "T" and type_[1:].isdecimal()):
            raise BadInput(f"{file.name}, row {row}: the column 'TUI' needs T and digits.")
        kind = KINDS_OF_TYPES.get(type_)
        if kind and (cui not in kinds or ORDER.index(kind) < ORDER.index(kinds[cui])):
            kinds[cui] = kind
    return kinds


def _rrf_file(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise BadInput(f"{folder.name}: no {name} in this folder; UMLS needs MRCONSO.RRF and MRSTY.RRF.")


KINDS_OF_TAGS = {
    "disorder": "disease",
    "finding": "finding",
    "procedure": "procedure",
    "regime/therapy": "procedure",
    "substance": "drug",
    "product": "drug",
    "medicinal product": "drug",
    "medicinal product form": "drug",
    "clinical drug": "drug",
    "observable entity": "test",
}
"""Kinds by the tag in parentheses that ends a fully specified name."""

NARROWER = {"386053000": ("procedure", "test"), "418799008": ("finding", "symptom")}
"""Below "evaluation procedure" a procedure is a test; below "finding reported by subject" a finding is a symptom."""


def load_snomed(path: Path) -> Lexicon:
    """Read the folder `path` (searched through) or the folder of the file `path`; ids are concept ids. Only active
    English descriptions of active concepts count. Without the relationship file, tests stay among the procedures and
    symptoms among the findings. Raises BadInput naming file, row and column."""
    folder = path if path.is_dir() else path.parent
    descriptions, concepts = require_file(folder, "Description"), require_file(folder, "Concept")
    active = {id_ for _, (id_,) in active_rows(concepts, ("id",))}
    named: dict[str, Entry] = {}
    synonyms: dict[str, list[str]] = {}
    columns = ("conceptid", "languagecode", "typeid", "term")
    for _, (id_, language, type_, term) in active_rows(descriptions, columns):
        if id_ not in active or language != "en" or not term:
            continue
        if type_ == FULLY_SPECIFIED:
            parts = re.fullmatch(r"(.+) \(([^()]+)\)", term)
            if parts and parts[2] in KINDS_OF_TAGS:
                named[id_] = Entry(KINDS_OF_TAGS[parts[2]], parts[1])
        elif type_ == SYNONYM:
            synonyms.setdefault(id_, []).append(term)
    relationships = component(folder, "Relationship")
    if relationships is not None:
        _narrow(named, relationships)
    for id_, entry in named.items():
        entry.synonyms = [text for text in synonyms.get(id_, ()) if text != entry.name]
    return lexicon(descriptions.name, named)


def _narrow(entries: dict[str, Entry], relationships: Path) -> None:
    below: dict[str, list[str]] = {}
    for _, (child, parent, type_) in active_rows(relationships, ("sourceid", "destinationid", "typeid")):
        if type_ == IS_A:
            below.setdefault(parent, []).append(child)
    for root, (kind, narrower) in NARROWER.items():
        seen = {root}
        stack = [root]
        while stack:
            concept = stack.pop()
            if concept in entries and entries[concept].kind == kind:
                entries[concept].kind = narrower
            fresh = [c for c in below.get(concept, ()) if c not in seen]
            seen.update(fresh)
            stack += fresh


KINDS_OF_PREFIXES = {
    **dict.fromkeys(("HP", "SYMP"), "symptom"),
    **dict.fromkeys(("DOID", "MONDO", "ORPHANET"), "disease"),
    **dict.fromkeys(("CHEBI", "DRON"), "drug"),
    **dict.fromkeys(("CMO", "LOINC"), "test"),
    "MAXO": "procedure",
}
"""Kinds by the part of an id before the colon; `finding` for any other."""

OBO_SYNONYM = re.compile(r'"((?:[^"\\]|\\.)*)"\s+(EXACT|BROAD|NARROW|RELATED)\b')


def load_obo(path: Path) -> Lexicon:
    """Read the terms that are not obsolete, with their exact synonyms. Raises BadInput naming file and row."""
    entries: dict[str, Entry] = {}
    stanza: dict[str, list[str]] = {}
    began = 0
    row = 0
    for row, raw in enumerate(lines(path), start=1):
        line = raw.strip()
        if line.startswith("["):
            _close_stanza(path, began, stanza, entries)
            began, stanza = row, {"kind": [line]}
        elif began and line and not line.startswith("!"):
            tag, colon, value = line.partition(":")
            if not colon:
                raise BadInput(f"{path.name}, row {row}: a line of an OBO file needs `tag: value`.")
            stanza.setdefault(tag, []).append(value.strip())
            if tag == "synonym" and not OBO_SYNONYM.match(value.strip()):
                raise BadInput(f"{path.name}, row {row}: a synonym needs its text in quotes and its scope.")
    _close_stanza(path, began, stanza, entries)
    if not began:
        raise BadInput(f"{path.name}: no [Term] in this file; is it in OBO format?")
    return lexicon(path.name, entries)


def _close_stanza(path: Path, row: int, stanza: dict[str, list[str]], entries: dict[str, Entry]) -> None:
    if stanza.get("kind") != ["[Term]"] or stanza.get("is_obsolete") == ["true"]:
        return
    for tag in ("id", "name"):
        if not stanza.get(tag, [""])[0]:
            raise BadInput(f"{path.name}, row {row}: the term that begins here has no {tag!r}.")
    id_ = stanza["id"][0].split(" !")[0]
    kind = KINDS_OF_PREFIXES.get(id_.partition(":")[0].upper(), "finding")
    found = [OBO_SYNONYM.match(text) for text in stanza.get("synonym", ())]
    exact = [re.sub(r"\\(.)", r"\1", m[1]) for m in found if m and m[2] == "EXACT"]
    entries[id_] = Entry(kind, stanza["name"][0], exact)
