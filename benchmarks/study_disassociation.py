"""Section 6 of the disassociation paper (Loukides et al. 2014) again, on a real and on a synthetic cohort.

    python benchmarks/study_disassociation.py --data DIR

DIR holds `uci-diabetes130/diabetic_data.csv.gz` (UCI, "Diabetes 130-US hospitals for years 1999-2008", CC BY 4.0). The
second cohort is made up, with the shape of INFORMS: 58,302 patients, 631 codes, 5.1 codes each. Everything is measured
on written releases. Writes `docs/studies/disassociation.md`, its plots and its figures (JSON).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis import generalized, policies
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
from leeward.methods.disassociation.measures import estimate_queries, published
from leeward.methods.disassociation.measures.estimates import matching
from leeward.randomness import Randomness
from leeward.release import write
from leeward.synthetic.codes import write_codes
from settled import method_of, settling
from study_disassociation_page import made_on, write_page

K, M = 5, 2
SEED = 2014
PRIOR, READING = "cubic", "subset"
POLICIES = ("hierarchy:1", "similarity:10", "frequency:0.0125")
"""Of Figs. 13 and 14."""

LEVELS = ("hierarchy:1", "hierarchy:2", "hierarchy:3")
SIMILAR = ("similarity:5", "similarity:10", "similarity:25", "similarity:100")
FREQUENT = ("frequency:0.00625", "frequency:0.0125", "frequency:0.025", "frequency:0.05")
SUPPORTS = (0.00625, 0.0125, 0.025, 0.05)
KS = (2, 5, 10, 15, 20, 25)
SIZES = tuple(range(2_500, 25_001, 2_500))
TOO_MANY = 20_000
"""Largest number of queries of a workload; more frequent itemsets are drawn evenly."""

Queries = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Study:
    """A cohort with its workloads and the releases made of it so far."""

    name: str
    cohort: Cohort
    folder: Path

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
        return random_queries(self.sets, 1_000)

    def policy(self, policy: str) -> list[list[str]]:
        """The codes of each utility constraint."""
        found = policies.constraints(policy, self.sets, self.cohort.vocabulary)
        return [[self.sets.codes[c] for c in members] for members in found.members()]


@dataclass(frozen=True)
class Dis:
    """A disassociated release, as its recipient estimates from it."""

    study: Study
    index: Any
    seconds: float

    def errors(self, queries: Queries) -> np.ndarray[Any, Any]:
        true = supports_of(self.study.sets, queries)
        return relative_errors(true, estimate_queries(self.index, self.study.sets, queries, PRIOR).expected)

    def mre(self, policy: str) -> dict[str, Any]:
        """Shares of the constraints whose MRE is small, with the prior in use and with `graded`."""
        constraints = self.study.policy(policy)
        true = np.asarray(matching_records(self.study.sets, constraints))
        found = {p: (true - matching(self.index, constraints, p)) / true for p in (PRIOR, "graded")}
        return {**shares_of(found[PRIOR]), "within_5_graded": shares_of(found["graded"])["within_5"]}


@dataclass(frozen=True)
class Gen:
    """A generalized release, as its recipient estimates from it."""

    study: Study
    release: generalized.Generalized
    seconds: float

    @cached_property
    def kept(self) -> np.ndarray[Any, Any]:
        """Which codes of the cohort are released."""
        return np.array([code in self.release.label_of for code in self.study.sets.codes])

    def on_kept(self, queries: Queries) -> Queries:
        """The queries about released codes only."""
        return [query for query in queries if self.kept[query].all()]

    def errors(self, queries: Queries, reading: str = READING) -> np.ndarray[Any, Any]:
        codes = self.study.sets.codes
        asked = [[codes[c] for c in query] for query in queries]
        true = supports_of(self.study.sets, queries)
        return relative_errors(true, generalized.counts(self.release, asked, reading).expected)

    @property
    def suppressed(self) -> int:
        return int((~self.kept).sum())


def made(study: Study, method: Any) -> tuple[Path, float]:
    """Write a release of the study's cohort; the seconds are those of protecting alone."""
    begin = time.perf_counter()
    anonymized = method.protect(study.cohort, randomness=Randomness.of(SEED))
    seconds = time.perf_counter() - begin
    out = Path(tempfile.mkdtemp(dir=study.folder)) / "release"
    write(anonymized, out)
    return out, seconds


def dis(study: Study, policy: str, k: int = K, m: int = M, partitioning: str = "settled") -> Dis:
    with settling(partitioning):
        out, seconds = made(study, method_of(partitioning, k, m=m, policy=policy))
    return Dis(study, published.read(out), seconds)


def gen(study: Study, algorithm: Any, policy: str | None, k: int = K, m: int = M) -> Gen:
    out, seconds = made(study, Constraints(algorithm=algorithm, k=k, m=m, policy=policy))
    return Gen(study, generalized.read(out), seconds)


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
        ours, paper = dis(study, policy), dis(study, policy, partitioning="paper")
        cba, ugaclip = gen(study, "cba", policy), gen(study, "ugaclip", policy)
        for support in SUPPORTS:
            queries = cba.on_kept(study.frequent[support])
            both = ugaclip.on_kept(queries)
            errors, theirs = ours.errors(queries), cba.errors(queries)
            yield {
                "policy": policy,
                "support": support,
                "all_queries": len(study.frequent[support]),
                "queries": len(queries),
                "dis": mean(errors),
                "dis_as_published": mean(paper.errors(queries)),
                "cba": mean(theirs),
                "cba_share": mean(cba.errors(queries, "share")),
                "ugaclip": mean(ugaclip.errors(queries)),
                "queries_both_keep": len(both),
                "dis_both": mean(ours.errors(both)),
                "cba_both": mean(cba.errors(both)),
                "ugaclip_both": mean(ugaclip.errors(both)),
                "ugaclip_both_share": mean(ugaclip.errors(both, "share")),
                "dis_all": mean(ours.errors(study.frequent[support])),
                "p": welch(errors, theirs),
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
                **{f"{a}_labels": len(each.release.members) for a, each in found.items()},
            }


def sizes(study: Study, policy: str = "frequency:0.0125") -> Iterator[dict[str, Any]]:
    """Fig. 15: the first 2,500 … 25,000 patients: ARE on W2, suppression, seconds."""
    for size in SIZES:
        part = Study(f"{study.name}, first {size:,}", first(study.cohort, size), study.folder)
        ours, cba = dis(part, policy), gen(part, "cba", policy)
        drawn = [query for queries in part.random for query in queries]
        kept = cba.on_kept(drawn)
        errors, theirs = ours.errors(kept), cba.errors(kept)
        yield {
            "patients": size,
            "codes": len(part.sets.codes),
            "queries": len(kept),
            "all_queries": len(drawn),
            "dis": mean(errors),
            "cba": mean(theirs),
            "dis_all": mean(ours.errors(drawn)),
            "cba_all": mean(cba.errors(drawn)),
            "p": welch(errors, theirs),
            "cba_suppressed": cba.suppressed,
            "dis_seconds": ours.seconds,
            "cba_seconds": cba.seconds,
        }


def query_sizes(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 16 and 17: W2 by query size, W1 by support, for every policy."""
    for policy in (*LEVELS, *SIMILAR, *FREQUENT):
        ours = dis(study, policy)
        yield {
            "policy": policy,
            "w2": {size: mean(ours.errors(queries)) for size, queries in enumerate(study.random, 1)},
            "w1": {str(s): mean(ours.errors(queries)) for s, queries in study.frequent.items()},
        }


def privacy_levels(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 18 and 22 to 24: k from 2 to 25."""
    for policy in ("hierarchy:1", "similarity:10", "frequency:0.00625", "frequency:0.025"):
        for k in KS:
            ours = dis(study, policy, k=k)
            drawn = [query for queries in study.random for query in queries]
            yield {
                "policy": policy,
                "k": k,
                "w1": mean(ours.errors(study.frequent[0.0125])),
                "w2": mean(ours.errors(drawn)),
                **{name: value for name, value in ours.mre(policy).items() if name != "intervals"},
            }


def matching_errors(study: Study) -> Iterator[dict[str, Any]]:
    """Figs. 19 to 21 (m = 2) and 25 (m = 5): MRE of every constraint by interval."""
    for policy in ("hierarchy:1", "similarity:5", "frequency:0.00625"):
        yield {"policy": policy, "m": 2, **dis(study, policy).mre(policy)}
    for policy in ("hierarchy:1", "similarity:10", "frequency:0.025"):
        yield {"policy": policy, "m": 5, **dis(study, policy, m=5).mre(policy)}


def shares_of(errors: np.ndarray[Any, Any]) -> dict[str, Any]:
    """How many errors lie in the paper's intervals."""
    rounded = np.round(errors, 12)
    return {
        "constraints": len(errors),
        "within_2_5": float((np.abs(rounded) <= 0.025).mean()),
        "within_5": float(((rounded >= -0.05) & (rounded < 0.05)).mean()),
        "smallest": float(rounded.min()),
        "largest": float(rounded.max()),
        "intervals": intervals(errors),
    }


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
            "dis": mean(dis(study, "hierarchy:1", k=k, m=m).errors(queries)),
        }


def risk(study: Study) -> Iterator[dict[str, Any]]:
    """Fig. 12: what m known codes tell, before anything is done."""
    for row in risk_before(study.sets, K, seed=SEED)["by_m"]:
        yield {
            "m": row["m"],
            "sets": row["sets"],
            "in_one": row["sets_in_one_record_share"],
            "below": row["sets_below_k_share"],
            "patients_unique": row["unique_share"],
            "patients_below": row["below_k_share"],
        }


FIGURES = {
    "risk": risk,
    "against": against_generalization,
    "suppression": suppression,
    "sizes": sizes,
    "query_sizes": query_sizes,
    "privacy": privacy_levels,
    "matching": matching_errors,
    "subtrees": subtrees,
}


# -- cohorts -------------------------------------------------------------------------------------------


def uci(data: Path) -> Cohort:
    """71,517 patients, ICD-9 codes of up to three diagnoses an encounter."""
    return read(
        data / "uci-diabetes130" / "diabetic_data.csv.gz",
        columns={"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"]},
        vocabulary="icd9",
        missing=("?",),
    )


def synthetic(folder: Path) -> Cohort:
    """The shape of INFORMS: 58,302 patients, 631 codes, 5.1 codes each."""
    path = folder / "codes.parquet"
    write_codes(path, 58_302, 631, 5.1, seed=SEED)
    return read(path, vocabulary="icd9")


def two_chapters(patients: int = 20_000) -> Cohort:
    """Forty common codes of two chapters, one to four a patient: no code is rare, so subtrees suffice."""
    codes = [f"{c}.{d}" for c in (401, 410, 414, 428, 486, 491, 493, 496) for d in range(5)]
    stream = Randomness.of(SEED).stream("two chapters")
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
    small = Study("warm-up", first(cohort, 2_000), folder)
    dis(small, "hierarchy:1", m=3)
    gen(small, "cba", "hierarchy:2", m=3)
    gen(small, "ugaclip", "hierarchy:2")


def run(data: Path, folder: Path, wanted: list[str]) -> dict[str, Any]:
    """Every figure of both cohorts."""
    found: dict[str, Any] = {"made": made_on()}
    for name, cohort in (("UCI", uci(data)), ("synthetic", synthetic(folder))):
        study = Study(name, cohort, folder)
        warm_up(cohort, folder)
        found[name] = {
            "patients": len(study.sets),
            "codes": len(study.sets.codes),
            "mean": float(study.sets.lengths().mean()),
        }
        for figure in wanted:
            begin = time.perf_counter()
            found[name][figure] = list(FIGURES[figure](study))
            print(f"{name}: {figure} {time.perf_counter() - begin:.0f} s", flush=True)
    study = Study("two chapters", two_chapters(), folder)
    found["two chapters"] = {"patients": len(study.sets), "codes": len(study.sets.codes)}
    found["two chapters"]["subtrees"] = list(subtrees(study))
    return found


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
    parser.add_argument("--page-only", action="store_true", help="write the page again from its JSON")
    chosen = parser.parse_args()
    figures = chosen.out / "disassociation" / "figures.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    if not chosen.page_only:
        with tempfile.TemporaryDirectory() as folder:
            found = run(chosen.data, Path(folder), list(FIGURES))
        figures.write_text(json.dumps(rounded(found), separators=(",", ":")) + "\n", encoding="utf-8")
    write_page(json.loads(figures.read_text(encoding="utf-8")), chosen.out)


if __name__ == "__main__":
    main()
