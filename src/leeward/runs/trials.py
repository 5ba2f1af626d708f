"""Advised specs tried on patients of the data: loaded as written, released aside, verified, measured, thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from leeward.advise.grid import Point
from leeward.advise.trials import Trial
from leeward.advise.utility.measure import Prepared, prepare, utility_of
from leeward.errors import BadInput, LeewardError
from leeward.release.spec import Spec, parse, to_yaml
from leeward.runs.explore import number_of_patients, release_aside, sampled
from leeward.runs.protect import read_source

if TYPE_CHECKING:
    from leeward.advise.plan import Plan
    from leeward.advise.utility.verdicts import Kept
    from leeward.cohort.cohort import Cohort

SEED = 20261125


@dataclass(frozen=True)
class Ground:
    """What the trials of an advice share.

    prepared : the patients, and what they say of the plan's lines. unfit : the lines that do not fit the data, by
    place, each with the reason. patients, of : how many, of how many.
    """

    plan: Plan
    prepared: Prepared
    unfit: Mapping[int, str]
    population: Cohort | None
    patients: int
    of: int

    def tried(self, spec: Spec) -> Trial:
        """A spec as it is written, loaded and run."""
        try:
            kept = self._kept(spec)
        except LeewardError as error:
            return Trial(patients=self.patients, of=self.of, refused=str(error))
        return Trial(patients=self.patients, of=self.of, kept=kept)

    def _kept(self, spec: Spec) -> tuple[Kept, ...]:
        from leeward.release import Release

        cohort = self.prepared.cohort
        if spec.source.path is not None and spec.source != self.plan.source:
            cohort = sampled(read_source(spec.source), self.patients)
        with TemporaryDirectory(prefix="leeward-trial-") as folder:  # for this user alone
            target = Path(folder) / "release"
            written = parse(to_yaml(spec))
            release_aside(cohort, Point(dict(written.method), SEED), target, written, self.population)
            found = utility_of(self.prepared, Release.open(target))
        return tuple(
            replace(each, reason=self.unfit.get(place, each.reason)) for place, each in enumerate(found)
        )


def ground_of(plan: Plan, cohort: Cohort, population: Cohort | None, patients: int) -> Ground:
    """The patients to try specs on, at most so many, drawn once, and what they say of the plan."""
    some = sampled(cohort, patients)
    known: dict[int, Any] = {}
    unfit: dict[int, str] = {}
    for place, line in enumerate(plan.lines):
        try:
            alone = prepare((line,), some).known
            if alone:
                known[place] = alone[0]
        except BadInput as error:
            unfit[place] = str(error)
    return Ground(
        plan,
        Prepared(some, plan.lines, known),
        unfit,
        population,
        number_of_patients(some),
        number_of_patients(cohort),
    )
