"""A release that grows, from its shared files alone (docs/methods/refresh.md): each batch is a release of its method,
and no version and no difference of two versions shows what fewer than k records have.

Where returning patients have a record of their own in each batch, rows are cut at the bounds of the batches, and each
part is verified as a release by itself: so none of its rows refers to another batch. Where they keep their record, the
visits of a batch are counted among the records that are alike in everything that other versions show of them: in which
batch they entered, and in which batches before they showed visits. Every version and every difference is a union of
such classes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, failing, merge_checks, of_count
from leeward.verify.classes import code_of_class
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share, manifest_checks, manifest_types
from leeward.verify.visits.layout import VisitLists, layout
from leeward.verify.visits.levels import level_checks
from leeward.verify.visits.source import order_of_visits

LIST = "codes.parquet"
VISITS = "data/visits.parquet"
TABLE = "data/table.parquet"
"""A table of patients: its columns are the source's, whatever their names."""


def files_of_rows(share: Share) -> list[str]:
    """The files whose rows are of batches; the list of codes and copies in CSV are not."""
    return [path for path in share.paths if path.endswith(".parquet") and Path(path).name != LIST]


def bounds_of(share: Share, path: str) -> list[int]:
    """Where the rows of each batch begin in a file, and the end of the last."""
    return [0, *accumulate(version["rows"].get(path, 0) for version in share.manifest["versions"])]


def bounds_of_records(share: Share) -> list[int]:
    return [0, *accumulate(version["records"] for version in share.manifest["versions"])]


def add_up(share: Share) -> list[Check]:
    """The rows and records of the batches are those of the files, and have the digests stated."""
    files, versions = files_of_rows(share), share.manifest["versions"]
    wrong = sum(sorted(version["rows"]) != sorted(files) for version in versions)
    wrong += sum(bounds_of(share, path)[-1] != share.table(Path(path).name).height for path in files)
    wrong += bounds_of_records(share)[-1] != share.manifest["records"]
    if not wrong:
        wrong = sum(digest_of(share, batch) != version["sha256"] for batch, version in enumerate(versions))
    return [
        of_count(
            "batches_stated",
            wrong,
            f"The rows and records of {len(versions)} batches are those of the files, with the digests stated.",
            "rows, records or digests of batches are not those of the files.",
        )
    ]


def digest_of(share: Share, batch: int) -> str:
    """SHA-256 of the rows of a batch: of each file, by name, its path and its rows as lines of JSON."""
    found = hashlib.sha256()
    for path in sorted(files_of_rows(share)):
        rows = share.table(Path(path).name)[slice(*bounds_of(share, path)[batch : batch + 2])]
        found.update(f"{path}\n{rows.write_ndjson()}".encode())
    return found.hexdigest()


def check_batches(share: Share, checks_of: Callable[[Share], list[Check]]) -> list[Check]:
    """The method's checks of each batch, as one each; of visits whose records are kept also those of its classes."""
    made: dict[str, list[Check]] = {}
    versions = len(share.manifest["versions"])
    for batch in range(versions):
        with cut_out(share, batch) as part:
            for check in checks_of(part):
                made.setdefault(check.name, []).append(check)
    found = [merge_checks(checks, len(checks), "batches") for checks in made.values()]
    return found if share.manifest["returning"] == "apart" else found + check_returning(share)


@contextmanager
def cut_out(share: Share, batch: int) -> Iterator[Share]:
    """A batch as a release by itself, in a folder for the time being, with its custody where that is at hand; of kept
    records those that entered in it."""
    kept = share.manifest["returning"] == "kept"
    low, high = bounds_of_records(share)[batch : batch + 2]
    counts = {"record": low}
    if "data/nodes.parquet" in share.paths:
        counts |= dict.fromkeys(("node", "parent"), bounds_of(share, "data/nodes.parquet")[batch])
    with tempfile.TemporaryDirectory(prefix="leeward-batch-") as work:
        folder = Path(work) / "share"
        (folder / "data").mkdir(parents=True)
        entries = []
        for path in files_of_rows(share):
            first, last = bounds_of(share, path)[batch : batch + 2]
            rows = share.table(Path(path).name)[first:last]
            if kept:
                rows = rows.filter(pl.col("record") >= low)
            if path != TABLE:
                rows = rows.with_columns(
                    pl.col(name) - counts[name] for name in rows.columns if name in counts
                )
            rows.write_parquet(folder / path)
            digest = next(entry["sha256"] for entry in share.manifest["files"] if entry["path"] == path)
            entries.append({"path": path, "rows": rows.height, "sha256": digest})
        custody = None if share.custody is None else share.custody / "batches" / str(batch + 1)
        if custody is not None and custody.is_dir() and not (kept and batch):  # numbers its records by itself
            (Path(work) / "custody").symlink_to(custody.resolve())
        manifest = {
            key: value for key, value in share.manifest.items() if key not in ("versions", "returning")
        }
        yield Share(folder, manifest | {"files": entries, "records": high - low}, share.name)


def check_returning(share: Share) -> list[Check]:
    """What records show again is shared by k records of their class, and its order says nothing."""
    laid, visits = layout(share)
    if visits is None:
        return [replace(each, name=f"{each.name}_of_returning") for each in laid]
    k, level = share.guarantee("k"), str(share.manifest["parameters"]["level"])
    bounds = bounds_of(share, VISITS)
    batch = np.repeat(np.arange(1, len(bounds)), np.diff(bounds))[: len(visits)]
    entered = np.searchsorted(bounds_of_records(share), visits.record, side="right")
    strangers = int(np.count_nonzero(entered > batch))
    apart = apart_by(visits, np.stack([batch, entered, history_of(visits.record, batch)]))
    counted = level_checks(share, apart, k, level)
    own = visits.record * (int(batch.max(initial=0)) + 1) + batch  # a record for each record and batch
    seen = replace(visits, record=own).take(np.lexsort((visits.visit, own)))
    return [
        of_count(
            "records_entered",
            strangers,
            "No record shows visits before the batch in which it entered.",
            "visits are of a record that entered in a later batch.",
        ),
        visits_numbered_on(visits, batch),
        replace(order_of_visits(share, seen), name="order_in_batches"),
        *(replace(each, name=f"{each.name}_of_returning") for each in (*laid, *counted)),
    ]


def history_of(record: Longs, batch: Longs) -> Longs:
    """The earlier batches in which each row's record shows visits, as bits."""
    pairs = pl.DataFrame({"record": record, "batch": batch})
    bits = pl.lit(1, pl.Int64) * 2 ** pl.col("batch").cast(pl.Int64)
    each = pairs.unique().sort("record", "batch").with_columns(bit=bits.cast(pl.Int64))
    each = each.with_columns(before=pl.col("bit").cum_sum().over("record") - pl.col("bit"))
    found = pairs.join(each, on=["record", "batch"], how="left", maintain_order="left")["before"]
    return found.to_numpy()


def apart_by(visits: VisitLists, columns: Longs) -> VisitLists:
    """The visits, labels of rows with other values in the columns apart."""
    _, classes = np.unique(columns, axis=1, return_inverse=True)
    width = max(1, len(visits.labels))
    keys = np.repeat(classes.reshape(-1), visits.sizes()) * width + visits.values
    used, values = np.unique(keys, return_inverse=True)
    labels = tuple(code_of_class(key // width, visits.labels[key % width]) for key in used.tolist())
    return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)


def visits_numbered_on(visits: VisitLists, batch: Longs) -> Check:
    """Visits of a later batch have larger numbers than those of earlier ones."""
    order = np.lexsort((visits.visit, visits.record))
    same = visits.record[order][1:] == visits.record[order][:-1]
    back = int(np.count_nonzero(same & (batch[order][1:] < batch[order][:-1])))
    return of_count(
        "visits_numbered_on",
        back,
        "Visits of later batches are numbered after those of earlier ones.",
        "visits have a smaller number than one of an earlier batch.",
    )


def check_earlier(share: Share, earlier: Share) -> list[Check]:
    """A version against an earlier one: the same promises, and no row changed or gone. What was added keeps k among the
    records that were there and among new ones, since both are unions of the classes of `check_returning`."""
    if failing([manifest_types(earlier), *manifest_checks(earlier)]):
        return [Check("same_line", False, "The earlier version is not as its release.json states.")]
    same = all(share.manifest[key] == earlier.manifest[key] for key in ("method", "parameters", "leeward"))
    numbers = [
        {name: each.manifest["guarantee"].get(name) for name in ("k", "m")} for each in (share, earlier)
    ]
    versions = share.manifest.get("versions", [])
    if not same or numbers[0] != numbers[1] or not versions:
        return [
            Check(
                "same_line", False, "The two are not versions of one release: method, parameters or k differ."
            )
        ]
    before, files = len(earlier.manifest.get("versions", [None])), files_of_rows(earlier)
    stays = before <= len(versions) and files == files_of_rows(share)
    stays = stays and bounds_of_records(share)[before] == earlier.manifest["records"]
    for path in files if stays else ():
        now, then = (each.table(Path(path).name) for each in (share, earlier))
        first = now[: bounds_of(share, path)[before]]
        stays = stays and first.schema == then.schema and first.equals(then)
    return [
        Check("same_line", True, f"Version {len(versions)} of a release, and its version {before}."),
        Check(
            "rows_stay",
            stays,
            "Every row of the earlier version is in this one, unchanged."
            if stays
            else "Rows of the earlier version are missing or changed.",
        ),
    ]
