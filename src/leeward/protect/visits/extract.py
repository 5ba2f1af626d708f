"""Cohorts drawn from a master: the master's records, renumbered and shuffled, never anonymized anew (ALGORITHMS §5.3).

Because every cohort shows a patient as the master does, two cohorts tell no more about a patient than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.errors import BadInput
from leeward.protect.visits.tables import VISITS
from leeward.protect.visits.wording import readme_of
from leeward.randomness import Randomness
from leeward.release import Release
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

BATCH_ROWS = 1 << 18


@dataclass(frozen=True)
class Master:
    """A master release, opened by its custodian.

    people : `record`, `patient` (the identifier), `codes` (distinct original codes).
    """

    release: Release
    people: pl.DataFrame

    @staticmethod
    def open(path: str) -> Master:
        """Open the folder that `leeward visits` wrote.

        Raises
        ------
        BadInput
            Another method's release, an extract, or no custody.
        """
        release = Release.open(path)
        if release.method != "visits" or release.parameters.get("extract"):
            kind = (
                "a cohort already drawn" if release.method == "visits" else f"a release by {release.method}"
            )
            raise BadInput(f"{path}: {kind}; a cohort is drawn from the master that `leeward visits` wrote.")
        file = None if release.custody is None else release.custody / "data" / "patients.parquet"
        if file is None or not file.is_file():
            raise BadInput(
                f"{path}: no custody/data/patients.parquet, so nothing says who is who; name the whole folder."
            )
        return Master(release, pl.read_parquet(file))


@dataclass(frozen=True)
class Figures:
    """How many share the cohort's visit sets.

    population_smallest : fewest holders in the master of a set of the cohort. visits : of the cohort. few, alone :
    visits whose set fewer than k members of the cohort hold, and only one. smallest : fewest holders inside the cohort.
    """

    k: int
    population: int
    population_smallest: int
    visits: int
    few: int
    alone: int
    smallest: int

    def to_json(self) -> dict[str, Any]:
        """As in `custody/measures.json`."""
        shares = {
            "few_share": self.few / max(1, self.visits),
            "alone_share": self.alone / max(1, self.visits),
        }
        return {**self.__dict__, **shares}

    @property
    def known_member(self) -> str:
        """The case that membership is known, with figures that anyone can count in the released files."""
        return (
            "Somebody who knows that a person is in this cohort, and not only in the population: inside the cohort "
            f"{self.few:,} of {self.visits:,} visits ({self.few / max(1, self.visits):.1%}) have a set of codes that "
            f"fewer than {self.k} members share, {self.alone:,} ({self.alone / max(1, self.visits):.1%}) one that a "
            f"single member has (smallest: {self.smallest}; in the population: {self.population_smallest})."
        )


def extract(
    master: Master,
    records: np.ndarray[Any, np.dtype[np.int64]],
    payload: pl.DataFrame | None,
    notices: tuple[str, ...],
    randomness: Randomness,
) -> Anonymized:
    """The release of some master records.

    Parameters
    ----------
    records : the master's numbers of the chosen records, ascending.
    payload : further columns, in the order of `records`.
    """
    order = records[randomness.stream("visits", "cohort").permutation(len(records))]
    visits = _visits(master.release, order, randomness)
    carried = _payload(master.release, records, payload)
    placed = None if carried is None else carried[np.searchsorted(records, order)]
    names = () if placed is None else tuple(placed.columns)
    figures = figures_of(master.release, visits)
    parameters = {**master.release.parameters, "extract": True, "population": master.release.records}
    if names:
        parameters["payload"] = list(names)
    guarantee = master.release.guarantee
    number = pa.array(np.arange(len(order), dtype=np.int64))
    columns = {"record": number}
    if placed is not None:
        arrow = placed.to_arrow()
        columns |= {name: arrow[name] for name in names}
    shared = [_visits_table(visits), ReleaseTable.of("records.parquet", pa.table(columns))]
    if "code_hierarchy.csv" in master.release.names():
        hierarchy = master.release.table("code_hierarchy.csv").collect()
        shared.append(ReleaseTable.of("code_hierarchy.csv", _hierarchy(hierarchy, visits).to_arrow()))
    identifiers = master.people.sort("record")["patient"].gather(order).to_arrow()
    return Anonymized(
        method="visits",
        parameters=parameters,
        guarantee=Guarantee(
            name=f"{guarantee['name']}, in a population of {master.release.records:,}",
            k=int(guarantee["k"]),
            attacker=str(guarantee["attacker"]),
            not_protected=(figures.known_member, *map(str, guarantee["not_protected"])),
        ),
        records=len(order),
        tables=tuple(shared),
        readme=readme_of(dict(parameters), names)
        + "\nThis is a cohort drawn from an anonymized population; other cohorts from it show a patient alike.\n",
        custody_tables=(
            ReleaseTable.of(
                "records.parquet", pa.table({"record": number, "master_record": pa.array(order)})
            ),
            ReleaseTable.of("patients.parquet", pa.table({"record": number, "patient": identifiers})),
        ),
        custody={"level": str(parameters["level"]), "shared_by": figures.to_json()},
        notices=notices,
        seeded=randomness.seeded,
    )


def _visits(
    release: Release, order: np.ndarray[Any, np.dtype[np.int64]], randomness: Randomness
) -> pl.DataFrame:
    """`record`, `visit`, `codes` of the chosen records under their new numbers, in a new order inside each."""
    number = pl.LazyFrame({"old": order, "record": np.arange(len(order), dtype=np.int64)})
    chosen = (
        release.table("visits.parquet")
        .rename({"record": "old"})
        .join(number, on="old", how="inner")
        .select("record", "visit", "codes")
        .collect()
        .sort("record", "visit")
    )
    shuffled = chosen[randomness.stream("visits", "cohort visits").permutation(chosen.height)]
    return shuffled.sort("record", maintain_order=True).with_columns(
        visit=pl.int_range(pl.len(), dtype=pl.Int64).over("record")
    )


def _visits_table(visits: pl.DataFrame) -> ReleaseTable:
    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, visits.height, BATCH_ROWS):
            yield from visits.slice(first, BATCH_ROWS).to_arrow().cast(VISITS).combine_chunks().to_batches()

    return ReleaseTable("visits.parquet", VISITS, batches)


def _hierarchy(hierarchy: pl.DataFrame, visits: pl.DataFrame) -> pl.DataFrame:
    """The nodes that the cohort shows, and those above them."""
    shown = set(visits["codes"].explode().unique())
    above = set(hierarchy.filter(pl.col("node").is_in(shown))["parent"])
    return hierarchy.filter(pl.col("node").is_in(shown | above | {"*"}))


def _payload(
    release: Release, records: np.ndarray[Any, np.dtype[np.int64]], further: pl.DataFrame | None
) -> pl.DataFrame | None:
    """The master's payload and the further columns, in the order of `records`."""
    own = release.table("records.parquet").collect().sort("record")[records].drop("record")
    if further is None:
        return own if own.width else None
    doubled = [name for name in further.columns if name in own.columns]
    if doubled:
        raise BadInput(
            f"the master carries {', '.join(f'`{name}`' for name in doubled)} already; leave it out of --payload."
        )
    return pl.concat([own, further], how="horizontal") if own.width else further


def figures_of(release: Release, visits: pl.DataFrame) -> Figures:
    """Count the holders of the cohort's visit sets, in the master and inside the cohort."""
    k = int(release.guarantee["k"])
    text = pl.col("codes").list.join("\x1f").alias("set")
    inside = visits.select("record", text)
    held = inside.unique().group_by("set").agg(pl.len().alias("here"))
    everywhere = (
        release.table("visits.parquet")
        .select("record", text)
        .join(held.lazy().select("set"), on="set", how="semi")
        .unique()
        .group_by("set")
        .agg(pl.len().alias("there"))
        .collect()
    )
    counted = inside.join(held, on="set")
    return Figures(
        k,
        release.records,
        _smallest(everywhere["there"]),
        inside.height,
        counted.filter(pl.col("here") < k).height,
        counted.filter(pl.col("here") == 1).height,
        _smallest(held["here"]),
    )


def _smallest(holders: pl.Series) -> int:
    return int(holders.to_numpy().min()) if len(holders) else 0


def chosen_by(master: Master, expression: str) -> pl.Series:
    """The identifiers of the master's patients for whom an SQL expression holds.

    Columns: `patient`, the payload, `codes` (released codes of all visits, a list) and `visits` (their number).
    """
    table = master.release.table("visits.parquet")
    sets = table.explode("codes").group_by("record").agg(pl.col("codes").unique().sort())
    counts = table.group_by("record").agg(pl.len().cast(pl.Int64).alias("visits"))
    frame = (
        master.people.lazy()
        .select("record", "patient")
        .join(master.release.table("records.parquet"), on="record", how="left")
        .join(sets, on="record", how="left")
        .join(counts, on="record", how="left")
        .with_columns(pl.col("visits").fill_null(0))
        .collect()
    )
    try:
        return frame.filter(pl.sql_expr(expression))["patient"]
    except pl.exceptions.PolarsError:
        raise BadInput(
            "--select: neither a file nor an expression over the columns "
            f"{', '.join(name for name in frame.columns if name != 'record')}; "
            "for example \"array_contains(codes, '250.00')\"."
        ) from None


def records_of(master: Master, patients: pl.Series) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """(master records of the patients, ascending; how many named patients the master lacks)."""
    kind = master.people["patient"].dtype
    wanted = patients.drop_nulls().unique().cast(kind, strict=False)
    found = (
        master.people.filter(pl.col("patient").is_in(wanted.drop_nulls().implode()))["record"]
        .sort()
        .to_numpy()
    )
    return found, len(wanted) - len(found)


def payload_columns(
    table: pl.DataFrame, patient: str, master: Master, records: np.ndarray[Any, np.dtype[np.int64]]
) -> pl.DataFrame:
    """The columns of a payload table for the chosen records, in their order; null where the table lacks a patient."""
    kind = master.people["patient"].dtype
    keyed = table.with_columns(pl.col(patient).cast(kind, strict=False))
    if keyed[patient].is_duplicated().any():
        raise BadInput("--payload: a patient stands there more than once; keep one row for each.")
    taken = {"record", "visit", "codes"} & set(keyed.columns)
    if taken:
        raise BadInput(f"--payload: rename the column `{min(taken)}`; that name is the release's own.")
    wanted = master.people.sort("record")["patient"].gather(records).alias(patient).to_frame()
    return wanted.join(keyed, on=patient, how="left", maintain_order="left").drop(patient)


def population_counts(release: Release, measures: Mapping[str, Any]) -> dict[str, int]:
    """DC and CC of the population's original, for the extract's shares of it."""
    kept = measures.get("retention", {})
    return {name: int(kept[name]["original"]) for name in ("dc", "cc") if name in kept}
