"""The sections of a report on associations before and after (`analysis.phewas.measure`), of methods whose releases have
codes of patients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.report.sections import Section, number, percent, table_of

Figures = Mapping[str, Any]

RULES = {"p05": "p < 0.05", "bonferroni": "Bonferroni", "fdr": "false discovery rate 5 %"}


def sections(found: Figures | None) -> list[Section]:
    if not found:
        return []
    from leeward.methods import phewas_charts

    p05, bonferroni = found["totals"]["p05"], found["totals"]["bonferroni"]
    intro = (
        f"Each of {found['phecodes']['original']:,} phecodes was tested against each predictor "
        f"({found['test']} test, at least {found['min_cases']} cases), in the original data and in the release. At "
        f"p < 0.05, {p05['lost']:,} of {p05['original']:,} associations were lost and "
        f"{p05['false']:,} appeared; after Bonferroni's correction {bonferroni['lost']:,} of "
        f"{bonferroni['original']:,} were lost. Lost: significant in the original only. "
        "False: in the release only."
    )
    if effects := found.get("effects", {}).get("compared"):
        moved, inside = found["effects"]["moved"], percent(found["effects"]["inside"])
        intro += (
            f" The log odds ratios (regression) of {effects:,} of the original's associations moved by {moved:+.3f} on "
            f"average (below 0: towards no effect); {inside} are within the original's 95 % intervals."
        )
    intro += without_regression(found)
    table = table_of(
        "Associations lost and false",
        found["comparison"],
        ("predictor", "predictor", str),
        ("significant by", "rule", RULES.__getitem__),
        ("original", "original", number),
        ("kept", "kept", number),
        ("lost", "lost", number),
        ("false", "false", number),
    )
    plots = [
        plot
        for predictor in dict.fromkeys(row["predictor"] for row in found["tests"])
        for plot in phewas_charts.of_predictor(predictor, found["tests"])
    ]
    return [Section("Associations (PheWAS)", (intro, table)), Section("Associations, plotted", tuple(plots))]


def without_regression(found: Figures) -> str:
    """Reasons why regression tests have no p."""
    if found["test"] != "logistic":
        return ""
    parts = []
    for where, of in (("the original", "original"), ("the release", "anonymized")):
        outcomes = found["regressions"][of]
        reasons = [
            f"{number(count)} {words}"
            for count, words in (
                (outcomes["separated"], "because of complete separation (no finite coefficient exists)"),
                (outcomes["collinear"], "because a column is collinear with others among these people"),
                (outcomes["few"], f"because there are fewer than {found['min_cases']} cases or controls"),
            )
            if count
        ]
        if reasons:
            parts.append(
                f" In {where} regressions are missing: {'; '.join(reasons)}. They have no p value and are "
                f"not counted."
            )
    return "".join(parts)
