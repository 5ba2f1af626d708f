"""Linked tables, broken one way a test: joins, keys, days, classes, source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.linked.test_linked import people
from tests.verify.made import patients_with_codes

from leeward.methods.linked import Linked
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

K = 4
Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = people(120, seed=3)
    method = Linked(
        k=K,
        views=("patients+visits+events", "patients+events+events"),
        days=90,
        demographics=("sex",),
        keep={"sex": "exact"},
    )
    out = tmp_path_factory.mktemp("linked") / "out"
    anonymized = method.protect(cohort, randomness=Randomness.of(3))
    return write(anonymized, out), Source(cohort.require_events(), cohort.patients)


def broken(
    made: tuple[Path, Source], tmp_path: Path, changes: dict[str, Change], *, beside: bool = False
) -> set[str]:
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    for name, changed in changes.items():
        file = out / "share" / "data" / f"{name}.parquet"
        write_parquet(changed(pl.read_parquet(file)), file)
    restate(out)
    return by_method(verify(out, made[1] if beside else None))


def test_a_release_as_it_was_made_passes(made: tuple[Path, Source]) -> None:
    assert by_method(verify(made[0])) == set() == by_method(verify(made[0], made[1]))


def read(made: tuple[Path, Source], name: str) -> pl.DataFrame:
    return pl.read_parquet(made[0] / f"share/data/{name}.parquet")


def test_a_patient_who_is_unique_only_after_the_join(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The rarest code of the women, given to one man: no table alone shows fewer than k, the join shows one."""
    patients, events = read(made, "patients"), read(made, "events")
    sexes = events.join(patients, on="record").group_by("code", "sex").agg(pl.col("record").n_unique())
    alone = sexes.group_by("code").agg(pl.col("sex").first(), n=pl.len()).filter(pl.col("n") == 1)
    code, sex = alone.select("code", "sex").row(0) if alone.height else (None, None)
    if code is None:  # every code is in both classes: take one out of the men's
        code, sex = str(events["code"].max()), "F"
    others = patients.filter(pl.col("sex") != sex)["record"]
    kept = events.filter((pl.col("code") != code) | ~pl.col("record").is_in(others.implode()))
    one = kept.filter(pl.col("record").is_in(others.implode())).row(0, named=True)
    planted = (
        pl.concat([kept, pl.DataFrame([{**one, "code": code}])]).unique().sort("record", "visit", "code")
    )
    assert planted.filter(pl.col("code") == code)["record"].n_unique() >= K
    assert patients["sex"].value_counts()["count"].min() >= K  # type: ignore[operator]
    found = broken(made, tmp_path, {"events": lambda t: planted})
    assert found == {"views_of_k"}


def test_a_day_that_fewer_than_k_have(made: tuple[Path, Source], tmp_path: Path) -> None:
    last = read(made, "visits").group_by("record").agg(pl.col("visit").max()).row(0, named=True)
    mine = (pl.col("record") == last["record"]) & (pl.col("visit") == last["visit"])
    found = broken(
        made, tmp_path, {"visits": lambda t: t.with_columns(day=pl.when(mine).then(9000).otherwise("day"))}
    )
    assert found == {"views_of_k"}


def test_two_codes_that_fewer_than_k_have_together(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Of those with two codes all but one lose the first; each code alone still has k."""
    cohort = people(120, seed=3)
    method = Linked(k=K, views=("patients+events+events",))
    out = write(method.protect(cohort, randomness=Randomness.of(3)), tmp_path / "out")
    events = pl.read_parquet(out / "share/data/events.parquet")
    holders = {code: set(events.filter(pl.col("code") == code)["record"]) for code in events["code"].unique()}
    a, gone = next(
        (a, sorted(holders[a] & holders[b])[1:])
        for a in sorted(holders)
        for b in sorted(holders)
        if a != b and K <= len(holders[a] & holders[b]) <= len(holders[a]) - K
    )
    lost = (pl.col("code") == a) & pl.col("record").is_in(gone)
    changes: dict[str, Change] = {"events": lambda t: t.filter(~lost)}
    assert broken((out, made[1]), tmp_path, changes) == {"views_of_k"}


@pytest.mark.parametrize(
    ("name", "changed", "check"),
    [
        ("events", lambda t: t.reverse(), "joined_keys"),
        ("events", lambda t: pl.concat([t, t.tail(1)]), "joined_keys"),
        ("visits", lambda t: t.head(t.height - 1), "joined_keys"),
        ("patients", lambda t: t.head(t.height - 1), "joined_keys"),
        ("visits", lambda t: t.with_columns(pl.col("day") + 1), "days_in_steps"),
        ("patients", lambda t: t.with_columns(sex=pl.lit("F")), "record_classes"),
    ],
    ids=["order", "twice", "visit lost", "patient lost", "exact day", "class"],
)
def test_keys_days_and_classes(
    name: str, changed: Change, check: str, made: tuple[Path, Source], tmp_path: Path
) -> None:
    assert check in broken(made, tmp_path, {name: changed})


def test_rows_of_another_patient(made: tuple[Path, Source], tmp_path: Path) -> None:
    """All tables of two patients of a class exchanged but one: the joins keep k, the source does not."""
    exchange = {"events": lambda t: t.with_columns(pl.col("code").reverse()).unique().sort(t.columns)}
    assert "own_rows" in broken(made, tmp_path, exchange, beside=True)
    sexes = {"patients": lambda t: t.with_columns(sex=pl.col("sex").replace({"F": "M", "M": "F"}))}
    found = broken(made, tmp_path / "again", sexes, beside=True)
    assert found & {"record_classes", "class_source"}


def test_events_lost(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The codes of a patient that others of the class show too."""
    lost: dict[str, Change] = {"events": lambda t: t.filter(pl.col("record") != t["record"][-1])}
    assert broken(made, tmp_path, lost, beside=True) == {"lost_rows"}


@pytest.mark.parametrize(
    ("name", "changed", "found"),
    [
        (
            "events",
            lambda t: t.with_columns(visit=pl.lit(0, pl.Int64)).unique().sort(t.columns),
            {"own_visits"},
        ),
        (
            "visits",
            lambda t: pl.concat([t, t.tail(1).with_columns(pl.col("visit") + 1)]),
            {"own_visits", "own_rows"},
        ),
    ],
    ids=["all codes in the first visit", "a visit more"],
)
def test_codes_in_another_visit_of_their_patient(
    name: str, changed: Change, found: set[str], tmp_path: Path
) -> None:
    """No view has visits, so that k is not concerned: the visits are the patients' own all the same."""
    cohort = patients_with_codes(60)
    out = write(Linked(k=2).protect(cohort, randomness=Randomness.of(3)), tmp_path / "out")
    source = Source(cohort.require_events(), cohort.patients)
    assert by_method(verify(out, source)) == set()
    assert broken((out, source), tmp_path, {name: changed}, beside=True) == found


def test_patients_lost(made: tuple[Path, Source], tmp_path: Path) -> None:
    cohort = people(40, seed=4)
    out = write(Linked(k=2).protect(cohort, randomness=Randomness.of(3)), tmp_path / "out")
    fewer = cohort.require_events().filter(pl.col("patient") != "p000")
    assert "every_patient" in by_method(verify(out, Source(fewer, cohort.patients)))


def test_exchanged_demographics(made: tuple[Path, Source], tmp_path: Path) -> None:
    assert made[1].patients is not None
    people = made[1].patients.with_columns(sex=pl.col("sex").replace({"F": "M", "M": "F"}))
    assert "record_demographics" in by_method(verify(made[0], Source(made[1].events, people)))


def test_views_that_the_words_do_not_name(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    file = out / "share" / "release.json"
    for views in (["patients+events"], ["patients+events", "patients+visits"], ["patients"], []):
        manifest = json.loads(file.read_text())
        manifest["parameters"]["views"] = views
        file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        assert {"words", "parameters"} & {check.name for check in verify(out).failures}
