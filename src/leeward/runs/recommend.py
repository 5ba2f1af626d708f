"""The story of an advice: read the plan and its data, apply the rules, write specs that run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.release.spec import SourceSpec, Spec, to_yaml
from leeward.runs.protect import Tell, read_source, watched

if TYPE_CHECKING:
    from leeward.advise.plan import Plan
    from leeward.advise.recommendation import Ready, Recommendation
    from leeward.cohort.cohort import Cohort


def recommend(
    cohort: Cohort | None,
    plan: Plan | Mapping[str, Any] | str | Path,
    *,
    population: Cohort | None = None,
    tell: Tell | None = None,
) -> Recommendation:
    """Which method, which k, m and epsilon, for these data and this recipient, by rules: nothing is measured.

    Parameters
    ----------
    cohort : Cohort or None
        None: the plan's `source` is read.
    plan : Plan, mapping or path
        As `leeward recommend` reads it.
    population : Cohort, optional
        Default: the plan's `population`.

    Raises
    ------
    BadInput
        A plan or a source that cannot be read.
    """
    from leeward.advise.recommendation import recommend as advise

    asked = plan_of(plan)
    with watched(tell) as say:
        if cohort is None:
            if asked.source is None:
                raise BadInput("the plan has no `source`; name the file or folder to read.")
            say("Reading the source")
            cohort = read_source(asked.source)
        if population is None and asked.population is not None:
            say("Reading the population")
            population = read_source(asked.population)
        say("Applying the rules")
        return advise(asked, cohort, population)


def plan_of(plan: Plan | Mapping[str, Any] | str | Path) -> Plan:
    """The plan from its file or mapping."""
    from leeward.advise.plan import Plan, load
    from leeward.fields import build

    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, Mapping):
        found: Plan = build(Plan, plan, "")
        return found
    return load(plan)


def write_specs(found: Recommendation, out: str | Path) -> list[Path]:
    """Write `recommendation.json` and a spec (or a file of commands) for each of the best methods into `out`.

    Raises
    ------
    BadInput
        `out` exists already.
    """
    from leeward.release.aside import owner_only
    from leeward.release.folder import check_out
    from leeward.release.manifest import to_json_text

    folder = Path(out)
    check_out(folder)
    files = []
    with owner_only():
        folder.mkdir(parents=True, mode=0o700)
        (folder / "recommendation.json").write_text(to_json_text(found.to_json()), encoding="utf-8")
        for place, ready in enumerate(found.ready, start=1):
            name, text = f"{place}-{ready.method}", spec_text(found, ready)
            file = folder / (f"{name}.sh" if ready.spec is None else f"{name}.yaml")
            file.write_text(text, encoding="utf-8")
            files.append(file)
    return files


def spec_text(found: Recommendation, ready: Ready) -> str:
    """A spec with the plan's source, as YAML; commands as lines."""
    if ready.spec is None:
        return "".join(f"{command}\n" for command in ready.commands)
    plan = found.situation.plan
    source = plan.source or SourceSpec(format="memory", name="cohort")
    columns = ready.spec["method"].get("payload")
    return to_yaml(
        Spec(
            source=_with_patients(source, columns),
            method=ready.spec["method"],
            population=plan.population if ready.method == "censoring" else None,
            plan=tuple(ready.spec.get("plan", ())),
        )
    )


def _with_patients(source: SourceSpec, columns: list[str] | None) -> SourceSpec:
    """The source with the payload's columns named among the patients' (a column map names all of its columns)."""
    import dataclasses

    if not columns or source.columns.get("patients"):
        return source
    named = {name: name for name in ("patient", "code")} | dict(source.columns)
    return dataclasses.replace(source, columns={**named, "patients": tuple(columns)})
