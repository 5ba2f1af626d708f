"""The list of codes of a release: what it shows, what it calls it, and that rarer codes are not in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forging import changed, restate, write_parquet

import leeward as lw
from leeward.cohort.cohort import CodeName, Cohort
from leeward.verify import Source, codes, verify

K = 3
LIST = "data/codes.parquet"


def cohort_of(names: dict[str, CodeName] | None = None) -> Cohort:
    """Thirty patients; 999.1 is two patients' alone, so no list may have it; 401.9 and 250.00 are frequent."""
    rows = [(p, code) for p in range(30) for code in ("401.9", "250.00", f"{700 + p % 6}.1")]
    rows += [(0, "999.1"), (1, "999.1")]
    frame = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    cohort = lw.read(frame.with_columns(visit=pl.int_range(pl.len()) % 3, age=pl.lit(40)), vocabulary="icd9")
    return Cohort(
        events=cohort.events,
        name="made up",
        vocabulary=cohort.vocabulary,
        names=names or {},
        notices=cohort.notices,
    )


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of visits that suppresses the codes of fewer than three patients."""
    out = tmp_path_factory.mktemp("codes") / "out"
    lw.protect(cohort_of(), lw.Visits(k=K, policy="none"), out)
    return out


def failed(out: Path, source: Cohort | None = None) -> set[str]:
    found = lw.verify(out, source) if source is not None else verify(out)
    names = {"codes_listed", "code_names", "frequent_codes", "names_of_source", "files_of_contract", "words"}
    return {check.name for check in found.failures} & names


def test_shown_codes_and_frequent_suppressed_ones_are_listed_by_name(visits: Path) -> None:
    listed = pl.read_parquet(visits / "share" / LIST)
    rows = {code: (name, vocabulary, gone) for code, name, vocabulary, gone in listed.iter_rows()}
    assert rows["250.00"] == ("Diabetes mellitus (category)", "ICD-9-CM", False)
    assert "999.1" not in rows
    shown = set(
        pl.read_parquet(visits / "share/data/visits.parquet")["codes"]
        .explode(empty_as_null=False)
        .drop_nulls()
    )
    assert {code for code, (_, _, gone) in rows.items() if not gone} == shown
    assert not failed(visits, cohort_of())
    assert "its count is unknown, not 0" in (visits / "share/README.md").read_text().replace("\n", " ")


@pytest.mark.parametrize("name", ["disassociation", "censoring", "trajectories"])
def test_every_method_of_codes_has_the_list(name: str, tmp_path: Path) -> None:
    methods = {
        "disassociation": lw.Disassociation(k=K, m=2),
        "censoring": lw.Censoring(k=K, scope="global", cap=2),
        "trajectories": lw.Trajectories(k=K),
    }
    cohort = cohort_of()
    population = cohort if name == "censoring" else None
    lw.protect(cohort, methods[name], tmp_path / "out", population=population, measures=())
    listed = pl.read_parquet(tmp_path / "out/share" / LIST)
    assert listed.columns == ["code", "name", "vocabulary", "suppressed"]
    assert "Diabetes mellitus (category)" in listed["name"]


def add(
    code: str, suppressed: bool, vocabulary: str = "ICD-9-CM", name: str = ""
) -> Callable[..., pl.DataFrame]:
    row = pl.DataFrame(
        {"code": [code], "name": [name], "vocabulary": [vocabulary], "suppressed": [suppressed]}
    )
    return lambda frame: pl.concat([frame, row]).sort("code")


@pytest.mark.parametrize(
    ("change", "without_source", "with_source"),
    [
        (
            add("999.1", True, name="Complications of medical care, not elsewhere classified"),
            set(),
            "frequent_codes",
        ),
        (add("998.1", False, vocabulary=""), {"codes_listed"}, "codes_listed"),
        (lambda frame: frame.filter(pl.col("code") != "250.00"), {"codes_listed"}, "frequent_codes"),
        (lambda frame: frame.with_columns(name=pl.lit("Smith")), {"code_names"}, "code_names"),
        (lambda frame: frame.reverse(), {"codes_listed"}, "codes_listed"),
        (lambda frame: frame.with_columns(suppressed=pl.lit(True)), {"codes_listed"}, "codes_listed"),
        (
            lambda frame: frame.with_columns(vocabulary=pl.lit("x"), name=pl.lit("y")),
            set(),
            "names_of_source",
        ),
    ],
    ids=[
        "rare code",
        "code not shown",
        "code left out",
        "wrong name",
        "order",
        "all suppressed",
        "name of nobody",
    ],
)
def test_a_changed_list_is_refuted(
    visits: Path,
    tmp_path: Path,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    without_source: set[str],
    with_source: str,
) -> None:
    out = changed(visits, tmp_path / "x", f"share/{LIST}", change)
    assert failed(out) == without_source
    assert with_source in failed(out, cohort_of())


def test_names_as_an_earlier_version_wrote_them_are_not_refuted(visits: Path, tmp_path: Path) -> None:
    """Without a word that a name is its category's."""
    bare = pl.col("name").str.strip_suffix(" (category)")
    out = changed(visits, tmp_path / "x", f"share/{LIST}", lambda frame: frame.with_columns(name=bare))
    assert not failed(out, cohort_of())


def test_a_release_without_the_list_is_refuted(visits: Path, tmp_path: Path) -> None:
    import json
    import shutil

    out = tmp_path / "x"
    shutil.copytree(visits, out)
    (out / "share" / LIST).unlink()
    manifest = json.loads((out / "share/release.json").read_text())
    manifest["files"] = [each for each in manifest["files"] if each["path"] != LIST]
    (out / "share/release.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    assert "files_of_contract" in failed(out)


def test_a_name_beside_rows_is_shown_only_where_k_patients_have_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"patient": range(8), "code": ["a", "a", "a", "a", "b", "b", "b", "b"]})
    names = {"a": CodeName("Asthma", "SNOMED CT", 4), "b": CodeName("told by Mrs Smith", "SNOMED CT", 2)}
    read = lw.read(frame)
    cohort = Cohort(events=read.events, name="made up", names=names)
    lw.protect(cohort, lw.Disassociation(k=K, m=1), tmp_path / "out", measures=["placement"])
    listed = dict(pl.read_parquet(tmp_path / "out/share" / LIST).select("code", "name").iter_rows())
    assert listed == {"a": "Asthma", "b": ""}
    assert not failed(tmp_path / "out", cohort)
    file = tmp_path / "out/share" / LIST
    write_parquet(pl.read_parquet(file).with_columns(name=pl.Series(["Asthma", "told by Mrs Smith"])), file)
    restate(tmp_path / "out")
    assert failed(tmp_path / "out", cohort) == {"names_of_source"}


def test_the_list_of_a_censored_sample_says_nothing_that_its_records_do_not(tmp_path: Path) -> None:
    """Neither a suppressed code of k of the sample, nor a name that k of the sample's rows have."""
    people = pl.DataFrame({"patient": [0, 0, 1, 1, 2, 2, 3, 4, 5], "code": list("abacadfff")})
    names = {"a": CodeName("told by Mrs Smith", "SNOMED CT", 3)}
    population = Cohort(events=lw.read(people).events, name="everybody")
    sample = Cohort(events=lw.read(people.head(6)).events, name="sample", names=names)
    lw.protect(sample, lw.Censoring(k=3), tmp_path / "out", population=population, measures=["tried"])
    file = tmp_path / "out/share" / LIST
    listed = pl.read_parquet(file)
    assert listed.select("code", "name", "suppressed").rows() == [("a", "", False)]
    assert lw.verify(tmp_path / "out", sample, population).passed
    write_parquet(listed.with_columns(name=pl.lit("told by Mrs Smith")), file)
    restate(tmp_path / "out")
    assert failed(tmp_path / "out", sample) == {"names_of_source"}
    write_parquet(pl.concat([listed, listed.with_columns(code=pl.lit("f"), suppressed=pl.lit(True))]), file)
    restate(tmp_path / "out")
    assert "codes_listed" in failed(tmp_path / "out")


def test_a_cohort_has_the_list_of_its_master(visits: Path, tmp_path: Path) -> None:
    chosen = pl.Series("patient", range(10, 25))
    lw.extract(visits, chosen, tmp_path / "c", membership_is_secret="nobody publishes who is in it")
    theirs = pl.read_parquet(visits / "share" / LIST)
    assert pl.read_parquet(tmp_path / "c/share" / LIST).equals(theirs)
    out = changed(tmp_path / "c", tmp_path / "x", f"share/{LIST}", add("998.1", True, vocabulary=""))
    assert failed(out) == {"codes_listed"}


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcd")), max_size=60),
    k=st.integers(1, 6),
    block=st.integers(1, 20),
)
def test_codes_of_many_patients_are_found_block_by_block(
    rows: list[tuple[int, str]], k: int, block: int
) -> None:
    events = pl.DataFrame(rows, schema={"patient": pl.Int64, "code": pl.String}, orient="row")
    people = {code: {patient for patient, held in rows if held == code} for _, code in rows}
    found = codes.codes_of_many(Source(events).blocks(block), k)
    assert found == {code for code, each in people.items() if len(each) >= k}


@pytest.mark.parametrize(("attacker", "name"), [("operation", "Rare"), ("counts", ""), ("rules", "")])
def test_who_knows_what_is_counted_gets_no_name_that_would_tell_of_k_patients(
    attacker: str, name: str, tmp_path: Path
) -> None:
    """Three patients have c, which may then be listed alone: that they are three would follow from its name."""
    frame = pl.DataFrame(
        {"patient": [*range(30), *range(30), 0, 1, 2], "code": ["a"] * 30 + ["b"] * 30 + ["c"] * 3}
    )
    names = {"a": CodeName("Asthma", "SNOMED CT", 30), "c": CodeName("Rare", "SNOMED CT", 3)}
    names["b"] = CodeName("Cough", "SNOMED CT", 30)
    cohort = Cohort(events=lw.read(frame).events, name="made up", names=names)
    method = lw.Disassociation(k=K, m=1, attacker=attacker)  # type: ignore[arg-type]  # a word of its choices
    lw.protect(cohort, method, tmp_path / "out", measures=["placement"])
    listed = dict(pl.read_parquet(tmp_path / "out/share" / LIST).select("code", "name").iter_rows())
    assert listed == {"a": "Asthma", "b": "Cough", "c": name}
    assert not failed(tmp_path / "out", cohort)
    told = pl.when(pl.col("code") == "c").then(pl.lit("Rare")).otherwise("name").alias("name")
    out = changed(tmp_path / "out", tmp_path / "x", f"share/{LIST}", lambda frame: frame.with_columns(told))
    assert failed(out, cohort) == (set() if name else {"names_of_source"})
