"""The mutation bench: releases of every method changed one way at a time, and what of it `leeward verify` refutes.

    python benchmarks/mutations.py [--cases NAME;…] [--random 100] [--survivors] [--keep FOLDER] [--page]

Made-up cohorts (tests/mutations/bench.py: cases), no data needed. Mutations follow from what a release has: what its
guarantee speaks of (things moved, merged, split, added, dropped, exchanged), every column and row of every file,
orders, every sentence, every key and parameter, metadata, and random edits. Each is judged by plain definitions
(tests/mutations/definitions.py, paths.py): what breaks nothing and says true things is not counted. Digests, rows and
the README's figures are restated after each. Then the verifier sees it twice: with source and custody, and the share
alone. With `--keep` each score is kept as a file of the folder; with `--page` the table and the survivors go into
docs/studies/verifier.md, of the kept scores where `--keep` is given (releases not named are not run again).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tests.mutations import bench
from tests.mutations.reasons import reason

from common import commit, machine, save, table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "verifier.md"
VARIANTS = 3
"""Of a variant of a method every third mutation is tried."""

HEAD = [
    "release",
    "commit",
    "kinds",
    "random edits",
    "break nothing",
    "with source and custody",
    "share alone",
    "of what the share shows",
]


def row(score: bench.Score) -> list[str]:
    """A line of the table."""
    alone = f"{score.alone_caught} of {score.alone} ({score.share_alone:.1%})"
    return [
        score.name,
        score.commit,
        str(score.kinds),
        str(score.random),
        str(len(score.neutral)),
        f"{score.whole_caught} of {score.whole} ({score.share_whole:.1%})",
        "refuses" if score.refuses else alone,
        "refuses" if score.refuses else f"{score.shown_caught} of {score.shown}",
    ]


def parts(scores: list[bench.Score]) -> list[list[str]]:
    """A line for each part of the mutations, over all releases."""
    found: dict[str, list[int]] = {}
    for score in scores:
        for part, counts in score.parts.items():
            found[part] = [a + b for a, b in zip(found.get(part, [0] * 4), counts, strict=True)]
    return [
        [part, f"{caught} of {broken}", f"{caught_alone} of {alone}"]
        for part, (broken, caught, alone, caught_alone) in found.items()
    ]


def survivors(scores: list[bench.Score]) -> str:
    """What was not refuted, why, and of which releases."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for score in scores:
        for which, passed in (
            ("source and custody", score.survivors),
            ("share alone", score.survivors_alone),
        ):
            for each in passed:
                key = f"`{each}`", reason(score.name, each) or "–", which
                found.setdefault(key, []).append(score.name)
    rows = [[*key, "; ".join(names)] for key, names in found.items()]
    return table(["not refuted", "why", "with", "releases"], rows) if rows else "None."


def hidden(scores: list[bench.Score]) -> str:
    """What no share shows: how many mutations passed with the share alone, by the reason."""
    found: dict[str, Counter[str]] = {}
    for score in scores:
        for why, names in score.hidden.items():
            found.setdefault(why, Counter())[score.name] += len(names)
    ordered = sorted(found.items(), key=lambda each: -each[1].total())
    rows = [
        [str(each.total()), why, "; ".join(f"{name} {n}" for name, n in each.items())]
        for why, each in ordered
    ]
    return table(["passed", "why nobody sees it in the share", "where"], rows)


def neutral(scores: list[bench.Score]) -> str:
    """What breaks nothing, random edits apart."""
    rows = []
    for score in scores:
        kinds = [each for each in score.neutral if not each.startswith("random")]
        named = "; ".join(f"`{each}`" for each in kinds)
        rows.append([score.name, named or "–", str(len(score.neutral) - len(kinds))])
    return table(["release", "kinds", "random edits"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="", help="NAME;NAME…; none: all")
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--survivors", action="store_true", help="list what was not refuted")
    parser.add_argument("--keep", type=Path, help="folder of the scores")
    parser.add_argument("--page", action="store_true", help="write the tables into the study")
    options = parser.parse_args()
    wanted = [name for name in options.cases.split(";") if name]
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    scores = []
    for name, case in bench.cases().items():
        kept = None if options.keep is None else options.keep / f"{name}.json"
        if wanted and name not in wanted:
            if kept is not None and kept.is_file():
                scores.append(bench.Score(**json.loads(kept.read_text(encoding="utf-8"))))
            continue
        begin, now = time.perf_counter(), commit()
        with tempfile.TemporaryDirectory() as folder:
            made = bench.make(name, case, Path(folder) / "sound")
            every = 1 if made.name == made.kind else VARIANTS
            chosen = list(bench.mutations(made, options.random))[::every]
            scores.append(bench.run(made, chosen, Path(folder)))
        scores[-1].commit = now
        if kept is not None:
            kept.write_text(json.dumps(dataclasses.asdict(scores[-1])), encoding="utf-8")
        print(" | ".join(row(scores[-1])), f"| {time.perf_counter() - begin:.0f} s", flush=True)
    if options.survivors:
        print(survivors(scores))
    if options.page:
        command = f"python benchmarks/mutations.py --random {options.random} --page"
        said = f"{machine()}. Command: `{command}`."
        for mark, body in (
            (
                "scores",
                (
                    f"{said}\n\n{table(HEAD, [row(score) for score in scores])}\n\n"
                    f"{table(['part', 'with source and custody', 'share alone'], parts(scores))}"
                ),
            ),
            ("survivors", survivors(scores)),
            ("hidden", hidden(scores)),
            ("neutral", neutral(scores)),
        ):
            text = PAGE.read_text(encoding="utf-8")
            part = re.compile(f"(<!-- {mark} -->).*?(<!-- end of {mark} -->)", re.S)
            save(PAGE, part.sub(lambda m, b=body: f"{m[1]}\n{b}\n{m[2]}", text))


if __name__ == "__main__":
    main()
