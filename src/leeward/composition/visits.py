"""Two releases of visits of overlapping patients: masters, and cohorts of one master.

Equal visits of a source have equal images in a release, so the custodian's files say exactly what a known visit shows.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.composition.bound import Bound, bound_of
from leeward.release import Release

LINKED: Final = (
    "knows every code of one visit that is in both and links the record numbers, by a number that stays or in another "
    "way; counts the records that show the visit's image in the one and in the other"
)
NEW: Final = (
    "knows every code of a visit that only the later release has and links the record numbers; counts the records with "
    "such visits that show its image"
)
CONTENT: Final = (
    "knows that the patient is in both, has found the record in one of them and looks for records of the same content "
    "in the other; no record number is linked"
)


def attack_visits(
    earlier: Release, later: Release, before: Cohort | None, after: Cohort | None, k: int
) -> list[Bound]:
    """The bounds of what can be tried; none where custody does not say whose records are whose."""
    one, two = _read_shown(earlier), _read_shown(later)
    if one is None or two is None:
        return []
    found = _by_content(one, two, k)
    sources = _source_visits(earlier, before), _source_visits(later, after)
    if sources[0] is None or sources[1] is None:
        return found
    fresh = sources[1].join(sources[0], on=["patient", "source"], how="anti")
    one, two = _name_visits(earlier, one, sources[0]), _name_visits(later, two, sources[1])
    return [*_linked(one, two, k), *_new(two, fresh, k), *found]


def _read_shown(release: Release) -> pl.DataFrame | None:
    """`record`, `visit`, `patient` and `image`: what a visit shows, and of its record the classes of demographics. None
    where custody does not say whose records are whose."""
    people = release.custody_table("patients")
    if people is None:
        return None
    codes = pl.col("codes").list.sort().list.join("\x1f")
    visits = release.table("visits.parquet").select("record", "visit", image=codes).collect()
    if release.demographics:
        labels = pl.concat_str(release.demographics, separator="\x1f", ignore_nulls=True)
        records = release.table("records.parquet").select("record", labels=labels).collect()
        image = pl.concat_str("labels", "image", separator="\x1e", ignore_nulls=True)
        visits = visits.join(records, on="record").select("record", "visit", image=image)
    return visits.join(people.select("record", pl.col("patient").cast(pl.String)), on="record")


def _source_visits(release: Release, cohort: Cohort | None) -> pl.DataFrame | None:
    """`row`, `patient` and `source`, the source's own name of the visit. None where custody does not say which visits
    the release shows, or the source is missing or has no names of visits."""
    if (
        cohort is None
        or release.custody_table("visits") is None
        or release.parameters.get("level") != "visit"
    ):
        return None
    events = cohort.require_events()
    name = next((column for column in ("visit", "date") if column in events.columns), None)
    if release.parameters.get("merge_visits"):
        source = pl.lit("all")
    elif name is None or events[name].null_count():
        return None
    else:
        source = pl.col(name).cast(pl.String)
    return events.select("row", pl.col("patient").cast(pl.String), source=source).unique(["row", "source"])


def _name_visits(release: Release, shown: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    rows = release.custody_table("visits")
    assert rows is not None  # for the types: releases without were left out
    return shown.join(rows, on=["record", "visit"]).join(sources, on=["patient", "row"])


def _linked(one: pl.DataFrame, two: pl.DataFrame, k: int) -> list[Bound]:
    both = one.join(two.select("patient", "source", later="image"), on=["patient", "source"])
    asked = both.select("image", "later").unique()
    holders = one.select("patient", "image").unique().join(asked, on="image")
    holders = holders.join(two.select("patient", later="image").unique(), on=["patient", "later"], how="semi")
    counts = holders.group_by("image", "later").len("candidates")
    fewest = both.join(counts, on=["image", "later"]).group_by("patient").agg(pl.col("candidates").min())
    return _bounds(LINKED, k, fewest["candidates"])


def _new(two: pl.DataFrame, fresh: pl.DataFrame, k: int) -> list[Bound]:
    """`fresh`: the visits that only the later release has."""
    shown = two.join(fresh, on=["patient", "source"], how="semi")
    holders = two.select("patient", "image").unique().join(fresh, on="patient", how="semi")
    counts = holders.group_by("image").len("candidates")
    fewest = shown.join(counts, on="image").group_by("patient").agg(pl.col("candidates").min())
    return _bounds(NEW, k, fewest["candidates"])


def _by_content(one: pl.DataFrame, two: pl.DataFrame, k: int) -> list[Bound]:
    """Of patients whose records show the same in both: the records of that content where it is more frequent."""
    content = pl.col("image").sort().str.join("\x1d")
    records = [each.group_by("patient").agg(content=content) for each in (one, two)]
    same = records[0].join(records[1], on=["patient", "content"])
    for number, each in enumerate(records):
        same = same.join(each.group_by("content").len(f"copies{number}"), on="content")
    fewest = same.select(pl.max_horizontal("copies0", "copies1"))["copies0"]
    return _bounds(CONTENT, k, fewest, certain=int((fewest == 1).sum()))


def _bounds(attack: str, k: int, candidates: pl.Series, certain: int = 0) -> list[Bound]:
    """The bound; nothing where there is nobody to look at."""
    if not len(candidates):
        return []
    return [bound_of(attack, k, candidates.to_list(), certain=certain, exact=True)]
