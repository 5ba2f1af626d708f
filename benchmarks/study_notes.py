"""Clinical notes: what the annotators and their ensemble find, on notes that none of them was made from.

    python benchmarks/study_notes.py --data DIR [--peers PYTHON] [--notes 1000]

`DIR/` holds the public sets that `notes_corpora.py` reads and names the sources of. `PYTHON` is an interpreter with
presidio-analyzer, philter-lite and spaCy's en_core_web_sm (no dependencies of the project), which are then measured on
the same notes in the same run by `notes_peers.py`.
`notes_hand_checked.json` holds spans of 19 public notes, marked by hand: offsets and the notes' hashes, no text. Writes
the figures into docs/studies/notes.md between its marks; the prose around them is written by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import notes_corpora
import notes_read
from common import commit, machine, once, save, table
from leeward.notes.corpora.evaluation import PROTECTED, Counts, Evaluation, Kept, count, evaluate
from leeward.notes.pipeline import members
from leeward.notes.spans import SAFE_HARBOR_QID, AnnotatedNote, Span
from leeward.synthetic.notes import NotePlan, synthetic_notes

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "notes.md"
CHECKED = Path(__file__).resolve().parent / "notes_hand_checked.json"
WORD = re.compile(r"[^\W_]+")
SEED = 2027
"""Of the held-out notes; no other seed was looked at for these figures."""
LEAST_SCORE = 0.4
"""Presidio's answers below this score are left out: its default in its own anonymizer demo."""
PEERS = {
    "presidio": "Presidio, small model", "presidio-blank": "Presidio, blank", "philter": "Philter",
}  # fmt: skip

PEER_TEXTS = 200
"""How many notes of a set other programs read for their speed."""
MTSAMPLES = 1000
"""How many notes of MTSamples are read for speed."""

Annotate = Callable[[str], Sequence[Span]]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--data", required=True, type=Path)
    options.add_argument("--peers", type=Path)
    options.add_argument("--notes", type=int, default=1000)
    options.add_argument(
        "--json", type=Path, help="keeps what was run, so that a long run can go on in pieces"
    )
    options.add_argument("--only", default="", help="parts to run and keep, without writing the page")
    given = options.parse_args()
    annotators = members()
    held_out = [
        note.annotated for note in synthetic_notes(NotePlan(given.notes // 2, given.notes, "held-out", SEED))
    ]
    sealed = [
        note.annotated for note in synthetic_notes(NotePlan(given.notes // 2, given.notes, "sealed", SEED))
    ]
    foreign = {
        "medcat-deid": notes_corpora.medcat(given.data),
        "phi-synthetic-queries": notes_corpora.queries(given.data),
        "presidio-synth": notes_corpora.presidio(given.data),
    }
    checked = hand_checked(given.data)
    works: dict[str, Callable[[], str]] = {
        "read": lambda: read_by_hand(given.data),
        "held-out": lambda: synthetic("Held-out synthetic notes", annotators, held_out),
        "sealed": lambda: synthetic("Sealed synthetic notes", annotators, sealed),
        **{
            name: partial(foreign_set, name, annotators, notes, given.peers)
            for name, notes in foreign.items()
        },
        "by hand": lambda: by_hand(annotators, checked),
        "speed": lambda: speed(
            annotators,
            {
                "made-up": [note.text for note in held_out],
                "MTSamples": [text for _, text in notes_corpora.mtsamples(given.data)][:MTSAMPLES],
            },
            given.peers,
        ),
    }
    chosen = given.only.split(",") if given.only else works
    parts = [once(given.json, name, works[name]) for name in chosen]
    if given.only:
        return
    put("\n\n".join(parts), f" --notes {given.notes}" if given.notes != 1000 else "")


def synthetic(title: str, annotators: dict[str, Annotate], notes: list[AnnotatedNote]) -> str:
    """Kinds, phrasings and identities that training never saw."""
    results = {name: evaluate(name, notes, annotate) for name, annotate in annotators.items()}
    ensemble = results["ensemble"]
    kinds = sorted({note.group for note in notes})
    of_kinds = {
        kind: evaluate(kind, [n for n in notes if n.group == kind], annotators["ensemble"]) for kind in kinds
    }
    return "\n\n".join(
        [
            f"## {title}\n\n{len(notes):,} notes, seed {SEED}.",
            table(HEAD, [row(result) for result in results.values()]),
            "Ensemble by kind of note; all kinds but the usual four have no training templates at all:",
            table(
                HEAD,
                [row(of_kinds[kind]) for kind in kinds],
            ),
            "Ensemble by category (found: by any span of the kind):",
            categories(ensemble),
            "Mentions that are not the patient's own now, and the share that the ensemble asserts all the same:",
            table(
                ("why", "mentions", "wrongly kept"),
                [
                    (why, f"{kept.gold:,}", percent(kept.share))
                    for why, kept in sorted(ensemble.contexts.items())
                ],
            ),
        ]
    )


HEAD = (
    "",
    "EID recall",
    "EID precision",
    "EID words",
    "protected",
    "QID recall",
    "QID precision",
    "HMI F",
    "terms F",
    "wrongly kept",
)


def row(result: Evaluation) -> tuple[str, ...]:
    """A line of the tables under `HEAD`."""
    eid, qid, hmi = (result.spans.get(kind, Counts()) for kind in ("EID", "QID", "HMI"))
    return (
        result.name,
        figure(eid.recall),
        figure(eid.precision),
        figure(result.tokens["EID"].recall),
        figure(result.tokens[PROTECTED].recall),
        figure(qid.recall),
        figure(qid.precision),
        figure(hmi.f),
        figure(result.terms.f),
        percent(result.contexts.get("all", Kept()).share),
    )


def categories(result: Evaluation) -> str:
    """Gold and predicted spans by kind and category."""
    return table(
        ("category", "gold", "found", "predicted", "right"),
        [
            (name, f"{c.gold:,}", figure(c.recall), f"{c.predicted:,}", figure(c.precision))
            for name, c in sorted(result.spans.items())
            if ":" in name and not name.startswith(PROTECTED)
        ],
    )


def foreign_set(
    name: str, annotators: dict[str, Annotate], notes: list[AnnotatedNote], python: Path | None
) -> str:
    """A set of others, whose labels know no roles: what counts is whether a span is protected."""
    results = {each: evaluate(each, notes, annotate) for each, annotate in annotators.items()}
    found = {"ensemble": [safe_harbor(annotators["ensemble"](note.text)) for note in notes]}
    for peer, shown_as in PEERS.items() if python is not None else ():
        found[shown_as], _ = spans_of_peer(peer, [note.text for note in notes], python)
        results[shown_as] = Evaluation(shown_as)
        for note, spans in zip(notes, found[shown_as], strict=True):
            count(results[shown_as], note, spans)
    lines = [
        (
            each,
            figure(result.spans[PROTECTED].recall),
            figure(result.tokens[PROTECTED].recall),
            figure(result.spans[PROTECTED].precision),
        )
        for each, result in results.items()
    ]
    tags = sorted(key for key in results["ensemble"].spans if key.startswith(f"{PROTECTED}:"))
    shown = [each for each in ("ensemble", *PEERS.values()) if each in results]
    by_tag = [
        (
            key.partition(":")[2],
            f"{results['ensemble'].spans[key].gold:,}",
            *(figure(results[each].spans[key].recall) for each in shown),
        )
        for key in tags
    ]
    return "\n\n".join(
        [
            f"## {name}\n\n{len(notes):,} texts, {results['ensemble'].spans[PROTECTED].gold:,} tagged identities.",
            table(("", "recall, spans", "recall, words", "precision"), lines),
            "Words touched, all texts, with 95 % intervals (bootstrap over texts):",
            intervals(notes, found),
            table(("category", "tagged", *shown), by_tag),
        ]
    )


def safe_harbor(spans: Sequence[Span]) -> list[Span]:
    """Those that Safe Harbor takes out."""
    return [span for span in spans if span.kind == "EID" or span.category in SAFE_HARBOR_QID]


def intervals(notes: list[AnnotatedNote], found: dict[str, list[list[Span]]]) -> str:
    """Recall and precision with 95 % intervals; what the set tags is all that counts as right, and the ensemble's
    precision among the kinds that it tags besides."""
    tagged = {span.category for note in notes for span in note.spans}
    tagged |= {"address", "facility", "place", "zip"} if tagged & {"address", "place"} else set()
    gold = [covered(note.text, note.spans) for note in notes]
    drawn = np.random.default_rng(SEED).integers(len(notes), size=(1000, len(notes)))

    def shares(predicted: list[set[int]], over: list[set[int]]) -> str:
        """Of the words in `over` those that are both tagged and predicted."""
        right = np.array([len(a & b) for a, b in zip(gold, predicted, strict=True)])
        all_of = np.array([len(each) for each in over])
        with np.errstate(invalid="ignore"):
            low, high = np.nanquantile(right[drawn].sum(1) / all_of[drawn].sum(1), (0.025, 0.975))
        return f"{right.sum() / max(all_of.sum(), 1):.3f} ({low:.3f} to {high:.3f})" if all_of.sum() else "–"

    lines = []
    for name, spans in found.items():
        words = [covered(note.text, each) for note, each in zip(notes, spans, strict=True)]
        of_kinds = [
            covered(note.text, [span for span in each if span.category in tagged])
            for note, each in zip(notes, spans, strict=True)
        ]
        among = shares(of_kinds, of_kinds) if name == "ensemble" else "–"
        lines.append((name, shares(words, gold), shares(words, words), among))
    return table(("", "recall", "precision", "precision among the kinds tagged"), lines)


def covered(text: str, spans: Sequence[Span]) -> set[int]:
    """The starts of the words (runs of letters or digits) that spans touch."""
    return {
        word.start()
        for span in spans
        for word in WORD.finditer(text)
        if word.start() < span.end and span.start < word.end()
    }


def read_by_hand(data: Path) -> str:
    """Fifty notes of MTSamples read by hand."""
    counts = notes_read.counted(data)
    rng = np.random.default_rng(SEED)
    lines = []
    for name in notes_read.COUNTS:
        each = np.array([count[name] for count in counts])
        drawn = each[rng.integers(len(each), size=(1000, len(each)))].sum(1)
        low, high = np.quantile(drawn, (0.025, 0.975))
        lines.append((name, f"{each.sum():,} ({low:,.0f} to {high:,.0f})"))
    return "\n\n".join(
        [
            "## Fifty notes of MTSamples read by hand",
            "Counts with 95 % intervals (bootstrap over notes).",
            table(("", "found"), lines),
        ]
    )


def spans_of_peer(name: str, texts: Sequence[str], python: Path) -> tuple[list[list[Span]], float]:
    """What another program finds in each text, and its processor seconds without loading."""
    script = Path(__file__).resolve().parent / "notes_peers.py"
    given = "".join(json.dumps(text) + "\n" for text in texts)
    answer = subprocess.run(
        [str(python), str(script), name], input=given, stdout=subprocess.PIPE, text=True, check=True
    )
    *found, seconds = map(json.loads, answer.stdout.splitlines())
    spans = [
        [
            Span(start, end, "EID", "other_id", source=name)
            for start, end, score in each
            if score >= LEAST_SCORE
        ]
        for each in found
    ]
    if len(spans) != len(texts):
        raise SystemExit(f"{name} answered {len(spans)} of {len(texts)} texts")
    return spans, seconds


def hand_checked(data: Path) -> list[AnnotatedNote]:
    """The notes that were marked by hand; an error where a text is not the one that was marked."""
    texts = {**dict(notes_corpora.mtsamples(data)), **dict(notes_corpora.aci(data))}
    notes = []
    for entry in json.loads(CHECKED.read_text(encoding="utf-8")):
        text = texts[entry["note"]]
        if hashlib.sha256(text.encode()).hexdigest() != entry["sha256"]:
            raise SystemExit(f"{entry['note']}: is not the text that was marked by hand.")
        spans = [
            Span(start, end, kind, category, "", f"gold:{why}" if why else "gold", not why)
            for start, end, kind, category, why in entry["spans"]
        ]
        notes.append(AnnotatedNote(entry["note"], text, tuple(spans), entry["note"].partition("-")[0]))
    return notes


def by_hand(annotators: dict[str, Annotate], notes: list[AnnotatedNote]) -> str:
    """Real phrasings: MTSamples and ACI-Bench."""
    parts = []
    for group, title in (("mtsamples", "MTSamples"), ("aci", "ACI-Bench")):
        chosen = [note for note in notes if note.group == group]
        results = {
            name: evaluate(name, chosen, without_procedures(annotate))
            for name, annotate in annotators.items()
        }
        ensemble = results["ensemble"]
        lines = [
            (
                name,
                figure(result.spans.get("EID", Counts()).recall),
                figure(result.spans.get("EID", Counts()).precision),
                figure(result.spans.get("HMI", Counts()).recall),
                figure(result.spans.get("HMI", Counts()).precision),
                figure(result.spans.get("HMI", Counts()).f),
                percent(result.contexts["all"].share),
            )
            for name, result in results.items()
        ]
        head = ("", "EID recall", "EID precision", "HMI recall", "HMI precision", "HMI F", "wrongly kept")
        kept = [(why, k.gold, k.kept) for why, k in sorted(ensemble.contexts.items())]
        parts += [
            f"### {title}: {len(chosen)} notes, {sum(len(note.spans) for note in chosen)} spans",
            table(head, lines),
            categories(ensemble),
            table(("why", "mentions", "wrongly kept"), kept),
        ]
    return "\n\n".join(["## Notes checked by hand", *parts])


def without_procedures(annotate: Annotate) -> Annotate:
    """The annotator's answer less procedures, which were not marked by hand."""

    def answer(text: str) -> list[Span]:
        return [span for span in annotate(text) if span.category != "procedure"]

    return answer


def speed(annotators: dict[str, Annotate], texts: dict[str, list[str]], python: Path | None) -> str:
    """Words a second of processor time, by set; the other programs read `PEER_TEXTS` of each."""
    lines: dict[str, list[str]] = {}
    for given in texts.values():
        for name, annotate in annotators.items():
            for text in given[:100]:
                annotate(text)
            begin = time.process_time()
            for text in given:
                annotate(text)
            lines.setdefault(name, []).append(words_a_second(given, time.process_time() - begin))
        some = given[:PEER_TEXTS]
        for peer, shown_as in PEERS.items() if python is not None else ():
            seconds = spans_of_peer(peer, some, python)[1]
            lines.setdefault(shown_as, []).append(words_a_second(some, seconds))
    heads = [
        f"{name}: {len(given):,} notes of {sum(len(text.split()) for text in given) / len(given):.0f} words"
        for name, given in texts.items()
    ]
    return "\n\n".join(
        [
            "## Speed\n\nWords a second of processor time (notes a second); ours in one thread, ConText included.",
            table(("", *heads), [(name, *cells) for name, cells in lines.items()]),
        ]
    )


def words_a_second(texts: Sequence[str], seconds: float) -> str:
    words = sum(len(text.split()) for text in texts)
    return f"{words / seconds:,.0f} ({len(texts) / seconds:,.0f})"


def figure(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"


def percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def put(body: str, options: str) -> None:
    """Put the figures between the page's marks."""
    begin, end = "<!-- figures -->", "<!-- end of figures -->"
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else f"# Clinical notes\n\n{begin}\n{end}\n"
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    command = "python benchmarks/study_notes.py --data DIR --peers PYTHON"
    run = f"{machine()}. Commit {commit()}. Command: `{command}{options}`"
    save(PAGE, f"{before}{begin}\n{run}\n\n{body}\n{end}{after}")


if __name__ == "__main__":
    main()
