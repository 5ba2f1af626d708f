"""What options cost that the papers propose or leave open, beside releases without them.

    python benchmarks/study_options.py --data DIR

The noise of the catalogue and of places cannot be seeded: another run gives other figures. Data as for
study_disassociation.py and study_condensation.py. Writes the page of the studies on options.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import commit, machine, save, table
from benchmarks.objections import ended

from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import frequent_queries, random_queries, relative_errors
from leeward.cohort import read
from leeward.cohort.cohort import Cohort
from leeward.errors import GuaranteeUnreachable
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import estimate_queries, published
from leeward.methods.trajectories import Trajectories
from leeward.queries.answer.catalogue import Catalogue, release_catalogue
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import Question, open_session
from leeward.queries.index.build import index_cohort
from leeward.queries.language.query import parse
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger.budgets import DataSet, register
from leeward.queries.ledger.opening import make_ledger
from leeward.queries.privacy.accounting import Budget, micro
from leeward.randomness import Randomness
from leeward.runs.protect import protect
from leeward.synthetic.trajectories import write_trajectories

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "options.md"
COHORTS = ("UCI (development)", "claims")
K, M = 5, 2
RECONSTRUCTIONS = 5
CAPS = (0.1, 0.5)
POLICIES = ("hierarchy:1", "hierarchy:2")
CATALOGUES = ("0.5", "1", "2")
LEAST = 0.01
"""Share of the patients from which on an itemset is one that a catalogue should list."""
ASKED = 50
WAYS: dict[str, dict[str, Any]] = {"default": {}, "draw: uniform": {"draw": "uniform"}}
REGISTRIES = ("rotterdam", "nafld1", "colon trial")
REPETITIONS = 5
HEAD = """# What options cost

What the papers propose or leave open: each option beside the release without it. k = {k}, m = {m} (condensation: K =
100).

{machine}. Commit {commit}. Command: `python benchmarks/study_options.py --data DIR`
"""
WORDS = {
    "disassociation": """## Disassociation

Average relative errors of sets that 1.25 % of the patients have (W1) and of random sets of one to three codes (W2).
`safe` solves the cover problem; *sensitive*: the tenth, twentieth … hundredth most frequent code, with L = 5 or 10;
*reconstructions*: the same questions counted on each of {times} data sets that the release could be of (Fig. 5), mean ±
standard deviation. One release each. UCI is a development set of the partitioning; claims are 30,000 made-up patients.
""",
    "constraints": """### COAT

COAT works as UGACLIP does, and names the utility constraints that lost more than a share of their occurrences, the cap.
Policy `hierarchy:1`: UCI has mostly one code in each category, so that a rare one can only be suppressed.
""",
    "condensation": """## Condensation

`balanced`, {times} releases each (seeds 0 to {last}). *Mean*, *median*: largest difference from the original's, in
standard deviations of the column; *sum*: largest relative error. *Models*: coefficients that changed significance /
direction / are outside the original 95 % interval, %, all models together. *draw*: how components are drawn (the
paper's is uniform). Rotterdam is a development set, the others are not.
""",
    "trajectories": """## Trajectories

{patients:,} made-up patients, clustering `alignment`. *usable*: source pairs published as a 3-digit code or below of at
most eight years. `policy`: which categories a recipient's plan needs (thesis, V.2); *sensitive*: ten codes, chosen as
above, never told with a confidence above 1/L (V.1).
""",
    "catalogue": """## Catalogue of itemsets

Sets of up to two codes in one differentially private catalogue (`leeward itemsets`, ten contributions a patient and
size), {times} times each, UCI. *Error*: mean relative error of listed counts; *nobody's*: listed, though no patient
has them. Errors of pairs come mostly from the bound of ten contributions and do not fall with ε.
""",
    "places": """## Places

Patients of UCI get made-up ZIP codes: 400 of one region (drawn with weights 1/rank). Questions of one of the ten
commonest codes in a place, those of true count 0 left out. *Patients*: median of the true counts. *Error*: mean of the
noise's size over the true count.
""",
}


def errors(true: Any, found: Any) -> float:
    return float(relative_errors(true, found).mean())


def on_reconstructions(out: Path, sets: Any, queries: Sequence[Any]) -> str:
    """The mean relative error of counts on each reconstructed data set."""
    true = supports_of(sets, queries)
    found = []
    for file in sorted(out.rglob("reconstructions/*.parquet")):
        rows = (
            pl.read_parquet(file, columns=["codes"])
            .with_row_index("record")
            .explode("codes", empty_as_null=False)
        )
        held = {code[0]: set(part["record"]) for code, part in rows.group_by("codes")}
        asked = [[held.get(sets.codes[c], set()) for c in query] for query in queries]
        found.append(errors(true, np.array([len(set.intersection(*each)) for each in asked], float)))
    return f"{np.mean(found):.4f} ± {np.std(found, ddof=1):.4f}"


def disassociation(cohorts: dict[str, Cohort], folder: Path) -> str:
    rows, coat = [], []
    for name, cohort in cohorts.items():
        sets = cohort.code_sets()
        frequent = frequent_queries(sets, 0.0125, None, 20_000).queries
        workloads = [
            frequent,
            [query for size in random_queries(sets, 1_000)[:3] for query in size],
        ]
        often = tuple(sets.codes[c] for c in np.argsort(-sets.supports(), kind="stable")[9:100:10])
        options: dict[str, dict[str, Any]] = {
            "default": {"reconstructions": RECONSTRUCTIONS},
            "safe": {"safe": True},
            "sensitive, L = 5": {"sensitive": often, "diversity": 5},
            "sensitive, L = 10": {"sensitive": often, "diversity": 10},
        }
        for option, given in options.items():
            out = folder / f"{name}-{option}"
            method = Disassociation(k=K, m=M, **given)
            try:
                kept = protect(cohort, method, out, seed=1, measures=["placement"]).measures
            except GuaranteeUnreachable:
                rows.append([name, option, *["no release: these codes are too frequent"] * 3])
                continue
            release = published.read(out)
            found = [
                errors(
                    supports_of(sets, each),
                    estimate_queries(release, sets, each, "occupancy").expected,
                )
                for each in workloads
            ]
            share = kept["placement"]["item_share"]
            rows.append([name, option, *(f"{each:.4f}" for each in found), f"{share:.1%}"])
            if given.get("reconstructions"):
                counted = (on_reconstructions(out, sets, each) for each in workloads)
                rows.append([name, "default, counted on reconstructions", *counted, "–"])
        for cap in CAPS:
            made = Constraints(algorithm="coat", k=K, m=M, policy="hierarchy:1", cap=cap)
            took = made.protect(cohort, randomness=Randomness.of(1)).custody
            above = f"{took['utility']['over_cap']:,} of {took['utility']['constraints']:,}"
            lost = f"{took['codes_suppressed']:,} of {took['codes']:,}"
            coat.append(
                [
                    name,
                    f"{cap:.0%}",
                    above,
                    lost,
                    f"{took['occurrences_suppressed_share']:.1%}",
                ]
            )
    head = ["cohort", "option", "W1", "W2", "occurrences in item chunks"]
    caps = [
        "cohort",
        "cap",
        "constraints above it",
        "codes suppressed",
        "occurrences suppressed",
    ]
    said = WORDS["disassociation"].format(times=RECONSTRUCTIONS)
    return "\n".join([said, table(head, rows), "", WORDS["constraints"], table(caps, coat), ""])


def trajectories(file: Path, folder: Path) -> str:
    cohort = read(file, vocabulary="icd9")
    events = cohort.require_events()
    codes = (
        events["code"].cast(pl.String).value_counts(sort=True).sort("count", "code", descending=[True, False])
    )
    sensitive = tuple(codes["code"][9:100:10])
    options: dict[str, dict[str, Any]] = {
        "default": {},
        **{f"policy {policy}": {"policy": policy} for policy in POLICIES},
        "sensitive, L = 5": {"sensitive": sensitive, "diversity": 5},
        "sensitive, L = 10": {"sensitive": sensitive, "diversity": 10},
    }
    rows = []
    for option, given in options.items():
        out = folder / f"trajectories-{option}"
        spanned = tuple(sorted(codes["code"]))
        method = Trajectories(k=K, clustering="alignment", ages="1-128", codes=spanned, **given)
        kept = protect(cohort, method, out, seed=1, measures=["loss", "usable"]).measures
        loss, usable = kept["loss"], kept["usable"]
        shares = [f"{usable[each]:.1%}" for each in ("usable", "root", "lost")]
        rows.append([option, f"{loss['ilm']:.3f}", f"{loss['alm']:.3f}", *shares])
    said = WORDS["trajectories"].format(patients=events["patient"].n_unique())
    return f"{said}\n{table(['option', 'ILM', 'ALM', 'usable', 'under the root code', 'lost'], rows)}\n"


def catalogue(cohort: Cohort, folder: Path) -> str:
    sets = cohort.code_sets()
    codes = Terms(tuple(sets.codes), name="codes")
    index = index_cohort(cohort, folder / "catalogue", terms=codes, row="patient").index
    number = {code.lower(): at for at, code in enumerate(sets.codes)}
    often = frequent_queries(sets, LEAST, 2, None).queries
    rows = []
    for epsilon in CATALOGUES:
        found: dict[int, list[list[float]]] = {1: [], 2: []}
        for _ in range(REPETITIONS):
            made = release_catalogue(index, Catalogue(epsilon=micro(epsilon)))
            listed = [np.array([number[code.lower()] for code in each]) for each in made["itemsets"]]
            true, noisy = supports_of(sets, listed), np.array(made["counts"], float)
            for size, kept in found.items():
                at = np.array([i for i, each in enumerate(listed) if len(each) == size], int)
                held = {frozenset(listed[i].tolist()) for i in at}
                hit = sum(frozenset(each.tolist()) in held for each in often if len(each) == size)
                wrong = errors(true[at], noisy[at]) if true[at].any() else np.nan  # of sets that somebody has
                kept.append([len(at), hit, wrong, (true[at] == 0).sum()])
        for size, kept in found.items():
            count, hits, _, nobody = np.array(kept).mean(axis=0)
            known = [wrong for _, _, wrong, _ in kept if not np.isnan(wrong)]
            of = sum(len(each) == size for each in often)
            rows.append(
                [
                    epsilon,
                    size,
                    f"{count:,.1f}",
                    f"{hits:,.1f} of {of:,}",
                    f"{np.mean(known):.3f}" if known else "–",
                    f"{nobody:.1f}",
                ]
            )
    head = ["ε", "codes", "listed", f"of those of {LEAST:.0%} of the patients", "error", "nobody's"]
    return f"{WORDS['catalogue'].format(times=REPETITIONS)}\n{table(head, rows)}\n"


def places(cohort: Cohort, folder: Path) -> str:
    """Questions of a code in a place, by how many digits of the ZIP code are asked for."""
    stream = np.random.default_rng(1)
    events = cohort.require_events()
    patients = events["patient"].unique().sort()
    zips = stream.choice(np.arange(12000, 13000), 400, replace=False)
    weight = 1 / np.arange(1, len(zips) + 1)
    lives = zips[stream.choice(len(zips), len(patients), p=weight / weight.sum())].astype(str)
    people = pl.DataFrame({"patient": patients, "zip": lives})
    out = folder / "places"
    index = index_cohort(replace(cohort, patients=people), out, row="patient").index
    budget = Budget(epsilon=micro("1000"))
    register(make_ledger(out), DataSet(id=index.meta.id, budget=budget, default_allotment="all"))
    session = open_session(out)
    often = events["code"].cast(pl.String).value_counts(sort=True)["code"].to_list()[:10]
    rows = []
    for digits in (5, 4, 3):
        areas = sorted({each[:digits] + "*" * (digits < 5) for each in people["zip"]})
        asked = [parse(f'="{code}"', zip=area) for code in often for area in areas]
        asked = [query for query in asked if index.count(query, "patient")]
        asked = [asked[i] for i in np.sort(stream.permutation(len(asked))[:ASKED])]
        true = np.array([index.count(query, "patient") for query in asked])
        for epsilon in ("0.1", "1"):
            questions = [Question(query=query, epsilon=micro(epsilon)) for query in asked]
            answers = [float(each.values[0] or 0) for each in answer_all(session, questions, "study")]
            wrong = np.abs(np.array(answers) - true) / true
            rows.append([digits, epsilon, len(asked), f"{np.median(true):,.0f}", f"{wrong.mean():.3f}"])
    head = ["digits asked for", "ε", "questions", "patients", "error"]
    return f"{WORDS['places']}\n{table(head, rows)}\n"


def condensation(sets: dict[str, Any]) -> str:
    from benchmarks import study_condensation as study

    rows = []
    for name, each in sets.items():
        original = each.cohort.table()
        models = study.Models(study.models_of(each.plan), original)
        for option, given in WAYS.items():
            moved, found = [], []
            for seed in range(REPETITIONS):
                made = study.protected(each, {"algorithm": "balanced", **given}, seed)
                frame = study.frame_of(made.tables, "table.parquet")
                found += models.compared(frame)
                moved.append(statistics_moved(original.frame, frame))
            means = np.array(moved).mean(axis=0)
            rows.append(
                [
                    name,
                    option,
                    f"{means[0]:.3f}",
                    f"{means[1]:.3f}",
                    f"{100 * means[2]:.1f} %",
                    study.percents([[each] for each in study.shares(found)]),
                ]
            )
    said = WORDS["condensation"].format(times=REPETITIONS, last=REPETITIONS - 1)
    return said + "\n" + table(["registry", "option", "mean", "median", "sum", "models"], rows) + "\n"


def statistics_moved(before: pl.DataFrame, after: pl.DataFrame) -> tuple[float, float, float]:
    """Largest differences of means and medians (in standard deviations) and of sums (relative) over the numbers."""
    found = []
    for name in before.columns:
        one, two = before[name], after[name]
        if one.dtype.is_numeric() and one.n_unique() > 10:
            spread, old, new = (
                float(one.std() or 1),
                one.cast(pl.Float64),
                two.cast(pl.Float64),
            )
            found.append(
                (
                    abs(float(new.mean() or 0) - float(old.mean() or 0)) / spread,
                    abs(float(new.median() or 0) - float(old.median() or 0)) / spread,
                    abs(float(new.sum()) / float(old.sum()) - 1),
                )
            )
    largest = np.array(found).max(axis=0)
    return float(largest[0]), float(largest[1]), float(largest[2])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from benchmarks import partitioning, study_condensation

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohorts = {
            shape: cohort for shape, cohort, _ in partitioning.shapes(data, folder) if shape in COHORTS
        }
        registries = study_condensation.sets(data)
        made = folder / "trajectories.parquet"
        write_trajectories(made, 10_000, seed=1)
        sections = [
            HEAD.format(k=K, m=M, machine=machine(), commit=commit()),
            disassociation(cohorts, folder),
            trajectories(made, folder),
            catalogue(cohorts[COHORTS[0]], folder),
            places(cohorts[COHORTS[0]], folder),
            condensation({each: registries[each]() for each in REGISTRIES}),
        ]
    save(PAGE, ended("\n".join(sections), "options"))


if __name__ == "__main__":
    main()
