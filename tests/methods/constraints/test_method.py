"""The method: parameters, contract of the files, mapping on later data, engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.methods.constraints.test_apriori import icd_records
from tests.methods.constraints.test_greedy import RUNNING, RUNNING_UTILITY
from tests.spark_fixture import spark_engine

from leeward.cohort.cohort import Cohort
from leeward.engine import Engine
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import METHODS
from leeward.methods.constraints import Constraints
from leeward.methods.constraints.mapping import Mapping
from leeward.methods.constraints.weighted import count_records
from leeward.randomness import Randomness
from leeward.release import write
from leeward.release.content import Anonymized
from leeward.verify import Source, verify

__all__ = ["spark_engine"]


def cohort_of(records: list[list[str]], vocabulary: str | None = "icd9") -> Cohort:
    rows = [(f"patient {p}", code) for p, record in enumerate(records) for code in record]
    events = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    codes = sorted(events["code"].unique().to_list())
    return Cohort(events.with_columns(pl.col("code").cast(pl.Enum(codes))), vocabulary=vocabulary)


def running() -> Cohort:
    return cohort_of([record.split() for record in RUNNING])


def policy_file(folder: Path) -> str:
    path = folder / "policy.txt"
    path.write_text("\n".join(",".join(group) for group in RUNNING_UTILITY) + "\n")
    return f"file:{path}"


def table(released: Anonymized, name: str) -> pl.DataFrame:
    found = next(t for t in (*released.tables, *released.custody_tables) if t.path == name)
    frame = pl.from_arrow(pa.Table.from_batches(found.batches(), schema=found.schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


def rows_of(released: Anonymized) -> list[tuple[str, ...]]:
    return sorted(tuple(row) for row in table(released, "records.parquet")["codes"].to_list())


def test_the_registry_knows_the_method() -> None:
    assert METHODS["constraints"].parameters_class() is Constraints


def test_the_running_example_is_released_by_ugaclip(tmp_path: Path) -> None:
    method = Constraints(algorithm="ugaclip", k=3, m=2, policy=policy_file(tmp_path))
    released = method.protect(running(), randomness=Randomness.of(1))
    codes = table(released, "codes.parquet")
    kept = dict(codes.filter(~pl.col("suppressed")).select("code", "members").iter_rows())
    assert kept["(294.10,295.04,296.01,296.03)"] == ["294.10", "295.04", "296.01", "296.03"]
    assert kept["296.00"] == ["296.00"]
    assert codes.filter(pl.col("suppressed"))["code"].to_list() == [
        "401.0",
        "404.00",
        "480.1",
        "692.71",
        "695.10",
    ]
    records = table(released, "records.parquet")
    assert records["record"].to_list() == list(range(10))
    held = [label for row in records["codes"].to_list() for label in row]
    supports = [held.count(label) for label in set(held)]
    assert sorted(supports) == [4, 5, 5, 9]
    assert released.guarantee.k == 3
    assert released.guarantee.m == 2
    assert released.parameters == {"algorithm": "ugaclip", "k": 3, "m": 2, "policy": "file:policy.txt"}
    assert table(released, "policy.parquet").height == 13


def test_a_label_of_many_codes_is_short_and_its_members_are_listed(tmp_path: Path) -> None:
    """What Apriori does to long records: one label for everything, written into every record."""
    codes = [f"{number}" for number in range(460, 520)]
    cohort = cohort_of([[code] for code in codes])
    released = Constraints(algorithm="apriori", k=60, m=1).protect(cohort, randomness=Randomness.of(1))
    labels = dict(table(released, "codes.parquet").select("code", "members").iter_rows())
    assert labels == {"(460,…,519: 60 codes)": codes}
    out = write(released, tmp_path / "out")
    assert verify(out / "share", Source(cohort.require_events())).passed
    again = Constraints(k=60, m=1, mapping=str(out / "share" / "data" / "codes.parquet"))
    assert rows_of(again.protect(cohort, randomness=Randomness.of(1))) == rows_of(released)


def test_records_emptied_by_suppression_stay() -> None:
    records = [["250.00"]] * 6 + [["401.0"]]
    released = Constraints(k=5, m=1).protect(cohort_of(records), randomness=Randomness.of(1))
    assert rows_of(released) == [()] + [("250.00",)] * 6
    assert released.custody["records_emptied"] == 1


def test_coat_reports_constraints_over_its_cap(tmp_path: Path) -> None:
    policy = policy_file(tmp_path)
    strict = Constraints(algorithm="coat", k=3, m=2, policy=policy, cap=0.5).protect(running())
    loose = Constraints(algorithm="coat", k=3, m=2, policy=policy, cap=1.0).protect(running())
    assert strict.custody["utility"]["over_cap_names"] == ["line 2", "line 3", "line 4"]
    assert not strict.custody["utility"]["satisfied"]
    assert any("cap" in notice for notice in strict.notices)
    assert loose.custody["utility"]["satisfied"]
    assert rows_of(strict) == rows_of(loose)


def test_listed_constraints_protect_only_what_is_listed(tmp_path: Path) -> None:
    listed = tmp_path / "privacy.txt"
    listed.write_text("250.00 401.0\n")
    records = [["250.00", "401.0"]] + [["250.00"]] * 5 + [["401.0"]] * 5 + [["486.0"]]
    released = Constraints(algorithm="ugaclip", k=2, privacy=str(listed)).protect(cohort_of(records))
    codes = table(released, "codes.parquet")
    assert codes.filter(pl.col("suppressed")).height == 1
    assert "486.0" in codes.filter(~pl.col("suppressed"))["code"].to_list()
    assert released.guarantee.m is None
    assert table(released, "privacy.parquet").rows() == [(0, "250.00"), (0, "401.0")]


def test_semantic_weights_prefer_codes_that_are_near() -> None:
    # 278.01 must go with another code; 250.00 and 278.00 are alike, so without weights the smaller one wins.
    records = [["278.01", "486.0"]] + [["250.00", "486.0"], ["278.00", "486.0"]] * 3
    records += [["250.00"]] * 9 + [["278.00"]] * 9 + [["278.01"]] * 9 + [["486.0"]] * 9
    cohort = cohort_of(records)
    plain = Constraints(algorithm="ugaclip", k=2, m=2, policy="hierarchy:3").protect(cohort)
    weighed = Constraints(algorithm="ugaclip", k=2, m=2, policy="hierarchy:3", weights="leaves").protect(
        cohort
    )
    assert "(250.00,278.01)" in table(plain, "codes.parquet")["code"].to_list()
    assert "(278.00,278.01)" in table(weighed, "codes.parquet")["code"].to_list()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 1, "m": 2}, "`k` must be a whole number of at least 2; got 1"),
        ({"k": 5}, "either `m`"),
        ({"k": 5, "m": 2, "privacy": "x"}, "either `m`"),
        ({"k": 5, "m": 0}, "`m` must be"),
        ({"k": 5, "m": 2, "algorithm": "magic"}, "`algorithm` must be `cba`, `ugaclip`, `coat` or `apriori`"),
        ({"k": 5, "m": 2, "cap": 0.1}, "belongs to the algorithm coat"),
        ({"k": 5, "m": 2, "algorithm": "coat", "cap": 1.5}, "must be a number from 0 to 1"),
        ({"k": 5, "m": 2, "algorithm": "apriori", "policy": "hierarchy:1"}, "apriori takes `k` and `m` only"),
        ({"k": 5, "m": 2, "policy": "hierachy:1"}, "nearest is 'hierarchy'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Constraints(**parameters)


def test_fewer_than_k_records_are_refused() -> None:
    with pytest.raises(GuaranteeUnreachable, match="10 records, fewer than k = 11"):
        Constraints(k=11, m=2).protect(running())


def test_apriori_needs_a_vocabulary() -> None:
    with pytest.raises(BadInput, match="vocabulary"):
        Constraints(algorithm="apriori", k=3, m=2).protect(cohort_of([["a"]] * 5, None))


@pytest.mark.parametrize("algorithm", ["cba", "ugaclip", "apriori"])
def test_the_same_seed_gives_the_same_rows(algorithm: Any) -> None:
    cohort = cohort_of(icd_records(200, 3))
    policy = None if algorithm == "apriori" else "hierarchy:2"
    method = Constraints(algorithm=algorithm, k=3, m=2, policy=policy)
    first, second = (method.protect(cohort, randomness=Randomness.of(9)) for _ in range(2))
    other = method.protect(cohort, randomness=Randomness.of(10))
    assert table(first, "records.parquet").equals(table(second, "records.parquet"))
    assert not table(first, "records.parquet").equals(table(other, "records.parquet"))
    assert rows_of(first) == rows_of(other)
    assert first.seeded


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["cba", "ugaclip", "coat", "apriori"])
def test_every_release_is_verified(tmp_path: Path, algorithm: Any, m: int) -> None:
    cohort = cohort_of(icd_records(400, 5))
    policy = None if algorithm == "apriori" else "hierarchy:1"
    write(Constraints(algorithm=algorithm, k=4, m=m, policy=policy).protect(cohort), tmp_path / "out")
    verification = verify(tmp_path / "out", Source(cohort.require_events()))
    assert verification.passed, verification.failures
    assert {f"sets_of_{size}" for size in range(1, m + 1)} >= {
        c.name for c in verification.checks if "sets_of" in c.name
    }


def test_a_mapping_protects_later_data_of_the_same_kind(tmp_path: Path) -> None:
    write(
        Constraints(k=3, m=2, policy="hierarchy:2").protect(cohort_of(icd_records(600, 1))),
        tmp_path / "first",
    )
    mapping = str(tmp_path / "first" / "share" / "data" / "codes.parquet")
    later = [*icd_records(600, 1)[100:], ["799.9", "250.0"]]
    released = Constraints(k=2, m=1, mapping=mapping).protect(cohort_of(later))
    before = pl.read_parquet(mapping).filter(~pl.col("suppressed"))
    after = table(released, "codes.parquet")
    assert after.filter(~pl.col("suppressed"))["code"].to_list() == before["code"].to_list()
    assert "799.9" in after.filter(pl.col("suppressed"))["code"].to_list()
    assert released.notices == ("1 codes that the earlier mapping does not know were suppressed.",)
    assert released.parameters == {"algorithm": "mapping", "k": 2, "m": 1}
    write(released, tmp_path / "second")
    assert verify(tmp_path / "second", Source(cohort_of(later).require_events())).passed


def test_a_mapping_that_does_not_protect_is_refused(tmp_path: Path) -> None:
    write(Constraints(k=3, m=2).protect(cohort_of([["a"]] * 5 + [["b"]] * 5)), tmp_path / "first")
    mapping = str(tmp_path / "first" / "share" / "data" / "codes.parquet")
    with pytest.raises(GuaranteeUnreachable, match="does not protect this cohort"):
        Constraints(k=3, m=2, mapping=mapping).protect(cohort_of([["a"]] * 5 + [["b"]]))
    with pytest.raises(GuaranteeUnreachable, match="does not protect this cohort"):
        Constraints(k=3, m=2, mapping=mapping).protect(cohort_of([["a"]] * 5 + [["b"]] * 5 + [["a", "b"]]))


@pytest.mark.parametrize("content", [b"not parquet", None])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "codes.parquet"
    if content is None:
        pl.DataFrame({"code": ["a"]}).write_parquet(path)
    else:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=r"codes\.parquet"):
        Constraints(k=3, m=2, mapping=str(path)).protect(cohort_of([["a"]] * 5))


def test_labels_that_would_read_alike_are_refused() -> None:
    with pytest.raises(BadInput, match="read alike"):
        Mapping.of(np.array([0, 1, 1], np.int32), ["(a,b)", "a", "b"])


def test_spark_counts_the_same_sets(spark_engine: Engine) -> None:
    cohort = cohort_of(icd_records(300, 7))
    sets = cohort.code_sets()
    local, spark = count_records(sets), count_records(sets, spark_engine)
    for name in ("offsets", "values", "weight"):
        assert np.array_equal(getattr(local, name), getattr(spark, name))
    method = Constraints(k=3, m=2, policy="hierarchy:2")
    here = method.protect(cohort, randomness=Randomness.of(4))
    there = method.protect(cohort, spark_engine, randomness=Randomness.of(4))
    assert table(here, "records.parquet").equals(table(there, "records.parquet"))
    assert table(here, "codes.parquet").equals(table(there, "codes.parquet"))


def test_counting_in_parts_is_counting_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from leeward import engine as engines
    from leeward.methods.constraints import weighted

    class Elsewhere:
        """The local engine under another name, so that counting goes through the seam."""

        name = "elsewhere"

        def __getattr__(self, attribute: str) -> Any:
            return getattr(engines.make("local", threads=2), attribute)

    monkeypatch.setattr(weighted, "RECORDS_A_PART", 37)
    sets = cohort_of(icd_records(300, 7)).code_sets()
    local, parts = count_records(sets), count_records(sets, Elsewhere())  # type: ignore[arg-type]  # a stand-in
    for name in ("offsets", "values", "weight"):
        assert np.array_equal(getattr(local, name), getattr(parts, name))
