"""The story of an advice: read the plan and its data, apply the rules, try the specs, write those that ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.release.spec import SourceSpec, Spec, to_yaml
from leeward.runs.plans import plan_of
from leeward.runs.protect import Tell, read_source, watch

if TYPE_CHECKING:
    from leeward.advise.plan import Plan
    from leeward.advise.recommendation import Ready, Recommendation
    from leeward.advise.trials import Trial
    from leeward.cohort.cohort import Cohort

SAMPLE = 100_000
"""Patients, at most, on whom a spec is tried before it is handed out."""


def recommend(
    cohort: Cohort | None,
    plan: Plan | Mapping[str, Any] | str | Path,
    *,
    population: Cohort | None = None,
    sample: int = SAMPLE,
    tell: Tell | None = None,
) -> Recommendation:
    """Which method, which k, m and epsilon, for these data and this recipient.

    Rules choose; every spec that is handed out was loaded, run on the patients or a sample, verified and measured.

    Parameters
    ----------
    cohort : Cohort or None
        None: the plan's `source` is read.
    plan : Plan, mapping or path
        As `leeward recommend` reads it.
    population : Cohort, optional
        Default: the plan's `population`.
    sample : int
        Most patients that a spec is tried on.

    Raises
    ------
    BadInput
        A plan or a source that cannot be read.
    """
    from leeward.advise.recommendation import of_facts
    from leeward.advise.situation import facts_for
    from leeward.runs.trials import ground_of

    asked = plan_of(plan)
    with watch(tell) as say:
        if cohort is None:
            if asked.source is None:
                raise BadInput("the plan has no `source`; name the file or folder to read.")
            say("Reading the source")
            cohort = read_source(asked.source)
        if population is None and asked.population is not None:
            say("Reading the population")
            population = read_source(asked.population)
        say("Applying the rules")
        facts = facts_for(asked, cohort, population)
        codes = cohort.code_sets().codes if cohort.events is not None else ()
        trials: dict[str, Trial] = {}
        found = of_facts(asked, facts, codes, trials)
        if found.untried is not None:
            say("What the source says of the plan")
            ground = ground_of(asked, cohort, population, sample)
            while (ready := found.untried) is not None:
                say(f"Trying {ready.method} on {ground.patients:,} patients")
                trials[ready.method] = ground.tried(spec_of_ready(found, ready))
                found = of_facts(asked, facts, codes, trials)
        return found


def write_specs(found: Recommendation, out: str | Path) -> list[Path]:
    """Write `recommendation.json` and a spec (or a file of commands) for each of the best methods into `out`.

    Raises
    ------
    BadInput
        `out` exists already.
    """
    from leeward.release.aside import written_aside
    from leeward.release.folder import check_out
    from leeward.release.manifest import to_json_text

    folder = Path(out)
    check_out(folder)
    files = []
    with written_aside(folder) as aside:
        (aside / "recommendation.json").write_text(to_json_text(found.to_json()), encoding="utf-8")
        for place, ready in enumerate(found.ready, start=1):
            name = f"{place}-{ready.method}{'.sh' if ready.spec is None else '.yaml'}"
            (aside / name).write_text(spec_text(found, ready), encoding="utf-8")
            files.append(folder / name)
    return files


def spec_text(found: Recommendation, ready: Ready) -> str:
    """A spec with the plan's source, as YAML; commands as lines."""
    if ready.spec is None:
        return "".join(f"{command}\n" for command in ready.commands)
    return to_yaml(spec_of_ready(found, ready))


def spec_of_ready(found: Recommendation, ready: Ready) -> Spec:
    """An advised spec with the plan's source."""
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
    """The source without the columns to drop, and with those of the patients that the method releases (a column map
    names all of its columns)."""
    wanted = (*method.get("payload", ()), *method.get("demographics", ()))
    columns = dict(source.columns)
    if wanted and not columns.get("patients") and source.format in (None, "events"):
        columns = {**{name: name for name in ("patient", "code")}, **columns, "patients": wanted}
    return dataclasses.replace(source, columns=columns, drop=(*source.drop, *drop))
