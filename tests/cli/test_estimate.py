"""Counts of demographics and codes by recipients, for every method that releases both: answers counted by hand in the
examples of docs/methods/whole-patient.md, bounds that hold, and questions that cannot be answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Run
from tests.methods.trajectories.test_whole_patient import FOUR
from tests.methods.trajectories.test_whole_patient import cohort_of as with_ages
from tests.methods.visits.test_whole_patient import example, with_people

import leeward as lw
from leeward.analysis.record_counts import Labelled
from leeward.errors import BadInput
from leeward.methods.censoring import Censoring
from leeward.methods.constraints import Constraints
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.release import write

TEN: dict[str, Any] = {"demographics": ("age", "sex"), "keep": {"age": 20, "sex": "exact"}}
F, M = {"sex": "F"}, {"sex": "M"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimates")
    (folder / "policy.txt").write_text("428,493,585\n")
    policy = f"file:{folder / 'policy.txt'}"
    ten, four, of = example(), with_ages(FOUR), Randomness.of
    sex: dict[str, Any] = {"demographics": ("sex",), "keep": {"sex": "exact"}}
    for name, made in {
        "visits": Visits(k=3, policy="none", **TEN).protect(ten, randomness=of(1)),
        "constraints": Constraints(k=3, m=2, policy=policy, **TEN).protect(ten, randomness=of(1)),
        "censoring": Censoring(k=2, **TEN).protect(ten, population=ten, randomness=of(1)),
        "trajectories": Trajectories(k=2, **sex).protect(four, randomness=of(1)),
    }.items():
        write(made, folder / name)
    return folder


@pytest.mark.parametrize(
    ("method", "codes", "where", "low", "expected", "high"),
    [
        # visits: women {250, 401} three times, men {401, 414} three times, of five each
        ("visits", "401", F, 3, 3.0, 5),
        ("visits", "401,414", M, 3, 3.0, 5),
        ("visits", "401", {}, 6, 6.0, 10),
        ("visits", "401", {"age": "60-79", **F}, 0, 1.5, 5),  # the women's label is 40-79
        ("visits", "414", {"age": "60-79"}, 3, 3.0, 10),
        # generalized records: 428 is one of three codes of a label that four women have, suppressed among men
        ("constraints", "250", F, 4, 4.0, 4),
        ("constraints", "250", {}, 4, 4.0, 9),
        ("constraints", "428", F, 0, 4 * 0.5 / 0.875, 4),
        ("constraints", "401,414", M, 3, 3.0, 3),
        # censoring by groups: p1 to p3 {250, 401}, p4 to p6 {401, 414}, p7 and p8 {250}, p9 and p10 {493}
        ("censoring", "250", {}, 5, 5.0, 10),
        ("censoring", "250", {"age": "60-79", **M}, 2, 2.0, 5),
        ("censoring", "493", {"age": "40-59"}, 2, 2.0, 2),
        # trajectories: two women and two men with 250.0, below which are 250.00 and 250.01
        ("trajectories", "250.0", F, 2, 2.0, 2),
        ("trajectories", "250.00", F, 0, 1.0, 2),
        ("trajectories", "250.01", {}, 0, 2.0, 4),
    ],
)
def test_answers_counted_by_hand(
    folder: Path, method: str, codes: str, where: dict[str, str], low: int, expected: float, high: int
) -> None:
    found = lw.estimate(folder / method / "share", codes.split(","), where=where)
    assert (found.low, found.expected, found.high) == (low, pytest.approx(expected), high)


LABEL = "(428,493,585)"


@pytest.mark.parametrize(
    ("codes", "where", "low", "expected", "high"),
    [
        # whoever has 428, 493 or 585: four of the five women; nobody knows of the men, of whom all three are suppressed
        ((LABEL,), F, 4, 4.0, 4),
        ((LABEL,), {}, 4, 4.0, 9),
        ((LABEL, "250"), F, 3, 3.0, 3),
        ((LABEL, "428"), F, 0, 4 * 0.5 / 0.875, 4),  # the one says no more than the other
    ],
)
def test_a_generalized_label_is_asked_as_it_is_written(
    folder: Path,
    leeward: Run,
    codes: tuple[str, ...],
    where: dict[str, str],
    low: int,
    expected: float,
    high: int,
) -> None:
    share = folder / "constraints" / "share"
    found = lw.estimate(share, codes, where=where)
    assert (found.low, found.expected, found.high) == (low, pytest.approx(expected), high)
    flags = [flag for name, label in where.items() for flag in ("--where", f"{name}={label}")]
    shown = leeward("estimate", share, ",".join(codes), *flags, "--json").json()["estimates"]
    assert shown == [
        {"codes": list(codes), "low": low, "expected": pytest.approx(expected), "high": high},
    ]


def test_a_label_that_the_release_has_not_is_named_with_the_nearest(folder: Path, leeward: Run) -> None:
    done = leeward("estimate", folder / "constraints" / "share", "(428,493)")
    assert done.status == 2 and f"no code `(428,493)` in this release; nearest: `{LABEL}`" in done.err
    done = leeward("estimate", folder / "constraints" / "share", "(428,493,250")
    assert done.status == 2 and "no code `(428`" in done.err


@pytest.mark.parametrize("method", ["visits", "constraints", "censoring", "trajectories"])
def test_what_a_release_has_not_is_named_with_the_nearest(folder: Path, method: str) -> None:
    share = folder / method / "share"
    with pytest.raises(BadInput, match=r"no code `250\.9` in this release; nearest: `250"):
        lw.estimate(share, ["250.9"])
    code = "250.0" if method == "trajectories" else "401"
    with pytest.raises(BadInput, match=r"no column `sexe`. Did you mean .*sex"):
        lw.estimate(share, [code], where={"sexe": "F"})
    with pytest.raises(BadInput, match=r"no class of the release has the label `male` of `sex`.*Labels: "):
        lw.estimate(share, [code], where={"sex": "male"})
    with pytest.raises(BadInput, match="prior is for item chunks"):
        lw.estimate(share, [code], "cubic")


def test_one_text_holds_codes_between_commas(folder: Path) -> None:
    share = folder / "visits" / "share"
    assert lw.estimate(share, "401, 414") == lw.estimate(share, ["401", "414"])
    with pytest.raises(BadInput, match="between the commas is empty"):
        lw.estimate(share, "401,,414")


def test_the_command(folder: Path, leeward: Run) -> None:
    asked = ("401", "401,414", "--where", "age=60-79", "--where", "sex=M", "--json")
    shown = leeward("estimate", folder / "visits" / "share", *asked).json()
    assert [each["low"] for each in shown["estimates"]] == [3, 3] and shown["where"] == {
        "age": "60-79",
        "sex": "M",
    }
    assert leeward("estimate", folder / "visits" / "share", "401", "--where", "sex=X").status == 2


@settings(max_examples=12)
@given(st.integers(0, 500), st.sampled_from(["visits", "censoring", "constraints"]), st.data())
def test_bounds_hold_for_the_source(
    tmp_path_factory: pytest.TempPathFactory, seed: int, method: str, data: Any
) -> None:
    people = with_people(60, seed)
    out = tmp_path_factory.mktemp("bounds") / "out"
    parameters: dict[str, Any] = {"k": 3, "demographics": ("sex",), "keep": {"sex": "exact"}}
    if method == "visits":
        made = Visits(**parameters).protect(people, randomness=Randomness.of(1))
    elif method == "constraints":
        made = Constraints(m=2, policy="hierarchy:1", **parameters).protect(
            people, randomness=Randomness.of(1)
        )
    else:
        made = Censoring(**parameters).protect(people, population=people, randomness=Randomness.of(1))
    write(made, out)
    events = people.require_events().select("patient", code=pl.col("code").cast(pl.String)).unique()
    assert people.patients is not None
    women = people.patients.filter(sex="F")["patient"].implode()
    codes = data.draw(
        st.lists(st.sampled_from(["250.0", "250.1", "401.0", "272.0"]), min_size=1, max_size=2, unique=True)
    )
    held = events.filter(pl.col("code").is_in(codes), pl.col("patient").is_in(women))
    true = held.group_by("patient").len().filter(pl.col("len") == len(codes)).height
    try:
        found = lw.estimate(out, codes, where={"sex": "F"})
    except BadInput as error:
        assert "suppressed" in str(error)  # a count of 0 would be wrong
        return
    assert found.low <= true <= found.high and found.low <= found.expected <= found.high


def test_a_node_never_proves_a_code_below_it() -> None:
    """Below 250 the release lists 250.0 alone; other codes of 250 may have been recorded."""
    one = Labelled(
        1, pl.Series([0]).to_numpy(), pl.Series([0]).to_numpy(), ("250",), {"250": "", "250.0": "250"}
    )
    assert one.chances("250.0").tolist() == [0.5] and one.chances("250").tolist() == [1.0]
    assert Labelled(1, one.record, one.label, ("250.0|250.1",), {}).chances("250.1").tolist() == [0.5]
