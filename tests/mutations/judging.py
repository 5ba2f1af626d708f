"""What a mutated release breaks, by the plain definitions and by comparison with the release as it was made."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException
from tests.forging import write_parquet
from tests.mutations import classed, definitions, joined, listing, paths
from tests.mutations.copies import Mutation, csvs, manifest_of, parquets, unchanged
from tests.mutations.definitions import Broken, Truth
from tests.mutations.payloads import payload_truth
from tests.mutations.releases import Made


def broken(made: Made, mutation: Mutation, out: Path) -> tuple[Broken, Broken]:
    """What the mutated release breaks: with all that is true at hand, and as far as the share alone shows it."""
    try:
        whole, alone = formal(made, mutation, out)
    except (AttributeError, KeyError, TypeError, ValueError):  # no manifest, or one of other types
        whole, alone = {"manifest"}, {"manifest"}
    try:
        inside = of_share(made, out)
        outside = of_truth(made, out)
    except (Exception, PanicException):  # what cannot be read as a release of the method
        inside, outside = {"unreadable"}, {"unreadable"}
    alone |= inside
    whole |= inside | outside
    if mutation.part == "order":
        whole.add("order")
        if mutation.tells == "share":
            alone.add("order")
    if mutation.part == "custody":
        whole.add("custody")
    return whole | alone, alone


def formal(made: Made, mutation: Mutation, out: Path) -> tuple[Broken, Broken]:
    """Files, bytes, columns, keys, words and claims against the release as it was made."""
    whole: Broken = set()
    alone: Broken = set()
    manifest, before = manifest_of(out), manifest_of(made.out)
    text = (out / "share/release.json").read_bytes()
    if text != (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode():
        alone.add("manifest")
    if set(manifest) - {"seeded"} != set(before) - {"seeded"}:
        return {"keys"}, {"keys"}
    if not spelt_alike(manifest, before):
        alone.add("manifest")
    for key in ("leeward", "format", "method", "seeded"):
        if manifest.get(key) != before.get(key):
            whole.add("claims")
            if key == "method" or (key == "seeded" and manifest.get(key) not in (True, None)):
                alone.add("claims")
    guarantee, was = manifest["guarantee"], before["guarantee"]
    if set(guarantee) != set(was) or (guarantee != was and not mutation.worded):
        alone.add("words")
    if readme_of(made.out) != readme_of(out) and not mutation.worded:
        alone.add("words")
    if manifest["parameters"] != before["parameters"]:
        whole.add("claims")
        if seen_in_share(made, before["parameters"], manifest["parameters"]):
            alone.add("claims")
    if manifest["records"] != before["records"]:
        whole.add("records")
    alone |= of_files(made, out, manifest)
    return whole | alone, alone


def spelt_alike(one: Any, other: Any) -> bool:
    """Whether what is equal in two manifests is of one type, and keys of both stand in one order."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in other if key in one]
        in_order = [key for key in one if key in other] == keys
        return in_order and all(spelt_alike(one[key], other[key]) for key in keys)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(spelt_alike, one, other))
    return one != other or type(one) is type(other)


def seen_in_share(made: Made, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether words, files or rows of the share depend on a parameter that is another (see `UNSEEN`)."""
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    required = {key for key in before if key not in after}
    odd = any(after.get(key) == {"p001": 1} for key in changed)
    return bool(changed - {*UNSEEN[made.method], *UNSEEN_ANYWHERE}) or bool(required - OPTIONAL) or odd


UNSEEN: dict[str, dict[str, str]] = {
    "disassociation": dict.fromkeys(
        ("policy", "partitioning", "max_cluster", "nested"),
        "how clusters were formed and refined cannot be read from the clusters",
    )
    | {
        "safe": "that chunks have no covers is judged by the definition, and that they may have some is no promise",
        "repeats": "chunks hold sets either way",
        "diversity": "item chunks have no counts, so that nobody can count who has a sensitive code",
    },
    "constraints": dict.fromkeys(
        ("algorithm", "policy", "cap", "weights"),
        "the labels are what several ways and policies could have made",
    ),
    "censoring": {
        "cap": "a larger cap than any count is kept by the records too",
        "caps": "larger caps than any count are kept by the records too",
    },
    "trajectories": dict.fromkeys(
        ("joining", "weights", "clustering", "ages", "widest_age", "codes"),
        "how groups were formed cannot be read from the groups",
    )
    | dict.fromkeys(
        ("sensitive", "sensitive_column", "diversity"), "holds of the groups as they are, by chance"
    )
    | {"order": "pairs sorted by age and code may have come in that order"},
    "visits": dict.fromkeys(
        ("policy", "vocabulary", "key", "rescue", "population", "membership_is_secret"),
        "which codes were merged, and how sets were enforced, cannot be read from the sets that are left",
    )
    | dict.fromkeys(("level", "merge_visits"), "judged by the definition of the level and of merged visits"),
    "condensation": dict.fromkeys(
        (
            "algorithm",
            "weight",
            "synthesis",
            "draw",
            "missing",
            "response",
            "coarsen_groups",
            "relations",
            "strata",
            "time",
            "coarsen_time",
            "rare",
            "plan",
        ),
        "how rows were made cannot be read from the rows",
    ),
    "linked": {
        "small": "what became of small classes cannot be read from the others",
        "days": "a coarser step would have given multiples of this one too",
        "views": "judged by the definition of each view",
    },
    "notes": {
        "max_size": "larger itemsets may have been tried in vain",
        "row": "the words alone depend on it",
        "vocabulary": "no word depends on the name of the vocabulary",
        "domains": "values without a frequent itemset are not seen",
        "max_rows_per_patient": "rows are not seen",
        "levels": "judged by the definition: thresholds, and how many terms there are, are not seen",
    },
    "k-anonymity": {
        "quasi_identifiers": "classes of fewer columns are larger",
        "plan": "neither words nor rows depend on it",
    },
}
"""Method -> parameters that neither words nor rows of the share show, with the reason."""

UNSEEN_ANYWHERE = {
    "k": "a smaller k holds too, and a larger one is judged by the definition",
    "m": "a smaller m holds too, and a larger one is judged by the definition",
    **dict.fromkeys(
        ("keep", "recoding", "small", "hierarchies"),
        "how classes were formed cannot be read from the classes",
    ),
}
"""The same for every method, and for classes of demographics."""

OPTIONAL = frozenset(
    {"keep", "hierarchies", "policy", "vocabulary", "rescue", "order", "diversity", "strata", "time"}
)
"""Parameters that a release need not state."""


def of_files(made: Made, out: Path, manifest: dict[str, Any]) -> Broken:
    """Files and folders, bytes that are not those of their rows, columns and types."""
    found: Broken = set()
    share = out / "share"
    there = {path.relative_to(share).as_posix() for path in share.rglob("*")}
    expected = {path.relative_to(made.out / "share").as_posix() for path in (made.out / "share").rglob("*")}
    if there != expected or any(path.is_symlink() for path in share.rglob("*")):
        return {"files"}
    before = manifest_of(made.out)
    if [entry.get("path") for entry in manifest["files"]] != [entry["path"] for entry in before["files"]]:
        found.add("files")
    payload = manifest["parameters"].get("payload") or ()
    for path in parquets(made.out):
        if unchanged(out / path, made.out / path):
            continue
        try:
            table = pq.read_table(out / path)
            again = out.parent / "again.parquet"
            write_parquet(table, again)
            if again.read_bytes() != (out / path).read_bytes():
                found.add("bytes")
            if not table.schema.equals(pq.read_schema(made.out / path)):
                found.add("columns")
            was = pq.read_table(made.out / path)
            for name in set(table.column_names) & set(was.column_names) - set(payload):
                nulls = table[name].null_count and not was[name].null_count
                found |= {"nulls"} if nulls and not path.endswith("/table.parquet") else set()
            if not lists_ascend(pl.from_arrow(table), twice=made.method == "censoring"):
                found.add("lists")
        except (OSError, ValueError, pa.ArrowException, PanicException):
            found.add("bytes")
    for entry in manifest["files"]:
        file = share / str(entry.get("path"))
        if file.suffix == ".parquet" and file.is_file() and rows_in(file) != entry.get("rows"):
            found.add("rows")
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != entry.get("sha256"):
            found.add("digests")
    for path in csvs(made.out):
        lines, were = ((folder / path).read_bytes().splitlines() for folder in (out, made.out))
        if sorted(lines) == sorted(were) and lines != were:
            found.add("order")
        if len(set(lines)) < len(lines) or b"\r" in (out / path).read_bytes():
            found.add("rows")
    return found


def lists_ascend(table: pl.DataFrame, *, twice: bool) -> bool:
    """Whether every list ascends, values such as `sex=f` after terms; `twice`: equal neighbours are fine."""
    for name, kind in table.schema.items():
        if isinstance(kind, pl.List):
            for each in table[name].drop_nulls().to_list():
                keys = [("=" in code, code) for code in each if code is not None]
                if keys != sorted(keys) or (len(set(keys)) < len(keys) and not twice):
                    return False
    return True


def rows_in(file: Path) -> int | None:
    """Rows of a Parquet file; None where it cannot be read."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, ValueError, pa.ArrowException):
        return None


def readme_of(out: Path) -> str:
    """The README without figures of rows and records."""
    file = out / "share" / "README.md"
    if not file.is_file():
        return ""
    text = file.read_bytes().decode("utf-8", errors="replace")
    text = re.sub(r"^[\d,]+ records, anonymized", "records, anonymized", text, flags=re.M)
    return re.sub(r"(`data/[^`]+` \|) [\d,]+ \|", r"\1", text)


SHARE: dict[str, Callable[[Path, Truth], Broken]] = {
    "disassociation": lambda out, _: definitions.disassociation_share(out),
    "constraints": lambda out, _: definitions.constraints_share(out),
    "censoring": definitions.censoring_share,
    "trajectories": lambda out, _: paths.trajectories_share(out),
    "visits": lambda out, _: paths.visits_share(out),
    "linked": lambda out, _: joined.linked_share(out),
    "cohort": lambda out, _: joined.cohort_share(out),
    "catalogue": lambda out, _: joined.catalogue_share(out),
    "condensation": lambda out, _: definitions.table_share(out),
    "k-anonymity": lambda out, _: definitions.table_share(out),
}
TRUTH: dict[str, Callable[[Path, Truth], Broken]] = {
    "disassociation": definitions.disassociation_truth,
    "constraints": definitions.constraints_truth,
    "censoring": definitions.censoring_truth,
    "trajectories": paths.trajectories_truth,
    "visits": paths.visits_truth,
    "linked": joined.linked_truth,
    "cohort": joined.cohort_truth,
    "catalogue": joined.catalogue_truth,
    "condensation": definitions.condensation_truth,
    "k-anonymity": definitions.k_anonymity_truth,
}
WHOLE_CLASSES = ("disassociation", "linked")
"""Methods whose definitions look at all classes at once."""


def of_share(made: Made, out: Path) -> Broken:
    """What the share itself shows to be broken."""
    found = listing.list_share(out, made.truth) | unnumbered(out)
    if made.demographics:
        wrong = classed.classes_share(out, made.truth)
        if wrong or made.method not in WHOLE_CLASSES:
            return found | wrong if wrong else found.union(*in_classes(made, out, SHARE))
    return found | SHARE[made.kind](out, made.truth)


def unnumbered(out: Path) -> Broken:
    """Whether the file with a row a record has other numbers than 0, 1, …"""
    for name in classed.OF_RECORDS:
        if (out / "share/data" / name).is_file():
            numbers = definitions.rows_of(out, name)["record"].to_list()
            return set() if sorted(numbers) == list(range(len(numbers))) else {"records"}
    return set()


def of_truth(made: Made, out: Path) -> Broken:
    """What source and custody show to be broken."""
    found = listing.list_truth(out, made.truth)
    if made.demographics:
        names = list(made.demographics)
        if set(classed.labels_of(out, names).values()) != set(classed.labels_of(made.out, names).values()):
            return found | {"classes"}
        if classed.classes_share(out, made.truth):
            return found
        if made.method not in WHOLE_CLASSES:
            return found.union(*in_classes(made, out, TRUTH))
        if made.method == "disassociation" and made.payload:
            found |= payload_truth(out, made.truth, made.payload)
    return found | TRUTH[made.kind](out, made.truth)


def in_classes(made: Made, out: Path, judge: dict[str, Callable[[Path, Truth], Broken]]) -> list[Broken]:
    """Every class judged as a release of its own, beside what is true of it."""
    sound = classed.parts(made.out, made.out.parent / "sound parts")
    parts = classed.parts(out, out.parent / "parts")
    return [
        judge[made.kind](parts[labels], classed.truth_of(made.truth, labels, sound[labels]))
        for labels in set(parts) & set(sound)
    ]
