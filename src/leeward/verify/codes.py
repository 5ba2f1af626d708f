"""`codes.parquet`: whether the list of codes says what the files show, and nothing of rarer codes.

Its name and its rows are rebuilt here from the released files, from the built-in titles of ICD and, where the source is
at hand, from the source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.contracts.contract import LARGEST, lists_shown_only
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.class_labels import read_pairs, way_up
from leeward.verify.manifest import Share, open_share
from leeward.verify.storage import UNREADABLE, open_with_dictionaries, unless_readable
from leeward.vocabulary.names import OF_CATEGORY, icd_name

NAME = "codes.parquet"
COLUMNS = {"code": pa.string(), "name": pa.string(), "vocabulary": pa.string(), "suppressed": pa.bool_()}
ICD = ("ICD-9-CM", "ICD-10-CM")
MEMBERS = "|"
BLOCK_ROWS = 1 << 20
SOURCE_ROWS = 1 << 17
"""Rows of the source at once: the first ones settle the codes that most rows have."""
MENTION = re.compile(r"#\d+$")


@unless_readable(False)
def lists_codes(share: Share) -> bool:
    """Whether the share has a list of codes of this form (constraints has one of its own)."""
    file = share.data(NAME)
    if f"data/{NAME}" not in share.paths or not file.is_file():
        return False
    return {each.name: each.type for each in pq.read_schema(file)} == COLUMNS


def codes_checks(share: Share, source: Source | None) -> list[Check]:
    """The checks of the list of codes; none where the release has none of this form."""
    if not lists_codes(share):
        return []
    try:
        listed = read_list(share)
        shown = codes_of_files(share)
        checks = [check_code_list(share, listed, shown), code_names(listed)]
        if source is not None and not share.manifest["parameters"].get("extract"):
            checks.append(frequent_codes(share, listed, shown, source))
            if source.names is not None:
                checks.append(names_of_source(share, listed, source.names))
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except UNREADABLE as problem:
        return [Check("codes_listed", False, f"The list of codes cannot be read ({type(problem).__name__}).")]
    return checks


def read_list(share: Share) -> pl.DataFrame:
    """The list of codes; by way of Arrow, which answers a damaged file with an exception."""
    return pl.DataFrame(pl.from_arrow(pq.ParquetFile(share.data(NAME)).read()))


def check_code_list(share: Share, listed: pl.DataFrame, shown: set[str]) -> Check:
    """Codes are sorted and distinct, each shown one listed as such; suppressed codes and nodes above are not shown."""
    codes = listed["code"]
    wrong = int(codes.n_unique() != listed.height) + int(not codes.is_sorted())
    above = dict(read_pairs(share.data("code_hierarchy.csv")) or ())
    free = set(listed.filter(~pl.col("suppressed"))["code"])
    hidden = set(listed.filter(pl.col("suppressed"))["code"])
    unseen = {code for code in free | hidden if shown.isdisjoint(way_up(above, code))}
    extract = share.manifest["parameters"].get("extract")
    wrong += len(shown - free) + len(hidden - unseen)
    wrong += len(hidden) if lists_shown_only(share.method, share.manifest["parameters"]) else 0
    if not extract:
        wrong += len(free & unseen)
    elif not wrong:
        wrong += _unlike_master(share, listed)
    return of_count(
        "codes_listed",
        wrong,
        f"The list has the {len(free):,} codes that the files show, and {len(hidden):,} suppressed ones.",
        "codes are not listed as the files show them, or not in order.",
    )


def _unlike_master(share: Share, listed: pl.DataFrame) -> int:
    """1 for a cohort whose list is not its master's; the method's own check says where the master is not there."""
    note = None if share.custody is None else share.custody / "master.json"
    if note is None or not note.is_file():
        return 0  # the share alone: stated as unchecked
    try:
        path = note.parent.parent / str(json.loads(note.read_text(encoding="utf-8"))["path"])
    except (ValueError, KeyError, TypeError):
        return 0
    if not (path / "share" / "release.json").is_file():
        return 0
    return int(not read_list(open_share(path)).equals(listed))


def codes_of_files(share: Share) -> set[str]:
    """The codes and labels in the data files, the members of a visit's generalized label one by one."""
    files = [share.folder / path for path in share.paths if path.endswith(".parquet")]
    found = set().union(*(_codes_of(file) for file in files if file.name != NAME))
    if share.method == "visits":
        return {member for label in found for member in label.split(MEMBERS)}
    if share.manifest["parameters"].get("repeats"):
        return found | {MENTION.sub("", label) for label in found}
    return found


def _codes_of(file: Path) -> set[str]:
    names = pq.read_schema(file).names
    column = next((name for name in ("codes", "code") if name in names), None)
    if column is None:
        return set()
    found: set[str] = set()
    for batch in open_with_dictionaries(file, (column,)).iter_batches(BLOCK_ROWS, columns=[column]):
        values = batch.column(0).flatten() if pa.types.is_list(batch.column(0).type) else batch.column(0)
        found.update(pc.unique(values).drop_null().cast(pa.string()).to_pylist())
    return found


def code_names(listed: pl.DataFrame) -> Check:
    """The names of ICD codes are those of the classification."""
    of_icd = listed.filter(pl.col("vocabulary").is_in(ICD)).select("code", "name", "vocabulary")
    rows = [(MENTION.sub("", code), name, vocabulary) for code, name, vocabulary in of_icd.iter_rows()]
    wrong = sum(name not in _names_of(code, vocabulary) for code, name, vocabulary in rows)
    return of_count(
        "code_names",
        wrong,
        f"The names of the {len(rows):,} ICD codes are those of the classification.",
        "names of ICD codes are not those of the classification.",
    )


def _names_of(code: str, vocabulary: str) -> tuple[str | None, ...]:
    """The name of an ICD code, and as version 0.1 wrote it: a category's without saying so, one misspelt."""
    name = icd_name(code, vocabulary)
    earlier = (name or "").removesuffix(OF_CATEGORY)
    return name, earlier, earlier.replace("Place of occurrence", "Place of occurence")


def names_of_source(share: Share, listed: pl.DataFrame, names: Mapping[str, tuple[str, int | None]]) -> Check:
    """Other names are the source's; one that stands beside patients' rows, only where k patients have it (and the
    files count it, if who knows what is counted would be told so), and of a sample never."""
    k = LARGEST if share.method == "censoring" else share.guarantee("k")
    counted = counted_codes(share)
    wrong = 0
    for code, name in listed.filter(~pl.col("vocabulary").is_in(ICD)).select("code", "name").iter_rows():
        theirs, patients = names.get(code) or names.get(MENTION.sub("", code), ("", None))
        few = patients is not None and (patients < k or (counted is not None and code not in counted))
        wrong += name not in ("", theirs) or (bool(name) and few)
    return of_count(
        "names_of_source",
        wrong,
        "Every other name is the source's, from a vocabulary table or shared by at least k patients.",
        "names are not the source's, or fewer than k patients have them.",
    )


def counted_codes(share: Share) -> set[str] | None:
    """The codes that chunks count, where the attacker knows what is counted."""
    if share.manifest["parameters"].get("attacker") not in ("counts", "rules"):
        return None
    found: set[str] = set()
    file = open_with_dictionaries(share.data("chunks.parquet"), ("kind", "codes"))
    for batch in file.iter_batches(BLOCK_ROWS, columns=["kind", "codes"]):
        counted = batch.filter(pc.not_equal(batch.column("kind").cast(pa.string()), "item")).column("codes")
        found.update(pc.unique(counted.flatten()).drop_null().cast(pa.string()).to_pylist())
    return found | {MENTION.sub("", code) for code in found}


def frequent_codes(share: Share, listed: pl.DataFrame, shown: set[str], source: Source) -> Check:
    """Codes that the files do not show are listed if and only if at least k patients have them."""
    k = share.guarantee("k")
    rows = set(listed["code"])
    if lists_shown_only(share.method, share.manifest["parameters"]):
        return of_count(
            "frequent_codes",
            len(rows ^ shown),
            "The list has the codes that the files show, and no others.",
            "codes are listed that the files do not show, or are shown and not listed.",
        )
    # its other checks read the source in blocks too: it may be large
    if source.stored or share.method == "disassociation":
        frequent = codes_of_many(source.blocks(SOURCE_ROWS), k)
    else:
        counted = zip(source.numbered.codes, source.numbered.people.tolist(), strict=True)
        frequent = {code for code, people in counted if people >= k}
    wrong = len(frequent - rows) + len(rows - shown - frequent)
    return of_count(
        "frequent_codes",
        wrong,
        f"The list has the shown codes, and every other code that at least {k} patients have.",
        "codes are listed that fewer than k patients have, or codes that k patients have are not.",
    )


def codes_of_many(blocks: Iterable[pl.DataFrame], k: int) -> set[str]:
    """The codes that at least k patients have, a block of rows at a time: a code is counted until it has k patients."""
    rare: pl.DataFrame | None = None
    for block in blocks:
        if rare is None:
            rare, many = block.clear(), block.clear().select("code")
        rare = pl.concat([rare, block.join(many, on="code", how="anti")]).unique()
        enough = rare.group_by("code").len().filter(pl.col("len") >= k).select("code")
        rare, many = rare.join(enough, on="code", how="anti"), pl.concat([many, enough])
    return set() if rare is None else set(many["code"].cast(pl.String))
