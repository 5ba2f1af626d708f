"""Visits: what each level keeps of UCI, how long enforcement takes, PheWAS against statsmodels, and large inputs.

    python benchmarks/visits.py --data DIR
    python benchmarks/visits.py --data DIR --patients 1366786 --engines local,spark

DIR holds `uci-diabetes130/`, `pyphewas-synthetic/` and `vocab/`. Times are of this machine, as busy as it is.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.cohort.readers import read
from leeward.cohort.subset import restricted
from leeward.extraction import extract
from leeward.measure import phewas
from leeward.measure.phewas_phenotypes import Phenotypes, phenotypes_of
from leeward.protect.visits import Visits
from leeward.workflow import protect

K = 5
UCI = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
VARIANTS: dict[str, dict[str, Any]] = {
    "visit": {},
    "visit, relative": {"key": "relative"},
    "visit, generalize": {"enforce": "generalize"},
    "visit, merged visits": {"merge_visits": True},
    "containment": {"level": "containment", "merge_visits": True},
    "code": {"level": "code"},
}
PRIMARY = ("338.2", "340", "1011", "296.22", "530.11", "401", "041", "1009", "495")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--patients", type=int, help="also a synthetic population of so many patients")
    parser.add_argument("--engines", default="local", help="engines for the synthetic population")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        uci(options.data, place)
        planted(options.data)
        wide()
        if options.patients:
            large(options.patients, options.engines.split(","), place)


def uci(data: Path, place: Path) -> None:
    """Every level, verified; the time of the enforcement alone; an extract against the cohort anonymized alone."""
    everyone = read(data / "uci-diabetes130" / "diabetic_data.csv.gz", columns=UCI, missing=["?"])
    for name, parameters in VARIANTS.items():
        begun = time.perf_counter()
        result = protect(everyone, Visits(k=K, **parameters), place / f"uci-{name}", seed=1)
        took = time.perf_counter() - begun
        kept, method = result.measures["retention"], result.measures["method"]
        pairs = method["pairs"]
        print(
            f"UCI, k = {K}, {name}: DC {kept['dc']['released_local']:.1%}, CC {kept['cc']['released_local']:.1%}, "
            f"pairs exact {pairs['exact'] / pairs['original']:.1%}, in some form "
            f"{(pairs['exact'] + pairs['merged'] + pairs['above']) / pairs['original']:.1%}, emptied visits "
            f"{method['emptied_visits'] / method['visits']:.2%}; {len(result.verification.checks)} checks "
            f"{'passed' if result.verification.passed else 'FAILED'}; {took:.1f} s in all"
        )
    enforcement(everyone)
    chosen = everyone.visits().patients.sample(3_000, seed=1).sort()
    cohort = restricted(everyone, chosen)
    drawn = extract(place / "uci-visit", chosen, place / "drawn", original=cohort, seed=1).measures
    alone = protect(cohort, Visits(k=K), place / "alone", seed=1).measures
    shared = drawn["method"]["shared_by"]
    print(
        f"UCI, cohort of 3,000: drawn from the master DC {drawn['retention']['dc']['released_local']:.1%}, anonymized "
        f"alone {alone['retention']['dc']['released_local']:.1%}; in the extract {shared['few_share']:.1%} of visits "
        f"have a set of fewer than {K} members"
    )


def enforcement(everyone: Any) -> None:
    """The enforcement alone, with compiled kernels."""
    from leeward.protect.visits import enforce

    lens = everyone.visits()
    frequent = (
        np.bincount(
            lens.table().select("patient", "code").unique()["code"].to_numpy(), minlength=len(lens.codes)
        )
        >= K
    )
    kept = frequent[lens.values]
    offsets = np.concatenate([[0], np.cumsum(kept)])[lens.offsets].astype(np.int64)
    visits = enforce.VisitSets(lens.patient_offsets, offsets, lens.values[kept])
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        _, steps = enforce.enforce_visits(visits, len(lens.codes), K)
        times.append(time.perf_counter() - begun)
    print(f"UCI, enforcement: {steps:,} steps in {min(times):.2f} s (best of 3)")


def planted(data: Path) -> None:
    """The nine planted primary effects, against statsmodels one by one, and after anonymization."""
    import statsmodels.api as sm

    folder = data / "pyphewas-synthetic"
    people = pl.read_csv(folder / "group.csv").sort("id")
    events = pl.read_csv(folder / "icds.csv.gz", schema_overrides={"ICD_CODE": pl.String})
    maps = [
        str(data / "vocab" / name)
        for name in ("phecode_map_v1_2_icd9.csv.gz", "phecode_map_v1_2_icd10_beta.csv")
    ]
    mapping = phewas.mapping_of(maps, ignored=True)
    numbered = people.select("id").with_row_index("person").with_columns(pl.col("person").cast(pl.Int64))
    mentions = (
        events.with_row_index("visit").join(numbered, on="id").select("person", "visit", code="ICD_CODE")
    )
    phenotypes = phenotypes_of(mentions, people.height, mapping, ("icd9", "icd10"))
    covariates = ["Sex", "MaxAgeAtVisit"]
    found = phewas.scan(phenotypes, people, ["Dx"], covariates)
    worst = [0.0, 0.0]
    design = people.select("Dx", *covariates).to_numpy().astype(float)
    for row in found.drop_nulls("beta").iter_rows(named=True):
        p = phenotypes.names.index(row["phecode"])
        who = np.concatenate([phenotypes.cases(p), phenotypes.controls(p)])
        outcome = np.isin(who, phenotypes.cases(p)).astype(float)
        fit = sm.Logit(outcome, sm.add_constant(design[who])).fit(disp=0, tol=1e-12, maxiter=100)
        worst = [
            max(worst[0], abs(fit.params[1] - row["beta"])),
            max(worst[1], abs(fit.pvalues[1] / row["p"] - 1)),
        ]
    limit = 0.05 / found["p"].drop_nulls().len()
    hits = found.filter(pl.col("phecode").is_in(PRIMARY) & (pl.col("p") < limit)).height
    print(
        f"pyphewas-synthetic: {found['beta'].drop_nulls().len()} of {found.height} phecodes fitted; largest difference "
        f"from statsmodels: beta {worst[0]:.1e}, p {worst[1]:.1e} (relative); {hits} of {len(PRIMARY)} primary "
        "effects after Bonferroni"
    )
    strategies(events, people, maps, covariates)


def strategies(events: pl.DataFrame, people: pl.DataFrame, maps: list[str], covariates: list[str]) -> None:
    """Lost and false of a cohort of 3,000: drawn from the whole, from a biobank of some 5,800, and anonymized alone."""
    from dataclasses import replace

    frame = events.with_columns(vocabulary=pl.concat_str(pl.lit("icd"), "ICD_TYPE")).select(
        "vocabulary", patient="id", code="ICD_CODE", visit="AgeAtICD"
    )
    # Two codes of one age are one visit; the data have hardly any.
    columns = {"patient": "patient", "code": "code", "visit": "visit", "vocabulary": "vocabulary"}
    everyone = read(frame.with_columns(pl.col("visit").cast(pl.String)), columns=columns)
    attributes = people.select("Dx", *covariates, patient="id")
    options = {
        "predictors": ["Dx"],
        "covariates": covariates,
        "map": maps,
        "ignored": True,
        "test": "logistic",
    }
    wanted = ["retention", {"phewas": options}]
    chosen = everyone.visits().patients.sample(3_000, seed=1).sort()
    cohort = replace(
        restricted(everyone, chosen), patients=attributes.filter(pl.col("patient").is_in(chosen.implode()))
    )
    biobank = restricted(
        everyone, pl.concat([chosen, everyone.visits().patients.sample(4_000, seed=2)]).unique()
    )
    payload = ("Dx", *covariates)
    with tempfile.TemporaryDirectory() as made:
        for level in ("visit", "code"):
            method: dict[str, Any] = {"level": level, "policy": "none"}
            folder = Path(made) / level
            found = {}
            for name, people_there in (("population", everyone), ("biobank", biobank)):
                protect(people_there, Visits(k=K, **method), folder / name, seed=1, measures=["retention"])
                given: dict[str, Any] = {
                    "payload": attributes,
                    "original": cohort,
                    "measures": wanted,
                    "seed": 1,
                }
                drawn = extract(folder / name, chosen, folder / f"from-{name}", **given)
                found[f"drawn from the {name}"] = dict(drawn.measures)
            single = protect(
                cohort, Visits(k=K, payload=payload, **method), folder / "alone", seed=1, measures=wanted
            )
            found["anonymized alone"] = dict(single.measures)
            for name, figures in found.items():
                total = figures["phewas"]["totals"]["bonferroni"]
                print(
                    f"pyphewas-synthetic, cohort of 3,000 {name}, level {level}: of {total['original']} associations "
                    f"{total['lost']} lost, {total['false']} false; "
                    f"DC {figures['retention']['dc']['released_local']:.1%}"
                )


def wide(phecodes: int = 1_800, people: int = 105_000) -> None:
    """1,800 phecodes x 6 SNPs x 105,000 people, with sex and age in years; and with a covariate that is continuous."""
    draws = np.random.Generator(np.random.Philox(key=1))
    sizes = np.maximum(30, (people * 0.15 / np.arange(1, phecodes + 1) ** 0.7).astype(int))
    cases = [np.sort(draws.choice(people, size, replace=False)) for size in sizes]
    out = [draws.choice(people, 2_000, replace=False) for _ in sizes]
    out = [np.setdiff1d(o, c) for o, c in zip(out, cases, strict=True)]
    starts = [np.concatenate([[0], np.cumsum([len(e) for e in part])]) for part in (cases, out)]
    names = tuple(f"{place}" for place in range(phecodes))
    phenotypes = Phenotypes(names, people, starts[0], np.concatenate(cases), starts[1], np.concatenate(out))
    table = pl.DataFrame(
        {f"snp{n}": draws.binomial(2, 0.1 + 0.06 * n, people) for n in range(6)}
    ).with_columns(
        sex=pl.Series(draws.integers(0, 2, people)),
        age=pl.Series(draws.integers(18, 95, people)),
        component=pl.Series(draws.normal(size=people)),
    )
    snps = [f"snp{n}" for n in range(6)]
    threads = os.cpu_count() or 1
    phewas.scan(
        phenotypes, table.select(pl.all().head(people)), snps[:1], ["sex"], min_cases=people, threads=threads
    )
    for covariates, chosen in ((["sex", "age"], snps), (["sex", "age", "component"], snps)):
        begun = time.perf_counter()
        phewas.scan(phenotypes, table, chosen, covariates, min_cases=25, threads=threads)
        took = time.perf_counter() - begun
        print(
            f"PheWAS, {phecodes:,} phecodes x {len(chosen)} SNPs x {people:,} people, "
            f"{', '.join(covariates)}: {took:.1f} s"
        )


def large(patients: int, engines: list[str], place: Path) -> None:
    """The whole command on a synthetic population, in a process of its own."""
    from leeward.cohort.synthetic.visits import write_visits

    rows = write_visits(place / "population", patients, 1)
    sums = {}
    for engine in engines:
        out = place / f"large-{engine}"
        command = [
            str(Path(sys.executable).with_name("leeward")),
            "visits",
            str(place / "population" / "events.parquet"),
        ]
        command += ["--patient", "patient", "--code", "code", "--visit", "visit", "--vocabulary", "icd9"]
        command += ["--k", str(K), "--seed", "1", "--engine", engine, "-o", str(out)]
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - begun
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        sums[engine] = (out / "share" / "release.json").read_bytes()
        print(
            f"{patients:,} patients, {rows:,} rows, {engine}: {took:.0f} s, {memory:.1f} GiB (largest process so far)"
        )
    if len(sums) > 1:
        print("the engines' releases are", "equal" if len(set(sums.values())) == 1 else "DIFFERENT")


if __name__ == "__main__":
    main()
