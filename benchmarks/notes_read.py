"""Fifty MTSamples notes read by hand: right and wrong names, terms and negations, of this tree or of another.

    python benchmarks/notes_read.py --data DIR [--source OTHER/src] [--json] [--write] [--doubt]

`notes_read.json` holds what one reader found: of each note its SHA-256, the characters of names (placeholders such as
`Dr. X` count), and for every health term that the annotators of commit 7009c45 or of today found whether it is the
patient's own (`own`), denied, doubted, of another time or person (`not`), or no statement at all, such as a heading
(`none`). No text. The notes were drawn with seed 2016 from those of 700 to 3,000 characters, less copies and the notes
of `notes_hand_checked.json`; none was looked at while rules were written, and none is in the word lists.

`notes_doubted.json` holds the same reader's findings in the assessments and plans of 67 ACI-Bench notes, drawn with
seed 1616: the health terms that are only possible, feared, conditional, general or talked about. `--doubt` prints how
many of them are asserted all the same: in 35 notes that rules were mended for afterwards, and in 32 that were not read
before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import notes_corpora
from common import commit

HERE = Path(__file__).resolve().parent
READ = HERE / "notes_read.json"
SHOWN = HERE.parent / "src" / "leeward" / "notes" / "models" / "real_text.json"
COUNTS = (
    "names right",
    "names wrong",
    "names missed",
    "terms right",
    "terms wrong",
    "negations right",
    "negations wrong",
)


def notes(data: Path) -> list[tuple[dict[str, Any], str]]:
    """What was read, with each note's text; an error where a text is another one."""
    texts = dict(notes_corpora.mtsamples(data))
    read = [(entry, texts[entry["note"]]) for entry in json.loads(READ.read_text(encoding="utf-8"))]
    for entry, text in read:
        if hashlib.sha256(text.encode()).hexdigest() != entry["sha256"]:
            raise SystemExit(f"{entry['note']}: is not the text that was read.")
    return read


def of_note(entry: dict[str, Any], spans: Sequence[Any]) -> dict[str, int]:
    """The counts of one note.

    A term is right where it is asserted and the patient's own, wrong where it is asserted and not; a negation (denied,
    doubted, past, of others) is right where the term is not the patient's, wrong where it is.
    """
    found = [(s.start, s.end) for s in spans if s.kind == "EID" and s.category == "name"]
    covered = [(s.start, s.end) for s in spans if s.kind == "EID"]
    verdicts = {(start, end): verdict for start, end, verdict in entry["terms"]}
    counts = dict.fromkeys((*COUNTS, "terms not judged"), 0)
    for name in found:
        counts["names right" if any(_meet(name, gold) for gold in entry["names"]) else "names wrong"] += 1
    counts["names missed"] = sum(not any(_meet(name, gold) for name in covered) for gold in entry["names"])
    for span in spans:
        if span.kind == "HMI" and span.concept:
            verdict = verdicts.get((span.start, span.end))
            if verdict is None:
                counts["terms not judged"] += 1
            elif span.asserted:
                counts["terms right" if verdict == "own" else "terms wrong"] += 1
            elif verdict != "none":
                counts["negations right" if verdict == "not" else "negations wrong"] += 1
    return counts


def _meet(one: Sequence[int], other: Sequence[int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def counted(data: Path) -> list[dict[str, int]]:
    """The counts of each note, by the annotators of the tree that Python imports."""
    from leeward.notes.pipeline import members

    ensemble = members()["ensemble"]
    return [of_note(entry, ensemble(text)) for entry, text in notes(data)]


def of_tree(data: Path, source: Path) -> list[dict[str, int]]:
    """The same, by the annotators of another tree's `src`."""
    import os

    command = [sys.executable, str(HERE / "notes_read.py"), "--data", str(data), "--json"]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(source)}
    )
    found: list[dict[str, int]] = json.loads(answer.stdout)
    return found


def doubted(data: Path) -> None:
    """Print how many doubted terms are asserted, with 95 % intervals (bootstrap over notes)."""
    import numpy as np

    from leeward.notes.pipeline import members

    texts = dict(notes_corpora.aci(data))
    terms_of = members()["dictionary"]  # which finds the terms; ConText judges them
    kept: dict[str, list[tuple[int, int]]] = {}
    for entry in json.loads((HERE / "notes_doubted.json").read_text(encoding="utf-8")):
        text = texts[entry["note"]]
        if hashlib.sha256(text.encode()).hexdigest() != entry["sha256"]:
            raise SystemExit(f"{entry['note']}: is not the text that was read.")
        asserted = [(s.start, s.end) for s in terms_of(text) if s.kind == "HMI" and s.asserted]
        wrong = sum(any(_meet(each, span) for span in asserted) for each in entry["doubted"])
        kept.setdefault(entry["set"], []).append((wrong, len(entry["doubted"])))
    rng = np.random.default_rng(1)
    for name, counts in kept.items():
        each = np.array(counts)
        drawn = each[rng.integers(len(each), size=(1000, len(each)))].sum(1)
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
        wrong, of = each.sum(0)
        print(f"{name}: {wrong} of {of} kept, {wrong / of:.1%} ({low:.1%} to {high:.1%})")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", required=True, type=Path)
    options.add_argument("--source", type=Path, help="the `src` of another tree")
    options.add_argument("--json", action="store_true")
    options.add_argument(
        "--write", action="store_true", help="put the figures where `leeward notes evaluate` shows them"
    )
    options.add_argument("--doubt", action="store_true", help="doubted terms that are asserted all the same")
    given = options.parse_args()
    if given.doubt:
        doubted(given.data)
        return
    results = of_tree(given.data, given.source) if given.source else counted(given.data)
    if given.json:
        print(json.dumps(results))
        return
    total = {name: sum(result[name] for result in results) for name in results[0]}
    for name, count in total.items():
        print(f"{name:18}{count:7,}")
    if given.write:
        figures = {"notes": len(results), "source": "MTSamples", "commit": commit(), **total}
        SHOWN.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
