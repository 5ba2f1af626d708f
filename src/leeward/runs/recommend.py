"""The story of an advice: read the plan and its data, apply the rules, try the specs, write those that ran.

A spec is tried on patients of the data: loaded as written, released aside, verified, measured, thrown away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from leeward.advise.grid import Point
from leeward.advise.plan import Plan
from leeward.advise.recommendation import Ready, Recommendation, of_facts
from leeward.advise.situation import facts_of
from leeward.advise.trials import Trial
from leeward.advise.utility.measure import Prepared, prepare, utility_of
from leeward.advise.utility.verdicts import Kept
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, LeewardError
from leeward.release import Release
from leeward.release.aside import written_aside
from leeward.release.folder import check_out
from leeward.release.manifest import to_json_text
from leeward.release.spec import SourceSpec, Spec, parse, to_yaml
from leeward.runs.explore import number_of_patients, release_aside, sampled
from leeward.runs.progress import Tell, watch
from leeward.runs.specs import plan_of, read_missing, read_source

SAMPLE = 100_000
"""Patients, at most, on whom a spec is tried before it is handed out."""

SEED = 20261125
"""Of the trials."""


def recommend(
    cohort: Cohort | None,
    plan: Plan | Mapping[str, Any] | str | Path,
    *,
    population: Cohort | None = None,
    sample: int = SAMPLE,
    tell: Tell | None = None,
) -> Recommendation:
    """Recommend a method, with k, m and epsilon, for some data and a recipient.

    Rules choose. Every recommended spec was run on the patients or a sample of them, verified and measured.

    Parameters
    ----------
    cohort : Cohort or None
        The data; None reads the plan's `source`.
    plan : Plan, mapping, str or Path
        What the recipient knows and will do, as `leeward recommend` reads it.
    population : Cohort, optional
        By default, the plan's `population`.
    sample : int, optional
        Largest number of patients to try a spec on.
    tell : callable, optional
        Called with the name of each stage.

    Returns
    -------
    Recommendation
        `best`, the methods that serve the plan, best first; `ready`, their specs; `questions`, for people to answer.

    Raises
    ------
    BadInput
        The plan or its source cannot be read.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> plan = {"recipient": {"knows": {"codes": 2}}, "plan": [{"counts": {"within": "10 %"}}]}
    >>> found = lw.recommend(cohort, plan)
    >>> found.best[0]
    'disassociation'
    """
    asked = plan_of(plan)
    with watch(tell) as say:
        if cohort is None:
            if asked.source is None:
                raise BadInput("the plan has no `source`; name the file or folder to read.")
            say("Reading the source")
            cohort = read_source(asked.source)
        population = read_missing(population, asked.population)
        say("Applying the rules")
        facts = facts_of(asked, cohort, population)
        codes = cohort.code_sets().codes if cohort.events is not None else ()
        trials: dict[str, Trial] = {}
        found = of_facts(asked, facts, codes, trials)
        if found.untried is not None:
            say("What the source says of the plan")
            ground = ground_of(asked, cohort, population, sample)
            patients, of = number_of_patients(ground.prepared.cohort), number_of_patients(cohort)
            while (ready := found.untried) is not None:
                say(f"Trying {ready.method} on {patients:,} patients")
                spec = spec_of_ready(found, ready)
                try:
                    kept = try_spec(spec, ground, asked.source, patients)
                    trials[ready.method] = Trial(patients=patients, of=of, kept=kept)
                except LeewardError as error:
                    trials[ready.method] = Trial(patients=patients, of=of, refused=str(error))
                found = of_facts(asked, facts, codes, trials)
        return found


class Ground(NamedTuple):
    """What the trials of an advice share. `unfit`: by place, the reason why a line does not fit the data."""

    prepared: Prepared
    unfit: Mapping[int, str]
    population: Cohort | None


def ground_of(plan: Plan, cohort: Cohort, population: Cohort | None, patients: int) -> Ground:
    """The patients to try specs on, at most so many, drawn once, and what they say of the plan."""
    some = sampled(cohort, patients)
    known: dict[int, Any] = {}
    unfit: dict[int, str] = {}
    for place, line in enumerate(plan.lines):
        try:
            if alone := prepare((line,), some).known:
                known[place] = alone[0]
        except BadInput as error:
            unfit[place] = str(error)
    return Ground(Prepared(some, plan.lines, known), unfit, population)


def try_spec(spec: Spec, ground: Ground, source: SourceSpec | None, patients: int) -> tuple[Kept, ...]:
    """How much of each line of the plan a release by a spec keeps; the spec is loaded as written. LeewardError where
    none is made."""
    cohort = ground.prepared.cohort
    if spec.source.path is not None and spec.source != source:
        cohort = sampled(read_source(spec.source), patients)
    with TemporaryDirectory(prefix="leeward-trial-") as folder:  # for this user alone
        target = Path(folder) / "release"
        written = parse(to_yaml(spec))
        release_aside(cohort, Point(dict(written.method), SEED), target, written, ground.population)
        found = utility_of(ground.prepared, Release.open(target))
    return tuple(
        dataclasses.replace(each, reason=ground.unfit.get(place, each.reason))
        for place, each in enumerate(found)
    )


def write_specs(found: Recommendation, out: str | Path) -> list[Path]:
    """Write `recommendation.json` and a spec (or commands) for each best method. BadInput where `out` exists."""
    folder = Path(out)
    check_out(folder)
    files = []
    with written_aside(folder) as aside:
        (aside / "recommendation.json").write_text(to_json_text(found.to_json()), encoding="utf-8")
        for place, ready in enumerate(found.ready, start=1):
            name = f"{place}-{ready.method}{'.sh' if ready.spec is None else '.yaml'}"
            commands = "".join(f"{command}\n" for command in ready.commands)
            text = commands if ready.spec is None else to_yaml(spec_of_ready(found, ready))
            (aside / name).write_text(text, encoding="utf-8")
            files.append(folder / name)
    return files


def spec_of_ready(found: Recommendation, ready: Ready) -> Spec:
    plan, spec = found.situation.plan, ready.spec or {}
    source = plan.source or SourceSpec(format="memory", name="cohort")
    method = spec["method"]
    return Spec(
        source=_needed(source, method, spec.get("drop", ())),
        method=method,
        population=plan.population if ready.method == "censoring" else None,
        plan=tuple(spec.get("plan", ())),
    )


def _needed(source: SourceSpec, method: Mapping[str, Any], drop: Sequence[str]) -> SourceSpec:
    """The source without the columns to drop, limited to the patients' columns that the method releases."""
    wanted = (*method.get("payload", ()), *method.get("demographics", ()))
    columns = dict(source.columns)
    if wanted and not columns.get("patients") and source.format in (None, "events"):
        columns = {**{name: name for name in ("patient", "code")}, **columns, "patients": wanted}
    return dataclasses.replace(source, columns=columns, drop=(*source.drop, *drop))
