"""What two releases of overlapping patients give away together: docs/benchmarks/composition.md.

    python benchmarks/composition.py --data DIR [--store FILE] [--cohorts 300]

DIR holds `uci-diabetes130/diabetic_data.csv.gz` and `survival/gbsg.csv`. UCI's encounters are cut into four quarters by
their numbers, since they have no dates. Bounds are those of `leeward.composition`; how loose they are is counted on
small made-up cohorts by the integer program of tests/oracles/composition.py.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import polars as pl
from tests.methods.disassociation.shapes import cohort_of
from tests.oracles.composition import most_candidates

import leeward as lw
from common import once, table, write_page
from leeward.composition import Held, attacks
from leeward.composition.disassociations import Cells
from leeward.composition.known import Coding, Known, bits_of, sets_of
from leeward.composition.leaves import Leaves
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.extract import extract

SMALL: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 3},
    {"k": 3, "attacker": "operation"},
    {"k": 2, "partitioning": "paper"},
]
"""Parameters of the small cohorts' releases."""

Row = list[object]


class Place:
    """Releases of UCI's first quarters, each made once."""

    def __init__(self, data: Path, folder: Path) -> None:
        columns = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
        rows = pl.read_csv(data / "uci-diabetes130/diabetic_data.csv.gz", infer_schema=False)
        rows = rows.sort(pl.col("encounter_id").cast(pl.Int64))
        self.folder, self.made = folder, {}
        self.sources = {
            quarter: lw.read(rows.head(-(-rows.height * quarter // 4)), columns=columns, missing=["?"])
            for quarter in range(1, 5)
        }

    def held(self, method: Any, quarter: int = 4) -> Held:
        key = repr((method, quarter))
        if key not in self.made:
            out = self.folder / f"release{len(self.made)}"
            lw.protect(self.sources[quarter], method, out, seed=1)
            self.made[key] = out
        return Held(Release.open(self.made[key]), self.sources[quarter])


def compare(name: str, one: Held, two: Held, patients: int = 1_000) -> list[Row]:
    start = time.process_time()
    found = attacks(one, two, patients=patients)
    seconds = time.process_time() - start
    rows = []
    for each in found:
        known = each.attack.split(";")[0].split(" and links")[0]
        kind = "exact" if each.exact else "bound"
        share = f"{each.below:,} of {each.looked_at:,} ({each.below / each.looked_at:.1%})"
        rows.append(
            [
                name,
                known,
                kind,
                share,
                ", ".join(f"{n:,}" for n in each.by_fewest),
                f"{each.certain:,}",
                f"{seconds:.1f}",
            ]
        )
    return rows


def disassociations(place: Place) -> list[Row]:
    five, ten = lw.Disassociation(k=5, m=2), lw.Disassociation(k=10, m=2)
    operation = [lw.Disassociation(k=k, m=2, attacker="operation") for k in (5, 10)]
    rows = compare("disassociation k 5, again", place.held(five), place.held(five))
    rows += compare("disassociation k 5 with k 10", place.held(five), place.held(ten))
    rows += compare("the same, `attacker: operation`", *(place.held(each) for each in operation))
    for quarter in (1, 2, 3):
        rows += compare(
            f"disassociation, quarters 1–{quarter} then 1–{quarter + 1}",
            place.held(five, quarter),
            place.held(five, quarter + 1),
        )
    constraints = lw.Constraints(k=5, m=2, policy="hierarchy:2")
    return rows + compare(
        "constraints with disassociation k 5", place.held(constraints), place.held(five), 600
    )


def visits(place: Place) -> list[Row]:
    five, ten = lw.Visits(k=5, policy=None), lw.Visits(k=10, policy=None)
    rows = compare("visits k 5 with k 10", place.held(five), place.held(ten))
    for one, two in ((1, 2), (2, 3), (3, 4), (1, 4)):
        rows += compare(
            f"visits, quarters 1–{one} then 1–{two}", place.held(five, one), place.held(five, two)
        )
    return rows


def cohorts(place: Place) -> list[Row]:
    """Members of three pairs of cohorts of one master: those with each code."""
    master = place.held(lw.Visits(k=5, policy=None))
    events = place.sources[4].require_events().select("patient", pl.col("code").cast(pl.String))
    rows, drawn = [], {}
    for code in ("428", "250.01", "414", "585"):
        members = events.filter(pl.col("code") == code)["patient"].unique().sort()
        drawn[code] = place.folder / f"cohort{code}"
        extract(
            master.release.share.parent,
            members,
            drawn[code],
            membership_is_secret="nobody knows who is in it",
            seed=1,
        )
    for code in ("250.01", "414", "585"):
        pair = [Held(Release.open(drawn[each]), None) for each in ("428", code)]
        rows += compare(f"cohorts of one master: 428 and {code}", *pair)
    return rows


def condensed(data: Path, folder: Path) -> list[Row]:
    """gbsg and gbsg without one patient, or without twenty."""
    source = pl.read_csv(data / "survival/gbsg.csv").drop("rownames", strict=False)
    read = {
        left_out: lw.read(source[left_out:], columns={"patient": "pid"}, format="table")
        for left_out in (0, 1, 20)
    }
    method = lw.Condensation(k=10, strata=("status",), time=("rfstime",))
    held = {}
    for left_out, cohort in read.items():
        lw.protect(cohort, method, folder / f"gbsg{left_out}", seed=left_out + 1)
        held[left_out] = Held(Release.open(folder / f"gbsg{left_out}"), cohort)
    return [
        row
        for left_out in (1, 20)
        for row in compare(
            f"condensation of gbsg, without {left_out} of its patients", held[left_out], held[0]
        )
    ]


def small_cohorts(count: int, folder: Path) -> dict[str, Any]:
    """On cohorts of a dozen patients and five codes: bounds, what an integer program finds possible, and the truth."""
    draw = random.Random(1)
    gaps: Counter[int] = Counter()
    below = sets = loose_below = 0
    for number in range(count):
        records = [
            tuple(sorted(draw.sample("abcde", draw.choice([1, 1, 2, 2, 3, 4]))))
            for _ in range(draw.randint(8, 14))
        ]
        out = folder / "small"
        shutil.rmtree(out, ignore_errors=True)
        pair = []
        for place, parameters in enumerate(draw.sample(SMALL, 2)):
            cohort = cohort_of(records)
            made = lw.Disassociation(m=2, **parameters).protect(cohort, randomness=Randomness.of(number))
            write(made, out / str(place))
            pair.append(Release.open(out / str(place)))
        coding = Coding.of(cohort)
        known = Known.of(cohort, coding)
        leaves = [Leaves(each, coding) for each in pair]
        leaves[0].tighten(leaves[1])
        leaves[1].tighten(leaves[0])
        codes = {bit: code for code, bit in coding.bit.items()}
        k = min(int(each.parameters["k"]) for each in pair)
        for asked in sorted({each for mask in known.of_patient.values() for each in sets_of(mask, 2)}):
            if known.support(asked) >= k:
                continue
            bound = Cells(*leaves).candidates(asked, 99)
            named = frozenset(codes[bit] for bit in bits_of(asked))
            exact = most_candidates(pair[0].share, pair[1].share, named, frozenset(coding.bit))
            sets += 1
            below += bound < exact or exact < known.support(asked)
            loose_below += exact < k <= bound
            gaps[bound - exact] += 1
    return {
        "cohorts": count,
        "sets": sets,
        "below": below,
        "loose_below": loose_below,
        "gaps": dict(sorted(gaps.items())),
    }


def guess_times(data: Path, folder: Path, k: int) -> tuple[float, ...]:
    """The share of gbsg's patients whose exact time is guessed right from one draw, another, and both.

    The attacker knows all but the time, and guesses of the times of the stratum the one whose nearest rows, in ranks,
    are nearest, added up over the tables: one rule of many, so no bound.
    """
    source = pl.read_csv(data / "survival/gbsg.csv").drop("rownames", "pid")
    tables = []
    for seed in (1, 2):
        out = folder / f"draw{k}-{seed}"
        method = lw.Condensation(k=k, strata=("status",), time=("rfstime",))
        tables.append(
            lw.protect(lw.read(source, format="table"), method, out, seed=seed)
            .release.table("table.parquet")
            .collect()
        )
    names = [each for each in source.columns if each not in ("status", "rfstime")]
    right = np.zeros(3)
    for (status,), own in source.group_by("status"):
        times = np.unique(own["rfstime"].to_numpy())
        truth = np.searchsorted(times, own["rfstime"].to_numpy())
        scores = []
        for made in tables:
            rows = made.filter(pl.col("status").cast(pl.String) == str(status))
            gaps = np.abs(ranks(own, names, source)[:, None] - ranks(rows, names, source)[None]).sum(axis=2)
            shown = rows["rfstime"].cast(pl.Float64).to_numpy()
            near = [gaps[:, shown == each].min(axis=1, initial=99.0) for each in times]
            scores.append(np.column_stack(near))
        for at, score in enumerate((*scores, scores[0] + scores[1])):
            right[at] += (score.argmin(axis=1) == truth).sum()
    return tuple(right / source.height)


def ranks(rows: pl.DataFrame, names: list[str], source: pl.DataFrame) -> Any:
    found = []
    for name in names:
        base, values = (np.asarray(each[name].cast(pl.Float64)) for each in (source.sort(name), rows))
        found.append(
            (np.searchsorted(base, values, "left") + np.searchsorted(base, values, "right")) / (2 * len(base))
        )
    return np.column_stack(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--store", type=Path, help="JSON file in which a run that goes on in pieces keeps what it has"
    )
    parser.add_argument("--cohorts", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, places = Path(name), list[Place]()

        def uci(part: Callable[[Place], list[Row]]) -> list[Row]:
            places[:] = places or [Place(given.data, folder)]
            return part(places[0])

        rows = [
            row
            for part in (disassociations, visits, cohorts)
            for row in once(given.store, part.__name__, lambda part=part: uci(part))
        ]
        rows += once(given.store, "condensed", lambda: condensed(given.data, folder))
        small = once(given.store, "small", lambda: small_cohorts(given.cohorts, folder))
        guesses = {
            k: once(given.store, f"guesses{k}", lambda k=k: guess_times(given.data, folder, k))
            for k in (10, 25)
        }
    write_page(
        "composition",
        "Two releases together",
        "python benchmarks/composition.py --data DIR",
        page(rows, small, guesses),
    )


def page(rows: list[Row], small: dict[str, Any], guesses: dict[int, tuple[float, ...]]) -> str:
    head = [
        "pair",
        "the attacker",
        "kind",
        "patients below k",
        "with 1, 2, … k − 1 candidates",
        "told for certain",
        "CPU seconds",
    ]
    gaps = {int(gap): count for gap, count in small["gaps"].items()}
    drawn = [[k, *(f"{each:.1%}" for each in shares), f"{1 / k:.0%}"] for k, shares in guesses.items()]
    return f"""
Patients in both releases have fewer candidates than in either alone. A bound is never below the number of patients who
could be meant, so "below k" is certain; "k or more" only says that this attack got no further. k is the smaller of
both. What is told for certain is told by both together and by neither alone: a further code, the record in the other
release, or the exact time. Seconds are those of a pair, all attacks together, without reading the source.

## UCI in four quarters, and gbsg

{table(head, rows)}

Not measured, which is not the same as safe: every other pair, more than two releases, more than two known codes.

## How loose the bounds are

{small["cohorts"]:,} cohorts of 8 to 14 patients and five codes, each disassociated with two settings. Of
{small["sets"]:,} sets of one or two codes that fewer than k patients have, an integer program finds the most candidates
that any data set has which fits both. Bounds below it, or it below the truth: {small["below"]:,}. Sets for which the
program finds fewer than k and the bound does not: {small["loose_below"]:,}.

{table(["bound above the program by", "sets"], [[gap, f"{count:,}"] for gap, count in gaps.items()])}

## Condensed twice

The exact time of a patient of gbsg, guessed from every other value, by one rule: nearest rows in ranks. No bound.

{table(["k", "from one draw", "from another", "from both", "1/k"], drawn)}
"""


if __name__ == "__main__":
    main()
