"""Twelve findings of an independent attack on commit 21e1ab0, tried again, and others: docs/studies/attacks.md.

    python benchmarks/attacks.py --data DIR [--only F1,F8,members,notes,queries,twice]

DIR holds `uci-diabetes130/diabetic_data.csv.gz` and `survival/`. The programs are those of tests/attacks/, which
read `share/` and the background knowledge.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import polars as pl
from tests.attacks import test_queries as asked
from tests.attacks.condensation import exact_time
from tests.attacks.notes import outside_the_list, residual
from tests.attacks.queries import Ask, averaging, differencing
from tests.attacks.test_censoring import candidates as people_above
from tests.attacks.twice import attack as intersected
from tests.attacks.visits import Codes, join
from tests.attacks.visits import attack as known_visits
from tests.queries.made import session_of

import leeward as lw
from common import commit, machine, table
from leeward.cohort.cohort import Cohort
from leeward.errors import LeewardError
from leeward.runs.extract import extract
from leeward.synthetic.notes.writing import NotePlan, synthetic_notes
from leeward.synthetic.visits import write_visits
from registries import load

DIAGNOSES = ["diag_1", "diag_2", "diag_3"]
Row = tuple[str, str]
RECORDS_LOOKED_UP = 300
"""Censored records whose candidates among known members are counted."""
DESKS = 5
"""Indexes that are asked, 40 targets each."""
VALUES = 50
"""Values of the column that rides along in two releases."""
SHORT = 4
"""Identities of fewer characters are in other words too."""


def uci(data: Path, *, visits: bool = False, vocabulary: str | None = None) -> Cohort:
    columns: dict[str, Any] = {"patient": "patient_nbr", "code": DIAGNOSES}
    if visits:
        columns["visit"] = "encounter_id"
    file = data / "uci-diabetes130" / "diabetic_data.csv.gz"
    return lw.read(file, columns=columns, missing=["?"], vocabulary=vocabulary)


def visits_of(cohort: Cohort, out: Path) -> dict[int, list[Codes]]:
    """Every source visit under its patient's record."""
    people = pl.read_parquet(out / "custody" / "data" / "patients.parquet").select("record", "patient")
    events = cohort.require_events().with_columns(pl.col("code").cast(pl.String))
    grouped = events.join(people, on="patient").group_by("record", "visit").agg(pl.col("code"))
    known: dict[int, list[Codes]] = defaultdict(list)
    for record, codes in grouped.select("record", "code").rows():
        known[record].append(frozenset(codes))
    return known


def shown_of_a_visit(data: Path, place: Path) -> list[Row]:
    """F1: source visits of which a record shows what fewer than k records show."""
    cohort = uci(data, visits=True)
    rows = []
    for name, options in (
        ("containment, merged", {"level": "containment", "merge_visits": True}),
        ("visit", {}),
        ("visit, merged", {"merge_visits": True}),
    ):
        out = place / f"f1-{name.replace(', ', '-')}"
        lw.protect(cohort, lw.Visits(k=5, **options), out, seed=1, measures=["tried"])
        found = known_visits(out / "share", visits_of(cohort, out), 5)
        words = (
            "excluded by the guarantee" if options else "open, as its guarantee says; the two others close it"
        )
        rows.append(
            (
                f"level {name}",
                f"{found.below_k:,} of {found.known:,} source visits are shown by fewer than 5 records ({words})",
            )
        )
    return rows


def exact_times(data: Path, place: Path) -> list[Row]:
    """F2: the exact time of the nearest row, at the least k that is taken and below."""
    rows = []
    for name in ("gbsg", "pbc"):
        registry = load(data, name)
        cohort = lw.read(registry.frame, format="table")
        for k in (2, 3, 5):
            out = place / f"f2-{name}-{k}"
            try:
                method = lw.Condensation(k=k, strata=(registry.event,), time=(registry.time,), rare="keep")
                lw.protect(cohort, method, out, seed=1, measures=["exact_times"])
            except LeewardError:
                rows.append((f"{name}, k = {k}", "refused"))
                continue
            released = pl.read_parquet(out / "share" / "data" / "table.parquet")
            found = exact_time(released, registry.frame, [registry.time], [registry.event])
            rows.append(
                (
                    f"{name}, k = {k}",
                    f"nearest row {found.nearest:.1%}, matching {found.matching:.1%} (1/k: {1 / k:.1%})",
                )
            )
    return rows


def candidates(data: Path, place: Path) -> list[Row]:
    """F8: candidates of known sets, by what the stated attacker knows and by what joint clusters tell, too."""
    cohort = uci(data, vocabulary="icd9")
    rows = []
    for name, options in (("default", {}), ("attacker: algorithm", {"attacker": "algorithm"})):
        out = place / f"f8-{len(rows)}"
        done = lw.protect(cohort, lw.Disassociation(k=5, m=2, **options), out, seed=1, measures=["risk"])
        after = done.measures["risk"]["after"]
        rows.append(
            (
                name,
                (
                    f"of {after['sets']:,} known sets {after['below_k']} have fewer than 5 candidates by what the"
                    f" stated attacker knows, {after['below_k_algorithm_known']} by joint clusters too"
                ),
            )
        )
    return rows


def joined_extracts(data: Path, place: Path) -> list[Row]:
    """F9: two cohorts of one master joined by their visits."""
    cohort = uci(data, visits=True)
    rows = []
    for name, options in (("level visit", {}), ("level visit, merged", {"merge_visits": True})):
        out = place / f"f9-{len(rows)}"
        lw.protect(cohort, lw.Visits(k=5, **options), out, seed=1, measures=["tried"])
        parts = []
        for code in ("250.01", "428"):
            holders = cohort.require_events().filter(pl.col("code").cast(pl.String) == code)["patient"]
            part = place / f"f9-{len(rows)}-{code}"
            extract(out, holders.unique().sort(), part, membership_is_secret="a benchmark")
            parts.append(part / "share")
        rows.append((name, f"{len(join(*parts)):,} records joined one to one"))
    return rows


def coarse_times(data: Path, place: Path) -> list[Row]:
    """F10: pairs of stratum and coarse time that name one group alone."""
    registry = load(data, "rotterdam")
    cohort = lw.read(registry.frame, format="table")
    rows = []
    for groups in (None, 2):
        method = lw.Condensation(
            k=10,
            strata=("death",),
            time=("dtime", "rtime"),
            rare="keep",
            coarsen_time=True,
            coarsen_groups=groups,
        )
        done = lw.protect(cohort, method, place / f"f10-{groups}", seed=1, measures=["coarse_times"])
        share = done.measures["coarse_times"]["one_group"]
        rows.append((f"coarsen_groups: {groups or 1}", f"{share:.1%} of the rows"))
    return rows


def membership(data: Path, place: Path) -> list[Row]:
    """F12: telling who is in the table."""
    registry = load(data, "rotterdam")
    cohort = lw.read(registry.frame, format="table")
    rows = []
    for k in (5, 10, 50):
        method = lw.Condensation(k=k, strata=("death",), time=("dtime", "rtime"), rare="keep")
        done = lw.protect(cohort, method, place / f"f12-{k}", seed=1, measures=["membership"])
        rows.append((f"k = {k}", f"area under the curve {done.measures['membership']['auc']:.2f}"))
    return rows


def known_members(data: Path, place: Path) -> list[Row]:
    """An attacker who knows that a person is in the release counts among the others in it, not in the population."""
    cohort = uci(data, visits=True)
    events = cohort.require_events().with_columns(pl.col("code").cast(pl.String))
    out, rows = place / "members", []
    lw.protect(cohort, lw.Visits(k=5), out, seed=1, measures=["tried"])
    patients = pl.read_parquet(out / "custody" / "data" / "patients.parquet")
    owners = patients.select("patient", master_record="record")
    for code in ("250.01", "428"):
        part = place / f"members-{code}"
        holders = events.filter(pl.col("code") == code)["patient"].unique().sort()
        extract(out, holders, part, membership_is_secret="a benchmark")
        records = pl.read_parquet(part / "custody" / "data" / "records.parquet").join(
            owners, on="master_record"
        )
        known: dict[int, list[Codes]] = defaultdict(list)
        grouped = events.join(records, on="patient").group_by("record", "visit").agg("code")
        for record, codes in grouped.select("record", "code").rows():
            known[record].append(frozenset(codes))
        found = known_visits(part / "share", known, 5)
        rows.append(
            (
                f"visits, level visit: the {len(holders):,} patients with {code} drawn from the master",
                f"{found.below_k:,} of {found.known:,} visits: fewer than 5 members show them; {found.alone:,}: one",
            )
        )
    some = events["patient"].unique().sort().sample(20_000, seed=1)
    sample = Cohort(
        events=cohort.require_events().filter(pl.col("patient").is_in(some.implode())), name="sample"
    )
    for scope in ("global", "record"):
        method = lw.Censoring(k=5, cap=3, scope=scope)
        done = lw.protect(
            sample, method, place / f"censored-{scope}", population=cohort, seed=1, measures=["tried"]
        )
        shown = pl.read_parquet(done.release.share / "data" / "records.parquet")["codes"].to_list()
        mentions = sample.require_events().unique(["patient", "visit", "code"])
        members = [
            Counter(codes)
            for codes in mentions.group_by("patient").agg(pl.col("code").cast(pl.String))["code"].to_list()
        ]
        full = [record for record in shown if record]
        chosen = pl.int_range(len(full), eager=True).sample(RECORDS_LOOKED_UP, seed=1).to_list()
        counts = [people_above(full[i], members) for i in chosen]
        rows.append(
            (
                f"censoring, scope {scope}: a sample of 20,000 of {events['patient'].n_unique():,}",
                (
                    f"{sum(n < 5 for n in counts) / len(counts):.1%} of {len(counts)} records with a code can be of "
                    f"fewer than 5 of the sample, {sum(n == 1 for n in counts) / len(counts):.1%} of one"
                ),
            )
        )
    return rows


def known_identities(_: Path, place: Path) -> list[Row]:
    """Names, dates and numbers of patients looked for in texts without identities."""
    made = [each.annotated for each in synthetic_notes(NotePlan(60, split="held-out", seed=1))]
    spans = {
        (text, span.category)
        for note in made
        for span in note.spans
        if span.kind == "EID" and len(text := note.text[span.start : span.end]) >= SHORT
    }
    known = {text for text, _ in spans}
    numbers = {text for text, category in spans if category not in ("name", "date", "age", "facility")}
    names = {text for text, category in spans if category == "name"}
    file = place / "notes.csv"
    texts = [note.text for note in made]
    pl.DataFrame({"patient": [f"p{i}" for i in range(len(texts))], "text": texts}).write_csv(file)
    rows = []
    for mode in ("removed", "surrogates"):
        out = place / f"notes-{mode}"
        lw.annotate(file, out, mode=mode, members=("rules", "dictionary"), seed=1)
        left = residual(out / "share", known)
        rows.append(
            (
                f"{len(made)} made-up notes (held-out templates; rules and dictionary), {mode}",
                (
                    f"{len(left & names)} of {len(names)} names, {len(left & numbers)} of {len(numbers)} numbers and "
                    f"contacts, {len(left - names - numbers)} of {len(known - names - numbers)} others are left"
                ),
            )
        )
        if mode == "surrogates":
            listed = outside_the_list(out / "share")
            shutil.copy(out / "custody" / "replacements.parquet", out / "share")
            names_left = len(outside_the_list(out / "share") or ())
            said = (
                "no list of surrogates is shared"
                if listed is None
                else f"{len(listed)} names outside the list"
            )
            rows.append(
                ("the same, telling real names from surrogates", f"{said} (with it: {names_left} real names)")
            )
    return rows


def charged_counts(_: Path, place: Path) -> list[Row]:
    """An attacker who knows everybody but one patient asks until it is known whether the patient is counted."""
    targets, epsilon = range(asked.TARGETS), asked.EPSILON
    desks = [
        asked.desk(session_of(asked.notes(), place / f"index-{n}", epsilon=1_000, terms=asked.TERMS, rows=1))
        for n in range(DESKS)
    ]

    def average(ask: Ask, times: int) -> float:
        return asked.right(
            [averaging(ask, "cough", "fever", {"zip": f"{10000 + t}"}, times) > 2.5 for t in targets]
        )

    def difference(ask: Ask) -> float:
        return asked.right(
            [differencing(ask, "cough", {"zip": f"{10000 + t}"}, "gender", ("f", "m"), 2) for t in targets]
        )

    def said(epsilon: float, shares: list[float]) -> str:
        most, n = asked.allowed(epsilon), len(targets) * DESKS
        return (
            f"{sum(shares) / DESKS:.0%} right; ε = {epsilon} was paid and allows {most:.0%} "
            f"(standard error {(most * (1 - most) / n) ** 0.5:.0%})"
        )

    return [
        (
            f"one question in four phrasings, {len(targets) * DESKS} targets",
            said(epsilon, [average(desk, 4) for desk in desks])
            + f"; fresh noise for each of 400 askings: {average(asked.weak(1), 400):.0%}",
        ),
        ("a count and its parts by sex", said(2 * epsilon, [difference(desk) for desk in desks])),
    ]


def anonymized_twice(_: Path, place: Path) -> list[Row]:
    """Two releases that hold the same made-up patients: what knowing one visit tells of a column that rides along."""
    write_visits(place / "twice", 10_000, seed=1)
    columns = {"patient": "patient", "code": "code", "visit": "visit"}
    everyone = lw.read(place / "twice" / "events.parquet", columns=columns, vocabulary="icd9")
    draws = np.random.Generator(np.random.Philox(key=1))
    ids = everyone.visits().patients.shuffle(seed=1)
    values = pl.DataFrame({"patient": ids, "value": draws.integers(0, VALUES, len(ids))})
    parts = {"one": ids.head(4_000).sort(), "two": ids.slice(2_000, 4_000).sort()}
    of = dict(values.rows())
    events = everyone.restrict(ids.slice(2_000, 2_000).sort()).require_events()
    visits = events.with_columns(pl.col("code").cast(pl.String)).group_by("patient", "visit").agg("code")
    known = [(of[patient], frozenset(codes)) for patient, codes in visits.select("patient", "code").rows()]
    rows = []
    for name, options in (
        ("visits apart", {}),
        ("visits merged", {"merge_visits": True}),
        ("containment, merged", {"level": "containment", "merge_visits": True}),
    ):
        for how in ("each anonymized by itself", "both drawn from one master"):
            outs = [place / f"twice-{len(rows)}-{part}" for part in parts]
            if how.startswith("both"):
                lw.protect(
                    everyone,
                    lw.Visits(k=5, **options),
                    place / f"twice-{len(rows)}",
                    seed=1,
                    measures=["risk"],
                )
            for out, chosen in zip(outs, parts.values(), strict=True):
                mine = values.filter(pl.col("patient").is_in(chosen.to_list()))
                if how.startswith("both"):
                    extract(
                        place / f"twice-{len(rows)}",
                        chosen,
                        out,
                        payload=mine,
                        membership_is_secret="a benchmark",
                    )
                else:
                    cohort = dataclasses.replace(everyone.restrict(chosen), patients=mine)
                    method = lw.Visits(k=5, payload=("value",), **options)
                    lw.protect(cohort, method, out, seed=1, measures=["risk"])
            found = intersected(*(out / "share" for out in outs), "value", known)
            said = ", ".join(
                f"{way}: {right / found.known:.1%} right, {single / found.known:.1%} for certain"
                for way, right, single in (
                    ("one release", found.right_alone, found.single_alone),
                    ("both", found.right, found.single),
                )
            )
            said += f" ({found.known:,} known visits; fewest candidates in a release: {found.fewest})"
            rows.append((f"{name}, {how}", said))
    return rows


FINDINGS: dict[str, tuple[str, Callable[[Path, Path], list[Row]]]] = {
    "F1": (
        "Visits, `containment --merge-visits`, UCI, k = 5",
        shown_of_a_visit,
    ),
    "F2": (
        "Condensation, `balanced`: the exact time of a patient whose other columns are known",
        exact_times,
    ),
    "F8": (
        "Disassociation against an attacker who knows the algorithm",
        candidates,
    ),
    "F9": (
        "Two extracts of one master, 250.01 and 428, UCI",
        joined_extracts,
    ),
    "F10": (
        "`coarsen_time`, rotterdam, k = 10: classes that are one group",
        coarse_times,
    ),
    "F12": (
        "Membership, rotterdam, half released",
        membership,
    ),
    "members": (
        "The attacker knows who is in the release (a limit that is stated)",
        known_members,
    ),
    "notes": (
        "Known identities in texts without identities",
        known_identities,
    ),
    "twice": (
        "One visit is known, and that the person is in two releases: a column of 50 values that rides along",
        anonymized_twice,
    ),
    "queries": ("Averaging and differencing of charged counts", charged_counts),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(FINDINGS))
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only.split(","):
            what, measure = FINDINGS[name]
            for number, (case, found) in enumerate(measure(given.data, Path(folder))):
                rows.append(
                    [
                        name if not number else "",
                        what if not number else "",
                        case,
                        found,
                    ]
                )
                print(*rows[-1], sep=" | ", flush=True)
    print(f"\n{machine()}; commit {commit()}\n")
    print(table(["", "finding", "case", "found"], rows))


if __name__ == "__main__":
    main()
