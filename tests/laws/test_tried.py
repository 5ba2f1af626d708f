"""The attacks that a report shows: none succeeds where the guarantee excludes it, and on a release that promises more
than it keeps they do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.laws.cases import PATIENTS, Case, cases, classed_cases, method_of_case

import leeward as lw
from leeward.methods import METHODS
from leeward.release import Release
from leeward.runs.measure import TRIED, measure

CASES = cases() | classed_cases()
ATTACKED = [name for name in CASES if hasattr(METHODS[method_of_case(name)].reidentification(), "attack")]


def made(name: str, out: Path, **more: object) -> Path:
    case = CASES[name]
    method = METHODS[method_of_case(name)].parameters_class()(**{**case.parameters, **more})
    lw.protect(case.cohort, method, out, population=case.population, seed=1, measures=[TRIED])
    return out


def tried(out: Path, case: Case) -> list[dict[str, object]]:
    found = measure(Release.open(out), case.cohort, [TRIED], case.population)[TRIED]
    assert isinstance(found, list) and found
    return found


def test_these_methods_have_an_attack_of_their_own_or_one_among_their_measures() -> None:
    measured = {"condensation": "exact_times", "disassociation": "risk"}
    assert {method_of_case(name) for name in ATTACKED} | set(measured) == set(METHODS)
    for name, figures in measured.items():
        module = METHODS[name].measures_module()
        assert module is not None and any(figures in each for each in module.DEFAULTS)


@pytest.mark.parametrize("name", ATTACKED)
def test_no_attack_succeeds_but_on_a_release_that_promises_more_than_it_keeps(
    name: str, tmp_path: Path
) -> None:
    out = made(name, tmp_path / "out")
    for each in tried(out, CASES[name]):
        assert each["attacked"] and (not each["succeeded"] or not each["covered"])
    manifest = out / "share" / "release.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["guarantee"]["k"] = PATIENTS + 1
    manifest.write_text(json.dumps(content), encoding="utf-8")
    assert any(each["succeeded"] for each in tried(out, CASES[name]))


def test_the_report_names_the_remedy_where_a_level_of_visits_is_open(tmp_path: Path) -> None:
    report = (made("visits", tmp_path / "open") / "custody" / "report.html").read_text(encoding="utf-8")
    assert "Attacks that were tried" in report
    (figures,) = tried(tmp_path / "open", CASES["visits"])
    assert figures["covered"] is False and "merge-visits" in str(figures["remedy"])
    for number, closed in enumerate(({"level": "containment", "merge_visits": True}, {"merge_visits": True})):
        (figures,) = tried(made("visits", tmp_path / f"closed{number}", **closed), CASES["visits"])
        assert (figures["covered"], figures["succeeded"]) == (True, 0)
