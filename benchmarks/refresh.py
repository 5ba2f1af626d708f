"""Releases over time: what re-release from scratch gives away in four quarters, and what a line of versions keeps.

    python benchmarks/refresh.py --data DIR --store FILE [--patients 3000]     measures what FILE lacks
    python benchmarks/refresh.py --data DIR --store FILE --page                writes docs/benchmarks/refresh.md

DIR holds `uci-diabetes130/`; claims are made up. Quarters of UCI are equal runs of encounters by their number, of
claims by their date. The attack and the counts are those of `tests/`, which use nothing of the product.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.attacks.refresh import Codes, Row, attack, rows_of
from tests.oracles.refresh import candidates, views_of_visits

import leeward as lw
from common import once, table, write_page
from leeward.runs.estimate import estimates

QUARTERS = 4
UCI = {"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"], "visit": "encounter_id"}
CLAIMS = {"patient": "patient", "code": [f"diag_{n}" for n in range(1, 11)], "visit": "claim"}
LEAST = 0.0125
"""Share of the patients who have a set of codes whose count is estimated."""


SCRATCH = """Masters of visits made from scratch each quarter, numbers of records known (kept, or linked): patients of
whom a known visit leaves fewer than k records."""
VISITS = """A line of visits: (patient, code) pairs that the last version keeps; visits held back after each quarter, of
those that had come; patients below k by the same attack; fewest records that share a set, in all versions and all
differences, among new and returning records."""
CHUNKS = """A line of disassociation: occurrences counted (not only listed); average relative error (ARE) of the counts
of pairs that 1.25 % have, in patient-quarters; fewest candidates of any set of at most m codes, in all versions and all
differences."""


PARTS = {
    "scratch": (
        SCRATCH,
        ("data", "k", "versions", "patients below k", "of", "share", "visits that leave one record"),
    ),
    "visits": (
        VISITS,
        ("data", "k", "wait", "pairs kept", "one release", "held back", "below k", "fewest", "CPU s"),
    ),
    "chunks": (
        CHUNKS,
        (
            "data",
            "k",
            "m",
            "attacker",
            "counted",
            "one release",
            "ARE of pairs",
            "one release",
            "fewest",
            "CPU s",
        ),
    ),
}
"""What is measured, by how its keys in the store begin: its sentence, and the head of its table."""


def main() -> None:
    """Measure what the store lacks, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--patients", type=int, default=3000, help="of made-up claims")
    parser.add_argument(
        "--store", type=Path, required=True, help="file with what was measured, to go on with"
    )
    parser.add_argument("--page", action="store_true", help="write the page of what the store has")
    options = parser.parse_args()
    if not options.page:
        for name, (quarters, columns) in data(options.data, options.patients).items():
            for k in (5, 10):
                with tempfile.TemporaryDirectory() as folder:
                    measure(name, k, Path(folder), quarters, columns, options.store)
    kept: dict[str, Any] = json.loads(options.store.read_text(encoding="utf-8"))
    body = "\n\n".join(
        f"{text}\n\n{table(head, [row for key, rows in kept.items() if key.startswith(part) for row in rows])}"
        for part, (text, head) in PARTS.items()
    )
    write_page("refresh", "Releases over time", "python benchmarks/refresh.py --data DIR --store FILE", body)


def measure(
    name: str, k: int, folder: Path, quarters: list[pl.DataFrame], columns: dict[str, Any], store: Path
) -> None:
    """Everything of one data set and one k; rows begin with both."""
    sources = [lw.read(q, columns=columns, missing=("?",), accept_unknown=True) for q in quarters]

    def visits() -> list[Any]:
        return [(name, k, *row) for row in visits_line(folder, sources, k)]

    def scratch() -> list[Any]:
        return [(name, k, *re_release(folder, quarters, columns, k))]

    once(store, f"scratch, {name}, {k}", scratch)
    if not (folder / "scratch-4").exists():  # kept by an earlier run, and `visits` compares with it
        scratch()
    once(store, f"visits, {name}, {k}", visits)
    for attacker, m in (("operation", 2), ("counts", 2), ("counts", 3)):
        row = partial(chunks_line, folder, sources, k, m, attacker)
        once(
            store,
            f"chunks, {name}, {k}, {m}, {attacker}",
            lambda row=row, m=m, a=attacker: [(name, k, m, a, *row())],
        )


def data(folder: Path, patients: int) -> dict[str, tuple[list[pl.DataFrame], dict[str, Any]]]:
    """The quarters of each data set, and how they are read."""
    file = folder / "uci-diabetes130" / "diabetic_data.csv.gz"
    uci = pl.read_csv(file, infer_schema=False).select(UCI["patient"], UCI["visit"], *UCI["code"])
    uci = uci.sort(pl.col(UCI["visit"]).cast(pl.Int64))
    with tempfile.TemporaryDirectory() as made:
        lw.synth.write_claims(f"{made}/claims.csv", patients=patients, codes=1000, seed=1)
        claims = pl.read_csv(f"{made}/claims.csv", infer_schema=False).sort("date", "claim")
    wanted = ("patient", "claim", *CLAIMS["code"])
    return {"UCI": (cut(uci), UCI), f"claims of {patients:,}": (cut(claims.select(wanted)), CLAIMS)}


def cut(rows: pl.DataFrame) -> list[pl.DataFrame]:
    bounds = [rows.height * q // QUARTERS for q in range(QUARTERS + 1)]
    return [rows[low:high] for low, high in pairwise(bounds)]


def cpu() -> float:
    used = os.times()
    return used.user + used.system


def re_release(
    folder: Path, quarters: list[pl.DataFrame], columns: dict[str, Any], k: int
) -> tuple[object, ...]:
    """A master of all quarters so far, each quarter: the attack on the four of them."""
    tables: list[list[Row]] = []
    images: list[dict[str, tuple[str, Codes]]] = []
    for n in range(1, QUARTERS + 1):
        source = lw.read(pl.concat(quarters[:n]), columns=columns, missing=("?",), accept_unknown=True)
        out = folder / f"scratch-{n}"
        lw.protect(source, lw.Visits(k=k, policy="none"), out, measures=(), tell=len)
        events = source.require_events().select(pl.col("row").cast(pl.Int64), pl.col("visit").cast(pl.String))
        of_row = dict(events.unique("row").iter_rows())
        people = dict(
            pl.read_parquet(out / "custody/data/patients.parquet").select("record", "patient").iter_rows()
        )
        where = {
            (r, v): of_row[row]
            for r, v, row in pl.read_parquet(out / "custody/data/visits.parquet").iter_rows()
        }
        rows, shown = [], {}
        for record, visit, codes in pl.read_parquet(out / "share/data/visits.parquet").iter_rows():
            rows.append((int(people[record]), frozenset(codes)))
            shown[where[record, visit]] = (str(people[record]), frozenset(codes))
        tables.append(rows)
        images.append(shown)
    owner = {visit: person for shown in images for visit, (person, _) in shown.items()}
    known = [
        (int(person), [shown[visit][1] if visit in shown else frozenset() for shown in images])
        for visit, person in owner.items()
    ]
    found = attack(tables, known, k)
    total = len(set(owner.values()))
    share = f"{found.people_below_k / total:.1%}"
    return QUARTERS, f"{found.people_below_k:,}", f"{total:,}", share, f"{found.alone:,}"


def visits_line(folder: Path, sources: list[Any], k: int) -> Iterator[tuple[object, ...]]:
    """For each number of batches that visits may wait. The last quarter takes all that wait."""
    method = lw.Visits(k=k, policy="none")
    pairs = pl.concat([pairs_of(source) for source in sources]).unique()
    one = kept_pairs(
        folder / "scratch-4", pl.read_parquet(folder / "scratch-4/custody/data/patients.parquet")
    )
    for wait in (0, 1, 3):
        start, versions, held = cpu(), [folder / f"visits-{wait}-1"], []
        lw.protect(sources[0], method, versions[0], measures=(), tell=len)
        came = sources[0].require_events()["visit"].n_unique()
        for n, source in enumerate(sources[1:], 2):
            out = folder / f"visits-{wait}-{n}"
            waits = wait if n < QUARTERS else 0
            made = lw.refresh(
                versions[-1], source, out, wait=waits, published=sources[0], measures=(), tell=len
            )
            came += source.require_events()["visit"].n_unique()
            held.append(f"{made.measures['refresh']['waiting'] / came:.1%}")
            versions.append(out)
        seconds = cpu() - start
        shares = [version / "share" for version in versions]
        people = pl.read_parquet(versions[-1] / "custody/versions/records.parquet")
        kept = kept_pairs(versions[-1], people) / pairs.height
        tables = [rows_of(share) for share in shares]
        known, seen = [], 0
        for j, rows in enumerate(tables):
            known += [
                (record, [codes if at >= j else frozenset() for at in range(QUARTERS)])
                for record, codes in rows[seen:]
            ]
            seen = len(rows)
        fewest = min(least for _, least in views_of_visits(shares) if least is not None)
        below = attack(tables, known, k).people_below_k
        yield (
            wait,
            f"{kept:.1%}",
            f"{one / pairs.height:.1%}",
            ", ".join(held),
            below,
            fewest,
            f"{seconds:.0f}",
        )


def pairs_of(source: Any) -> pl.DataFrame:
    return source.require_events().select(pl.col("patient", "code").cast(pl.String)).unique()


def kept_pairs(release: Path, people: pl.DataFrame) -> int:
    """Distinct pairs of patient and code that a release of visits shows."""
    shown = pl.read_parquet(release / "share/data/visits.parquet").select("record", "codes")
    return shown.explode("codes").join(people, on="record").select("patient", "codes").n_unique()


def chunks_line(folder: Path, sources: list[Any], k: int, m: int, attacker: str) -> tuple[object, ...]:
    """A line of disassociation against one release of everything."""
    method, start = lw.Disassociation(k=k, m=m, attacker=attacker), cpu()
    folder = folder / f"{attacker}-{m}"
    versions = [folder / "1"]
    lw.protect(sources[0], method, versions[0], measures=(), tell=len)
    for n, source in enumerate(sources[1:], 2):
        versions.append(folder / str(n))
        lw.refresh(versions[-2], source, versions[-1], published=sources[0], measures=(), tell=len)
    seconds = cpu() - start
    sets = [codes_of(source) for source in sources]
    quarterly = Counter(pair for each in sets for codes in each.values() for pair in combinations(codes, 2))
    whole: dict[str, set[str]] = {}
    for each in sets:
        for patient, codes in each.items():
            whole.setdefault(patient, set()).update(codes)
    patients = Counter(pair for codes in whole.values() for pair in combinations(sorted(codes), 2))
    wanted = sorted(pair for pair, n in patients.items() if n >= LEAST * len(whole))
    events = pl.concat([source.require_events().cast({"code": pl.String}) for source in sources])
    everything = lw.read(
        events.select("patient", "code"), columns={"patient": "patient", "code": "code"}, accept_unknown=True
    )
    lw.protect(everything, method, folder / "one", measures=(), tell=len)
    tables = [pl.read_parquet(versions[-1] / f"share/data/{name}.parquet") for name in ("nodes", "chunks")]
    fewest = fewest_candidates(*tables, lw.open(versions[-1]).manifest["versions"], m)
    one = pl.read_parquet(folder / "one" / "share/data/chunks.parquet")
    return (
        f"{counted(tables[1]) / sum(len(codes) for each in sets for codes in each.values()):.1%}",
        f"{counted(one) / sum(map(len, whole.values())):.1%}",
        f"{error(versions[-1], wanted, quarterly):.3f}",
        f"{error(folder / 'one', wanted, patients):.3f}",
        fewest,
        f"{seconds:.0f}",
    )


def codes_of(source: Any) -> dict[str, list[str]]:
    rows = pairs_of(source).group_by("patient").agg(pl.col("code").sort())
    return dict(rows.iter_rows())


def counted(chunks: pl.DataFrame) -> int:
    """Occurrences in record and shared chunks."""
    return int(chunks.filter(pl.col("kind") != "item")["codes"].list.len().sum())


def error(release: Path, wanted: list[tuple[str, ...]], true: Counter[tuple[str, ...]]) -> float:
    found = estimates(lw.open(release), [list(pair) for pair in wanted], "occupancy", {})
    return sum(
        abs(each.expected - true[pair]) / true[pair] for pair, each in zip(wanted, found, strict=True)
    ) / len(wanted)


def fewest_candidates(
    nodes: pl.DataFrame, chunks: pl.DataFrame, versions: list[dict[str, Any]], m: int
) -> int:
    """In every version and every difference: sums over the batches that it has."""
    batches, low = [], 0
    for version in versions:
        own = nodes[low : low + version["rows"]["data/nodes.parquet"]]
        low += own.height
        batches.append(candidates(own, chunks.join(own.select("node"), on="node", how="semi"), m))
    least = []
    for i in range(len(batches)):
        total: Counter[tuple[str, ...]] = Counter()
        for batch in batches[i:]:
            total.update(batch)
            least.append(min(total.values()))
    return min(least)


if __name__ == "__main__":
    main()
