"""A line: the versions of a release, of which custody keeps who is who, what was published, and what waits."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from leeward.arrays import Int64s, count_noun
from leeward.cohort.cohort import Cohort
from leeward.contracts.versions import MOST
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import Anonymized, Draft, Release
from leeward.release.spec import Handover, Spec
from leeward.release.versions import (
    Tables,
    batch_numbers,
    first_batches,
    number_again,
    number_on,
    versions_of,
)
from leeward.runs.protect import method_of
from leeward.runs.specs import read_custody_spec, read_source
from leeward.runs.writing import files_of
from leeward.version import __version__

Records = Literal["kept", "apart"]

NOT_BY_BATCHES = {
    "censoring": "its k is counted in a population, and the population grows",
    "linked": "its rows stand beside demographics, which a patient has in every batch",
    "notes": "its counts are paid from a budget",
    "trajectories": "its hierarchies are those of one batch",
    "constraints": "its labels are those of one batch (`--mapping` applies them to later data)",
}
"""Methods that cannot be refreshed, and why."""

OWN = ("demographics", "payload", "reconstructions")
"""Parameters with which a patient may look alike in every batch, so that two of them tell more than each."""

KEYS = ["patient", "visit"]


@dataclass(frozen=True)
class Batch:
    """What joins a release: the `cohort`; `classes` (`patient`, `class`) of visits whose records are kept; the `keys`
    of its visits (`patient`, `visit`, `codes` as texts), the events that are `waiting`, the patients who have
    `withdrawn`, and `counts` for the custodian."""

    cohort: Cohort
    classes: pl.DataFrame
    keys: pl.DataFrame
    waiting: pl.DataFrame
    withdrawn: pl.Series
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Line:
    """The last version of a release, and what its custody keeps. `people`: `record`, `patient` of visits."""

    release: Release
    method: Any
    handover: Handover
    records: Records
    published: pl.DataFrame
    waiting: pl.DataFrame
    withdrawn: pl.Series
    people: pl.DataFrame = field(repr=False)

    @property
    def number(self) -> int:
        """The number of the batch that is added."""
        return len(versions_of(self.release)) + 1

    @property
    def in_classes(self) -> bool:
        """Whether a batch takes the labels of the first version, and its sets are shared within classes."""
        return self.method.name == "visits" and not self.method.merge_visits

    @property
    def is_table(self) -> bool:
        return METHODS[self.method.name].source == "table"

    @staticmethod
    def open(master: Path, records: Records | None, published: Cohort | None, *, seeded: bool) -> Line:
        """Open the last version. BadInput for a release that cannot be refreshed, or not with these settings."""
        release = Release.open(master)
        release.require_format()
        spec = _spec_of(release)
        method = _method_of(release, spec)
        if seeded != release.seeded:
            raise BadInput(
                f"{master}: either all batches of a line have a seed, for tests and studies, or none."
            )
        stated = release.manifest.get("returning")
        wanted = records or stated or ("kept" if method.name == "visits" else "apart")
        if stated not in (None, wanted):
            raise BadInput(f"{master}: the records of returning patients are {stated}, in every version.")
        if wanted == "kept" and (method.name != "visits" or method.merge_visits):
            raise BadInput(
                "--records kept: only visits, not merged, keep the records of returning patients; use `apart`."
            )
        if len(versions_of(release)) >= MOST:
            raise BadInput(
                f"{master}: it has {MOST} batches, the most of a line; start a new one with `protect`."
            )
        tables = {
            name: _custody_table(release, name) for name in ("published", "waiting", "withdrawn", "records")
        }
        known, people = tables["published"], tables["records"]
        if known is None:
            known = _keys(_first_source(release, spec, published), 1, METHODS[method.name].source == "table")
        if people is None and wanted == "kept":
            people = release.custody_table("patients")
            if people is None:
                raise BadInput(
                    f"{master}: custody/data/patients.parquet is missing; nobody knows who is who."
                )
        gone = tables["withdrawn"]
        return Line(
            release,
            method,
            spec.release or Handover(),
            wanted,
            known,
            pl.DataFrame() if tables["waiting"] is None else tables["waiting"],
            pl.Series("patient", [], pl.String) if gone is None else gone["patient"],
            pl.DataFrame() if people is None else people.select("record", text("patient")),
        )

    def select(self, new: Cohort, withdrawn: Sequence[Any], wait: int) -> Batch:
        """What is new in a cohort and can be released now. GuaranteeUnreachable where too few patients are new."""
        if wait and not self.in_classes:
            raise BadInput("--wait: only visits that are not merged can wait.")
        gone = pl.concat(
            [self.withdrawn, pl.Series("patient", list(map(str, withdrawn)), pl.String)]
        ).unique()
        keys = _keys(new, self.number, self.is_table)
        both = keys.join(self.published.select(*KEYS, pl.col("codes").alias("then")), on=KEYS, how="left")
        counts = {
            "published": both.filter(pl.col("codes") == pl.col("then")).height,
            "corrected": both.filter(pl.col("codes") != pl.col("then")).height,
            "withdrawn": len(gone),
        }
        fresh = both.filter(pl.col("then").is_null()).drop("then")
        fresh = fresh.filter(~pl.col("patient").is_in(gone.implode()))
        if self.is_table:
            rows = _spelled(cast(pl.DataFrame, new.patients))
            own = rows.filter(text("patient").is_in(fresh["patient"].implode()))
            cohort = replace(new, patients=own)
            self._require(own.height, new.name)
            nothing = pl.DataFrame()
            return Batch(
                cohort, nothing, fresh, nothing, gone, {**counts, "patients": own.height, "waiting": 0}
            )
        self._require_vocabulary(new)
        events = self._with_waiting(new, fresh, gone)
        events, waiting, classes = self._wait(events, new, wait)
        people = events["patient"].n_unique()
        visits, late = (each.select(KEYS).n_unique() if each.height else 0 for each in (events, waiting))
        counts |= {"patients": people, "visits": visits, "waiting": late}
        cohort = _cohort(new, events)
        return Batch(cohort, classes, _keys(cohort, self.number, False), waiting, gone, counts)

    def patients(self, batch: Batch) -> pl.Series:
        """The patients of the version with a batch: of all batches, and those of whom a batch left everything out."""
        return pl.concat([self.published["patient"], batch.keys["patient"]]).unique()

    def protect(self, batch: Batch, randomness: Randomness, threads: int | None) -> Anonymized:
        """Protect a batch by itself."""
        from leeward.engine import make

        runner = make("local", threads=threads)
        if not self.in_classes:
            return cast(Anonymized, self.method.protect(batch.cohort, runner, randomness=randomness))
        from leeward.methods.code_list import with_code_list
        from leeward.methods.visits.batch import protect_batch

        made = protect_batch(self.method, batch.cohort, batch.classes, self.labels(), runner, randomness)
        return with_code_list(made, batch.cohort)

    def labels(self) -> dict[str, str]:
        """The labels of the first version by code; without the codes that it suppressed."""
        file = self.release.custody_file(self._of_first("data/codes.parquet"))
        if file is None:
            raise BadInput(
                f"{self.release.share}: custody lacks codes.parquet of the first version, with its labels."
            )
        return dict(pl.read_parquet(file).drop_nulls("label").select("code", "label").iter_rows())

    def numbers(self, batch: Release) -> Int64s:
        """The record of each record of a batch: its own where the patient has one, else the next."""
        if self.records == "apart":
            return np.arange(self.release.records, self.release.records + batch.records)
        own = batch.custody_table("patients")
        assert own is not None  # just written
        both = (
            own.sort("record")
            .select(text("patient"))
            .join(self.people, on="patient", how="left", maintain_order="left")
        )
        record = both["record"].to_numpy(writable=True).astype(np.float64)
        new = np.isnan(record)
        record[new] = self.release.records + np.arange(new.sum())
        return record.astype(np.int64)

    def rows(self, batch: Release, number: Int64s) -> Tables:
        """The rows of a batch as the release numbers them."""
        return (
            number_again(self.release, batch, number)
            if self.records == "kept"
            else number_on(self.release, batch)
        )

    def copy_custody(self, folder: Path) -> Path:
        """Copy the custody of the batches before; returns the folder of the new one."""
        assert self.release.custody is not None
        if self.number == 2:
            shutil.copytree(self.release.custody, folder / "1")
        else:
            shutil.copytree(self.release.custody / "batches", folder)
        return folder / str(self.number)

    def write_custody(self, pending: Draft, batch: Batch, folder: Path, number: Int64s) -> None:
        """Write what the next refresh needs."""
        tables = {
            "published": pl.concat([self.published, batch.keys]),
            "waiting": batch.waiting,
            "withdrawn": batch.withdrawn.to_frame(),
        }
        if self.records == "kept":
            people = pl.read_parquet(folder / "custody" / "data" / "patients.parquet").sort("record")
            again = people.select(text("patient")).with_columns(record=pl.Series(number))
            both = pl.concat([self.people, again.select("record", "patient")]).unique("record", keep="first")
            tables["records"] = both.sort("record")
        kept = pending.custody / "versions"
        kept.mkdir()
        for name, table in tables.items():
            if table.width:
                table.write_parquet(kept / f"{name}.parquet")

    def _of_first(self, name: str) -> str:
        """A file of the first version's custody."""
        return name if self.number == 2 else f"batches/1/{name}"

    def _require_vocabulary(self, new: Cohort) -> None:
        read = self.release.custody_json(self._of_first("measures.json")) or {}
        then, now = read.get("source", {}).get("vocabulary"), new.vocabulary
        if then != now:
            raise BadInput(
                f"{new.name}: read as codes of {now or 'no known vocabulary'}, and the first version as of "
                f"{then or 'none'}; name the same one with --vocabulary."
            )

    def _require(self, patients: int, name: str) -> None:
        least = getattr(self.method, "counted_from", self.method.k)
        if patients < least:
            raise GuaranteeUnreachable(
                f"{name}: a batch needs {least} patients, and there are {patients} with something new: "
                f"{count_noun('patient', least - patients)} more. Nothing was written; refresh when they have come."
            )

    def _with_waiting(self, new: Cohort, fresh: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
        """The events of visits that are new or wait, with the batch `since` when they do; a visit that waits and comes
        again is taken as it comes."""
        name = visit_column(new)
        events = new.require_events().with_columns(visit=pl.col(name).cast(pl.String), code=text("code"))
        events = events.with_columns(key=text("patient"))
        events = events.join(
            fresh.select(pl.col("patient").alias("key"), "visit"), on=["key", "visit"], how="semi"
        )
        events = events.with_columns(since=pl.lit(self.number, pl.Int64))
        if self.waiting.height:
            late = self.waiting.filter(~pl.col("key").is_in(gone.implode()))
            late = late.with_columns(pl.col("patient").cast(events.schema["patient"], strict=False))
            since = late.select("key", "visit", pl.col("since").alias("then")).unique()
            events = events.join(since, on=["key", "visit"], how="left")
            events = events.with_columns(since=pl.coalesce("then", "since")).drop("then")
            late = late.join(events, on=["key", "visit"], how="anti")
            events = pl.concat(
                [events, late.select([c for c in events.columns if c in late.columns])],
                how="diagonal_relaxed",
            )
        return events.sort("key", "visit", maintain_order=True)

    def _wait(
        self, events: pl.DataFrame, new: Cohort, wait: int
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """What is released now, what waits, and the class of each patient. Classes of fewer than k patients wait; with
        `wait`, so do visits whose set nearly k patients share, for so many batches."""
        k, nothing = self.method.k, pl.DataFrame()
        classes = self._classes(events)
        if wait:
            from leeward.methods.visits.batch import find_short

            cohort = _cohort(new, events)
            rows = find_short(self.method, cohort, classes, self.labels())
            late = cohort.require_events().filter(pl.col("row").is_in(rows.implode()))
            late = (
                events[late["row"].cast(pl.Int64).to_numpy() - 1].select(["key", "visit", "since"]).unique()
            )
            late = late.filter(self.number - pl.col("since") < wait)
            held = events.join(late, on=["key", "visit"], how="semi")
            now = events.join(late, on=["key", "visit"], how="anti")
        else:
            now, held = events, events.clear()
        sizes = now.select("patient").unique().join(classes, on="patient").group_by("class").len()
        if self.records == "apart" or not sizes.height:
            self._require(now["patient"].n_unique(), new.name)
        small = sizes.filter(pl.col("len") < k)
        if small.height == sizes.height:
            self._require(int(sizes["len"].max() or 0), new.name)  # type: ignore[arg-type]  # lengths
        few = classes.join(small, on="class", how="semi")
        held = pl.concat([held, now.join(few, on="patient", how="semi")])
        now = now.join(few, on="patient", how="anti")
        return now, held, classes if held.height or now.height else nothing

    def _classes(self, events: pl.DataFrame) -> pl.DataFrame:
        """The class of each patient: by the batch in which the record entered and those in which it shows visits; new
        patients are one class, as are all where nothing says that a patient returns."""
        people = events.select("patient", "key").unique()
        if self.records == "apart":
            return people.select("patient", pl.lit(0, pl.Int64).alias("class"))
        shown = self.release.table("visits.parquet").select("record").collect()
        shown = shown.with_columns(
            batch=pl.Series(batch_numbers(self.release, "data/visits.parquet"))
        ).unique()
        history = (
            shown.sort("record", "batch")
            .group_by("record")
            .agg(pl.col("batch").cast(pl.String).str.join(","))
        )
        entry = pl.DataFrame({"entry": first_batches(self.release)}).with_row_index("record")
        known = entry.with_columns(pl.col("record").cast(pl.Int64)).join(history, on="record", how="left")
        known = known.join(self.people, on="record").select(
            pl.col("patient").alias("key"), seen=pl.format("{}:{}", "entry", pl.col("batch").fill_null(""))
        )
        own = people.join(known, on="key", how="left").with_columns(pl.col("seen").fill_null(""))
        return own.select("patient", pl.col("seen").rank("dense").cast(pl.Int64).alias("class") - 1)


def text(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String)


def visit_column(cohort: Cohort) -> str:
    """The column that tells visits: BadInput where there is none, or it is empty in some rows."""
    events = cohort.require_events()
    name = next((each for each in ("visit", "date") if each in events.columns), None)
    if name is None:
        raise BadInput(
            f"{cohort.name}: no column of visits and no dates, so it is unknown which rows were published already; "
            "name one with --visit or --date."
        )
    empty = events[name].null_count()
    if empty:
        raise BadInput(
            f"{cohort.name}: {count_noun('row', empty)} have no value in the column of visits, so it is unknown "
            "whether they were published already; fill it in, or leave the rows out."
        )
    return name


def _keys(cohort: Cohort, batch: int, is_table: bool) -> pl.DataFrame:
    """`patient`, `visit`, `codes` and `batch` of each visit, as texts; of each row of a table of patients."""
    number = pl.lit(batch, pl.Int64).alias("batch")
    if is_table:
        if cohort.patients is None or "patient" not in cohort.patients.columns:
            raise BadInput(
                f"{cohort.name}: no identifiers of patients, so it is unknown whose rows were published; name "
                "their column with --patient."
            )
        cohort.require_one_row_each()
        rows = pl.concat_str(pl.exclude("patient").cast(pl.String).fill_null("\x00"), separator="\x1e")
        return _spelled(cohort.patients).select(
            text("patient"), pl.lit("").alias("visit"), rows.alias("codes"), number
        )
    events = cohort.require_events().select(
        text("patient"), text(visit_column(cohort)).alias("visit"), text("code")
    )
    return (
        events.group_by(KEYS)
        .agg(codes=pl.col("code").unique().sort().str.join("\x1f"))
        .sort(KEYS)
        .with_columns(number)
    )


def _spelled(people: pl.DataFrame) -> pl.DataFrame:
    """A table of patients whose identifiers, where they are whole numbers, have no point, as in other batches and in
    the register."""
    own = people["patient"]
    is_whole = own.dtype.is_float() and (own == own.floor()).all()
    return people.with_columns(own.cast(pl.Int64)) if is_whole else people


def _cohort(new: Cohort, events: pl.DataFrame) -> Cohort:
    """The cohort of some events; their rows are numbered anew."""
    kind = pl.Enum(events["code"].unique().sort())
    row = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("row")
    own = events.drop("key", "since").with_columns(row, pl.col("code").cast(kind))
    return Cohort(events=own, name=new.name, vocabulary=new.vocabulary, names=new.names, notices=new.notices)


def _spec_of(release: Release) -> Spec:
    spec = read_custody_spec(release)
    if spec is None:
        raise BadInput(
            f"{release.share}: custody/spec.yaml is missing; name the whole folder of the last version."
        )
    return spec


def _method_of(release: Release, spec: Spec) -> Any:
    """The method of a release with the parameters that its run decided. BadInput where it cannot be refreshed."""
    why = NOT_BY_BATCHES.get(release.method)
    if why is not None:
        raise BadInput(f"refresh: {release.method} cannot be refreshed: {why}.")
    if release.manifest["leeward"] != __version__:
        raise BadInput(
            f"{release.share}: made by leeward {release.manifest['leeward']}, and this is {__version__}: a line is "
            "made by one version. Use that one, or start a new line with `protect`."
        )
    if release.parameters.get("extract"):
        raise BadInput(
            "refresh: this is a cohort drawn from a master; refresh the master, and draw it again."
        )
    method: Any = method_of(spec.method)
    left_open = {
        each.name for each in fields(method) if each.init and getattr(method, each.name) in (None, "auto", ())
    }
    decided = {name: value for name, value in release.parameters.items() if name in left_open}
    method = method_of({**spec.method, **decided})
    own = [name for name in OWN if getattr(method, name, None)]
    if own or getattr(method, "enforce", "delete") == "generalize":
        raise BadInput(
            f"refresh: not with `{own[0] if own else 'enforce'}`: what a patient shows there is alike in every batch, "
            "and two batches tell more of it than each. Make the first version without it."
        )
    return method


def _first_source(release: Release, spec: Spec, given: Cohort | None) -> Cohort:
    """The source of the first version."""
    if given is not None:
        return given
    listed = release.custody_json("source_files.json")
    try:
        if listed is not None and files_of(spec.source) != listed["files"]:
            raise BadInput("it has changed since.")
        return read_source(spec.source)
    except BadInput as problem:
        raise BadInput(
            f"The source of the first version cannot be read, so it is unknown what was published ({problem}) Name it "
            "with --published."
        ) from None


def _custody_table(release: Release, name: str) -> pl.DataFrame | None:
    file = release.custody_file(f"versions/{name}.parquet")
    return None if file is None else pl.read_parquet(file)
