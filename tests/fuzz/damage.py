"""Releases that verify, with one file changed: nobody believes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.ending import CODES, RELEASES, ended, odd_path, release, sources
from tests.fuzz.making import mutated, one_value


def damaged(random: Random, folder: Path) -> int:
    """A real release with one file changed, read by every command that reads one."""
    command = random.choice(list(RELEASES))
    whole, copy = release(command, folder), folder / "copy"
    shutil.copytree(whole, copy, symlinks=True)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    file = random.choice(
        [each for each in files if "share" in each.parts] if random.random() < 0.7 else files
    )
    spoil(random, file, files, folder)
    source = str(sources(folder) / RELEASES[command][0])
    needed = ["--source", source, *_reading(RELEASES[command][1:], folder)]
    reads = random.choice(
        [
            ["estimate", str(copy / "share"), random.choice(CODES)], ["estimate", str(copy), "401.9"],
            ["show", str(copy)], ["show", str(copy / "share"), "--json"], ["verify", str(copy)],
            ["verify", str(copy / "share")], ["verify", str(copy / "share"), *needed], ["measure", str(copy), *needed],
            ["compare", str(copy), str(whole), "-o", str(folder / "out")],
            ["dossier", str(copy), "-o", str(folder / "out")],
        ]
    )  # fmt: skip
    status = ended(reads, folder)
    now, before = content_of(copy / "share"), content_of(whole / "share")
    if reads[0] in {"estimate", "measure"}:  # counts need neither words nor every table
        before = {name: data for name, data in before.items() if name in now and name.startswith("data/")}
        now = {name: now[name] for name in before}
    if status == 0 and reads[0] in {"estimate", "measure", "verify", "dossier"}:
        assert now == before, f"{reads[0]} believed {command} with another {file.relative_to(copy)}"
    return status


def _reading(flags: list[str], folder: Path) -> list[str]:
    """The flags of a method's command that say how its source is read."""
    pairs = zip(flags[::2], flags[1::2], strict=True)
    reading = [
        each
        for pair in pairs
        if pair[0] in {"--age", "--visit", "--attributes", "--population"}
        for each in pair
    ]
    return [str(sources(folder) / each) if each.endswith(".csv") else each for each in reading]


def content_of(folder: Path) -> dict[str, Any]:
    """What a folder says: its files by name; JSON as what it means."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            found[path.name] = "special"
        elif path.is_file():
            data = path.read_bytes()
            found[str(path.relative_to(folder))] = _meaning(data) if path.suffix == ".json" else data
    return found


def _meaning(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def spoil(random: Random, file: Path, files: list[Path], folder: Path) -> None:
    data, kind = file.read_bytes(), random.randrange(8)
    if kind == 0:
        file.write_bytes(mutated(data, random))
    elif kind == 1:
        file.write_bytes(data[: random.randrange(len(data) + 1)])
    elif kind == 2:
        file.write_bytes(random.choice(files).read_bytes())
    elif kind == 3 and file.suffix == ".parquet":
        _change_table(random, file)
    elif kind == 3 and file.suffix == ".json":
        _change_json(random, file)
    elif kind == 4:
        (file.parent / random.choice(["further.parquet", ".hidden", "x\ny.csv", "\x1b[31m"])).write_bytes(
            data
        )
    else:
        file.unlink()
        odd = odd_path(random, folder, random.choice([each for each in files if each != file]))
        if odd.is_symlink() or odd.exists():
            odd.rename(file)


def _change_table(random: Random, file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    kind = random.randrange(4)
    if kind == 0 and table.num_columns:
        table = table.drop_columns([random.choice(table.column_names)])
    elif kind == 1:
        table = table.slice(0, table.num_rows // 3)
    elif kind == 2:
        table = pa.concat_tables([table, table.slice(0, 1)])
    else:
        table = table.rename_columns([f"{name} " for name in table.column_names])
    pq.write_table(table, file)


def _change_json(random: Random, file: Path) -> None:
    content = json.loads(file.read_bytes())
    place = content
    while isinstance(place, dict) and place and random.random() < 0.6:
        key = random.choice(list(place))
        if isinstance(place[key], dict) and random.random() < 0.7:
            place = place[key]
            continue
        place[key] = one_value(random)
        break
    file.write_text(json.dumps(content, ensure_ascii=True), encoding="utf-8")
