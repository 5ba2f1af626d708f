"""Results of single checks, the whole verification, and the sources that a release may be compared with.

Messages hold counts and node numbers only, never a code or a record: a verification may be read by anyone
who may read the release.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from leeward.verify.flat import Mentioned, Numbered


@dataclass(frozen=True)
class Check:
    """One property of a release. `name` is stable, such as `km_anonymous_chunks`. `detail` is one sentence with
    figures; for a failure, the number of violations and the first node concerned. `figures` are the JSON-able numbers
    behind it."""

    name: str
    passed: bool
    detail: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"figures": dict(self.figures)}


@dataclass(frozen=True)
class Source:
    """What the custodian holds, for the checks that files alone cannot answer.

    events : `patient`, `code` (any string-like type).
    patients, population_events, population_patients : where a method's guarantee speaks of them.
    names : the source's own names of codes: the name, and how many patients have the code under it (None: the name is
        of a public table).
    vocabulary : what the source's codes are of, as `leeward.vocabulary.load` knows it.
    answers : for a catalogue of itemsets: question and answer, as texts, of every answer that the ledger keeps.
    stored : Parquet files in the place of `events`, where these are larger than memory, each with all events of some
        patients, who ascend from file to file, in the order of the source (`row`); what looks at `parts`, `blocks` or
        `numbered` can be checked with them. population_stored : likewise, of the population.
    """

    events: pl.DataFrame
    patients: pl.DataFrame | None = None
    population_events: pl.DataFrame | None = None
    names: Mapping[str, tuple[str, int | None]] | None = None
    vocabulary: str | None = None
    population_patients: pl.DataFrame | None = None
    answers: Sequence[tuple[str, str]] | None = None
    stored: Sequence[Path] = ()
    population_stored: Sequence[Path] = ()

    def blocks(self, rows: int) -> Iterator[pl.DataFrame]:
        for file in self.stored:
            yield pl.read_parquet(file, columns=["patient", "code"])
        yield from self.events.select("patient", "code").iter_slices(rows)

    def parts(self) -> Iterator[Source]:
        """The source, one part of its patients after the other, as a source of its own."""
        if not self.stored:
            yield self
        for file in self.stored:
            yield replace(self, events=pl.read_parquet(file), stored=())

    @cached_property
    def numbered(self) -> Numbered:
        if not self.stored:
            return Numbered(self.events)
        wanted = {"patient", "code", "visit"} & set(pl.read_parquet_schema(self.stored[0]))
        rows = pl.scan_parquet(list(self.stored)).select(*sorted(wanted), "row")
        return Numbered(rows.sort("row", maintain_order=True).drop("row").collect())

    @cached_property
    def population(self) -> Mentioned:
        if self.population_stored:
            return Mentioned.of(Numbered(pl.read_parquet(file)) for file in self.population_stored)
        assert self.population_events is not None
        return Mentioned.of([Numbered(self.population_events)])


@dataclass(frozen=True)
class Verification:
    """The outcome: every check, warnings that do not refute the guarantee, and what could not be checked, in words."""

    method: str
    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    with_source: bool = False
    unchecked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def saw_custody(self) -> bool:
        """Whether the custodian's files were compared with the digests that the run wrote."""
        return any(check.name == "custody_files" for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "method": self.method,
            "with_source": self.with_source,
            "checks": [check.to_json() for check in self.checks],
            "warnings": list(self.warnings),
            "unchecked": list(self.unchecked),
        }

    def __repr__(self) -> str:
        outcome = "passed" if self.passed else f"FAILED ({', '.join(c.name for c in self.failures)})"
        return f"Verification({self.method}: {len(self.checks)} checks, {outcome})"


def failing(checks: Iterable[Check]) -> set[str]:
    return {check.name for check in checks if not check.passed}


def of_count(
    name: str, violations: int, good: str, bad: str, figures: Mapping[str, Any] | None = None
) -> Check:
    """A check that passes when nothing violates it, in the words of `good`; otherwise `bad` follows the count."""
    all_figures = {"violations": int(violations), **(figures or {})}
    return Check(name, violations == 0, good if violations == 0 else f"{violations:,} {bad}", all_figures)


def check_numbers(records: pl.Series, stated: int, name: str = "records_numbered") -> Check:
    """Records are numbered 0 … n-1, as many as the manifest states."""
    whole = len(records) == stated and records.sort().equals(pl.Series(range(stated), dtype=pl.Int64))
    good = "Records are numbered from 0, each once."
    return Check(name, whole, good if whole else "Record numbers have gaps, repeats or a wrong count.")


def unlike_counts(stated: pl.DataFrame, found: pl.DataFrame, missing: int = 0) -> int:
    """How many things (first column) have counts (second column) that differ between two tables. One that a table lacks
    has 0 there, or `missing` in `stated`."""
    tables = [each.rename(dict(zip(each.columns, ("of", "n"), strict=True))) for each in (stated, found)]
    both = tables[0].join(tables[1], on="of", how="full", coalesce=True)
    return int((both["n"].fill_null(missing) != both["n_right"].fill_null(0)).sum())


def payload_of(parameters: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in parameters.get("payload") or ()]


def same_payload(released: pl.DataFrame, held: pl.DataFrame, names: Sequence[str], of: str) -> Check:
    """The rows of payload are those of two tables alike, in whatever order."""
    texts = [frame.select(pl.col(names).cast(pl.String)) for frame in (released, held)]
    counted = [each.group_by(names).len() for each in texts]
    both = counted[0].join(counted[1], on=names, how="full", nulls_equal=True)
    more = both["len"].fill_null(0).cast(pl.Int64) - both["len_right"].fill_null(0).cast(pl.Int64)
    good, bad = (
        f"The payload's rows are those of the {of}.",
        f"rows of payload differ from those of the {of}.",
    )
    return of_count("payload", int(more.abs().sum()), good, bad)


def other_payload(released: pl.DataFrame, own: pl.DataFrame, key: str, names: Sequence[str]) -> pl.DataFrame:
    """The rows of `released` whose payload is another than in the row of `own` with the same key."""
    texts = [pl.col(name).cast(pl.String) for name in names]
    both = released.with_columns(texts).join(own.select(key, *texts), on=key, how="left", suffix=" of own")
    return both.filter(pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name} of own")) for name in names))


def merge_checks(checks: Sequence[Check], parts: int, what: str) -> Check:
    """One check of all parts: passed where each has it and passes, and no order tells something over all of them.
    Counts are added up, of `smallest` the smallest is kept; deviations z of n parts are one of sum(z) / sqrt(n)."""
    figures = {what: len(checks)} | merge_figures([check.figures for check in checks])
    deviations, limit = figures.get("deviations", {}), figures.get("limit", 0)
    telling = [each for each, z in deviations.items() if abs(z) > limit]
    broken = [check.detail for check in checks if not check.passed]
    if broken:
        detail = f"{len(broken):,} of {parts:,} {what} fail. First: {broken[0]}"
    elif telling:
        detail = f"Over {parts:,} {what} an order reveals something: {', '.join(telling)}."
    elif len(checks) < parts:
        detail = f"{parts - len(checks):,} of {parts:,} {what} could not be checked so far."
    else:
        return Check(checks[0].name, True, f"In each of {parts:,} {what}: {checks[-1].detail}", figures)
    return Check(checks[0].name, False, detail, figures)


def merge_parts(made: Sequence[Sequence[Check]]) -> list[Check]:
    """The checks of all parts as one each."""
    if len(made) == 1:
        return list(made[0])
    found: dict[str, list[Check]] = {}
    for check in itertools.chain.from_iterable(made):
        found.setdefault(check.name, []).append(check)
    return [merge_checks(checks, len(made), "parts") for checks in found.values()]


def merge_figures(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for part in parts for key in part)
    return {
        key: _merge_figure(key, [part[key] for part in parts if part.get(key) is not None]) for key in keys
    }


def _merge_figure(key: str, given: list[Any]) -> Any:
    if not given:
        return None
    if key == "deviations":
        names = dict.fromkeys(itertools.chain.from_iterable(given))
        of_name = {name: [float(each[name]) for each in given if name in each] for name in names}
        return {name: round(sum(z) / len(z) ** 0.5, 2) for name, z in of_name.items()}
    if key == "limit":
        return given[0]
    return min(given) if key.startswith("smallest") else sum(given)
