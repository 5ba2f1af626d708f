"""The tables of study_visits_population.py: Tables 1 to 5 of Heatherly et al. (2013), effects, and cases by SNP."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from leeward.analysis.phewas.associations import ALPHA, NORMAL_95
from leeward.synthetic.visits import SNPS, TRAITS
from study_visits import PAGE, table
from study_visits_plots import draw

KINDS = ("by visits", "enriched")
RULES = {"p05": "p < 0.05", "bonferroni": "Bonferroni"}
Found = Mapping[str, Mapping[str, Any]]
"""What was found, by setting."""


def sections(found: Found, phecode_of: Mapping[str, str], patients: str, draws: int) -> list[str]:
    """All of the part `cohorts`. `phecode_of`: the phecode of each trait."""
    by = ["setting", "strategy"]
    pairs = [
        (trait.name, snp, math.log(ratio), phecode_of[trait.name])
        for trait in TRAITS
        for snp, ratio in trait.effects
    ]
    mean = f"mean of {draws} cohorts, ± 95 % interval"
    return [
        *table(
            f"Tables 1 to 3: population of {patients} and biobank",
            list(masters(found)),
            ["setting", "data"],
            2,
        ),
        *table(f"Tables 1 to 3: what cohorts keep ({mean})", list(kept(found)), by, 2),
        least_possible(found),
        *table(
            f"Table 4: cohorts by number of visits (sums over SNPs, {mean})", list(lost(found, KINDS[0])), by
        ),
        *table(
            f"Table 4: cohorts enriched for traits (sums over SNPs, {mean})", list(lost(found, KINDS[1])), by
        ),
        *table(
            "The same by SNP, enriched, p < 0.05: originally / lost / false (mean)", list(by_snp(found)), by
        ),
        *table(
            f"Effects of the nine planted pairs, enriched cohorts ({mean})",
            list(effects(found, pairs)),
            by,
            3,
        ),
        *table(
            "Table 5: planted conditions, first enriched cohort: p",
            list(conditions(found, pairs)),
            ["condition"],
        ),
        *table(
            "Cases by SNP: the strongest association lost and the strongest that is new, first enriched cohort",
            list(cases(found)),
            ["setting", "SNP"],
        ),
        *draw(plotted(found), PAGE.parent / "visits", "synthetic"),
    ]


def masters(found: Found) -> Iterator[dict[str, Any]]:
    """Counts and shares of the population's and the biobank's releases."""
    whole_of = next(iter(found.values()))["population"]
    for setting, of in found.items():
        for name in (each for each in ("population", "biobank") if each in of):
            row: dict[str, Any] = {"setting": setting, "data": name}
            for key in ("DC", "CC"):
                whole = of[name][f"{key} original"]
                row |= {
                    key: of[name][key],
                    f"{key} of population's %": 100 * of[name][key] / whole_of[f"{key} original"],
                    f"{key} local %": 100 * of[name][key] / whole,
                    f"{key} local %, single codes": 100 * of[name][f"{key} single"] / whole,
                }
            yield row


def kept(found: Found) -> Iterator[dict[str, Any]]:
    """DC and CC of each cohort, both kinds side by side."""
    for setting, of in found.items():
        half = len(of["cohorts"]) // 2
        first, second = ([each for each in of["cohorts"] if each["kind"] == kind] for kind in KINDS)
        for place in range(half):
            row: dict[str, Any] = {"setting": setting, "strategy": first[place]["strategy"]}
            for kind, each in zip(KINDS, (first[place]["kept"], second[place]["kept"]), strict=True):
                row |= {
                    f"{kind}: DC %": 100 * each["DC"] / each["DC original"],
                    f"{kind}: CC %": 100 * each["CC"] / each["CC original"],
                    f"{kind}: CC %, single codes": 100 * each["CC single"] / each["CC original"],
                }
            yield row


def least_possible(found: Found) -> str:
    """That no extract loses more pairs than the release that it was drawn from."""
    said = []
    for setting, of in found.items():
        whole = of["biobank"]["DC original"] - of["biobank"]["DC"]
        drawn = [each["kept"] for each in of["cohorts"] if each["strategy"] == "drawn from the biobank"]
        most = max(each["DC original"] - each["DC"] for each in drawn)
        assert most <= whole, setting
        said.append(f"{setting}: {whole:,}, {most:,}")
    return (
        "\nPairs of patient and code that the biobank's release lost, and the most that a cohort drawn from it lost: "
        + "; ".join(said)
        + "."
    )


def of_kind(found: Found, kind: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(setting, strategy, cohort) of one kind of cohorts."""
    for setting, of in found.items():
        for each in of["cohorts"]:
            if each["kind"] == kind and "tests" in each:
                yield setting, each["strategy"], each


def lost(found: Found, kind: str) -> Iterator[dict[str, Any]]:
    """Original, lost and false, summed over SNPs."""
    for setting, strategy, each in of_kind(found, kind):
        row: dict[str, Any] = {"setting": setting, "strategy": strategy}
        for rule, name in RULES.items():
            mine = [one for one in each["comparison"] if one["rule"] == rule]
            row |= {f"{name}: {of}": sum(one[of] for one in mine) for of in ("original", "lost", "false")}
        yield row


def by_snp(found: Found) -> Iterator[dict[str, Any]]:
    """Original, lost and false of each SNP."""
    for setting, strategy, each in of_kind(found, KINDS[1]):
        row: dict[str, Any] = {"setting": setting, "strategy": strategy}
        for one in each["comparison"]:
            if one["rule"] == "p05":
                row[one["predictor"]] = [one["original"], one["lost"], one["false"]]
        yield row


def limits_of(tests: list[dict[str, Any]], column: str) -> dict[str, float]:
    """Bonferroni's limit of each SNP."""
    counted = {
        snp: sum(each["predictor"] == snp and each[column] is not None for each in tests) for snp in SNPS
    }
    return {snp: ALPHA / max(1, n) for snp, n in counted.items()}


def effects(found: Found, pairs: list[tuple[str, str, float, str]]) -> Iterator[dict[str, Any]]:
    """How many planted pairs are found, and their log odds ratios beside the planted ones; then all of p < 0.05."""
    for setting, strategy, each in of_kind(found, KINDS[1]):
        tests = {(one["predictor"], one["phecode"]): one for one in each["tests"]}
        mine = [(tests.get((snp, code), {}), ratio, snp) for _, snp, ratio, code in pairs]
        row: dict[str, Any] = {"setting": setting, "strategy": strategy}
        for name in ("original", "release"):
            limit = limits_of(each["tests"], f"p_{name}")
            there = [(one, ratio) for one, ratio, _ in mine if one.get(f"beta_{name}") is not None]
            off = np.array([one[f"beta_{name}"] - ratio for one, ratio in there])
            error = np.array([one[f"error_{name}"] for one, _ in there])
            hits = [p for one, _, snp in mine if (p := one.get(f"p_{name}")) is not None and p < limit[snp]]
            row[f"{name}: found"] = len(hits)
            row[f"{name}: bias"] = float(off.mean()) if len(off) else 0.0
            row[f"{name}: standard error"] = float(error.mean()) if len(error) else 0.0
            row[f"{name}: 95 % intervals that hold the planted"] = sum(np.abs(off) < NORMAL_95 * error) / len(
                pairs
            )
        row["all of p < 0.05: moved"] = each["effects"]["moved"]
        row["within the original's interval"] = each["effects"]["inside"]
        yield row


def first_enriched(found: Found) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The tests of the first enriched cohort, by setting and strategy."""
    return {
        (setting, strategy): each["tests"]
        for setting, strategy, each in reversed(list(of_kind(found, KINDS[1])))
    }


def conditions(found: Found, pairs: list[tuple[str, str, float, str]]) -> Iterator[dict[str, Any]]:
    """Each planted condition with its SNP, odds ratio, and p in the original and in releases."""
    shown = {
        "population, `code`": ("code, phecode", "drawn from the population"),
        "biobank, `code`": ("code, phecode", "drawn from the biobank"),
        "alone, `code`": ("code, phecode", "anonymized alone"),
        "population, `visit`": ("visit", "drawn from the population"),
        "alone, `visit`": ("visit", "anonymized alone"),
    }
    tests = first_enriched(found)
    by_pair = {key: {(each["predictor"], each["phecode"]): each for each in of} for key, of in tests.items()}
    for name, snp, ratio, code in pairs:
        row: dict[str, Any] = {"condition": f"{name} ({code}), {snp}, {math.exp(ratio):.2g}"}
        for title, key in shown.items():
            each = by_pair.get(key, {}).get((snp, code), {})
            row.setdefault("cases", str(each.get("cases") or "few"))
            row.setdefault("original", p_text(each.get("p_original")))
            row[title] = p_text(each.get("p_release"))
        yield row


def p_text(p: float | None) -> str:
    """A p with two digits."""
    return "–" if p is None else f"{p:.1e}" if p < 0.001 else f"{p:.2g}"


def cases(found: Found) -> Iterator[dict[str, Any]]:
    """For each SNP, the strongest association that is lost and the strongest that is new."""
    shown = (("code, phecode", "anonymized alone"), ("visit", "drawn from the population"))
    for key, tests in first_enriched(found).items():
        for snp in SNPS if key in shown else ():
            row = {"setting": ", ".join(key), "SNP": snp}
            for name, was, now in (("lost", "p_original", "p_release"), ("new", "p_release", "p_original")):
                changed = [
                    (each[was], each["phenotype"] or each["phecode"], each[now])
                    for each in tests
                    if each["predictor"] == snp
                    and (each[was] or 1) < ALPHA <= (1 if each[now] is None else each[now])
                ]
                first = min(changed, key=lambda one: (one[0], one[1]), default=None)
                before, after = (
                    (first[0], first[2])
                    if name == "lost" and first
                    else (first[2], first[0])
                    if first
                    else (0, 0)
                )
                row[name] = f"{first[1]}: {p_text(before)} → {p_text(after)}" if first else "none"
            yield row


def plotted(found: Found) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The tests of the first enriched cohort, as the plots take them; levels by name."""
    return {
        (setting.partition(",")[0], strategy): [
            {**each, "effect": each["beta_original"], "p_anonymized": each["p_release"]} for each in tests
        ]
        for (setting, strategy), tests in reversed(first_enriched(found).items())
    }
