"""The dictionary annotator: terms, names and places in text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import terms as oracle

from leeward.notes.annotators.dictionary import Dictionary
from leeward.notes.lexicon import Concept, Lexicon, Names, Places, Term
from leeward.notes.lexicon.concepts import fold
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.lexicon.matching import Words

FIVE_NOTES = [
    "Visited on 4/5/2009. Male, 24 year old. Feeling sore throat, fever, headache, fatigue...",
    "Mr. Brown's daughter is 9 year old. Visited on 4/13/2009...Having runny nose, sore throat, fever, headache...",
    "Admitted on 4-21-2009, patient is a 9 year old female. Having runny nose, sore throat, diarrhea, fever.",
    "Amy is 17 year old. Having fever, joint pain, nausea, sore throat...Visited 5/14/2009.",
    "Admitted on 6/7/2009, the 88 year old man is complaining chills, body pain, sore throat, fatigue, fever...",
]
THEIR_TERMS = [
    ["sore throat", "fever", "headache", "fatigue"],
    ["runny nose", "sore throat", "fever", "headache"],
    ["runny nose", "sore throat", "diarrhea", "fever"],
    ["fever", "joint pain", "nausea", "sore throat"],
    ["chills", "body pain", "sore throat", "fatigue", "fever"],
]


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    return Dictionary(load_lexicon())


def small(*concepts: tuple[str, ...], phrases: tuple[str, ...] = ()) -> Dictionary:
    made = tuple(
        Concept(f"C{i}", "symptom", tuple(map(Term.parse, terms))) for i, terms in enumerate(concepts)
    )
    return Dictionary(Lexicon("small", made, phrases), names=Names(), places=Places())


def said(dictionary: Dictionary, text: str, kind: str) -> list[str]:
    return [text[s.start : s.end] for s in dictionary.annotate(text) if s.kind == kind]


def concepts(dictionary: Dictionary, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.concept) for s in dictionary.annotate(text)]


@pytest.mark.parametrize(("note", "terms"), list(zip(FIVE_NOTES, THEIR_TERMS, strict=True)))
def test_five_notes_give_the_terms_of_figure_3(dictionary: Dictionary, note: str, terms: list[str]) -> None:
    spans = [s for s in dictionary.annotate(note) if s.kind == "HMI"]
    assert [dictionary.lexicon[s.concept].name for s in spans] == terms
    assert {s.category for s in spans} == {"symptom"}
    assert {s.source for s in spans} == {"dictionary"}


def test_mr_brown_and_amy_of_the_five_notes(dictionary: Dictionary) -> None:
    assert said(dictionary, FIVE_NOTES[1], "EID") == ["Brown"]
    assert said(dictionary, FIVE_NOTES[3], "EID") == ["Amy"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Mrs. White is a white woman.", ["White"]),
        ("A 60 year old White male.", []),
        ("Dr White-Jones saw John Q. Smith today.", ["White-Jones", "John Q. Smith"]),
        ("seen by Grace L. White, MD", ["Grace L. White"]),
        ("Brown, Mary was here", ["Brown, Mary"]),
        ("Dictated by White, M.D.", ["White"]),
        ("She will come in May. Will the pain last long?", []),
        ("Parkinson is likely; Foley in place; Bell palsy", []),
        ("Dr. Price and Mr. Bell", ["Price", "Bell"]),
        ("amy and mr. brown", []),
        ("SMITH, JOHN was admitted", ["SMITH, JOHN"]),
        ("WHITE COUNT 12", []),
        ("Amy Kowalczykowsky denies pain", ["Amy Kowalczykowsky"]),
        ("Dr. L. Carter, by Dr. S. R", ["L. Carter", "S. R"]),
        ("J. R. Smith; vitamin D. Pain", ["J. R. Smith"]),
        ("Name: Grace Turner", ["Grace Turner"]),
        ("Will White come; May Day; Young White male", []),
        ("Amy\nSmith", ["Amy", "Smith"]),
        ("O’Brien’s wife", ["O’Brien"]),
        ("José has pain", ["José"]),
        ("Virginia has pain", []),
        ("Ms. Virginia Wood", ["Virginia Wood"]),
    ],
)
def test_names(dictionary: Dictionary, text: str, names: list[str]) -> None:
    assert said(dictionary, text, "EID") == names


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("lives in Boston, MA with her son", ["Boston, MA"]),
        ("moved from Turkey; ate Turkey", ["Turkey"]),
        ("Springfield, Illinois", ["Springfield, Illinois"]),
        ("from Charlotte, North Carolina", ["Charlotte, North Carolina"]),
        ("Charlotte, NC", ["Charlotte, NC"]),
        ("born in Vietnam, raised in san francisco", ["Vietnam"]),
        ("He is in China", ["China"]),
        ("Ohio\nMA level", ["Ohio"]),
    ],
)
def test_places(dictionary: Dictionary, text: str, places: list[str]) -> None:
    assert said(dictionary, text, "QID") == places


def test_a_term_around_a_name_or_a_place_wins(dictionary: Dictionary) -> None:
    text = "West Nile virus, Wolff-Parkinson-White syndrome, Guillain-Barré, Crohn's disease"
    assert [(s.kind, text[s.start : s.end]) for s in dictionary.annotate(text)] == [
        ("HMI", "West Nile virus"),
        ("HMI", "Wolff-Parkinson-White syndrome"),
        ("HMI", "Guillain-Barré"),
        ("HMI", "Crohn's disease"),
    ]


def test_longest_match_wins() -> None:
    d = small(("pain",), ("chest pain",), ("chest pain on exertion",))
    assert concepts(d, "pain, chest pain, chest pain on exertion, chest pain on") == [
        ("pain", "C0"),
        ("chest pain", "C1"),
        ("chest pain on exertion", "C2"),
        ("chest pain", "C1"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "chest pain",
        "Chest Pain",
        "CHEST-PAIN",
        "chest   pain",
        "chest\npain",
        "chest pains",
        "chest\u2011pain",
    ],
)
def test_case_blanks_hyphens_and_plurals(text: str) -> None:
    assert concepts(small(("chest pain",)), text) == [(text, "C0")]


@pytest.mark.parametrize(
    "text",
    [
        "chest, pain",
        "chest. Pain",
        "chestpain",
        "chest\n\npain",
        "chest - pain",
        "xchest pain",
        "chest paint",
    ],
)
def test_marks_and_letters_part_a_term(text: str) -> None:
    assert concepts(small(("chest pain",)), text) == []


def test_spellings_of_one_term() -> None:
    d = small(("x-ray",), ("Crohn's disease",), ("Sjögren syndrome",), ("diagnosis",), ("biopsy",))
    text = (
        "xray x ray X-rays crohns disease Crohn disease CROHN’S DISEASE sjogren syndrome diagnoses biopsies"
    )
    assert [c for _, c in concepts(d, text)] == ["C0", "C0", "C0", "C1", "C1", "C1", "C2", "C3", "C4"]


def test_exact_terms_need_their_capitals() -> None:
    d = small(("myocardial infarction", "=MI"))
    assert concepts(d, "MI, two MIs; mi, Mi") == [("MI", "C0"), ("MIs", "C0")]
    assert concepts(d, "PATIENT SENT HOME TO LANSING, MI WITHOUT TROUBLE") == []


def test_ambiguous_terms_need_company() -> None:
    d = small(
        ("common cold", "~cold"), ("cough",), ("multiple sclerosis", "~=MS"), ("mitral stenosis", "~=MS")
    )
    assert concepts(d, "It was cold outside.") == []
    assert concepts(d, "cold and cough") == [("cold", "C0"), ("cough", "C1")]
    assert concepts(d, "It was cold. Cough since.") == [("Cough", "C1")]
    assert concepts(d, "a common cold; the cold") == [("common cold", "C0"), ("cold", "C0")]
    assert concepts(d, "MS with cough") == [("cough", "C1")], "two meanings, neither named"
    assert concepts(d, "MS. Later: mitral stenosis") == [("MS", "C3"), ("mitral stenosis", "C3")]


def test_phrases_hide_the_terms_in_them() -> None:
    d = small(("nervous",), ("cold",), phrases=("nervous system", "cold air"))
    assert concepts(d, "nervous; nervous system; Cold-air; cold") == [("nervous", "C0"), ("cold", "C1")]


def test_no_text_and_no_terms(dictionary: Dictionary) -> None:
    assert list(dictionary.annotate("")) == []
    assert list(dictionary.annotate(" \n\n ... \x00 \ud800")) == []
    assert list(small().annotate("fever")) == []


def test_up_to_four_initials_belong_to_a_surname(dictionary: Dictionary) -> None:
    assert said(dictionary, "Seen by A.B.C.D. Rosenberg, MD.", "EID") == ["A.B.C.D. Rosenberg"]


@pytest.mark.parametrize("piece", ["A.", "A. ", "A.B. "])
def test_a_note_of_nothing_but_initials_takes_time_in_proportion(
    dictionary: Dictionary, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    seen = []
    plain = Words.gap
    monkeypatch.setattr(Words, "gap", lambda words, place: seen.append(place) or plain(words, place))
    text = piece * (20_000 // len(piece))
    assert dictionary.annotate(text) == []
    assert len(seen) < 10 * len(text)


def test_threads_give_the_same(dictionary: Dictionary) -> None:
    notes = FIVE_NOTES * 40
    alone = [list(dictionary.annotate(n)) for n in notes]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: list(dictionary.annotate(n)), notes)) == alone


ALL = Dictionary(load_lexicon())

PIECES = st.sampled_from(
    ["chest", "Chest", "pain", "PAIN", "of", "crohn's", "Crohn’s", "e\u0301", "é", "ß", "SS", "ﬁ", "fi", "İ", "i̇", "x",
     "ray", "9", "-", " ", " ", " ", "  ", "\n", "\n\n", ".", ",", "/", "'", "’", "_", "--", "‑", "\u00ad", "\u0301"]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=30).map("".join)
SPELLINGS = [
    "chest",
    "chest pain",
    "pain of chest",
    "x ray",
    "x / ray",
    "crohn's pain",
    "é",
    "ss",
    "fi 9",
    "pain, pain",
]


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sets(st.sampled_from(SPELLINGS), min_size=1))
def test_same_as_looking_everywhere(text: str, chosen: set[str]) -> None:
    terms = sorted(chosen)
    exact_spellings = {t: f"C{i}" for i, t in enumerate(terms)}
    plurals = {
        plural: f"C{i}"
        for i, t in enumerate(terms)
        for plural in [t + "s", t + "es" if t.endswith("s") else t + "s"]
        if plural_is_regular(t, plural)
    }
    found = [(s.start, s.end, s.concept) for s in small(*((t,) for t in terms)).annotate(text)]
    assert found == oracle.find(text, plurals | exact_spellings)


def plural_is_regular(term: str, plural: str) -> bool:
    last = term.split()[-1]
    if len(last) < 3 or not last.isalpha():
        return False
    return plural.endswith("es") == last.endswith("ss")


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_spans_lie_in_the_text_in_order_and_apart(text: str) -> None:
    spans = ALL.annotate(text)
    ends = [0, *(s.end for s in spans)]
    assert all(before <= s.start < s.end <= len(text) for before, s in zip(ends, spans, strict=False))
    assert all(fold(text[s.start : s.end])[:1].strip() for s in spans)
