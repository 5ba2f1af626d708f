"""What is wrong with the tables of a page."""

from __future__ import annotations

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
