"""Risk after release: counted with what each method's attacker knows, and said in the same words everywhere."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.attacks import whole_patient_records
from tests.laws.cases import PATIENTS, Case, cases, classed_cases, cohort_of_events, events, method_of_case

import leeward as lw
from leeward.advise.risk import maximum_in_words, measure_risk, risk_lines
from leeward.analysis.reidentification import draw_known_codes
from leeward.cli.main import status_of
from leeward.cohort.cohort import Cohort
from leeward.report.summary import result_html
from leeward.runs.protect import method_of


def protected(name: str, case: Case, out: Path) -> lw.Result:
    parameters = {"name": method_of_case(name), **case.parameters}
    return lw.protect(case.cohort, method_of(parameters), out, seed=1, population=case.population)


def measured(result: lw.Result, cohort: Cohort, population: Cohort | None = None) -> dict[str, Any]:
    found = measure_risk(result.release, cohort, population, (0.01, 0.5))
    assert found is not None
    return found


@pytest.mark.parametrize("name", classed_cases())
def test_the_attacker_who_is_measured_knows_the_demographics(name: str, tmp_path: Path) -> None:
    case = classed_cases()[name]
    result = protected(name, case, tmp_path / "out")
    found = measured(result, case.cohort, case.population)
    assert found["knows"].startswith("the exact age and sex and ")
    assert (
        found["promised"] is not None and 0 < found["mean"] <= found["maximum"] <= found["promised"] + 1e-12
    )
    assert result.measures["reidentification"]["knows"] == found["knows"]


def test_candidates_of_generalized_codes_are_those_of_the_classes_that_fit(tmp_path: Path) -> None:
    case = classed_cases()["constraints with demographics"]
    result = protected("constraints with demographics", case, tmp_path / "out")
    files = whole_patient_records.read(result.release.share)
    sets = case.cohort.code_sets()
    assert case.cohort.patients is not None
    exact = {
        row["patient"]: {
            name: "(missing)" if row[name] is None else str(row[name]) for name in ("age", "sex")
        }
        for row in case.cohort.patients.rows(named=True)
    }
    chosen, drawn = draw_known_codes(sets, 2, "known codes")
    plain = [
        files.candidates((exact[sets.patients[r]], frozenset(sets.codes[c] for c in codes)))
        for r, codes in zip(chosen.tolist(), drawn, strict=True)
    ]
    found = measured(result, case.cohort)
    assert found["mean"] == pytest.approx(np.mean(1 / np.array(plain))) and found["maximum"] == 1 / min(plain)


def test_trajectories_that_look_alike_have_the_same_demographics(tmp_path: Path) -> None:
    name = "trajectories with demographics"
    case = classed_cases()[name]
    result = protected(name, case, tmp_path / "out")
    data = result.release.share / "data"
    shown: dict[int, list[tuple[str, str]]] = {}
    for row in pl.read_parquet(data / "trajectories.parquet").sort("record", "position").rows(named=True):
        shown.setdefault(row["record"], []).append((row["code"], row["age"]))
    rows = pl.read_parquet(data / "records.parquet").rows(named=True)
    alike = Counter((row["age"], row["sex"], *shown.get(row["record"], ())) for row in rows)
    plain = [n for n in alike.values() for _ in range(n)]
    found = measured(result, case.cohort)
    assert (found["patients"], found["maximum"]) == (len(rows), 1 / min(plain))
    assert found["mean"] == pytest.approx(np.mean(1 / np.array(plain)))


@pytest.mark.parametrize("level", ["visit", "containment"])
def test_whoever_knows_a_visit_is_looked_for_by_it(level: str, tmp_path: Path) -> None:
    cohort = cohort_of_events()
    method = lw.Visits(k=3, level=level, merge_visits=level == "containment")  # type: ignore[arg-type]
    result = lw.protect(cohort, method, tmp_path / "out", seed=1)
    rows = pl.read_parquet(result.release.share / "data" / "visits.parquet").rows(named=True)
    held: dict[int, set[str]] = {}
    for row in rows:
        held.setdefault(row["record"], set()).update(row["codes"])
    plain = [
        len({each["record"] for each in rows if set(each["codes"]) == set(row["codes"])})
        if level == "visit"
        else sum(set(row["codes"]) <= codes for codes in held.values())
        for row in rows
    ]
    found = measured(result, cohort)
    assert found["maximum"] == 1 / min(plain) and found["mean"] == pytest.approx(np.mean(1 / np.array(plain)))
    assert "every code of one visit" in found["knows"]


@pytest.mark.parametrize(
    ("views", "more", "sizes"),
    [(("patients+events",), 2, (2,)), (("patients+events+events",), 3, (3,))],
)
def test_linked_tables_say_what_one_code_more_tells(
    views: tuple[str, ...], more: int, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    cohort = cohort_of_events()
    result = lw.protect(cohort, lw.Linked(k=3, views=views), tmp_path / "out", seed=1)
    held: dict[int, set[str]] = {}
    for row in pl.read_parquet(result.release.share / "data" / "events.parquet").rows(named=True):
        held.setdefault(row["record"], set()).add(row["code"])
    owners: dict[tuple[str, ...], set[int]] = {}
    for record, codes in held.items():
        for known in combinations(sorted(codes), more):
            owners.setdefault(known, set()).add(record)
    few = [who for who in owners.values() if len(who) < 3]
    alone = {record for who in owners.values() if len(who) == 1 for record in who}
    further = measured(result, cohort)["further"]
    assert few
    assert (further["sets"], further["below_k"]) == (len(owners), len(few))
    assert further["patients"] == len(set().union(*few)) and further["alone"] == len(alone)
    kind = {2: "pairs", 3: "triples"}[more]
    beyond = (
        f"if they know {more} codes, {len(few):,} of {len(owners):,} {kind} of codes (which {further['patients']} of "
        f"{PATIENTS} patients have; {len(alone)} are alone with theirs) leave fewer than 3 candidates"
    )
    assert beyond in maximum_in_words(result.release, result.measures["reidentification"])
    assert beyond in " ".join(result.summary.risk)
    remedy = "The view `patients+events+events` also covers attackers who know two codes."
    assert (remedy in result.summary.risk) == (more == 2)


def test_linked_tables_with_days_alone_protect_no_code(tmp_path: Path) -> None:
    dated = events().with_columns(date=pl.date(2020, 1, 1) + pl.duration(days=pl.col("age")))
    cohort = lw.read(dated, columns={"patient": "patient", "code": "code", "date": "date"}, vocabulary="icd9")
    result = lw.protect(cohort, lw.Linked(k=3, views=("patients+visits",), days=30), tmp_path / "out", seed=1)
    words = maximum_in_words(result.release, result.measures["reidentification"])
    assert words.startswith("0.333 (1 in 3) if they know the day of one visit of a patient; ")
    assert "; if they know 1 code, " in words and words.endswith("leave fewer than 3 candidates")


def disassociated(out: Path, **parameters: Any) -> lw.Result:
    cohort = classed_cases()["disassociation with demographics"].cohort
    return lw.protect(
        cohort, lw.Disassociation(**{"k": 3, "m": 2, "attacker": "operation", **parameters}), out, seed=1
    )


def test_both_attackers_of_a_disassociation_are_said(tmp_path: Path) -> None:
    result = disassociated(tmp_path / "out", demographics=("age", "sex"), keep={"age": 20, "sex": "exact"})
    found = result.measures["reidentification"]["further"]
    words = maximum_in_words(result.release, result.measures["reidentification"])
    assert words == (
        f"0.333 (1 in 3) if they do not use the algorithm; if they do, {found['below_k']:,} of {found['sets']:,} "
        f"sets of age and sex and one code (which {found['patients']} of {PATIENTS} patients have) and "
        f"{found['tried_below_k']} of the {found['tried']} rarest sets of up to 2 codes leave fewer than 3 candidates"
    )
    assert found["below_k"] > 0 and found["tried_below_k"] > 0
    lines = risk_lines(result.release, result.measures["reidentification"])
    chance = "Chance that an attacker who knows that the patient is in the data picks the right record"
    assert lines[0] == f"{chance}: at most {words}."
    assert lines[1] == "`attacker: algorithm`, without demographics, also covers attackers who do."


def test_with_one_code_known_no_larger_sets_are_said(tmp_path: Path) -> None:
    result = disassociated(tmp_path / "out", m=1)
    words = maximum_in_words(result.release, result.measures["reidentification"])
    assert "codes (which " in words and "rarest" not in words


def test_a_release_that_covers_the_algorithm_has_one_attacker(tmp_path: Path) -> None:
    result = disassociated(tmp_path / "out", attacker="algorithm")
    assert maximum_in_words(result.release, result.measures["reidentification"]) == "0.333 (1 in 3)"
    assert not any("algorithm" in line for line in result.summary.risk)


def test_a_remedy_is_named_where_much_falls_below(tmp_path: Path) -> None:
    result = disassociated(tmp_path / "out")
    found = result.measures["reidentification"]
    for below, named in ((1, True), (0, False)):
        few = {**found, "further": {**found["further"], "sets": 19, "below_k": below}}
        assert any("also covers attackers" in line for line in risk_lines(result.release, few)) == named


@pytest.mark.parametrize(
    ("coarse", "words"),
    [
        (False, " (days); if they know one, a patient's exact time is in the release"),
        (True, "; if they know one, a time mostly names the patient's group"),
    ],
)
def test_the_risk_of_a_condensed_table_leaves_outcome_times_out(
    coarse: bool, words: str, tmp_path: Path
) -> None:
    case = cases()["condensation"]
    method = lw.Condensation(**{**case.parameters, "coarsen_time": coarse})
    result = lw.protect(case.cohort, method, tmp_path / "out", seed=1)
    said = f"0.2 (1 in 5) if they know everything about a patient but the outcome times{words}"
    assert maximum_in_words(result.release, result.measures["reidentification"]) == said
    assert said in result.summary.risk[0]
    made = lw.dossier(result.path, tmp_path / "d", cohort=case.cohort)
    labels = [e["label"] for part in made.content["parts"] for e in part["entries"]]
    maxima = [each for each in labels if "maximum risk" in each.lower() and "measured" not in each]
    assert maxima and all("but the outcome times" in each or "each attacker" in each for each in maxima)


@pytest.fixture
def on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """A disassociation made by the command line, which said its risk, and its risk in words."""
    events().write_csv(tmp_path / "events.csv")
    made = [
        "disassociate",
        tmp_path / "events.csv",
        "--patient",
        "patient",
        "--code",
        "code",
        "--attacker",
        "operation",
        "--k",
        3,
        "--m",
        2,
    ]
    assert status_of([*map(str, made), "-o", str(tmp_path / "out")]) == 0
    release = lw.Release.open(tmp_path / "out")
    found = json.loads((tmp_path / "out/custody/measures.json").read_text())["reidentification"]
    words = maximum_in_words(release, found)
    assert words in " ".join(capsys.readouterr().out.split())
    return tmp_path / "out", words


def test_terminal_page_dossier_and_comparison_say_the_same(
    on_disk: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, words = on_disk
    assert "if they do not use the algorithm; if they do, " in words

    def printed() -> str:
        return " ".join(capsys.readouterr().out.split())

    assert status_of(["show", str(out)]) == 0
    assert words in printed()
    page = (out / "custody" / "report.html").read_text()
    first = page[page.index("<main") :].partition("</section>")[0]
    assert words in first and page.count(words) == 1
    assert status_of(["dossier", str(out), "-o", str(tmp_path / "d")]) == 0
    dossier = json.loads((tmp_path / "d" / "dossier.json").read_text())
    summary = {each["label"]: each.get("value") for each in dossier["parts"][0]["entries"]}
    assert summary["How sure: for each attacker"] == words
    assert summary["How sure: maximum risk for that attacker, if they do not use the algorithm"] == 1 / 3
    capsys.readouterr()
    assert status_of(["compare", str(out), "-o", str(tmp_path / "c")]) == 0
    assert f"{words}." in printed()
    assert words in (tmp_path / "c" / "compare.html").read_text()
    card = result_html(lw.Release.open(out), {"checks": []}, {}, out, lw_summary(out))
    assert words in card


def lw_summary(out: Path) -> Any:
    """The summary of a release on disk."""
    from leeward.runs.reports import summary_of

    return summary_of(lw.Release.open(out), json.loads((out / "custody/measures.json").read_text()))


def test_a_share_alone_says_whom_the_maximum_is_about(
    on_disk: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(on_disk[0] / "share", tmp_path / "alone" / "share")
    capsys.readouterr()
    assert status_of(["show", str(tmp_path / "alone")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "0.333 (1 in 3) if they do not use the algorithm; "
        "if they do, sets with a rare code leave fewer than 3 candidates" in said
    )


def test_the_recipient_s_dossier_has_no_figure_of_the_original(
    on_disk: tuple[Path, str], tmp_path: Path
) -> None:
    made = lw.dossier(on_disk[0], tmp_path / "d", audience="recipient")
    text = json.dumps(made.content)
    assert on_disk[1] not in text and "if they do not use the algorithm" in text and "further" not in text


def test_the_risk_before_is_beside_the_one_after(tmp_path: Path) -> None:
    """Trajectories and tables: how many patients were alone with what the attacker knows."""
    rows = [(n, "401.9", 40 + n % 2) for n in range(20)] + [(20, "250.00", 50), (0, "428.0", 60)]
    frame = pl.DataFrame(rows, schema=["patient", "code", "age"], orient="row")
    lw.protect(lw.read(frame, vocabulary="icd9"), lw.Trajectories(k=4), tmp_path / "out", measures=[])
    found = figures_of(tmp_path / "out")
    assert found["before"] == {"patients": 21, "unique": 2, "below_k": 2, "k": 4}
    assert "2 of 21 patients were unique" in (tmp_path / "out/custody/report.html").read_text()
    table = pl.DataFrame(
        {"patient": range(60), "a": [n // 2 for n in range(58)] + [90, 91], "b": [0, 1] * 30}
    )
    source = lw.read(table, format="table")
    lw.protect(source, lw.KAnonymity(k=5, quasi_identifiers=("a",)), tmp_path / "cut", measures=[])
    assert figures_of(tmp_path / "cut")["before"] == {"patients": 60, "unique": 2, "below_k": 60, "k": 5}
    lw.protect(source, lw.Condensation(k=5), tmp_path / "made", measures=[])
    assert figures_of(tmp_path / "made")["before"] == {"patients": 60, "unique": 60, "below_k": 60, "k": 5}


def figures_of(out: Path) -> dict[str, Any]:
    """The risk that a release's custody has."""
    found: dict[str, Any] = json.loads((out / "custody/measures.json").read_text())["reidentification"]
    return found


def test_who_knows_from_how_many_patients_on_codes_are_counted_is_covered_and_who_knows_all_is_said(
    tmp_path: Path,
) -> None:
    made = disassociated(tmp_path / "out", attacker="counts")
    said = maximum_in_words(made.release, made.measures["reidentification"])
    assert said.startswith("0.333 (1 in 3) if all they know of the algorithm is when codes are counted")
    assert "; if they know the whole algorithm, " in said and said.endswith("leave fewer than 3 candidates")
