"""What texts with surrogates tell: names that were missed, one known date, two releases: docs/studies/attacks.md.

    python benchmarks/surrogates.py

1,200 made-up notes of 400 patients, held-out templates and people; the programs of the attacker are in
tests/attacks/notes.py. Prints.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import tempfile
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import polars as pl
from tests.attacks.notes import shift_by, unlikeliness, unlisted, words_of

import leeward as lw
from common import commit, machine, table
from leeward.notes.annotators.rules.words import REPORT_WORDS
from leeward.notes.identities import surrogates
from leeward.notes.identities.keys import HEAD, Keys, read
from leeward.notes.identities.surrogates import FARTHEST, days
from leeward.notes.lexicon.concepts import fold, text_key
from leeward.notes.lexicon.lists import Names
from leeward.notes.lexicon.tables import load_lexicon
from leeward.synthetic.notes.people import HELD_OUT_LOCALES
from leeward.synthetic.notes.writing import NotePlan, SyntheticNote, synthetic_notes

PLAN = NotePlan(patients=400, notes=1_200, split="held-out", seed=3)
LOOKED_AT = 100
"""Words that a reader looks at, the likeliest first."""
TOWNS = ("town", "ton", "land", "ville", "berg", "burgh")
KINDS: tuple[surrogates.Kind, ...] = ("female", "male", "last")


def released(notes: list[SyntheticNote], place: Path, name: str) -> Path:
    """The notes with surrogates, under a key of its own that is the same in every run of this program."""
    secret = hashlib.sha256(name.encode()).digest()
    key = place / f"{name}.key"
    key.write_text(HEAD + base64.b64encode(secret).decode(), encoding="ascii")
    file = place / "notes.parquet"
    columns = {
        "patient": [note.patient for note in notes],
        "date": [note.date for note in notes],
        "text": [note.annotated.text for note in notes],
    }
    pl.DataFrame(columns).write_parquet(file)
    lw.annotate(file, place / name, mode="surrogates", key=key, seed=1)
    return place / name


def missed(notes: list[SyntheticNote], out: Path) -> dict[str, set[str]]:
    """Each word of a true name that still stands in a text where nothing was replaced, and its patients."""
    row_of = dict(pl.read_parquet(out / "custody" / "numbers.parquet").select("note", "row").rows())
    covered: dict[int, set[int]] = defaultdict(set)
    for note, start, end in (
        pl.read_parquet(out / "custody" / "replacements.parquet").select("note", "start", "end").rows()
    ):
        covered[note].update(range(start, end))
    found: dict[str, set[str]] = defaultdict(set)
    for number, text in pl.read_parquet(out / "share" / "text.parquet").select("note", "text").rows():
        note = notes[row_of[number] - 1]
        true = {
            word
            for span in note.annotated.spans
            if span.category == "name"
            for word in surrogates.WORD.findall(note.annotated.text[span.start : span.end])
            if len(word) > 1
        }
        for match in surrogates.WORD.finditer(text):
            if match.group() in true and match.start() not in covered[number]:
                found[fold(match.group())].add(note.patient)
    return found


def passed_over() -> frozenset[str]:
    """What no reader takes for a name: words of reports, health terms, made-up towns."""
    terms = (text_key(term.text) for concept in load_lexicon().concepts for term in concept.terms)
    made_up = (f"{name}{end}".lower() for name in surrogates.pool("last").american for end in TOWNS)
    return frozenset().union(*terms, map(fold, REPORT_WORDS), made_up)


def listed() -> frozenset[str]:
    """Every name that the algorithm or its annotators have in a list."""
    common = Names.common()
    return frozenset().union(common.first, common.last, *(surrogates.pool(kind).all for kind in KINDS))


def told(found: set[str], real: dict[str, set[str]]) -> str:
    hits = found & set(real)
    patients = len(set().union(*(real[word] for word in hits)))
    return f"{len(hits)} of {len(real)} missed words, of {patients} patients, among {len(found):,}"


def names_left(notes: list[SyntheticNote], place: Path) -> list[tuple[str, str]]:
    """Who takes words that no list has for real names."""
    american = {word.lower() for kind in KINDS for word in surrogates.pool(kind).american}
    plain = passed_over()
    out = released(notes, place, "first")
    real = missed(notes, out)
    rows = [("words in no American list", told(unlisted(out / "share", american | plain), real))]
    surrogates.ABROAD = " ".join(each for each in surrogates.ABROAD.split() if each not in HELD_OUT_LOCALES)
    surrogates.pool.cache_clear()
    out = released(notes, place, "unknown")
    real = missed(notes, out)
    found = unlisted(out / "share", listed() | plain)
    rows.append(
        ("surrogates without the lists that these people's names are of: words in no list", told(found, real))
    )
    text = surrogates.pool("last").text
    ranked = sorted(found, key=lambda word: -unlikeliness(word, text))
    for what, some in (("least", ranked[:LOOKED_AT]), ("most", ranked[-LOOKED_AT:])):
        rows.append(
            (
                f"of these the {LOOKED_AT} {what} unlike what the algorithm puts together",
                told(set(some), real),
            )
        )
    return rows


def dates_read(notes: list[SyntheticNote], out: Path) -> list[tuple[str, str]]:
    """Who knows the day of one visit, or two days of one patient."""
    keys = Keys.of(read(out.with_suffix(".key")))
    numbers = pl.read_parquet(out / "custody" / "numbers.parquet").select("note", "row").rows()
    text = dict(pl.read_parquet(out / "share" / "text.parquet").select("note", "text").rows())
    by_row = {row - 1: text[note] for note, row in numbers}
    first: dict[str, int] = {}
    visits: dict[str, list[int]] = defaultdict(list)
    for row, note in enumerate(notes):
        first.setdefault(note.patient, row)
        visits[note.patient].append(note.date.toordinal())
    right = sum(
        shift_by(by_row[row], notes[row].date) == days(keys, patient) for patient, row in first.items()
    )
    apart = {patient: [abs(a - b) for a, b in combinations(known, 2)] for patient, known in visits.items()}
    owners: dict[int, set[str]] = defaultdict(set)
    for patient, gaps in apart.items():
        for gap in gaps:
            owners[gap].add(patient)
    alone = sum(len(owners[gap]) == 1 for gaps in apart.values() for gap in gaps)
    some = sum(any(len(owners[gap]) == 1 for gap in gaps) for gaps in apart.values())
    every = sum(map(len, apart.values()))
    return [
        ("the day of one visit is known", f"the shift of {right} of {len(first)} patients is read"),
        (
            "two days are known",
            f"{alone:,} of {every:,} intervals are one patient's; {some} of {len(apart)} patients have such",
        ),
    ]


def compared(notes: list[SyntheticNote], place: Path) -> list[tuple[str, str]]:
    """Who has two releases of these notes under two keys."""
    one, two = place / "first", released(notes, place, "second")
    both = unlisted(one / "share", passed_over()) & set(words_of(two / "share"))
    first, second = (Keys.of(read(out.with_suffix(".key"))) for out in (one, two))
    left = []
    for patient in {note.patient for note in notes}:
        apart = days(first, patient) - days(second, patient)
        shifts = [shift for shift in range(-FARTHEST, FARTHEST + 1) if shift]
        left.append(sum(1 <= abs(shift - apart) <= FARTHEST for shift in shifts))
    return [
        ("two releases under two keys: words in both", told(both, missed(notes, one))),
        ("the same: shifts that are left", f"{median(left):.0f} of {2 * FARTHEST} in the median"),
    ]


def main() -> None:
    notes = list(synthetic_notes(PLAN))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        before = surrogates.ABROAD
        rows = names_left(notes, place)
        surrogates.ABROAD = before
        surrogates.pool.cache_clear()
        rows += dates_read(notes, place / "first") + compared(notes, place)
    print(f"{machine()}; commit {commit()}\n")
    print(table(["the attacker", "finds"], rows))


if __name__ == "__main__":
    main()
