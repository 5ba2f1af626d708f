"""Does the advice hold? Two plans on public data sets, run by following only what `recommend` prints.

    python benchmarks/study_advice.py --data DIR [--only NAME]

For each data set: the plan is advised on, the first method and the next two that are open are released at the same
threshold with the specs that the advice gives, each several times, and every line of the plan is measured. The rules
were written with the development sets; the sets marked as held out were run once, when the rules stood.

Data (DIR/README.md has the sources): uci-diabetes130 (UCI, 130 US hospitals), eunomia-gibleed (OHDSI), synthea-oh
(Synthea), survival/rotterdam.csv and survival/ProstateSurvival_df.csv (R packages survival and asaur).
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import leeward as lw
from common import commit, machine, table
from leeward.advise.plan import Plan
from leeward.advise.recommendation import Recommendation
from leeward.advise.specs import spec_of
from leeward.fields import build
from leeward.release.spec import SourceSpec, Spec

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "advice.md"
REPEATS = 5
COMPARED = 3

COUNTS: dict[str, Any] = {
    "recipient": {"who": "named researchers", "knows": {"codes": 2, "in_study": True}},
    "threshold": {"max": 0.1},
    "plan": [
        {"counts": {"of": "codes", "within": "10 %", "from": 50}},
        {"counts": {"of": "codes", "together": 2, "within": "20 %", "from": 50}},
        {"query": {"questions": 100, "within": "20 %", "from": 50}},
    ],
}


@dataclass(frozen=True)
class Case:
    """A data set with its plan. `held_out`: not looked at while the rules were written."""

    name: str
    what: str
    held_out: bool
    source: dict[str, Any]
    plan: dict[str, Any]


def cox(time_column: str, event: str, value: object, covariates: list[str]) -> dict[str, Any]:
    """The plan of a registry: one Cox model, at a threshold of 0.1."""
    model = {"time": time_column, "event": event, "event_value": value, "covariates": covariates}
    return {"recipient": {"who": "named researchers"}, "threshold": {"max": 0.1}, "plan": [{"cox": model}]}


CASES = (
    Case(
        "UCI",
        "codes of 71,517 patients, ICD-9-CM",
        False,
        {"path": "uci-diabetes130/diabetic_data.csv.gz", "missing": ("?",),
         "columns": {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"]}},
        COUNTS,
    ),
    Case(
        "Eunomia",
        "codes of 2,694 patients, OMOP concepts",
        False,
        {"path": "eunomia-gibleed/CONDITION_OCCURRENCE.csv.gz", "vocabulary": "none",
         "columns": {"patient": "PERSON_ID", "code": "CONDITION_CONCEPT_ID"}},
        COUNTS,
    ),
    Case(
        "Synthea, Ohio",
        "codes of 8,973 patients, SNOMED CT",
        True,
        {"path": "synthea-oh/conditions.csv.gz", "vocabulary": "none",
         "columns": {"patient": "PATIENT", "code": "CODE"}},
        COUNTS,
    ),
    Case(
        "Rotterdam",
        "a registry of 2,982 patients",
        False,
        {"path": "survival/rotterdam.csv", "format": "table", "columns": {"patient": "pid"},
         "drop": ("rownames", "rtime", "recur")},
        cox("dtime", "death", 1, ["age", "size", "nodes", "grade", "hormon"]),
    ),
    Case(
        "Prostate",
        "a registry of 14,294 patients",
        True,
        {"path": "survival/ProstateSurvival_df.csv", "format": "table", "columns": {"patient": "rownames"}},
        cox("survTime", "status", 1, ["grade", "stage", "ageGroup"]),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A method on a data set. values : line -> a value each repeat (None: not served). status : of each repeat."""

    method: str
    verdicts: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    floors: tuple[float | None, ...]
    status: tuple[str, ...]
    mean_risk: float | None


def run(case: Case, data: Path) -> tuple[Recommendation, list[Outcome], float]:
    """Advise, then release the first methods that are open, as advised."""
    source = SourceSpec(**{**case.source, "path": str(data / case.source["path"])})
    plan: Plan = build(Plan, case.plan, "")
    from leeward.runs.protect import read_source

    cohort = read_source(source)
    begin = time.perf_counter()
    advice = lw.recommend(cohort, plan)
    seconds = time.perf_counter() - begin
    chosen = [each for each in advice.methods if each.closed is None and each.name != "queries"][:COMPARED]
    codes = cohort.code_sets().codes if cohort.events is not None else ()
    found = []
    for candidate in chosen:
        ready = spec_of(candidate.name, advice.situation, codes)
        spec = Spec(source=source, method=ready["method"], plan=tuple(ready.get("plan", ())))
        with tempfile.TemporaryDirectory() as folder:
            explored = lw.explore(
                spec,
                Path(folder) / "e",
                vary={"k": [ready["method"]["k"]]},
                plan=plan,
                cohort=cohort,
                repeat=REPEATS,
            )
        rows = explored.points.to_dicts()
        places = range(1, len(plan.lines) + 1)
        risks = [row["measured_mean"] for row in rows if row["measured_mean"] is not None]
        found.append(
            Outcome(
                candidate.name,
                tuple(each.verdict for each in candidate.findings),
                tuple(tuple(row[f"line_{place}"] for row in rows) for place in places),
                tuple(
                    next((row[f"floor_{place}"] for row in rows if row[f"floor_{place}"]), None)
                    for place in places
                ),
                tuple(row["status"] for row in rows),
                statistics.mean(risks) if risks else None,
            )
        )
        print(case.name, candidate.name, found[-1].status, [_span(v) for v in found[-1].values], flush=True)
    return advice, found, seconds


def _span(values: tuple[float | None, ...]) -> str:
    """Mean and 95 % interval (Student's t) of the repeats."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = 100 * statistics.mean(known)
    if len(known) < 2:
        return f"{mean:.1f} %"
    from scipy.stats import t

    half = 100 * float(t.ppf(0.975, len(known) - 1)) * statistics.stdev(known) / math.sqrt(len(known))
    return f"{mean:.1f} ± {half:.1f} %"


def section(case: Case, advice: Recommendation, found: list[Outcome], seconds: float) -> str:
    """What the page says of a data set."""
    lines = [line.title for line in advice.situation.plan.lines]
    rows = []
    for place, each in enumerate(found, 1):
        cells = [
            f"{_span(values)} ({verdict})"
            for values, verdict in zip(each.values, each.verdicts, strict=False)
        ]
        risk = "–" if each.mean_risk is None else f"{each.mean_risk:.2g}"
        rows.append([place, each.method, *cells, risk, ", ".join(sorted(set(each.status)))])
    floor = [
        "–",
        "floor: a resample",
        *("–" if f is None else f"{100 * f:.1f} %" for f in found[0].floors),
        "–",
        "–",
    ]
    leaders = [found[order[0]].method for order in _orders(found)]
    if set(leaders) == {found[0].method}:
        verdict = "The recommended method serves every line best."
    else:
        told = "; ".join(f"{line}: {leader}" for line, leader in zip(lines, leaders, strict=True))
        verdict = f"The recommended method is not best for every line. Best: {told}."
    kind = "held out" if case.held_out else "development"
    head = ["place", "method", *(f"{line} (rule said)" for line in lines), "mean risk, measured", "verified"]
    return (
        f"### {case.name} ({kind})\n\n{case.what.capitalize()}. k = {advice.situation.k}"
        + (f", m = {advice.situation.m}" if advice.situation.facts.kind == "events" else "")
        + f". Advised in {seconds:.1f} s, reading aside. Sharing model: {advice.sharing[0]}.\n\n"
        + table(head, [*rows, floor])
        + f"\n\n{verdict}\n"
    )


def _orders(found: list[Outcome]) -> list[list[int]]:
    """Of each line, the methods by falling mean."""
    orders = []
    for place in range(len(found[0].values)):
        means = [
            statistics.mean(known) if (known := [v for v in each.values[place] if v is not None]) else -1.0
            for each in found
        ]
        orders.append(sorted(range(len(found)), key=lambda i: -means[i]))
    return orders


def main() -> None:
    """Run the cases and put their tables into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", help="one data set; nothing is written")
    given = parser.parse_args()
    parts = [section(case, *run(case, given.data)) for case in CASES if given.only in (None, case.name)]
    body = "\n".join(parts)
    print(body)
    if given.only is None:
        begin, end = "<!-- tables -->", "<!-- end of tables -->"
        before, rest = PAGE.read_text(encoding="utf-8").split(begin, 1)
        told = f"{machine()}. Commit {commit()}. Command: `python benchmarks/study_advice.py --data DIR`\n\n"
        PAGE.write_text(before + begin + "\n" + told + body + end + rest.split(end, 1)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
