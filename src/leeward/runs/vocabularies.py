"""Build the public vocabularies and domains of an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.queries.language.query import fold
from leeward.queries.language.vocabulary import Codes, Terms, Vocabulary
from leeward.vocabulary.omop import BY_CODE, is_concept_ancestor

if TYPE_CHECKING:
    from leeward.vocabulary.classification import Classification

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
FORMS = {
    "icd9": r"(?:(\d{3}|V\d\d)\.?(\d{0,2})|(E\d{3})\.?(\d?))",
    "icd10": r"([A-Z]\d[0-9A-Z])\.?([0-9A-Z]{0,4})",
}
"""How the codes of the built-in classifications are written: the category, then what follows it."""


def vocabulary_of(name: str) -> Vocabulary:
    """The public vocabulary of a name: `icd9`, `icd10`, `lexicon` (the project's health terms), or a file.

    A file is a hierarchy (CSV `node,parent`), or a list of terms, one a line, as text; `term;synonym;synonym` gives a
    term other names.
    """
    if name.lower() in FORMS:
        return classification_codes(name.lower())
    if name.lower() == "lexicon":
        return lexicon_terms()
    by_code = name.endswith(BY_CODE)
    path = Path(name.removesuffix(BY_CODE))
    if not path.is_file():
        raise BadInput(f"{name}: no such vocabulary; give icd9, icd10, lexicon, or a file of terms.")
    if is_concept_ancestor(path):
        return concept_terms(path, by_code)
    return read_terms(path) if path.suffix.lower() == ".txt" else hierarchy_terms(path)


def classification_codes(name: str) -> Codes:
    """A built-in classification: its categories, the sections and chapters above them, titles."""
    from leeward.vocabulary import load
    from leeward.vocabulary.names import category_titles

    found: Classification = load(name)  # type: ignore[assignment]  # both are classifications
    above: dict[str, str] = {}
    for category in (each for each in _spellings(name) if found.is_known(each)):
        path = [category, found.level(category, 2), found.level(category, 3)]
        names = list(dict.fromkeys(path))  # a section of one category may bear its name
        if len(names) == 1:
            names.append(found.name)
        above.update(pairwise(names))
    nodes = set(above.values())
    labels = {node: found.title(node) for node in nodes if found.title(node) != node}
    titles = sorted(category_titles(found.name).items(), reverse=True)  # of equal titles the first category
    aliases = {title: category for category, title in titles if category in above}
    return Codes(FORMS[name], parents=above, labels=labels, aliases=aliases, name=name)


def _spellings(name: str) -> Sequence[str]:
    if name == "icd9":
        numbers = [f"{n:03d}" for n in range(1, 1000)]
        return numbers + [f"V{n:02d}" for n in range(1, 100)] + [f"E{n:03d}" for n in range(1000)]
    return ["".join(parts) for parts in product(LETTERS, DIGITS, DIGITS + LETTERS)]


def hierarchy_terms(path: Path) -> Terms:
    """A hierarchy file: every node but the root may be a term."""
    from leeward.vocabulary.trees import read

    parents = {node: parent for node, parent in read(path).to_pairs() if parent}
    return Terms(tuple(sorted(parents)), parents=parents, name=path.name)


def concept_terms(path: Path, by_code: bool) -> Terms:
    """OMOP's CONCEPT_ANCESTOR: concepts by id, or by the code that no other concept has, with the names of the CONCEPT
    beside it; they are the vocabulary's, whether or not a patient has the concept."""
    from leeward.vocabulary.omop import concept_names, from_concept_ancestor

    known = concept_names(path)
    often = Counter(code for code, _ in known.values())
    terms = {node: code for node, (code, _) in known.items() if by_code and often[code] == 1}
    pairs = [(node, parent) for node, parent in from_concept_ancestor(path).to_pairs() if parent]
    parents = {terms.get(node, node): terms.get(parent, parent) for node, parent in pairs}
    labels = {terms.get(node, node): known[node][1] for node, _ in pairs if node in known}
    return Terms(tuple(sorted(parents)), parents=parents, labels=labels, name="OMOP concepts")


def read_terms(path: Path) -> Terms:
    """A text file: one term a line, other names of it after semicolons; `#` begins a comment line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}: not UTF-8 text; a list of terms has one term a line.") from None
    rows = [[part.strip() for part in line.split(";")] for line in lines if line.strip() and line[0] != "#"]
    aliases = {alias: row[0] for row in rows for alias in row[1:] if alias}
    return Terms(tuple(row[0] for row in rows), aliases=aliases, name=path.name)


def lexicon_terms() -> Terms:
    """The project's lexicon: concepts by id, their names and synonyms for asking."""
    from leeward.notes.lexicon.loaders import load as load_lexicon

    lexicon = load_lexicon()
    labels = {concept.id: concept.name for concept in lexicon.concepts}
    aliases: dict[str, str] = {}
    for concept in lexicon.concepts:
        for text in concept.synonyms:
            aliases.setdefault(text, concept.id)
    return Terms(tuple(labels), aliases=aliases, labels=labels, name="Leeward's health terms")


def domains_of(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Permissible values by quasi-identifier, as an index keeps them: texts, or first and last. BadInput for anything
    but a list or `{"low": …, "high": …}`, and for a name given twice, whatever its case."""
    found: dict[str, tuple[str, ...]] = {}
    for name, values in given.items():
        if fold(name) in found:
            raise BadInput(f"`domains`: {fold(name)!r} is given twice.")
        if isinstance(values, Mapping) and set(values) == {"low", "high"}:
            found[fold(name)] = (str(values["low"]).strip(), str(values["high"]).strip())
        elif isinstance(values, list | tuple) and values:
            found[fold(name)] = tuple(dict.fromkeys(fold(str(each)) for each in values))
        else:
            raise BadInput(f"`domains.{name}` is a list of values, or {{low: …, high: …}}.")
    return found


def domains_of_notes(columns: Sequence[str], left_out: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The public domains of a table by `leeward notes annotate`, known by its columns on where values came from; these
    are the only values that it writes. Other tables have no domains of their own."""
    from leeward.notes.annotators.rules.demographics import RACES

    known = {"sex": ("female", "male"), "age": ("0", "90"), "race": tuple(race.lower() for race in RACES)}
    return {
        name: domain
        for name, domain in known.items()
        if name in columns and f"{name}_source" in columns and name not in left_out
    }
