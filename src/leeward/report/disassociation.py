"""The report on a disassociated release: risk before and after, what it cost, where codes sit, what is left open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Notes, Part, Section, Table, Tile, Tiles, number, percent

RECORD, SHARED, ITEM = "record chunk", "shared chunk", "item chunk"
COLORS = {RECORD: charts.BLUE, SHARED: "#56B4E9", ITEM: charts.ORANGE}
CODES_SHOWN = 25
CONSTRAINTS_SHOWN = 15

Figures = Mapping[str, Any]


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The sections of the report that are this method's own."""
    found = [
        glance(release, measures, verification),
        risk(release, measures),
        loss(measures),
        placement(measures),
        policy(measures),
        unusable(release, measures),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, measures: Figures, verification: Figures) -> Section:
    """The four figures that a privacy board and a researcher ask for first."""
    k, m = release.guarantee["k"], release.guarantee["m"]
    codes = measures["source"]["codes"]
    tiles = [
        Tile(f"≥ {k}", f"candidate records for anyone who knows up to {m} codes of a patient", tone="good"),
        Tile("0", "codes suppressed or generalized", f"{codes:,} distinct codes in, {codes:,} out", "good"),
    ]
    places = measures.get("placement")
    if places:
        share = places["occurrences"]["item"] / max(1, places["occurrences"]["total"])
        tiles.append(
            Tile(
                percent(share),
                "of code occurrences lie in item chunks",
                "present, but how often is hidden",
                "warn",
            )
        )
    first = next(iter(measures.get("are", {}).get("workloads", ())), None)
    if first:
        tiles.append(Tile(percent(first["are"]), "mean relative error of counts", workload(first), "plain"))
    return Section("At a glance", (Tiles(tuple(tiles)),))
