"""What a verifier says: single checks, the whole verification, and what it may compare a release with.

Messages hold counts and node numbers only, never a code or a record: a verification may be read by anyone
who may read the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from leeward.verify.flat import Numbered


@dataclass(frozen=True)
class Check:
    """One property of a release.

    Attributes
    ----------
    name : str
        Short and stable, for example `km_anonymous_chunks`.
    passed : bool
    detail : str
        One sentence with figures; for a failure, how many violations and the number of the first node
        concerned.
    figures : mapping
        JSON-able numbers behind the sentence.
    """

    name: str
    passed: bool
    detail: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As written to `verification.json`."""
        return {
            "name": self.name,
            "passed": self.passed,
            "detail": self.detail,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True)
class Source:
    """What the custodian holds, for the checks that files alone cannot answer.

    events
        `patient`, `code` (any string-like type).
    patients, population_events, population_patients
        Where a method's guarantee speaks of them.
    names
        The source's own names of codes: the name, and how many patients have the code under it (None: the name is of
        a public table).
    vocabulary
        What the source's codes are of, as `leeward.vocabulary.load` knows it.
    answers
        For a catalogue of itemsets: question and answer, as texts, of every answer that the ledger keeps of its data.
    stored
        Parquet files with `patient` and `code` in the place of `events`, where these are larger than memory; only what
        is checked in parts (`disassociation.in_parts`) can be checked with them.
    """

    events: pl.DataFrame
    patients: pl.DataFrame | None = None
    population_events: pl.DataFrame | None = None
    names: Mapping[str, tuple[str, int | None]] | None = None
    vocabulary: str | None = None
    population_patients: pl.DataFrame | None = None
    answers: Sequence[tuple[str, str]] | None = None
    stored: Sequence[Path] = ()

    def blocks(self, rows: int) -> Iterator[pl.DataFrame]:
        """`patient` and `code`, some rows at a time."""
        for file in self.stored:
            yield pl.read_parquet(file, columns=["patient", "code"])
        yield from self.events.select("patient", "code").iter_slices(rows)

    @cached_property
    def numbered(self) -> Numbered:
        """The events in numbers."""
        return Numbered(self.events)

    @cached_property
    def population(self) -> Numbered:
        """The population's events in numbers."""
        assert self.population_events is not None
        return Numbered(self.population_events)


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
        """True when no check failed."""
        return all(check.passed for check in self.checks)

    @property
    def saw_custody(self) -> bool:
        """Whether the custodian's files were compared with the digests that the run wrote."""
        return any(check.name == "custody_files" for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """As written to `verification.json`."""
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


def of_count(
    name: str, violations: int, good: str, bad: str, figures: Mapping[str, Any] | None = None
) -> Check:
    """A check that passes when nothing violates it: `good` is the sentence then, `bad` follows the count
    else."""
    all_figures = {"violations": int(violations), **(figures or {})}
    return Check(name, violations == 0, good if violations == 0 else f"{violations:,} {bad}", all_figures)
