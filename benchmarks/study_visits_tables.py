"""The tables of study_visits_population.py: Tables 1 to 5 of Heatherly et al. (2013), errors, effects, cases by SNP."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from textwrap import fill
from typing import Any

import numpy as np

from leeward.analysis.phewas.associations import ALPHA, NORMAL_95
from leeward.synthetic.visits import SNPS, TRAITS
from study_visits import PAGE, RULES, table
from study_visits_errors import Pair, count_errors
from study_visits_plots import draw

KINDS = ("by visits", "enriched")
TABLE_4 = ("p05", "bonferroni")
Found = Mapping[str, Mapping[str, Any]]
"""What was found, by setting."""


def sections(
    found: Found, phecode_of: Mapping[str, str], planted: Collection[Pair], patients: str, draws: int
) -> list[str]:
    """All of the part `cohorts`. `phecode_of`: the phecode of each trait; `planted`: all pairs that have an effect."""
    by = ["setting", "strategy"]
    pairs = [
        (trait.name, snp, math.log(ratio), phecode_of[trait.name])
        for trait in TRAITS
        for snp, ratio in trait.effects
    ]
    mean = f"mean of {draws} cohorts, ± 95 % interval"
    return [
        *table(
            f"Table 1: kept of the population of {patients} and of the biobank",
            list(masters(found)),
            ["setting", "data"],
            2,
        ),
        *table(f"Table 1: kept of cohorts ({mean})", list(kept(found)), by, 2),
        least_possible(found),
        *coverage(found, mean),
        *table(
            f"Table 4: cohorts by number of visits (sums over SNPs, {mean})", list(lost(found, KINDS[0])), by
        ),
        *table(
            f"Table 4: cohorts enriched for traits (sums over SNPs, {mean})", list(lost(found, KINDS[1])), by
        ),
        *table(
            "The same by SNP, enriched, p < 0.05: originally / lost / false (mean)", list(by_snp(found)), by
        ),
        *type_errors(found, planted, mean),
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
    """Shares that the population's and the biobank's releases keep."""
    for setting, of in found.items():
        for name in ("population", "biobank"):
            shares = {f"{key} %": 100 * of[name][key] / of[name][f"{key} original"] for key in ("DC", "CC")}
            yield {"setting": setting, "data": name, **shares}


def coverage(found: Found, mean: str) -> Iterator[str]:
    """Tables 2 and 3: counts, shares of the population's and of the same patients' own, with and without
    generalization; the first setting, then the others."""
    for title, key in (("Table 2: diagnoses", "DC"), ("Table 3: codes", "CC")):
        rows = list(covered(found, key))
        first = rows[0]["setting"]
        mine = [without(row, "setting") for row in rows if row["setting"] == first]
        others = [row for row in rows if row["setting"] != first]
        yield from table(f"{title}, `{first}` (cohorts: {mean})", mine, ["data"], 2)
        yield from table(f"{title}, the other settings", others, ["setting", "data"], 2)


def without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row without one of its columns."""
    return {key: value for key, value in row.items() if key != name}


def covered(found: Found, key: str) -> Iterator[dict[str, Any]]:
    """Each release of each setting: without generalization are the codes that it shows as they were."""
    whole = next(iter(found.values()))["population"][f"{key} original"]
    for setting, of in found.items():
        masters = [(name, of[name]) for name in ("population", "biobank")]
        cohorts = [(f"{each['kind']}, {each['strategy']}", each["kept"]) for each in of["cohorts"]]
        for data, counted in [*masters, *sorted(cohorts, key=lambda one: one[0].startswith(KINDS[1]))]:
            row: dict[str, Any] = {"setting": setting, "data": data}
            for title, count in (("without", counted[f"{key} single"]), ("with", counted[key])):
                row |= {
                    f"{title}: count": count,
                    f"{title}: of population's %": 100 * count / whole,
                    f"{title}: local %": 100 * count / counted[f"{key} original"],
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
    text = "Pairs of patient and code that the biobank's release lost, and the most that a cohort drawn from it lost: "
    return "\n" + fill(f"{text}{'; '.join(said)}.", 120)


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
        for rule in TABLE_4:
            mine = [one for one in each["comparison"] if one["rule"] == rule]
            row |= {
                f"{RULES[rule]}: {of}": sum(one[of] for one in mine) for of in ("original", "lost", "false")
            }
        yield row


def type_errors(found: Found, planted: Collection[Pair], mean: str) -> Iterator[str]:
    """Errors by rule: enriched cohorts a table each, cohorts by visits all together."""
    counted = {
        kind: [
            {"rule": RULES[row.pop("rule")], "setting": setting, "strategy": strategy, **row}
            for setting, strategy, each in of_kind(found, kind)
            for row in count_errors(each["tests"], planted)
        ]
        for kind in KINDS
    }
    by = ["setting", "strategy"]
    for rule in RULES.values():
        mine = [without(row, "rule") for row in counted[KINDS[1]] if row["rule"] == rule]
        yield from table(f"Type I and II, {rule}, enriched ({mean})", mine, by)
    yield from table(f"Type I and II, cohorts by visits ({mean})", counted[KINDS[0]], ["rule", *by])


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
        "population, `containment`": ("containment", "drawn from the population"),
        "alone, `containment`": ("containment", "anonymized alone"),
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
