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
from leeward.release.versions import batch_numbers, first_batches
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
    """What joins a release: its `cohort`, the class of each patient (`patient`, `class`), the `keys` of its visits
    (`patient`, `visit`, `codes`, `batch`), the rows that are `waiting`, and `counts` for the custodian."""

    cohort: Cohort
    classes: pl.DataFrame
    keys: pl.DataFrame
    waiting: pl.DataFrame
    withdrawn: pl.Series
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Line:
    """The last version of a release, and what its custody keeps: the keys of the visits that were `published`, the rows
    that are `waiting`, the patients who have `withdrawn`, and the `people` of kept records (`record`, `patient`)."""

    release: Release
    method: Any
    handover: Handover
    records: Records
    published: pl.DataFrame
    waiting: pl.DataFrame | None
    withdrawn: pl.Series
    people: pl.DataFrame = field(repr=False)

    @property
    def number(self) -> int:
        """The number of the batch that is added."""
        return len(self.release.manifest.get("versions", [None])) + 1

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
        spec = read_custody_spec(release)
        if spec is None:
            raise BadInput(
                f"{release.share}: custody/spec.yaml is missing; name the whole folder of the last version."
            )
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
        if len(release.manifest.get("versions", ())) >= MOST:
            raise BadInput(
                f"{master}: it has {MOST} batches, the most of a line; start a new one with `protect`."
            )
        kept = {
            name: None if file is None else pl.read_parquet(file)
            for name in ("published", "waiting", "withdrawn", "records")
            for file in [release.custody_file(f"versions/{name}.parquet")]
        }
        known, gone, people = kept["published"], kept["withdrawn"], kept["records"]
        if known is None:
            source = _first_source(release, spec, published)
            known = _keys(_rows(source, METHODS[method.name].source == "table", 1), 1)
        if people is None and wanted == "kept":
            people = release.custody_table("patients")
            if people is None:
                raise BadInput(
                    f"{master}: custody/data/patients.parquet is missing; nobody knows who is who."
                )
        nobody = pl.DataFrame(schema={"record": pl.Int64, "patient": pl.String})
        return Line(
            release,
            method,
            spec.release or Handover(),
            wanted,
            known,
            kept["waiting"],
            nobody["patient"] if gone is None else gone["patient"],
            nobody if people is None else people.select(pl.col("record").cast(pl.Int64), text("patient")),
        )

    def select(self, new: Cohort, withdrawn: Sequence[Any], wait: int) -> Batch:
        """What is new in a cohort and can be released now. GuaranteeUnreachable where too few patients are new."""
        if wait and not self.in_classes:
            raise BadInput("--wait: only visits that are not merged can wait.")
        named = pl.Series("patient", list(map(str, withdrawn)), pl.String).unique()
        gone = pl.concat([self.withdrawn, named]).unique()
        rows = _rows(new, self.is_table, self.number)
        keys = _keys(rows, self.number)
        then = keys.join(self.published.select(*KEYS, then="codes"), on=KEYS, how="left")
        fresh = then.filter(pl.col("then").is_null() & ~pl.col("patient").is_in(gone.implode()))
        counts = {
            "published": then.filter(pl.col("codes") == pl.col("then")).height,
            "corrected": then.filter(pl.col("codes") != pl.col("then")).height,
            "withdrawn": len(gone),
            "unknown": len(set(named) - set(self.published["patient"]) - set(keys["patient"])),
        }
        if not self.is_table:
            self._require_vocabulary(new)
        rows = self._with_waiting(rows.join(fresh, on=KEYS, how="semi"), gone)
        classes = self._classes(rows)
        now = self._hold(rows, new, classes, wait)
        waiting = rows.join(now, on=KEYS, how="anti")
        keys = _keys(now, self.number)
        counts |= {"patients": now["patient"].n_unique()}
        counts |= {} if self.is_table else {"visits": keys.height}
        counts |= {"waiting": waiting.select(KEYS).n_unique()}
        return Batch(_cohort(new, now, self.is_table), classes, keys, waiting, gone, counts)

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
        known = _people(batch).join(self.people, on="patient", how="left", maintain_order="left")["record"]
        following = self.release.records + known.is_null().cum_sum().cast(pl.Int64) - 1
        return known.fill_null(following).to_numpy()

    def copy_custody(self, folder: Path) -> Path:
        """Copy the custody of the batches before; returns the folder of the new one."""
        assert self.release.custody is not None
        if self.number == 2:
            shutil.copytree(self.release.custody, folder / "1")
        else:
            shutil.copytree(self.release.custody / "batches", folder)
        return folder / str(self.number)

    def write_custody(self, pending: Draft, batch: Batch, made: Release, number: Int64s) -> None:
        """Write what the next refresh needs."""
        tables = {
            "published": pl.concat([self.published, batch.keys]),
            "waiting": batch.waiting,
            "withdrawn": batch.withdrawn.to_frame(),
        }
        if self.records == "kept":
            people = _people(made).select(pl.Series("record", number), "patient")
            tables["records"] = pl.concat([self.people, people]).unique("record").sort("record")
        (pending.custody / "versions").mkdir()
        for name, table in tables.items():
            table.write_parquet(pending.custody / "versions" / f"{name}.parquet")

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

    def _with_waiting(self, rows: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
        """The rows of visits that are new or wait. A visit that waits and comes again is taken as it comes."""
        if self.waiting is not None:
            late = self.waiting.filter(~pl.col("patient").is_in(gone.implode()))
            since = late.select(*KEYS, then="since").unique()
            rows = rows.join(since, on=KEYS, how="left", maintain_order="left")
            rows = rows.with_columns(since=pl.coalesce("then", "since")).drop("then")
            late = late.join(rows, on=KEYS, how="anti")
            rows = pl.concat([rows, late], how="diagonal_relaxed").select(rows.columns)
        return rows.sort(KEYS, maintain_order=True)

    def _hold(self, rows: pl.DataFrame, new: Cohort, classes: pl.DataFrame, wait: int) -> pl.DataFrame:
        """The rows that are released now. With `wait`, visits whose set nearly k patients share are held back for so
        many batches; a class of fewer than k patients is, until it has k."""
        if wait:
            from leeward.methods.visits.batch import find_short

            short = find_short(self.method, _cohort(new, rows), classes, self.labels())
            late = rows[short.cast(pl.Int64).to_numpy() - 1].filter(self.number - pl.col("since") < wait)
            rows = rows.join(late, on=KEYS, how="anti")
        sizes = rows.select("patient").unique().join(classes, on="patient").group_by("class").len()
        self._require(cast(int, sizes["len"].max() or 0), new.name)
        enough = classes.join(sizes.filter(pl.col("len") >= self.method.k), on="class", how="semi")
        return rows.join(enough, on="patient", how="semi")

    def _classes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The class of each patient: by the batch in which the record entered and those in which it shows visits. New
        patients are one class, as are all where nothing says that a patient returns."""
        people = rows.select("patient").unique(maintain_order=True)
        if self.records == "apart":
            return people.with_columns(pl.lit(0, pl.Int64).alias("class"))
        entered = pl.DataFrame({"batch": -first_batches(self.release)}).with_row_index("record")
        shown = self.release.table("visits.parquet").select("record").collect()
        shown = shown.with_columns(batch=batch_numbers(self.release, "data/visits.parquet"))
        each = pl.concat([entered.cast(pl.Int64), shown.cast(pl.Int64)]).unique().sort("record", "batch")
        seen = each.group_by("record").agg(seen=pl.col("batch").cast(pl.String).str.join(","))
        own = people.join(self.people.join(seen, on="record"), on="patient", how="left")
        number = pl.col("seen").fill_null("").rank("dense").cast(pl.Int64) - 1
        return own.select("patient", number.alias("class"))


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


def _rows(cohort: Cohort, is_table: bool, batch: int) -> pl.DataFrame:
    """The events of a cohort with `patient`, `visit` and `code` as texts, and the batch `since` when they wait.

    A row of a table is one visit, and its only code are all its values."""
    since = pl.lit(batch, pl.Int64).alias("since")
    if not is_table:
        visit = text(visit_column(cohort)).alias("visit")
        return cohort.require_events().with_columns(text("patient"), text("code"), visit, since)
    if cohort.patients is None or "patient" not in cohort.patients.columns:
        raise BadInput(
            f"{cohort.name}: no identifiers of patients, so it is unknown whose rows were published; name "
            "their column with --patient."
        )
    cohort.require_one_row_each()
    values = pl.concat_str(pl.exclude("patient").cast(pl.String).fill_null("\x00"), separator="\x1e")
    return _spelled(cohort.patients).select("patient", pl.lit("").alias("visit"), values.alias("code"), since)


def _spelled(people: pl.DataFrame) -> pl.DataFrame:
    """A table of patients with identifiers as texts, whole numbers without a point, as other batches and the register
    have them."""
    own = people["patient"]
    is_whole = own.dtype.is_float() and (own == own.floor()).all()
    return people.with_columns((own.cast(pl.Int64) if is_whole else own).cast(pl.String))


def _keys(rows: pl.DataFrame, batch: int) -> pl.DataFrame:
    """`patient`, `visit`, `codes` and `batch` of each visit."""
    found = rows.group_by(KEYS).agg(codes=pl.col("code").unique().sort().str.join("\x1f"))
    return found.sort(KEYS).with_columns(pl.lit(batch, pl.Int64).alias("batch"))


def _cohort(new: Cohort, rows: pl.DataFrame, is_table: bool = False) -> Cohort:
    """The cohort of some rows; events are numbered anew."""
    if is_table:
        table = _spelled(cast(pl.DataFrame, new.patients))
        return replace(new, patients=table.join(rows, on="patient", how="semi"))
    kind = pl.Enum(rows["code"].unique().sort())
    row = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).alias("row")
    own = rows.drop("since").with_columns(row, pl.col("code").cast(kind))
    return Cohort(events=own, name=new.name, vocabulary=new.vocabulary, names=new.names, notices=new.notices)


def _people(batch: Release) -> pl.DataFrame:
    """The `patient` of each record of a batch that was just written."""
    people = batch.custody_table("patients")
    assert people is not None
    return people.sort("record").select(text("patient"))


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
