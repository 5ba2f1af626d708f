"""What verifying costs beside protecting: both in turn, in one process, from the same cohort.

    python benchmarks/verifying.py [--data DIR] [--people 1000000] [--repeat 3] [--only NAME;…] [--keep FILE]

`protect` is from the cohort's frames to the release's files; `verify` reads these files and the same frames, with the
custodian's folder beside it. Each repetition protects and verifies once, so that both meet the same machine; a small
run before compiles or loads the kernels. CPU seconds (user and system, of the whole process) are what is compared: the
clock says more of what else the machine did. The ratio is verify to protect, each repetition's own, and its median.
UCI: 71,518 patients (censoring: a sample of 20,000 against everybody; the table: a row a patient). Made up: codes,
visits and mentions of 1 M patients (censoring: a sample of a tenth against them), a table and a registry of 1 M rows,
trajectories of a tenth. `--keep` adds the rows to a file, so that a long run can be cut with `--only`; the
section is written from all of them once every task has been measured at one commit.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from common import commit, table, write_page
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.engine import make
from leeward.methods.censoring import Censoring
from leeward.methods.condensation import Condensation
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.release import write
from leeward.synthetic import write_codes
from leeward.synthetic.registry import registry
from leeward.synthetic.repeats import write_repeats
from leeward.synthetic.trajectories import write_trajectories
from leeward.synthetic.visits import write_visits
from leeward.verify import Source, verify

SMALL = 3_000
"""Patients of the run that is not counted."""

UCI_COLUMNS = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
TABLE_COLUMNS = ("race", "gender", "age", "time_in_hospital", "num_lab_procedures", "num_medications",
                 "number_diagnoses", "readmitted")  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A method on a cohort."""

    name: str
    cohort: Callable[[], Cohort]
    method: Any
    population: Callable[[], Cohort] | None = None


def fresh(cohort: Cohort) -> Cohort:
    """The cohort without what earlier runs computed from it."""
    return Cohort(
        events=cohort.events, patients=cohort.patients, name=cohort.name, vocabulary=cohort.vocabulary
    )


def of_patients(cohort: Cohort, chosen: pl.Series) -> Cohort:
    """The cohort's events and rows of some patients."""
    events = cohort.require_events().filter(pl.col("patient").is_in(chosen.implode()))
    return Cohort(events=events, patients=None, name=cohort.name, vocabulary=cohort.vocabulary)


def few(cohort: Cohort) -> Cohort:
    """A small part of a cohort, to load the kernels with."""
    if cohort.events is None:
        assert cohort.patients is not None
        return Cohort(patients=cohort.patients.head(SMALL), name=cohort.name)
    return of_patients(cohort, cohort.events["patient"].unique().sort().head(SMALL))


def tasks(data: Path | None, people: int, place: Path) -> Iterator[Task]:
    """Every method on UCI, then on made-up data."""
    if data is not None:
        file = data / "uci-diabetes130" / "diabetic_data.csv.gz"
        raw = pl.read_csv(file, infer_schema_length=0)
        decade = pl.col("age").str.extract(r"\[(\d+)-").cast(pl.Int64) + 5
        aged = raw.with_columns(years=decade)
        aged.write_parquet(place / "uci.parquet")
        patients = raw.unique("patient_nbr", keep="first", maintain_order=True).select(TABLE_COLUMNS)
        numbers = [name for name in TABLE_COLUMNS if name.startswith(("time", "num"))]
        rows = Cohort(patients=patients.with_columns(pl.col(numbers).cast(pl.Int64)), name="uci")

        def codes(**more: str) -> Cohort:
            columns = {**UCI_COLUMNS, **more}
            return read(place / "uci.parquet", columns=columns, missing=["?"], vocabulary="icd9")

        def sample() -> Cohort:
            everyone = codes()
            return of_patients(everyone, everyone.events["patient"].unique().sort().sample(20_000, seed=1))  # type: ignore[index]

        yield Task("UCI, disassociation", codes, Disassociation(k=5, m=2, policy="hierarchy:1"))
        yield Task("UCI, constraints", codes, Constraints(k=5, m=2, policy="hierarchy:1"))
        yield Task("UCI, censoring", sample, Censoring(k=5, scope="global", cap=3), codes)
        yield Task("UCI, censoring by record", sample, Censoring(k=5, cap=3, scope="record"), codes)
        yield Task("UCI, trajectories", lambda: codes(age="years"), Trajectories(k=5))
        yield Task("UCI, visits", codes, Visits(k=5))
        yield Task("UCI, visits containment", codes, Visits(k=5, level="containment", merge_visits=True))
        yield Task("UCI, condensation", lambda: rows, Condensation(k=10, strata=("readmitted",)))
        yield Task("UCI, k-anonymity", lambda: rows, KAnonymity(k=5, quasi_identifiers=TABLE_COLUMNS[:4]))
    if people:
        made: set[str] = set()

        def file(name: str) -> Path:
            """A made-up file, written when it is first asked for."""
            if name not in made:
                made.add(name)
                if name == "codes":
                    write_codes(place / "codes.parquet", people, seed=1)
                elif name == "visits":
                    write_visits(place / "visits", people, seed=1)
                elif name == "ages":
                    write_trajectories(place / "ages.parquet", people // 10, seed=1)
                else:
                    made.update(("all", "some"))
                    tenth, everybody = place / "some.parquet", place / "all.parquet"
                    write_repeats(everybody, people, 500, 1, sample=tenth, sample_patients=people // 10)
            return place / "visits" / "events.parquet" if name == "visits" else place / f"{name}.parquet"

        sets, visits, everyone, some, ages = (
            lambda name=name: read(file(name), vocabulary="icd9")
            for name in ("codes", "visits", "all", "some", "ages")
        )
        size = f"{people:,}"
        yield Task(f"{size}, disassociation", sets, Disassociation(k=5, m=2, policy="hierarchy:1"))
        yield Task(f"{size}, constraints", sets, Constraints(k=5, m=2, policy="hierarchy:1"))
        yield Task(f"{size}, censoring", some, Censoring(k=5, scope="global", cap=3), everyone)
        yield Task(f"{size}, visits", visits, Visits(k=5))
        yield Task(f"{size}, visits containment", visits, Visits(k=5, level="containment", merge_visits=True))
        yield Task(
            f"{size}, condensation",
            lambda: Cohort(patients=registry(people, "lung", 9, seed=1), name="made up"),
            Condensation(k=10, strata=("VitalStat",), time=("SurvInterval",)),
        )
        yield Task(
            f"{size}, k-anonymity",
            lambda: wide(people),
            KAnonymity(k=5, quasi_identifiers=("age", "sex", "area")),
        )
        yield Task(f"{people // 10:,}, trajectories", ages, Trajectories(k=5))


def wide(rows: int) -> Cohort:
    """A made-up table of three quasi-identifiers and two more columns."""
    numbers = pl.int_range(rows, eager=True)
    drawn = [numbers.hash(seed) for seed in range(5)]
    frame = pl.DataFrame(
        {
            "age": (drawn[0] % 90).cast(pl.Int64),
            "sex": (drawn[1] % 2).cast(pl.String),
            "area": (drawn[2] % 300).cast(pl.Int64),
            "score": (drawn[3] % 1000).cast(pl.Float64) / 10,
            "stage": (drawn[4] % 4).cast(pl.String),
        }
    )
    return Cohort(patients=frame, name="made up")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, the result."""
    gc.collect()
    cpu = time.process_time()
    result = work()
    return time.process_time() - cpu, result


def pair(task: Task, cohort: Cohort, population: Cohort | None, out: Path) -> tuple[float, float]:
    """Processor seconds of protecting, then of verifying."""
    cohort, more = fresh(cohort), {} if population is None else {"population": fresh(population)}
    engine = make("local")
    first = timed(lambda: write(task.method.protect(cohort, engine, **more), out))
    empty = pl.DataFrame({"patient": [], "code": []}, schema={"patient": pl.Int64, "code": pl.String})
    source = Source(
        empty if cohort.events is None else cohort.events,
        cohort.patients,
        None if population is None else population.events,
    )
    second = timed(lambda: verify(out, source))
    if not second[1].passed:
        raise SystemExit(f"{task.name}: {second[1]}")
    shutil.rmtree(out)
    return first[0], second[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    rows: dict[str, list[str]] = {}
    kept: dict[str, dict[str, list[str]]] = {}
    if options.keep is not None and options.keep.is_file():
        kept = json.loads(options.keep.read_text(encoding="utf-8"))
        rows = kept.get(commit(), {})
    names = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for task in tasks(options.data, options.people, place):
            names.append(task.name)
            if task.name in rows or (
                options.only and not any(part in task.name for part in options.only.split(";"))
            ):
                continue
            cohort = task.cohort()
            population = None if task.population is None else task.population()
            pair(task, few(cohort), population, place / "small")
            found = [pair(task, cohort, population, place / "out") for _ in range(options.repeat)]
            cpu, vcpu = (statistics.median(column) for column in zip(*found, strict=True))
            ratio = statistics.median(after / before for before, after in found)
            rows[task.name] = [task.name, f"{cpu:.2f}", f"{vcpu:.2f}", f"{ratio:.2f}"]
            print(rows[task.name], flush=True)
            if options.keep is not None:
                options.keep.write_text(json.dumps({**kept, commit(): rows}), encoding="utf-8")
            del cohort, population
    head = ["data, method", "protect, CPU-s", "verify, CPU-s", "ratio"]
    command = f"python benchmarks/verifying.py --data DIR --people {options.people} --repeat {options.repeat}"
    if all(name in rows for name in names):
        text = "CPU seconds (user and system) and their ratio; other work ran beside this, so none by the clock.\n\n"
        body = text + table(head, [rows[name] for name in names])
        write_page("verifying", "Verifying beside protecting", command, body)


if __name__ == "__main__":
    main()
