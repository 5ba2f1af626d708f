"""Does the advice hold? Plans on public data sets, run by following only what `recommend` prints.

    python benchmarks/study_advice.py --data DIR [--only NAME]

For each data set: the plan is advised on, once with all patients and, where there are more than 5,000, once on a sample
of so many; the methods that are handed out, and the next open one, are released from all patients with the advised
specs, each several times with other seeds than the advice's own trial, and every line of the plan is measured. The
rules were written with the development sets; those that were held out are spent.

Data (DIR/README.md has the sources): uci-diabetes130 (UCI, 130 US hospitals), eunomia-gibleed (OHDSI),
pyphewas-synthetic and vocab (pyPheWAS, phecodes), synthea-oh (Synthea), survival/rotterdam.csv and
survival/ProstateSurvival_df.csv (R packages survival and asaur). Claims are Leeward's own, made up.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import leeward as lw
from common import commit, machine, save, table
from leeward.advise.plan import Plan
from leeward.advise.recommendation import Recommendation
from leeward.advise.specs import spec_of
from leeward.advise.utility.verdicts import verdict_of
from leeward.cohort import Cohort
from leeward.fields import build
from leeward.release.spec import SourceSpec, Spec
from leeward.runs.specs import read_source
from leeward.synthetic import write_claims

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "advice.md"
REPEATS = 2
COMPARED = 3
SAMPLE = 5_000
MADE_UP = 20_000

CLAIMS, PHEWAS = "claims.csv", "phewas.csv"
"""Files that are made beside the study: claims, and pyPheWAS' codes with the columns of their patients."""

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
        "Eunomia, sequences",
        "codes by age of 2,694 patients, OMOP concepts",
        False,
        {"path": "eunomia-gibleed"},
        {
            "recipient": {"who": "named researchers", "knows": {"codes": 2}},
            "threshold": 0.075,
            "plan": [{"sequences": {"min_support": 0.01}}],
        },
    ),
    Case(
        "pyPheWAS",
        "codes of 10,000 made-up patients, ICD-9-CM, with a group that goes along",
        False,
        {"path": PHEWAS, "vocabulary": "icd9",
         "columns": {"patient": "id", "code": "ICD_CODE", "patients": ["Dx", "Sex", "MaxAgeAtVisit"]}},
        {
            "recipient": {"who": "named researchers", "knows": {"codes": 2, "in_study": False}},
            "threshold": 0.2,
            "plan": [
                {"phewas": {"exposure": "Dx", "covariates": ["Sex", "MaxAgeAtVisit"],
                            "map": "vocab/phecode_map_v1_2_icd9.csv.gz"}},
                {"counts": {"of": "codes", "within": "10 %", "from": 50}},
            ],
        },
    ),
    Case(
        "Claims",
        f"ten codes a claim of {MADE_UP:,} made-up patients",
        False,
        {"path": CLAIMS, "columns": {"patient": "patient", "code": [f"diag_{n}" for n in range(1, 11)]}},
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
        {"path": "survival/rotterdam.csv", "format": "table", "columns": {"patient": "pid"}},
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
    """A method on a data set, released from all patients.

    advised : the verdicts of the advice. sampled : those of the advice on a sample, None where there was none. values :
    line -> a value each repeat (None: not served). floors : of the lines. status : of each repeat.
    """

    method: str
    advised: tuple[str, ...]
    sampled: tuple[str, ...] | None
    values: tuple[tuple[float | None, ...], ...]
    floors: tuple[float | None, ...]
    status: tuple[str, ...]

    def verdict(self, place: int) -> str:
        """The verdict of the mean of a line's repeats."""
        known = [value for value in self.values[place] if value is not None]
        return verdict_of(statistics.mean(known) if known else None, self.floors[place])


def run(case: Case, data: Path, made: Path) -> tuple[Recommendation, list[Outcome]]:
    """Advise, then release the methods that are handed out, and the next open one, as advised."""
    plan, cohort = open_case(case, data, made)
    advice = lw.recommend(cohort, plan)
    many = advice.situation.facts.patients > SAMPLE
    on_sample = lw.recommend(cohort, plan, sample=SAMPLE) if many else None
    found = []
    for name in methods_of(advice):
        ready = spec_of(name, advice.situation, cohort.code_sets().codes if cohort.events is not None else ())
        spec = Spec(source=plan.source, method=ready["method"], plan=tuple(ready.get("plan", ())))
        with tempfile.TemporaryDirectory() as folder:
            explored = lw.explore(
                spec,
                Path(folder) / "e",
                vary={"k": [ready["method"]["k"]]},
                plan=plan,
                cohort=read_source(spec_of_source(plan.source, ready.get("drop", ())))
                if "drop" in ready
                else cohort,
                repeat=REPEATS,
            )
        rows = explored.points.to_dicts()
        places = range(1, len(plan.lines) + 1)
        found.append(
            Outcome(
                name,
                verdicts(advice, name),
                None if on_sample is None else verdicts(on_sample, name),
                tuple(tuple(row[f"line_{place}"] for row in rows) for place in places),
                tuple(
                    next((row[f"floor_{place}"] for row in rows if row[f"floor_{place}"]), None)
                    for place in places
                ),
                tuple(row["status"] for row in rows),
            )
        )
        print(case.name, name, found[-1].status, [_span(v) for v in found[-1].values], flush=True)
    return advice, found


def open_case(case: Case, data: Path, made: Path) -> tuple[Plan, Cohort]:
    """The plan with its source and maps where they are, and the cohort."""
    beside = made if case.source["path"] in (CLAIMS, PHEWAS) else data
    lines = [
        {kind: {**line, "map": str(data / line["map"])} if "map" in line else line}
        for entry in case.plan["plan"]
        for kind, line in entry.items()
    ]
    source = {**case.source, "path": str(beside / case.source["path"])}
    plan: Plan = build(Plan, {**case.plan, "plan": lines, "source": source}, "")
    assert plan.source is not None
    return plan, read_source(plan.source)


def spec_of_source(source: SourceSpec | None, drop: Sequence[str]) -> SourceSpec:
    """The source without the columns to drop."""
    assert source is not None
    return dataclasses.replace(source, drop=(*source.drop, *drop))


def methods_of(advice: Recommendation) -> list[str]:
    """The methods that are handed out as specs, and the next open ones."""
    handed_out = [each.method for each in advice.ready if each.spec is not None]
    others = [each.name for each in advice.methods if each.closed is None and each.name != "queries"]
    return list(dict.fromkeys([*handed_out, *others]))[:COMPARED]


def verdicts(advice: Recommendation, method: str) -> tuple[str, ...]:
    """What the advice says of each line for a method."""
    (found,) = [each for each in advice.methods if each.name == method]
    tried = {each.method for each in advice.ready}
    mark = "" if method in tried else " (by rule)"
    return tuple(f"{each.verdict}{mark}" for each in found.findings[: found.lines])


def _span(values: tuple[float | None, ...]) -> str:
    """Least and greatest of the repeats."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, high = (f"{100 * end:.1f}" for end in (min(known), max(known)))
    return f"{low} %" if low == high else f"{low} to {high} %"


SETS = ["data", "set", "what", "k", "m", "sharing model", "best for each line", "releases"]
HEAD = ["data", "method", "line", "advised", "advised on 5,000", "measured", "a resample", "so it", "advice"]
RANK = ("serves", "with care", "does not")


def judgement(advised: str, measured: str) -> str:
    """Whether a verdict promised what was measured, more, or less."""
    one, other = (RANK.index(each.removesuffix(" (by rule)")) for each in (advised, measured))
    return "holds" if one == other else "too much" if one < other else "too little"


def tally(words: list[str]) -> str:
    """How many verdicts hold, promise too much, and too little."""
    return ", ".join(f"{words.count(word)} {word}" for word in ("holds", "too much", "too little"))


def rows_of(case: Case, advice: Recommendation, found: list[Outcome]) -> list[list[Any]]:
    """A row for each method and line."""
    rows = []
    for each in found:
        for place, line in enumerate(advice.situation.plan.lines):
            measured = each.verdict(place)
            floor = each.floors[place]
            rows.append(
                [
                    case.name,
                    each.method,
                    line.title.removeprefix("counts of ").split(" from ")[0],
                    each.advised[place],
                    "–" if each.sampled is None else each.sampled[place],
                    _span(each.values[place]),
                    "–" if floor is None else f"{100 * floor:.1f} %",
                    measured,
                    judgement(each.advised[place], measured),
                ]
            )
    return rows


def about(case: Case, advice: Recommendation, found: list[Outcome]) -> list[str]:
    """The row of a data set: what it is, and which method was best."""
    lines = [line.title for line in advice.situation.plan.lines]
    leaders = [found[order[0]].method for order in _orders(found)]
    first = set(leaders) == {found[0].method}
    told = "; ".join(f"{line}: {leader}" for line, leader in zip(lines, leaders, strict=True))
    return [
        case.name,
        "held out before" if case.held_out else "development",
        case.what,
        str(advice.situation.k),
        str(advice.situation.m) if advice.situation.facts.kind == "events" else "–",
        advice.sharing[0],
        "the first method" if first else told,
        ", ".join(sorted({one for each in found for one in each.status})),
    ]


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


def make_data(data: Path, made: Path) -> None:
    """The claims, and pyPheWAS' codes with the columns of their patients in each row."""
    write_claims(str(made / CLAIMS), MADE_UP, seed=1)
    codes = pl.read_csv(data / "pyphewas-synthetic" / "icds.csv.gz", infer_schema=False)
    people = pl.read_csv(data / "pyphewas-synthetic" / "group.csv", infer_schema=False)
    numbers = pl.col("Dx", "Sex", "MaxAgeAtVisit").cast(pl.Float64)
    codes.filter(pl.col("ICD_TYPE") == "9").join(people, on="id").with_columns(numbers).write_csv(
        made / PHEWAS
    )


def main() -> None:
    """Run the cases and put their table into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", help="one data set; nothing is written")
    given = parser.parse_args()
    rows, sets = [], []
    with tempfile.TemporaryDirectory() as folder:
        make_data(given.data, Path(folder))
        for case in CASES:
            if given.only in (None, case.name):
                advice, found = run(case, given.data, Path(folder))
                rows += rows_of(case, advice, found)
                sets.append(about(case, advice, found))
    sampled = [judgement(row[4], row[7]) for row in rows if row[4] != "–"]
    body = (
        f"{table(HEAD, rows)}\n\nOf {len(rows)} verdicts: {tally([row[-1] for row in rows])}. Of {len(sampled)} on a "
        f"sample: {tally(sampled)}.\n\n{table(SETS, sets)}\n"
    )
    print(body)
    if given.only is None:
        begin, end = "<!-- tables -->", "<!-- end of tables -->"
        before, rest = PAGE.read_text(encoding="utf-8").split(begin, 1)
        told = f"{machine()}. Commit {commit()}. Command: `python benchmarks/study_advice.py --data DIR`\n\n"
        save(PAGE, before + begin + "\n" + told + body + end + rest.split(end, 1)[1])


if __name__ == "__main__":
    main()
