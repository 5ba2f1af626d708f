"""`leeward index` and `leeward itemsets`: from files to counts and a catalogue; refusals leave nothing behind."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.conftest import Run
from tests.forging import restate, write_parquet
from tests.oracles import counts as oracle

import leeward as lw
from leeward.cohort import Cohort
from leeward.queries.index.counts import Index
from leeward.queries.language.query import parse
from leeward.runs.vocabularies import vocabulary_of


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    rows = [
        {**row, "patient": f"canary{row['note']}", "note": f"canary-note{row['note']}"}
        for row in oracle.FIVE_NOTES
    ]
    path = tmp_path / "notes.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


@pytest.fixture
def symptoms(tmp_path: Path) -> Path:
    terms = sorted({term for row in oracle.FIVE_NOTES for term in row["terms"]})
    path = tmp_path / "symptoms.txt"
    path.write_text("# symptoms\n" + "\n".join(terms) + "\ncough;tussis\n", encoding="utf-8")
    return path


def counted(folder: Path, terms: str, **conditions: str) -> int:
    return Index(folder).count(parse(terms, conditions))


def test_the_five_notes_from_the_command_line(
    leeward: Run, notes: Path, symptoms: Path, tmp_path: Path
) -> None:
    out = tmp_path / "index"
    done = leeward("index", notes, "--terms", symptoms, "--epsilon-total", "5", "-o", out, "--json")
    assert done.status == 0, done.err
    told = done.json()
    assert (told["rows"], told["patients"], told["row"], told["vocabulary_public"]) == (5, 5, "note", True)
    assert counted(out, "sore throat & fever", when="2009-04..2009-06", zip="1230*") == 5
    assert counted(out, "tussis") == 0
    answer = leeward("query", out, "sore throat & fever", "--zip", "1230*", "--epsilon", "0.5", "--json")
    assert answer.status == 0, answer.err
    assert {"answer", "epsilon", "interval", "unit", "remaining"} <= set(answer.json())
    assert answer.json()["remaining"] == 4.5
    everything = done.out + done.err + answer.out + answer.err
    assert "canary" not in everything
    assert b"canary" not in b"".join(path.read_bytes() for path in out.iterdir())


def test_the_lexicon_is_recognised(leeward: Run, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    done = leeward("index", notes, "--epsilon-total", "5", "-o", out)
    assert done.status == 0, done.err
    assert "Leeward's health terms" in done.out
    assert counted(out, "sore throat & pyrexia") == 5


def test_a_cohort_with_icd_codes(leeward: Run, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    done = leeward(
        "index", events, "--patient", "pid", "--code", "icd", "--vocabulary", "icd9", "--epsilon-total", "2",
        "-o", out, "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.json()["vocabulary"] == "icd9" and done.json()["row"] == "patient"
    assert counted(out, "401") == counted(out, "4019") == counted(out, "401.9 & 250") == 60
    assert counted(out, "401.1") == 0, "a code of the classification that nobody has is answered"
    assert counted(out, "390-459") == 60, "a section or chapter counts all below it"
    unknown = leeward("query", out, "999.9 & nonsense", "--epsilon", "0.1")
    assert unknown.status == 2 and "has no term 'nonsense'" in unknown.err
    assert b"canary" not in b"".join(path.read_bytes() for path in out.iterdir())


def test_a_vocabulary_that_lacks_the_codes_is_refused_and_nothing_is_left(
    leeward: Run, events: Path, tmp_path: Path
) -> None:
    words = (
        "index",
        events,
        "--patient",
        "pid",
        "--code",
        "icd",
        "--vocabulary",
        "none",
        "--epsilon-total",
        "2",
    )
    out = tmp_path / "index"
    wrong = leeward(*words, "--terms", "icd10", "-o", out)
    assert wrong.status == 2 and not out.exists()
    assert "codes are not in the vocabulary icd10; no query could use them." in wrong.err
    assert "--accept-unknown" in wrong.err and "canary" not in wrong.err
    assert leeward(*words, "--terms", "icd10", "--accept-unknown", "-o", out).status == 0


def test_of_a_cohort_only_what_is_named_may_be_asked_for(tmp_path: Path) -> None:
    people = pl.DataFrame({"patient": range(9), "sex": ["F"] * 9, "born": ["1950-01-01"] * 9})
    events = pl.DataFrame({"patient": range(9), "code": ["x"] * 9})
    for name, wanted in (("one", ["sex"]), ("none", [])):
        made = lw.index(
            Cohort(events, people),
            tmp_path / name,
            epsilon_total=1,
            quasi_identifiers=wanted,
            new_budget="test",
        )
        assert [each["name"] for each in made["qids"]] == wanted


def test_attributes_and_domains(leeward: Run, tmp_path: Path) -> None:
    rows = [{"pid": p, "icd": "401.9", "sex": "FM"[p % 2], "day": f"2020-0{p % 3 + 1}-15"} for p in range(30)]
    path = tmp_path / "events.csv"
    pl.DataFrame(rows).write_csv(path)
    out = tmp_path / "index"
    done = leeward(
        "index", path, "--patient", "pid", "--code", "icd", "--date", "day", "--vocabulary", "icd9",
        "--quasi-identifiers", "sex",
        "--domains", "sex=F,M", "--domains", "when=2020-01..2020-12", "--epsilon-total", "2", "-o", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert counted(out, "401.9", sex="F", when="2020-02") == 5
    histogram = leeward("query", out, "401.9", "--by", "sex", "--epsilon", "1", "--json")
    assert histogram.status == 0, histogram.err
    assert set(histogram.json()["answer"]) == {"f", "m"}
    spark = leeward(
        "index", path, "--patient", "pid", "--code", "icd", "--date", "day", "--vocabulary", "icd9",
        "--quasi-identifiers", "sex",
        "--domains", "sex=F,M", "--domains", "when=2020-01..2020-12", "--epsilon-total", "2", "-o", tmp_path / "again",
        "--json",
    )  # fmt: skip
    assert spark.json()["data_set"] == Index(out).meta.id, "the same data are the same data set"


def test_spark_reads_parquet_by_itself(leeward: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to the engine; the engine itself is compared byte by byte in tests/queries/test_engines.py."""
    from leeward import engine

    rows = [
        {"pid": p, "icd": code, "day": date(2020, p % 12 + 1, 5), "sex": "FM"[p % 2]}
        for p in range(40)
        for code in ("4019", "250.00")
    ]
    path = tmp_path / "events.parquet"
    pl.DataFrame(rows).write_parquet(path)
    flags = (
        "--patient", "pid", "--code", "icd", "--date", "day", "--vocabulary", "icd9", "--quasi-identifiers", "sex",
        "--epsilon-total", "2",
    )  # fmt: skip
    assert leeward("index", path, *flags, "-o", tmp_path / "local").status == 0
    asked: list[object] = []
    local = engine.running

    def instead(settings: object, threads: int | None = None) -> Any:
        asked.append(settings)
        return local("local", threads)

    monkeypatch.setattr("leeward.runs.index.running", instead)
    done = leeward("index", path, *flags, "--engine", "spark", "-o", tmp_path / "spark")
    assert done.status == 0, done.err
    assert asked == ["spark"]
    for name in ("bitmaps.bin", "directory.arrow", "patients.bin", "vocabulary.arrow", "index.json"):
        ours, theirs = tmp_path / "local" / name, tmp_path / "spark" / name
        assert ours.is_file() == theirs.is_file()
        assert not ours.is_file() or ours.read_bytes() == theirs.read_bytes()
    wrong = leeward("index", path, *flags, "--visit", "enc", "--engine", "spark", "-o", tmp_path / "wrong")
    assert wrong.status == 2 and "no column 'enc'" in wrong.err


def test_a_child_spends_its_parents_budget(leeward: Run, notes: Path, symptoms: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    common = ("--terms", symptoms, "--epsilon-total", "1", "--ledger", url)
    assert leeward("index", notes, *common, "-o", tmp_path / "parent").status == 0
    child = tmp_path / "child.parquet"
    pl.read_parquet(notes).head(3).write_parquet(child)
    done = leeward("index", child, *common, "--parent", tmp_path / "parent", "-o", tmp_path / "child")
    assert done.status == 0, done.err
    asked = leeward("query", tmp_path / "child", "fever", "--epsilon", "0.75", "--ledger", url, "--json")
    assert asked.status == 0, asked.err
    refused = leeward("query", tmp_path / "parent", "fever", "--epsilon", "0.5", "--ledger", url)
    assert refused.status == 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--epsilon-total", "0"), "must be a number above 0"),
        (("--epsilon-total", "nan"), "must be a number above 0"),
        (("--epsilon-total", "1", "--terms", "nothing"), "no such vocabulary"),
        (("--epsilon-total", "1", "--quasi-identifiers", "weight"), "no column 'weight'"),
        (("--epsilon-total", "1", "--domains", "sex"), "no such file"),
        (("--epsilon-total", "1", "--domains", "weight=1..2"), "not a quasi-identifier"),
        (("--epsilon-total", "1", "--domains", "age=x..y"), "first and last value"),
        (("--epsilon-total", "1", "--row", "visit"), "for cohorts"),
        (("--epsilon-total", "1", "--accounting", "zcdp"), "`delta`"),
        (("--epsilon-total", "1", "--parent", "0123"), "parent"),
        (("--epsilon-total", "1", "--ledger", "nonsense://x"), "database"),
    ],
)
def test_refusals_leave_nothing_behind(
    leeward: Run, notes: Path, tmp_path: Path, flags: tuple[str, ...], message: str
) -> None:
    before = sorted(tmp_path.iterdir())
    done = leeward("index", notes, *flags, "-o", tmp_path / "index")
    assert done.status == 2
    assert message in done.err and "canary" not in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_an_index_is_never_overwritten(leeward: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    done = leeward("index", notes, "--epsilon-total", "1", "-o", tmp_path / "index")
    assert done.status == 2 and "never overwritten" in done.err
    assert list((tmp_path / "index").iterdir()) == []


# -- itemsets ----


@pytest.fixture
def many(leeward: Run, symptoms: Path, tmp_path: Path) -> Path:
    """A table of 300 patients, who all have sore throat and fever, half of them women."""
    rows: list[dict[str, Any]] = [
        {"note": f"n{p}", "patient": f"canary{p}", "sex": "FM"[p % 2], "terms": ["sore throat", "fever"]}
        for p in range(300)
    ]
    path = tmp_path / "many.parquet"
    pl.DataFrame(rows).write_parquet(path)
    out = tmp_path / "many"
    done = leeward(
        "index", path, "--terms", symptoms, "--domains", "sex=F,M", "--epsilon-total", "5",
        "--about-patients", "300", "-o", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    return out


def test_the_catalogue_as_a_verified_release(leeward: Run, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalogue"
    flags = (
        "--epsilon",
        "2",
        "--contributions",
        "3",
        "--quasi-identifiers",
        "sex",
        "--threshold",
        "60",
        "--format",
        "parquet,csv",
    )
    done = leeward("itemsets", many, *flags, "-o", out)
    assert done.status == 0, done.err
    plain = leeward("verify", out)
    assert plain.status == 0
    assert "The ledger was not checked (--index INDEX)" in plain.out
    assert "source" not in plain.out + plain.err, "a catalogue has none"
    manifest = json.loads((out / "share" / "release.json").read_text(encoding="utf-8"))
    assert manifest["method"] == "notes" and manifest["guarantee"]["epsilon"] == 2.0
    assert manifest["guarantee"]["unit"] == "patient" and manifest["parameters"]["contributions"] == 3
    table = pl.read_parquet(out / "share" / "data" / "itemsets.parquet")
    found = {tuple(items): count for items, count in table.iter_rows()}
    assert found[("fever",)] == pytest.approx(300, abs=60)
    assert found[("fever", "sore throat")] > 60
    assert (out / "share" / "data" / "itemsets.csv").is_file()
    assert "canary" not in done.out + done.err
    assert b"canary" not in b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    page = (out / "custody" / "report.html").read_text(encoding="utf-8")
    assert "itemsets listed" in page
    again = leeward("itemsets", many, *flags[:-2], "--json")
    assert again.json()["remaining"] == 3.0, "paid once"
    assert {tuple(e["items"]): e["count"] for e in again.json()["itemsets"]} == found
    assert "is free" in again.err
    compared = leeward("verify", out, "--index", many)
    assert (compared.status, "compared with the ledger's answers" in compared.out) == (0, True), compared.err
    write_parquet(table.with_columns(pl.col("count") - 1), out / "share" / "data" / "itemsets.parquet")
    (out / "share" / "data" / "itemsets.csv").write_text(
        table.with_columns(pl.col("count") - 1, items=pl.col("items").list.join("|")).write_csv(),
        encoding="utf-8",
    )
    restate(out)
    alone, planted = leeward("verify", out), leeward("verify", out, "--index", many)
    assert "published_answer" not in alone.out
    assert (planted.status, "published_answer" in planted.out) == (4, True)
    other = leeward("verify", many, "--index", many)
    assert other.status == 2


def test_a_catalogue_with_numbers(leeward: Run, symptoms: Path, tmp_path: Path) -> None:
    """Ages are declared as a range, and are values in the catalogue."""
    rows = [
        {"patient": f"p{p}", "age": 20 + p % 2, "sex": "mf"[p % 2], "terms": ["fever"]} for p in range(300)
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "ages.parquet")
    made = ("--terms", symptoms, "--domains", "age=9..21", "--domains", "sex=m,f", "--epsilon-total", "5")
    made = (*made, "--about-patients", "300")
    assert leeward("index", tmp_path / "ages.parquet", *made, "-o", tmp_path / "ages").status == 0
    flags = ("--epsilon", "4", "--quasi-identifiers", "sex,age", "--threshold", "40")
    done = leeward("itemsets", tmp_path / "ages", *flags, "-o", tmp_path / "out")
    assert done.status == 0, done.err
    stated = json.loads((tmp_path / "out/share/release.json").read_text(encoding="utf-8"))["parameters"][
        "domains"
    ]
    assert stated == {"age": [str(age) for age in range(9, 22)], "sex": ["f", "m"]}
    assert list(stated) == ["age", "sex"]
    again = leeward("itemsets", tmp_path / "ages", *flags, "-o", tmp_path / "again")
    assert (again.status, "is free" in again.err) == (0, True), again.err


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (("--epsilon", "0"), 2, "above 0"),
        (("--epsilon", "1", "--quasi-identifiers", "zip"), 2, "no quasi-identifier"),
        (("--epsilon", "50"), 3, "budget"),
        (("--epsilon", "1", "--ledger", "sqlite:////nowhere/ledger.db"), 2, "ledger"),
    ],
)
def test_a_catalogue_that_is_refused(
    leeward: Run, many: Path, tmp_path: Path, flags: tuple[str, ...], status: int, message: str
) -> None:
    done = leeward("itemsets", many, *flags, "-o", tmp_path / "out")
    assert (done.status, message in done.err) == (status, True), done.err
    assert not (tmp_path / "out").exists()


def test_a_threshold_out_of_reach_is_said_before_it_is_paid(
    leeward: Run, symptoms: Path, tmp_path: Path
) -> None:
    """Newcomer finding 10: the threshold is public, so the budget need not be spent on an empty catalogue."""
    table = tmp_path / "few.parquet"
    pl.DataFrame([{"patient": f"p{p}", "terms": ["fever"]} for p in range(40)]).write_parquet(table)
    index = tmp_path / "few"
    flags = ("--terms", symptoms, "--about-patients", "40", "--epsilon-total", "5", "-o", index)
    assert leeward("index", table, *flags).status == 0
    refused = leeward("itemsets", index, "--epsilon", "1")
    assert refused.status == 2 and "about 40 patients" in refused.err and "nothing was charged" in refused.err
    dry = leeward("itemsets", index, "--epsilon", "1", "--dry-run", "--json").json()
    assert dry["remaining"] == 5 and dry["cost"] == 1
    assert f"a noisy count of at least {dry['first_threshold']:,} patients" in refused.err
    paid = leeward("itemsets", index, "--epsilon", "1", "--yes", "--json").json()
    assert paid["remaining"] == 4 and paid["levels"][0]["threshold"] == dry["first_threshold"]
    assert leeward("itemsets", index, "--epsilon", "1").status == 0, "paid before: nothing to refuse"
    within = leeward("itemsets", index, "--epsilon", "2", "--max-size", "1", "--contributions", "1", "--json")
    assert within.status == 0 and within.json()["remaining"] == 2, within.err


def test_a_catalogue_of_an_index_that_states_no_size_is_paid_for_with_a_second_word(
    leeward: Run, symptoms: Path, tmp_path: Path
) -> None:
    table = tmp_path / "few.parquet"
    pl.DataFrame([{"patient": f"p{p}", "terms": ["fever"]} for p in range(40)]).write_parquet(table)
    index = tmp_path / "few"
    assert leeward("index", table, "--terms", symptoms, "--epsilon-total", "5", "-o", index).status == 0
    refused = leeward("itemsets", index, "--epsilon", "1")
    assert refused.status == 2 and "--about-patients" in refused.err and "nothing was charged" in refused.err
    assert leeward("itemsets", index, "--epsilon", "1", "--dry-run", "--json").json()["remaining"] == 5
    assert leeward("itemsets", index, "--epsilon", "1", "--yes", "--json").json()["remaining"] == 4


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("Diabetes mellitus", "250"),
        ("essential HYPERTENSION & diabetes mellitus", "401 & 250"),
        ("Cholera", "001"),
    ],
)
def test_codes_are_asked_for_by_the_names_of_their_categories(
    leeward: Run, events: Path, tmp_path: Path, asked: str, code: str
) -> None:
    """Cholera is named though nobody has it: names are the classification's, not the data's."""
    out = tmp_path / "index"
    flags = ("--patient", "pid", "--code", "icd", "--vocabulary", "icd9", "--epsilon-total", "2", "-o", out)
    assert leeward("index", events, *flags).status == 0
    assert counted(out, asked) == counted(out, code)
    misspelt = leeward("query", out, "diabetis mellitus", "--epsilon", "0.1")
    assert misspelt.status == 2 and "'diabetes mellitus'" in misspelt.err


def test_omop_concepts_are_asked_for_by_their_names(leeward: Run, tmp_path: Path) -> None:
    """Names are those of CONCEPT beside the hierarchy, whether or not a patient has the concept."""
    ancestor = "ancestor_concept_id,descendant_concept_id,min_levels_of_separation,max_levels_of_separation\n"
    (tmp_path / "CONCEPT_ANCESTOR.csv").write_text(f"{ancestor}1,2,1,1\n1,3,1,1\n")
    names = "2,Otitis media,SNOMED,a\n3,Sinusitis,SNOMED,b\n1,Infection,SNOMED,c\n"
    (tmp_path / "CONCEPT.csv").write_text(f"concept_id,concept_name,vocabulary_id,concept_code\n{names}")
    pl.DataFrame({"patient": range(9), "code": ["2"] * 9}).write_csv(tmp_path / "events.csv")
    out = tmp_path / "index"
    flags = ("--terms", tmp_path / "CONCEPT_ANCESTOR.csv", "--vocabulary", "none", "--epsilon-total", "2")
    done = leeward("index", tmp_path / "events.csv", *flags, "-o", out)
    assert done.status == 0, done.err
    assert counted(out, "otitis media") == counted(out, "infection") == 9 and counted(out, "Sinusitis") == 0
    by_code = vocabulary_of(f"{tmp_path / 'CONCEPT_ANCESTOR.csv'}#concept_code")  # as `--concepts` names it
    assert (by_code.resolve("otitis media"), by_code.resolve("infection")) == ("a", "c")
    misspelt = leeward("query", out, "otitis medja", "--epsilon", "0.1")
    assert "the vocabulary 'OMOP concepts' has no term 'otitis medja'" in misspelt.err
    assert "Nearest known: 'otitis media'" in misspelt.err


def test_a_catalogue_needs_a_public_vocabulary(leeward: Run, events: Path, tmp_path: Path) -> None:
    codes = tmp_path / "codes.csv"
    codes.write_text("pid,icd\n1,x\n2,y\n", encoding="utf-8")
    done = leeward(
        "index", codes, "--patient", "pid", "--code", "icd", "--epsilon-total", "5", "-o", tmp_path / "i"
    )
    assert done.status == 0 and "without a public vocabulary" in done.out
    refused = leeward("itemsets", tmp_path / "i", "--epsilon", "1")
    assert refused.status == 2 and "no public list of terms" in refused.err
