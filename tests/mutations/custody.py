"""Mutations of what the custodian keeps beside a release: figures, report, outcome, spec, the tables of who is who."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, Mutation
from tests.mutations.generic import NUMBERS

FIGURE = re.compile(r"(?<=\d\.)\d+")


def custody_kinds(out: Path) -> Kinds:
    """Each file of custody altered or gone; the digests are not restated, which whoever may write there could do."""
    custody = out / "custody"
    for file in sorted(path for path in custody.rglob("*") if path.is_file()):
        path = file.relative_to(out).as_posix()
        name = path.removeprefix("custody/")
        for what, change in of_file(file, path).items():
            yield Mutation(f"{name}: {what}", "custody", change, restated=False)
        yield Mutation(f"{name} gone", "custody", lambda copy, p=path: (copy / p).unlink(), restated=False)


def of_file(file: Path, path: str) -> dict[str, Change]:
    """What can be done to one file."""
    if file.suffix == ".parquet":
        return of_table(pl.read_parquet(file), path)
    text = file.read_text(encoding="utf-8")
    found = {"a line more": in_custody(path, text + "\n")}
    if FIGURE.search(text):
        found["every decimal another"] = in_custody(path, FIGURE.sub("001", text))
        found["one decimal another"] = in_custody(path, FIGURE.sub("001", text, count=1))
    if number := re.search(r"(?<![\w.#-])\d{1,4}(?![\w.%-])", text):
        other = f"{text[: number.start()]}{int(number[0]) + 1}{text[number.end() :]}"
        found["one number larger"] = in_custody(path, other)
    if word := re.search(r"\b(true|passed|Passed|false)\b", text):
        turned = {"true": "false", "false": "true"}.get(word[0], "failed")
        found["an outcome turned"] = in_custody(path, text[: word.start()] + turned + text[word.end() :])
    return {what: change for what, change in found.items() if change is not None}


def in_custody(path: str, text: str) -> Change:
    """Another text in the place of a file's."""
    return lambda copy: (copy / path).write_text(text, encoding="utf-8") and None


def of_table(table: pl.DataFrame, path: str) -> dict[str, Change]:
    """Rows exchanged, lost, doubled, in another order."""

    def put(new: pl.DataFrame) -> Change:
        return lambda copy: write_parquet(new, copy / path)

    found = {"the last row lost": put(table.head(table.height - 1)), "rows reversed": put(table.reverse())}
    for column in [name for name in table.columns if name not in NUMBERS]:
        values = table[column]
        other = next((row for row in range(1, table.height) if not same(values, row)), None)
        if other is not None:
            order = list(range(table.height))
            order[0], order[other] = other, 0
            found[f"{column}: two rows exchange it"] = put(table.with_columns(values[order]))
    return {what: change for what, change in found.items() if table.height > 1}


def same(values: pl.Series, row: int) -> bool:
    return bool(values[[0]].equals(values[[row]], null_equal=True))
