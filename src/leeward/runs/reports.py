"""The report of a release folder, and its summary: made from its JSON files, in its method's own terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leeward.release import Release
    from leeward.report.summary import Summary

CATALOGUE = "notes"
"""A catalogue of an index: a release, though of no method."""


def summary_of(release: Release, measures: Mapping[str, Any]) -> Summary:
    """What the release is safe against, what not, and what it cost."""
    from leeward.report.summary import Costs, summarize

    costs = costs_of(release.method)
    return summarize(release, Costs() if costs is None else costs(release, measures))


def costs_of(method: str) -> Callable[..., Any] | None:
    """What says what releases of a method cost; None for a method that says nothing."""
    from leeward.methods import METHODS

    if method == CATALOGUE:
        from leeward.queries.answer.report import costs

        return costs
    return METHODS[method].costs() if method in METHODS else None


def write_report(folder: Path) -> Path:
    """Write `custody/report.html` from the JSON files of a release folder, with the method's own sections."""
    from leeward.release import Release
    from leeward.report import write

    return write(folder, sections_of(Release.open(folder).method), summary_of)


def sections_of(method: str) -> Callable[..., Any] | None:
    """What makes the report's own sections for releases of a method; None for a method that has none."""
    from leeward.methods import METHODS

    if method == CATALOGUE:
        from leeward.queries.answer.report import sections

        return sections
    return METHODS[method].report_sections() if method in METHODS else None
