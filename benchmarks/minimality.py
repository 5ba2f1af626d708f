"""What the algorithm of every method but disassociation tells beyond the files: docs/studies/algorithm-known.md.

    python benchmarks/minimality.py --data DIR [--only small,exchange,owners]

small: all data of a few patients are anonymized, and those behind the same files counted
(tests/attacks/algorithm_known.py).
exchange: UCI patients. Of a patient some codes are known, of which the files hide one. A record that fits may be the
patient's for who knows the algorithm if the algorithm gives the same files where both patients' hidden codes (visits:
two visits) change places; records that look alike need no trial. Counted are known sets without k such records: at most
as many have fewer than k candidates.
owners: for who has everybody's full records, people who can be the owner of a record by the report of each scope.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import polars as pl
from tests.attacks import algorithm_known as small

import leeward as lw
from common import commit, machine, table
from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

K = 5
PATIENTS, SETS, TRIALS = 2_000, 100, 20
"""UCI patients of the exchanges; known sets that are drawn, and records that are tried for each."""
Data = dict[Any, list[frozenset[str]]]
"""Patient -> visits."""

WORLDS: dict[str, Callable[[], small.World]] = {
    **{
        f"constraints, {algorithm}, {' '.join(groups) or 'no'} group": (
            lambda a=algorithm, g=groups: small.generalized(a, groups=g)
        )
        for algorithm, groups in (
            ("cba", ()), ("cba", ("ab",)), ("ugaclip, coat", ()), ("ugaclip, coat", ("ab",)), ("apriori", ("ab",)),
        )
    },
    "visits, code": lambda: small.of_visits("code", False, small.patients_with_visits("ab", 2), 6, 3),
    "visits, visit": lambda: small.of_visits("visit", False, small.patients_with_visits("ab", 2), 6, 3),
    "visits, visit, merged": lambda: small.of_visits("visit", True, small.patients_with_visits("ab", 2), 6, 3),
    "visits, containment": lambda: small.of_visits("containment", True, small.patients_with_visits("ab", 2), 6, 3),
    "visits, codes, m = 2": lambda: small.of_visits("codes", False, small.patients_with_visits("abc", 1), 5, 2),
    **{f"linked, {view}": (lambda v=view: small.joined(v)) for view in (
        "patients+events", "patients+visits", "patients+visits+events", "patients+events+events",
    )},
    "trajectories, alignment": lambda: small.aged("alignment", small.single_pairs(["a1", "a2", "b1"], ["1", "2"])),
    "trajectories, cells": lambda: small.aged("cells", small.single_pairs(["a1", "a2", "b1"], ["1", "3"])),
    "k-anonymity": lambda: small.mean_groups(4, k=3),
    "condensation, balanced": lambda: small.condensed(),
}  # fmt: skip


def small_worlds() -> str:
    rows = []
    for name, world in WORLDS.items():
        found, k = small.tell(made := world()), made.k
        opened = f"{found.opened:,} of {found.shown:,}"
        rows.append(
            [
                name, f"{made.patients}, k = {k}", f"{found.sources:,}", f"{found.pieces:,}", found.below_k_files,
                found.below_k, found.alone, f"{found.likely:.2%}", found.above, f"{float(found.surest):.2f}",
                opened if name.startswith(("constraints", "trajectories", "k-")) else "–",
            ]
        )  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    heads = [
        "method",
        "patients",
        "data sets",
        "known sets in a release",
        "below k by the files",
        "by the algorithm",
    ]
    heads += ["one record", "chance of a set below k", "guess above 1/k", "surest", "records opened"]
    return table(heads, rows)


def small_samples() -> str:
    rows = []
    for k, people in ((2, 6), (3, 7)):
        for scope, old in (
            ("groups", True),
            ("groups", False),
            ("global", False),
            ("raise", False),
            ("record", False),
        ):
            found = [
                each
                for population in small.populations(people)
                for each in small.owners(scope, population, 3, k, frequent_listed=old)
            ]
            rows.append(
                [
                    f"{scope}{', frequent codes listed' if old else ''}", f"3 of {people}, k = {k}", f"{len(found):,}",
                    sum(contain < k for contain, *_ in found), sum(own < k for _, own, _ in found),
                    sum(own == 1 for _, own, _ in found), sum(best > Fraction(1, k) for *_, best in found),
                    f"{float(max(best for *_, best in found)):.2f}",
                ]
            )  # fmt: skip
    heads = ["censoring, scope", "sample", "records in a release", "below k by the files", "by the algorithm"]
    return table([*heads, "one owner", "guess above 1/k", "surest"], rows)


def uci(data: Path) -> pl.DataFrame:
    file = data / "uci-diabetes130" / "diabetic_data.csv.gz"
    columns = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
    events = lw.read(file, columns=columns, missing=["?"], vocabulary="icd9").require_events()
    return (
        events.select("patient", "visit", pl.col("code").cast(pl.String))
        .unique()
        .sort("patient", "visit", "code")
    )


def cohort_of(data: Data) -> Cohort:
    rows = [(p, f"{p}-{n}", c) for p, visits in data.items() for n, v in enumerate(visits) for c in sorted(v)]
    frame = pl.DataFrame(rows, schema=["patient", "visit", "code"], orient="row")
    return lw.read(frame, columns={"patient": "patient", "code": "code", "visit": "visit"}, vocabulary="icd9")


def frames(made: Anonymized) -> dict[str, pl.DataFrame]:
    return {
        f"{place}{each.path}": pl.DataFrame(pl.from_arrow(list(each.batches())))
        for place, tables in (("", made.tables), ("custody/", made.custody_tables))
        for each in tables
    }


class Exchange:
    """A method on some data: what each patient is released as, and whether exchanged data give the same files."""

    def __init__(self, method: Any, data: Data) -> None:
        self.method, self.data = method, data
        self.patients = sorted(data)
        found = self.frames(data)
        self.release = self.canonical(found)
        self.label_of = self.labels(found)
        self.codes = {p: frozenset().union(*visits) for p, visits in data.items()}
        self.records = self.records_of(found)
        self.shown = {p: frozenset().union(*record) for p, record in self.records.items()}

    def frames(self, data: Data) -> dict[str, pl.DataFrame]:
        return frames(self.method.protect(cohort_of(data), randomness=Randomness.of(1)))

    def canonical(self, found: Mapping[str, pl.DataFrame]) -> Any:
        rows = found.get("events.parquet", found.get("visits.parquet", found.get("records.parquet")))
        assert rows is not None
        names = [name for name in ("codes", "code") if name in rows.columns]
        held: dict[int, list[str]] = defaultdict(list)
        for record, codes in rows.select("record", *names).rows():
            held[record].append(str(codes))
        everybody = found.get("patients.parquet", found.get("records.parquet"))
        assert everybody is not None
        alike = Counter(tuple(sorted(each)) for each in held.values())
        return alike, everybody.height, found["codes.parquet"].rows()

    def labels(self, found: Mapping[str, pl.DataFrame]) -> dict[str, str]:
        """The label under which a code is shown, where it is."""
        if self.method.name == "constraints":
            rows = found["codes.parquet"].select("code", "members").rows()
            return {member: label for label, members in rows for member in members}
        if self.method.name == "visits":
            shown = frozenset().union(*found["visits.parquet"]["codes"].to_list())
            return {member: label for label in shown for member in label.split("|")}
        return {code: code for code in found["events.parquet"]["code"].unique()}

    def records_of(self, found: Mapping[str, pl.DataFrame]) -> dict[Any, tuple[frozenset[str], ...]]:
        """Each patient's record: the labels of each visit, or all in one set (an exchange of constraints keeps it)."""
        if self.method.name == "constraints":
            return {p: (self.image(held),) for p, held in self.codes.items()}
        if self.method.name == "visits":
            owner = dict(found["custody/patients.parquet"].select("record", "patient").rows())
            rows = found["visits.parquet"].select("record", "codes").rows()
        else:
            places = found["custody/records.parquet"].select("record", "place").rows()
            owner = {record: self.patients[place] for record, place in places}
            rows = found["events.parquet"].group_by("record").agg("code").select("record", "code").rows()
        held: dict[Any, list[frozenset[str]]] = {p: [] for p in self.patients}
        for record, codes in rows:
            held[owner[record]].append(frozenset(codes))
        return {p: tuple(sorted(each, key=sorted)) for p, each in held.items()}

    def image(self, known: Iterable[str]) -> frozenset[str]:
        return frozenset(self.label_of[c] for c in known if c in self.label_of)

    def hides(self, p: Any, known: frozenset[str]) -> bool:
        """Whether the patient's record leaves one of the codes out, or shows it under a label of several."""
        return any(self.label_of.get(code) != code or code not in self.shown[p] for code in known)

    def exchanged(self, p: Any, q: Any, known: frozenset[str]) -> Data:
        """The data where q has what is known of p, and the files look the same to who does not run the algorithm."""
        changed = dict(self.data)
        if self.method.name == "visits":
            at = next(n for n, visit in enumerate(self.data[p]) if known <= visit)
            mine, theirs = list(self.data[p]), list(self.data[q])
            part = self.image(mine[at]) & self.shown[q]
            to = next((n for n, v in enumerate(theirs) if self.image(v) & self.shown[q] == part), 0)
            if self.method.level in ("code", "codes"):  # the attacker does not know the whole visit
                hidden = {code for code in known if not self.image([code]) & self.shown[p]}
                to = next((n for n, v in enumerate(theirs) if known - hidden <= v), 0)
                mine[at], theirs[to] = mine[at] - hidden, theirs[to] | known
            else:
                mine[at], theirs[to] = theirs[to], mine[at]
            return changed | {p: mine, q: theirs}
        moved = {each: self.moving(each, known) for each in (p, q)}
        changed[p] = [(self.codes[p] - moved[p]) | moved[q]]
        changed[q] = [(self.codes[q] - moved[q]) | moved[p]]
        return changed

    def moving(self, p: Any, known: frozenset[str]) -> frozenset[str]:
        """What changes places of a patient: what is not shown, and what the labels of known codes stand for."""
        image = self.image(known)
        shown = {c for c in self.codes[p] if self.label_of.get(c) in self.shown[p]}
        return self.codes[p] - {c for c in shown if self.label_of[c] not in image}

    def candidates(self, p: Any, known: frozenset[str], order: Iterable[Any]) -> int:
        """Records that may be the patient's, counted until there are k or `TRIALS` were tried."""
        part = self.image(known) & self.shown[p]
        fitting = [q for q in order if q != p and part <= self.shown[q]]
        same = {q for q in fitting if self.records[q] == self.records[p]}
        found, tried = 1 + len(same), 0
        for q in fitting:
            if found >= K or tried >= TRIALS:
                break
            if q not in same:
                tried += 1
                found += self.may_be(p, q, known)
        return found

    def may_be(self, p: Any, q: Any, known: frozenset[str]) -> bool:
        """Whether the algorithm gives the same files where q has what is known, behind q's record."""
        made = self.frames(self.exchanged(p, q, known))
        return self.canonical(made) == self.release and self.records_of(made)[q] == self.records[q]


EXCHANGES: dict[str, Any] = {
    "constraints, ugaclip, hierarchy:1": lw.Constraints(k=K, m=2, algorithm="ugaclip", policy="hierarchy:1"),
    "constraints, cba, hierarchy:1": lw.Constraints(k=K, m=2, algorithm="cba", policy="hierarchy:1"),
    "constraints, ugaclip, no policy": lw.Constraints(k=K, m=2, algorithm="ugaclip"),
    "constraints, apriori": lw.Constraints(k=K, m=2, algorithm="apriori"),
    "visits, visit": lw.Visits(k=K),
    "visits, visit, merged": lw.Visits(k=K, merge_visits=True),
    "visits, containment": lw.Visits(k=K, level="containment", merge_visits=True),
    "visits, codes, m = 2": lw.Visits(k=K, level="codes", m=2),
    "visits, codes, m = 2, merged": lw.Visits(k=K, level="codes", m=2, merge_visits=True),
    "visits, code": lw.Visits(k=K, level="code"),
    "linked, patients+events": lw.Linked(k=K),
    "linked, patients+events+events": lw.Linked(k=K, views=("patients+events+events",)),
}


def known_of(method: Any, visits: list[frozenset[str]]) -> list[frozenset[str]]:
    """What an attacker of the guarantee may know of a patient."""
    if method.name == "visits" and method.level in ("visit", "containment"):
        return visits
    held = visits if method.name == "visits" else [frozenset().union(*visits)]
    one = (method.name == "visits" and method.level == "code") or getattr(method, "views", None) == (
        "patients+events",
    )
    sizes = (1,) if one else (1, 2)
    return [frozenset(s) for each in held for n in sizes for s in combinations(sorted(each), n)]


def exchanges(data: Path) -> str:
    events, rows = uci(data), []
    ids = events["patient"].unique().sort().sample(PATIENTS, seed=1)
    chosen: Data = defaultdict(list)
    for patient, _, codes in (
        events.filter(pl.col("patient").is_in(ids.implode()))
        .group_by("patient", "visit", maintain_order=True)
        .agg("code")
    ).rows():
        chosen[patient].append(frozenset(codes))
    for name, method in EXCHANGES.items():
        whole = {p: [frozenset().union(*visits)] for p, visits in chosen.items()}
        run = Exchange(method, dict(chosen) if method.name == "visits" else whole)
        draws = np.random.Generator(np.random.Philox(key=1))
        every = [(p, known) for p in run.patients for known in known_of(method, run.data[p])]
        hidden = [(p, known) for p, known in every if run.hides(p, known)]
        drawn = [hidden[i] for i in sorted(draws.permutation(len(hidden))[:SETS].tolist())]
        short = alone = 0
        for p, known in drawn:
            count = run.candidates(p, known, [run.patients[i] for i in draws.permutation(len(run.patients))])
            short += count < K
            alone += count == 1
        rows.append([name, f"{len(every):,}", f"{len(hidden):,}", len(drawn), short, alone])
        print(*rows[-1], sep=" | ", flush=True)
    heads = [
        "method",
        "known sets",
        "with a hidden code",
        "drawn",
        f"fewer than {K} found",
        "none but the own",
    ]
    return table(heads, rows)


def consistent_owners(data: Path) -> str:
    """Censoring, UCI: a sample of 5,000 of 20,000."""
    events, rows = uci(data), []
    ids = events["patient"].unique().sort().sample(20_000, seed=1)
    everybody = events.filter(pl.col("patient").is_in(ids.implode()))
    sample = everybody.filter(pl.col("patient").is_in(ids.head(5_000).implode()))
    read = lambda part: lw.read(part, columns={"patient": "patient", "code": "code", "visit": "visit"})  # noqa: E731
    for scope in ("groups", "global", "raise", "record"):
        method = lw.Censoring(k=K, cap=3, scope=scope)  # type: ignore[arg-type]  # one of the scopes
        with tempfile.TemporaryDirectory() as folder:
            done = lw.protect(
                read(sample),
                method,
                Path(folder) / "out",
                population=read(everybody),
                seed=1,
                measures=["attack"],
            )
            found = done.measures["attack"]
            rows.append(
                [
                    scope,
                    f"{found['records']:,}",
                    f"{found['below_k']:.1%}",
                    f"{found['pinned_down']:.1%}",
                    found["smallest"],
                ]
            )
            print(*rows[-1], sep=" | ", flush=True)
    return table(["scope", "records", f"fewer than {K} owners", "one", "fewest"], rows)


PARTS: dict[str, Callable[[Path], str]] = {
    "small": lambda _: small_worlds() + "\n\n" + small_samples(),
    "exchange": exchanges,
    "owners": consistent_owners,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(PARTS))
    given = parser.parse_args()
    pages = [PARTS[part](given.data) for part in given.only.split(",")]
    print(f"\n{machine()}; commit {commit()}\n\n" + "\n\n".join(pages))


if __name__ == "__main__":
    main()
