"""Releases by parts on the disk: the same bytes as of a cohort in memory, whatever is cut where, and nothing left."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from tests.forging import changed
from tests.spark_fixture import spark_engine

import leeward as lw
from leeward.cli.releases import verify
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import stored as reading
from leeward.engine import Engine, LocalEngine, Task, make
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.disassociation import partitioned
from leeward.methods.disassociation.measures import pieces
from leeward.methods.visits import enforce, sets
from leeward.randomness import Randomness
from leeward.release import aside, folder, write
from leeward.release.spec import SourceSpec, Spec
from leeward.runs import memory as runs_memory
from leeward.runs import protect as runs
from leeward.runs import stored, there
from leeward.runs.profile import source_facts
from leeward.verify.disassociation import in_parts
from leeward.verify.visits import source as visits_source

__all__ = ["spark_engine"]

METHOD = {"name": "disassociation", "k": 4, "m": 2, "policy": "hierarchy:1", "partitions": 3}
SHARED = ("release.json", "data/nodes.parquet", "data/chunks.parquet", "data/codes.parquet")


def a_table(folder: Path, ids: str = "numbers", n: int = 700) -> Path:
    """Shuffled rows with doubled entries, gaps and codes without their zeros; written as Parquet or CSV."""
    draw = np.random.default_rng(5)
    rows = [
        (p, f"{250 + c}.0" if c else "8.61") for p in range(n) for c in draw.zipf(1.4, 4).clip(max=30) - 1
    ]
    rows += [(p, None) for p in range(0, n + 5, 90)]
    table = pl.DataFrame(rows, schema={"patient": pl.Int64, "code": pl.String}, orient="row")
    table = table.sample(fraction=1, shuffle=True, seed=1)
    if ids == "text":  # the first rows look like numbers, which a reader takes for such
        table = table.with_columns(pl.when(pl.col("patient") > n - 9).then(pl.format("P{}", "patient"))
                                   .otherwise(pl.col("patient").cast(pl.String))).sort("patient")  # fmt: skip
        table.write_csv(folder / "events.csv")
        return folder / "events.csv"
    table.write_parquet(folder / "events.parquet", row_group_size=400)
    return folder / "events.parquet"


def spec_of(file: Path, **more: object) -> Spec:
    return Spec(source=SourceSpec(path=str(file), vocabulary="icd9"), method=METHOD, seed=7, **more)  # type: ignore[arg-type]


def in_memory(file: Path, out: Path) -> Path:
    cohort = lw.read(file, vocabulary="icd9")
    lw.protect(cohort, runs.method_of(METHOD), out, seed=7)
    return out


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is cut into several pieces."""
    monkeypatch.setattr(reading, "ROWS_A_FILE", 500)
    monkeypatch.setattr(partitioned, "ROWS_A_RANGE", 300)
    monkeypatch.setattr(partitioned, "SAMPLED", 3)
    monkeypatch.setattr(in_parts, "RECORDS_A_PART", 150)
    monkeypatch.setattr(in_parts, "BATCH_ROWS", 200)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_the_bytes_are_those_of_a_cohort_in_memory(tmp_path: Path, ids: str) -> None:
    file = a_table(tmp_path, ids)
    done = lw.run(spec_of(file), tmp_path / "OUT")
    other = in_memory(file, tmp_path / "MEMORY")
    for name in SHARED:
        assert (tmp_path / "OUT/share" / name).read_bytes() == (other / "share" / name).read_bytes(), name
    custody = [pl.read_parquet(each / "custody/data/clusters.parquet") for each in (tmp_path / "OUT", other)]
    assert custody[0].equals(custody[1])
    assert done.verification.passed and done.verification.with_source
    parts = done.verification["km_anonymous_chunks"].figures["parts"]
    assert parts > 2
    assert done.verification["parts_of_source"].passed
    assert lw.verify(tmp_path / "OUT", lw.read(file, vocabulary="icd9")).passed  # and as a whole
    figures, before = (
        json.loads((each / "custody/measures.json").read_text()) for each in (tmp_path / "OUT", other)
    )
    assert figures == before | {"notices": figures["notices"]}
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(["OUT", "MEMORY", file.name])


def test_the_notices_are_those_of_the_reader(tmp_path: Path) -> None:
    file = a_table(tmp_path)
    found = reading.store(file, tmp_path, None, "icd9")
    assert found is not None
    cohort = lw.read(file, vocabulary="icd9")
    assert [(n.kind, n.message, n.count) for n in found.notices] == [
        (n.kind, n.message, n.count) for n in cohort.notices
    ]
    whole, known = cohort.code_sets(), found.supports()
    assert known.codes == whole.codes and known.patients_of.tolist() == whole.supports().tolist()
    assert (known.patients, known.longest) == (len(whole), int(whole.lengths().max()))
    assert source_facts(found) == source_facts(cohort)


@pytest.mark.usefixtures("small_pieces")
def test_spark_gives_the_same_release(tmp_path: Path, spark_engine: Engine) -> None:
    file = a_table(tmp_path)
    done = lw.run(spec_of(file, engine="spark"), tmp_path / "OUT")  # joins the session
    other = in_memory(file, tmp_path / "MEMORY")
    assert done.verification.passed
    for name in SHARED:
        assert (tmp_path / "OUT/share" / name).read_bytes() == (other / "share" / name).read_bytes(), name


@pytest.mark.usefixtures("small_pieces")
def test_a_large_release_is_measured_in_pieces_wherever_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same figures to the last digit, whether the source was in memory or on the disk."""
    monkeypatch.setattr(pieces, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(pieces, "RECORDS_A_PIECE", 150)
    file = a_table(tmp_path)
    parts, whole = lw.run(spec_of(file), tmp_path / "OUT"), in_memory(file, tmp_path / "MEMORY")
    before = json.loads((whole / "custody/measures.json").read_text())
    assert parts.measures == before | {"notices": parts.measures["notices"]}
    assert {"are", "mre", "placement", "risk", "reidentification"} <= before.keys()
    assert "not measured" not in parts.report.read_text()


def test_a_run_by_parts_that_cannot_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = a_table(tmp_path)
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 100 * 10**6)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 0)
    with pytest.raises(BadInput, match=r"in parts needs about 0\.\d GB"):
        lw.run(spec_of(file), tmp_path / "OUT")
    assert list(tmp_path.iterdir()) == [file]


def test_errors_are_those_of_the_reader_and_nothing_is_left(tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("patient,code\n1,250.00\n2,250.00\n")
    with pytest.raises(GuaranteeUnreachable, match="2 patients with a code, fewer than 5 "):
        lw.run(spec_of(few), tmp_path / "OUT")
    few.write_text("patient,code\n" + "".join(f"{p},Q{p}Z.1\n" for p in range(20)))
    with pytest.raises(BadInput, match=r"--accept-unknown"):
        lw.run(spec_of(few), tmp_path / "OUT")
    few.write_text("patient,code\n,250.00\n")
    with pytest.raises(BadInput, match="names no patient in row 1"):
        lw.run(spec_of(few), tmp_path / "OUT")
    assert list(tmp_path.iterdir()) == [few]


VARIANTS: tuple[dict[str, object], ...] = (
    {"name": "visits"},
    {"name": "visits", "enforce": "generalize", "key": "relative"},
    {"name": "visits", "merge_visits": True, "rescue": True},
    {"name": "visits", "level": "code"},
    {"name": "visits", "level": "codes", "policy": None},
    {"name": "visits", "level": "codes", "merge_visits": True},
    {"name": "visits", "level": "containment", "merge_visits": True},
    {"name": "constraints", "m": 2, "policy": "hierarchy:2"},
    {"name": "trajectories", "odd_ages": "leave out"},
    {"name": "trajectories", "odd_ages": "leave out", "clustering": "alignment", "policy": "hierarchy:2"},
)


def visits_table(seed: int, people: int, *, text: bool) -> pl.DataFrame:
    """Some rows without a visit or with an age that cannot be, in no order; the last identifiers are texts."""
    draw = np.random.default_rng(seed)
    rows = draw.integers(1, 4, people).repeat(draw.integers(1, 4, people))
    who = draw.integers(0, people, len(rows))
    table = pl.DataFrame(
        {"patient": who, "code": 250 + draw.zipf(1.5, len(rows)).clip(max=12), "visit": rows}
    )
    visit = pl.when(pl.Series(draw.random(len(rows)) < 0.9)).then("visit")
    odd = draw.choice(np.array([np.nan, 140]), len(rows))
    age = pl.Series("age", np.where(draw.random(len(rows)) < 0.9, 30 + who % 40 + rows / 2, odd))
    table = table.with_columns(pl.format("{}.0", "code").alias("code"), visit, age.fill_nan(None))
    if text:
        name = pl.when(pl.col("patient") > people // 2).then(pl.format("P{}", "patient"))
        table = table.with_columns(name.otherwise(pl.col("patient").cast(pl.String)).alias("patient"))
    return table


def on_the_disk(file: Path, folder: Path, rows: int, parts: int) -> Cohort:
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "ROWS_A_FILE", -(-rows // parts))
        patch.setattr(reading, "SAMPLED", 1)
        patch.setattr(reading, "BATCH_ROWS", 37)
        found = reading.store(file, folder, None, "icd9")
    assert found is not None and len(found.files) <= parts
    return found


@given(st.integers(0, 99), st.integers(12, 40), st.sampled_from(VARIANTS), st.booleans())
@settings(max_examples=12)
def test_a_release_in_parts_is_the_bytes_of_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, people: int, variant: dict[str, object], text: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    table = visits_table(seed, people, text=text)
    table.write_csv(folder / "visits.csv")
    method = runs.method_of({"k": 3, **variant})
    cohorts = {"whole": lw.read(folder / "visits.csv", vocabulary="icd9")}
    for parts in (1, 3, 7):
        cohorts[f"{parts}"] = on_the_disk(folder / "visits.csv", folder / f"f{parts}", table.height, parts)
    found = {}
    for name, cohort in cohorts.items():
        with pytest.MonkeyPatch.context() as patch:
            if name != "whole":
                patch.setattr(sets, "PATIENTS_AT_ONCE", 7)
                patch.setattr(enforce, "VISITS_AT_ONCE", 5)
            write(method.protect(cohort, randomness=Randomness.of(seed)), folder / name)
        files = sorted(each for each in (folder / name).rglob("*") if each.is_file())
        found[name] = {each.relative_to(folder / name): each.read_bytes() for each in files}
    for name in ("1", "3", "7"):
        assert found[name] == found["whole"], name


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_is_larger_than_memory_is_released_verified_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: dict[str, object]
) -> None:
    monkeypatch.setattr(reading, "ROWS_A_FILE", 60)
    monkeypatch.setattr(reading, "SAMPLED", 1)
    table = visits_table(1, 80, text=True)
    table.write_csv(tmp_path / "visits.csv")
    spec = spec_of(tmp_path / "visits.csv")
    spec = replace(spec, method={"k": 3, **variant})
    whole = lw.run(spec, tmp_path / "MEMORY")
    monkeypatch.setattr(stored, "fits", lambda *size: False)
    monkeypatch.setattr(visits_source, "VISITS_AT_ONCE", 30)
    done = lw.run(spec, tmp_path / "OUT")
    assert done.verification.passed and done.verification.with_source
    names = [[check.name for check in each.verification.checks] for each in (whole, done)]
    assert [name for name in names[1] if name != "parts_of_source"] == names[0]
    assert ("parts_of_source" in names[1]) == (variant["name"] == "visits")
    assert done.measures == whole.measures | {"notices": done.measures["notices"]}
    assert lw.verify(tmp_path / "OUT", lw.read(tmp_path / "visits.csv", vocabulary="icd9")).passed
    again = json.loads(CliRunner().invoke(verify, [str(tmp_path / "OUT"), "--json"]).stdout)
    assert again["passed"] and {*names[1]} <= {check["name"] for check in again["checks"]}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["MEMORY", "OUT", "visits.csv"]


SCOPES: tuple[dict[str, object], ...] = (
    {"scope": "groups"},
    {"scope": "groups", "cap": 1},
    {"scope": "record"},
    {"scope": "global"},
    {"scope": "raise"},
)


def sample_and_population(folder: Path, seed: int, people: int, *, text: bool) -> tuple[Path, Path, int]:
    """Files of a sample, every third patient, and of its population; and how many rows the population has."""
    table = visits_table(seed, people, text=text)
    chosen = table["patient"].unique().sort().gather_every(3)
    table.write_csv(folder / "population.csv")
    table.filter(pl.col("patient").is_in(chosen.implode())).write_csv(folder / "sample.csv")
    return folder / "sample.csv", folder / "population.csv", table.height


@given(st.integers(0, 99), st.integers(12, 40), st.sampled_from(SCOPES), st.booleans())
@settings(max_examples=12)
def test_a_sample_censored_in_parts_is_the_bytes_of_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, people: int, scope: dict[str, object], text: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    *files, rows = sample_and_population(folder, seed, people, text=text)
    method = runs.method_of({"name": "censoring", "k": 3, **scope})
    found = {}
    for parts in (0, 1, 3, 7):
        sample, population = (
            on_the_disk(file, folder / f"{file.stem}-{parts}", rows, parts)
            if parts
            else lw.read(file, vocabulary="icd9")
            for file in files
        )
        made = method.protect(sample, randomness=Randomness.of(seed), population=population)
        out = write(made, folder / f"OUT-{parts}")
        found[parts] = {f.relative_to(out): f.read_bytes() for f in out.rglob("*") if f.is_file()}
        assert lw.verify(out, sample, population).passed
    for parts in (1, 3, 7):
        assert found[parts] == found[0], parts


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_what_is_larger_than_memory_is_censored_verified_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: dict[str, object]
) -> None:
    monkeypatch.setattr(reading, "ROWS_A_FILE", 60)
    monkeypatch.setattr(reading, "SAMPLED", 1)
    sample, population, _ = sample_and_population(tmp_path, 1, 80, text=True)
    people = SourceSpec(path=str(population), vocabulary="icd9")
    spec = replace(spec_of(sample), method={"name": "censoring", "k": 3, **scope}, population=people)
    whole = lw.run(spec, tmp_path / "MEMORY")
    monkeypatch.setattr(stored, "fits", lambda *size: False)
    stored_once = Spied(monkeypatch)
    done = lw.run(spec, tmp_path / "OUT")
    assert len(stored_once.files) == 2 and all(len(files) > 1 for files in stored_once.files)
    checks = [[check.name for check in each.verification.checks] for each in (whole, done)]
    assert done.verification.passed and checks[0] == checks[1]
    assert done.measures == whole.measures | {"notices": done.measures["notices"]}
    assert (tmp_path / "OUT/share/release.json").read_bytes() == (
        tmp_path / "MEMORY/share/release.json"
    ).read_bytes()
    again = json.loads(CliRunner().invoke(verify, [str(tmp_path / "OUT"), "--json"]).stdout)
    assert again["passed"] and len(stored_once.files) == 4
    assert {*checks[0]} <= {check["name"] for check in again["checks"]}
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "MEMORY",
        "OUT",
        "population.csv",
        "sample.csv",
    ]


class Spied:
    """Lists the files of each source that a run puts on the disk."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.files: list[tuple[Path, ...]] = []
        store = stored.store_source

        def storing(source: SourceSpec, folder: Path) -> Cohort | None:
            cohort = store(source, folder)
            self.files += [] if cohort is None else [cohort.files]
            return cohort

        patch.setattr(stored, "store_source", storing)


def test_what_refutes_a_release_refutes_it_in_parts(tmp_path: Path) -> None:
    """Records that custody gives to other patients than their own, in other parts or in none."""
    table = visits_table(1, 80, text=False)
    table.write_csv(tmp_path / "visits.csv")
    cohort = on_the_disk(tmp_path / "visits.csv", tmp_path / "parts", table.height, 5)
    out = write(lw.Visits(k=3).protect(cohort, randomness=Randomness.of(1)), tmp_path / "OUT")
    assert lw.verify(out, cohort).passed
    for name, column in (("swapped", pl.col("patient").reverse()), ("unknown", pl.col("patient") + 1000)):
        forged = changed(
            out, tmp_path / name, "custody/data/patients.parquet", lambda t, c=column: t.with_columns(c)
        )
        failed = {check.name for check in lw.verify(forged, cohort).failures}
        assert failed & {"witness", "parts_of_source"}, name


def test_constraints_are_checked_in_parts_as_at_once(tmp_path: Path) -> None:
    """Against their source and against another one."""
    for seed, people in ((1, 80), (2, 83)):
        table = visits_table(seed, people, text=False)
        table.write_csv(tmp_path / f"{seed}.csv")
        whole = lw.read(tmp_path / f"{seed}.csv", vocabulary="icd9")
        parts = on_the_disk(tmp_path / f"{seed}.csv", tmp_path / f"parts-{seed}", table.height, 5)
        if seed == 1:
            method = lw.Constraints(k=3, m=2, policy="hierarchy:2")
            out = write(method.protect(whole, randomness=Randomness.of(1)), tmp_path / "OUT")
        at_once, in_parts = lw.verify(out, whole), lw.verify(out, parts)
        assert [each.to_json() for each in in_parts.checks] == [each.to_json() for each in at_once.checks]
        assert in_parts.passed == (seed == 1)


@dataclass(frozen=True)
class Workers(LocalEngine):
    """Rows stay with workers, to whom work is sent; every task runs twice, as Spark's may."""

    def there(self, work: Callable[[], Any]) -> Any:
        for _ in range(2):
            done = pickle.dumps(cloudpickle.loads(cloudpickle.dumps(work))())
        return pickle.loads(done)

    def map_tasks(self, numbers: Sequence[int], kernel: Task, *rest: Any) -> pa.Table:
        super().map_tasks(numbers, kernel, *rest)
        return super().map_tasks(numbers, kernel, *rest)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(
        "leeward.engine.make", lambda spec, *rest, **_: Workers(2) if spec == SHARING else make(spec, *rest)
    )
    return SHARING


SHARING = {"spark": {"shared": True}}
IN_PARTS = {"name": "constraints", "k": 3, "m": 2}
WITH_POPULATION = {"name": "censoring", "k": 3}
IN_MEMORY = {**METHOD, "partitions": 1}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("method", [METHOD, IN_PARTS, WITH_POPULATION, IN_MEMORY], ids=str)
def test_where_rows_stay_with_workers_the_bytes_are_the_same(
    method: dict[str, Any], tmp_path: Path, workers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "source_fits", lambda *_: False)
    file = a_table(tmp_path)
    population = SourceSpec(path=str(file)) if method is WITH_POPULATION else None
    for name, engine in (("here", "local"), ("there", workers)):
        spec = replace(spec_of(file, engine=engine), method=method, population=population)
        lw.run(spec, tmp_path / name)
    here = {path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*.*")}
    assert here == {path.relative_to(tmp_path / "there") for path in (tmp_path / "there").rglob("*.*")}
    for file in here - {Path("custody/spec.yaml"), Path("custody/digests.json")}:  # they name the engine
        assert (tmp_path / "there" / file).read_bytes() == (tmp_path / "here" / file).read_bytes(), file
    assert {path.name for path in tmp_path.iterdir()} == {"events.parquet", "here", "there"}


def test_an_engine_whose_workers_keep_rows_is_sent_none() -> None:
    with pytest.raises(BadInput, match="`shared` of the engine is for `leeward protect SPEC` alone"):
        make(SHARING)


def test_the_memory_that_counts_is_the_workers(
    tmp_path: Path, workers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_table(tmp_path)
    at_work: list[bool] = []

    def worker(self: Workers, work: Callable[[], Any]) -> Any:
        at_work.append(True)
        done = work()
        at_work.pop()
        return done

    monkeypatch.setattr(Workers, "there", worker)
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 1 if at_work else None)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 0)  # not of earlier tests
    with pytest.raises(BadInput, match="in parts needs about"):
        lw.run(spec_of(file, engine=workers), tmp_path / "out")


def test_workers_who_do_not_see_the_folder(tmp_path: Path) -> None:
    """They look for the lock of the folder that the run made."""
    spec = spec_of(a_table(tmp_path))
    with pytest.raises(BadInput, match="the workers of the cluster do not see this folder"):
        there._store(spec, runs.method_of(METHOD), tmp_path)


STAGES = {
    "reading": (stored, "_is_one_partition"),
    "cutting": (partitioned, "assign_groups"),
    "protecting": (partitioned, "publish_chunks"),
    "joining": (partitioned, "_renumber"),
    "writing": (runs, "write_verified"),
    "verifying": (runs, "check"),
    "measuring": (runs, "measure_release"),
    "publishing": (folder, "finish"),
    "giving its name": (there, "rename"),
}
DONE = {"_is_one_partition": 0, "assign_groups": 1, "publish_chunks": 2}
"""What a run that was killed there had done: stored the source, cut it; the others protected the partitions too."""


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_was_killed_goes_on_where_it_was(
    stage: str, tmp_path: Path, workers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves its folder with the lock of a process that is no more."""
    module, name = STAGES[stage]
    file, out, died = a_table(tmp_path), tmp_path / "out", tmp_path / "died"
    spec = spec_of(file, engine=workers)
    lw.run(spec, tmp_path / "whole")

    alone = threading.Lock()

    def die(*_: Any, **__: Any) -> None:
        with alone:  # two tasks are at work, and both come here
            (work,) = (each for each in tmp_path.glob("out.partial-*") if (each / aside.WORK).exists())
            if not died.exists():
                shutil.copytree(work, died / work.name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, name, die)
        lw.run(spec, out)
    (left,) = died.iterdir()
    lock = left / aside.LOCK
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "started": "never"}))
    left.rename(tmp_path / left.name)

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("what was done is done again")

    with monkeypatch.context() as patch:
        for step in ((there, "store_parts"), (partitioned, "cut"), (partitioned, "_write_parts"))[
            : DONE.get(name, 3)
        ]:
            patch.setattr(*step, again)
        lw.run(spec, out)
    for name in SHARED:
        assert (out / "share" / name).read_bytes() == (tmp_path / "whole" / "share" / name).read_bytes(), name
    assert not list(tmp_path.glob("*.partial-*"))


@pytest.mark.parametrize("changed", ["seed", "source", "process", "others may write"])
def test_what_another_run_left_is_not_taken_over(tmp_path: Path, changed: str) -> None:
    file = a_table(tmp_path)
    spec = spec_of(file)
    left = aside.new_aside(tmp_path / "out")
    (left / aside.WORK).write_text(there._digest(spec) or "")
    (left / "rows").touch()
    if changed != "process":  # this one is at work
        lock = left / aside.LOCK
        lock.write_text(json.dumps({**json.loads(lock.read_text()), "started": "never"}))
    if changed == "seed":
        spec = replace(spec, seed=8)
    if changed == "source":
        file.touch()
    if changed == "others may write":
        left.chmod(0o770)
    with aside.work_beside(tmp_path / "out", there._digest(spec)) as work:
        assert work != left
        assert not (work / "rows").exists()
    assert left.exists() == (changed == "process")
    aside.remove(left)
