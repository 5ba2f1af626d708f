"""Synthetic notes: exact spans, the same notes for the same seed, nothing shared between training and held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.notes.small_lexicon import SMALL

from leeward.errors import BadInput
from leeward.notes.corpora import read
from leeward.notes.lexicon import Lexicon
from leeward.notes.lexicon.concepts import concept
from leeward.notes.lexicon.loaders import load
from leeward.notes.spans import EID, HMI, QID
from leeward.randomness import Randomness
from leeward.synthetic.notes import (
    NotePlan,
    Split,
    SyntheticNote,
    synthetic_notes,
    write_notes,
)
from leeward.synthetic.notes.draft import Dice, Draft, mistype
from leeward.synthetic.notes.people import MONTH_WEIGHTS, pool
from leeward.synthetic.notes.slots import SLOTS, WORDS, health_slot, literal_slot
from leeward.synthetic.notes.templates import SLOT, kinds, read_banks
from leeward.synthetic.notes.terms import SEASONS, Terms, season

SPLITS: tuple[Split, ...] = get_args(Split)


def notes(split: Split, number: int = 150, seed: int = 3) -> list[SyntheticNote]:
    return list(synthetic_notes(NotePlan(number // 2, number, split, seed), SMALL))


@pytest.mark.parametrize("split", SPLITS)
def test_every_span_is_where_it_says(split: Split) -> None:
    names = {name.lower() for name in (*pool(split).male, *pool(split).female, *pool(split).last)}
    known = {"EID": EID, "QID": QID, "HMI": HMI}
    for note in notes(split):
        text, end = note.annotated.text, 0
        for span in note.annotated.spans:
            assert end <= span.start < span.end <= len(text)
            end = span.end
            words = text[span.start : span.end]
            assert words == words.strip()
            assert span.category in known[span.kind]
            assert (span.concept in SMALL) == (span.kind == "HMI")
            assert span.asserted == (span.source == "gold")
            if span.category == "name":
                assert any(name in words.lower() for name in names)
            if span.category == "email":
                assert "@" in words
            # A span holds the whole word: what follows and goes before is no letter and no digit, but in "54F".
            if span.category not in ("age", "sex"):
                assert not text[span.end : span.end + 1].isalnum()
                assert not text[max(0, span.start - 1) : span.start].isalnum()


def test_spelled_terms_are_the_lexicon_s() -> None:
    exact = 0
    for note in notes("training"):
        for span in note.annotated.spans:
            if span.kind == "HMI":
                found = SMALL.find(note.annotated.text[span.start : span.end])
                exact += found is not None and found.id == span.concept
                assert found is None or found.id == span.concept
    total = sum(span.kind == "HMI" for note in notes("training") for span in note.annotated.spans)
    assert 0.93 < exact / total < 1.0  # slips of the typist are few, but there are some


def test_every_category_and_every_context_is_written() -> None:
    for split in SPLITS[:2]:  # the sealed kinds are few
        spans = [span for note in notes(split, 600) for span in note.annotated.spans]
        written = {f"{span.kind}:{span.category}" for span in spans}
        wanted = {f"EID:{name}" for name in EID} - {"EID:biometric", "EID:photo"}
        wanted |= {f"QID:{name}" for name in QID} | {f"HMI:{name}" for name in HMI}
        assert written == wanted
        assert {span.source for span in spans} == {
            "gold",
            "gold:negated",
            "gold:uncertain",
            "gold:family",
            "gold:historical",
        }


def test_the_same_seed_gives_the_same_notes() -> None:
    assert notes("training") == notes("training")
    assert notes("training", seed=4) != notes("training")
    # A patient's notes do not depend on how many others there are.
    assert notes("training", 40)[:20] == list(synthetic_notes(NotePlan(200, 400, "training", 3), SMALL))[:20]


def test_training_and_held_out_share_no_line_no_name_no_place() -> None:
    lines = [{line for bank in read_banks(split).values() for line in bank} for split in SPLITS]
    assert not lines[0] & lines[1] and not (lines[0] | lines[1]) & lines[2]
    assert len(lines[0]) > 200 and len(lines[1]) > 130
    ours, theirs = pool("training"), pool("held-out")
    assert not {*ours.male, *ours.female, *ours.last} & {*theirs.male, *theirs.female, *theirs.last}
    for field in ("last", "cities", "streets", "facilities", "employers"):
        first, second = set(getattr(ours, field)), set(getattr(theirs, field))
        assert not first & second, field
        assert min(len(first), len(second)) > 20
    headings = [
        {
            heading
            for sections in kinds(split).sections
            for section in sections
            for heading in section.headings
        }
        for split in ("training", "held-out")
    ]
    assert not headings[0] & headings[1]
    own_kinds = set(kinds("held-out").names) - set(kinds("training").names)
    assert not set(kinds("sealed").names) & {*kinds("training").names, *kinds("held-out").names}
    assert own_kinds == {"consult letter", "emergency note", "radiology report", "telephone note"}


def test_words_that_name_nobody_are_no_health_terms() -> None:
    lexicon = Lexicon("rate", (*SMALL.concepts, concept("T9", "test", ["rate"])))
    assert "Rate" in WORDS["ordinary"]
    left = Terms.of(lexicon).without(WORDS["ordinary"])
    assert "Rate" not in left and len(left) == len(WORDS["ordinary"]) - 1
    assert not {*WORDS["ordinary"], *WORDS["eponyms"]} & {*pool("training").male, *pool("training").female}


def test_patients_keep_their_identity_over_notes() -> None:
    per_patient: dict[str, Counter[str]] = {}
    for note in synthetic_notes(NotePlan(20, 200, "training", 5), SMALL):
        for span in note.annotated.spans:
            if span.category == "record_number":
                words = note.annotated.text[span.start : span.end]
                per_patient.setdefault(note.patient, Counter())[words] += 1
    assert len(per_patient) > 15
    assert all(len(numbers) == 1 for numbers in per_patient.values())


def test_files_hold_notes_and_gold(tmp_path: Path) -> None:
    out, gold = tmp_path / "notes.parquet", tmp_path / "gold.jsonl"
    assert write_notes(out, NotePlan(7, 31, seed=1), spans=gold, lexicon=SMALL) == 31
    frame = pl.read_parquet(out)
    assert frame.columns == ["note", "patient", "date", "text"]
    assert frame["patient"].n_unique() == 7
    read_back = read(gold)
    assert [note.text for note in read_back] == frame["text"].to_list()
    assert [note.name for note in read_back] == frame["note"].to_list()
    made = [note.annotated for note in synthetic_notes(NotePlan(7, 31, seed=1), SMALL)]
    assert read_back == made
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.jsonl", "notes.parquet"]
    with pytest.raises(BadInput, match="exists already"):
        write_notes(out, NotePlan(1), lexicon=SMALL)


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    def fail(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_notes(tmp_path / "a.parquet", NotePlan(2100, 2100, seed=1), lexicon=SMALL, progress=fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("patients", "count"), [(0, None), (1, 0)])
def test_plans_are_checked(patients: int, count: int | None) -> None:
    with pytest.raises(BadInput, match="must be at least 1"):
        NotePlan(patients, count)


def test_a_lexicon_without_drugs_cannot_write() -> None:
    without = Lexicon("none", tuple(c for c in SMALL.concepts if c.kind != "drug"))
    with pytest.raises(BadInput, match="no drug to write notes with"):
        next(synthetic_notes(NotePlan(1), without))


def test_slips_keep_the_first_letter_and_the_blanks() -> None:
    dice = Dice(Randomness.of(1).stream("slips"))
    slipped = [mistype("sore throat", dice) for _ in range(200)]
    assert all(word.startswith("s") and word.count(" ") == 1 for word in slipped)
    assert len(set(slipped)) > 20
    assert mistype("AB 12", dice) == "AB 12"


def test_a_draft_marks_what_it_writes() -> None:
    draft = Draft(Dice(Randomness.of(1).stream("draft")), 0.0, False)
    draft.put("Mr. ")
    draft.mark("Brown", "EID", "name")
    draft.put(" denies ")
    draft.mark("fever", "HMI", "symptom", "S1", "negated")
    note = draft.note("one", "visit note")
    assert note.text == "Mr. Brown denies fever"
    assert [(note.text[s.start : s.end], s.asserted, s.source) for s in note.spans] == [
        ("Brown", True, "gold"),
        ("fever", False, "gold:negated"),
    ]


@pytest.mark.parametrize("split", SPLITS)
def test_every_line_of_a_bank_is_a_template_whose_slots_are_known(split: Split) -> None:
    found = read_banks(split)
    assert found
    for bank, lines in found.items():
        assert all(line.strip() for line in lines), bank
        slots = [slot for line in lines for slot in SLOT.findall(line)]
        assert all(slot in SLOTS or literal_slot(slot) or health_slot(slot) for slot in slots), bank


def test_without_seasons_months_share_a_table_and_a_condition_is_met_alike_in_all() -> None:
    terms = Terms.of(SMALL)
    assert all(len(set(months)) == 1 and len(months) == 12 for months in terms.cumulated.values())
    assert Terms.of(SMALL, 1.0).cumulated["drug"] == terms.cumulated["drug"]  # no drug has a season


@given(st.integers(1, 12), st.floats(1, 300), st.floats(0, 2))
def test_a_season_has_its_peak_its_ratio_and_an_average_of_one(
    peak: int, ratio: float, strength: float
) -> None:
    found = season(peak, ratio, strength)
    opposite = (peak + 5) % 12
    assert max(found) == pytest.approx(found[peak - 1]) and min(found) == pytest.approx(found[opposite])
    assert found[peak - 1] / found[opposite] == pytest.approx(ratio**strength)
    mean = sum(weight * each for weight, each in zip(MONTH_WEIGHTS, found, strict=True)) / sum(MONTH_WEIGHTS)
    assert mean == pytest.approx(1)


def test_conditions_follow_their_seasons_and_visits_stay() -> None:
    """A visit in the peak month meets a sore throat as many times as often as stated; nothing but terms changes."""
    terms = Terms.of(SMALL, 2.0)
    dice = Dice(Randomness.of(1).stream("seasons"))
    drawn = [[terms.draw("symptom", month, dice)[0] for _ in range(20_000)] for month in (1, 7)]
    odds = [each.count("S2") / each.count("S1") for each in drawn]  # sore throat, fever
    assert odds[0] / odds[1] == pytest.approx(1.7**2, rel=0.1)
    plain, seasonal = notes("training"), list(synthetic_notes(NotePlan(75, 150, "training", 3, 1.0), SMALL))
    assert plain != seasonal
    # Whole notes drift apart once a term is another; a patient's first visit is drawn before.
    assert [(note.patient, note.date) for note in plain[::2]] == [
        (note.patient, note.date) for note in seasonal[::2]
    ]


def test_every_season_is_of_a_condition_that_the_lexicon_has() -> None:
    lexicon = load("leeward")
    found = [lexicon.find(name) for name in SEASONS]
    assert None not in found
    assert len({each.id for each in found if each is not None}) == len(SEASONS)


@pytest.mark.parametrize("seasons", [-0.1, 5.1, float("nan")])
def test_seasons_are_checked(seasons: float) -> None:
    with pytest.raises(BadInput, match="`seasons` must lie between"):
        NotePlan(1, seasons=seasons)
