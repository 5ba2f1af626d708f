"""A method's table of measures: options are what has a default, and refusals name what there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from leeward.analysis.figures import figures_of
from leeward.errors import BadInput
from leeward.release import Release

RELEASE = Release(Path(), None, {"method": "wishing", "parameters": {"demographics": None}})


@dataclass(frozen=True)
class Sum:
    value: float
    workloads: tuple[int, ...] = ()


def total(numbers: list[int], known: dict[int, int], *, times: int = 1) -> Sum:
    return Sum(float("nan") if times == 0 else times * sum(numbers), (times,))


TABLE = {
    "total": partial(total, [1, 2], known={}),
    "nothing": lambda: None,
    "apart": lambda: (Sum(1.0),),
    "demographics": lambda: pytest.fail("the release has no demographics"),
}


def measured(*wanted: dict[str, Any]) -> dict[str, Any]:
    return figures_of(RELEASE, TABLE, wanted, apart="apart")


def test_figures_are_json_in_the_order_asked_for_and_workloads_add_up() -> None:
    found = measured(
        {"apart": {}, "nothing": {}}, {"total": {}}, {"demographics": {}}, {"total": {"times": 0}}
    )
    assert found == {
        "apart": [{"value": 1.0, "workloads": []}],
        "total": {"value": None, "workloads": [1, 0]},
    }
    assert list(found) == ["apart", "total"]


def test_what_is_not_there_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(
        BadInput, match="no measure `sum` for wishing; known: total, nothing, apart, demographics"
    ):
        measured({"total": {}}, {"sum": {}})
    with pytest.raises(BadInput, match="`measure: total`: unknown option `known`; known: times"):
        measured({"total": {"known": 1}})
    with pytest.raises(BadInput, match="`measure: nothing`: unknown option `x`; known: none"):
        measured({"nothing": {"x": 1}})


def test_demographics_are_measured_where_there_are_some() -> None:
    released = replace(RELEASE, manifest={"method": "wishing", "parameters": {"demographics": {"age": 1}}})
    assert figures_of(released, {"demographics": lambda: Sum(2.0)}, [{"demographics": {}}])
