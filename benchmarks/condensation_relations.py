"""What keeping the relations that hold in every row does to condensed public registries.

    python benchmarks/condensation_relations.py --data DIR [--sets support2,gbsg] [--k 5,20] [--seeds 5] [--planted]
        [--independent]

For each registry, with `--relations none` and by default: relations found, released rows that break one, rows in which
equal columns differ; Cox coefficients outside the original's 95 % interval, the largest and the mean change of one in
standard errors; exact times guessed from the nearest row (tests/attacks/condensation.py); CPU seconds of the release.
`--planted` adds equal columns, levels under other names and a part of a whole, none of which the model names.
`--independent`: relations found in made-up independent columns instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tests.attacks.condensation import exact_time

from common import commit, machine, table
from condensation_attacks import FURTHER_TIMES
from leeward.analysis.plan import design_of, models_of
from leeward.analysis.regression import fit
from leeward.cohort.readers import read
from leeward.methods.condensation import Condensation
from leeward.methods.condensation.measures.models import compare
from leeward.methods.condensation.proposals import propose
from leeward.randomness import Randomness
from leeward.synthetic.registry import registry as made_up
from registries import FURTHER_OUTCOMES, NAMES, Registry, load

MODES: dict[str, dict[str, tuple[str, ...]]] = {"none": {"relations": ("none",)}, "default": {}}
FIGURES = (
    "rows broken, %", "equal columns differ, %", "Cox: outside, %", "largest change, SE", "mean change, SE",
    "nearest row, %", "CPU s",
)  # fmt: skip
METABRIC = (
    "AGE_AT_DIAGNOSIS", "BREAST_SURGERY", "CHEMOTHERAPY", "ER_IHC", "HORMONE_THERAPY", "INFERRED_MENOPAUSAL_STATE",
    "LYMPH_NODES_EXAMINED_POSITIVE", "NPI", "CELLULARITY", "time", "event",
)  # fmt: skip


def registry_of(data: Path, name: str) -> Registry:
    if name == "synth":
        return Registry(name, made_up(6_000, "lung", 13, 1), "SurvInterval", "VitalStat", 0)
    if name != "metabric":
        return load(data, name)
    files = (data / f"metabric-clinical/metabric_{each}.tsv" for each in ("clinical", "survival"))
    one, two = (
        pl.read_csv(each, separator="\t", null_values=["NA", ""], infer_schema_length=None) for each in files
    )
    return Registry(name, one.join(two, on="patientId").select(METABRIC).drop_nulls(), "time", "event", 1)


def with_planted(registry: Registry) -> Registry:
    frame, random = registry.frame, np.random.default_rng(7)
    own = [name for name in registry.covariates if name not in FURTHER_OUTCOMES]
    numbers = sorted(
        (name for name in own if frame[name].dtype.is_numeric()), key=lambda n: frame[n].n_unique()
    )
    few = [name for name in own if 1 < frame[name].n_unique() <= 8]
    planted = {f"planted {n}": pl.col(name) for n, name in enumerate({*numbers[:1], *numbers[-1:], *few[:1]})}
    if few:
        planted["planted names"] = "x" + pl.col(few[0]).cast(pl.String)
    if numbers and frame[numbers[-1]].min() >= 0:  # type: ignore[operator]  # a number
        share = pl.Series(random.choice([0, 0.5, 1, 1], frame.height))
        planted["planted part"] = pl.min_horizontal((pl.col(numbers[-1]) * share).floor(), numbers[-1])
    return replace(registry, frame=frame.with_columns(**planted))


def figures_of(registry: Registry, k: int, seeds: int) -> tuple[int, dict[str, np.ndarray]]:
    """Relations found, and by mode the `FIGURES` of each seed."""
    source = read(registry.frame, format="table")
    columns, times = source.table().columns, [registry.time, *FURTHER_TIMES.get(registry.name, ())]
    left_out = [name for name in registry.frame.columns if name.startswith("planted")]
    (model,) = models_of(registry.plan((*FURTHER_OUTCOMES, *left_out)))
    before = fit("cox", design_of(model, registry.frame, columns))
    error = (before.high - before.low) / (2 * 1.959964)
    own = {registry.event, *times}
    found = [each for each in propose(source.table(), k) if own.isdisjoint(each.columns())]
    measured = {}
    for mode, more in MODES.items():
        figures = []
        for seed in range(seeds):
            method = Condensation(k=k, time=tuple(times), strata=(registry.event,), **more)
            start = time.process_time()
            made = method.protect(source, randomness=Randomness.of(seed))
            seconds = time.process_time() - start
            frame = pl.from_arrow(next(iter(made.tables[0].batches())))
            assert isinstance(frame, pl.DataFrame)
            broken = {each["relation"]: each["broken"] for each in made.custody["relations"]["proposed"]}
            lost = [100 * broken.get(each.text, 0) / frame.height for each in found]
            apart = [share for each, share in zip(found, lost, strict=True) if each.kind == "equal"]
            after = fit("cox", design_of(model, frame, columns))
            metrics, gap = compare(before, after), np.abs(after.coefficients - before.coefficients) / error
            right = exact_time(frame, registry.frame, times, [registry.event], False).nearest
            figures.append(
                [
                    max(lost, default=0.0),
                    max(apart, default=0.0),
                    100 * metrics["outside"] if metrics else np.nan,
                    np.nanmax(gap),
                    np.nanmean(gap),
                    100 * right,
                    seconds,
                ]
            )
        measured[mode] = np.array(figures)
    return len(found), measured


def rows_of(registry: Registry, k: int, seeds: int) -> list[list[str]]:
    """A row a mode: means over seeds and their spread."""
    found, measured = figures_of(registry, k, seeds)
    rows = []
    for mode, figures in measured.items():
        shown = zip(figures.mean(axis=0), figures.std(axis=0), strict=True)
        rows.append([registry.name, str(k), mode, str(found), *(f"{m:.2f} ± {s:.2f}" for m, s in shown)])
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def independent(seeds: int) -> None:
    """Relations found in tables of independent columns (and of a part that is its whole in nine rows of ten)."""
    for rows in (60, 150, 400, 2_000, 20_000):
        found = 0
        for seed in range(seeds):
            random = np.random.default_rng([seed, rows])
            whole = random.integers(5, 60, rows)
            shares = [random.dirichlet(np.ones(levels)) for levels in (2, 4, 8, 30)]
            frame = pl.DataFrame(
                {f"normal {n}": random.normal(50, 10 * n + 1, rows).round(n) for n in range(3)}
                | {f"count {mean}": random.poisson(mean, rows) for mean in (0.05, 0.5, 3)}
                | {f"flag {share}": (random.random(rows) < share).astype(int) for share in (0.02, 0.1, 0.5)}
                | {
                    f"levels {len(p)}": random.choice(list(map(str, range(len(p)))), rows, p=p)
                    for p in shares
                }
                | {"skewed": random.exponential(500, rows).round(), "code": random.integers(1, 6, rows)}
                | {"whole": whole, "part": np.where(random.random(rows) < 0.9, whole, whole // 2)}
            )
            found += len(
                [each for each in propose(read(frame, format="table").table()) if "part <=" not in each.text]
            )
        print(
            f"{rows:,} rows: {found} relations found in {seeds} tables of {frame.width} columns", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--k", default="5,20")
    parser.add_argument("--sets", default=",".join((*NAMES, "metabric", "synth")))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--independent", action="store_true")
    given = parser.parse_args()
    if given.independent:
        independent(given.seeds)
        return
    figures_of(registry_of(given.data, "synth"), 5, 1)  # kernels are compiled
    rows = []
    for name in given.sets.split(","):
        registry = registry_of(given.data, name)
        registry = with_planted(registry) if given.planted else registry
        for k in map(int, given.k.split(",")):
            rows += rows_of(registry, k, given.seeds)
    print(f"\n{machine()}; commit {commit()}; {given.seeds} seeds\n")
    print(table(["registry", "k", "relations", "found", *FIGURES], rows))


if __name__ == "__main__":
    main()
