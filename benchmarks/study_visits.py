"""Does PheWAS survive? Repeats the comparison of Heatherly et al. (2013) on real and on synthetic data.

    python benchmarks/study_visits.py --data DIR                          # UCI, with simulated SNPs
    python benchmarks/study_visits.py --data DIR --patients 1366786       # and a synthetic population of that size
    python benchmarks/study_visits.py --data DIR --population POPULATION  # one that `leeward synth visits` has made
    python benchmarks/study_visits.py --data DIR --parts enriched --patients 1366786
    python benchmarks/study_visits.py --data DIR --parts containment --sizes 50000,200000

DIR holds `uci-diabetes130/diabetic_data.csv.gz` and `vocab/phecode_map_v1_2_icd9.csv.gz`. Writes its sections of
docs/studies/visits.md and the plots beside it; `--keep FOLDER` keeps the releases with their reports, and takes those
that are there already.

Strategies: a cohort drawn from the anonymized population, drawn from an anonymized biobank (synthetic data), and
anonymized alone. `enriched`: a cohort of which half has a code of the traits under study, beside the present one;
`containment`: that level on growing populations. Associations: allelic test, at least 25 cases, in the cohort's
original data and in each release.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import once as kept_once
from common import save, taken_by
from leeward.analysis.phewas import associations as phewas
from leeward.analysis.phewas.phenotypes import phenotypes_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.visits import Visits
from leeward.methods.visits.measures import mentions_of
from leeward.runs.extract import extract
from leeward.runs.protect import Result, protect
from leeward.synthetic.visits import SNPS, TRAITS, write_visits
from study_visits_plots import draw

K = 5
LEVELS: dict[str, dict[str, Any]] = {
    "code": {"level": "code"},
    "containment": {"level": "containment", "merge_visits": True},
    "visit": {"level": "visit"},
}
UCI_COLUMNS = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
COHORT = 3_000
PLANTED = 3
"""Phecodes that each simulated SNP is associated with."""
RULES = {"p05": "p < 0.05", "bonferroni": "Bonferroni", "fdr": "FDR 5 %"}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "visits.md"
BEFORE = "## What each level keeps\n"
"""Further parts are put before this heading."""
FURTHER = {
    "enriched": """## A cohort enriched for the phenotypes under study

The paper's study cohort was chosen for its phenotypes; the one above prefers patients with many visits. Here is one of
as many patients of the same biobank, of whom half have a code of one of the eight traits with planted effects (drawn
among those who have one) and half have none, beside the present one; both drawn from the anonymized biobank and
anonymized alone.
""",
    "containment": """## Level `containment` on larger populations

Populations of `leeward synth visits`, seed 1, k = 5, merged visits; processor seconds of protecting, measuring and
verifying, without reading.
""",
}


def main() -> None:
    """Run the parts, write their sections."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--parts", default="uci,synthetic", help="which to run")
    parser.add_argument("--patients", type=int, help="make a synthetic population of so many patients")
    parser.add_argument("--population", type=Path, help="take this one, made by `leeward synth visits`")
    parser.add_argument("--draws", type=int, default=3, help="cohorts and sets of SNPs drawn from UCI")
    parser.add_argument("--levels", default="code,containment,visit")
    parser.add_argument("--sizes", default="50000,200000", help="populations of the part `containment`")
    parser.add_argument(
        "--biobank-only",
        default="",
        help="levels at which the synthetic population is not anonymized as a whole",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the releases and reports")
    options = parser.parse_args()
    levels, parts = options.levels.split(","), options.parts.split(",")
    mapping = options.data / "vocab" / "phecode_map_v1_2_icd9.csv.gz"
    with folder(options.keep) as place:
        if "uci" in parts:
            section(
                "uci",
                f"--parts uci --draws {options.draws}",
                uci(options.data, mapping, levels, options.draws, options.seed, place),
            )
        if "containment" in parts:
            sizes = [int(size) for size in options.sizes.split(",")]
            said = f"--parts containment --sizes {options.sizes}"
            section("containment", said, containment(sizes, options.seed, place))
        if not options.patients and not options.population:
            return
        source = options.population or place / "population"
        if options.population is None and {"synthetic", "enriched"} & {*parts}:
            write_visits(source, options.patients, options.seed)
        if "enriched" in parts:
            said = f"--parts enriched --patients {pl.read_parquet(source / 'patients.parquet').height}"
            section("enriched", said, enriched(source, mapping, levels, options.seed, place))
        if "synthetic" in parts:
            said = f"--parts synthetic --patients {pl.read_parquet(source / 'patients.parquet').height}"
            if options.biobank_only:
                said += f" --biobank-only {options.biobank_only}"
            only = options.biobank_only.split(",")
            section("synthetic", said, synthetic(source, mapping, levels, only, options.seed, place))


def section(name: str, arguments: str, lines: list[str]) -> None:
    """Put a part into the page, in place of the one of that name; a part of `FURTHER` that is new, with its heading."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text(encoding="utf-8")
    if begin not in text:
        text = text.replace(BEFORE, f"{FURTHER[name]}\n{begin}\n{end}\n\n{BEFORE}", 1)
    before, rest = text.split(begin, 1)
    command = f"python benchmarks/study_visits.py --data DIR {arguments}"
    body = "\n".join([begin, taken_by(command, text), *lines, end])
    save(PAGE, before + body + rest.split(end, 1)[1])


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """Where the releases go."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def uci(data: Path, mapping: Path, levels: Sequence[str], draws: int, seed: int, place: Path) -> list[str]:
    """UCI: 71,517 patients, cohorts of 3,000, six simulated SNPs."""
    everyone = read(data / "uci-diabetes130" / "diabetic_data.csv.gz", columns=UCI_COLUMNS, missing=["?"])
    rows, counts, by_snp = [], [], []
    tests: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for level in levels:
        whole(everyone, level, place / f"uci-{level}", seed)
        for draw_number in range(draws):
            generator = np.random.Generator(np.random.Philox(key=seed * 1000 + draw_number))
            patients = everyone.visits().patients.sample(COHORT, seed=seed * 1000 + draw_number).sort()
            cohort = everyone.restrict(patients)
            cohort = dataclasses.replace(cohort, patients=simulated_snps(cohort, mapping, generator))
            found = {
                "drawn from the population": drawn(
                    place / f"uci-{level}", cohort, mapping, place / f"d-{level}-{draw_number}", seed
                ),
                "anonymized alone": alone(cohort, level, mapping, place / f"a-{level}-{draw_number}", seed),
            }
            rows += [association_row(level, name, figures) for name, figures in found.items()]
            counts += [count_row(level, name, figures) for name, figures in found.items()]
            by_snp += [snp_row(level, name, figures) for name, figures in found.items()]
            if draw_number == 0:
                tests |= {(level, name): figures["phewas"]["tests"] for name, figures in found.items()}
    return [
        *table(
            f"What a cohort of {COHORT:,} keeps (k = {K}, mean of {draws} draws)",
            counts,
            ["level", "strategy"],
        ),
        *table(
            f"Associations of that cohort with six simulated SNPs (sums over SNPs, mean of {draws} draws)",
            rows,
            ["level", "strategy"],
        ),
        *table(
            f"The same by SNP, p < 0.05: originally / lost / false (mean of {draws} draws)",
            by_snp,
            ["level", "strategy"],
        ),
        *draw(tests, PAGE.parent / "visits", "uci"),
    ]


def simulated_snps(cohort: Cohort, mapping: Path, draws: np.random.Generator) -> pl.DataFrame:
    """Six SNPs under Hardy–Weinberg; cases of a few phecodes each carry the allele with 1.4 to 2.2 times the odds."""
    lens = cohort.visits()
    phenotypes = phenotypes_of(mentions_of(lens), len(lens), phewas.mapping_of(str(mapping)))
    sizes = np.diff(phenotypes.case_starts)
    candidates = np.flatnonzero((sizes >= 100) & (sizes <= len(lens) // 3))
    columns = {"patient": lens.patients}
    for name, share in SNPS.items():
        logit = np.full(len(lens), np.log(share / (1 - share)))
        for phenotype in draws.choice(candidates, PLANTED, replace=False):
            logit[phenotypes.cases(int(phenotype))] += np.log(draws.uniform(1.4, 2.2))
        columns[name] = pl.Series(draws.binomial(2, 1 / (1 + np.exp(-logit))), dtype=pl.Int8)
    return pl.DataFrame(columns)


def measures_of(mapping: Path) -> list[Any]:
    """What is measured of each cohort."""
    return ["retention", "risk", {"phewas": {"predictors": list(SNPS), "map": str(mapping), "min_cases": 25}}]


def once(out: Path, make: Callable[[], Result]) -> dict[str, Any]:
    """The measures of a release: as it is there, or made now."""
    if out.is_dir():
        figures: dict[str, Any] = json.loads((out / "custody" / "measures.json").read_text(encoding="utf-8"))
        return figures
    return dict(make().measures)


def whole(cohort: Cohort, level: str, out: Path, seed: int) -> dict[str, Any]:
    """A master: everybody of a population, or of a biobank."""
    method = Visits(k=K, **LEVELS[level])
    return once(out, lambda: protect(cohort, method, out, seed=seed, measures=["retention"]))


def drawn(master: Path, cohort: Cohort, mapping: Path, out: Path, seed: int) -> dict[str, Any]:
    """The cohort drawn from a master."""
    assert cohort.patients is not None
    given: dict[str, Any] = {
        "payload": cohort.patients.select("patient", *SNPS),
        "original": cohort,
        "measures": measures_of(mapping),
        "seed": seed,
    }
    return once(
        out, lambda: extract(master, cohort.visits().patients, out, membership_is_secret="a study", **given)
    )


def alone(cohort: Cohort, level: str, mapping: Path, out: Path, seed: int) -> dict[str, Any]:
    """The cohort anonymized by itself."""
    method = Visits(k=K, payload=tuple(SNPS), **LEVELS[level])
    return once(out, lambda: protect(cohort, method, out, seed=seed, measures=measures_of(mapping)))


def association_row(level: str, strategy: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Lost and false, summed over SNPs."""
    row: dict[str, Any] = {"level": level, "strategy": strategy}
    for rule, each in figures["phewas"]["totals"].items():
        row |= {f"{RULES[rule]}: {name}": each[name] for name in ("original", "lost", "false")}
    return row


def snp_row(level: str, strategy: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Original, lost and false at p < 0.05, of each SNP."""
    row: dict[str, Any] = {"level": level, "strategy": strategy}
    for each in figures["phewas"]["comparison"]:
        if each["rule"] == "p05":
            row[each["predictor"]] = [each[name] for name in ("original", "lost", "false")]
    return row


def count_row(level: str, strategy: str, figures: dict[str, Any]) -> dict[str, Any]:
    """DC, CC and who shares a visit inside the cohort."""
    dc, cc, risk = figures["retention"]["dc"], figures["retention"]["cc"], figures["risk"]["after"]
    return {
        "level": level,
        "strategy": strategy,
        "DC %": 100 * dc["released_local"],
        "DC % without generalization": 100 * dc["ungeneralized_local"],
        "CC %": 100 * cc["released_local"],
        "CC % without generalization": 100 * cc["ungeneralized_local"],
        "visits shared by fewer than k of the cohort %": 100 * risk["few_share"],
    }


def synthetic(
    source: Path, mapping: Path, levels: Sequence[str], biobank_only: Sequence[str], seed: int, place: Path
) -> list[str]:
    """A synthetic population with a biobank and a study cohort inside; Tables 1 to 4."""
    attributes = pl.read_parquet(source / "patients.parquet")
    everyone = read(
        source / "events.parquet",
        columns={"patient": "patient", "code": "code", "visit": "visit"},
        vocabulary="icd9",
    )
    members = {name: attributes.filter(pl.col(name) == 1)["patient"] for name in ("biobank", "study")}
    biobank, study = (
        dataclasses.replace(everyone.restrict(ids), patients=attributes.filter(pl.col(name) == 1))
        for name, ids in members.items()
    )
    sizes = (
        f"{attributes.height:,} patients ({everyone.visits().n_visits:,} visits, "
        f"{everyone.require_events().height:,} rows), a biobank of {len(members['biobank']):,} and a study cohort of "
        f"{len(members['study']):,} inside it."
    )
    associations, counts, tables, by_snp, larger = [], [], [], [], []
    tests: dict[tuple[str, str], list[dict[str, Any]]] = {}
    top: dict[str, Any] | None = None
    for level in levels:
        masters = (
            {"biobank": biobank} if level in biobank_only else {"population": everyone, "biobank": biobank}
        )
        for name, cohort in masters.items():
            figures = whole(cohort, level, place / f"{name}-{level}", seed)
            tables.append(table_row(level, name, figures, None if name == "population" else top))
            top = tables[-1] if name == "population" else top
        found = {
            f"drawn from the {name}": drawn(
                place / f"{name}-{level}", study, mapping, place / f"s-{name}-{level}", seed
            )
            for name in masters
        }
        found["anonymized alone"] = alone(study, level, mapping, place / f"s-alone-{level}", seed)
        tables += [table_row(level, f"study, {name}", figures, top) for name, figures in found.items()]
        associations += [association_row(level, name, figures) for name, figures in found.items()]
        counts += [count_row(level, name, figures) for name, figures in found.items()]
        by_snp += [snp_row(level, name, figures) for name, figures in found.items()]
        tests |= {(level, name): figures["phewas"]["tests"] for name, figures in found.items()}
        biobanks = {"anonymized alone": alone(biobank, level, mapping, place / f"b-alone-{level}", seed)}
        if "population" in masters:
            master, out = place / f"population-{level}", place / f"b-population-{level}"
            biobanks = {"drawn from the population": drawn(master, biobank, mapping, out, seed), **biobanks}
        larger += [association_row(level, name, figures) for name, figures in biobanks.items()]
    return [
        f"\n{sizes} Every release passed its verifier.",
        *table("Tables 1 to 3: diagnoses and codes kept", tables, ["level", "data"]),
        *table("What the study cohort keeps", counts, ["level", "strategy"]),
        *table(
            "Table 4: associations of the study cohort (sums over SNPs)", associations, ["level", "strategy"]
        ),
        *table("The same by SNP, p < 0.05: originally / lost / false", by_snp, ["level", "strategy"]),
        *table("Associations of the whole biobank (sums over SNPs)", larger, ["level", "strategy"]),
        *draw(tests, PAGE.parent / "visits", "synthetic"),
    ]


def enriched(source: Path, mapping: Path, levels: Sequence[str], seed: int, place: Path) -> list[str]:
    """The biobank's study cohort and one of as many patients, half of whom have a code of a trait under study."""
    attributes = pl.read_parquet(source / "patients.parquet").filter(pl.col("biobank") == 1)
    everyone = read(
        source / "events.parquet",
        columns={"patient": "patient", "code": "code", "visit": "visit"},
        vocabulary="icd9",
    )
    biobank = dataclasses.replace(everyone.restrict(attributes["patient"]), patients=attributes)
    codes = [code for trait in TRAITS for code in trait.codes]
    having = biobank.require_events().filter(pl.col("code").cast(pl.String).is_in(codes))["patient"].unique()
    with_trait = attributes["patient"].is_in(having.to_list())
    studied = attributes.filter(pl.col("study") == 1)["patient"]
    half = studied.len() // 2
    chosen = pl.concat(
        [
            attributes["patient"].filter(with_trait).sample(half, seed=seed),
            attributes["patient"].filter(~with_trait).sample(studied.len() - half, seed=seed),
        ]
    ).sort()
    cohorts = {"by number of visits": studied, "enriched": chosen}
    counts, associations = [], []
    for level in levels:
        whole(biobank, level, place / f"biobank-{level}", seed)
        for name, ids in cohorts.items():
            cohort = dataclasses.replace(
                biobank.restrict(ids), patients=attributes.filter(pl.col("patient").is_in(ids.to_list()))
            )
            drawn_to, alone_to = (place / f"e-{way}-{name.split()[0]}-{level}" for way in ("drawn", "alone"))
            found = {
                "drawn from the biobank": drawn(place / f"biobank-{level}", cohort, mapping, drawn_to, seed),
                "anonymized alone": alone(cohort, level, mapping, alone_to, seed),
            }
            for strategy, figures in found.items():
                key = {"cohort": name}
                counts.append(key | count_row(level, strategy, figures))
                associations.append(key | association_row(level, strategy, figures))
    shares = {
        name: float(
            attributes.filter(pl.col("patient").is_in(ids.to_list()))["patient"]
            .is_in(having.to_list())
            .mean()
        )
        for name, ids in cohorts.items()
    }
    by = ["cohort", "level", "strategy"]
    return [
        f"\nBoth cohorts have {studied.len():,} of the biobank's {attributes.height:,} patients. A code of a trait: "
        + ", ".join(f"{100 * share:.1f} % ({name})" for name, share in shares.items())
        + ".",
        *table("What either cohort keeps", counts, by),
        *table("Associations of either cohort (sums over SNPs)", associations, by),
    ]


def containment(sizes: Sequence[int], seed: int, place: Path) -> list[str]:
    """Level `containment` on growing populations: what is kept, processor seconds from the cohort to the release."""
    rows = [
        kept_once(place / "containment.json", str(size), lambda size=size: contained(size, seed, place))
        for size in sizes
    ]
    return table("Level `containment` as the population grows", rows, ["patients"])


def contained(size: int, seed: int, place: Path) -> dict[str, Any]:
    """The row of one population; protecting, measuring and verifying, without reading and making it."""
    source = place / f"people-{size}"
    write_visits(source, size, seed)
    columns = {"patient": "patient", "code": "code", "visit": "visit"}
    everyone = read(source / "events.parquet", columns=columns, vocabulary="icd9")
    visits = everyone.visits().n_visits
    begin = time.process_time()
    figures = whole(everyone, "containment", place / f"people-{size}-released", seed)
    seconds = time.process_time() - begin
    dc, cc = figures["retention"]["dc"], figures["retention"]["cc"]
    return {
        "patients": f"{size:,}",
        "visits": visits,
        "DC %": 100 * dc["released_local"],
        "CC %": 100 * cc["released_local"],
        "CPU, s": round(seconds),
        "CPU, ms a visit": 1000 * seconds / visits,
    }


def table_row(level: str, name: str, figures: dict[str, Any], whole: dict[str, Any] | None) -> dict[str, Any]:
    """DC and CC as counts, of the population's (SD %), and of the same patients' (local %)."""
    dc, cc = figures["retention"]["dc"], figures["retention"]["cc"]
    top = {
        "DC": (whole or {}).get("DC original", dc["original"]),
        "CC": (whole or {}).get("CC original", cc["original"]),
    }
    row: dict[str, Any] = {"level": level, "data": name}
    for key, each in (("DC", dc), ("CC", cc)):
        row |= {
            f"{key} original": each["original"],
            f"{key} without generalization": each["ungeneralized"],
            f"{key}": each["released"],
            f"{key} population %": 100 * each["released"] / top[key],
            f"{key} local %": 100 * each["released_local"],
        }
    return row


def table(title: str, rows: list[dict[str, Any]], by: list[str]) -> list[str]:
    """The mean of the rows by their keys, as a Markdown table."""
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in by), []).append(row)
    names = list(rows[0])
    lines = [
        f"\n### {title}\n",
        f"| {' | '.join(names)} |",
        "|---" * len(by) + "|---:" * (len(names) - len(by)) + "|",
    ]
    for keys, group in grouped.items():
        means = [np.mean([row[name] for row in group], axis=0) for name in names[len(by) :]]
        cells = [*keys, *(" / ".join(map(text, np.atleast_1d(mean))) for mean in means)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def text(figure: float) -> str:
    """A figure with one decimal, or whole where it is."""
    return f"{figure:,.0f}" if figure == int(figure) else f"{figure:,.1f}"


if __name__ == "__main__":
    main()
