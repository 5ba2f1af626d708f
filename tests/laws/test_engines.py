"""A run starts Spark where its method has work for it, and nowhere else: what methods say of it is what they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.laws.cases import Case, cases, classed_cases, method_of_case

from leeward.engine import LocalEngine
from leeward.methods import METHODS
from leeward.runs.protect import protect

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "large-data.md"

CASES: dict[str, Case] = {
    **cases(),
    **classed_cases(),
    "disassociation with partitions": replace(
        cases()["disassociation"], parameters={"k": 3, "m": 2, "partitions": 2}
    ),
    "disassociation with the algorithm known": replace(
        cases()["disassociation"], parameters={"k": 3, "m": 2, "attacker": "algorithm"}
    ),
    "censoring with a scope": replace(cases()["censoring"], parameters={"k": 3, "scope": "global"}),
}


@dataclass(frozen=True)
class Watched(LocalEngine):
    """This machine in the place of Spark; notes what it is asked for."""

    name: str = "spark"

    def __getattribute__(self, name: str) -> Any:
        if name in ("map_groups", "map_tasks", "collect"):
            ASKED.append(name)
        return super().__getattribute__(name)


ASKED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_asked() -> Iterator[None]:
    ASKED.clear()
    yield
    ASKED.clear()


@pytest.mark.parametrize("name", CASES)
def test_spark_is_started_where_it_gets_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, kind = CASES[name], METHODS[method_of_case(name)].parameters_class()
    method = kind(**case.parameters)
    method.protect(case.cohort, Watched(1), population=case.population)
    patients = case.cohort.patients if case.cohort.events is None else case.cohort.events["patient"].unique()
    assert patients is not None
    assert method.uses_engine(len(patients)) == bool(ASKED)
    started: list[Any] = []
    monkeypatch.setattr("leeward.engine.make", lambda spec, *_, **__: started.append(spec) or LocalEngine(1))
    done = protect(case.cohort, method, tmp_path / "OUT", engine="spark", population=case.population)
    assert started[:1] == ["spark" if ASKED else "local"]
    told = [
        each["message"] for each in done.measures["notices"] if "Spark was not started" in each["message"]
    ]
    assert len(told) == (not ASKED)


def test_the_page_says_what_spark_runs() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for name, method in METHODS.items():
        assert f"| {name} | {method.parameters_class().ON_ENGINE or 'nothing'} |" in lines
