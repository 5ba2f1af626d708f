"""Classes of demographics: processor time of disassociation in many classes beside one, in pairs of runs.

    python benchmarks/classes.py [--records 1000000] [--classes 100] [--pairs 3]

Synthetic correlated code sets (`leeward synth codes`, seed 1: 631 codes, mean 5.1), each record in a class drawn at
random; k = 5, m = 2, no policy, one thread. Measured is the kernel: from flat code sets to clusters and chunks in
memory, in seconds of the process, with one class and with many by turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from common import table, write_page
from leeward.arrays import Int32s
from leeward.cohort import read
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.method import policy_over
from leeward.methods.disassociation.pipeline import disassociate_classes
from leeward.methods.disassociation.publish import facts_of, publish
from leeward.methods.disassociation.rules import Rules, Workers, rules_of
from leeward.randomness import Randomness
from leeward.synthetic import write_codes

WARM = 3_000
"""Records of a first run, which compiles."""


def seconds(sets: CodeSets, class_of: Int32s, rules: Rules) -> tuple[float, float]:
    """Processor seconds of the kernel, and the share of code occurrences in item chunks."""
    begin = time.process_time()
    data, _ = disassociate_classes(sets, class_of, rules, None, Workers(1))
    taken = time.process_time() - begin
    facts = facts_of(publish(data, sets.codes, Randomness.of(1)))
    return taken, facts["item_occurrences"] / facts["occurrences"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "codes.parquet"
        write_codes(file, options.records, seed=1)
        cohort = read(file, vocabulary="icd9")
    sets = cohort.code_sets()
    method = Disassociation(k=5, m=2)
    rules = rules_of(method, sets, policy_over(method, sets, "icd9"), cohort.name)
    del cohort
    one = np.zeros(len(sets), np.int32)
    many = Randomness.of(1).stream("classes").integers(0, options.classes, len(sets)).astype(np.int32)
    few = sets.take(np.arange(min(WARM, len(sets))))
    seconds(few, one[: len(few)], rules)
    seconds(few, many[: len(few)] % 2, rules)
    runs = [(seconds(sets, one, rules), seconds(sets, many, rules)) for _ in range(options.pairs)]
    ratios = [after[0] / before[0] for before, after in runs]
    rows = [
        [
            number,
            f"{before[0]:.2f}",
            f"{after[0]:.2f}",
            f"{after[0] / before[0]:.2f}",
            f"{before[1]:.1%}",
            f"{after[1]:.1%}",
        ]
        for number, (before, after) in enumerate(runs, start=1)
    ]
    head = [
        "pair",
        "one class, CPU s",
        f"{options.classes} classes, CPU s",
        "ratio",
        "item chunks, one",
        "many",
    ]
    found = (
        f"Median ratio: {statistics.median(ratios):.2f}. Item chunks: share of the code occurrences in them."
    )
    command = f"python benchmarks/classes.py --records {options.records} --classes {options.classes}"
    command += f" --pairs {options.pairs}"
    body = f"{table(head, rows)}\n\n{found}"
    write_page("classes", f"Disassociation in classes: {options.records:,} records", command, body)


if __name__ == "__main__":
    main()
