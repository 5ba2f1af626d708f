"""Ten golden plans; what follows from a threshold and from knowledge is monotone; specs run; bad plans are refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.cases import cohort_of_events, cohort_of_table, events, table

import leeward as lw
from leeward.advise.plan import LINES, Plan, parse, plan_schema
from leeward.advise.recommendation import Recommendation, of_facts
from leeward.advise.rules import CONDITIONS, rules
from leeward.advise.situation import Facts, Situation
from leeward.advise.specs import commands_of, sensitive_codes
from leeward.advise.utility.verdicts import RANK, verdict_of
from leeward.advise.wording import lines_of, why_lines
from leeward.errors import BadInput
from leeward.fields import build
from leeward.methods import METHODS

GOLDEN: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "golden.yaml").read_text(encoding="utf-8")
)


def advice(golden: dict[str, Any], **changes: Any) -> Recommendation:
    plan: Plan = build(Plan, {**golden["plan"], **changes}, "")
    known = {
        key: tuple(value) if isinstance(value, list) else value for key, value in golden["facts"].items()
    }
    return of_facts(plan, Facts(**known))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_golden_plan(golden: dict[str, Any]) -> None:
    found = advice(golden)
    closed = sorted(each.name for each in found.methods if each.closed is not None)
    assert list(found.best) == golden["best"]
    assert closed == golden["closed"]
    assert found.sharing[0] == golden["sharing"]
    is_open = [each.name for each in found.methods if each.closed is None]
    others = [name for name in is_open if name not in (*found.best, "queries")]
    assert [ready.method for ready in found.ready] == ([*found.best, *others][:2] if found.best else [])


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_every_choice_has_its_reason_and_source(golden: dict[str, Any]) -> None:
    found = advice(golden)
    for each in found.methods:
        assert each.closed is None or all(each.closed)
        assert all(one.reason and one.source for one in each.findings)
        chain = "\n".join(why_lines(found, each.name))
        assert each.closed is not None or all(one.reason in chain for one in each.findings)
    assert all(step.because for step in found.steps) and len(found.questions) >= 4
    text = "\n".join(lines_of(found)).lower()
    for word in ("compliant", "certified", "hipaa-safe", "zero risk", "fully anonymous"):
        assert word not in text


def test_the_rules_name_known_methods_lines_conditions_and_verdicts() -> None:
    names = [each["name"] for each in rules()["methods"]]
    assert set(names) == {*METHODS, "queries"} and len(names) == len(set(names))
    kinds = {*LINES, "regression", "keep", "sensitive", "*"}
    for method in rules()["methods"]:
        entries = [entry for of_line in method["lines"].values() for entry in of_line]
        assert set(method["lines"]) <= kinds and "*" in method["lines"]
        assert all(of_line[-1].get("when") is None for of_line in method["lines"].values()), (
            "the last entry decides"
        )
        for entry in (*entries, *method["closed"]):
            assert set(entry.get("when", ())) <= set(CONDITIONS) and entry["reason"] and entry["source"]
        assert all(entry["verdict"] in RANK for entry in entries)
    used = {
        name
        for m in rules()["methods"]
        for e in (*m["closed"], *(x for xs in m["lines"].values() for x in xs))
        for name in e.get("when", ())
    }
    assert used == set(CONDITIONS)


@given(st.floats(0.005, 0.45), st.floats(0.005, 0.45))
def test_a_lower_threshold_never_lowers_k(one: float, other: float) -> None:
    low, high = sorted((one, other))
    golden = GOLDEN[0]
    k = [advice(golden, threshold={"max": each}).situation.k for each in (low, high)]
    assert k[0] >= k[1] and 1 / k[0] <= low and 1 / k[1] <= high


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3))
def test_more_known_codes_never_lower_m(one: int, other: int, visits: int) -> None:
    def m(codes: int, visits: int) -> int:
        plan = build(
            Plan, {"recipient": {"knows": {"codes": codes, "visits": visits}}, "plan": ["counts"]}, ""
        )
        return Situation(plan, Facts("events", 100, 10, 100, visit_codes=4)).m or 99

    low, high = sorted((one, other))
    assert m(low, visits) <= m(high, visits) <= m(high, visits + 1)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_a_declared_control_changes_no_number_and_no_method(golden: dict[str, Any]) -> None:
    recipient = {**golden["plan"]["recipient"], "controls": ["contract", "audited", "no linkage"]}
    before, after = advice(golden).to_json(), advice(golden, recipient=recipient).to_json()
    for key in ("numbers", "methods", "ready", "sharing", "threshold"):
        assert before[key] == after[key]
    assert after["recipient"]["declared_controls"] == ["contract", "audited", "no linkage"]


def test_the_advice_on_a_cohort_gives_specs_that_run(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    plan = {"threshold": {"max": 0.34}, "plan": [{"counts": {"of": "hierarchy:1", "from": 12}}]}
    found = lw.recommend(cohort, plan)
    assert found.situation.k == 3 and found.situation.facts.groups[0] == 6
    assert len(found.ready) == 2
    for ready in found.ready:
        assert ready.spec is not None
        from leeward.runs.protect import method_of

        result = lw.protect(
            cohort, method_of(ready.spec["method"], ready.spec.get("plan", ())), tmp_path / ready.method
        )
        assert result.verification.passed and result.release.guarantee["risk"]["maximum"] == 1 / 3


def test_the_advice_on_a_table() -> None:
    plan = {
        "threshold": {"max": 0.2},
        "plan": [{"cox": {"time": "days", "event": "died", "covariates": ["age"]}}],
    }
    found = lw.recommend(cohort_of_table(), plan)
    assert found.best[0] == "condensation" and len(found.ready) == 2
    assert found.ready[0].spec == {"method": {"name": "condensation", "k": 5}, "plan": plan["plan"]}
    assert [step.name for step in found.steps if step.name == "m"] == []


REGISTRY = {"cox": {"time": "days", "event": "died", "covariates": ["age"]}}


def registry() -> pl.DataFrame:
    """A registry with a number of its own in every row, as `write.csv` of R adds one, and a name."""
    return table(200).with_columns(
        rownames=pl.int_range(1, pl.len() + 1), name=pl.format("Patient {}", pl.int_range(pl.len()))
    )


def test_specs_of_a_registry_with_identifiers_run_as_they_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from leeward.cli.main import status_of

    registry().write_csv(tmp_path / "registry.csv")
    plan = {
        "source": {"path": "registry.csv"},
        "recipient": {"who": "public", "knows": {"columns": ["age"]}},
        "threshold": 0.2,
        "plan": [REGISTRY],
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    assert status_of(["recommend", str(tmp_path / "plan.yaml"), "-o", str(tmp_path / "advice")]) == 0
    shown = capsys.readouterr().out
    assert "left out, because no analysis of the plan needs them: " in shown and "rownames" in shown
    specs = sorted((tmp_path / "advice").glob("*.yaml"))
    assert len(specs) == 2
    for spec in specs:
        assert status_of(["protect", str(spec), "-o", str(tmp_path / spec.stem)]) == 0
    by_method = {spec.stem[2:]: yaml.safe_load(spec.read_text())["method"] for spec in specs}
    assert by_method["condensation"]["coarsen_time"] is True
    assert by_method["k-anonymity"]["quasi_identifiers"] == ["age", "days"]
    for word in ("  m: ", "codes of a patient", "as it is"):
        assert word not in shown


@pytest.mark.parametrize("who", ["public", "named researchers"])
def test_times_are_coarsened_for_the_public_and_asked_about_for_others(who: str) -> None:
    plan = {"recipient": {"who": who, "knows": {"columns": ["age"]}}, "threshold": 0.2, "plan": [REGISTRY]}
    found = lw.recommend(cohort_of_table(), plan)
    methods = {each.method: each.spec["method"] for each in found.ready if each.spec}
    asked = {
        name for name in methods for each in found.questions if each.startswith(f"{name} publishes every pat")
    }
    public = who == "public"
    assert methods["condensation"].get("coarsen_time", False) == public
    assert ("days" in methods["k-anonymity"]["quasi_identifiers"]) == public
    assert asked == (set() if public else {"condensation", "k-anonymity"})


def test_a_spec_that_does_not_run_is_not_handed_out_and_the_reason_is_said() -> None:
    from leeward.cohort import Cohort

    found = lw.recommend(Cohort(patients=registry(), name="registry"), {"threshold": 0.2, "plan": [REGISTRY]})
    assert [each.method for each in found.ready] == ["k-anonymity"] and found.best == ()
    (reason, source), *_ = [
        each.closed for each in found.methods if each.name == "condensation" and each.closed
    ]
    assert "does not run on these data" in reason and "'rownames'" in reason and "measured" in source
    assert "No method serves an analysis of this plan on these data. What comes nearest:" in lines_of(found)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_rules_alone_never_say_that_a_method_serves_a_line(golden: dict[str, Any]) -> None:
    for each in advice(golden).methods:
        told = {finding.verdict for finding in each.findings[: each.lines]}
        assert each.name == "queries" or "serves" not in told


def test_what_was_measured_is_the_verdict() -> None:
    """By the rules disassociation serves counts of 10 k patients and more; these codes are shared by few."""
    plan = {"threshold": 0.34, "plan": [{"counts": {"from": 12}}, {"counts": {"together": 2, "from": 12}}]}
    found = lw.recommend(cohort_of_events(), plan)
    handed_out = {ready.method: ready.trial for ready in found.ready}
    assert len(handed_out) == 2
    for each in found.methods:
        trial = handed_out.get(each.name)
        if trial is not None:
            assert trial.patients == trial.of and trial.refused is None
            assert [one.verdict for one in each.findings[:2]] == [
                verdict_of(kept.value, kept.floor) for kept in trial.kept
            ]
            assert all("measured" in one.source and "%" in one.reason for one in each.findings[:2])
    assert found.to_json()["ready"][0]["trial"]["lines"][0]["figure"]


def test_a_spec_is_tried_on_a_sample_of_a_large_cohort() -> None:
    found = lw.recommend(
        cohort_of_events(), {"threshold": 0.34, "plan": [{"counts": {"from": 5}}]}, sample=20
    )
    assert found.ready and all(each.trial and each.trial.patients == 20 for each in found.ready)
    assert "20 of " in "\n".join(lines_of(found))


@pytest.mark.parametrize("threshold", [0.1, {"max": 0.1}])
def test_a_threshold_may_be_a_plain_number(threshold: Any) -> None:
    assert advice(GOLDEN[0], threshold=threshold).situation.k == 10
    assert (
        parse("plan: [counts]\nthreshold: 0.1").limit == parse("plan: [counts]\nthreshold: {max: 0.1}").limit
    )


def test_commands_of_counts_are_quoted_for_a_shell(tmp_path: Path) -> None:
    import shlex

    plan: Plan = build(
        Plan,
        {
            "source": {
                "path": "my data.csv",
                "columns": {"patient": "pat id", "code": "icd"},
                "missing": ["'?"],
            },
            "plan": [{"query": {"questions": 3}}],
        },
        "",
    )
    (index, *_) = commands_of(Situation(plan, Facts("events", 100, 10, 100)))
    assert shlex.split(index)[2:8] == ["my data.csv", "--patient", "pat id", "--code", "icd", "--missing"]


def test_the_command_writes_specs_that_protect_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from leeward.cli.main import status_of

    events().write_csv(tmp_path / "events.csv")
    (tmp_path / "plan.yaml").write_text(
        "source: {path: events.csv, columns: {patient: patient, code: code}}\nthreshold: {max: 0.34}\n"
        'plan: [{counts: {of: "hierarchy:1", from: 12}}]\n'
    )
    assert status_of(["recommend", str(tmp_path / "plan.yaml"), "-o", str(tmp_path / "advice")]) == 0
    shown = capsys.readouterr().out
    specs = sorted((tmp_path / "advice").glob("*.yaml"))
    assert len(specs) == 2 and all(f"leeward protect {spec}" in shown for spec in specs)
    assert oct((tmp_path / "advice").stat().st_mode)[-3:] == "700"
    assert status_of(["protect", str(specs[0]), "-o", str(tmp_path / "out")]) == 0
    assert status_of(["recommend", str(tmp_path / "plan.yaml"), "-o", str(tmp_path / "advice")]) == 2


BAD = {
    "counts: [": "not valid YAML",
    "plan: []": "has no line",
    "plan: [cuonts]": "did you mean `counts`",
    "plan: [{counts: {within: much}}]": "`counts.within` is a share",
    "plan: [{counts: {within: 0 %}}]": "above 0",
    "plan: [{counts: {together: 2, of: 'hierarchy:1'}}]": "needs `of: codes`",
    "plan: [{counts: {form: 3}}]": "unknown key `form`",
    "plan: [{cox: {time: t}}]": "plan[1].cox.covariates",
    "plan: [{phewas: {}}]": "`plan[1].phewas.exposure` is missing",
    "plan: [counts]\nthreshold: ipc-ontario/medum": "did you mean `ipc-ontario/medium`",
    "plan: [counts]\nthreshold: hipaa-expert": "names no number",
    "plan: [counts]\nthreshold: {max: 1.5}": "above 0 and below 1",
    "plan: [counts]\nthreshold: 5": "above 0 and below 1, such as `0.1`",
    "plan: [counts]\nthreshold: [0.1]": "`threshold` must be",
    "plan: [counts]\nrecipient: {knows: {codes: some}}": "`recipient.knows.codes`",
    "plan: [counts]\nrecipient: {who: friends}": "`recipient.who`",
    "plan: [counts]\nk: 5": "unknown key `k`",
    "- counts": "a plan is a mapping",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=list(BAD))
def test_a_bad_plan_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert message in str(caught.value)


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = plan_schema()
    assert schema["additionalProperties"] is False and schema["required"] == ["plan"]
    shapes = schema["properties"]["plan"]["items"]["anyOf"]
    assert {name for shape in shapes[1:] for name in shape["properties"]} == {
        *LINES,
        "linear",
        "logistic",
        "poisson",
        "cox",
        "forest",
    }
    counts = next(shape["properties"]["counts"] for shape in shapes[1:] if "counts" in shape["properties"])
    assert "from" in counts["properties"] and "least" not in counts["properties"]


def test_sensitive_ranges() -> None:
    codes = ["B19", "B20", "B20.1", "F09", "F10.1", "F19.9", "F20"]
    assert sensitive_codes(["B20", "F10-F19"], codes) == ["B20", "B20.1", "F10.1", "F19.9"]


def test_notes_have_facts_of_their_own() -> None:
    from leeward.advise.situation import facts_of
    from leeward.cohort import Cohort

    notes = pl.DataFrame({"note": [1, 2, 3], "patient": ["a", "a", "b"], "text": ["x", "y", "z"]})
    facts = facts_of(parse("plan: [counts]"), Cohort(notes=notes))
    assert dataclasses.replace(facts) == Facts("notes", 2, 0, 3)
