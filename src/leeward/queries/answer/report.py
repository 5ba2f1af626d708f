"""The report on a released catalogue of itemsets: what is listed, how exact it is, what it cost."""

from __future__ import annotations

import polars as pl

from leeward.release import Release
from leeward.report.sections import Figures, Notes, Section, Table, Tile, Tiles, number, table_of
from leeward.report.summary import Cost, Costs

SHOWN = 20


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    return [glance(release, measures), largest(release, measures), levels(release), plain_words(release)]


def costs(release: Release, measures: Figures) -> Costs:
    """Costs of a catalogue: budget, noise, and what the thresholds left out."""
    listed = release.table("itemsets.parquet").collect().height
    scales = [level["scale"] for level in release.parameters["levels"]]
    figures = [
        Cost(f"{release.guarantee['epsilon']:g}", "epsilon spent, for each patient"),
        Cost(f"±{max(scales, default=0.0):.3g}", "noise of a count, on average, of the largest sets"),
        Cost(number(listed), "itemsets listed", "good" if listed else "bad"),
    ]
    left = (
        "no noisy count reached its threshold; try a larger epsilon or more patients." if not listed else ""
    )
    return Costs(tuple(figures), left)


def glance(release: Release, measures: Figures) -> Section:
    """What a board reads first."""
    facts = measures.get("method", {})
    tiles = [
        Tile(number(release.table("itemsets.parquet").collect().height), "itemsets listed"),
        Tile(f"{release.guarantee['epsilon']:g}", "epsilon, for each patient, of the whole catalogue"),
    ]
    if "remaining" in facts:
        tiles.append(Tile(f"{facts['remaining']:g}", "epsilon left for further answers"))
    text = (
        "Counts of patients for sets of health terms (and of values of quasi-identifiers), each with noise that hides "
        "any one patient. No record of a patient is released."
    )
    return Section("At a glance", (text, Tiles(tuple(tiles))))


def largest(release: Release, measures: Figures) -> Section:
    table = release.table("itemsets.parquet").collect()
    names = measures.get("method", {}).get("names", {})
    rows = tuple(
        (" & ".join(f"{item} {names[item]}" if item in names else item for item in items), f"{count:,.0f}")
        for _, of_size in sorted(
            table.group_by(pl.col("items").list.len(), maintain_order=True), key=lambda each: each[0]
        )
        for items, count in of_size.head(SHOWN).iter_rows()
    )
    if not rows:
        return Section("Itemsets", ("No noisy count reached the threshold of its size.",))
    return Section("Itemsets", (Table(f"The first {SHOWN} of each size", ("itemset", "noisy count"), rows),))


def levels(release: Release) -> Section:
    table = table_of(
        "Each size is paid for and has noise of its own",
        release.parameters["levels"],
        ("items", "size", str),
        ("candidates", "candidates", number),
        ("epsilon", "epsilon", "{:g}".format),
        ("scale of the noise", "scale", "{:.3g}".format),
        ("threshold", "threshold", "{:,}".format),
        ("listed", "listed", number),
    )
    text = (
        "A count is off by about the scale of its noise on average; two in a hundred are off by more than four times "
        "as much."
    )
    return Section("Noise, by size", (text, table))


def plain_words(release: Release) -> Section:
    bound = release.parameters["contributions"]
    tried = (
        "Which itemsets were tried follows from the public vocabulary and from noisy counts alone, so what is missing "
        "tells no more than what is there."
    )
    bounded = (
        f"A patient is counted in at most {bound:,} itemsets of each size, drawn at random: where patients have more, "
        "counts are too low on average."
    )
    budget = "Whoever asks further questions of the same patients spends from the same budget."
    return Section("In plain words", (Notes((tried, bounded, budget)),))
