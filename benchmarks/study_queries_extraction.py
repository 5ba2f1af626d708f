"""A section of docs/studies/queries.md: noise at the extraction of terms, which Li & Qin leave open (section 6).

    python benchmarks/study_queries_extraction.py --data DIR

Randomized response (Warner 1965), and optimized unary encoding (Wang and others, USENIX Security 2017), on the notes'
items, beside Laplace noise on counts at equal ε: the itemsets and supports of Figure 5 in `study_queries.py`. All
draws are seeded: nothing is released.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import half_of, table
from index_itemsets import Item, frequent_itemsets
from leeward.queries.index.build import index_table
from leeward.randomness import Randomness
from replication import MonthItemsets, with_month
from study_queries import SUPPORTS, mtsamples, synthetic_notes
from study_queries_seasons import PAGE, put

COMMAND = "python benchmarks/study_queries_extraction.py --data DIR"
EPSILONS = (0.1, 0.2, 0.3, 0.4, 0.5, 2.0, 8.0)
TOTALS = (1.0, 5.0, 20.0, 100.0, 500.0)
SEEDS = 10

Bits = NDArray[np.bool_]

WORDS = """The paper's last section would add noise "in the information extraction stage". Here each note's items (its
terms and its month) are perturbed as they are taken from the note, and nobody holds the true ones: ε-local
differential privacy of a note, against whoever reads what is stored. A patient with several notes loses ε with each;
what all notes are asked, and how many there are, is not hidden. Relative errors of equation 4 on the itemsets of
Figure 5, mean ± half of the 95 % interval over {seeds} seeds of noise:

- *counts*: Laplace noise of scale 1/ε on the count, as in the paper;
- *one bit*: each note answers by randomized response at ε whether it holds the whole itemset, for one question;
- *each item*: each of the itemset's s items is answered by itself at ε/s, for one question; any formula of them can be
  estimated from the answers;
- *once*: all items of a note are perturbed once, for all questions. A note with at most L items differs from another
  in at most 2L of them: randomized response at ε/2L each, or optimized unary encoding at ε/L for an item that goes
  and one that comes. L is the most items that a note has here, as if it were public.

All estimates are unbiased (`tests/studies/test_extraction.py` sums over all answers). For a single question noise on
counts errs less at every ε and support. One perturbation by randomized response, for all questions, errs less than
counts that share the same ε only from 100 (made-up notes) and 500 (MTSamples) on, which is no protection; unary
encoding at no ε tried. It buys that nobody has to be trusted with the true terms, and that asking again tells nothing
new.
"""

PART = """
### Noise at extraction: {title}

{rows:,} notes, {itemsets:,} itemsets at support {least}.

{tables}

All {itemsets:,} questions for one ε together (*counts*: ε/{itemsets:,} each), L = {most}:

{once}

At ε = 0.5 *one bit* errs {bit} times as much as counts, by support, and *each item* {each} times.
"""


class Response(NamedTuple):
    """The chances that a held item is reported, and that one not held is."""

    held: float
    absent: float


def lie_of(epsilon: float) -> float:
    """1/(e^ε + 1)."""
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def warner(epsilon: float, bits: int = 1) -> Response:
    """Randomized response: `bits` answers cost ε together."""
    lie = lie_of(epsilon / bits)
    return Response(1 - lie, lie)


def unary(epsilon: float, items: int) -> Response:
    """Optimized unary encoding of sets of at most `items`, at ε together."""
    return Response(0.5, lie_of(epsilon / items))


def answers(bits: Bits, response: Response, stream: np.random.Generator) -> Bits:
    """What is stored in place of bool[rows, items]."""
    return np.asarray(stream.random(bits.shape) < np.where(bits, response.held, response.absent))


def estimate(stored: Bits, response: Response) -> float:
    """Unbiased number of rows that hold all items: the sum of Π (y - q)/(p - q)."""
    spread = response.held - response.absent
    weights = np.where(stored, (1 - response.absent) / spread, -response.absent / spread)
    return float(weights.prod(axis=1).sum())


def errors(
    itemsets: MonthItemsets, held: dict[Item, Bits], epsilon: float, seed: int
) -> dict[str, NDArray[np.float64]]:
    """|ñ - n|/n of each itemset, each with noise of its own at ε."""
    stream = Randomness.of(seed).stream("extraction", round(1000 * epsilon))
    made = {"counts": itemsets.counts + stream.laplace(0, 1 / epsilon, len(itemsets))}
    asked = [np.column_stack([held[item] for item in items]) for items in itemsets.held]
    whole = [bits.all(axis=1, keepdims=True) for bits in asked]
    for name, sets in (("one bit", whole), ("each item", asked)):
        responses = [warner(epsilon, bits.shape[1]) for bits in sets]
        made[name] = np.array(
            [estimate(answers(b, r, stream), r) for b, r in zip(sets, responses, strict=True)]
        )
    return {name: relative(found, itemsets) for name, found in made.items()}


def errors_of_once(
    itemsets: MonthItemsets, held: dict[Item, Bits], total: float, most: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """The same with ε for all itemsets together."""
    stream = Randomness.of(seed).stream("extraction, once", round(1000 * total))
    made = {"counts": itemsets.counts + stream.laplace(0, len(itemsets) / total, len(itemsets))}
    bits = np.column_stack([*held.values()])
    place = {item: at for at, item in enumerate(held)}
    for name, response in (("once, Warner", warner(total, 2 * most)), ("once, unary", unary(total, most))):
        stored = answers(bits, response, stream)
        made[name] = np.array(
            [estimate(stored[:, [place[item] for item in items]], response) for items in itemsets.held]
        )
    return {name: relative(found, itemsets) for name, found in made.items()}


def relative(found: NDArray[np.float64], itemsets: MonthItemsets) -> NDArray[np.float64]:
    return np.asarray(np.abs(found - itemsets.counts) / itemsets.counts)


def part(notes: pl.DataFrame, folder: Path, title: str, size: int | None) -> str:
    """The tables of one set of notes; itemsets of at most `size` items, as in Figure 5."""
    index = index_table(notes, folder).index
    least = min(SUPPORTS)
    itemsets = with_month(
        frequent_itemsets(index, least, qids=["month"], unit="note", max_size=size), "month"
    )
    held = {
        item: np.isin(np.arange(index.rows), index.bitmap(*item).to_array())
        for item in sorted({item for items in itemsets.held for item in items})
    }
    most = int(notes["terms"].list.n_unique().to_numpy().max()) + 1
    over = [itemsets.counts >= support for support in SUPPORTS]
    runs = {e: [errors(itemsets, held, e, seed) for seed in range(1, SEEDS + 1)] for e in EPSILONS}
    means = {
        (name, e): np.array([[run[name][chosen].mean() for chosen in over] for run in each])
        for e, each in runs.items()
        for name in each[0]
    }
    head = ["ε \\ support", *map(str, SUPPORTS)]
    shown = [
        f"*{name}*:\n\n"
        + table(head, [[f"{e:g}", *(spread(column) for column in means[name, e].T)] for e in EPSILONS])
        for name in dict.fromkeys(name for name, _ in means)
    ]
    rows = []
    for total in TOTALS:
        found = [errors_of_once(itemsets, held, total, most, seed) for seed in range(1, SEEDS + 1)]
        rows.append([f"{total:g}", *(spread([run[name].mean() for run in found]) for name in found[0])])
    times = {
        name: means[name, 0.5].mean(axis=0) / means["counts", 0.5].mean(axis=0)
        for name in ("one bit", "each item")
    }
    return PART.format(
        title=title, rows=index.rows, itemsets=len(itemsets), least=least, most=most,
        tables="\n\n".join(shown), once=table(["ε of all", "counts", "once, Warner", "once, unary"], rows),
        bit=span(times["one bit"]), each=span(times["each item"]),
    )  # fmt: skip


def spread(values: NDArray[np.float64] | list[float]) -> str:
    """Mean ± half of its interval, to the digits that the interval leaves."""
    mean, half = float(np.mean(values)), half_of([float(each) for each in values])
    digits = max(0, min(3, 1 - math.floor(math.log10(half)))) if half else 3
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"


def span(values: NDArray[np.float64]) -> str:
    return f"{values.min():,.0f} to {values.max():,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        body = [
            WORDS.format(seeds=SEEDS),
            part(synthetic_notes(folder), folder / "made-up", "2,867 made-up notes", None),
            part(mtsamples(data, folder), folder / "mtsamples", "MTSamples with assigned months", 3),
        ]
    put("extraction", "".join(body), PAGE, title="Noise at extraction", command=COMMAND)


if __name__ == "__main__":
    main()
