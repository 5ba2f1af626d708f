"""The verifier of censoring is tested by breaking releases, not by agreeing with the method."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.censoring.frames import CAPS, POPULATION, SAMPLE, cohort
from tests.oracles import censoring as oracle

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

K = 2


@pytest.fixture
def source() -> Source:
    sample = cohort(SAMPLE, "sample")
    patients = pl.DataFrame({"patient": [1, 2, 3], "dna": ["CT", "AC", "GC"]})
    everyone = cohort(POPULATION, "population").events
    return Source(sample.require_events(), patients, everyone)


@pytest.fixture
def release(tmp_path: Path, source: Source) -> Path:
    sample = cohort(SAMPLE, "sample")
    sample = type(sample)(events=sample.events, patients=source.patients, name="sample")
    method = Censoring(k=K, scope="global", caps=CAPS, payload=("dna",))
    anonymized = method.protect(sample, randomness=Randomness.of(1), population=cohort(POPULATION))
    return write(anonymized, tmp_path / "out")


def rewrite(release: Path, change) -> None:
    """Change the released rows and give the manifest the new digest, as a careful forger would."""
    path = release / "share" / "data" / "records.parquet"
    write_parquet(change(pl.read_parquet(path)), path)
    restate(release)


def failures(release: Path, source: Source) -> set[str]:
    """The failed checks of the method's own."""
    return by_method(verify(release, source))


def with_codes(old: list[str], new: list[str]):
    """Replace one released record."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        lists = frame["codes"].to_list()
        assert old in lists
        return frame.with_columns(codes=pl.Series([new if codes == old else codes for codes in lists]))

    return change


def test_a_sound_release_passes(release: Path, source: Source) -> None:
    outcome = verify(release, source)
    assert outcome.passed
    names = [check.name for check in outcome.checks]
    for name in ("k_map", "caps", "parts_of_originals", "one_original_each", "payload"):
        assert name in names


def test_a_repeat_put_back_breaks_the_k_map(release: Path, source: Source) -> None:
    rewrite(release, with_codes(["272", "724"], ["272", "272", "724"]))
    outcome = verify(release, source)
    assert failures(release, source) == {"k_map"}
    assert outcome["k_map"].figures["smallest"] == oracle.dis(["272", "272", "724"], POPULATION) == 1


def test_a_code_above_its_cap_is_caught(release: Path, source: Source) -> None:
    rewrite(release, with_codes(["250", "272"], ["250", "250", "250", "272"]))
    assert {"k_map", "caps", "parts_of_originals"} <= failures(release, source)


def test_a_code_without_a_cap_is_caught(release: Path, source: Source) -> None:
    rewrite(release, with_codes(["250"], ["401"]))
    assert {"caps", "parts_of_originals"} <= failures(release, source)


def test_an_original_used_twice_is_caught(release: Path, source: Source) -> None:
    """{250} and {250, 272} twice: each is part of an original, but only one original has 250 and 272."""
    rewrite(release, with_codes(["272", "724"], ["250", "272"]))
    assert failures(release, source) == {"one_original_each", "censored_alike", "own_patients"}


def test_a_code_taken_out_of_one_record_is_caught(release: Path, source: Source) -> None:
    rewrite(release, with_codes(["272", "724"], ["724"]))
    assert failures(release, source) == {"censored_alike"}
    assert not verify(release, source)["mentions_shown"].passed


def test_a_mention_that_was_not_read_is_caught(release: Path, source: Source) -> None:
    rows = source.events.filter(pl.col("code").cast(pl.String) == "250")
    more = Source(pl.concat([source.events, rows.head(1)]), source.patients, source.population_events)
    assert "mentions_read" in failures(release, more)


def test_a_record_left_out_is_caught(release: Path, source: Source) -> None:
    rewrite(release, lambda frame: frame.head(2))
    assert {"records_numbered", "every_patient_once", "payload"} <= failures(release, source)


def test_a_record_number_twice_is_caught(release: Path, source: Source) -> None:
    rewrite(release, lambda frame: frame.with_columns(record=pl.Series([0, 0, 1])))
    assert failures(release, source) == {"records_numbered", "own_patients"}


def test_one_patient_in_two_records_is_caught(release: Path, source: Source) -> None:
    """Both rows are parts of the record of the patient whom custody names for that number."""
    rewrite(release, lambda frame: pl.concat([frame.head(1), frame.head(1), frame.tail(1)]))
    assert {"records_numbered", "own_patients"} <= failures(release, source)


def test_swapped_payload_values_are_caught(release: Path, source: Source) -> None:
    rewrite(release, lambda frame: frame.with_columns(dna=pl.lit("CT")))
    assert failures(release, source) == {"payload", "own_patients"}


def test_an_extra_column_is_caught(release: Path, source: Source) -> None:
    rewrite(release, lambda frame: frame.with_columns(patient=pl.Series([1, 2, 3])))
    assert failures(release, source) == {"layout"}


def test_codes_stored_as_another_type_are_caught(release: Path, source: Source) -> None:
    path = release / "share" / "data" / "records.parquet"
    table = pq.read_table(path)
    packed = table["codes"].cast(pa.list_(pa.dictionary(pa.int32(), pa.string())))
    pq.write_table(table.set_column(1, "codes", packed), path)
    restate(release)
    assert failures(release, source) == {"layout"}


def test_a_payload_that_is_called_place(tmp_path: Path, source: Source) -> None:
    assert source.patients is not None
    patients = source.patients.rename({"dna": "place"})
    sample = Cohort(events=source.events, patients=patients, name="sample")
    method = Censoring(k=K, scope="global", caps=CAPS, payload=("place",))
    anonymized = method.protect(sample, randomness=Randomness.of(1), population=cohort(POPULATION))
    out = write(anonymized, tmp_path / "out")
    assert verify(out, Source(source.events, patients, source.population_events)).passed


def test_unsorted_codes_are_caught(release: Path, source: Source) -> None:
    rewrite(release, with_codes(["272", "724"], ["724", "272"]))
    assert failures(release, source) == {"codes_sorted"}


def test_a_smaller_population_breaks_the_k_map(release: Path, source: Source) -> None:
    assert source.population_events is not None
    fewer = source.population_events.filter(pl.col("patient") != 7)
    assert failures(release, Source(source.events, source.patients, fewer)) == {"k_map"}


def test_without_a_population_nothing_can_be_said(release: Path, source: Source) -> None:
    with pytest.raises(BadInput, match="--population"):
        verify(release)
    with pytest.raises(BadInput, match="--population"):
        verify(release, Source(source.events))


def test_visits_are_counted_once_by_the_verifier_too() -> None:
    from leeward.verify.censoring.holders import Postings
    from leeward.verify.flat import Numbered

    events = pl.DataFrame({"patient": [1, 1, 1, 2], "code": ["a"] * 4, "visit": ["x", "x", None, "y"]})
    people = Postings.of(Numbered(events))
    assert [len(people.owners((("a", count),))) for count in (1, 2, 3)] == [2, 1, 0]


def test_equal_records_and_originals_are_matched_by_number() -> None:
    """Three originals {a}, one {a, b}: three times {a} and once {a, b} fit, twice {a, b} does not."""
    from collections import Counter

    from leeward.verify.censoring.check import _match, records_of_people
    from leeward.verify.censoring.holders import Postings
    from leeward.verify.flat import Numbered

    codes = ["a", "a", "a", "a", "b"]
    events = Numbered(pl.DataFrame({"patient": [1, 2, 3, 4, 4], "code": codes}))
    people, sample = Postings.of(events), records_of_people(events)
    one, both = (("a", 1),), (("a", 1), ("b", 1))
    owners = {record: people.owners(record) for record in (one, both, ())}
    assert [len(owners[record]) for record in (one, both, ())] == [4, 1, 4]
    assert _match(Counter({one: 3, both: 1}), owners, sample) == 4
    assert _match(Counter({one: 2, both: 2}), owners, sample) == 3
    assert _match(Counter({(): 4}), owners, sample) == 4
