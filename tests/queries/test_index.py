"""The count index: the paper's counts, every count against brute force, what is on disk."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import counts as oracle

from leeward.cohort import Cohort
from leeward.errors import BadInput
from leeward.queries.index import store
from leeward.queries.index.build import index_cohort, index_table
from leeward.queries.index.counts import Index
from leeward.queries.language.query import Predicate, Query, parse
from leeward.queries.language.vocabulary import Terms
from leeward.randomness import Randomness

SYMPTOMS = Terms(
    (
        "body pain",
        "chills",
        "cough",
        "diarrhea",
        "fatigue",
        "fever",
        "headache",
        "joint pain",
        "nausea",
        "runny nose",
        "sore throat",
    ),
    parents={"sore throat": "throat and nose", "runny nose": "throat and nose", "cough": "throat and nose"},
    aliases={"pyrexia": "fever"},
    labels={"sore throat": "Sore throat (pharyngitis)"},
    name="symptoms",
)


@pytest.fixture
def five(tmp_path: Path) -> Index:
    return index_table(pl.DataFrame(oracle.FIVE_NOTES), tmp_path / "index", terms=SYMPTOMS).index


def test_the_three_counts_of_the_paper(five: Index) -> None:
    """Li & Qin 2017, section 3: ⟨April 2009, 9, F, 12301, {sore throat, fever}⟩ = 2; ⟨April 2009, 12301, ·⟩ = 3;
    ⟨April–June 2009, 1230*, ·⟩ = 5."""
    terms = "sore throat & fever"
    assert five.count(parse(terms, when="2009-04", age="9", sex="F", zip="12301")) == 2
    assert five.count(parse(terms, when="2009-04", zip="12301")) == 3
    assert five.count(parse(terms, when="2009-04..2009-06", zip="1230*")) == 5


def test_notes_and_patients_are_counted_apart(tmp_path: Path) -> None:
    rows = [{**row, "patient": "p1" if row["note"] < 4 else row["patient"]} for row in oracle.FIVE_NOTES]
    index = index_table(pl.DataFrame(rows), tmp_path / "index", terms=SYMPTOMS).index
    assert (index.rows, index.patients) == (5, 3)
    assert index.count(parse("fever")) == 3
    assert index.count(parse("fever"), "note") == 5
    with pytest.raises(BadInput, match="patient or note"):
        index.count(parse("fever"), "document")  # type: ignore[arg-type]  # what a user may type


def test_a_node_counts_all_below_it_and_an_alias_its_term(five: Index) -> None:
    assert five.count(parse("throat and nose")) == 5
    assert five.count(parse("throat and nose & pyrexia", when="2009-04")) == 3
    assert five.count(parse("Sore throat (pharyngitis)")) == 5
    assert five.count(parse("cough")) == 0, "a term of the vocabulary that no note has"


def test_a_code_that_has_codes_below_it(tmp_path: Path) -> None:
    events = pl.DataFrame({"patient": [1, 2, 3, 4], "code": ["401", "401.9", "401.1", "250.00"]})
    terms = Terms(("401", "401.1", "401.9", "250.00"), parents={"401.1": "401", "401.9": "401"}, name="icd9")
    index = index_cohort(cohort_of(events), tmp_path / "index", terms=terms).index
    assert index.count(parse("401")) == 3
    assert index.count(parse("=401")) == 1
    assert index.count(parse("=401.9")) == index.count(parse("401.9")) == 1
    assert index.resolve(parse("401 & 401.9")).terms == ("401.9",), "401 is implied"
    assert index.resolve(parse("=401.9")).canonical() == "401.9"


def cohort_of(events: pl.DataFrame, patients: pl.DataFrame | None = None) -> Cohort:
    codes = events["code"].unique().sort()
    return Cohort(events=events.with_columns(pl.col("code").cast(pl.Enum(codes))), patients=patients)


def test_a_cohort_has_visits_for_rows_and_attributes_for_quasi_identifiers(tmp_path: Path) -> None:
    events = pl.DataFrame(
        {
            "patient": [1, 1, 1, 2, 2],
            "visit": [10, 10, 11, 10, 12],
            "date": [date(2009, 4, 2), date(2009, 4, 3), date(2009, 7, 1), date(2009, 4, 30), None],
            "age": [30.5, 30.5, 30.9, 44.0, 44.2],
            "code": ["a", "b", "a", "a", "b"],
        }
    )
    people = pl.DataFrame({"patient": [1, 2], "sex": ["F", "M"]})
    cohort = cohort_of(events, people)
    index = index_cohort(cohort, tmp_path / "visits", domains={"sex": ("f", "m")}).index
    assert (index.rows, index.patients, index.meta.row) == (4, 2, "visit")
    assert index.count(parse("a & b")) == 1, "in one visit"
    assert index.count(parse("a", when="2009-04")) == 2
    assert index.count(parse("a", when="2009", sex="F"), "note") == 2
    assert index.count(parse("b", when="2009-01..2009-12")) == 1, "a visit without a date has no month"
    assert index.count(parse("a", age="30")) == 1
    assert index.meta.qid("sex").per_patient and not index.meta.qid("when").per_patient
    whole = index_cohort(cohort, tmp_path / "patients", row="patient").index
    assert whole.count(parse("a & b")) == 2, "in the whole record"
    assert whole.meta.max_rows_per_patient == 1


def test_the_order_of_rows_and_of_terms_has_no_influence(tmp_path: Path) -> None:
    table = pl.DataFrame(oracle.FIVE_NOTES)
    turned = table.reverse().with_columns(pl.col("terms").list.reverse())
    one = index_table(table, tmp_path / "one", terms=SYMPTOMS).index
    two = index_table(turned, tmp_path / "two", terms=SYMPTOMS).index
    assert one.meta.id == two.meta.id
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = index_table(table.head(4), tmp_path / "three", terms=SYMPTOMS).index
    assert other.meta.id != one.meta.id


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# -- brute force ----

NAMES = ("fever", "cough", "nausea", "chills")
note = st.fixed_dictionaries(
    {
        "patient": st.integers(0, 4),
        "visit_month": st.one_of(st.none(), st.sampled_from(["2009-04", "2009-05", "2009-11", "2010-01"])),
        "age": st.one_of(st.none(), st.integers(0, 12)),
        "zip": st.one_of(st.none(), st.sampled_from(["12301", "12302", "12401", "99999"])),
        "terms": st.lists(st.sampled_from(NAMES), max_size=4),
    }
)
asked = st.fixed_dictionaries(
    {"terms": st.lists(st.sampled_from([*NAMES, "throat and nose"]), min_size=1, max_size=3)},
    optional={
        "when": st.sampled_from(["2009-04", "2009", "2009-04..2009-05", "2009-1*", "2009-05..2010", "*"]),
        "age": st.sampled_from(["3", "0..5", "7..7", "2..90"]),
        "zip": st.sampled_from(["12301", "123*", "1*", "12*", "4*"]),
    },
)


def holds(qid: str, text: str) -> Any:
    """The condition of a text, written once more."""
    if qid == "zip":
        return lambda v: v.startswith(text[:-1]) if text.endswith("*") else v == text
    if qid == "age":
        low, high = text.split("..") if ".." in text else (text, text)
        return lambda v: int(low) <= v <= int(high)
    months = {
        "2009-04": ["2009-04"],
        "2009": [f"2009-{m:02d}" for m in range(1, 13)],
        "2009-04..2009-05": ["2009-04", "2009-05"],
        "2009-1*": ["2009-10", "2009-11", "2009-12"],
        "2009-05..2010": [f"2009-{m:02d}" for m in range(5, 13)] + [f"2010-{m:02d}" for m in range(1, 13)],
    }
    return lambda v: v in months[text]


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(note, min_size=1, max_size=25), queries=st.lists(asked, min_size=1, max_size=6))
def test_every_count_equals_brute_force(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], queries: Any
) -> None:
    table = pl.DataFrame(
        rows,
        schema={
            "patient": pl.Int64,
            "visit_month": pl.String,
            "age": pl.Int64,
            "zip": pl.String,
            "terms": pl.List(pl.String),
        },
    )
    index = index_table(table, tmp_path_factory.mktemp("i") / "index", terms=SYMPTOMS).index
    for query in queries:
        wanted = [
            {"sore throat", "runny nose", "cough"} if term == "throat and nose" else {term}
            for term in query["terms"]
        ]
        column = {"when": "visit_month"}
        conditions = {
            column.get(q, q): holds(q, text) for q, text in query.items() if q != "terms" and text != "*"
        }
        parsed = parse(" & ".join(query["terms"]), {q: t for q, t in query.items() if q != "terms"})
        for unit in ("patient", "note"):
            assert index.count(parsed, unit) == oracle.count(rows, wanted, conditions, unit)


def test_histograms_add_up_and_keep_to_their_bound(five: Index) -> None:
    bins = ["2009-03", "2009-04", "2009-05", "2009-06"]
    assert five.count_by(parse("fever"), "when", bins).tolist() == [0, 3, 1, 1]
    assert five.count_by(parse("fever"), "when", bins, "note", most=1).tolist() == [0, 3, 1, 1]
    with pytest.raises(BadInput, match="one value"):
        five.count_by(parse("fever"), "when", ["2009"])


@settings(deadline=None, max_examples=20)
@given(rows=st.lists(note, min_size=1, max_size=25), most=st.integers(1, 3), who=st.integers(0, 4))
def test_a_patient_moves_a_bounded_histogram_by_no_more_than_the_bound(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], most: int, who: int
) -> None:
    schema = {"patient": pl.Int64, "visit_month": pl.String, "terms": pl.List(pl.String)}
    bins = ["2009-04", "2009-05", "2009-11", "2010-01"]
    folder = tmp_path_factory.mktemp("i")
    others = [row for row in rows if row["patient"] != who]
    for unit in ("patient", "note"):
        counted = []
        for number, part in enumerate((rows, others)):
            if not part:
                counted.append(np.zeros(len(bins), np.int64))
                continue
            table = pl.DataFrame([{k: row[k] for k in schema} for row in part], schema=schema)
            index = index_table(table, folder / f"{unit}{number}", terms=SYMPTOMS).index
            counted.append(index.count_by(parse("fever"), "when", bins, unit, most))
        assert np.abs(counted[0] - counted[1]).sum() <= most


# -- contributions ----


def test_contributions_are_bounded_to_the_stated_limit(tmp_path: Path) -> None:
    rows = [{"note": n, "patient": n % 3, "terms": ["fever"]} for n in range(30)]
    rows += [{"note": 99, "patient": 7, "terms": ["fever", "cough"]}]
    built = index_table(
        pl.DataFrame(rows),
        tmp_path / "index",
        terms=SYMPTOMS,
        max_rows_per_patient=4,
        randomness=Randomness.of(1),
    )
    index = built.index
    assert (index.rows, index.patients) == (13, 4)
    assert (index.meta.max_rows_per_patient, index.meta.seeded) == (4, True)
    assert index.count(parse("fever"), "note") == 13
    assert index.count(parse("cough")) == 1, "who has fewer keeps them all"
    assert built.left_out == {"rows above the most that a patient may have": 18}
    unbounded = index_table(pl.DataFrame(rows), tmp_path / "other", terms=SYMPTOMS).index
    assert unbounded.meta.id == index.meta.id, "the same data have the same budget, however bounded"


def test_every_row_of_a_patient_is_as_likely_to_be_kept(tmp_path: Path) -> None:
    rows = [{"note": n, "patient": p, "terms": [NAMES[n]]} for p in range(2000) for n in range(4)]
    index = index_table(
        pl.DataFrame(rows),
        tmp_path / "index",
        terms=SYMPTOMS,
        max_rows_per_patient=1,
        randomness=Randomness.of(3),
    ).index
    kept = np.array([index.count(parse(name)) for name in NAMES])
    assert kept.sum() == 2000
    assert ((kept - 500) ** 2 / 500).sum() < 16.27  # chi-square, 3 degrees of freedom, 0.001


# -- what is on disk ----


def test_no_identifier_and_no_text_in_any_file(tmp_path: Path) -> None:
    rows = [
        {**row, "note": f"NOTECANARY{row['note']}", "patient": f"PATIENTCANARY{row['note']}"}
        for row in oracle.FIVE_NOTES
    ]
    table = pl.DataFrame(rows).with_columns(text=pl.lit("TEXTCANARY fever"))
    index_table(table, tmp_path / "index", terms=SYMPTOMS, leave_out=("text",))
    everything = b"".join(contents(tmp_path / "index").values())
    assert b"CANARY" not in everything.upper()
    assert b"sore throat" in everything


def test_an_index_of_another_version_is_refused(five: Index) -> None:
    head = five.path / "index.json"
    content = json.loads(head.read_text(encoding="utf-8"))
    head.write_text(json.dumps({**content, "version": 99}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"index of version 99 .* reads version 1\. Build the index again"):
        Index(five.path)


@pytest.mark.parametrize("file", ["bitmaps.bin", "directory.arrow", "vocabulary.arrow"])
def test_a_damaged_index_is_refused(five: Index, file: str) -> None:
    whole = (five.path / file).read_bytes()
    (five.path / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="damaged"):
        Index(five.path)


@pytest.mark.parametrize("file", ["bitmaps.bin", "vocabulary.arrow", "index.json", "more"])
def test_what_is_no_file_of_the_index_is_never_opened(five: Index, file: str, tmp_path: Path) -> None:
    place = five.path / file
    for put in (lambda: place.symlink_to("/dev/zero"), lambda: os.mkfifo(place)):
        place.unlink(missing_ok=True)
        put()
        with pytest.raises(
            BadInput, match="not an index" if file == "index.json" else f"{file}: a (link|pipe)"
        ):
            Index(five.path)


def test_sizes_are_compared_before_a_file_is_read(five: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    with (five.path / "bitmaps.bin").open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk, and hours to read

    def digest(path: Path) -> str:
        assert path.name != "bitmaps.bin"
        return digest_of(path)

    digest_of = store._digest
    monkeypatch.setattr(store, "_digest", digest)
    with pytest.raises(BadInput, match=r"damaged \(bitmaps\.bin\)"):
        Index(five.path)


def test_an_index_that_states_no_sizes_is_read(five: Index) -> None:
    file = five.path / "index.json"
    head = json.loads(file.read_text(encoding="utf-8"))
    del head["bytes"]
    head["digest"] = store._digest_of(head)
    file.write_text(json.dumps(head), encoding="utf-8")
    assert Index(five.path).meta == five.meta


def test_what_is_no_index_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not an index"):
        Index(tmp_path)
    (tmp_path / "index.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BadInput, match="not the head of an index"):
        Index(tmp_path)


def test_nothing_is_overwritten_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pl.DataFrame(oracle.FIVE_NOTES)
    index_table(table, tmp_path / "index", terms=SYMPTOMS)
    with pytest.raises(BadInput, match="exists by now"):
        index_table(table, tmp_path / "index", terms=SYMPTOMS)
    monkeypatch.setattr("leeward.release.folder.flush", failing)
    with pytest.raises(BadInput, match="no space"):
        index_table(table, tmp_path / "second", terms=SYMPTOMS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def failing(path: Path) -> None:
    raise OSError(28, "No space left on device")


# -- refusals ----


def test_an_unknown_term_offers_the_nearest(five: Index) -> None:
    with pytest.raises(BadInput, match=r"no term 'sore thraot'\. Nearest known: 'sore throat'"):
        five.count(parse("sore thraot & fever"))
    with pytest.raises(BadInput, match=r"no quasi-identifier 'zipp'\. Did you mean 'zip'"):
        five.count(parse("fever", zipp="12301"))


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"age": "nine"}, "whole numbers"),
        ({"age": "8*"}, "no wildcard"),
        ({"age": "9..3"}, "backwards"),
        ({"zip": "12301..12302"}, "no ranges"),
    ],
)
def test_conditions_that_a_type_does_not_take(five: Index, conditions: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        five.count(parse("fever", conditions))


def test_refusals_do_not_depend_on_data(tmp_path: Path) -> None:
    """The same vocabulary and columns, one patient: what is answered and what is refused stays the same."""
    full = index_table(pl.DataFrame(oracle.FIVE_NOTES), tmp_path / "full", terms=SYMPTOMS).index
    one = index_table(pl.DataFrame(oracle.FIVE_NOTES[4:]), tmp_path / "one", terms=SYMPTOMS).index
    questions = [parse("fever", zip="12301"), parse("cough"), parse("runny nose", age="9", sex="F")]
    questions += [parse("mumps"), parse("fever", age="x"), parse("fever", sex="x"), parse("throat and nose")]
    for question in questions:
        assert outcome(full, question) == outcome(one, question)


def outcome(index: Index, query: Query) -> str:
    try:
        resolved = index.resolve(query)
    except BadInput as error:
        return f"refused: {error}"
    index.count(query)
    return resolved.canonical()


# -- canonical forms that need the index ----


def test_equivalent_queries_have_one_form(tmp_path: Path) -> None:
    table = pl.DataFrame(oracle.FIVE_NOTES)
    domains = {"sex": ("f", "m"), "age": ("0", "120"), "when": ("2009-01", "2009-12")}
    index = index_table(table, tmp_path / "index", terms=SYMPTOMS, domains=domains).index

    def form(text: str, **conditions: str) -> str:
        return index.resolve(parse(text, conditions)).canonical()

    assert form("fever & Sore  Throat") == form("sore throat (pharyngitis) & pyrexia & FEVER")
    assert form("fever", sex="F*") == form("fever", sex="f")
    assert form("fever", age="-5..200") == form("fever", age="0..120")
    assert form("fever", age="09..9") == form("fever", age="9")
    assert form("fever", when="2009") == form("fever", when="2008-06..2010") == form("fever", when="2009-*")
    assert form("throat and nose & cough") == form("cough")
    with pytest.raises(BadInput, match="not among its permissible values"):
        form("fever", sex="woman")
    assert index.domain("sex") == ("f", "m")
    assert index.domain("when") == tuple(f"2009-{m:02d}" for m in range(1, 13))
    assert index.domain("zip") is None


def test_forms_that_only_the_data_make_equal_stay_apart(five: Index) -> None:
    """No age is between 18 and 23 here, but who could see 9..17 and 9..23 share an answer would know it."""
    one, other = (five.resolve(parse("fever", age=text)).canonical() for text in ("9..17", "9..23"))
    assert five.count(parse("fever", age="9..17")) == five.count(parse("fever", age="9..23"))
    assert one != other


def test_values_outside_the_public_domain_are_missing(tmp_path: Path) -> None:
    table = pl.DataFrame(oracle.FIVE_NOTES)
    built = index_table(table, tmp_path / "index", terms=SYMPTOMS, domains={"age": ("0", "50")})
    assert built.left_out == {"values of age that its type or domain does not admit": 1}
    index = built.index
    assert index.values("age") == ("9", "17", "24")
    assert index.count(parse("fever", age="80..90")) == 0
    assert index.count(parse("fever")) == 5


def test_without_a_vocabulary_no_refusal_and_no_form_tells_what_the_data_hold(tmp_path: Path) -> None:
    index = index_table(pl.DataFrame(oracle.FIVE_NOTES), tmp_path / "index").index
    assert index.meta.vocabulary_public is False
    assert index.count(parse("SORE throat")) == 5
    assert index.count(parse("never heard of")) == 0
    assert index.resolve(parse("Fever & never heard of")).canonical() == "fever & never heard of"
    assert Index(tmp_path / "index").count(parse("fever & never heard of")) == 0
    public = index_table(pl.DataFrame(oracle.FIVE_NOTES), tmp_path / "public", terms=SYMPTOMS).index
    assert public.meta.vocabulary_public is True


def test_terms_outside_the_vocabulary_never_reach_the_index(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"patient": [1, 2], "terms": [["fever", "brown"], ["Brown"]]},
        schema={"patient": pl.Int64, "terms": pl.List(pl.String)},
    )
    built = index_table(table, tmp_path / "index", terms=SYMPTOMS)
    assert built.left_out == {"terms that the vocabulary lacks": 2}
    assert b"brown" not in b"".join(contents(tmp_path / "index").values()).lower()
    assert built.index.patients == 2


def test_months_in_every_usual_spelling(tmp_path: Path) -> None:
    for number, (months, years) in enumerate(
        [(["April", "june"], [2009, 2010]), ([4, 6], [2009, 2010]), (["2009-04", "2010-06"], [2009, 2010])]
    ):
        table = pl.DataFrame(
            {
                "patient": [1, 2],
                "visit_month": months,
                "visit_year": years,
                "terms": [["fever"], ["fever"]],
            }
        )
        index = index_table(table, tmp_path / f"index{number}", terms=SYMPTOMS).index
        assert index.values("when") == ("2009-04", "2010-06")
        assert index.resolve(parse("fever", when="2009-04")).predicates == (
            Predicate("when", "equals", "2009-04"),
        )


def test_what_is_kept_in_memory_is_bounded(five: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leeward.queries.index.counts.KEPT", 3)
    index = Index(five.path)
    for _ in range(2):
        for term in SYMPTOMS.terms:
            assert index.count(parse(term)) == sum(term in row["terms"] for row in oracle.FIVE_NOTES)
    assert index._term.cache_info().currsize == 3


def test_months_without_a_year_and_odd_values(tmp_path: Path) -> None:
    table = pl.DataFrame({"patient": [1, 2], "visit_month": [4, 6], "terms": [["fever"], ["fever"]]})
    index = index_table(table, tmp_path / "index", terms=SYMPTOMS).index
    assert index.count(parse("fever", month="4..5")) == 1
    odd = pl.DataFrame({"patient": [1, 2], "when": ["2009-04", "soon"], "terms": [["fever"], ["fever"]]})
    built = index_table(odd, tmp_path / "odd", terms=SYMPTOMS)
    assert built.left_out == {"values of when that its type or domain does not admit": 1}
    assert built.index.count(parse("fever")) == 2


def test_both_spellings_of_a_sex_are_understood_where_the_domain_says_which(tmp_path: Path) -> None:
    table = pl.DataFrame({"patient": [1, 2], "sex": ["female", "male"], "terms": [["fever"], ["fever"]]})
    domains = {"sex": ("female", "male")}
    index = index_table(table, tmp_path / "index", terms=SYMPTOMS, domains=domains).index
    assert index.resolve(parse("fever", sex="F")) == index.resolve(parse("fever", sex="female"))
    assert index.count(parse("fever", sex="F")) == 1
