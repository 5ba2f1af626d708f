"""The verifier of catalogues: an honest one passes, each planted violation is caught."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forging import write_parquet

from leeward.contracts.notes import CONTRACT
from leeward.contracts.readme import readme_of
from leeward.queries.answer.catalogue import Items, next_candidates
from leeward.release.content import Anonymized, Guarantee, manifest_of
from leeward.release.manifest import FileEntry, to_json_text
from leeward.release.tables import sha256_of
from leeward.verify import Source, verify
from leeward.verify.notes.check import candidates

ITEMSETS: list[tuple[list[str], float]] = [
    (["fever"], 90.0),
    (["cough"], 60.0),
    (["fever", "sex=f"], 50.0),
    (["cough", "fever"], 41.0),
]
PARAMETERS: dict[str, Any] = {
    "max_size": 2,
    "contributions": 10,
    "mechanism": "two-sided geometric noise",
    "vocabulary": "symptoms",
    "domains": {"sex": ["f", "m"]},
    "row": "note",
    "max_rows_per_patient": None,
    "levels": [
        {"candidates": 11, "epsilon": 0.5, "listed": 2, "scale": 20.0, "size": 1, "threshold": 60},
        {"candidates": 5, "epsilon": 0.5, "listed": 2, "scale": 20.0, "size": 2, "threshold": 40},
    ],
}
VOCABULARY = ["cough", "fever", "mumps"]


class Made:
    """A catalogue that a test may spoil before it is written."""

    def __init__(self) -> None:
        self.itemsets = copy.deepcopy(ITEMSETS)
        self.parameters = copy.deepcopy(PARAMETERS)
        self.epsilon: Any = 1.0
        self.charged: Any = 1.0
        self.vocabulary = list(VOCABULARY)
        self.table: pa.Table | None = None

    def write(self, folder: Path) -> Path:
        data = folder / "share" / "data"
        data.mkdir(parents=True)
        (folder / "custody" / "data").mkdir(parents=True)
        table = self.table or pa.table(
            {
                "items": pa.array([items for items, _ in self.itemsets], pa.list_(pa.string())),
                "count": pa.array([count for _, count in self.itemsets], pa.float64()),
            }
        )
        write_parquet(table, data / "itemsets.parquet")
        pq.write_table(
            pa.table({"item": self.vocabulary}), folder / "custody" / "data" / "vocabulary.parquet"
        )
        (folder / "custody" / "charge.json").write_text(
            json.dumps({"epsilon": self.charged}), encoding="utf-8"
        )
        words = CONTRACT.words({"row": "note", "contributions": 10})
        made = Anonymized(
            method="notes",
            parameters=self.parameters,
            guarantee=Guarantee.of(CONTRACT, words, {"epsilon": self.epsilon}),
            records=0,
            tables=(),
            readme=words.readme,
        )
        entry = FileEntry("data/itemsets.parquet", table.num_rows, sha256_of(data / "itemsets.parquet"))
        manifest = manifest_of(made, [entry])
        (folder / "share" / "release.json").write_text(to_json_text(manifest), encoding="utf-8")
        readme = readme_of(manifest, made.readme, CONTRACT)
        (folder / "share" / "README.md").write_text(readme, encoding="utf-8")
        return folder


def failures(folder: Path) -> list[str]:
    return [check.name for check in verify(folder).failures]


def test_an_honest_catalogue_passes(tmp_path: Path) -> None:
    folder = Made().write(tmp_path / "out")
    found = verify(folder)
    assert found.passed
    assert {"itemsets", "counts", "parts", "order", "budget", "numbers", "vocabulary", "charge"} <= {
        check.name for check in found.checks
    }
    alone = verify(folder / "share")
    assert alone.passed


def test_an_empty_catalogue_passes(tmp_path: Path) -> None:
    made = Made()
    made.itemsets = []
    made.parameters["levels"] = [{**made.parameters["levels"][0], "listed": 0}]
    assert verify(made.write(tmp_path / "out")).passed


def add(items: list[str], count: float) -> Callable[[Made], None]:
    def spoil(made: Made) -> None:
        made.itemsets.append((items, count))
        made.itemsets.sort(key=lambda row: (len(row[0]), -row[1], row[0]))
        level = made.parameters["levels"][len(items) - 1] if len(items) <= 2 else None
        if level is not None:
            level["listed"] += 1

    return spoil


def level(number: int, **values: Any) -> Callable[[Made], None]:
    return lambda made: made.parameters["levels"][number].update(values)


def answers_of(made: Made, **question: Any) -> list[tuple[str, str]]:
    """What a ledger keeps that was asked a count and this catalogue."""
    asked = {
        "release": "itemsets", "epsilon": 1_000_000, "max_size": 2, "contributions": 10, "vocabulary": "symptoms",
        "domains": {"sex": ["f", "m"]}, "rows": None, **question,
    }  # fmt: skip
    found = {
        "itemsets": [items for items, _ in made.itemsets],
        "counts": [int(count) for _, count in made.itemsets],
        "levels": made.parameters["levels"],
    }
    return [(json.dumps({"query": "fever"}), "[3]"), (json.dumps(asked), json.dumps(found))]


def beside_the_ledger(folder: Path, answers: list[tuple[str, str]]) -> list[str]:
    return [check.name for check in verify(folder, Source(pl.DataFrame(), answers=answers)).failures]


def test_a_stored_answer_passes_and_one_of_the_share_alone_too(tmp_path: Path) -> None:
    made = Made()
    folder = made.write(tmp_path / "out")
    assert beside_the_ledger(folder, answers_of(made)) == []
    assert beside_the_ledger(folder / "share", answers_of(made)) == []
    assert any("ledger" in each for each in verify(folder).unchecked)


def test_a_verification_without_the_ledger_says_what_it_has_not_seen(tmp_path: Path) -> None:
    made = Made()
    folder = made.write(tmp_path / "out")
    for unseen in ("noise", "epsilon", "left out"):
        for place in (folder, folder / "share"):
            assert any(unseen in each and "Without the ledger" in each for each in verify(place).unchecked)
        seen = verify(folder, Source(pl.DataFrame(), answers=answers_of(made))).unchecked
        assert not any(unseen in each for each in seen)


def test_domains_of_numbers_ascend_by_value(tmp_path: Path) -> None:
    made = Made()
    made.parameters["domains"] = {"age": ["9", "10"]}
    made.itemsets[2] = (["fever", "age=9"], 50.0)
    assert verify(made.write(tmp_path / "out")).passed


def test_the_readme_speaks_of_itemsets_and_of_no_records(tmp_path: Path) -> None:
    text = (Made().write(tmp_path / "out") / "share" / "README.md").read_text(encoding="utf-8")
    opening = text.split("\n\n")[1]
    assert opening.startswith("A catalogue of itemsets with noisy counts, made with Leeward")
    assert "record" not in text.replace("There are no records here", "")
    assert "anonymized" not in text


def lower(made: Made) -> None:
    made.itemsets[-1] = (made.itemsets[-1][0], made.itemsets[-1][1] - 1)


def renamed(made: Made) -> None:
    made.itemsets[1] = (["mumps"], made.itemsets[1][1])
    made.itemsets[3] = (["fever", "mumps"], made.itemsets[3][1])


OTHER_THAN_STORED: dict[str, Callable[[Made], Any]] = {
    "a count that is one less": lower,
    "a count without noise": lambda made: made.itemsets.__setitem__(0, (["fever"], 87.0)),
    "a term for another": renamed,
    "levels of another answer": level(0, candidates=12),
    "a set less": lambda made: (made.itemsets.pop(), level(1, listed=1)(made)),
}


@pytest.mark.parametrize("name", OTHER_THAN_STORED)
def test_a_catalogue_other_than_the_stored_one_is_caught(name: str, tmp_path: Path) -> None:
    """Every one of them passes without the ledger."""
    made = Made()
    OTHER_THAN_STORED[name](made)
    folder = made.write(tmp_path / "out")
    assert failures(folder) == []
    assert beside_the_ledger(folder, answers_of(Made())) == ["published_answer"]


@pytest.mark.parametrize(
    "question",
    [{"epsilon": 2_000_000}, {"contributions": 20}, {"max_size": 3}, {"vocabulary": "icd9"}, {"rows": 4},
     {"domains": {}}, {"release": "other"}],
    ids=lambda question: next(iter(question)),
)  # fmt: skip
def test_an_answer_to_another_question_is_caught(question: dict[str, Any], tmp_path: Path) -> None:
    made = Made()
    assert beside_the_ledger(made.write(tmp_path / "out"), answers_of(made, **question)) == [
        "published_answer"
    ]


def items(row: int, texts: list[str]) -> Callable[[Made], None]:
    return lambda made: made.itemsets.__setitem__(row, (texts, made.itemsets[row][1]))


def domains(**values: list[str]) -> Callable[[Made], None]:
    return lambda made: made.parameters.update(domains=values)


SPOILT: dict[str, tuple[Callable[[Made], Any], str]] = {
    "a count below the public threshold": (add(["mumps"], 59.0), "counts"),
    "an exact-looking fraction": (add(["mumps"], 60.5), "counts"),
    "a set without a term": (add(["sex=f"], 99.0), "itemsets"),
    "two values of a quasi-identifier": (add(["sex=f", "sex=m"], 99.0), "itemsets"),
    "a set listed twice": (add(["fever", "cough"], 41.0), "itemsets"),
    "an item twice in a set": (add(["fever", "fever"], 41.0), "itemsets"),
    "a set larger than stated": (add(["cough", "fever", "sex=f"], 41.0), "itemsets"),
    "a part that is not listed": (add(["fever", "mumps"], 45.0), "parts"),
    "a term outside the public vocabulary": (add(["mr brown"], 70.0), "vocabulary"),
    "an order of its own": (lambda made: made.itemsets.reverse(), "order"),
    "items of a pair in another order": (items(3, ["fever", "cough"]), "order"),
    "a value before its term": (items(2, ["sex=f", "fever"]), "order"),
    "values of a domain in another order": (domains(sex=["m", "f"]), "order"),
    "numbers of a domain as texts": (domains(age=["10", "9"]), "order"),
    "domains in another order": (domains(sex=["f"], age=["9"]), "order"),
    "levels that spend more than stated": (level(1, epsilon=0.7, scale=20.0), "budget"),
    "less noise than the level's epsilon": (level(0, scale=10.0), "budget"),
    "more noise than the level's epsilon": (level(0, scale=40.0), "budget"),
    "a scale without its point": (level(0, scale=20), "parameters"),
    "a level's epsilon with more digits than millionths": (level(0, epsilon=0.5000000001), "budget"),
    "an epsilon with more digits than millionths": (
        lambda made: setattr(made, "epsilon", 1.0000000001),
        "budget",
    ),
    "an epsilon without its point": (lambda made: setattr(made, "epsilon", 1), "budget"),
    "candidates that cannot have been": (level(1, candidates=6), "candidates"),
    "a value more in a public domain": (
        lambda made: made.parameters["domains"].update(sex=["f", "m", "x"]),
        "candidates",
    ),
    "no maximum of rows stated": (lambda made: made.parameters.pop("max_rows_per_patient"), "parameters"),
    "no epsilon": (lambda made: setattr(made, "epsilon", None), "budget"),
    "a number of itemsets that is not theirs": (level(0, listed=3), "numbers"),
    "more itemsets than candidates": (level(0, candidates=1), "numbers"),
    "no levels": (lambda made: made.parameters.pop("levels"), "parameters"),
    "a level without its threshold": (
        lambda made: made.parameters["levels"][0].pop("threshold"),
        "parameters",
    ),
    "less charged than stated": (lambda made: setattr(made, "charged", 0.5), "charge"),
    "nothing charged": (lambda made: setattr(made, "charged", None), "charge"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_planted_violation_is_caught(name: str, tmp_path: Path) -> None:
    spoil, wanted = SPOILT[name]
    made = Made()
    spoil(made)
    assert wanted in failures(made.write(tmp_path / "out"))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"items": [["fever"]], "count": [3]}),
        pa.table({"items": [["fever"]], "count": [3.0], "exact": [3.0]}),
        pa.table({"items": pa.array([["fever", None]]), "count": [90.0]}),
        pa.table({"items": [["fever"]], "count": [float("nan")]}),
        pa.table({"items": [["fever"]], "count": [float("inf")]}),
    ],
)
def test_another_layout_is_caught(table: pa.Table, tmp_path: Path) -> None:
    made = Made()
    made.table = table
    assert "layout" in failures(made.write(tmp_path / "out"))


@pytest.mark.parametrize("seed", range(60))
def test_candidates_are_counted_as_they_are_made(seed: int) -> None:
    """Up to four levels of made-up results, the candidates of each made by the method from the one before."""
    draws = np.random.Generator(np.random.Philox(seed))
    terms = int(draws.integers(2, 7))
    values = {"sex=f": "sex", "sex=m": "sex", "zip=1": "zip"}
    texts = (*(f"t{place}" for place in range(terms)), *values)
    names = (*(("", text) for text in texts[:terms]), ("sex", "f"), ("sex", "m"), ("zip", "1"))
    items = Items(names, terms, texts)
    tried: list[tuple[int, ...]] = [(term,) for term in range(terms)]
    rows: list[tuple[tuple[str, ...], float]] = []
    levels: dict[int, dict[str, Any]] = {}
    for size in range(1, 5):
        kept = {each: 1 for each in tried if draws.random() < 0.8}
        rows += [(tuple(texts[place] for place in each), 1.0) for each in kept]
        levels[size] = {"candidates": len(tried)}
        tried = next_candidates(kept, items, 100_000)
        if not tried:
            break
    assert candidates(rows, levels, values).passed
    levels[max(levels)]["candidates"] += 1
    assert not candidates(rows, levels, values).passed or max(levels) == 1
