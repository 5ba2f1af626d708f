"""Study of differentially private counts: Figure 5 of Li & Qin (2017), then the mechanism that protects patients.

    python benchmarks/study_queries.py [--data DIR] [--out docs/studies/queries.md] [--tables DIR]

Made-up notes come from `leeward synth notes` and go through `leeward notes annotate`. With `--data DIR` the MTSamples
notes (DIR/mtsamples-medcat/pt_notes.csv.gz) and the UCI cohort (DIR/uci-diabetes130/diabetic_data.csv.gz) are studied
too. `--tables DIR` keeps the annotated tables and takes them from there. Noise cannot be seeded: another run gives
other figures, within the standard errors that the page states.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
import study_queries_words as words
from common import commit, leeward, machine, save, table
from index_itemsets import Item, frequent_itemsets
from leeward.cohort import read
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import Question, open_session
from leeward.queries.index.build import index_cohort, index_table
from leeward.queries.index.counts import Index
from leeward.queries.language.query import EXACT, Predicate, Query
from leeward.queries.ledger import auditing, budgets, opening
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import Budget, micro
from leeward.queries.privacy.mechanism import Kind, Noise
from leeward.randomness import Randomness
from objections import ended
from replication import (
    estimated_by_month,
    expected_error,
    relative_error,
    standard_error,
    with_month,
)

EPSILONS = ("0.5", "0.4", "0.3", "0.2", "0.1")
SUPPORTS = (10, 20, 30, 40, 50)
RUNS = 5
PAPER = {
    "0.5": (0.149, 0.078, 0.056, 0.042, 0.034),
    "0.4": (0.184, 0.096, 0.070, 0.055, 0.046),
    "0.3": (0.246, 0.132, 0.095, 0.074, 0.060),
    "0.2": (0.350, 0.187, 0.131, 0.104, 0.086),
    "0.1": (0.731, 0.394, 0.288, 0.223, 0.177),
    "Month estimated": (0.510, 0.433, 0.436, 0.461, 0.436),
}
NOTES, PATIENTS = 2867, 1500
SHARES = (0.13, 0.11, 0.09, 0.08, 0.07, 0.04, 0.06, 0.07, 0.08, 0.09, 0.10, 0.08)
"""Months assigned to the MTSamples, as uneven as the paper's: 4 % to 13 %."""
ASKED = 200
"""Questions that go through the whole charged path."""

Counts = np.ndarray


@dataclass(frozen=True)
class Grid:
    """Relative errors by ε (rows) and support (columns), expected too, and their distance in standard errors."""

    measured: np.ndarray
    expected: np.ndarray
    distance: np.ndarray


def grid(counts_of: dict[int, Counts], kind: Kind, sensitivity: int = 1) -> Grid:
    """Five runs for each ε and support; noise is drawn anew for every cell."""
    if not all(len(counts) and counts.min() > 0 for counts in counts_of.values()):
        raise AssertionError("each support has itemsets, and each of them a count above 0")
    shape = (len(EPSILONS), len(SUPPORTS))
    measured, expected, distance = np.empty(shape), np.empty(shape), np.empty(shape)
    for i, epsilon in enumerate(EPSILONS):
        noise = Noise(kind, micro(epsilon), sensitivity)
        for j, support in enumerate(SUPPORTS):
            counts = counts_of[support]
            measured[i, j] = np.mean([relative_error(counts, noise) for _ in range(RUNS)])
            expected[i, j] = expected_error(counts, noise)
            distance[i, j] = (measured[i, j] - expected[i, j]) / standard_error(counts, noise, RUNS)
    return Grid(measured, expected, distance)


def cells(head: str, rows: Sequence[tuple[str, Sequence[float]]], digits: int = 3) -> str:
    """A table with a column a support."""
    body = [(name, *(f"{value:.{digits}f}" for value in values)) for name, values in rows]
    return table((head, *(str(support) for support in SUPPORTS)), body)


def of_grid(values: np.ndarray, digits: int = 3) -> str:
    return cells("ε \\ support", list(zip(EPSILONS, values.tolist(), strict=True)), digits)


def within(found: Grid) -> str:
    """Cells within 3 standard errors of the expectation, the farthest, the root mean square."""
    far = np.abs(found.distance)
    return f"{int((far <= 3).sum())} of {far.size}; {far.max():.2f}; {np.sqrt((far**2).mean()):.2f}"


# -- the data ----


def annotated(source: Path, kept: Path) -> pl.DataFrame:
    """A file of notes through `leeward notes annotate`; the table it leaves with the custodian."""
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "release"
            subprocess.run(
                leeward("notes", "annotate", str(source), "-o", str(out), "--review", "0"), check=True
            )
            pl.read_parquet(out / "custody" / "table.parquet").write_parquet(kept)
    return pl.read_parquet(kept)


def synthetic_notes(folder: Path) -> pl.DataFrame:
    """2,867 made-up notes with the calendar month of the visit."""
    source = folder / "notes.parquet"
    kept = folder / "synthetic.parquet"
    if not kept.exists():
        flags = ("--patients", str(PATIENTS), "--notes", str(NOTES), "--seed", "1", "-o", str(source))
        subprocess.run(leeward("synth", "notes", *flags), check=True)
    found = annotated(source, kept)
    return found.select(
        "note", "patient", "terms", month=pl.col("visit_month").cast(pl.String).str.slice(-2).str.zfill(2)
    )


def mtsamples(data: Path, folder: Path) -> pl.DataFrame:
    """The MTSamples notes with assigned visit months."""
    source = folder / "mtsamples.csv"
    pl.read_csv(data / "mtsamples-medcat" / "pt_notes.csv.gz", infer_schema=False).select(
        note=pl.int_range(pl.len()), patient="subject_id", text="text"
    ).write_csv(source)
    found = annotated(source, folder / "mtsamples.parquet")
    months = (
        np.searchsorted(np.cumsum(SHARES), Randomness.of(1).stream("months").random(found.height)).clip(0, 11)
        + 1
    )
    return found.sort("note").select(
        "note", "patient", "terms", month=pl.Series(months).cast(pl.String).str.zfill(2)
    )


# -- the paper's figure ----


def figure_5(notes: pl.DataFrame, folder: Path, title: str, size: int | None) -> tuple[str, Index]:
    """The paper's table beside ours, on one table of notes; itemsets of at most `size` items."""
    index = index_table(notes, folder / "index").index
    frequent = frequent_itemsets(index, min(SUPPORTS), qids=["month"], unit="note", max_size=size)
    found = with_month(frequent, "month")
    share = [len(index.bitmap("month", month)) / index.rows for month in found.months]
    chosen = {support: found.at_least(support) for support in SUPPORTS}
    counts = {support: each.counts for support, each in chosen.items()}
    laplace, geometric = grid(counts, "laplace"), grid(counts, "geometric")
    baseline = [estimated_by_month(chosen[support], share) for support in SUPPORTS]
    terms = notes["terms"].list.len().mean()
    text = words.FIGURE.format(
        title=title,
        rows=index.rows,
        patients=index.patients,
        terms=terms,
        least=min(share),
        most=max(share),
        size="" if size is None else f" and at most {size} items",
        chosen=", ".join(f"{len(chosen[support]):,} at support {support}" for support in SUPPORTS),
        laplace=cells(
            "ε \\ support",
            [*zip(EPSILONS, laplace.measured.tolist(), strict=True), ("Month estimated", baseline)],
        ),
        expected=of_grid(laplace.expected),
        within=within(laplace),
        geometric=of_grid(geometric.measured),
        within_geometric=within(geometric),
        baseline=against_baseline(laplace, baseline),
    )
    return text, index


def against_baseline(found: Grid, baseline: Sequence[float]) -> str:
    """From which ε on the noisy counts are better than the month-estimated ones, by support."""
    better = []
    for j, support in enumerate(SUPPORTS):
        good = [epsilon for i, epsilon in enumerate(EPSILONS) if found.expected[i, j] < baseline[j]]
        better.append(f"{support}: " + (f"from {min(good)} on" if good else "at none of these ε"))
    return (
        "Noisy counts with the month beat the month-estimated baseline, by support: "
        + "; ".join(better)
        + "."
    )


# -- the mechanism that protects patients ----


def query_of(items: Sequence[Item]) -> Query:
    """An itemset as a query; a code means itself, without the codes below it."""
    predicates = tuple(Predicate(name, "equals", value) for name, value in items if name)
    return Query(tuple(f"{EXACT}{value}" for name, value in items if not name), predicates)


def scanned(rows: pl.DataFrame, query: Query) -> int:
    """The patients of a query by a scan of the rows themselves (`patient`, `terms`, quasi-identifiers), no index."""
    held = [pl.col("terms").list.contains(term.removeprefix(EXACT)) for term in query.terms]
    held += [pl.col(each.qid).str.to_lowercase() == each.low for each in query.predicates]
    return rows.filter(*held)["patient"].n_unique()


def safe(
    index: Index, table: pl.DataFrame, folder: Path, qid: str, title: str, rows: int | None, size: int
) -> str:
    """The same questions, answered with everybody protected: a patient counts once, nothing is gated."""
    frequent = frequent_itemsets(index, min(SUPPORTS), qids=[qid], unit="note", max_size=size)
    kept = [i for i in range(len(frequent)) if any(name == qid for name, _ in frequent[i])]
    queries = [query_of(frequent[i]) for i in kept]
    notes = frequent.supports[kept]
    patients = np.array([index.count(query, "patient") for query in queries], np.int64)
    if not len(queries) or not ((patients > 0) & (patients <= notes)).all():
        raise AssertionError(
            "every frequent itemset is in a row of some patient: counts from 1 to its support"
        )
    by_support = {support: notes >= support for support in SUPPORTS}
    first = grid({support: patients[chosen] for support, chosen in by_support.items()}, "geometric")
    of_notes = ""
    if rows is not None:
        second = grid({support: notes[chosen] for support, chosen in by_support.items()}, "geometric", rows)
        of_notes = words.NOTES.format(limit=rows, second=of_grid(second.measured), within=within(second))
    return words.SAFE.format(
        title=title,
        queries=len(queries),
        size=size,
        qid=qid,
        rows="notes" if rows is not None else "visits",
        first=of_grid(first.measured),
        within=within(first),
        notes=of_notes,
        path=charged_path(index, table, folder, queries),
    )


def charged_path(index: Index, table: pl.DataFrame, folder: Path, queries: Sequence[Query]) -> str:
    """Some of the questions through index, ledger, noise and store, compared with a scan of the table."""
    folded_rows = table.with_columns(pl.col("terms").list.eval(pl.element().str.to_lowercase()))
    order = Randomness.of(2).stream("questions").permutation(len(queries))[:ASKED]
    ledger = opening.make_ledger(folder)
    epsilon = micro("0.1")
    budget = Budget(epsilon=len(order) * epsilon)
    budgets.register(ledger, budgets.DataSet(id=index.meta.id, budget=budget, default_allotment="all"))
    session = open_session(folder)
    found = answer_all(session, [Question(query=queries[i], epsilon=epsilon) for i in order], "study")
    patients = {i: scanned(folded_rows, queries[i]) for i in order}
    if min(patients.values()) < 1:
        raise AssertionError("a question about a frequent itemset matches no row of the table")
    noise = np.array([float(each.values[0] or 0) - patients[i] for each, i in zip(found, order, strict=True)])
    plan = found[0].plan.noise
    expected = mechanism.mean_absolute_noise(plan)
    deviation = np.sqrt(mechanism.variance(plan) - expected**2) / np.sqrt(len(noise))
    audit = auditing.audit(ledger, index.meta.id)
    assert audit.passed
    return words.PATH.format(
        asked=len(order),
        error=np.abs(noise).mean(),
        expected=expected,
        distance=(np.abs(noise).mean() - expected) / deviation,
        half=found[0].half_width,
        covered=float(np.mean(np.abs(noise) <= found[0].half_width)),
        spent=audit.spent,
        total=audit.total,
        queries=len(queries),
        everything=len(queries) / 2,
    )


def uci(data: Path, folder: Path) -> str:
    """Patients of 130 hospitals: diagnosis codes as terms, the patient's gender as the quasi-identifier."""
    cohort = read(
        data / "uci-diabetes130" / "diabetic_data.csv.gz",
        columns={"patient": "patient_nbr", "visit": "encounter_id", "code": ["diag_1", "diag_2", "diag_3"]},
        vocabulary="icd9",
        missing=("?",),
    )
    people = (
        pl.read_csv(data / "uci-diabetes130" / "diabetic_data.csv.gz", columns=["patient_nbr", "gender"])
        .group_by("patient_nbr")
        .agg(pl.col("gender").first())
        .select(patient=pl.col("patient_nbr").cast(cohort.require_events()["patient"].dtype), gender="gender")
    )
    cohort = replace(cohort, patients=people)
    built = index_cohort(cohort, folder / "index", domains={"gender": ("female", "male")}, row="visit")
    rows = (
        cohort.require_events()
        .group_by("patient", "visit")
        .agg(terms=pl.col("code").cast(pl.String).unique())
        .join(people, on="patient", how="left")
    )
    return safe(built.index, rows, folder / "index", "gender", "the UCI cohort", None, 3)


# -- the page ----


def page(data: Path | None, kept: Path, command: str) -> str:
    """The whole study."""
    sections = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        studied: list[tuple[pl.DataFrame, str, int | None]] = [
            (synthetic_notes(kept), "2,867 made-up notes", None)
        ]
        if data is not None:
            # Many terms a note: without a limit millions of itemsets reach a support of 10.
            studied.append((mtsamples(data, kept), "MTSamples with assigned months", 3))
        for number, (notes, title, size) in enumerate(studied):
            place = folder / str(number)
            text, index = figure_5(notes, place, title, size)
            rows = int(notes["patient"].value_counts()["count"].to_numpy().max())
            sections += [text, safe(index, notes, place / "index", "month", title, rows, size or 4)]
        if data is not None:
            sections.append(uci(data, folder / "uci"))
    head = words.HEAD.format(
        machine=machine(),
        opendp=version("opendp"),
        commit=commit(),
        command=command,
        paper=cells("ε \\ support", list(PAPER.items())),
    )
    return ended("\n".join([head, *sections, words.TAIL]), "queries")


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path)
    arguments.add_argument("--out", type=Path, default=Path("docs/studies/queries.md"))
    arguments.add_argument("--tables", type=Path)
    given = arguments.parse_args()
    command = "python benchmarks/study_queries.py" + (" --data DIR" if given.data else "")
    with tempfile.TemporaryDirectory() as folder:
        kept = given.tables or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        text = page(given.data, kept, command)
    save(given.out, text)
    print(f"{given.out} written")


if __name__ == "__main__":
    main()
