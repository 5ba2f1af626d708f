"""Does a default lose where a simpler choice wins? Every shape, size and k, with and without demographics.

    python benchmarks/defaults.py --data DIR [--csv FILE] [--done FILE]

Defaults that were chosen from figures: disassociation's partitioning (`auto`) beside `paper`; counts in classes of
demographics beside two releases, of the codes and of the demographics; trajectories' clustering beside `alignment` and
`order: kept`; condensation's relations beside none. A cell is one data set, size, k and workload; its ratio is the
default's loss by the choice's (of usable pairs the choice's by the default's), .1 % added to both, the geometric mean
over seeds: each draws the patients (UCI, Eunomia) or makes the data, starts the search and draws the queries; of
condensation, which takes registries whole, it makes the release. A cell is *worse* where its 95 % interval
(Student's t of the logarithms) is above 1.03 as a whole, *better* where it is below 1/1.03. `--csv` writes all cells;
`--done` keeps the figures of each method as soon as they are there, so that a run can be stopped and go on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).resolve().parent))
import study_whole_patient as study
from common import once, table, write_page
from condensation_relations import FIGURES, figures_of, registry_of, with_planted
from leeward.analysis import workloads
from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import relative_errors
from leeward.cohort import Cohort, read
from leeward.methods.disassociation.measures import estimate_queries
from leeward.methods.disassociation.measures.published import read as published_of
from leeward.methods.trajectories import Trajectories
from leeward.release import Release, write
from leeward.runs.measure import measure
from leeward.synthetic import write_claims, write_codes
from leeward.synthetic.trajectories import write_trajectories
from modes import events_of
from partitioning import of_codes

KS, SEEDS = (3, 5, 10, 25), (1, 2, 3)
SIZES, SMALL = (300, 6_000), (50, 300, 3_000)
"""Patients of each shape, and of small made-up cohorts; above 5,000 `auto` tries nothing."""

QUERIES, QUESTIONS = 500, 2_000
LEVELS: dict[str, Any] = {"age": 10, "sex": "exact"}
ASKED = ((1, 1), (1, 10), (2, 1), (2, 10), (3, 10))
"""Codes of a question in a cell of demographics, and its least true count."""

FLOOR, MARGIN = 0.001, 1.03
KEPT = "usable pairs"
"""The workload whose figure is the better the larger."""

CLUSTERINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "alignment": {"clustering": "alignment"},
    "order: kept": {"order": "kept"},
}
AGED, LENGTHS = 1_000, {"single pairs": 1, "whole": 1_000}
"""Patients with trajectories, and how many pairs of each, the first by age."""

PLANTED = ("gbsg", "rotterdam", "mgus2", "colon", "pbc", "support2", "metabric", "synth")
"""Registries with planted relations; support2 has some of its own."""


class Cell(NamedTuple):
    """What a default is compared in; `choice`: the simplest one."""

    method: str
    choice: str
    data: str
    patients: int
    k: int
    demographics: str
    workload: str


Compared = Iterator[tuple[Cell, float, float]]
"""Cells with the figures of the default and of the choice, of one seed."""


def with_people(cohort: Cohort, seed: int) -> Cohort:
    """The cohort with an age and a sex for each patient, drawn at random."""
    draw = np.random.default_rng(seed)
    patient = cohort.require_events()["patient"].unique().sort()
    ages = draw.normal(60, 18, len(patient)).clip(20, 99).astype(int)
    sexes = draw.choice(["F", "M"], len(patient))
    return replace(cohort, patients=pl.DataFrame({"patient": patient, "age": ages.astype(str), "sex": sexes}))


def sampled(load: Callable[[], Cohort], patients: int, seed: int, _: Path) -> Cohort:
    cohort = load()
    people = cohort.code_sets().patients
    return cohort.restrict(people.sample(min(patients, len(people)), seed=seed).sort())


def claims(first: bool, patients: int, seed: int, folder: Path) -> Cohort:
    """Made-up claims, of each patient all or the `first`, with ages and sexes that codes depend on."""
    write_claims(folder / "claims.parquet", patients, seed=seed)
    rows = pl.read_parquet(folder / "claims.parquet")
    rows = rows.unique("patient", keep="first", maintain_order=True) if first else rows
    codes = rows.unpivot(
        [n for n in rows.columns if n.startswith("diag_")], index="patient", value_name="code"
    )
    known = rows.group_by("patient").agg(pl.col("age").min().cast(pl.String), pl.col("sex").first())
    return replace(of_codes(codes, "icd9"), patients=known.sort("patient"))


def listed(mean: float, codes: int, patients: int, seed: int, folder: Path) -> Cohort:
    write_codes(folder / "codes.parquet", patients, mean=mean, codes=codes, seed=seed)
    return with_people(read(folder / "codes.parquet", vocabulary="icd9"), seed)


MADE_UP = {
    "latent profiles": (60, 4, 1.0),
    "independent codes": (30, 3, 1.0),
    "short records": (200, 0.8, 0.8),
}
"""Codes, the mean number of further ones of a record, and the power of the rank that their frequency falls with."""


def made_up(kind: str, patients: int, seed: int, _: Path) -> Cohort:
    """Small cohorts; with latent profiles each patient is of one of six, which prefer few codes."""
    draw = np.random.default_rng([seed, patients])
    codes, mean, power = MADE_UP[kind]
    latent = kind == "latent profiles"
    shares = 1 / np.arange(1, codes + 1) ** power
    profiles = draw.dirichlet(np.full(codes, 0.15), 6) + 1e-9
    rows = []
    for patient in range(patients):
        chance = profiles[draw.integers(6)] if latent else shares
        wanted = min(1 + draw.poisson(mean), codes)
        held = draw.choice(codes, wanted, replace=not latent, p=chance / chance.sum())
        rows += [(patient, f"c{code:03d}") for code in set(held.tolist())]
    events = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    return with_people(of_codes(events, None), seed)


Make = Callable[[int, int, Path], Cohort]
"""So many patients, by a seed, in a folder."""


def shapes(data: Path) -> dict[str, tuple[Make, tuple[int, ...]]]:
    """How each shape is made, and its sizes."""
    return {
        "UCI": (partial(sampled, cache(partial(study.uci, data))), SIZES),
        "Eunomia": (partial(sampled, cache(partial(study.eunomia, data))), (300, 2_000)),
        "5 of 631 codes": (partial(listed, 5.1, 631), SIZES),
        "12 of 3,000 codes": (partial(listed, 12.0, 3_000), SIZES),
        "claims": (partial(claims, True), SIZES),
        "long claims": (partial(claims, False), SIZES),
        **{kind: (partial(made_up, kind), SMALL) for kind in MADE_UP},
    }


def counts(name: str, cohort: Cohort, k: int, seed: int, folder: Path) -> Compared:
    """Disassociation: errors of counts among everybody by partitioning; in a cell in classes and apart."""
    sets, own = cohort.code_sets(), workloads.WORKLOAD_SEED
    queries = {"frequent sets": workloads.frequent_queries(sets, 0.00625, 5, QUERIES).queries}
    workloads.WORKLOAD_SEED = seed  # not the queries of the trial
    queries |= dict(
        zip(
            ("1 code", "2 codes", "3 codes", "4 codes"), workloads.random_queries(sets, QUERIES), strict=False
        )
    )
    workloads.WORKLOAD_SEED = own
    true = {workload: supports_of(sets, each) for workload, each in queries.items()}
    released = {}
    for known, more in (("no", {}), ("yes", {"demographics": tuple(LEVELS), "keep": LEVELS})):
        errors = {}
        for way in ("auto", "paper"):
            released[known, way], _ = study.release_of(cohort, folder, k=k, partitioning=way, **more)
            published = published_of(released[known, way])
            errors[way] = {
                workload: relative_errors(
                    true[workload], estimate_queries(published, sets, each, "occupancy").expected
                ).mean()
                for workload, each in queries.items()
                if len(each)
            }
        for workload, found in errors["auto"].items():
            cell = Cell("partitioning", "paper", name, len(sets), k, known, workload)
            yield cell, found, errors["paper"][workload]
    columns = study.columns_for(cohort, sets, tuple(LEVELS))
    asked = study.draw(columns, sets, LEVELS, QUESTIONS, seed=seed)
    told = (
        study.in_classes(released["yes", "auto"], asked, columns, sets),
        study.apart(released["no", "auto"], asked, sets),
    )
    for size, least in ASKED:
        chosen = (asked.size == size) & (asked.true >= least)
        if chosen.any():
            found, apart = (relative_errors(asked.true[chosen], each[chosen]).mean() for each in told)
            workload = f"{size} in a cell{', 10 or more,' if least > 1 else ''}"
            yield Cell("classes", "two releases", name, len(sets), k, "yes", workload), found, apart


def of_disassociation(data: Path, folder: Path) -> Compared:
    for name, (make, sizes) in shapes(data).items():
        for patients, seed in itertools.product(sizes, SEEDS):
            cohort = make(patients, seed, folder)
            for k in KS:
                (place := folder / "releases").mkdir()
                for cell, default, choice in counts(name, cohort, k, seed, place):
                    yield cell._replace(patients=patients), default, choice
                shutil.rmtree(place)


def aged(data: Path, shape: str, first: int, seed: int, folder: Path) -> Cohort:
    """Patients of a shape, each with the first pairs of code and age; a sex is drawn at random."""
    file = folder / f"{shape}.parquet"
    if shape == "UCI":
        events = events_of(data / "uci-diabetes130" / "diabetic_data.csv.gz")
        people = events["patient"].unique().sort().sample(AGED, seed=seed)
        events = events.filter(pl.col("patient").is_in(people.implode()))
    else:
        (write_claims if shape == "long claims" else write_trajectories)(file, AGED, seed=seed)
        events = events_of(file)
    events = events.sort("patient", "age", maintain_order=True)
    events = events.filter(pl.int_range(pl.len()).over("patient") < first)
    events = events.with_columns(pl.col("code").cast(pl.String), pl.col("age").cast(pl.Int64))
    cohort = read(events, columns={name: name for name in ("patient", "code", "age")}, vocabulary="icd9")
    known = with_people(cohort, seed).patients
    assert known is not None
    return replace(cohort, patients=known.select("patient", "sex"))


def of_trajectories(data: Path, folder: Path) -> Compared:
    for shape, length, seed in itertools.product(("UCI", "synthetic", "long claims"), LENGTHS, SEEDS):
        cohort = aged(data, shape, LENGTHS[length], seed, folder)
        for k, known in itertools.product(KS, ("no", "yes")):
            more = {"demographics": ("sex",)} if known == "yes" else {}
            figures = {}
            for way, chosen in CLUSTERINGS.items():
                made = Trajectories(k=k, **chosen, **more).protect(cohort)
                found = measure(Release.open(write(made, folder / "out")), cohort, ["usable", "avgre"])
                shutil.rmtree(folder / "out")
                shares = {KEPT: found["usable"]["usable"], "lost pairs": found["usable"]["lost"]}
                figures[way] = {**shares, "frequent pairs": found["avgre"]["avgre"]}
            default = figures.pop("default")
            for (choice, each), workload in itertools.product(figures.items(), default):
                if default[workload] is not None and each[workload] is not None:
                    cell = Cell("clustering", choice, f"{shape}, {length}", AGED, k, known, workload)
                    yield cell, default[workload], each[workload]


def of_condensation(data: Path, _: Path) -> Compared:
    for name, k in itertools.product(("support2", *(f"{name}, planted" for name in PLANTED)), KS[1:]):
        registry = registry_of(data, name.partition(",")[0])
        registry = with_planted(registry) if "planted" in name else registry
        rows = registry.frame.height
        _, figures = figures_of(registry, k, len(SEEDS))
        for workload, figure, unit in (
            ("coefficients outside", "Cox: outside, %", 100),
            ("mean change of one", "mean change, SE", 1),
        ):
            column = FIGURES.index(figure)
            for default, none in zip(figures["default"], figures["none"], strict=True):
                cell = Cell("relations", "none", name, rows, k, "–", workload)
                yield cell, default[column] / unit, none[column] / unit


NOTE = (
    "A cell is one data set, size, k and workload. Ratio: the default's loss by the choice's (usable pairs: the "
    "choice's by the default's), the geometric mean over three seeds of patients, search and queries (condensation: of "
    "the release alone); worse, better: beyond 3 % with the whole 95 % interval, in brackets. In a cell of "
    "demographics two releases are given its true number of patients. Condensation refuses k = 3."
)
METHODS = {
    "disassociation": of_disassociation,
    "trajectories": of_trajectories,
    "condensation": of_condensation,
}


class Verdict(NamedTuple):
    default_mean: float
    choice_mean: float
    ratio: float
    low: float
    high: float
    verdict: str


def verdict_of(cell: Cell, figures: list[tuple[float, float]]) -> Verdict:
    """Means of both, the geometric mean of the ratio with its interval over seeds, and what it says."""
    found = np.array(figures, float)
    logs = np.log(found + FLOOR) @ np.array([1, -1] if cell.workload != KEPT else [-1, 1])
    half = student.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    ratio, low, high = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half]).tolist()
    verdict = "worse" if low > MARGIN else "better" if high < 1 / MARGIN else "same"
    return Verdict(*found.mean(axis=0).tolist(), ratio, low, high, verdict)


def summary(verdicts: dict[Cell, Verdict]) -> str:
    """Counts of cells by method and choice: as a whole, then by shape."""
    groups: dict[tuple[str, str, str], list[Verdict]] = defaultdict(list)
    for cell, each in verdicts.items():
        shape = cell.data.partition(", ")[0] if cell.method == "clustering" else cell.data
        for part in ("all", shape if cell.method != "relations" else "registries"):
            groups[cell.method, cell.choice, part].append(each)
    rows = []
    for group in sorted(groups, key=lambda group: group[:2]):
        ratios = [each.ratio for each in groups[group]]
        said = [[each.verdict for each in groups[group]].count(word) for word in ("better", "same", "worse")]
        rows.append([*group, len(ratios), *said, f"{np.median(ratios):.2f}", f"{max(ratios):.2f}"])
    head = ["default of", "beside", "data", "cells", "better", "same", "worse", "median ratio", "largest"]
    whole, parts = [row for row in rows if row[2] == "all"], [row for row in rows if row[2] != "all"]
    return f"{table(head, whole)}\n\n## By data\n\n{table(head, parts)}"


def worse(verdicts: dict[Cell, Verdict]) -> str:
    """The cells that are worse: a row a size, a column a k, in each the workloads with ratio and interval."""
    rows: dict[tuple[str, ...], dict[int, list[str]]] = defaultdict(lambda: {k: [] for k in KS})
    for cell, each in verdicts.items():
        if each.verdict == "worse":
            shown = f"{cell.workload} {each.ratio:.2f} ({each.low:.2f}–{each.high:.2f})"
            row = (cell.method, cell.choice, cell.data, f"{cell.patients:,}", cell.demographics)
            rows[row][cell.k].append(shown)
    head = ["default of", "beside", "data", "patients", "demographics", *(f"k = {k}" for k in KS)]
    lines = [
        [*row, *("; ".join(each) or "–" for each in found.values())] for row, found in sorted(rows.items())
    ]
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--csv", type=Path, help="file of all cells")
    parser.add_argument("--done", type=Path, help="JSON file of what was measured so far")
    given = parser.parse_args()
    figures: dict[Cell, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for name, method in METHODS.items():
            for cell, default, choice in once(given.done, name, lambda: [*method(given.data, Path(folder))]):  # noqa: B023
                if np.isfinite([default, choice]).all():
                    figures[Cell(*cell)].append((default, choice))
            print(f"{name}: {len(figures):,} cells by now", flush=True)
    verdicts = {cell: verdict_of(cell, each) for cell, each in figures.items() if len(each) == len(SEEDS)}
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [[*Cell._fields, *Verdict._fields], *([*c, *v] for c, v in verdicts.items())]
            )
    body = f"{NOTE}\n\n{summary(verdicts)}\n\n## Cells that are worse\n\n{worse(verdicts)}"
    command = "python benchmarks/defaults.py --data DIR"
    write_page("defaults", "Defaults beside the simplest choice", command, body)


if __name__ == "__main__":
    main()
