"""The ensemble: who protects most has the character."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.painted import resolved

from leeward.notes.annotators.ensemble import resolve
from leeward.notes.spans import PRIORITY, Kind, Span

LENGTH = 30


@dataclass(frozen=True)
class Says:
    """An annotator that says what it is told to."""

    name: str
    spans: tuple[Span, ...]

    def annotate(self, text: str) -> tuple[Span, ...]:
        return self.spans


@st.composite
def answers(draw: st.DrawFn) -> list[Span]:
    """One annotator's spans: ascending, without overlaps."""
    cuts = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=8)))
    spans = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        kind: Kind = draw(st.sampled_from(sorted(PRIORITY)))
        spans.append(Span(start, end, kind, draw(st.sampled_from("ab")), draw(st.sampled_from(["", "c"]))))
    return spans


def kinds(spans: list[Span]) -> list[str]:
    by_place = ["OTHER"] * LENGTH
    for span in spans:
        by_place[span.start : span.end] = [span.kind] * (span.end - span.start)
    return by_place


@given(st.lists(answers(), max_size=4))
def test_each_character_gets_the_kind_that_protects_most(said: list[list[Span]]) -> None:
    expected = [
        min((kinds(answer)[place] for answer in said), key=lambda k: PRIORITY.get(k, 9), default="OTHER")
        for place in range(LENGTH)
    ]
    found = resolve(said)
    # What is left of a guess at a health term is none: nobody's identity is touched by that.
    assert all(
        got == best or (best, got) == ("HMI", "OTHER")
        for best, got in zip(expected, kinds(found), strict=True)
    )
    assert found == sorted(found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


@given(st.lists(answers(), max_size=5))
def test_spans_are_settled_as_characters_painted_one_by_one(said: list[list[Span]]) -> None:
    assert resolve(said) == resolved(LENGTH, said)


@given(st.lists(answers(), max_size=4))
def test_a_concept_stays_only_where_its_whole_term_does(said: list[list[Span]]) -> None:
    whole = {(s.start, s.end, s.concept) for answer in said for s in answer if s.concept}
    assert all((s.start, s.end, s.concept) in whole for s in resolve(said) if s.concept and s.kind == "HMI")


def test_white_as_a_name_beats_white_as_a_race() -> None:
    text = "Mr. White, 54, has asthma."
    name = Says("crf", (Span(4, 9, "EID", "name", source="crf"),))
    race = Says("dictionary", (Span(4, 9, "QID", "race", source="dictionary"),))
    (span,) = resolve([each.annotate(text) for each in (race, race, name)])
    assert (span.kind, span.category, span.source) == ("EID", "name", "crf")


@pytest.mark.parametrize(("strong", "weak"), [("EID", "QID"), ("QID", "HMI"), ("EID", "HMI")])
def test_the_order_of_members_does_not_weaken_protection(strong: Kind, weak: Kind) -> None:
    one, other = [Span(2, 5, strong, "x")], [Span(0, 9, weak, "y")]
    assert kinds(resolve([one, other])) == kinds(resolve([other, one]))


def test_of_equal_spans_the_first_member_gives_the_category() -> None:
    first, second = Span(0, 4, "EID", "phone", source="a"), Span(0, 4, "EID", "fax", source="b")
    assert resolve([[first], [second]]) == [first]


def test_a_health_term_with_a_concept_beats_a_longer_guess_without() -> None:
    known = Span(9, 14, "HMI", "symptom", "S1", "dictionary")
    guess = Span(0, 14, "HMI", "disease", source="crf")
    found = resolve([[known], [guess]])
    assert found == [known]  # what is left of the guess is no term
