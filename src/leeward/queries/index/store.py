"""An index on disk: a folder with one memory-mapped file of bitmaps and a directory of them.

```
INDEX/index.json        format, version, identity, schema of the quasi-identifiers, hashes of the other files
INDEX/vocabulary.arrow  the public vocabulary: names, the nodes above them, labels
INDEX/aliases.arrow     other names
INDEX/directory.arrow   one row a bitmap: column (empty for terms), value, offset, length
INDEX/bitmaps.bin       roaring bitmaps of row numbers, one after the other
INDEX/patients.bin      int32[rows], the patient's number of each row; absent when each patient has one row
```
Rows are sorted by patient and numbered from 0; neither an identifier nor a note's text is in any file. All of it
stays with the custodian: the bitmaps are the exact data. Everything is written aside and renamed.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from leeward.errors import BadInput
from leeward.paths import require_plain_files
from leeward.queries.language.query import month_number, month_text
from leeward.queries.language.vocabulary import nearest
from leeward.release.aside import LOCK, written_aside
from leeward.version import __version__

FORMAT = "leeward count index"
VERSION = 1
HEAD, BITMAPS, PATIENTS = "index.json", "bitmaps.bin", "patients.bin"
DIRECTORY = pa.schema(
    [("column", pa.string()), ("value", pa.string()), ("offset", pa.int64()), ("length", pa.int64())]
)

QidKind = Literal["month", "integer", "text"]


@dataclass(frozen=True)
class Qid:
    """Public description of a quasi-identifier."""

    name: str
    """Folded."""
    kind: QidKind
    """Months and integers have ranges, text has wildcards."""
    domain: tuple[str, ...] | None = None
    """Permissible values, public: (first, last) of months and integers, all values of text. None: not declared."""
    per_patient: bool = False
    """Every patient has at most one value by construction (an attribute of the patient, not of the row)."""

    def number_of(self, value: str) -> int | None:
        """The number of a month or a whole number; None for what is none, and for every text."""
        if self.kind == "month":
            return month_number(value)
        try:
            return int(value) if self.kind == "integer" else None
        except ValueError:
            return None

    @property
    def ends(self) -> tuple[int, ...]:
        """The numbers of the first and the last permissible value; nothing for text, or where none are declared."""
        return tuple(n for n in map(self.number_of, self.domain or ()) if n is not None)

    def text_of(self, number: int) -> str:
        return month_text(number) if self.kind == "month" else str(number)

    def sort_key(self, value: str) -> Any:
        """Numbers sort by size, texts by their letters."""
        return value if self.kind == "text" else self.number_of(value)


@dataclass(frozen=True)
class Meta:
    """Metadata of an index. All but `id` and `parent` may be shown with an answer; none reveals data."""

    id: str
    """A digest of the rows before contributions were bounded: the same data indexed again have the same budget."""
    parent: str | None
    """The data set that these data descend from; they share its cap."""
    row: str
    """What a row is: 'note', 'visit' or 'patient'."""
    qids: tuple[Qid, ...]
    vocabulary: str
    vocabulary_public: bool
    """False: there is no list of terms; any text may be asked for."""
    max_rows_per_patient: int | None
    """1 where a row is a patient; None: not bounded, then only patients can be counted, each as the unit."""
    seeded: bool = False
    """The rows kept under the bound were drawn with a chosen seed: for tests and studies."""
    synthetic: bool = False
    """A made-up twin: not one value of it comes from data."""
    about_patients: int | None = None
    """How many patients there are, as the custodian states publicly; the exact number is data."""

    def qid(self, name: str) -> Qid:
        """The quasi-identifier of a name; BadInput with the nearest names when the index has none."""
        for each in self.qids:
            if each.name == name:
                return each
        known = [each.name for each in self.qids]
        near = nearest(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise BadInput(
            f"the index has no quasi-identifier {name!r}.{hint} It has: {', '.join(known) or 'none'}."
        )


def write(
    out: str | Path,
    meta: Meta,
    *,
    rows: int,
    patients: int,
    tables: Mapping[str, pa.Table],
    bitmaps: Sequence[tuple[str, str, bytes]],
    patient_of_row: bytes | None,
) -> Path:
    """Write an index at once; `bitmaps` are (column, value, serialized) in the order of the file. BadInput:
    something stands at `out`, or the disk refuses."""
    from leeward.release.folder import disk_errors, flush

    out = Path(out).absolute()
    columns, values, data = zip(*bitmaps, strict=True) if bitmaps else ((), (), ())
    lengths = [len(each) for each in data]
    ends = list(accumulate(lengths, initial=0))
    stated = asdict(meta)
    if not meta.about_patients:
        del stated["about_patients"]
    directory = pa.table([columns, values, ends[:-1], lengths], schema=DIRECTORY)
    with disk_errors(out, "index"), written_aside(out) as folder:
        with (folder / BITMAPS).open("wb") as file:
            file.writelines(data)
        for name, table in {**tables, "directory": directory}.items():
            with pa.ipc.new_file(str(folder / f"{name}.arrow"), table.schema) as sink:
                sink.write_table(table.combine_chunks())
        if patient_of_row is not None:
            (folder / PATIENTS).write_bytes(patient_of_row)
        files = sorted(path for path in folder.iterdir() if path.name != LOCK)
        head = {
            "format": FORMAT,
            "version": VERSION,
            "leeward": __version__,
            "meta": stated,
            "rows": rows,
            "patients": patients,
            "files": {path.name: _digest(path) for path in files},
            "bytes": {path.name: path.stat().st_size for path in files},
        }
        head["digest"] = _digest_of(head)
        (folder / HEAD).write_text(json.dumps(head, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        flush(folder)
    return out


def read_head(folder: Path) -> dict[str, Any]:
    """The head of an index with whole files; BadInput: no index there, one of another version, or a damaged one."""
    head = _head(folder)
    if damaged := _damaged_files(folder, head):
        raise BadInput(
            f"{folder}: the index is damaged ({', '.join(damaged)}); build it again with `leeward index`. "
            "Nothing was charged, and its data set keeps what is left of its budget."
        )
    return head


def read_meta(stated: Mapping[str, Any]) -> Meta:
    qids = tuple(
        Qid(q["name"], q["kind"], None if q["domain"] is None else tuple(q["domain"]), q["per_patient"])
        for q in stated["qids"]
    )
    return Meta(**{**stated, "qids": qids})


def _damaged_files(folder: Path, head: Mapping[str, Any]) -> list[str]:
    """Files that differ from what was written: looked for before any question, so before any charge."""
    damaged = [HEAD] if head.get("digest", _digest_of(head)) != _digest_of(head) else []
    files, sizes = head.get("files"), head.get("bytes", {})  # earlier indexes state no sizes
    if not isinstance(files, dict) or not isinstance(sizes, dict):
        return [HEAD]
    for name, digest in files.items():
        if Path(name).name != name or not _is_intact(folder / name, sizes.get(name), digest):
            damaged.append(name)
    return damaged


def _is_intact(path: Path, size: int | None, digest: str) -> bool:
    """Sizes are compared before a file is read."""
    try:
        return size in (None, path.stat().st_size) and _digest(path) == digest
    except OSError:
        return False


def _digest_of(head: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in head.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _head(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise BadInput(f"{folder}: there is no such folder; name the folder that `leeward index … -o` wrote.")
    if not (folder / HEAD).is_file():
        raise BadInput(f"{folder}: not an index; name the folder that `leeward index … -o` wrote.")
    require_plain_files(folder)
    try:
        head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    except (ValueError, OSError):
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("version"), int):
        raise BadInput(
            f"{folder}: {HEAD} is not the head of an index; build the index again with `leeward index`."
        )
    if head["version"] != VERSION:
        raise BadInput(
            f"{folder}: an index of version {head['version']} (written by leeward {head.get('leeward')}); this is "
            f"leeward {__version__}, which reads version {VERSION}. Build the index again with `leeward index`; its "
            "data set keeps what is left of its budget."
        )
    return head


def read_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def map_file(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
