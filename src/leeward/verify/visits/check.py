"""Verify anonymized visits: count from the files how many patients share each visit's set; compare with the source.

Written from the definitions (Heatherly et al. 2013; docs/methods/visits.md) and shares nothing with the method. The
custodian's files are used as witnesses only: they say where to look, and what they say is checked.
"""

from __future__ import annotations

from leeward.verify.checks import Check, Source
from leeward.verify.classes import Placed, demographics_of
from leeward.verify.manifest import Share
from leeward.verify.visits.cohorts import extract_checks, facts_of
from leeward.verify.visits.layout import apart, layout, place
from leeward.verify.visits.levels import level_checks, one_set_a_record
from leeward.verify.visits.source import order_of_visits, source_checks

__all__ = ["check", "facts_of"]


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a release of visits, or of a cohort drawn from one. BadInput where what the guarantee is about is
    not at hand: the master of an extract, the custodian's visit sets at level `containment`."""
    checks, visits = layout(share)
    if visits is None:
        return checks
    k, level = share.guarantee("k"), str(share.manifest["parameters"]["level"])
    if share.manifest["parameters"].get("merge_visits"):
        checks.append(one_set_a_record(visits))
    if share.manifest["parameters"].get("extract"):
        return [*checks, *extract_checks(share, visits, k, level)]
    placed: Placed | None = None
    if demographics_of(share):
        found, placed = place(share)
        checks += found
        if placed is None:
            return checks
    order = order_of_visits(share, visits)
    visits = visits if placed is None else apart(visits, placed)
    checks += [*level_checks(share, visits, k, level, placed), order]
    if source is not None:
        checks += source_checks(share, visits, source, placed)
    return checks
