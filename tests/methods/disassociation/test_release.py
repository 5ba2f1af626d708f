"""Disassociated releases: the verifier accepts them whatever the parameters, and contents are what they should be."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.disassociation.shapes import cohort_of, running_example
from tests.mutations.definitions import disassociation_share

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

Records = list[tuple[str, ...]]
CODES = ["250.00", "250.01", "250.02", "401.0", "401.1", "401.9", "428.0", "428.1", "V10.1", "E812.0"]


@st.composite
def releases(draw: st.DrawFn) -> tuple[Records, Disassociation]:
    patterns = draw(st.lists(st.sets(st.sampled_from(CODES), min_size=1, max_size=5), min_size=1, max_size=5))
    record = st.sampled_from(patterns) | st.sets(st.sampled_from(CODES), min_size=1, max_size=6)
    k = draw(st.integers(2, 4))
    records = [tuple(sorted(r)) for r in draw(st.lists(record, min_size=k + 1, max_size=40))]
    present = sorted({c for r in records for c in r})
    method = Disassociation(
        k=k,
        m=draw(st.integers(1, 5)),
        attacker=draw(st.sampled_from(["operation", "counts"])),
        policy=draw(st.sampled_from([None, "hierarchy:1", "hierarchy:3", "frequency:0.2"])),
        partitioning=draw(st.sampled_from(["auto", "fitted", "recut", "paper"])),
        max_cluster=draw(st.sampled_from([None, k + 1, 3 * k])),
        nested=draw(st.booleans()),
        safe=draw(st.booleans()),
        sensitive=tuple(draw(st.sets(st.sampled_from(present), max_size=1))),
        reconstructions=draw(st.integers(0, 1)),
    )
    return records, method


def released(records: Records, method: Disassociation, folder: Path, seed: int | None = 1) -> Path:
    made = method.protect(cohort_of(records, "icd9"), randomness=Randomness.of(seed))
    write(made, folder / "out")
    return folder / "out"


@given(releases())
@settings(max_examples=50)
def test_every_release_passes_the_verifier_and_keeps_the_plain_definitions(
    drawn: tuple[Records, Disassociation],
) -> None:
    records, method = drawn
    with tempfile.TemporaryDirectory() as folder:
        out = released(records, method, Path(folder))
        found = verify(out, Source(cohort_of(records).require_events()))
        assert found.passed, [c for c in found.checks if not c.passed]
        assert disassociation_share(out) == set()


def chunk_rows(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(out / "share/data/chunks.parquet").to_dicts()


@given(releases())
@settings(max_examples=25)
def test_chunks_hold_every_occurrence_and_every_item_code(drawn: tuple[Records, Disassociation]) -> None:
    """Occurrences in record and shared chunks are never more than the source's; all codes appear somewhere."""
    records, method = drawn
    with tempfile.TemporaryDirectory() as folder:
        rows = chunk_rows(released(records, method, Path(folder)))
    source = Counter(c for r in records for c in r)
    shown = Counter(c for row in rows if row["kind"] != "item" for c in row["codes"])
    listed = {c for row in rows for c in row["codes"]}
    assert listed == set(source)
    assert all(shown[c] <= source[c] for c in source)


@given(releases())
@settings(max_examples=40)
def test_reconstructions_have_no_empty_slot_no_repeat_and_the_published_subrecords(
    drawn: tuple[Records, Disassociation],
) -> None:
    records, method = drawn
    method = replace(method, reconstructions=1)
    with tempfile.TemporaryDirectory() as folder:
        out = released(records, method, Path(folder))
        rows = chunk_rows(out)
        data = pl.read_parquet(out / "share/data/reconstructions/01.parquet")
    assert data["record"].to_list() == list(range(len(records)))
    rebuilt = data["codes"].to_list()
    assert all(rebuilt)
    assert all(len(set(r)) == len(r) for r in rebuilt)
    shown = Counter(c for row in rows if row["kind"] != "item" for c in row["codes"])
    made = Counter(c for r in rebuilt for c in r)
    items = Counter(c for row in rows if row["kind"] == "item" for c in row["codes"])
    assert set(made) == set(shown) | set(items)
    for code in made:
        assert made[code] >= shown[code] + items[code]
        if not items[code]:
            assert made[code] == shown[code]


def test_same_seed_same_bytes_other_seed_other_order(tmp_path: Path) -> None:
    records = running_example() * 6
    method = Disassociation(k=3, m=2, policy="hierarchy:1", reconstructions=1)
    folders = {name: released(records, method, tmp_path / name, seed) for name, seed in NAMES.items()}
    files = sorted(p.relative_to(folders["a"]) for p in folders["a"].rglob("*") if p.is_file())
    assert [(folders["a"] / f).read_bytes() for f in files] == [
        (folders["b"] / f).read_bytes() for f in files
    ]
    assert chunk_rows(folders["a"]) != chunk_rows(folders["c"])


NAMES: dict[str, int | None] = {"a": 7, "b": 7, "c": 8}


def test_row_order_of_the_source_has_no_influence(tmp_path: Path) -> None:
    records = running_example() * 6
    cohort = cohort_of(records, "icd9")
    assert cohort.events is not None
    shuffled = cohort.events.sample(fraction=1, shuffle=True, seed=3)
    method = Disassociation(k=3, m=2)
    for name, events in (("a", cohort.events), ("b", shuffled)):
        made = method.protect(type(cohort)(events=events), randomness=Randomness.of(5))
        write(made, tmp_path / name)
    assert chunk_rows(tmp_path / "a") == chunk_rows(tmp_path / "b")


def test_sensitive_codes_are_only_ever_in_item_chunks(tmp_path: Path) -> None:
    records = running_example() * 5
    rows = chunk_rows(released(records, Disassociation(k=3, m=2, sensitive=("296.00",)), tmp_path))
    kinds = {row["kind"] for row in rows if "296.00" in row["codes"]}
    assert kinds == {"item"}


def test_diversity_bounds_the_share_of_a_sensitive_code(tmp_path: Path) -> None:
    """Half of the patients of a group hold the sensitive code; l = 4 lets at most one in four of a cluster."""
    records: Records = [("250.00", "V10.1")] * 6 + [("250.00",)] * 6 + [("401.0", "401.1")] * 60
    method = Disassociation(k=3, m=2, sensitive=("V10.1",), diversity=4, partitioning="paper")
    made = method.protect(cohort_of(records, "icd9"), randomness=Randomness.of(1))
    assert made.custody["clusters_merged_for_diversity"] > 0
    assert made.custody["suppressed_occurrences"] == 0
    write(made, tmp_path / "out")
    nodes = pl.read_parquet(tmp_path / "out/share/data/nodes.parquet")
    holding = [row["node"] for row in chunk_rows(tmp_path / "out") if "V10.1" in row["codes"]]
    size = nodes.filter(pl.col("node").is_in(holding))["records"].sum()
    assert size >= 4 * 6


def test_diversity_suppresses_what_merging_cannot_heal() -> None:
    records: Records = [("250.00", "V10.1")] * 12 + [("250.00",)] * 12
    made = Disassociation(k=3, m=2, sensitive=("V10.1",), diversity=4).protect(cohort_of(records, "icd9"))
    assert made.custody["suppressed_occurrences"] == 6


def test_diversity_that_would_empty_patients_is_refused() -> None:
    records: Records = [("V10.1",)] * 12 + [("250.00",)] * 2
    method = Disassociation(k=3, m=2, sensitive=("V10.1",), diversity=4)
    with pytest.raises(GuaranteeUnreachable, match="without any code"):
        method.protect(cohort_of(records, "icd9"))


def test_repeated_codes_become_instances_in_data_and_constraints(tmp_path: Path) -> None:
    events = pl.DataFrame(
        {
            "patient": [p for p in range(6) for _ in range(3)],
            "code": pl.Series(["250.01", "250.01", "401.0"] * 6, dtype=pl.Enum(["250.01", "401.0"])),
        }
    )
    cohort = type(cohort_of([("401.0",)]))(events=events, vocabulary="icd9")
    made = Disassociation(k=3, m=2, repeats=True, policy="hierarchy:1").protect(
        cohort, randomness=Randomness.of(1)
    )
    write(made, tmp_path / "out")
    assert {c for row in chunk_rows(tmp_path / "out") for c in row["codes"]} == {
        "250.01#1",
        "250.01#2",
        "401.0#1",
    }
    policy = pl.read_parquet(tmp_path / "out/custody/data/policy.parquet")
    same = policy.filter(pl.col("code").str.starts_with("250.01"))["constraint"].unique()
    assert len(same) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 1}, "`k` must be a whole number of at least 2; got 1."),
        ({"m": 0}, "`m` must be a whole number of at least 1; got 0."),
        ({"k": 2.5}, "`k` must be a whole number of at least 2; got a decimal number."),
        ({"max_cluster": 3}, "`max_cluster` must be a whole number of at least 6; got 3."),
        (
            {"partitioning": "best"},
            "`partitioning` must be `auto`, `fitted`, `recut` or `paper`; got `best`.",
        ),
        ({"diversity": 3}, "`diversity` needs the codes in `sensitive`."),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Disassociation(**parameters)
    assert str(caught.value) == message


def test_fewer_patients_than_k() -> None:
    with pytest.raises(GuaranteeUnreachable, match="10 patients with a code, fewer than 11 "):
        Disassociation(k=10, m=2).protect(cohort_of(running_example()))


def test_a_sensitive_code_that_the_data_lack() -> None:
    with pytest.raises(BadInput, match="`sensitive`: entry 1 is not a code of cohort"):
        Disassociation(k=3, m=2, sensitive=("999.9",)).protect(cohort_of(running_example()))


def test_the_longest_record_as_m_protects_against_full_knowledge(tmp_path: Path) -> None:
    """m = 7, the longest record: every subrecord of a chunk then occurs k times as a code set."""
    rows = chunk_rows(released(running_example() * 4, Disassociation(k=3, m=7), tmp_path))
    chunks: dict[tuple[int, int], list[frozenset[str]]] = {}
    for row in rows:
        if row["kind"] != "item":
            chunks.setdefault((row["node"], row["chunk"]), []).append(frozenset(row["codes"]))
    for subrecords in chunks.values():
        assert all(sum(1 for q in subrecords if r <= q) >= 3 for r in subrecords if r)


def test_node_and_subrecord_numbers_say_nothing_of_the_source_order(tmp_path: Path) -> None:
    """Patients 0…n-1 hold code 0 then code 1 …: released in the same order they would be sorted by it."""
    records: Records = [(CODES[i // 30],) for i in range(300)]
    out = released(records, Disassociation(k=5, m=2), tmp_path)
    first = [row["codes"][0] for row in chunk_rows(out) if row["codes"] and row["subrecord"] == 0]
    assert first != sorted(first)
    assert len(np.unique(first)) == 10


def test_m_above_the_longest_record_is_the_longest_record(tmp_path: Path) -> None:
    records = [("250.00", "401.9"), ("250.00",)] * 4
    done = Disassociation(k=3, m=1000).protect(cohort_of(records), randomness=Randomness.of(1))
    (notice,) = done.notices
    assert notice.startswith("m = 1000 is more than the 2 codes of the longest record; the run used m = 2")
    assert verify(write(done, tmp_path / "OUT")).passed
    assert not Disassociation(k=3, m=2).protect(cohort_of(records)).notices


def test_the_paper_s_max_cluster_is_2k() -> None:
    """Footnote 4: maxClusterSize is 2k."""
    method = Disassociation(k=5, partitioning="paper", attacker="operation")
    assert method.cluster_limit == 10
    assert Disassociation(k=5, partitioning="paper", attacker="operation", max_cluster=15).cluster_limit == 15


@pytest.mark.parametrize(("attacker", "most"), [("operation", 3), ("counts", 4)])
def test_no_file_tells_how_many_hold_a_code_of_an_item_chunk(
    tmp_path: Path, attacker: str, most: int
) -> None:
    """k = 4: whether one patient or `most` of a cluster have the code, every file of the release is the same; with one
    more it is counted."""
    made = {}
    for holders in range(1, most + 2):
        records = [("250.00", "401.0", "V10.1")] * holders + [("250.00", "401.0")] * (7 - holders)
        method = Disassociation(k=4, m=2, partitioning="paper", attacker=attacker)
        share = released(records, method, tmp_path / str(holders)) / "share"
        made[holders] = {f.relative_to(share): f.read_bytes() for f in share.rglob("*") if f.is_file()}
        kinds = {row["kind"] for row in chunk_rows(share.parent) if "V10.1" in row["codes"]}
        assert kinds == ({"item"} if holders <= most else {"record"})
    assert all(made[holders] == made[1] for holders in range(2, most + 1))
    assert made[most + 1] != made[1]
