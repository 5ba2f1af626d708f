"""The verifier of generalized records, tested by breaking releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forging import by_method, restate, write_parquet
from tests.oracles.constraints import subsets

from leeward.contracts.constraints import CONTRACT
from leeward.methods.constraints import Constraints
from leeward.release import Anonymized, Guarantee, ReleaseTable, write
from leeward.verify import Source, Verification, verify
from leeward.verify.constraints.check import rare_sets
from leeward.verify.constraints.classed import Lists
from leeward.verify.flat import offsets_of

ROWS = ["ab", "ab", "ab", "aX", "aX", "aX", "bX", "bX", "bX", "", "b"]
LABELS = {"(c,d)": ["c", "d"], "a": ["a"], "b": ["b"]}
SUPPRESSED = ["z"]
SOURCE = ["ab", "ab", "abz", "ac", "ad", "acd", "bc", "bd", "bd", "z", "b"]


def rows_of(rows: list[str]) -> list[list[str]]:
    return [["(c,d)" if c == "X" else c for c in row] for row in rows]


def codes_frame(labels: dict[str, list[str]], suppressed: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "code": [*sorted(labels), *sorted(suppressed)],
            "members": [*(labels[label] for label in sorted(labels)), *([] for _ in suppressed)],
            "suppressed": [False] * len(labels) + [True] * len(suppressed),
        },
        schema={"code": pl.String, "members": pl.List(pl.String), "suppressed": pl.Boolean},
    )


def records_frame(rows: list[list[str]]) -> pl.DataFrame:
    schema = {"record": pl.Int64, "codes": pl.List(pl.String)}
    return pl.DataFrame({"record": range(len(rows)), "codes": [sorted(row) for row in rows]}, schema=schema)


def table_of(name: str, frame: pl.DataFrame) -> ReleaseTable:
    return ReleaseTable.of(name, frame.to_arrow())


def publish(
    out: Path,
    rows: list[list[str]] | None = None,
    labels: dict[str, list[str]] = LABELS,
    suppressed: list[str] = SUPPRESSED,
    m: int | None = 2,
    privacy: list[tuple[int, str]] | None = None,
    policy: list[tuple[str, str]] | None = None,
) -> Path:
    listed = None if m is not None else "list.csv"
    method = Constraints(k=3, m=m, privacy=listed, policy="file:x" if policy else None)
    words = CONTRACT.words(method.public())
    records = records_frame(rows_of(ROWS) if rows is None else rows)
    kept = {"constraint": [c for c, _ in policy or []], "code": [c for _, c in policy or []]}
    custody = [table_of("policy.parquet", pl.DataFrame(kept))] if policy else []
    if privacy is not None:
        frame = pl.DataFrame(privacy, schema={"constraint": pl.Int64, "code": pl.String}, orient="row")
        custody.append(table_of("privacy.parquet", frame))
    write(
        Anonymized(
            method="constraints",
            parameters=method.public(),
            guarantee=Guarantee.of(CONTRACT, words, method.public()),
            records=records.height,
            tables=(
                table_of("records.parquet", records),
                table_of("codes.parquet", codes_frame(labels, suppressed)),
            ),
            readme=words.readme,
            custody_tables=tuple(custody),
        ),
        out,
    )
    return out


def source() -> Source:
    rows = [(p, code) for p, record in enumerate(SOURCE) for code in record]
    return Source(pl.DataFrame(rows, schema=["patient", "code"], orient="row"))


def failed(verification: Verification) -> set[str]:
    """The failed checks of the method's own."""
    return by_method(verification)


def rewrite(out: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Path:
    """Change a released file, and the manifest so that only the content is wrong."""
    file = out / "share" / "data" / name
    write_parquet(change(pl.read_parquet(file)), file)
    restate(out)
    return out


def test_a_sound_release_passes(tmp_path: Path) -> None:
    verification = verify(publish(tmp_path / "out"), source())
    assert verification.passed, verification.failures
    assert verification["sets_of_2"].figures == {"violations": 0, "size": 2, "occurring": 3}


def test_a_rare_label(tmp_path: Path) -> None:
    rows = rows_of([*ROWS[:3], "a", "a", "a", "b", "b", "b", "X", "X"])
    assert failed(verify(publish(tmp_path / "out", rows))) == {"sets_of_1"}


def test_a_rare_pair(tmp_path: Path) -> None:
    rows = rows_of(["a", *ROWS[1:], "b"])
    assert failed(verify(publish(tmp_path / "out", rows))) == {"sets_of_2"}
    assert verify(publish(tmp_path / "singles", rows, m=1)).passed


def test_a_rare_triple_fails_at_m_3_only(tmp_path: Path) -> None:
    rows = rows_of(["abX", *ROWS[:8], "", "b", "bX"])
    assert verify(publish(tmp_path / "two", rows)).passed
    assert failed(verify(publish(tmp_path / "three", rows, m=3))) == {"sets_of_3"}


def test_a_rare_image_of_a_listed_constraint(tmp_path: Path) -> None:
    rows = rows_of(["a", *ROWS[1:], "b"])
    listed = [(0, "a"), (0, "b"), (1, "a"), (1, "c")]
    assert failed(verify(publish(tmp_path / "bad", rows, m=None, privacy=listed))) == {"listed_sets"}
    assert verify(publish(tmp_path / "good", rows, m=None, privacy=listed[2:])).passed
    assert verify(publish(tmp_path / "suppressed", rows, m=None, privacy=[(0, "a"), (0, "z")])).passed


def test_listed_constraints_must_be_at_hand(tmp_path: Path) -> None:
    out = publish(tmp_path / "out", m=None, privacy=[(0, "a")])
    (out / "custody" / "data" / "privacy.parquet").unlink()
    restate(out)
    assert failed(verify(out)) == {"listed_sets"}


def test_a_label_that_crosses_a_utility_constraint(tmp_path: Path) -> None:
    inside = [("u", "c"), ("u", "d"), ("v", "a")]
    assert verify(publish(tmp_path / "good", policy=inside)).passed
    across = [("u", "c"), ("v", "d")]
    assert failed(verify(publish(tmp_path / "bad", policy=across))) == {"inside_utility_constraints"}
    free = [("u", "c")]
    assert failed(verify(publish(tmp_path / "free", policy=free))) == {"inside_utility_constraints"}


@pytest.mark.parametrize(
    ("name", "change", "check"),
    [
        ("records.parquet", lambda f: f.with_columns(record=pl.lit(0, pl.Int64)), "record_numbers"),
        ("records.parquet", lambda f: f.head(10), "record_numbers"),
        (
            "records.parquet",
            lambda f: f.with_columns(codes=pl.concat_list("codes", pl.lit("q"))),
            "labels_are_listed",
        ),
        (
            "records.parquet",
            lambda f: f.with_columns(codes=pl.concat_list("codes", pl.lit("z"))),
            "labels_are_listed",
        ),
        (
            "records.parquet",
            lambda f: f.with_columns(codes=pl.concat_list("codes", "codes")),
            "records_are_sets",
        ),
        ("records.parquet", lambda f: f.with_columns(patient=pl.lit("x")), "layout"),
        ("records.parquet", lambda f: f.with_columns(record=pl.lit(None, pl.Int64)), "layout"),
        ("codes.parquet", lambda f: f.drop("members"), "layout"),
        ("codes.parquet", lambda f: pl.concat([f, f.head(1)]), "labels_are_disjoint"),
        (
            "codes.parquet",
            lambda f: f.with_columns(members=pl.lit(["c", "e"])),
            "labels_are_disjoint",
        ),
        (
            "codes.parquet",
            lambda f: f.with_columns(code=pl.col("code").str.replace("(c,d)", "(c,e)", literal=True)),
            "labels_say_their_members",
        ),
    ],
)
def test_files_that_do_not_fit_together(
    tmp_path: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame], check: str
) -> None:
    assert check in failed(verify(rewrite(publish(tmp_path / "out"), name, change)))


def test_a_damaged_file(tmp_path: Path) -> None:
    out = publish(tmp_path / "out")
    (out / "share" / "data" / "codes.parquet").write_bytes(b"PAR1")
    assert "layout" in failed(verify(out))


def test_an_invented_row_and_a_lost_one(tmp_path: Path) -> None:
    rows = rows_of([*ROWS[:-1], "abX"])
    found = failed(verify(publish(tmp_path / "out", rows), source()))
    assert {"rows_generalize_source_rows", "no_row_lost"} <= found


def test_a_source_code_that_vanished(tmp_path: Path) -> None:
    out = publish(tmp_path / "out", suppressed=[])
    assert failed(verify(out, source())) == {"every_code_accounted_for"}


def test_a_code_of_the_mapping_that_nobody_has(tmp_path: Path) -> None:
    out = publish(tmp_path / "out", suppressed=[*SUPPRESSED, ""])
    assert failed(verify(out, source())) == {"no_other_codes"}


def test_a_row_of_another_patient_that_no_source_row_gives(tmp_path: Path) -> None:
    rows = rows_of([*ROWS[:-1], "X"])
    found = failed(verify(publish(tmp_path / "out", rows), source()))
    assert found == {"rows_generalize_source_rows", "no_row_lost"}


@given(
    st.lists(st.sets(st.integers(0, 5), max_size=5), min_size=1, max_size=25),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_rare_sets_are_those_of_a_plain_count(rows: list[set[int]], k: int, m: int) -> None:
    labels = np.array([c for row in rows for c in sorted(row)], np.int32)
    violations, occurring = rare_sets(Lists(offsets_of(np.array([*map(len, rows)])), labels, 6), k, m)
    supports: dict[frozenset[Any], int] = {}
    for itemset in subsets([str(c) for c in range(6)], m):
        support = sum(itemset <= {str(c) for c in row} for row in rows)
        if support:
            supports[itemset] = support
    rare = [0 < s < k for s in supports.values()]
    assert (sum(violations) > 0) == any(rare)
    if not any(rare):
        assert sum(occurring) == len(supports)
