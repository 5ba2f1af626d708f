"""A release that grows: nothing published changes, and no version and no difference shows what fewer than k have."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import refresh as plain
from tests.runs.made_lines import cohort, line, visits

import leeward as lw
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed

K = 3


def shares(versions: list[Path]) -> list[Path]:
    return [version / "share" for version in versions]


@settings(max_examples=5)
@given(
    seed=st.integers(0, 10**6),
    batches=st.integers(2, 5),
    codes=st.integers(2, 12),
    again=st.sampled_from([0.05, 0.3, 0.8]),
    wait=st.integers(0, 2),
    records=st.sampled_from(["kept", "apart"]),
)
def test_visits_keep_k_in_every_version_and_difference(
    seed: int, batches: int, codes: int, again: float, wait: int, records: str
) -> None:
    with TemporaryDirectory() as folder:
        made = visits(60, batches, codes, seed, again)
        versions = line(Path(folder), lw.Visits(k=K, policy="none"), made, wait=wait, records=records)
        found = shares(versions)
        assert plain.rows_that_changed(found) == 0
        assert plain.below(dict(plain.views_of_visits(found)), K) == {}
        assert all(lw.verify(b, earlier=a).passed for a, b in pairwise(found))


@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 3), codes=st.integers(3, 10))
def test_chunks_keep_k_in_every_version_and_difference(seed: int, m: int, codes: int) -> None:
    with TemporaryDirectory() as folder:
        versions = line(Path(folder), lw.Disassociation(k=K, m=m), visits(60, 3, codes, seed, 0.5))
        assert plain.below(dict(plain.views_of_chunks(shares(versions), m)), K) == {}


@pytest.fixture(scope="module")
def batches() -> list[pl.DataFrame]:
    return visits(200, 3, 10, 7)


@pytest.fixture(scope="module")
def versions(batches: list[pl.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return line(tmp_path_factory.mktemp("line"), lw.Visits(k=K, policy="none"), batches)


def test_a_patient_who_comes_again_keeps_the_record(
    versions: list[Path], batches: list[pl.DataFrame]
) -> None:
    people = dict(
        pl.read_parquet(versions[-1] / "custody/versions/records.parquet").select("patient", "record").rows()
    )
    assert len(people) == len(set(people.values())) == pl.concat(batches)["patient"].n_unique()
    first = dict(
        pl.read_parquet(versions[0] / "custody/data/patients.parquet").select("patient", "record").rows()
    )
    assert first.items() <= people.items()
    source: dict[str, list[frozenset[str]]] = {}
    for (patient, _), rows in pl.concat(batches).group_by("patient", "visit"):
        source.setdefault(str(patient), []).append(frozenset(rows["code"]))
    owner = {record: patient for patient, record in people.items()}
    for record, _, codes in plain.visits_of(versions[-1] / "share"):
        assert any(codes <= each for each in source[owner[record]])


def test_the_manifest_has_the_batches(versions: list[Path]) -> None:
    manifests = [json.loads((each / "share/release.json").read_text()) for each in versions]
    assert "versions" not in manifests[0]
    assert [len(each["versions"]) for each in manifests[1:]] == [2, 3]
    assert manifests[2]["versions"][:2] == manifests[1]["versions"]
    assert sum(each["records"] for each in manifests[2]["versions"]) == manifests[2]["records"]


def test_what_was_published_is_left_out_and_counted(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    """Also corrected visits, which must not be released as new ones; nothing else of the batch changes."""
    before, last = pl.concat(batches[:2]), batches[2]
    code = pl.when(pl.col("visit") == before["visit"][0]).then(pl.lit("999")).otherwise("code").alias("code")
    again = lw.refresh(
        versions[1],
        cohort(pl.concat([before.with_columns(code), last])),
        tmp_path / "again",
        seed=3,
        tell=print,
    )
    counts = again.measures["refresh"]
    assert counts["published"] == before["visit"].n_unique() - 1
    assert counts["corrected"] == 1
    assert counts["visits"] + counts["waiting"] == last["visit"].n_unique()
    assert plain.visits_of(tmp_path / "again/share") == plain.visits_of(versions[2] / "share")
    assert "999" not in (tmp_path / "again/share/data/visits.csv").read_text()


def test_too_few_patients_are_told_how_many_are_missing(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    few = batches[2].filter(pl.col("patient").is_in(batches[2]["patient"].unique().sort().head(2).to_list()))
    with pytest.raises(GuaranteeUnreachable, match="1 patient more"):
        lw.refresh(
            versions[0], cohort(few), tmp_path / "out", seed=1, published=cohort(batches[0]), tell=print
        )
    with pytest.raises(GuaranteeUnreachable, match="3 patients more"):
        lw.refresh(versions[1], cohort(batches[1]), tmp_path / "out", seed=1, tell=print)
    assert not (tmp_path / "out").exists()


def test_a_class_of_fewer_than_k_patients_waits_until_it_has_k(tmp_path: Path) -> None:
    """Two returning patients wait, whatever they show; a third one comes a batch later, and all three are released."""
    rows = [
        [(f"p{n}", "401", n) for n in range(9)],
        [(f"p{n}", "401", 100 + n) for n in (0, 1, *range(20, 29))],
        [(f"p{n}", "401", 200 + n) for n in (2, *range(30, 39))],
    ]
    made = [pl.DataFrame(each, schema=["patient", "code", "visit"], orient="row") for each in rows]
    versions = line(tmp_path, lw.Visits(k=K, policy="none"), made)
    shown = [len(plain.visits_of(each / "share")) for each in versions]
    assert shown == [9, 18, 30]
    counts = [json.loads((each / "custody/measures.json").read_text())["refresh"] for each in versions[1:]]
    assert [each["waiting"] for each in counts] == [2, 0]


def test_a_rare_set_waits_as_long_as_asked(tmp_path: Path) -> None:
    """401 and 402 together: two patients in batch 2, one in batch 3. With `wait` they are released whole in batch 3."""
    rows = [
        [(f"p{n}", "401", n) for n in range(9)],
        [(f"q{n}", code, 100 + n) for n in range(9) for code in ("401", "402")[: 2 if n < 2 else 1]],
        [(f"r{n}", code, 200 + n) for n in range(9) for code in ("401", "402")[: 2 if n < 1 else 1]],
    ]
    made = [pl.DataFrame(each, schema=["patient", "code", "visit"], orient="row") for each in rows]
    whole = {}
    for wait in (0, 1):
        last = line(tmp_path / str(wait), lw.Visits(k=K, policy="none"), made, wait=wait)[-1] / "share"
        whole[wait] = sum(codes == {"401", "402"} for _, _, codes in plain.visits_of(last))
    assert whole == {0: 0, 1: 3}


def test_nothing_new_of_who_withdrew(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    gone = batches[2]["patient"][0]
    made = lw.refresh(versions[1], cohort(batches[2]), tmp_path / "3", withdrawn=[gone], seed=3, tell=print)
    kept = pl.read_parquet(tmp_path / "3/custody/versions/published.parquet").filter(batch=3)
    assert gone not in set(kept["patient"])
    assert made.measures["refresh"]["withdrawn"] == 1
    later = visits(200, 4, 10, 7)[3].with_columns(pl.col("visit") + 10_000)
    later = pl.concat(
        [later, pl.DataFrame({"patient": [gone], "code": ["401"], "visit": [1]}, schema=later.schema)]
    )
    lw.refresh(tmp_path / "3", cohort(later), tmp_path / "4", seed=4, tell=print)
    assert gone not in set(
        pl.read_parquet(tmp_path / "4/custody/versions/published.parquet").filter(batch=4)["patient"]
    )


def test_labels_of_the_first_version_are_frozen(tmp_path: Path) -> None:
    """401 and 402 were merged in version 1; later each of them shows that label, and a code unknown then its own."""
    first = [(f"p{n}", f"401.{n % 3}", n) for n in range(4)] + [(f"q{n}", "250", 50 + n) for n in range(5)]
    later = [(f"r{n}", "401.0", 100 + n) for n in range(9)] + [(f"s{n}", "780", 150 + n) for n in range(5)]
    made = [pl.DataFrame(each, schema=["patient", "code", "visit"], orient="row") for each in (first, later)]
    sources = [lw.read(each, columns=COLUMNS, vocabulary="icd9") for each in made]
    lw.protect(sources[0], lw.Visits(k=K), tmp_path / "1", seed=1, tell=print)
    lw.refresh(tmp_path / "1", sources[1], tmp_path / "2", seed=2, published=sources[0], tell=print)
    merged = {codes for _, _, codes in plain.visits_of(tmp_path / "1/share")} - {frozenset({"250"})}
    added = {
        codes for _, _, codes in plain.visits_of(tmp_path / "2/share") - plain.visits_of(tmp_path / "1/share")
    }
    assert len(merged) == 1
    assert added == merged | {frozenset({"780"})}


COLUMNS = {"patient": "patient", "code": "code", "visit": "visit"}


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (lw.Constraints(k=3, m=1, policy="hierarchy:1"), "labels"),
        (lw.Linked(k=3), "demographics"),
        (lw.Visits(k=3, policy="none", enforce="generalize"), "enforce"),
    ],
)
def test_methods_that_cannot_be_refreshed_say_why(method: object, named: str, tmp_path: Path) -> None:
    rows = [each.with_columns(pl.col("code").replace("400", "405")) for each in visits(60, 2, 5, 1)]
    first = lw.read(rows[0], columns=COLUMNS, vocabulary="icd9")
    lw.protect(first, method, tmp_path / "1", seed=1, tell=print)
    with pytest.raises(BadInput, match=named):
        lw.refresh(tmp_path / "1", cohort(rows[1]), tmp_path / "2", seed=1, published=first, tell=print)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": None}, "seed"),
        ({"seed": 1, "records": "apart", "published": "first"}, None),
        ({"seed": 1, "wait": 1, "published": "first"}, None),
        ({"seed": 1}, "--published"),
    ],
)
def test_what_has_to_agree(
    versions: list[Path],
    batches: list[pl.DataFrame],
    options: dict[str, object],
    named: str | None,
    tmp_path: Path,
) -> None:
    given = {**options, **({"published": cohort(batches[0])} if "published" in options else {})}
    if named is None:
        assert lw.refresh(
            versions[0], cohort(batches[1]), tmp_path / "2", tell=print, **given
        ).verification.passed
    else:
        with pytest.raises(BadInput, match=named):
            lw.refresh(versions[0], cohort(batches[1]), tmp_path / "2", tell=print, **given)


def test_records_are_kept_or_apart_in_all_versions(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="kept, in every version"):
        lw.refresh(versions[1], cohort(batches[2]), tmp_path / "3", records="apart", seed=1, tell=print)


def test_rows_without_visits_cannot_be_told_from_published_ones(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    bare = lw.read(batches[2].drop("visit"), columns={"patient": "patient", "code": "code"})
    with pytest.raises(BadInput, match="--visit"):
        lw.refresh(versions[1], bare, tmp_path / "3", seed=1, tell=print)
    empty = batches[2].with_columns(visit=pl.when(pl.col("visit") > batches[2]["visit"][0]).then("visit"))
    with pytest.raises(BadInput, match="no value in the column of visits"):
        lw.refresh(versions[1], cohort(empty), tmp_path / "3", seed=1, tell=print)


def test_another_vocabulary_or_a_changed_version_is_refused(
    versions: list[Path], batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    other = replace(cohort(batches[2]), vocabulary="icd10")
    with pytest.raises(BadInput, match="vocabulary"):
        lw.refresh(versions[1], other, tmp_path / "3", seed=1, tell=print)
    shutil.copytree(versions[1], tmp_path / "changed")
    spec = tmp_path / "changed/custody/spec.yaml"
    spec.write_text(spec.read_text().replace("k: 3", "k: 2"))
    with pytest.raises((BadInput, VerificationFailed)):
        lw.refresh(tmp_path / "changed", cohort(batches[2]), tmp_path / "3", seed=1, tell=print)
    assert not (tmp_path / "3").exists()


def test_a_table_leaves_patients_out_who_are_in_an_earlier_batch(tmp_path: Path) -> None:
    """A patient's row is the same in every batch, so that it is in one of them only."""
    table = pl.DataFrame(
        {"patient": range(60), "age": [30 + n % 20 for n in range(60)], "sex": ["F", "M"] * 30}
    )
    sources = [lw.read(each, format="table", columns={"patient": "patient"}) for each in (table[:40], table)]
    method = lw.KAnonymity(k=K, quasi_identifiers=("age", "sex"))
    lw.protect(sources[0], method, tmp_path / "1", seed=1, tell=print)
    made = lw.refresh(tmp_path / "1", sources[1], tmp_path / "2", seed=2, published=sources[0], tell=print)
    assert made.measures["refresh"] == {
        "published": 40, "corrected": 0, "withdrawn": 0, "unknown": 0, "patients": 20, "waiting": 0
    }  # fmt: skip
    before, after = (pl.read_parquet(tmp_path / n / "share/data/table.parquet") for n in "12")
    assert after[:40].equals(before)
    assert after.height == 60
    assert after[40:].group_by("age", "sex").len()["len"].min() >= K  # type: ignore[operator]  # there are rows


def test_identifiers_of_a_table_are_spelled_as_the_register_spells_them(tmp_path: Path) -> None:
    """Whole numbers with a point (a column that misses some values) and without are the same patients."""
    table = pl.DataFrame({"patient": range(60), "age": [30 + n % 20 for n in range(60)]})
    first = table[:40].with_columns(pl.col("patient").cast(pl.Float64))
    sources = [lw.read(each, format="table", columns={"patient": "patient"}) for each in (first, table)]
    method = lw.KAnonymity(k=K, quasi_identifiers=("age",))
    lw.protect(sources[0], method, tmp_path / "1", seed=1, tell=print)
    made = lw.refresh(tmp_path / "1", sources[1], tmp_path / "2", seed=2, published=sources[0], tell=print)
    assert (made.measures["refresh"]["published"], made.measures["refresh"]["patients"]) == (40, 20)


def test_rare_codes_are_suppressed_where_only_codes_are_shared(tmp_path: Path) -> None:
    """Level `code` deletes nothing but codes that fewer than k patients of a class have."""
    versions = line(tmp_path, lw.Visits(k=K, policy="none", level="code"), visits(120, 3, 12, 4))
    for version in versions:
        table = pl.read_parquet(version / "share/data/visits.parquet").explode("codes", empty_as_null=False)
        assert table.group_by("codes").agg(pl.col("record").n_unique())["record"].min() >= K  # type: ignore[operator]  # there are rows
    assert lw.verify(versions[-1], earlier=versions[0]).passed


def test_a_condensed_table_can_grow(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "patient": range(60),
            "age": [30 + n % 20 for n in range(60)],
            "weight": [50.0 + n for n in range(60)],
        }
    )
    sources = [
        lw.read(each, format="table", columns={"patient": "patient"}) for each in (table[:30], table[30:])
    ]
    lw.protect(sources[0], lw.Condensation(k=K), tmp_path / "1", seed=1, tell=print)
    made = lw.refresh(tmp_path / "1", sources[1], tmp_path / "2", seed=2, published=sources[0], tell=print)
    assert made.release.records == 60
    assert made.verification.passed
