"""Visits: what each level keeps of UCI, how long enforcement takes, PheWAS against statsmodels, and large inputs.

    python benchmarks/visits.py --data DIR
    python benchmarks/visits.py --data DIR --parts large --patients 1366786 --engines local,spark
    python benchmarks/visits.py --data DIR --parts large --population POPULATION  # made by `leeward synth visits`

DIR holds `uci-diabetes130/`, `pyphewas-synthetic/` and `vocab/`. Each part writes its page in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import leeward, measured, table, write_page
from leeward.analysis.phewas import associations as phewas
from leeward.analysis.phewas.phenotypes import Phenotypes, phenotypes_of
from leeward.cohort.readers import read
from leeward.methods.visits import Visits
from leeward.runs.extract import extract
from leeward.runs.protect import protect

K = 5
UCI = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
VARIANTS: dict[str, dict[str, Any]] = {
    "visit": {},
    "visit, key: relative": {"key": "relative"},
    "visit, policy: phecode, rescue": {"policy": "phecode", "rescue": True},
    "visit, enforce: generalize": {"enforce": "generalize"},
    "visit, merge_visits": {"merge_visits": True},
    "containment, merge_visits": {"level": "containment", "merge_visits": True},
    "code": {"level": "code"},
}
LEVELS: dict[str, dict[str, Any]] = {
    "code": {"level": "code"},
    "containment": {"level": "containment", "merge_visits": True},
    "visit": {},
}
PRIMARY = ("338.2", "340", "1011", "296.22", "530.11", "401", "041", "1009", "495")
SPARK = {"spark": {"master": "local[2]", "memory": "6g"}}


def main() -> None:
    """Measure, and write the sections."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--parts", default="uci,phewas,large")
    parser.add_argument("--patients", type=int, help="make a synthetic population of so many patients")
    parser.add_argument("--population", type=Path, help="take this one, made by `leeward synth visits`")
    parser.add_argument("--engines", default="local", help="engines for the synthetic population")
    options = parser.parse_args()
    parts = options.parts.split(",")
    command = "python benchmarks/visits.py --data DIR --parts"
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        if "uci" in parts:
            write_page("visits", "Visits: what is kept of UCI", f"{command} uci", uci(options.data, place))
        if "phewas" in parts:
            body = "\n\n".join([planted(options.data), strategies(options.data), wide()])
            write_page("phewas", "PheWAS", f"{command} phewas", body)
        if "large" in parts and (options.patients or options.population):
            source = options.population or place / "population"
            if options.population is None:
                from leeward.synthetic.visits import write_visits

                write_visits(source, options.patients, 1)
            said = f"--patients {options.patients}" if options.patients else "--population POPULATION"
            write_page(
                "visits-large",
                "Visits: a whole population",
                f"{command} large {said} --engines {options.engines}",
                large(source, options.engines.split(","), place),
            )


def uci(data: Path, place: Path) -> str:
    """Every level, verified; the time of the enforcement alone; an extract against the cohort anonymized alone."""
    everyone = read(data / "uci-diabetes130" / "diabetic_data.csv.gz", columns=UCI, missing=["?"])
    mapping = f"phecode:{data / 'vocab' / 'phecode_map_v1_2_icd9.csv.gz'}"
    rows = []
    for name, parameters in VARIANTS.items():
        given = {key: mapping if value == "phecode" else value for key, value in parameters.items()}
        begun = time.perf_counter()
        result = protect(everyone, Visits(k=K, **given), place / f"uci-{name}", seed=1)
        took = time.perf_counter() - begun
        kept, method = result.measures["retention"], result.measures["method"]
        dc, cc, pairs = kept["dc"], kept["cc"], method["pairs"]
        some = pairs["exact"] + pairs["merged"] + pairs["above"]
        rows.append(
            [
                name,
                f"{dc['released_local']:.1%}",
                f"{cc['released']} of {cc['original']} ({cc['released_local']:.2%})",
                f"{pairs['exact'] / pairs['original']:.1%}",
                f"{some / pairs['original']:.1%}",
                f"{method['emptied_visits'] / method['visits']:.2%}",
                f"{len(result.verification.checks)} {'passed' if result.verification.passed else 'FAILED'}",
                f"{took:.1f}",
            ]
        )
    head = [
        "level, options",
        "DC",
        "CC",
        "pairs as they were",
        "in some form",
        "emptied visits",
        "checks",
        "run, s",
    ]
    steps, seconds = enforcement(everyone)
    chosen = everyone.visits().patients.sample(3_000, seed=1).sort()
    cohort = everyone.restrict(chosen)
    drawn = extract(
        place / "uci-visit", chosen, place / "drawn", original=cohort, membership_is_secret="a study", seed=1
    ).measures
    alone = protect(cohort, Visits(k=K), place / "alone", seed=1).measures
    shared = drawn["method"]["shared_by"]
    return (
        f"{len(everyone.visits()):,} patients, {everyone.visits().n_visits:,} visits, k = {K}.\n\n"
        f"{table(head, rows)}\n\nEnforcement alone, level `visit`: {steps:,} steps in {seconds:.2f} s (best of 3).\n\n"
        f"A cohort of 3,000, level `visit`: drawn from the master DC {drawn['retention']['dc']['released_local']:.1%}, "
        f"anonymized alone {alone['retention']['dc']['released_local']:.1%}. In the extract "
        f"{shared['few_share']:.1%} of visits have a set that fewer than {K} of its members share."
    )


def enforcement(everyone: Any) -> tuple[int, float]:
    """Steps and seconds of the enforcement alone, with compiled kernels."""
    from leeward.methods.visits import enforce

    lens = everyone.visits()
    pairs = lens.table().select("patient", "code").unique()["code"].to_numpy()
    kept = (np.bincount(pairs, minlength=len(lens.codes)) >= K)[lens.values]
    offsets = np.concatenate([[0], np.cumsum(kept)])[lens.offsets].astype(np.int64)
    visits = enforce.VisitSets(lens.patient_offsets, offsets, lens.values[kept])
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        _, steps = enforce.enforce_visits(visits, len(lens.codes), K)
        times.append(time.perf_counter() - begun)
    return steps, min(times)


def maps_of(data: Path) -> list[str]:
    """The phecode maps of ICD-9 and ICD-10."""
    names = ("phecode_map_v1_2_icd9.csv.gz", "phecode_map_v1_2_icd10_beta.csv")
    return [str(data / "vocab" / name) for name in names]


COVARIATES = ["Sex", "MaxAgeAtVisit"]


def planted(data: Path) -> str:
    """The nine planted primary effects, against statsmodels one by one."""
    import statsmodels.api as sm

    folder = data / "pyphewas-synthetic"
    people = pl.read_csv(folder / "group.csv").sort("id")
    events = pl.read_csv(folder / "icds.csv.gz", schema_overrides={"ICD_CODE": pl.String})
    mapping = phewas.mapping_of(maps_of(data), ignored=True)
    numbered = people.select("id").with_row_index("person").with_columns(pl.col("person").cast(pl.Int64))
    mentions = (
        events.with_row_index("visit").join(numbered, on="id").select("person", "visit", code="ICD_CODE")
    )
    phenotypes = phenotypes_of(mentions, people.height, mapping, ("icd9", "icd10"))
    found = phewas.scan(phenotypes, people, ["Dx"], COVARIATES)
    worst = [0.0, 0.0]
    design = people.select("Dx", *COVARIATES).to_numpy().astype(float)
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
    why = found.filter(pl.col("beta").is_null()).group_by("regression").len().sort("regression").rows()
    left = ", ".join(f"{count} {name}" for name, count in why)
    return (
        f"pyphewas-synthetic ({people.height:,} people, {found.height} phecodes, covariates {', '.join(COVARIATES)}): "
        f"{found['beta'].drop_nulls().len()} phecodes have a regression ({left}: no finite coefficient exists there). "
        f"Largest difference from statsmodels run one by one: beta {worst[0]:.1e}, p {worst[1]:.1e} (relative). "
        f"{hits} of {len(PRIMARY)} planted primary effects are found after Bonferroni's correction."
    )


def strategies(data: Path) -> str:
    """Lost and false of a cohort of 3,000: drawn from the whole, from a biobank of some 5,800, and anonymized alone."""
    from dataclasses import replace

    folder = data / "pyphewas-synthetic"
    people = pl.read_csv(folder / "group.csv").sort("id")
    events = pl.read_csv(folder / "icds.csv.gz", schema_overrides={"ICD_CODE": pl.String})
    frame = events.with_columns(vocabulary=pl.concat_str(pl.lit("icd"), "ICD_TYPE")).select(
        "vocabulary", patient="id", code="ICD_CODE", visit="AgeAtICD"
    )
    # Two codes of one age are one visit; the data have hardly any.
    columns = {"patient": "patient", "code": "code", "visit": "visit", "vocabulary": "vocabulary"}
    everyone = read(frame.with_columns(pl.col("visit").cast(pl.String)), columns=columns)
    attributes = people.select("Dx", *COVARIATES, patient="id")
    options = {
        "predictors": ["Dx"],
        "covariates": COVARIATES,
        "map": maps_of(data),
        "ignored": True,
        "test": "logistic",
    }
    wanted = ["retention", {"phewas": options}]
    chosen = everyone.visits().patients.sample(3_000, seed=1).sort()
    members = attributes.filter(pl.col("patient").is_in(chosen.implode()))
    cohort = replace(everyone.restrict(chosen), patients=members)
    others = everyone.visits().patients.sample(4_000, seed=2)
    biobank = everyone.restrict(pl.concat([chosen, others]).unique())
    payload = ("Dx", *COVARIATES)
    rows = []
    with tempfile.TemporaryDirectory() as made:
        for level, parameters in LEVELS.items():
            method: dict[str, Any] = {**parameters, "policy": "none"}
            place = Path(made) / level
            place.mkdir()
            found = {}
            for name, people_there in (("population", everyone), ("biobank", biobank)):
                protect(people_there, Visits(k=K, **method), place / name, seed=1, measures=["retention"])
                given: dict[str, Any] = {
                    "payload": attributes,
                    "original": cohort,
                    "measures": wanted,
                    "seed": 1,
                }
                drawn = extract(
                    place / name, chosen, place / f"from-{name}", membership_is_secret="a study", **given
                )
                found[f"drawn from the {name}"] = drawn.measures
            single = protect(
                cohort, Visits(k=K, payload=payload, **method), place / "alone", seed=1, measures=wanted
            )
            found["anonymized alone"] = single.measures
            for name, figures in found.items():
                cells = []
                for rule in phewas.CORRECTIONS:
                    total = figures["phewas"]["totals"][rule]
                    cells.append(f"{total['original']} / {total['lost']} / {total['false']}")
                rows.append([level, name, f"{figures['retention']['dc']['released_local']:.1%}", *cells])
    head = [
        "level",
        "cohort of 3,000",
        "DC",
        *(f"{rule}: original / lost / false" for rule in ("p < 0.05", "Bonferroni", "FDR")),
    ]
    return f"pyphewas-synthetic, predictor Dx, logistic regression:\n\n{table(head, rows)}"


def wide(phecodes: int = 1_800, people: int = 105_000) -> str:
    """1,800 phecodes x 6 SNPs x 105,000 people, with sex and age in years; and with a covariate that is continuous."""
    draws = np.random.Generator(np.random.Philox(key=1))
    sizes = np.maximum(30, (people * 0.15 / np.arange(1, phecodes + 1) ** 0.7).astype(int))
    cases = [np.sort(draws.choice(people, size, replace=False)) for size in sizes]
    out = [draws.choice(people, 2_000, replace=False) for _ in sizes]
    out = [np.setdiff1d(o, c) for o, c in zip(out, cases, strict=True)]
    starts = [np.concatenate([[0], np.cumsum([len(e) for e in part])]) for part in (cases, out)]
    names = tuple(f"{place}" for place in range(phecodes))
    phenotypes = Phenotypes(names, people, starts[0], np.concatenate(cases), starts[1], np.concatenate(out))
    columns = pl.DataFrame(
        {f"snp{n}": draws.binomial(2, 0.1 + 0.06 * n, people) for n in range(6)}
    ).with_columns(
        sex=pl.Series(draws.integers(0, 2, people)),
        age=pl.Series(draws.integers(18, 95, people)),
        component=pl.Series(draws.normal(size=people)),
    )
    snps = [f"snp{n}" for n in range(6)]
    threads = os.cpu_count() or 1
    phewas.scan(phenotypes, columns, snps[:1], ["sex"], min_cases=people, threads=threads)
    rows = []
    for covariates in (["sex", "age"], ["sex", "age", "component"]):
        begun = time.perf_counter()
        phewas.scan(phenotypes, columns, snps, covariates, min_cases=25, threads=threads)
        rows.append([", ".join(covariates), f"{time.perf_counter() - begun:.1f}"])
    return (
        f"{phecodes:,} phecodes x {len(snps)} SNPs x {people:,} people, allelic test and logistic regression, "
        f"{threads} threads (`age` in whole years, `component` continuous: nobody shares a value):\n\n"
        + table(["covariates", "s"], rows)
    )


def large(source: Path, engines: list[str], place: Path) -> str:
    """The whole command on a synthetic population, in a process of its own."""
    rows, sums = [], {}
    for engine in engines:
        out, spec = place / f"large-{engine}", place / f"{engine}.json"
        settings = SPARK if engine == "spark" else engine
        spec.write_text(
            json.dumps(
                {
                    "source": {
                        "path": str(source.absolute() / "events.parquet"),
                        "columns": {"patient": "patient", "code": "code", "visit": "visit"},
                        "vocabulary": "icd9",
                    },
                    "method": {"name": "visits", "k": K},
                    "engine": settings,
                    "seed": 1,
                }
            )
        )
        run = measured(leeward("protect", str(spec), "-o", str(out)))
        files = sorted((out / "share" / "data").iterdir())
        sums[engine] = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        rows.append([engine, f"{run.wall:.0f}", f"{run.cpu:.0f}", f"{run.peak / 1024:.1f}"])
    counts = (
        pl.scan_parquet(source / "events.parquet")
        .select(pl.len(), pl.col("patient").n_unique())
        .collect()
        .row(0)
    )
    same = (
        "The engines' releases are equal, byte for byte." if len(set(sums.values())) == 1 else "They DIFFER."
    )
    return (
        f"{counts[1]:,} patients, {counts[0]:,} rows, k = {K}, level `visit`, from the file to the verified release "
        f"with report; `spark` is `{json.dumps(SPARK)}`, its memory that of the Python process.\n\n"
        f"{table(['engine', 'wall, s', 'processor, s', 'peak, GiB'], rows)}"
        + (f"\n\n{same}" if len(sums) > 1 else "")
    )


if __name__ == "__main__":
    main()
