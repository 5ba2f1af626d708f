"""Changing a release as a careful forger would: files written as releases write them, under a manifest that fits."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.contracts.readme import readme_of
from leeward.verify import Verification, contract_of
from leeward.verify.contract_checks import words_of
from leeward.verify.manifest import open_share
from leeward.verify.storage import copy_of

FORM = frozenset(
    {
        "manifest_keys", "parameters", "numbers_agree", "words", "files_of_contract", "columns_of_contract",
        "only_rows", "file_hashes", "file_rows", "no_other_files", "codes_listed", "code_names", "frequent_codes",
        "csv_copies", "names_of_source", "rows_in_order", "custody_files",
    }
)  # fmt: skip
"""The checks that every method's release has to pass, whatever the method (tests/verify/test_contract.py)."""

SHOWN = frozenset({"labels_shown", "mentions_shown", "pairs_shown"})
"""What the custodian's counts say of the released rows: nearly every change of them fails these too."""


def by_method(verification: Verification) -> set[str]:
    """The failed checks of the method's own, but for the counts that change with every row."""
    return {check.name for check in verification.failures} - FORM - SHOWN


def write_parquet(table: pl.DataFrame | pa.Table, file: Path) -> None:
    """Write a table as releases are written: plain types, no Arrow schema, zstd."""
    arrow = table.to_arrow() if isinstance(table, pl.DataFrame) else table
    plain = pa.schema([pa.field(each.name, plain_type(each.type)) for each in arrow.schema])
    with pq.ParquetWriter(file, plain, compression="zstd", store_schema=False, version="2.6") as writer:
        if arrow.num_rows:
            writer.write_table(arrow.cast(plain).combine_chunks(), row_group_size=1 << 20)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that a release writes for an Arrow type."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def restate(out: Path) -> None:
    """Make CSV copies, the manifest's rows and digests, the README's table and custody's digests fit the files,
    as a forger would; a CSV copy that was changed stays."""
    file = out / "share" / "release.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    readme = out / "share" / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    for entry in manifest["files"]:
        path = out / "share" / entry["path"]
        if not path.is_file():
            continue
        before = row_of(entry)
        original = path.with_suffix(".parquet")
        if path.suffix == ".csv" and original.is_file() and digest_of(path) == entry["sha256"]:
            with contextlib.suppress(OSError, pa.ArrowException):
                path.write_bytes(copy_of(original))
        if path.suffix == ".parquet":
            with contextlib.suppress(OSError, pa.ArrowInvalid):
                entry["rows"] = pq.read_metadata(path).num_rows
        else:
            with (
                contextlib.suppress(UnicodeDecodeError, csv.Error),
                path.open(newline="", encoding="utf-8") as stream,
            ):
                entry["rows"] = sum(1 for _ in csv.reader(stream)) - 1
        entry["sha256"] = digest_of(path)
        text = text.replace(before, row_of(entry))
    file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    restate_custody(out)
    if readme.is_file():
        readme.write_text(text, encoding="utf-8")


def claim(out: Path, k: int) -> None:
    """State another k: parameters, guarantee, risk, words and README are those that the verifier asks for."""
    file = out / "share" / "release.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    guarantee, contract = manifest["guarantee"], contract_of(manifest["method"])
    assert contract is not None

    def save() -> None:
        file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    manifest["parameters"]["k"] = guarantee["k"] = k
    guarantee["risk"]["maximum"] = 1 / k
    save()
    words = words_of(open_share(out), contract)[0]
    guarantee |= {name: getattr(words, name) for name in ("name", "attacker", "not_protected", "facts")}
    save()
    readme = readme_of(manifest, words.readme, contract)
    (out / "share" / "README.md").write_text(readme, encoding="utf-8")


def restate_custody(out: Path) -> None:
    """Make the digests of custody fit its files, as whoever may write there can; not where there are none."""
    file = out / "custody" / "digests.json"
    if not file.is_file():
        return
    content = json.loads(file.read_text(encoding="utf-8"))
    files = {name: file.parent / name for name in content["files"] if (file.parent / name).is_file()}
    content["files"] = {name: digest_of(path) for name, path in files.items()}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def row_of(entry: dict[str, Any]) -> str:
    """A file in the README's table, with its rows where they are a number."""
    rows = entry["rows"]
    return f"| `{entry['path']}` | {rows:,} |" if isinstance(rows, int) else "no row"


def changed(
    release: Path, target: Path, path: str, change: Callable[[pl.DataFrame], pl.DataFrame | pa.Table]
) -> Path:
    """A copy of a release with one Parquet file changed, under a manifest that fits it."""
    shutil.copytree(release, target)
    write_parquet(change(pl.read_parquet(target / path)), target / path)
    restate(target)
    return target
