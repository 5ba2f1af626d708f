"""Does PheWAS survive? Repeats the comparison of Heatherly et al. (2013) on real data.

    python benchmarks/study_visits.py --data DIR --parts uci --draws 5
    python benchmarks/study_visits.py --data DIR --parts drugs

DIR holds `uci-diabetes130/diabetic_data.csv.gz` and `vocab/phecode_map_v1_2_icd9.csv.gz`. Writes its sections of
docs/studies/visits.md and the plots beside it; `--keep FOLDER` keeps the releases with their reports, and takes those
that are there already.

`uci`: cohorts drawn from the anonymized population, and anonymized alone, with simulated SNPs; allelic test, at least
25 cases, in the cohort's original data and in each release. `drugs`: Eunomia's tables, drugs and measurements as codes.
The population of the paper's size is study_visits_population.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t

from common import save, taken_by
from leeward.analysis.phewas import associations as phewas
from leeward.analysis.phewas.phenotypes import phenotypes_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.visits import Visits
from leeward.methods.visits.measures import mentions_of
from leeward.runs.extract import extract
from leeward.runs.protect import Result, protect
from leeward.synthetic.visits import SNPS
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


def main() -> None:
    """Run the parts, write their sections."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--parts", default="uci,drugs", help="which to run")
    parser.add_argument("--draws", type=int, default=5, help="cohorts and sets of SNPs drawn from UCI")
    parser.add_argument("--levels", default="code,containment,visit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the releases and reports")
    options = parser.parse_args()
    parts = options.parts.split(",")
    mapping = options.data / "vocab" / "phecode_map_v1_2_icd9.csv.gz"
    script = "python benchmarks/study_visits.py --data DIR --parts"
    with folder(options.keep) as place:
        if "uci" in parts:
            lines = uci(options.data, mapping, options.levels.split(","), options.draws, options.seed, place)
            put("uci", f"{script} uci --draws {options.draws}", lines)
        if "drugs" in parts:
            put("drugs", f"{script} drugs", drugs(options.data / "eunomia-gibleed", options.seed, place))


def put(name: str, command: str, lines: list[str]) -> None:
    """Put a part into the page, in place of the one of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin, 1)
    save(PAGE, before + "\n".join([begin, taken_by(command, text), *lines, end]) + rest.split(end, 1)[1])


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
    mean = f"mean of {draws} draws, ± 95 % interval"
    return [
        *table(
            f"What a cohort of {COHORT:,} keeps (k = {K}, {mean})",
            counts,
            ["level", "strategy"],
        ),
        *table(
            f"Associations of that cohort with six simulated SNPs (sums over SNPs, {mean})",
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


DOMAINS = {
    "conditions": ["condition"],
    "drugs": ["drug"],
    "measurements": ["measurement"],
    "all three": ["condition", "drug", "measurement"],
}
"""Tables of OMOP that are read as codes of visits."""


def drugs(source: Path, seed: int, place: Path) -> list[str]:
    """Eunomia: conditions, drugs and measurements, each by itself and together, through every level."""
    rows = []
    for name, domains in DOMAINS.items():
        cohort = read(source, format="omop", domains=domains)
        lens = cohort.visits()
        for level in LEVELS:
            figures = whole(cohort, level, place / f"eunomia-{name}-{level}", seed)
            dc, cc = figures["retention"]["dc"], figures["retention"]["cc"]
            rows.append(
                {
                    "codes of": name,
                    "level": level,
                    "patients": f"{len(lens):,}",
                    "visits": f"{lens.n_visits:,}",
                    "pairs": f"{dc['original']:,}",
                    "codes": f"{cc['original']:,}",
                    "DC %": 100 * dc["released_local"],
                    "CC %": 100 * cc["released_local"],
                }
            )
    return table("Eunomia's patients", rows, ["codes of", "level", "patients", "visits", "pairs", "codes"])


def table(title: str, rows: list[dict[str, Any]], by: list[str], digits: int = 1) -> list[str]:
    """The rows by their keys as a Markdown table: words as they are; of figures of several rows, the mean with its 95 %
    interval (Student's t), of lists of figures the mean."""
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
        cells = [*keys, *(cell([row[name] for row in group], digits) for name in names[len(by) :])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def cell(values: list[Any], digits: int) -> str:
    """What the rows of one group have in one column."""
    if isinstance(values[0], str):
        return str(values[0])
    mean = np.atleast_1d(np.mean(values, axis=0))
    digits = 0 if mean.max() >= 1_000 and len(values) > 1 else digits
    means = [text(each, digits) for each in mean]
    if len(values) == 1 or len(means) > 1:
        return " / ".join(means)
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{means[0]} ± {text(half, digits)}"


def text(figure: float, digits: int) -> str:
    """A figure with so many decimals, or whole where it is."""
    return f"{figure:,.0f}" if figure == int(figure) else f"{figure:,.{digits}f}"


if __name__ == "__main__":
    main()
