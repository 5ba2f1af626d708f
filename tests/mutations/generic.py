"""Mutations that follow from what any release has: every file, column, row, key, sentence and byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.mutations.copies import (
    Change,
    Kinds,
    Mutation,
    csvs,
    having,
    in_manifest,
    in_table,
    in_text,
    manifest_of,
    parquets,
    swapped,
)

UNSEEN_CODE = "999.9"
"""A code that nobody has."""

NUMBERS = frozenset({"record", "node", "chunk", "subrecord", "position", "visit", "parent"})
"""Columns that number things and hold no content."""


def content_kinds(out: Path) -> Kinds:
    """Any value of any column altered; rows lost, doubled, inserted."""
    for path in parquets(out):
        table = pl.read_parquet(out / path)
        name = path.rsplit("/", 1)[1]
        for column, kind in table.schema.items():
            for what, change in of_column(table, column, kind):
                yield Mutation(f"{name}: {column}: {what}", "content", in_table(path, change))
        for what, change in of_rows(table):
            yield Mutation(f"{name}: {what}", "content", in_table(path, change))
    for path in csvs(out):
        name = path.rsplit("/", 1)[1]
        for what, edit in of_tree((out / path).read_text(encoding="utf-8").splitlines()):
            yield Mutation(f"{name}: {what}", "content", in_text(path, edit))


Edit = tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]


def of_column(table: pl.DataFrame, column: str, kind: pl.DataType) -> Iterator[Edit]:
    """What can be done to one column."""
    rows = table.height
    if isinstance(kind, pl.List):
        yield from of_lists(table, column)
        return
    values = table[column]
    known = values.drop_nulls().unique().sort()
    first = next(row for row in range(rows) if values[row] is not None)
    other = next((row for row in range(rows) if values[row] not in (values[first], None)), None)
    yield "one value missing", lambda t: having(t, column, first, None)
    if column not in NUMBERS and other is not None:
        yield "two rows exchange it", lambda t: swapped(t, [column], first, other)
        yield (
            "every row has the next row's",
            lambda t: t.with_columns(pl.concat([t[column][1:], t[column][:1]])),
        )
        yield (
            "all rows have the most frequent",
            lambda t: t.with_columns(pl.lit(values.mode()[0], dtype=kind).alias(column)),
        )
    if kind == pl.String:
        if other is not None:
            yield "one value is another", lambda t: having(t, column, first, values[other])
        yield "one value is unknown", lambda t: having(t, column, first, "p001")
        yield "one value is empty", lambda t: having(t, column, first, "")
        yield (
            "a value renamed everywhere",
            lambda t: t.with_columns(pl.col(column).replace({known[0]: UNSEEN_CODE})),
        )
        if len(known) > 1:
            yield (
                "two values are one everywhere",
                lambda t: t.with_columns(pl.col(column).replace({known[0]: known[1]})),
            )
    elif kind.is_numeric():
        step = 1 if kind.is_integer() else 0.37
        yield "one value is larger", lambda t: having(t, column, first, values[first] + step)
        yield "one value is beyond the others", lambda t: having(t, column, first, known[-1] * 2 + 1)
        yield "one value is negative", lambda t: having(t, column, first, -1)
        if column not in NUMBERS:
            yield "every value is larger", lambda t: t.with_columns(pl.col(column) + step)
            yield "two columns' order reversed", lambda t: t.with_columns(pl.col(column).reverse())
    elif kind == pl.Boolean:
        yield "one value is the opposite", lambda t: having(t, column, first, not values[first])
        yield "every value is the opposite", lambda t: t.with_columns(~pl.col(column))


def of_lists(table: pl.DataFrame, column: str) -> Iterator[Edit]:
    """What can be done to a column of code lists."""
    lists = [list(each) for each in table[column].to_list()]
    codes = sorted({code for each in lists for code in each})
    filled = [row for row, each in enumerate(lists) if each]
    long = next((row for row in filled if len(lists[row]) > 1), filled[0])
    lone = next((row for row in filled if len(lists[row]) == 1), filled[0])
    rarest = min(codes, key=lambda code: (sum(code in each for each in lists), code))
    most = max(codes, key=lambda code: (sum(code in each for each in lists), code))

    def by(row: int, new: Callable[[list[str]], list[str]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
        return lambda t: having(t, column, row, new(list(t[column][row])))

    def everywhere(new: Callable[[list[str]], list[str]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
        return lambda t: t.with_columns(
            pl.Series(column, [new(list(e)) for e in t[column]], t.schema[column])
        )

    absent = next((code for code in codes if code not in lists[long]), UNSEEN_CODE)
    yield "a code lost", by(long, lambda e: e[1:])
    yield "a row's only code lost", by(lone, lambda e: [])
    yield "a code added", by(long, lambda e: sorted([*e, absent]))
    yield "the rarest code added", by(lone, lambda e: sorted([*e, rarest] if rarest not in e else [*e, most]))
    yield "an unknown code added", by(long, lambda e: sorted([*e, UNSEEN_CODE]))
    yield "a code is another", by(long, lambda e: sorted([absent, *e[1:]]))
    yield "a code is unknown", by(long, lambda e: sorted([UNSEEN_CODE, *e[1:]]))
    yield "a code twice", by(long, lambda e: sorted([*e, e[0]]))
    yield "codes in another order", by(long, lambda e: e[::-1])
    yield "a null among the codes", by(long, lambda e: [*e, None])  # type: ignore[list-item]
    yield "two rows exchange it", lambda t: swapped(t, [column], long, lone)
    yield "all rows have the next row's", lambda t: t.with_columns(pl.concat([t[column][1:], t[column][:1]]))
    yield "the rarest code gone everywhere", everywhere(lambda e: [c for c in e if c != rarest])
    yield "the most frequent code gone everywhere", everywhere(lambda e: [c for c in e if c != most])
    yield (
        "the rarest code renamed everywhere",
        everywhere(lambda e: sorted(UNSEEN_CODE if c == rarest else c for c in e)),
    )
    yield (
        "two codes are one everywhere",
        everywhere(lambda e: sorted({rarest if c == most else c for c in e})),
    )
    yield (
        "two codes exchanged everywhere",
        everywhere(lambda e: sorted({most: rarest, rarest: most}.get(c, c) for c in e)),
    )
    yield "every list cut to one code", everywhere(lambda e: e[:1])


def of_rows(table: pl.DataFrame) -> Iterator[Edit]:
    """What can be done to the rows of a file."""
    n = table.height
    number = next(
        (name for name in ("record", "node") if name in table.columns and table[name].n_unique() == n), None
    )

    def numbered(t: pl.DataFrame) -> pl.DataFrame:
        return t if number is None else t.with_columns(pl.Series(number, range(t.height), dtype=pl.Int64))

    yield "the last row lost", lambda t: numbered(t.head(n - 1))
    yield "the first row lost", lambda t: numbered(t.tail(n - 1))
    yield "a tenth of the rows lost", lambda t: numbered(t.gather_every(1).filter(pl.int_range(n) % 10 != 3))
    yield "half of the rows lost", lambda t: numbered(t.head(n // 2))
    yield "a row doubled", lambda t: numbered(pl.concat([t, t[n // 2 : n // 2 + 1]]))
    yield "every row doubled", lambda t: numbered(pl.concat([t, t]))
    yield "a row replaced by another", lambda t: numbered(pl.concat([t.head(n - 1), t[:1]]))
    if number is not None:
        yield "a row doubled with its number", lambda t: pl.concat([t, t[n // 2 : n // 2 + 1]])
        yield "a row lost, its number too", lambda t: t.head(n - 1)


def of_tree(lines: list[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """What can be done to a hierarchy of `node,parent`: its text lines."""
    head, rows = lines[0], lines[1:]

    def text(new: Sequence[str]) -> Callable[[str], str]:
        return lambda _: "\n".join([head, *new]) + "\n"

    last = rows[-1].split(",")
    yield "a node lost", text(rows[:-1])
    yield "a node more", text([*rows, f'"{UNSEEN_CODE}",{last[1]}'])
    yield "a node renamed", text([*rows[:-1], f'"{UNSEEN_CODE}",{last[1]}'])
    yield "a node under another parent", text([*rows[:-1], f"{last[0]},{rows[1].split(',')[0]}"])
    yield "a node twice", text([*rows, rows[-1]])
    yield (
        "every node under the root",
        text([rows[0], *(f"{row.split(',')[0]},{rows[0].split(',')[0]}" for row in rows[1:])]),
    )
    yield "rows reversed", text(rows[::-1])
    yield "no rows", text([])


def metadata_kinds(out: Path) -> Kinds:
    """Riders in the bytes of data files, and files or folders more or less."""

    def again(path: str, **options: Any) -> Change:
        chosen = {
            "compression": "zstd",
            "store_schema": False,
            "version": "2.6",
            "row_group_size": 1 << 20,
            **options,
        }
        return lambda copy: pq.write_table(pq.read_table(copy / path), copy / path, **chosen)

    def tagged(path: str) -> Change:
        return lambda copy: pq.write_table(
            pq.read_table(copy / path).replace_schema_metadata({"p001": "G1"}),
            copy / path,
            compression="zstd",
        )

    def gap(path: str) -> Change:
        def apply(copy: Path) -> None:
            content = (copy / path).read_bytes()
            footer = int.from_bytes(content[-8:-4], "little") + 8
            (copy / path).write_bytes(content[:-footer] + b"p001" * 250 + content[-footer:])

        return apply

    def further(path: str) -> Change:
        def apply(copy: Path) -> None:
            table = pq.read_table(copy / path)
            pid = pa.array([f"p{row:03d}" for row in range(table.num_rows)])
            from tests.forging import write_parquet

            write_parquet(table.append_column("pid", pid), copy / path)

        return apply

    for path in parquets(out):
        name = path.rsplit("/", 1)[1]
        for what, change in (
            ("key-value metadata", tagged(path)),
            ("Arrow's schema kept", again(path, store_schema=True)),
            ("another compression", again(path, compression="snappy")),
            ("small row groups", again(path, row_group_size=7)),
            ("no statistics", again(path, write_statistics=False)),
            ("no dictionaries", again(path, use_dictionary=False)),
            ("bytes before the footer", gap(path)),
            ("a column of identifiers more", further(path)),
        ):
            yield Mutation(f"{name}: {what}", "metadata", change)
    data = "share/data"
    yield Mutation("a file more", "metadata", lambda c: (c / data / "linkage.csv").write_text("0,p001\n"))
    yield Mutation("a folder with a name", "metadata", lambda c: (c / data / "p001").mkdir())
    yield Mutation("a link", "metadata", lambda c: (c / data / "p001").symlink_to("/"))
    yield Mutation("a hidden file", "metadata", lambda c: (c / "share" / ".p001").write_text("p001"))
    yield Mutation("a data file missing", "metadata", lambda c: next((c / data).iterdir()).unlink())


def words_kinds(out: Path) -> Kinds:
    """Every sentence of the guarantee and of the README changed, lost or added."""
    manifest = manifest_of(out)
    guarantee = manifest["guarantee"]

    def lines(change: Callable[[list[str]], Any]) -> Change:
        return in_manifest(lambda m: change(m["guarantee"]["not_protected"]))

    for place, sentence in enumerate(guarantee["not_protected"]):
        about = f"not_protected {place}"
        yield Mutation(f"{about} gone", "words", lines(lambda s, p=place: s.pop(p)))
        yield Mutation(
            f"{about} cut", "words", lines(lambda s, p=place: s.__setitem__(p, s[p][: len(s[p]) // 2]))
        )
        word = sentence.split()[1]
        yield Mutation(
            f"{about}: a word gone",
            "words",
            lines(lambda s, p=place, w=word: s.__setitem__(p, s[p].replace(f" {w}", "", 1))),
        )
        if figure := re.search(r"\d+", sentence):
            other = f"{sentence[: figure.start()]}{int(figure[0]) + 1}{sentence[figure.end() :]}"
            yield Mutation(
                f"{about}: another figure", "words", lines(lambda s, p=place, o=other: s.__setitem__(p, o))
            )
    yield Mutation(
        "not_protected empty", "words", in_manifest(lambda m: m["guarantee"].update(not_protected=[]))
    )
    yield Mutation("a sentence more", "words", lines(lambda s: s.append("p001")))
    yield Mutation("sentences in another order", "words", lines(lambda s: s.reverse()))
    for key in ("name", "attacker", "unit"):
        yield Mutation(
            f"{key} is another", "words", in_manifest(lambda m, k=key: m["guarantee"].update({k: "anybody"}))
        )
        yield Mutation(f"{key} gone", "words", in_manifest(lambda m, k=key: m["guarantee"].pop(k)))
        yield Mutation(
            f"{key} with a word more",
            "words",
            in_manifest(lambda m, k=key: m["guarantee"].update({k: m["guarantee"][k] + " p001"})),
        )
    yield Mutation("an epsilon claimed", "words", in_manifest(lambda m: m["guarantee"].update(epsilon=0.1)))
    yield Mutation(
        "a key more in the guarantee", "words", in_manifest(lambda m: m["guarantee"].update(note="p001"))
    )
    if "facts" in guarantee:
        yield Mutation("facts gone", "words", in_manifest(lambda m: m["guarantee"].pop("facts")))
    yield Mutation(
        "facts added",
        "words",
        in_manifest(lambda m: m["guarantee"].setdefault("facts", {}).update(safe=True)),
    )
    readme = "share/README.md"
    blocks = (out / readme).read_text(encoding="utf-8").split("\n\n")
    for place, block in enumerate(blocks):
        if block.startswith("| file"):
            continue
        yield Mutation(
            f"README block {place} gone",
            "words",
            in_text(
                readme,
                lambda t, b=block: t.replace(b + "\n\n", "", 1) if b + "\n\n" in t else t.replace(b, "", 1),
            ),
        )
        yield Mutation(
            f"README block {place}: a word gone",
            "words",
            in_text(
                readme, lambda t, b=block: t.replace(b, b.replace(" ", "", 1) if " " in b else b + "x", 1)
            ),
        )
    yield Mutation("README with an identifier", "words", in_text(readme, lambda t: t + "\np001\n"))
    yield Mutation("README missing", "words", lambda c: (c / readme).unlink())
    yield Mutation(
        "README claims more",
        "words",
        in_text(readme, lambda t: t.replace("## Files", "Nobody can be found.\n\n## Files")),
    )


def claims_kinds(out: Path, choices: Callable[[str, Any], Sequence[Any]], further: dict[str, Any]) -> Kinds:
    """Every key of release.json: another value, none, one more. `choices`: other values that a parameter can have."""
    manifest = manifest_of(out)

    def to(key: str, value: Any) -> Change:
        return in_manifest(lambda m: m["parameters"].update({key: value}))

    for key, value in manifest["parameters"].items():
        for other in choices(key, value):
            if other != value:
                yield Mutation(
                    f"parameter {key}: {json.dumps(value)} -> {json.dumps(other)}"[:90],
                    "claims",
                    to(key, other),
                )
        yield Mutation(
            f"parameter {key} gone", "claims", in_manifest(lambda m, k=key: m["parameters"].pop(k))
        )
        yield Mutation(f"parameter {key} is an object", "claims", to(key, {"p001": 1}))
    for key, value in further.items():
        if key not in manifest["parameters"]:
            yield Mutation(f"parameter {key} claimed: {json.dumps(value)}", "claims", to(key, value))
    for name in ("k", "m"):
        if name in manifest["guarantee"]:
            for step in (1, -1):
                yield Mutation(
                    f"guarantee {name} {step:+d}",
                    "claims",
                    in_manifest(lambda m, n=name, s=step: m["guarantee"].update({n: m["guarantee"][n] + s})),
                )
    yield Mutation("records is another", "claims", in_manifest(lambda m: m.update(records=m["records"] + 1)))
    yield Mutation(
        "method is another",
        "claims",
        in_manifest(
            lambda m: m.update(method="k-anonymity" if m["method"] != "k-anonymity" else "condensation")
        ),
    )
    yield Mutation("version is another", "claims", in_manifest(lambda m: m.update(leeward="9.9.9")))
    yield Mutation("seeded no longer stated", "claims", in_manifest(lambda m: m.pop("seeded", None)))
    yield Mutation("seeded is false", "claims", in_manifest(lambda m: m.update(seeded=False)))
    yield Mutation("a seed", "claims", in_manifest(lambda m: m.update(seed=3)))
    yield Mutation("a key more", "claims", in_manifest(lambda m: m.update(note="p001")))
    for key, value in (("rows", 1), ("sha256", "0" * 64), ("path", "data/other.parquet")):
        yield Mutation(
            f"files: {key} is another",
            "claims",
            in_manifest(lambda m, k=key, v=value: m["files"][0].update({k: v})),
            restated=False,
        )
    yield Mutation("files: one not listed", "claims", in_manifest(lambda m: m["files"].pop()), restated=False)
    yield Mutation(
        "files: one listed twice",
        "claims",
        in_manifest(lambda m: m["files"].append(m["files"][0])),
        restated=False,
    )


def random_kinds(out: Path, count: int, seed: int = 1) -> Kinds:
    """Random edits: a byte of a data file, a value of a cell, two rows exchanged."""
    draws = np.random.Generator(np.random.Philox(key=seed))
    files = parquets(out)
    everything = sorted(
        path.relative_to(out).as_posix() for path in (out / "share").rglob("*") if path.is_file()
    )
    for number in range(count):
        kind = number % 3
        path = str(draws.choice(everything if kind == 0 else files))
        name = path.rsplit("/", 1)[1]
        if kind == 0:
            place, flip = int(draws.integers((out / path).stat().st_size)), int(draws.integers(1, 256))
            yield Mutation(
                f"random {number}: byte {place} of {name}",
                "random",
                _byte(path, place, flip),
                restated="data/" in path,
            )
            continue
        table = pl.read_parquet(out / path)
        a, b = (int(each) for each in draws.choice(table.height, 2, replace=False))
        if kind == 1:
            column = str(draws.choice(table.columns))
            value = table[column][b]
            value = value.to_list() if isinstance(value, pl.Series) else value
            yield Mutation(
                f"random {number}: {name}: {column} of row {a} is row {b}'s",
                "random",
                in_table(path, lambda t, c=column, r=a, v=value: having(t, c, r, v)),
            )
        else:
            columns = [
                each for each in table.columns if each not in ("record", "position", "visit", "subrecord")
            ]
            columns = columns or table.columns
            yield Mutation(
                f"random {number}: {name}: rows {a} and {b} exchanged",
                "random",
                in_table(path, lambda t, c=columns, x=a, y=b: swapped(t, c, x, y)),
            )


def _byte(path: str, place: int, flip: int) -> Change:
    def apply(out: Path) -> None:
        content = bytearray((out / path).read_bytes())
        content[place] ^= flip
        (out / path).write_bytes(bytes(content))

    return apply
