"""Knowing up to m codes finds k candidates in the product's releases, fewer in deliberately weak ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks.disassociation import attack
from tests.attacks.disassociation import read as read_plainly
from tests.methods.disassociation.shapes import cohort_of

from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import risk
from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.measures.risk import knowledge_of_codes
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.verify import verify


def patients(seed: int = 1) -> list[tuple[str, ...]]:
    """250 patients with a few of 40 codes, most of them rare."""
    draw = np.random.Generator(np.random.Philox(seed))
    return [
        tuple(sorted({f"c{code:02d}" for code in draw.zipf(1.5, draw.integers(1, 7)).clip(max=40)}))
        for _ in range(250)
    ]


def released(records: list[tuple[str, ...]], out: Path, **parameters: object) -> Path:
    method = Disassociation(m=2, **parameters)  # type: ignore[arg-type]  # the tests name real parameters
    return write(method.protect(cohort_of(records), randomness=Randomness.of(7)), out) / "share"


@pytest.mark.parametrize("partitioning", ["fitted", "paper"])
def test_every_known_set_has_k_candidates(partitioning: str, tmp_path: Path) -> None:
    """Also for who knows from how many patients on a code is counted."""
    records = patients()
    share = released(records, tmp_path / "out", k=5, partitioning=partitioning)
    found = attack(share, map(frozenset, records))
    assert found.sets > 200
    assert found.below_k == 0
    assert found.smallest >= 5


def test_the_verifier_counts_the_candidates_of_who_knows_from_how_many_patients_on_a_code_is_counted(
    tmp_path: Path,
) -> None:
    share = released(patients(), tmp_path / "out", k=5)
    codes = {code for record in patients() for code in record}
    plain = [sum(node.candidates(frozenset([code]), 5) for node in read_plainly(share)) for code in codes]
    (found,) = [check for check in verify(share.parent).checks if check.name == "candidates_of_codes"]
    assert (found.figures["codes"], found.figures["smallest"]) == (len(codes), min(plain))


def test_an_attacker_who_knows_the_algorithm_has_fewer_for_rare_codes_as_the_report_says(
    tmp_path: Path,
) -> None:
    records = patients()
    share = released(records, tmp_path / "out", k=5, attacker="operation")
    found = attack(share, map(frozenset, records))
    assert found.below_k_algorithm_known > 0
    release = Release.open(share)
    after = risk(knowledge_of_codes(read(release), cohort_of(records).code_sets()))["after"]
    assert (after["below_k"], after["smallest_candidates"]) == (0, found.smallest)
    assert 0 < after["below_k_algorithm_known"] <= found.below_k_algorithm_known
    assert "no data set with" in " ".join(release.guarantee["not_protected"])


def test_made_for_an_attacker_who_knows_the_algorithm_every_set_that_is_shown_has_k_candidates(
    tmp_path: Path,
) -> None:
    records = patients()
    share = released(records, tmp_path / "out", k=5, attacker="algorithm")
    found = attack(share, map(frozenset, records))
    assert (found.below_k, found.below_k_algorithm_known) == (0, 0)
    assert found.sets - found.not_shown > 60
    assert found.smallest >= 5


def test_a_release_with_a_smaller_k_than_promised_is_found_out(tmp_path: Path) -> None:
    records = patients()
    share = released(records, tmp_path / "out", k=2)
    assert attack(share, map(frozenset, records), k=5).below_k > 50


def test_a_cluster_that_shows_whole_records_is_found_out(tmp_path: Path) -> None:
    """Deliberately weak: one chunk with every code of a cluster, rare sets and all."""
    records = patients()
    share = released(records, tmp_path / "out", k=5)
    chunks = pl.read_parquet(share / "data" / "chunks.parquet")
    first = chunks.filter(pl.col("kind") == "record")["node"][0]
    size = pl.read_parquet(share / "data" / "nodes.parquet").filter(pl.col("node") == first)["records"][0]
    whole = pl.DataFrame(
        {
            "node": [first] * size,
            "chunk": [0] * size,
            "kind": ["record"] * size,
            "subrecord": range(size),
            "codes": [["c01", f"only{i}"] for i in range(size)],
        }
    ).cast(dict(chunks.schema))
    pl.concat([chunks.filter(pl.col("node") != first), whole]).write_parquet(
        share / "data" / "chunks.parquet"
    )
    assert attack(share, [frozenset({"c01", f"only{i}"}) for i in range(size)]).below_k >= size
