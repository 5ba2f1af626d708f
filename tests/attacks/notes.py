"""The attacker of texts without identities: knows names, dates and numbers of patients, or that surrogates were used.

    python tests/attacks/notes.py share/ known.csv

Reads `share/` and the background knowledge (`known.csv`: one line a text that identifies somebody). `residual` looks
for it in the texts; `outside_the_list` reads a list of replaced spans, if the share has one: a name that no span covers
is a real one. `unlisted` looks for words that no public list has, and `unlikeliness` says how badly the algorithm would
have put one together; `shift_by` reads from one day that is known by how many days a patient's dates moved.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import date
from functools import cache
from pathlib import Path

import polars as pl

from leeward.notes.annotators.rules import dates
from leeward.notes.identities import surrogates
from leeward.notes.lexicon.concepts import fold

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


def words_of(share: Path) -> dict[str, set[str]]:
    """Each word of the texts that begins with a capital, folded, and its patients; out are words that are in small
    letters anywhere, and those of two letters."""
    owners: dict[str, set[str]] = defaultdict(set)
    small: set[str] = set()
    for patient, text in pl.read_parquet(share / "text.parquet").select("patient", "text").rows():
        for word in surrogates.WORD.findall(text):
            if word[0].isupper() and len(word) > 2:
                owners[fold(word)].add(patient)
            elif word.islower():
                small.add(fold(word))
    return {word: patients for word, patients in owners.items() if word not in small}


def unlisted(share: Path, public: Collection[str], most: int = 3) -> set[str]:
    """Words of at most `most` patients that are not public; real names, were all surrogates public."""
    return {word for word, owned in words_of(share).items() if word not in public and len(owned) <= most}


@cache
def _chances(text: str) -> Counter[str]:
    return Counter(text[at : at + length] for at in range(len(text)) for length in range(1, 5))


def unlikeliness(word: str, text: str) -> float:
    """Minus the mean logarithm of a letter's chance (about) where the algorithm puts a name together."""
    count, marked, sum_ = _chances(text), f"\n{word}\n", 0.0
    for at in range(1, len(marked)):
        chance = 0.0
        for weight, length in ((0.6, 3), (0.3, 2), (0.1, 1)):
            while length and not count[marked[max(0, at - length) : at]]:
                length -= 1
            context = marked[max(0, at - length) : at]
            chance += weight * count[context + marked[at]] / (count[context] or math.inf)
        sum_ += math.log(chance or 1e-9)
    return -sum_ / (len(marked) - 1)


def shift_by(text: str, day: date) -> int | None:
    """By how many days the dates of a released text moved, where one true day of the note is known: the commonest."""
    whole = (written.whole() for written in dates.find(text))
    moved = Counter((each - day).days for each in whole if each is not None)
    return next((days for days, _ in moved.most_common() if 1 <= abs(days) <= 365), None)


if __name__ == "__main__":
    identities = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(
        f"{sorted(residual(Path(sys.argv[1]), identities))} {outside_the_list(Path(sys.argv[1]))}\n"
    )
