"""What is wrong with the tables of a page, and with those that are files beside it."""

from __future__ import annotations

import csv
import io
import re

NOTHING = re.compile(r"(^|[\s(±])[-+]?(nan|NaN|inf|None|null)\b")


def faults_of(page: str) -> list[str]:
    """Cells of Markdown tables that are empty or hold no number where one was computed, each with its line.

    A table's upper left cell may be empty.
    """
    found = []
    lines = page.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
        head = number < len(lines) and set(lines[number]) <= set("|-: ") and lines[number].startswith("|")
        for place, cell in enumerate(cells):
            if (not cell and not (head and place == 0)) or NOTHING.search(cell):
                found.append(f"line {number}, column {place + 1}: {cell!r}")
    return found


def faults_of_csv(text: str) -> list[str]:
    """The same of a table in a file, and rows that are longer or shorter than the head."""
    head, *rows = csv.reader(io.StringIO(text))
    found = [f"row {number}: {len(row)} cells" for number, row in enumerate(rows, 1) if len(row) != len(head)]
    return found + [
        f"row {number}, column {place}: {cell!r}"
        for number, row in enumerate([head, *rows])
        for place, cell in enumerate(row, 1)
        if (not cell and (number, place) != (0, 1)) or NOTHING.search(cell)
    ]
