"""The attacker of texts without identities: knows names, dates and numbers of patients, or that surrogates were used.

    python tests/attacks/notes.py share/ known.csv

Reads `share/` and the background knowledge (`known.csv`: one line a text that identifies somebody). `residual` looks
for it in the texts; `outside_the_list` reads a list of replaced spans, if the share has one: a name that no span covers
is a real one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl

NAME = re.compile(r"(?:Mr\.|Mrs\.|Ms\.|Dr\.)\s+([A-Z][a-z]+)")


def residual(share: Path, known: Iterable[str]) -> set[str]:
    """The known identities that some released text still has."""
    texts = pl.read_parquet(share / "text.parquet")["text"].to_list()
    return {each for each in known if any(re.search(rf"\b{re.escape(each)}\b", text) for text in texts)}


def outside_the_list(share: Path) -> set[str] | None:
    """Names after a title that no listed span covers; None where the share lists no spans."""
    file = share / "replacements.parquet"
    if not file.is_file():
        return None
    spans: dict[int, list[tuple[int, int]]] = {}
    for note, start, end in pl.read_parquet(file).select("note", "start", "end").rows():
        spans.setdefault(note, []).append((start, end))
    found = set()
    for note, text in pl.read_parquet(share / "text.parquet").select("note", "text").rows():
        for match in NAME.finditer(text):
            if not any(start <= match.start(1) < end for start, end in spans.get(note, [])):
                found.add(match.group(1))
    return found


if __name__ == "__main__":
    identities = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(
        f"{sorted(residual(Path(sys.argv[1]), identities))} {outside_the_list(Path(sys.argv[1]))}\n"
    )
