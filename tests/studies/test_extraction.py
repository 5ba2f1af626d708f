"""Noise at extraction, a comparator of the study of counts: its estimates and its price, over all answers."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studies.pages import faults_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def every(items: int) -> list[tuple[int, ...]]:
    return [*product((0, 1), repeat=items)]


def chance(stored: tuple[int, ...], held: tuple[int, ...], response: Any) -> float:
    """Of an answer, given what the note holds."""
    each = [response.held if x else response.absent for x in held]
    return math.prod(p if y else 1 - p for y, p in zip(stored, each, strict=True))


@pytest.mark.parametrize("items", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_estimate_is_unbiased(items: int, epsilon: float) -> None:
    import study_queries_extraction as study

    for response in (study.warner(epsilon, items), study.unary(epsilon, items)):
        for held in every(items):
            mean = sum(
                chance(stored, held, response) * study.estimate(np.array([stored], bool), response)
                for stored in every(items)
            )
            assert mean == pytest.approx(float(all(held)), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_no_answer_is_likelier_than_the_price_says(epsilon: float) -> None:
    import study_queries_extraction as study

    def worst(response: Any, notes: list[tuple[int, ...]]) -> float:
        return max(
            chance(y, one, response) / chance(y, other, response)
            for y in every(len(notes[0]))
            for one in notes
            for other in notes
        )

    assert worst(study.warner(epsilon, 3), every(3)) == pytest.approx(math.exp(epsilon))
    two_of_four = [note for note in every(4) if sum(note) <= 2]
    assert worst(study.warner(epsilon, 4), two_of_four) == pytest.approx(math.exp(epsilon))
    assert worst(study.unary(epsilon, 2), two_of_four) == pytest.approx(math.exp(epsilon))


def test_answers_follow_their_law_and_the_section_has_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import study_queries_extraction as study
    from leeward.randomness import Randomness
    from study_queries_seasons import true_table

    held = np.tile([True, False], (20_000, 1))
    stored = study.answers(held, study.Response(0.7, 0.2), Randomness.of(1).stream("test"))
    assert stored.mean(axis=0) == pytest.approx([0.7, 0.2], abs=0.02)

    for name, value in {
        "SUPPORTS": (4, 8),
        "SEEDS": 2,
        "EPSILONS": (0.5, 50.0),
        "TOTALS": (1.0, 1e5),
    }.items():
        monkeypatch.setattr(study, name, value)
    monkeypatch.setattr("study_queries_seasons.PATIENTS", 80)
    monkeypatch.setattr("study_queries_seasons.NOTES", 160)
    page = study.part(true_table(1, 0.0), tmp_path / "index", "made-up notes", 3)
    assert faults_of(page) == [] and page.count("\n|") == 4 * (2 + 2)
    # With next to no noise all are right.
    assert all(
        float(line.split("|")[2].split("±")[0]) < 0.02 for line in page.splitlines() if "| 50 " in line
    )
    assert page.count("| 100000 | 0.0") == 1
