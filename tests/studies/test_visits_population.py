"""The study of visits at the paper's size: what it counts in memory is what written and verified releases have."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.studies.pages import faults_of

from leeward.cohort.readers import read
from leeward.methods.visits import Visits
from leeward.runs.extract import extract
from leeward.runs.protect import protect
from leeward.synthetic.visits import SNPS, TRAITS, write_visits

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def studies_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies are scripts: they find each other in their folder."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A phecode map that knows most codes, by their category, and a list of some that it does not know."""
    from leeward.synthetic.codes import code_catalogue
    from leeward.synthetic.visits import CODES

    folder = tmp_path_factory.mktemp("vocab")
    codes = sorted({*code_catalogue(CODES), *(code for trait in TRAITS for code in trait.codes)})
    known = [code for code in codes if code[0] not in "EV"]
    of_trait = {code: f"{900 + place}" for place, trait in enumerate(TRAITS) for code in trait.codes}
    numbers = [of_trait.get(code, code[:3]) for code in known]
    rows = {"ICD9": known, "PheCode": numbers, "Phenotype": [f"p{number}" for number in numbers]}
    pack(pl.DataFrame(rows), folder / "phecode_map_v1_2_icd9.csv.gz")
    others = [code.replace(".", "") for code in codes if code[0] in "EV"]
    pack(pl.DataFrame({"code": others}), folder / "icd9cm_hierarchy.csv.gz")
    return folder


def pack(frame: pl.DataFrame, file: Path) -> None:
    file.write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people") / "people"
    write_visits(folder, 1_500, 1)
    return folder


def read_again(people: Any) -> Any:
    """The same visits as a table with the names of the study, read as any other."""
    table = people.lens.table()
    names = pl.Series(people.lens.codes).gather(table["code"])
    patients = people.lens.patients.gather(table["patient"])
    frame = pl.DataFrame({"patient": patients, "visit": table["visit"], "code": names})
    columns = {"patient": "patient", "visit": "visit", "code": "code"}
    cohort = read(frame.with_columns(pl.col("visit").cast(pl.String)), columns=columns, vocabulary="icd9")
    attributes = people.attributes.with_columns(patient=people.lens.patients).select("patient", *SNPS)
    return cohort, attributes


@pytest.mark.parametrize("setting", ["code, phecode", "visit", "containment"])
def test_what_is_counted_in_memory_is_what_releases_have(
    setting: str, vocabulary: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    import study_visits_population as study

    monkeypatch.setattr(study, "MIN_CASES", 5)
    everyone = study.People.read(source, vocabulary)
    released = study.anonymize(everyone, study.SETTINGS[setting], vocabulary)
    cohort, attributes = read_again(everyone)
    given = dict(study.SETTINGS[setting])
    if given.get("policy"):
        given["policy"] = f"phecode:{study.map_of(vocabulary)}"
    master = protect(cohort, Visits(k=study.K, **given), tmp_path / "master", seed=1, measures=["retention"])
    assert shares_of(study.count_kept(everyone, released)) == figures_of(master.measures)

    chosen = np.arange(0, 1_500, 3)
    members = everyone.take(chosen)
    part = dataclasses.replace(cohort.restrict(members.lens.patients), patients=attributes[chosen])
    options = {"predictors": list(SNPS), "map": str(study.map_of(vocabulary)), "min_cases": 5}
    drawn = extract(
        tmp_path / "master",
        members.lens.patients,
        tmp_path / "drawn",
        payload=attributes,
        original=part,
        membership_is_secret="a test",
        measures=["retention", {"phewas": options}],
        seed=1,
    ).measures
    shown = dataclasses.replace(released, sets=study.take_sets(released.sets, chosen))
    assert shares_of(study.count_kept(members, shown)) == figures_of(drawn)
    mapping = study.phewas.mapping_of(str(study.map_of(vocabulary)))
    before = study.scan(members, study.Released(members.sets(), members.lens.codes), mapping)
    found = study.associations(before, study.scan(members, shown, mapping), mapping)
    assert found["comparison"] == [
        {name: row[name] for name in found["comparison"][0]} for row in drawn["phewas"]["comparison"]
    ]
    tests = {(each["predictor"], each["phecode"]): each["p_anonymized"] for each in drawn["phewas"]["tests"]}
    mine = {(each["predictor"], each["phecode"]): each["p_release"] for each in found["tests"]}
    assert mine.keys() == tests.keys() and len(mine) > 100
    assert [p for p in mine.values() if p] == pytest.approx([tests[key] for key, p in mine.items() if p])
    assert found["effects"] == pytest.approx(drawn["phewas"]["effects"])


def shares_of(kept: dict[str, int]) -> list[int]:
    return [kept[f"{key}{of}"] for key in ("DC", "CC") for of in (" original", "", " single")]


def figures_of(measures: dict[str, Any]) -> list[int]:
    kept = measures["retention"]
    return [kept[key][of] for key in ("dc", "cc") for of in ("original", "released", "ungeneralized")]


def test_the_tables(vocabulary: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_visits_population as study
    import study_visits_tables as tables

    monkeypatch.setattr(study, "MIN_CASES", 3)
    monkeypatch.setattr(
        study, "SETTINGS", {name: study.SETTINGS[name] for name in ("code, phecode", "visit")}
    )
    monkeypatch.setattr(study, "STUDY", 30_000)  # a larger part of a smaller biobank
    monkeypatch.setattr(tables, "PAGE", tmp_path / "visits.md")
    (tmp_path / "people-1500-4.6").symlink_to(source)
    lines = study.cohorts(vocabulary, 1_500, 2, tmp_path)
    assert faults_of("\n".join(lines)) == []
    page = "\n".join(lines)
    assert "Table 2: diagnoses, `code, phecode`" in page and "Type I and II, FDR 5 %" in page
    assert page.count("coronary atherosclerosis") == 1 and " ± " in page
    assert {file.name for file in (tmp_path / "visits").iterdir()} >= {
        "synthetic-code-qq.png",
        "synthetic-visit-change.png",
    }
    everyone = study.People.read(source, vocabulary)
    biobank = everyone.take(np.flatnonzero(everyone.attributes["biobank"].to_numpy()))
    traits = {code for trait in TRAITS for code in trait.codes}
    having = {
        kind: np.mean([has_one(biobank.take(ids).lens, traits) for ids in chosen])
        for kind, chosen in by_kind(study.choose(biobank, 3)).items()
    }
    assert having["enriched"] == pytest.approx(0.5, abs=0.02) and having["by visits"] < 0.45


def by_kind(cohorts: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for kind, chosen in cohorts:
        found.setdefault(kind, []).append(chosen)
    return found


def has_one(lens: Any, codes: set[str]) -> float:
    """The share of patients with one of these codes."""
    places = [place for place, code in enumerate(lens.codes) if code in codes]
    return lens.table().filter(pl.col("code").is_in(places))["patient"].n_unique() / len(lens)


def test_volume_and_rare_codes(vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_visits_population as study

    monkeypatch.setattr(study, "FALLS", (2.0, study.FALL))
    lines = [*study.volume(vocabulary, [200, 300], tmp_path), *study.rare(vocabulary, 300, tmp_path)]
    assert faults_of("\n".join(lines)) == []
    assert sum(line.startswith("| 300 |") for line in lines) == 1
    assert sum("more than 300 |" in line for line in lines) == len(study.VOLUME)


def test_the_size_that_keeps_enough_is_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    import study_visits_population as study

    monkeypatch.setattr(study, "VOLUME", {"code": {}})
    kept = {
        ("code", size): {"DC original": 100, "DC": dc, "CC original": 100, "CC": cc}
        for size, dc, cc in ((10, 99, 80), (30, 99, 95), (100, 100, 98))
    }
    assert next(study.needed(kept, [10, 30, 100])) == {
        "level": "code",
        "95 % of diagnoses": "up to 10",
        "99 % of diagnoses": "up to 10",
        "95 % of codes": "10 to 30",
        "99 % of codes": "more than 100",
    }


def test_errors_of_either_kind() -> None:
    """Five tests of a SNP, two with an effect: the release misses one of them, finds a null and tests one no more."""
    from study_visits_errors import count_errors

    p = {"1": (1e-4, 1e-4), "2": (0.01, 0.06), "3": (0.2, 0.04), "4": (0.029, None), "5": (0.5, 0.5)}
    tests = [
        {"predictor": "s", "phecode": code, "p_original": was, "p_release": now}
        for code, (was, now) in p.items()
    ]
    planted = {("s", "1"), ("s", "2"), ("s", "9")}
    by_rule = {row.pop("rule"): list(row.values()) for row in count_errors(tests, planted)}
    assert by_rule["p05"] == [2, 0, 1, 1, [3, 2], 1, 1, 2, 1]
    assert by_rule["bonferroni"] == [2, 1, 1, 0, [3, 2], 0, 0, 0, 0]
    assert by_rule["fdr"] == [2, 0, 1, 1, [3, 2], 1, 0, 2, 0]


def test_planted_pairs_are_all_phecodes_of_a_trait(vocabulary: Path) -> None:
    from leeward.vocabulary import phecode
    from study_visits_errors import planted_pairs
    from study_visits_population import map_of

    pairs = planted_pairs(TRAITS, phecode.load(map_of(vocabulary)))
    assert {phecode for snp, phecode in pairs if snp == "rs2476601"} >= {"903", "904"}
    assert {snp for snp, phecode in pairs if phecode == "903"} == {"rs2476601", "rs6457620"}


def test_drugs_and_measurements_through_visits(tmp_path: Path) -> None:
    import study_visits as study

    (tmp_path / "omop").mkdir()
    people = "\n".join(f"{n},8532,1950,1,1" for n in range(1, 41))
    (tmp_path / "omop" / "person.csv").write_text(
        f"person_id,gender_concept_id,year_of_birth,month_of_birth,day_of_birth\n{people}\n", encoding="utf-8"
    )
    for table, prefix, date in (
        ("condition_occurrence", "condition", "condition_start_date"),
        ("drug_exposure", "drug", "drug_exposure_start_date"),
        ("measurement", "measurement", "measurement_date"),
    ):
        rows = "\n".join(f"{n},{100 + n % 3},2010-01-0{1 + n % 5},{n}" for n in range(1, 41))
        (tmp_path / "omop" / f"{table}.csv").write_text(
            f"person_id,{prefix}_concept_id,{date},visit_occurrence_id\n{rows}\n", encoding="utf-8"
        )
    lines = study.drugs(tmp_path / "omop", 1, tmp_path)
    assert faults_of("\n".join(lines)) == []
    assert sum(line.startswith("| drugs |") for line in lines) == len(study.LEVELS)
