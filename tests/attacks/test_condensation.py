"""The exact-time attack succeeds on deliberately weak tables and fails on the product's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sklearn.neighbors  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.attacks.condensation import attack, attack_beside, exact_time, time_beside
from tests.cohort.sources import read_table

from leeward.errors import BadInput
from leeward.methods.condensation import Condensation
from leeward.methods.condensation import cell as cells
from leeward.methods.condensation.measures.attacks import coarse_times, exact_times, membership, other_times
from leeward.methods.condensation.measures.columns import pair_tables
from leeward.randomness import Randomness
from leeward.release import Release, write


def registry(rows: int, seed: int = 1) -> pl.DataFrame:
    """Many correlated columns and a time that differs for nearly everybody."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(rows, 3)) @ random.normal(size=(3, 12))
    values = np.round(10 * (common + random.normal(size=(rows, 12))), 1)
    time = np.ceil(1000 * random.exponential(size=rows) * np.exp(-0.02 * values[:, 0]))
    frame = pl.DataFrame({f"x{place}": values[:, place] for place in range(12)})
    return frame.with_columns(
        g=pl.Series(random.choice(list("abc"), rows)),
        time=pl.Series(time),
        event=pl.Series(random.random(rows) < 0.6),
    )


@pytest.mark.parametrize("k", [5, 10, 20])
def test_the_products_rows_give_at_most_one_time_in_k(k: int, tmp_path: Path) -> None:
    source = registry(600)
    cohort = read_table(source)
    made = Condensation(k=k, strata=("event",), time=("time",)).protect(cohort, randomness=Randomness.of(k))
    share = write(made, tmp_path / "out") / "share"
    found = attack(share, source)
    assert found.chance < 0.02
    assert not found.exceeds(k), found
    (notice,) = [each for each in made.notices if "is below 10" in each] or [""]
    assert bool(notice) == (k < 10)
    measured = exact_times(pair_tables(Release.open(tmp_path / "out"), cohort.table()))
    assert measured is not None
    assert measured["right"] <= 1 / k + 0.05
    assert measured["chance"] == pytest.approx(found.chance, abs=0.01)


def test_groups_with_covariances_of_their_own_give_the_times_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pooling is for: five rows have four directions, and their order in twelve columns tells which is which."""
    source = registry(600)
    monkeypatch.setattr(cells, "POOLED_ROWS", 0)
    made = Condensation(k=5, strata=("event",), time=("time",)).protect(
        read_table(source), randomness=Randomness.of(5)
    )
    released = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(released, pl.DataFrame)
    found = exact_time(released, source, ["time"], ["event"])
    assert found.exceeds(5), found


def test_a_table_of_jittered_rows_gives_the_times_away() -> None:
    source = registry(300)
    random = np.random.default_rng(2)
    weak = source.with_columns(
        pl.col(f"x{place}") + pl.Series(random.normal(size=300)) for place in range(12)
    )
    found = exact_time(weak[random.permutation(300)], source, ["time"], ["event"])
    assert found.exceeds(10)
    assert found.matching is not None
    assert found.matching > 0.9


def two_times(rows: int, seed: int = 1) -> pl.DataFrame:
    """A registry with a time to recurrence: a good part of the time to death, and equal to it where none came."""
    random = np.random.default_rng(seed)
    recurred = random.random(rows) < 0.6
    part = np.where(recurred, random.uniform(0.5, 0.9, rows), 1.0)
    return registry(rows, seed).with_columns(
        recurrence=(pl.col("time") * pl.Series(part)).ceil(), recurred=pl.Series(recurred)
    )


@pytest.mark.parametrize("algorithm", ["balanced", "improved"])
@pytest.mark.parametrize("k", [10, 20])
@pytest.mark.parametrize("seed", [1, 2])
def test_one_exact_time_leads_to_another_at_most_once_in_k(
    algorithm: str, k: int, seed: int, tmp_path: Path
) -> None:
    """Both times were put back by the order of the same synthetic rows, so that the true pair came back too often."""
    k = k // 2 if algorithm == "balanced" else k
    source = two_times(900, seed)
    method = Condensation(
        k=k,
        algorithm=algorithm,
        strata=("event", "recurred"),
        time=("time", "recurrence"),  # type: ignore[arg-type]  # a text from a list
    )
    made = method.protect(read_table(source), randomness=Randomness.of(seed))
    share = write(made, tmp_path / "out") / "share"
    for further in ((), ("x0",), tuple(f"x{place}" for place in range(12))):
        for pair, found in attack_beside(share, source, further).items():
            assert found.asked > 300
            assert found.nearest <= 1 / k, (pair, further, found)
    released = pl.read_parquet(share / "data" / "table.parquet")
    possible = time_beside(
        released,
        source,
        "recurrence",
        "time",
        ["event", "recurred"],
        (),
        pl.col("recurrence") <= pl.col("time"),
    )
    assert possible.nearest <= 1 / k, possible
    assert not attack(share, source).exceeds(k)
    measured = other_times(pair_tables(Release.open(tmp_path / "out"), read_table(source).table()))
    assert measured is not None
    found = attack_beside(share, source)[" > ".join((measured["told"], measured["read"]))]
    assert measured["right"] == pytest.approx(found.nearest)
    assert measured["right"] >= max(each.nearest for each in attack_beside(share, source).values()) - 1e-9
    assert measured["asked"] == found.asked


@pytest.mark.parametrize(
    ("parameters", "least"),
    [({}, 5), ({"algorithm": "improved"}, 10)],
)
def test_smaller_k_is_refused_where_times_are_exact(parameters: dict[str, str], least: int) -> None:
    with pytest.raises(BadInput, match=f"must be at least {least} with exact times"):
        Condensation(k=least - 1, time=("time",), **parameters)  # type: ignore[arg-type]  # parameters by name
    Condensation(k=least - 1, time=("time",), coarsen_time=True, **parameters)  # type: ignore[arg-type]  # the same
    Condensation(k=2, **parameters)  # type: ignore[arg-type]  # the same


def test_coarse_times_that_groups_share_name_no_group(tmp_path: Path) -> None:
    """F10: a pair of stratum and coarse time names its group, unless neighbouring groups share the time."""
    cohort = read_table(registry(600))
    alone = []
    for place, groups in enumerate((None, 3)):
        method = Condensation(
            k=10, strata=("event",), time=("time",), coarsen_time=True, coarsen_groups=groups
        )
        out = write(method.protect(cohort, randomness=Randomness.of(1)), tmp_path / str(place))
        found = coarse_times(pair_tables(Release.open(out), cohort.table()))
        assert found is not None
        alone.append(found["one_group"])
    assert alone[0] > 0.9
    assert alone[1] == 0.0


def test_membership_is_told_the_better_the_smaller_k_is(tmp_path: Path) -> None:
    cohort = read_table(registry(600))
    told = {}
    for k in (5, 100):
        method = Condensation(k=k, strata=("event",), time=("time",))
        out = write(method.protect(cohort, randomness=Randomness.of(1)), tmp_path / str(k))
        found = membership(pair_tables(Release.open(out), cohort.table()))
        assert found is not None
        told[k] = found["auc"]
    assert told[5] > told[100] + 0.03
    assert abs(told[100] - 0.5) < 0.06


def test_a_copy_of_the_time_is_refused() -> None:
    """Where nobody recurred, the time to recurrence is the time to death."""
    source = registry(300).with_columns(
        recurrence=pl.when("event").then(pl.col("time") / 2).otherwise("time")
    )
    method = {"k": 20, "strata": ("event",)}
    with pytest.raises(BadInput, match="'recurrence' equals the time 'time' in"):
        Condensation(time=("time",), **method).protect(read_table(source), randomness=Randomness.of(1))  # type: ignore[arg-type]  # parameters by name
    Condensation(time=("time", "recurrence"), **method).protect(  # type: ignore[arg-type]  # the same
        read_table(source), randomness=Randomness.of(1)
    )


def test_why_condensation_refuses_limits_of_sensitive_columns(tmp_path: Path) -> None:
    """docs/methods/condensation.md#sensitive-columns: one group of everybody, half of whom have a level that another
    column determines, is 2-diverse; still the nearest row has a patient's level in nearly every case."""
    random = np.random.default_rng(5)
    x = random.permutation(np.arange(-100, 100)) + 0.5
    source = pl.DataFrame({"x": x, "noise": random.normal(size=200), "hiv": np.where(x > 0, "yes", "no")})
    made = Condensation(k=200, rare="keep").protect(read_table(source), randomness=Randomness.of(1))
    assert made.custody["groups"] == 1
    table = pl.read_parquet(write(made, tmp_path / "out") / "share/data/table.parquet")
    assert table["hiv"].value_counts()["count"].max() <= 200 / 2
    nearest = np.abs(source["x"].to_numpy()[:, None] - table["x"].to_numpy()).argmin(axis=1)
    assert (table["hiv"].gather(nearest) == source["hiv"]).mean() > 0.9
    with pytest.raises(BadInput, match="`sensitive_columns` must be left out"):
        Condensation(k=200, sensitive_columns={"hiv": 2})
