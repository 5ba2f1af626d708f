"""Section 6 of the disassociation paper (Loukides et al. 2014) again, on a real and on a synthetic cohort.

    python benchmarks/study_disassociation.py --data DIR [--done FILE]

DIR holds `uci-diabetes130/diabetic_data.csv.gz` (UCI, "Diabetes 130-US hospitals for years 1999-2008", CC BY 4.0). The
second cohort is made up, with the shape of INFORMS: 58,302 patients, 631 codes, 5.1 codes each. Everything is measured
on written releases, for three seeds: each makes the synthetic cohort anew, puts UCI's patients in another order, from
which the search of clusters starts, and draws W2. Writes `docs/studies/disassociation.md`, its plots and its figures
(JSON). `--done` keeps what was measured of each figure and seed, so that a run can be stopped and go on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

from common import half_of, once
from dp_histogram import histogram_errors
from leeward.analysis import generalized, policies, workloads
from leeward.analysis.itemsets import supports_of
from leeward.analysis.risk import risk_before
from leeward.analysis.workloads import (
    frequent_queries,
    intervals,
    matching_records,
    random_queries,
    relative_errors,
)
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import MRE_PRIOR, estimate_queries, published
from leeward.methods.disassociation.measures.estimates import DEFAULT, matching
from leeward.randomness import Randomness
from leeward.release import write
from leeward.synthetic.codes import write_codes
from study_disassociation_page import made_on, write_page

K, M = 5, 2
SEEDS = (2014, 2015, 2016)

CHAINS = 250
"""Random records a seed: W2 has as many sets of one code, and about 1,000 in all, as in the paper."""

PUBLISHED: dict[str, Any] = {"partitioning": "paper", "attacker": "operation"}
WAYS: dict[str, tuple[dict[str, Any], str]] = {"default": ({}, DEFAULT), "paper": (PUBLISHED, "one")}
"""Parameters of the release and the prior of its counts. The paper names no prior: `one` is what a release says at
least, that a code of an item chunk is in one record."""

BETWEEN: dict[str, dict[str, Any]] = {
    "paper": PUBLISHED,
    "paper, default attacker": {"partitioning": "paper"},
    "default, attacker `operation`": {"attacker": "operation"},
    "default": {},
}
PRIORS = ("one", DEFAULT, MRE_PRIOR)
READINGS = ("subset", "share")
"""Of a generalized code, the errors of the better one count."""

POLICIES = ("hierarchy:1", "similarity:10", "frequency:0.0125")
"""Of Figs. 13 and 14."""

LEVELS = ("hierarchy:1", "hierarchy:2", "hierarchy:3")
SIMILAR = ("similarity:5", "similarity:10", "similarity:25", "similarity:100")
FREQUENT = ("frequency:0.00625", "frequency:0.0125", "frequency:0.025", "frequency:0.05")
SUPPORTS = (0.00625, 0.0125, 0.025, 0.05)
KS = (2, 5, 10, 25)
SIZES = (2_500, 5_000, 10_000, 25_000)
EPSILONS = (1, 4, 16)
REPEAT = 7
"""Runs of which the median seconds are given."""

TOO_MANY = 20_000
"""Largest number of queries of a workload; more frequent itemsets are drawn evenly."""

Queries = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Study:
    """A cohort with its workloads and the releases made of it so far."""

    name: str
    cohort: Cohort
    folder: Path
    seed: int = SEEDS[0]
    releases: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def sets(self) -> Any:
        return self.cohort.code_sets()

    @cached_property
    def frequent(self) -> dict[float, Queries]:
        """W1 at each support."""
        return {s: frequent_queries(self.sets, s, None, TOO_MANY).queries for s in SUPPORTS}

    @cached_property
    def random(self) -> list[Queries]:
        """W2, sets of 1 … 5 codes."""
        with patch.object(workloads, "WORKLOAD_SEED", self.seed):  # not the queries by which `auto` chooses
            return random_queries(self.sets, CHAINS)

    @property
    def drawn(self) -> Queries:
        return [query for queries in self.random for query in queries]

    def policy(self, policy: str) -> list[list[str]]:
        """The codes of each utility constraint."""
        found = policies.constraints(policy, self.sets, self.cohort.vocabulary)
        return [[self.sets.codes[c] for c in members] for members in found.members()]


@dataclass(frozen=True)
class Dis:
    """A disassociated release, as its recipient estimates from it."""

    study: Study
    index: Any
    prior: str
    item_share: float

    def errors(self, queries: Queries, prior: str = "") -> np.ndarray[Any, Any]:
        true = supports_of(self.study.sets, queries)
        found = estimate_queries(self.index, self.study.sets, queries, prior or self.prior)
        return relative_errors(true, found.expected)

    def mre(self, policy: str, prior: str = "") -> dict[str, Any]:
        """Shares of the constraints whose MRE is small."""
        constraints = self.study.policy(policy)
        true = np.asarray(matching_records(self.study.sets, constraints))
        return shares_of((true - matching(self.index, constraints, prior or self.prior)) / true)


@dataclass(frozen=True)
class Gen:
    """A generalized release, as its recipient estimates from it."""

    study: Study
    release: generalized.Generalized

    @cached_property
    def kept(self) -> np.ndarray[Any, Any]:
        """Which codes of the cohort are released."""
        return np.array([code in self.release.label_of for code in self.study.sets.codes])

    def on_kept(self, queries: Queries) -> Queries:
        """The queries about released codes only."""
        return [query for query in queries if self.kept[query].all()]

    def errors(self, queries: Queries, reading: str = READINGS[0]) -> np.ndarray[Any, Any]:
        codes = self.study.sets.codes
        asked = [[codes[c] for c in query] for query in queries]
        true = supports_of(self.study.sets, queries)
        return relative_errors(true, generalized.counts(self.release, asked, reading).expected)

    @property
    def suppressed(self) -> int:
        return int((~self.kept).sum())


def made(study: Study, method: Any) -> tuple[Path, Any]:
    """Write a release of the study's cohort; its facts for the custodian."""
    anonymized = method.protect(study.cohort, randomness=Randomness.of(study.seed))
    out = Path(tempfile.mkdtemp(dir=study.folder)) / "release"
    write(anonymized, out)
    return out, anonymized.custody


def dis(study: Study, way: str, policy: str, k: int = K, m: int = M) -> Dis:
    given, prior = WAYS[way]
    return released(study, given, prior, policy, k, m)


def released(study: Study, given: dict[str, Any], prior: str, policy: str, k: int = K, m: int = M) -> Dis:
    key = (*given.items(), policy, k, m)
    if key not in study.releases:
        out, facts = made(study, Disassociation(k=k, m=m, policy=policy, **given))
        share = facts["item_occurrences"] / facts["occurrences"]
        study.releases[key] = Dis(study, published.read(out), prior, share)
    found: Dis = study.releases[key]
    return found


def gen(study: Study, algorithm: Any, policy: str | None, k: int = K, m: int = M) -> Gen:
    key = (algorithm, policy, k, m)
    if key not in study.releases:
        out, _ = made(study, Constraints(algorithm=algorithm, k=k, m=m, policy=policy))
        study.releases[key] = Gen(study, generalized.read(out))
    found: Gen = study.releases[key]
    return found


def mean(values: np.ndarray[Any, Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def welch(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    """p of Welch's t-test that two mean errors are equal."""
    from scipy.stats import ttest_ind

    if min(len(a), len(b)) < 2 or (a.std() == 0 and b.std() == 0):
        return None
    return float(ttest_ind(a, b, equal_var=False).pvalue)


# -- the figures ---------------------------------------------------------------------------------------


def against_generalization(study: Study) -> Iterator[dict[str, Any]]:
    """Fig. 13, and the levels that its text compares: ARE on W1 over codes that CBA keeps."""
    for policy in dict.fromkeys((*POLICIES, *LEVELS)):
        ours = {way: dis(study, way, policy) for way in WAYS}
        cba, ugaclip = gen(study, "cba", policy), gen(study, "ugaclip", policy)
        for support in SUPPORTS:
            queries = cba.on_kept(study.frequent[support])
            both = ugaclip.on_kept(queries)
            theirs = min((cba.errors(queries, reading) for reading in READINGS), key=np.sum)
            errors = {way: each.errors(queries) for way, each in ours.items()}
            yield {
                "policy": policy,
                "support": support,
                "all_queries": len(study.frequent[support]),
                "queries": len(queries),
                **{way: mean(each) for way, each in errors.items()},
                "cba": mean(theirs),
                **{f"p_{way}": welch(each, theirs) for way, each in errors.items()},
                "queries_both_keep": len(both),
                **{f"{way}_both": mean(each.errors(both)) for way, each in ours.items()},
                "ugaclip": mean(min((ugaclip.errors(both, reading) for reading in READINGS), key=np.sum)),
                **{f"{way}_all": mean(each.errors(study.frequent[support])) for way, each in ours.items()},
            }


def ratios(study: Study) -> Iterator[dict[str, Any]]:
    """The same, means over the four supports, and how many times larger the others' errors are."""
    rows = list(against_generalization(study))
    for policy in dict.fromkeys(row["policy"] for row in rows):
        each = [row for row in rows if row["policy"] == policy]
        columns = (*WAYS, "cba", *(f"{way}_both" for way in WAYS), "ugaclip")
        means = {column: average([row[column] for row in each]) for column in columns}
        yield {
            "policy": policy,
            **means,
            **{f"cba_by_{way}": means["cba"] / means[way] for way in WAYS},
            **{f"ugaclip_by_{way}": means["ugaclip"] / means[f"{way}_both"] for way in WAYS},
        }


def average(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def between(study: Study) -> Iterator[dict[str, Any]]:
    """From the paper's settings to the default, one at a time, each read with several priors."""
    for name, given in BETWEEN.items():
        release = released(study, given, DEFAULT, "hierarchy:1")
        yield {
            "settings": name,
            "item": release.item_share,
            **{f"w1_{p}": mean(release.errors(study.frequent[0.0125], p)) for p in PRIORS},
            **{f"w2_{p}": mean(release.errors(study.drawn, p)) for p in PRIORS},
            **{f"mre_{p}": release.mre("hierarchy:1", p)["within_5"] for p in PRIORS},
        }


def histogram(study: Study) -> Iterator[dict[str, Any]]:
    """Sets of one and two codes beside a differentially private histogram of all codes and pairs."""
    short = [query for query in study.frequent[0.00625] if len(query) <= 2]
    asked = {"W1, 0.625 %": short, "W2, 1 code": study.random[0], "W2, 2 codes": study.random[1]}
    for epsilon in EPSILONS:
        theirs = histogram_errors(study.sets, list(asked.values()), epsilon, study.seed)
        for (workload, queries), (error, cap) in zip(asked.items(), theirs, strict=True):
            yield {
                "workload": workload,
                "epsilon": str(epsilon),
                "queries": len(queries),
                **{way: mean(dis(study, way, "hierarchy:1").errors(queries)) for way in WAYS},
                "histogram": error,
                "cap": float(cap),
            }


def suppression(study: Study) -> Iterator[dict[str, Any]]:
    """Fig. 14: codes that generalization suppresses; disassociation suppresses none."""
    for policy in POLICIES:
        for m in (2, 3):
            found = {a: gen(study, a, policy, m=m) for a in ("cba", "ugaclip")}
            yield {
                "policy": policy,
                "m": m,
                "codes": len(study.sets.codes),
                **{algorithm: each.suppressed for algorithm, each in found.items()},
                **{f"{a}_share": each.suppressed / len(each.kept) for a, each in found.items()},
                **{f"{a}_labels": len(each.release.members) for a, each in found.items()},
            }


def sizes(study: Study, policy: str = "frequency:0.0125") -> Iterator[dict[str, Any]]:
    """Fig. 15(a) and (b): the first 2,500 … 25,000 patients: ARE on W2, suppression."""
    for size in SIZES:
        part = Study(f"{study.name}, first {size:,}", first(study.cohort, size), study.folder, study.seed)
        ours, cba = {way: dis(part, way, policy) for way in WAYS}, gen(part, "cba", policy)
        kept = cba.on_kept(part.drawn)
        theirs = cba.errors(kept)
        yield {
            "patients": size,
            "codes": len(part.sets.codes),
            "queries": len(kept),
            "all_queries": len(part.drawn),
            **{way: mean(each.errors(kept)) for way, each in ours.items()},
            "cba": mean(theirs),
            **{f"p_{way}": welch(each.errors(kept), theirs) for way, each in ours.items()},
            **{f"{way}_all": mean(each.errors(part.drawn)) for way, each in ours.items()},
            "cba_all": mean(cba.errors(part.drawn)),
            "cba_suppressed": cba.suppressed / len(cba.kept),
        }


def seconds(study: Study, policy: str = "frequency:0.0125") -> Iterator[dict[str, Any]]:
    """Fig. 15(c): processor seconds of protecting, the median of several runs in turn."""
    methods = {way: Disassociation(k=K, m=M, policy=policy, **given) for way, (given, _) in WAYS.items()}
    asked = {**methods, "cba": Constraints(algorithm="cba", k=K, m=M, policy=policy)}
    for size in SIZES:
        part = first(study.cohort, size)
        taken: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(REPEAT):
            for name, method in asked.items():
                begin = time.process_time()
                method.protect(part, randomness=Randomness.of(study.seed))
                taken[name].append(time.process_time() - begin)
        yield {"patients": size, **{name: statistics.median(each) for name, each in taken.items()}}


def query_sizes(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 16 and 17: W2 by query size, W1 by support, for every policy."""
    for policy in (*LEVELS, *SIMILAR, *FREQUENT):
        for way in WAYS:
            ours = dis(study, way, policy)
            yield {
                "policy": policy,
                "way": way,
                "w2": {str(size): mean(ours.errors(each)) for size, each in enumerate(study.random, 1)},
                "w1": {str(s): mean(ours.errors(queries)) for s, queries in study.frequent.items()},
            }


def privacy_levels(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 18 and 22 to 24: k from 2 to 25."""
    for policy in ("hierarchy:1", "similarity:10", "frequency:0.025"):
        for k in KS:
            for way in WAYS:
                ours = dis(study, way, policy, k=k)
                yield {
                    "policy": policy,
                    "k": k,
                    "way": way,
                    "w1": mean(ours.errors(study.frequent[0.0125])),
                    "w2": mean(ours.errors(study.drawn)),
                    **{name: share for name, share in ours.mre(policy).items() if name != "intervals"},
                }


def matching_errors(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 19 to 21 (m = 2) and 25 (m = 5): MRE of every constraint by interval."""
    asked = {2: ("hierarchy:1", "similarity:5", "frequency:0.00625")}
    asked[5] = ("hierarchy:1", "similarity:10", "frequency:0.025")
    for m, chosen in asked.items():
        for policy in chosen:
            for way in WAYS:
                yield {"policy": policy, "m": m, "way": way, **dis(study, way, policy, m=m).mre(policy)}


def shares_of(errors: np.ndarray[Any, Any]) -> dict[str, Any]:
    """How many errors lie in the paper's intervals."""
    rounded = np.round(errors, 12)
    return {
        "constraints": len(errors),
        "within_2_5": float((np.abs(rounded) <= 0.025).mean()),
        "within_5": float(((rounded >= -0.05) & (rounded < 0.05)).mean()),
        "smallest": float(rounded.min()),
        "largest": float(rounded.max()),
        "intervals": {interval(each): each["share"] for each in intervals(errors)},
    }


def interval(each: dict[str, Any]) -> str:
    low, high = (None if each[end] is None else f"{100 * each[end]:g}" for end in ("low", "high"))
    return f"< {high} %" if low is None else f"≥ {low} %" if high is None else f"{low} … {high} %"


def subtrees(study: Study) -> Iterator[dict[str, Any]]:
    """Apriori k^m: labels that full-subtree recoding leaves."""
    for k, m in ((2, 2), (5, 1), (5, 2), (5, 3), (25, 2)):
        found = gen(study, "apriori", None, k=k, m=m)
        queries = study.frequent[0.0125]
        yield {
            "k": k,
            "m": m,
            "codes": len(study.sets.codes),
            "labels": len(found.release.members),
            "largest_label": max(len(group) for group in found.release.members),
            "are": mean(found.errors(queries)),
            **{way: mean(dis(study, way, "hierarchy:1", k=k, m=m).errors(queries)) for way in WAYS},
        }


def risk(study: Study) -> Iterator[dict[str, Any]]:
    """Fig. 12: what m known codes tell, before anything is done."""
    for row in risk_before(study.sets, K, seed=study.seed)["by_m"]:
        yield {
            "m": row["m"],
            "sets": row["sets"],
            "in_one": row["sets_in_one_record_share"],
            "below": row["sets_below_k_share"],
            "patients_unique": row["unique_share"],
            "patients_below": row["below_k_share"],
        }


FIGURES: dict[str, tuple[Callable[[Study], Iterator[dict[str, Any]]], int]] = {
    "risk": (risk, 1),
    "against": (against_generalization, len(SEEDS)),
    "ratios": (ratios, len(SEEDS)),
    "between": (between, len(SEEDS)),
    "histogram": (histogram, len(SEEDS)),
    "suppression": (suppression, len(SEEDS)),
    "sizes": (sizes, len(SEEDS)),
    "seconds": (seconds, 1),
    "query_sizes": (query_sizes, len(SEEDS)),
    "privacy": (privacy_levels, len(SEEDS)),
    "matching": (matching_errors, len(SEEDS)),
    "subtrees": (subtrees, 1),
}
"""Each figure, and of how many seeds it is."""


def merged(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row of those of all seeds: means with half of their 95 % interval; of p the largest."""
    return {name: spread(name, [row[name] for row in rows]) for name in rows[0]}


def spread(name: str, values: Sequence[Any]) -> Any:
    if isinstance(values[0], dict):
        return merged(values)
    known = [value for value in values if value is not None]
    same = all(isinstance(value, int | str) and value == values[0] for value in values)
    if same or len(known) < 2:
        return known[0] if known else None
    return max(known) if name.startswith("p_") else [statistics.fmean(known), half_of(known)]


# -- cohorts -------------------------------------------------------------------------------------------


def uci(data: Path) -> Cohort:
    """71,517 patients, ICD-9 codes of up to three diagnoses an encounter."""
    return read(
        data / "uci-diabetes130" / "diabetic_data.csv.gz",
        columns={"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"]},
        vocabulary="icd9",
        missing=("?",),
    )


def shuffled(cohort: Cohort, seed: int) -> Cohort:
    """The same patients, numbered in another order."""
    events = cohort.require_events()
    patients = events["patient"].unique().sort()
    order = Randomness.of(seed).stream("order of patients").permutation(len(patients))
    numbers = pl.DataFrame({"patient": patients, "number": order})
    events = events.join(numbers, on="patient", maintain_order="left").with_columns(patient="number")
    return Cohort(events.drop("number").sort("patient", maintain_order=True), vocabulary=cohort.vocabulary)


def synthetic(folder: Path, seed: int) -> Cohort:
    """The shape of INFORMS: 58,302 patients, 631 codes, 5.1 codes each."""
    path = folder / "codes.parquet"
    write_codes(path, 58_302, 631, 5.1, seed=seed)
    return read(path, vocabulary="icd9")


def two_chapters(patients: int = 20_000) -> Cohort:
    """Forty common codes of two chapters, one to four a patient: no code is rare, so subtrees suffice."""
    codes = [f"{c}.{d}" for c in (401, 410, 414, 428, 486, 491, 493, 496) for d in range(5)]
    stream = Randomness.of(SEEDS[0]).stream("two chapters")
    weights = 1.0 / np.arange(1, len(codes) + 1)
    drawn = [
        stream.choice(len(codes), size, replace=False, p=weights / weights.sum())
        for size in stream.integers(1, 5, patients)
    ]
    patient = np.repeat(np.arange(patients), [len(d) for d in drawn])
    events = pl.DataFrame({"patient": patient, "code": np.array(codes)[np.concatenate(drawn)]})
    return Cohort(events.with_columns(pl.col("code").cast(pl.Enum(sorted(codes)))), vocabulary="icd9")


def first(cohort: Cohort, patients: int) -> Cohort:
    """The cohort's first patients, in the order of their identifiers."""
    events = cohort.require_events()
    ids = events["patient"].unique().sort()[:patients]
    return Cohort(events.filter(pl.col("patient").is_in(ids.implode())), vocabulary=cohort.vocabulary)


def warm_up(cohort: Cohort, folder: Path) -> None:
    """Compile the kernels before anything is timed."""
    small = Study("warm-up", first(cohort, 6_000), folder)
    for way in WAYS:
        dis(small, way, "hierarchy:1", m=3)
    gen(small, "cba", "hierarchy:2", m=3)


def run(data: Path, folder: Path, done: Path | None) -> dict[str, Any]:
    """Every figure of both cohorts."""
    found: dict[str, Any] = {"made": made_on()}
    real = uci(data)
    makers: dict[str, Callable[[int], Cohort]] = {
        "UCI": lambda seed: shuffled(real, seed),
        "synthetic": lambda seed: synthetic(folder, seed),
    }
    warm_up(real, folder)
    rows: dict[str, dict[str, list[Any]]] = {name: {figure: [] for figure in FIGURES} for name in makers}
    for number, seed in enumerate(SEEDS):
        for name, make in makers.items():
            study = Study(name, make(seed), folder, seed)
            found.setdefault(name, size_of(study))
            for figure, (measure, seeds) in FIGURES.items():
                if number < seeds:
                    begin = time.process_time()
                    key = f"{name}, {seed}, {figure}"
                    rows[name][figure].append(once(done, key, lambda: list(measure(study))))  # noqa: B023
                    print(f"{key}: {time.process_time() - begin:.0f} s", flush=True)
    for name, figures in rows.items():
        found[name] |= {
            figure: [merged(each) for each in zip(*seeds, strict=True)] for figure, seeds in figures.items()
        }
    study = Study("two chapters", two_chapters(), folder)
    found[study.name] = {**size_of(study), "subtrees": list(subtrees(study))}
    return found


def size_of(study: Study) -> dict[str, Any]:
    lengths = study.sets.lengths()
    return {"patients": len(study.sets), "codes": len(study.sets.codes), "mean": float(lengths.mean())}


def rounded(found: Any) -> Any:
    """Five significant digits: the file is for the page, not for further sums."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    if isinstance(found, list):
        return [rounded(value) for value in found]
    return float(f"{found:.5g}") if isinstance(found, float) else found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--out", type=Path, default=Path("docs/studies"), help="where the study is written")
    parser.add_argument("--done", type=Path, help="JSON file of what was measured so far")
    parser.add_argument("--page-only", action="store_true", help="write the page again from its JSON")
    chosen = parser.parse_args()
    figures = chosen.out / "disassociation" / "figures.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    if not chosen.page_only:
        with tempfile.TemporaryDirectory() as folder:
            found = run(chosen.data, Path(folder), chosen.done)
        figures.write_text(json.dumps(rounded(found), separators=(",", ":")) + "\n", encoding="utf-8")
    write_page(json.loads(figures.read_text(encoding="utf-8")), chosen.out)


if __name__ == "__main__":
    main()
