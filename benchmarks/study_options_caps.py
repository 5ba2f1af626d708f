"""A section of docs/studies/options.md: the catalogue's cap of contributions, and histograms of all codes and pairs.

    python benchmarks/study_options_caps.py --data DIR

Noise cannot be seeded: another run gives other figures. Data: the UCI cohort of study_disassociation.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import table, write_section
from benchmarks.study_options import COHORTS, LEAST, PAGE, REPETITIONS, errors

from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import frequent_queries
from leeward.cohort.cohort import Cohort
from leeward.queries.answer.catalogue import Catalogue, choose_entries, least_count, release_catalogue
from leeward.queries.index.build import index_cohort
from leeward.queries.language.vocabulary import Terms
from leeward.queries.privacy.accounting import micro
from leeward.queries.privacy.mechanism import Noise
from leeward.randomness import Randomness

BEFORE = "## Places\n"
CAPS = (1, 3, 10, 30, 100)
EPSILONS = ("0.5", "2")
SPURIOUS = Catalogue(epsilon=2).spurious
WORDS = """Sets of up to two codes of UCI at a total ε, {times} times each, by the cap: how many sets of a size a
patient is counted in at most. A small cap leaves out patients who have more sets, a large one needs more noise.
*Catalogue*: `leeward itemsets`, pairs of listed codes only. *Histograms*: all {codes:,} codes and all their {pairs:,}
pairs, half of ε each, with the same noise and, against sets that nobody has, a higher threshold. *Common*: sets of 1 %
of the patients that are listed. *Nobody's*: listed, though no patient has them. Patients have {median:.0f} pairs in the
median, {most:,} at most; {over:.0%} have more than ten.

At ε = 2 a cap of 30 lists all common codes and pairs with errors of .058 and .094; the default, ten, has .049 and
.295. At ε = 0.5 a cap of 30 loses a third of the common codes and more than half of the pairs, whose errors with ten
are .218. Histograms of everything list fewer pairs at ε = 0.5 from a cap of ten on, and at ε = 2 with 100.

{table}
"""
Found = list[tuple[np.ndarray, float]]
"""Listed sets, as codes' numbers, with their noisy counts."""


def section(cohort: Cohort, folder: Path) -> str:
    sets = cohort.code_sets()
    total = len(sets.codes)
    index = index_cohort(cohort, folder, terms=Terms(tuple(sets.codes), name="codes"), row="patient").index
    number = {code.lower(): at for at, code in enumerate(sets.codes)}
    often = frequent_queries(sets, LEAST, 2, None).queries
    people, pairs = pairs_of(sets)
    many = np.bincount(people, minlength=len(sets.offsets) - 1)
    rows = []
    for epsilon in EPSILONS:
        for cap in CAPS:
            made: dict[str, list[Found]] = {"catalogue": [], "histograms": []}
            for _ in range(REPETITIONS):
                found = release_catalogue(index, Catalogue(epsilon=micro(epsilon), contributions=cap))
                named = ([number[code.lower()] for code in each] for each in found["itemsets"])
                made["catalogue"].append([*zip(map(np.array, named), found["counts"], strict=True)])
                made["histograms"].append(histograms(sets, people, pairs, cap, micro(epsilon) // 2))
            for name, runs in made.items():
                rows.append([epsilon, cap, name, *judged(runs, sets, often)])
    head = ["ε", "cap", "way", "common codes", "error", "common pairs", "error", "nobody's"]
    return WORDS.format(
        times=REPETITIONS, codes=total, pairs=total * (total - 1) // 2, median=np.median(many), most=many.max(),
        over=np.mean(many > 10), table=table(head, rows),
    )  # fmt: skip


def pairs_of(sets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of codes of each patient: the patient, and the pair as one number."""
    people, pairs = [], []
    for person, (first, last) in enumerate(zip(sets.offsets[:-1], sets.offsets[1:], strict=True)):
        for one, other in combinations(sorted(sets.values[first:last].tolist()), 2):
            people.append(person)
            pairs.append(one * len(sets.codes) + other)
    return np.array(people, np.int32), np.array(pairs, np.int64)


def histograms(sets: Any, people: np.ndarray, pairs: np.ndarray, cap: int, epsilon: int) -> Found:
    """A histogram of all codes and one of all pairs, each with `epsilon`; what reaches its threshold."""
    size = len(sets.codes)
    noise = Noise("geometric", epsilon, cap)
    draws = Randomness.of(None)
    owners = np.repeat(np.arange(len(sets.offsets) - 1, dtype=np.int32), np.diff(sets.offsets))
    every = np.array([one * size + other for one, other in combinations(range(size), 2)])
    found: Found = []
    for whose, values, cells in (
        (owners, np.asarray(sets.values, np.int64), np.arange(size)),
        (people, pairs, every),
    ):
        kept = choose_entries(whose, cap, draws.stream("histogram", len(cells)))
        counts = np.zeros(size * size, np.int64)
        np.add.at(counts, values[kept], 1)
        # The law of `mechanism`, not its sampler, which takes seconds for so many cells: nothing is released.
        steps = draws.stream("noise", len(cells)).geometric(1 - noise.alpha, (2, len(cells)))
        noisy = counts[cells] + steps[0] - steps[1]
        for at in np.flatnonzero(noisy >= least_count(noise, len(cells), SPURIOUS)):
            cell = int(cells[at])
            codes = [cell] if len(cells) == size else [cell // size, cell % size]
            found.append((np.array(codes), float(noisy[at])))
    return found


def judged(runs: list[Found], sets: Any, often: list[np.ndarray]) -> Iterator[str]:
    """Means over runs: common sets listed and relative error, by size; sets that nobody has."""
    nobody = 0
    for size in (1, 2):
        common = {frozenset(each.tolist()) for each in often if len(each) == size}
        hits, wrong = [], []
        for found in runs:
            listed = [(codes, count) for codes, count in found if len(codes) == size]
            hits.append(sum(frozenset(codes.tolist()) in common for codes, _ in listed))
            if listed:
                true = supports_of(sets, [codes for codes, _ in listed])
                nobody += int((true == 0).sum())
                if true.any():
                    wrong.append(errors(true, np.array([count for _, count in listed])))
        yield f"{np.mean(hits):.1f} of {len(common)}"
        yield f"{np.mean(wrong):.3f}" if wrong else "–"
    yield f"{nobody / len(runs):.1f}"


def put(body: str, page: Path = PAGE) -> None:
    """Write the section; a new one before the one on places."""
    command = "python benchmarks/study_options_caps.py --data DIR"
    write_section(
        "caps", "The cap of contributions, and plain histograms", command, body, page, before=BEFORE
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from benchmarks import partitioning

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohort = next(cohort for shape, cohort, _ in partitioning.shapes(data, folder) if shape == COHORTS[0])
        put(section(cohort, folder / "index"))


if __name__ == "__main__":
    main()
