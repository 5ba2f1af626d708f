"""Sections of docs/studies/queries.md: Figure 5 with seasons, a Safe Harbor release beside it, what a budget buys.

    python benchmarks/study_queries_seasons.py --parts seasons|safe-harbor|budgets

Notes are those of `leeward synth notes`, of several seeds, with conditions that follow their seasons and without. For
intervals over seeds the terms are the true ones; the Safe Harbor release is one of `leeward notes annotate`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import leeward, table, write_section
from index_itemsets import frequent_itemsets
from leeward.notes.lexicon.loaders import load
from leeward.queries.index.build import index_table
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import micro
from leeward.queries.privacy.mechanism import Noise
from leeward.synthetic.notes import NotePlan, synthetic_notes
from leeward.synthetic.notes.terms import SEASONS
from replication import MonthItemsets, estimated_by_month, with_month

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "queries.md"
BEFORE = "## What the published mechanism leaks, and what is done instead\n"
NOTES, PATIENTS, SEEDS = 2867, 1500, 10
SUPPORTS = (10, 20, 30, 40, 50)
STRENGTHS = (0.0, 1.0, 2.0, 4.0)
CLAIMED = 0.2
"""The ε from which the paper's counts are better than its Safe Harbor."""
EPSILONS = ("0.1", "0.2", "0.5", "1")
LEAST = 10
"""Notes that an itemset of the Safe Harbor table has at least."""
QUASI = ("month", "year", "age", "sex", "race", "place")
SHARED = ("start_date", "AGE", "SEX", "RACE")
"""What somebody may know of a patient and find in a Safe Harbor star, ZIP codes apart."""
BUDGETS = (1, 5, 20)

TITLES = {
    "seasons": "Figure 5 with seasons",
    "safe-harbor": "A Safe Harbor release beside it",
    "budgets": "What a budget buys",
}
SEASONED = """Conditions follow published seasons (`leeward synth notes --seasons 1`: influenza, bronchitis, pneumonia,
gastroenteritis and respiratory complaints in winter, rhinitis in June, stones in August); 0 is without, 2 and 4 raise
each ratio of peak to trough to this power. {seeds} seeds, {notes:,} notes of {patients:,} patients each, true terms;
mean ± standard deviation over seeds. *Seasonal*: itemsets with such a condition.

Month estimated, by the smallest support (the paper's: 0.510, 0.433, 0.436, 0.461, 0.436):

{errors}

Noisy counts with the month err by mean(1/n)/ε, so they are better from ε = mean(1/n) / month estimated on:

{breaks}

Seeds in which they are better at the paper's ε = {claimed}:

{wins}
"""
HARBOR = """What `leeward notes annotate --i2b2 safe-harbor` shares of the first seed with seasons, beside counts with
Laplace noise of scale 1/ε. One or two terms and one value of a quasi-identifier, in {least} notes or more. Safe
Harbor's count of a month or a place is the count without it times its share of the notes; the others are counted in the
release. ZIP codes of made-up notes are random, and none is that frequent.

{counts}

*From ε*: noisy counts err less. Safe Harbor is exact where it leaves a column, and gives no protection there: of
{known:,} patients with a note that states age, sex, race and year {unique:,} ({share:.0%}) are the only one with such
values; of {known_zips:,} whose note has a ZIP code too, with its three digits (`--zip3 hhs`), {zips:,}
({share_zips:.0%}). Whoever knows these of a patient reads all terms of the note.
"""
BUYS = """ε of 5 or 20 on this page is no recommendation: 200 questions at 0.1 are asked to see their mean error, and
that costs 20. *Half-width*: a count of patients plus or minus this holds the true one in 95 of 100. *Belief*: what
somebody who thinks it as likely as not that a patient is in the data, and knows everybody else, can come to believe at
most after one answer, e^ε/(1 + e^ε), and after the whole budget, as odds of e^ε to one.

{price}

{budget}
"""


# -- seasons ----


def true_table(seed: int, strength: float) -> pl.DataFrame:
    """Made-up notes with the terms that they assert, true ones, and the month of the visit."""
    rows = [
        {
            "note": number,
            "patient": note.patient,
            "terms": sorted({s.concept for s in note.annotated.spans if s.kind == "HMI" and s.asserted}),
            "month": f"{note.date.month:02}",
        }
        for number, note in enumerate(synthetic_notes(NotePlan(PATIENTS, NOTES, seed=seed, seasons=strength)))
    ]
    return pl.DataFrame(rows)


def of_seed(seed: int, strength: float, seasonal: frozenset[str], folder: Path) -> np.ndarray:
    """float[2, 2, supports]: of all and of seasonal itemsets, the month-estimated error and mean(1/n)."""
    index = index_table(true_table(seed, strength), folder).index
    frequent = frequent_itemsets(index, min(SUPPORTS), qids=["month"], unit="note")
    found = np.empty((2, 2, len(SUPPORTS)))
    for i, among in enumerate((None, seasonal)):
        itemsets = with_month(frequent, "month", among)
        share = [len(index.bitmap("month", month)) / index.rows for month in itemsets.months]
        for j, support in enumerate(SUPPORTS):
            chosen: MonthItemsets = itemsets.at_least(support)
            found[i, :, j] = estimated_by_month(chosen, share), np.mean(1 / chosen.counts)
    return found


def seasons() -> str:
    lexicon = load("leeward")
    seasonal = frozenset(each.id.lower() for name in SEASONS if (each := lexicon.find(name)) is not None)
    errors, breaks, wins = [], [], []
    for strength in STRENGTHS:
        with tempfile.TemporaryDirectory() as name:
            made = [of_seed(seed, strength, seasonal, Path(name) / str(seed)) for seed in range(1, SEEDS + 1)]
        found = np.array(made)  # seed, itemsets, figure, support
        for i, which in enumerate(("all", "seasonal")):
            head = [f"{strength:g}", which]
            estimated, inverse = found[:, i, 0], found[:, i, 1]
            errors.append([*head, *spread(estimated)])
            breaks.append([*head, *spread(inverse / estimated)])
            better = (inverse / CLAIMED < estimated).sum(axis=0)
            wins.append([*head, *(f"{count} of {SEEDS}" for count in better)])
    head = ["seasons", "itemsets", *map(str, SUPPORTS)]
    return SEASONED.format(
        seeds=SEEDS, notes=NOTES, patients=PATIENTS, claimed=CLAIMED,
        errors=table(head, errors), breaks=table(head, breaks), wins=table(head, wins),
    )  # fmt: skip


def spread(values: np.ndarray) -> list[str]:
    """Mean ± standard deviation over seeds, by support."""
    pairs = zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
    return [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in pairs]


# -- Safe Harbor ----


def safe_harbor() -> str:
    """The release itself, of notes with seasons."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, out = folder / "notes.parquet", folder / "release"
        made = ("--patients", str(PATIENTS), "--notes", str(NOTES), "--seasons", "1", "--seed", "1")
        subprocess.run(leeward("synth", "notes", *made, "-o", str(source)), check=True)
        shared = ("--i2b2", "safe-harbor", "--zip3", "hhs", "--seed", "1", "--review", "0")
        subprocess.run(leeward("notes", "annotate", str(source), "-o", str(out), *shared), check=True)
        whole = pl.read_parquet(out / "custody" / "table.parquet")
        facts = pl.read_csv(out / "share" / "i2b2" / "observation_fact.csv")
        return harbor_of(whole, facts, folder)


def harbor_of(whole: pl.DataFrame, facts: pl.DataFrame, folder: Path) -> str:
    """The section of a table of notes and the facts of its Safe Harbor star."""
    star = notes_of(facts)
    notes = whole.select(
        "note", "patient", "terms", "age", "sex", "race", "place",
        month=pl.col("visit_month").cast(pl.String).str.zfill(2), year="visit_year",
    ).with_columns(pl.col("age", "year").cast(pl.String))  # fmt: skip
    left = {name.lower(): name for name in ("AGE", "SEX", "RACE")} | {"year": "start_date"}
    rows = []
    for name in QUASI:
        asked = notes.select("note", "patient", "terms", each=name)
        index = index_table(asked, folder / name).index
        itemsets = with_month(frequent_itemsets(index, LEAST, qids=["each"], unit="note", max_size=3), "each")
        if not len(itemsets):
            continue
        if name in left:
            # The release's own column in place of the true one: what Safe Harbor took from it is missing there.
            told = star.select(pl.col("encounter_num").alias("note"), each=pl.col(left[name]))
            error = counted_error(
                asked.drop("each").join(told, on="note", how="left"), itemsets, folder / f"{name}-shared"
            )
        else:
            share = [len(index.bitmap("each", value)) / index.rows for value in itemsets.months]
            error = estimated_by_month(itemsets, share)
        inverse = float(np.mean(1 / itemsets.counts))
        noisy = [f"{inverse / float(epsilon):.3f}" for epsilon in EPSILONS]
        first = f"{inverse / error:.2f}" if error else "none"
        rows.append([name, f"{len(itemsets):,}", f"{error:.3f}", *noisy, first])
    head = ["quasi-identifier", "itemsets", "Safe Harbor", *(f"ε = {each}" for each in EPSILONS), "from ε"]
    (unique, known), (zips, known_zips) = (alone_in(star, [*SHARED, *more]) for more in ((), ("ZIP",)))
    return HARBOR.format(
        least=LEAST, counts=table(head, rows), unique=unique, known=known, share=unique / known,
        zips=zips, known_zips=known_zips, share_zips=zips / known_zips,
    )  # fmt: skip


def notes_of(facts: pl.DataFrame) -> pl.DataFrame:
    """A note a row again: its patient, year and what the star says of both; null where it says nothing."""
    key = ["encounter_num", "patient_num", "start_date"]
    said = facts.with_columns(
        pl.col("start_date").cast(pl.String).str.head(4).replace("1900", None),
        kind=pl.col("concept_cd").str.extract(r"^([A-Z]+):"),
        value=pl.col("concept_cd").str.extract(r"^[A-Z]+:(.*)$"),
    )
    values = said.filter(pl.col("kind") != "TERM").pivot(on="kind", index="encounter_num", values="value")
    return said.select(key).unique().join(values, on="encounter_num", how="left")


def counted_error(table: pl.DataFrame, itemsets: MonthItemsets, folder: Path) -> float:
    """Relative error of the same itemsets counted in another table of the notes."""
    index = index_table(table, folder).index
    again = with_month(frequent_itemsets(index, 1, qids=["each"], unit="note", max_size=3), "each")
    counts = dict(zip(again.held, again.counts.tolist(), strict=True))
    true = itemsets.counts
    found = np.array([counts.get(held, 0) for held in itemsets.held])
    return float(np.mean(np.abs(found - true) / true))


def alone_in(star: pl.DataFrame, columns: Sequence[str]) -> tuple[int, int]:
    """Patients with a note whose values no other patient has, and patients with a note that states all of them."""
    known = star.drop_nulls(list(columns))
    by = known.group_by(list(columns)).agg(pl.col("patient_num").unique())
    alone = by.filter(pl.col("patient_num").list.len() == 1)["patient_num"].explode(empty_as_null=True)
    return alone.n_unique(), known["patient_num"].n_unique()


# -- budgets ----


def budgets() -> str:
    prices = []
    for epsilon in ("0.05", "0.1", "0.2", "0.5", "1"):
        half = mechanism.half_width(Noise("geometric", micro(epsilon), 1), 0.95)
        value = float(epsilon)
        asked = [f"{round(total / value):,}" for total in BUDGETS]
        prices.append([epsilon, f"± {half:g}", *asked, f"{belief(value):.1%}"])
    wholes = [[total, f"{np.exp(total):,.1f} to 1"] for total in BUDGETS]
    head = ["ε an answer", "half-width", *(f"answers for {total}" for total in BUDGETS), "belief after one"]
    return BUYS.format(price=table(head, prices), budget=table(["budget", "belief after all"], wholes))


def belief(epsilon: float) -> float:
    return float(1 / (1 + np.exp(-epsilon)))


PARTS = {"seasons": seasons, "safe-harbor": safe_harbor, "budgets": budgets}


def put(part: str, body: str, page: Path = PAGE, *, title: str = "", command: str = "") -> None:
    """Write a section; a new one before what the mechanism leaks."""
    ours = f"python benchmarks/study_queries_seasons.py --parts {part}"
    write_section(part, title or TITLES[part], command or ours, body, page, before=BEFORE)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--parts", choices=PARTS, required=True)
    part = arguments.parse_args().parts
    put(part, PARTS[part]())


if __name__ == "__main__":
    main()
