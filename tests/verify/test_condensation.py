"""The verifier is tested by breaking releases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.forging import restate, write_parquet
from tests.methods.condensation.tables import PLAN, lung, no_repetitions  # noqa: F401  # a fixture

from leeward.cohort import Cohort
from leeward.methods.condensation import Condensation
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, Verification, verify

K = 20


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return lung(600)


def released(cohort: Cohort, folder: Path, method: Condensation | KAnonymity) -> Path:
    return write(method.protect(cohort, randomness=Randomness.of(1)), folder / "out")


def checked(out: Path, cohort: Cohort) -> Verification:
    assert cohort.patients is not None
    return verify(out, Source(pl.DataFrame(), cohort.patients))


def rewrite(out: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Change the table and its entry in the manifest, so that only the guarantee can be refuted."""
    path = out / "share" / "data" / "table.parquet"
    write_parquet(change(pl.read_parquet(path)), path)
    restate(out)


def rewrite_custody(out: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    path = out / "custody" / "data" / name
    change(pl.read_parquet(path)).write_parquet(path)


def failures(outcome: Verification) -> list[str]:
    return [check.name for check in outcome.failures]


METHOD = Condensation(k=K, plan=PLAN)


@pytest.mark.parametrize("algorithm", ["balanced", "improved", "condensation", "tfrp"])
def test_every_algorithm_passes(cohort: Cohort, tmp_path: Path, algorithm: str) -> None:
    method = Condensation(k=K, plan=PLAN, algorithm=algorithm)  # type: ignore[arg-type]  # a name
    assert failures(checked(released(cohort, tmp_path, method), cohort)) == []


def test_a_recipient_can_verify_the_share_alone(cohort: Cohort, tmp_path: Path) -> None:
    out = released(cohort, tmp_path, METHOD)
    assert verify(out / "share").passed


PLANTED: list[tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]] = [
    ("rows", lambda frame: frame.head(frame.height - 1)),
    ("strata_counts", lambda frame: frame.with_columns(VitalStat=1 - pl.col("VitalStat"))),
    ("times", lambda frame: frame.with_columns(SurvInterval=pl.col("SurvInterval").clip(1, 5))),
    ("permissible_values", lambda frame: frame.with_columns(DiagAge=pl.col("DiagAge") + 100)),
    ("permissible_values", lambda frame: frame.with_columns(Stage=pl.lit("fifth"))),
    ("permissible_values", lambda frame: frame.with_columns(Race=pl.lit(None, pl.String))),
    ("levels_of_groups", lambda frame: frame.with_columns(Stage=pl.col("Stage").shuffle(seed=1))),
    ("levels_of_groups", lambda frame: frame.with_columns(Stage=pl.col("Stage").drop_nulls().mode().first())),
    ("columns_and_types", lambda frame: frame.with_columns(DiagAge=pl.col("DiagAge").cast(pl.Float64))),
    ("columns_and_types", lambda frame: frame.drop("Race")),
    ("columns_and_types", lambda frame: frame.with_columns(row=pl.int_range(pl.len()))),
    ("columns_and_types", lambda frame: frame.select(frame.columns[::-1])),
]


@pytest.mark.parametrize(("name", "change"), PLANTED)
def test_a_planted_violation_in_the_table_is_caught(
    cohort: Cohort, tmp_path: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    out = released(cohort, tmp_path, METHOD)
    rewrite(out, change)
    assert name in failures(checked(out, cohort))


def test_verbatim_copies_are_caught(cohort: Cohort, tmp_path: Path) -> None:
    out = released(cohort, tmp_path, METHOD)
    assert cohort.patients is not None
    original = cohort.patients
    rewrite(out, lambda frame: original.sample(fraction=1.0, shuffle=True, seed=1))
    assert "no_verbatim_copies" in failures(checked(out, cohort))


def test_a_few_verbatim_copies_are_caught_where_chance_makes_none(tmp_path: Path) -> None:
    """One row in fifty of a table of measurements."""
    draws = np.random.default_rng(5)
    columns = {f"x{i}": draws.normal(size=600).round(3) for i in range(5)}
    original = pl.DataFrame({"event": draws.integers(0, 2, 600), **columns})
    table = Cohort(None, original, name="measurements")
    out = released(table, tmp_path, Condensation(k=K, strata=("event",)))
    assert checked(out, table).passed

    def plant(frame: pl.DataFrame) -> pl.DataFrame:
        rows = [original.filter(pl.col("event") == e).head(6) for e in (0, 1)]
        kept = [frame.filter(pl.col("event") == e).slice(6) for e in (0, 1)]
        return pl.concat([row.select(frame.columns).cast(frame.schema) for row in rows] + kept)

    rewrite(out, plant)
    assert "no_verbatim_copies" in failures(checked(out, table))


def test_copies_are_counted_among_empty_and_equal_rows() -> None:
    from leeward.verify.condensation.check import hash_rows, standing

    frame = pl.DataFrame(
        {"a": [1, 1, None, 2], "none": pl.Series([None] * 4, dtype=pl.String), "t": ["x"] * 4}
    )
    rare = hash_rows(frame).group_by("row").len()
    assert sorted(rare["len"]) == [1, 1, 2]
    assert standing(rare, frame) == 4
    assert standing(rare, frame.filter(pl.col("a") == 1)) == 2
    assert standing(rare, frame.filter(pl.col("a").is_null())) == 1
    assert standing(rare, frame.with_columns(t=pl.lit("y"))) == 0


def leaves_its_group(frame: pl.DataFrame) -> pl.DataFrame:
    """One row goes to a group of its own, so that its group has k − 1 rows or it has one."""
    return frame.with_columns(group=pl.when(pl.col("row") == 5).then(10_000).otherwise("group"))


def padded(frame: pl.DataFrame) -> pl.DataFrame:
    """A group is filled with one source row many times."""
    return frame.with_columns(row=pl.when(pl.col("group") == 0).then(1).otherwise("row"))


CUSTODY: list[tuple[str, str, Callable[[pl.DataFrame], pl.DataFrame]]] = [
    ("groups_of_k", "source_rows.parquet", leaves_its_group),
    ("groups_of_k", "source_rows.parquet", padded),
    ("groups_disjoint", "source_rows.parquet", padded),
    ("groups_whole", "released_rows.parquet", lambda f: f.with_columns(group=pl.lit(0, pl.Int64))),
    ("groups_whole", "released_rows.parquet", lambda f: f.with_columns(record=pl.lit(0, pl.Int64))),
    ("strata_of_groups", "source_rows.parquet", lambda f: f.with_columns(group=pl.col("group").reverse())),
]


@pytest.mark.parametrize(("name", "file", "change"), CUSTODY)
def test_k_is_derived_again_from_custody(
    cohort: Cohort, tmp_path: Path, name: str, file: str, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    out = released(cohort, tmp_path, METHOD)
    rewrite_custody(out, file, change)
    assert name in failures(checked(out, cohort))


def test_k_anonymity_is_counted_in_the_shared_table(cohort: Cohort, tmp_path: Path) -> None:
    out = released(cohort, tmp_path, KAnonymity(k=K))
    assert verify(out / "share").passed
    assert failures(checked(out, cohort)) == []
    rewrite(out, lambda frame: frame.with_columns(DiagAge=pl.int_range(pl.len()) % 50 + 30))
    assert "k_anonymous_rows" in failures(verify(out / "share"))


def test_coarsened_times_need_not_be_the_original_ones(cohort: Cohort, tmp_path: Path) -> None:
    out = released(cohort, tmp_path, Condensation(k=K, plan=PLAN, coarsen_time=True))
    outcome = checked(out, cohort)
    assert outcome.passed
    assert "times" not in [check.name for check in outcome.checks]


def test_messages_name_no_value(cohort: Cohort, tmp_path: Path) -> None:
    out = released(cohort, tmp_path, METHOD)
    rewrite(out, lambda frame: frame.with_columns(Stage=pl.lit("a name")))
    text = json.dumps(checked(out, cohort).to_json())
    assert "a name" not in text
    assert "distant" not in text


def test_chance_counts_what_shuffling_inside_groups_repeats() -> None:
    from leeward.verify.condensation.check import shuffle

    original = pl.DataFrame({"a": ["x"] * 5 + ["y"] * 5, "b": np.arange(10)})
    groups = pl.DataFrame({"row": np.arange(1, 11), "group": [0] * 5 + [1] * 5})
    made = shuffle(original, groups, 1)
    assert sorted(made["b"]) == list(range(10))
    assert set(made.filter(pl.col("b") < 5)["a"]) == {"x"}
    assert not shuffle(original, groups, 2).equals(made)


def test_values_are_ordered_inside_groups_alone() -> None:
    from leeward.verify.condensation.own_values import order_inside

    generator = np.random.Generator(np.random.Philox(5))
    groups = np.repeat(np.arange(50), generator.integers(1, 60, 50))
    values = generator.random(len(groups))
    values[generator.random(len(groups)) < 0.1] = np.nan
    assert np.array_equal(
        values[order_inside(groups, values)], values[np.lexsort((values, groups))], equal_nan=True
    )
    assert (groups[order_inside(groups, values)] == groups).all()
    assert order_inside(groups[:0], values[:0]).tolist() == []


def test_chance_of_a_small_table_is_that_of_many_shuffles() -> None:
    from leeward.verify.condensation.check import copies

    generator = np.random.Generator(np.random.Philox(key=3))
    original = pl.DataFrame({"a": generator.integers(0, 3, 60), "b": generator.permutation(60)})
    groups = pl.DataFrame({"row": np.arange(1, 61), "group": np.arange(60) // 5})
    # Each value of b is once in the source, and comes back to its own a in a group of five by this share.
    held = original.with_columns(group=groups["group"]).group_by("group", "a").len()
    expected = float((held["len"] ** 2).sum()) / 5 / 60

    class Shown:
        """A share of k = 5."""

        manifest: ClassVar[dict[str, Any]] = {"parameters": {}}

        def guarantee(self, name: str) -> int:
            return 5

    found = copies(Shown(), original, original, groups)  # type: ignore[arg-type]  # all that the check asks
    assert not found.passed
    assert found.figures["chance"] == pytest.approx(expected, rel=0.15)


def test_a_table_that_cannot_be_read_is_caught(cohort: Cohort, tmp_path: Path) -> None:
    from leeward.release.tables import sha256_of

    out = released(cohort, tmp_path, METHOD)
    file, manifest = out / "share" / "data" / "table.parquet", out / "share" / "release.json"
    file.write_bytes(b"no Parquet")
    content = json.loads(manifest.read_text())
    content["files"][0].update(sha256=sha256_of(file))
    manifest.write_text(json.dumps(content))
    assert "layout" in failures(checked(out, cohort))


def test_a_dense_table_of_few_values_is_released(tmp_path: Path) -> None:
    """Among many rows of few values a new row is often next to one of the source: chance, not a copy."""
    draws = np.random.Generator(np.random.Philox(key=5))
    n = 4_000
    columns = {f"n{i}": draws.integers(0, 4 * (i + 1), n) for i in range(4)}
    many = Cohort(patients=pl.DataFrame({**columns, "s": draws.integers(0, 2, n).astype(str)}), name="dense")
    out = released(many, tmp_path, Condensation(k=10, strata=("s",)))
    found = checked(out, many)
    assert found.passed, found
    assert found["near_twins"].figures["share"] > 0.15


def with_a_few_gaps(rows: int = 200) -> pl.DataFrame:
    """Columns of numbers, of which `few` misses three values and `stage` is named in a relation."""
    random = np.random.default_rng(5)
    frame = pl.DataFrame({name: random.integers(0, 90, rows) for name in ("age", "few", "low", "stage")})
    return frame.with_columns(
        few=pl.when(pl.arange(0, rows) < 3).then(None).otherwise("few"), low=pl.min_horizontal("low", "stage")
    )


def test_fewer_than_k_missing_values_are_imputed_and_all_others_checked(tmp_path: Path) -> None:
    source = Cohort(patients=with_a_few_gaps(), name="made up")
    good = released(source, tmp_path, Condensation(k=10, relations=("low <= stage",)))
    assert failures(checked(good, source)) == []
    for name, change in (
        ("missing", pl.when(pl.col("few") > 40).then(None).otherwise("few").alias("few")),
        ("other", pl.col("few").shuffle(seed=1)),
        ("in the name of another", pl.col("age").shuffle(seed=1)),
    ):
        out = tmp_path / name
        shutil.copytree(good, out)
        rewrite(out, lambda frame, change=change: frame.with_columns(change))  # type: ignore[misc]
        assert "values_of_groups" in failures(checked(out, source)), name


TWO_TIMES = ("time", "recurrence")


def with_two_times(rows: int = 600) -> Cohort:
    """Patients with two exact times, of which one is a good part of the other."""
    random = np.random.default_rng(4)
    values = np.round(random.normal(size=(rows, 4)), 2)
    time = np.ceil(1000 * random.exponential(size=rows))
    frame = pl.DataFrame({f"x{place}": values[:, place] for place in range(4)}).with_columns(
        time=pl.Series(time),
        recurrence=pl.Series(np.ceil(time * random.uniform(0.5, 0.9, rows))),
        event=pl.Series(random.random(rows) < 0.6),
    )
    return Cohort(patients=frame, name="made up")


@pytest.mark.parametrize("strata", [("event",), ()])
def test_times_that_come_back_together_are_refuted(strata: tuple[str, ...], tmp_path: Path) -> None:
    """Each time stays in its pool, so that only the pairs tell."""
    source = with_two_times()
    out = released(source, tmp_path, Condensation(k=5, strata=strata, time=TWO_TIMES))
    assert failures(checked(out, source)) == []
    assert checked(out, source)["times_apart"].figures["share"] < 0.15
    pairs = source.patients.select("event", "time", "recurrence").unique(["event", "time"])  # type: ignore[union-attr]  # it has patients
    rewrite(
        out,
        lambda frame: (
            frame.drop("recurrence")
            .join(pairs, on=["event", "time"], how="left", maintain_order="left")
            .with_columns(pl.col("recurrence").fill_null(frame["recurrence"]))
            .select(frame.columns)
        ),
    )
    assert "times_apart" in failures(checked(out, source))


def test_further_times_of_other_groups_are_refuted(tmp_path: Path) -> None:
    source = with_two_times()
    out = released(source, tmp_path, Condensation(k=5, strata=("event",), time=TWO_TIMES))
    rewrite(out, lambda frame: frame.with_columns(pl.col("recurrence").shuffle(seed=1).over("event")))
    assert failures(checked(out, source)) == ["values_of_groups"]


def test_a_relation_that_names_one_of_several_exact_times_is_refuted(tmp_path: Path) -> None:
    out = released(with_two_times(), tmp_path, Condensation(k=5, strata=("event",), time=TWO_TIMES))
    manifest = out / "share" / "release.json"
    content = json.loads(manifest.read_text())
    for relation, refuted in (("x0 <= x1", False), ("x0 <= 'time'", True)):
        content["parameters"]["relations"] = [relation]
        manifest.write_text(json.dumps(content))
        restate(out)
        assert ("parameters" in failures(checked(out, with_two_times()))) == refuted
