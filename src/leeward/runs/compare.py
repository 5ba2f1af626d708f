"""The story of a comparison: finished releases of one source, measured against one plan, on the page of `explore`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leeward.advise.plan import Plan
from leeward.advise.thresholds import limits
from leeward.advise.utility.measure import Prepared, prepare, utility_of
from leeward.analysis.figures import plain
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.release.aside import written_aside
from leeward.release.folder import check_out
from leeward.release.spec import Spec
from leeward.runs.explore import Exploration, lines_of, risk_of, settings_of, table_of, write_page
from leeward.runs.progress import Tell, watch
from leeward.runs.protect import verify
from leeward.runs.specs import open_release, plan_of, read_custody_spec, read_missing, read_source
from leeward.runs.writing import refusal

NO_DIGESTS = "custody lacks the digests of its files, so its figures were not checked"


def compare(
    outs: Sequence[str | Path],
    out: str | Path,
    *,
    plan: Plan | str | Path | None = None,
    cohort: Cohort | None = None,
    population: Cohort | None = None,
    tell: Tell | None = None,
) -> Exploration:
    """Compare the risk and utility of finished releases of one source.

    Parameters
    ----------
    outs : sequence of str or Path
        Release folders, with their custody.
    out : str or Path
        Folder to write for the custodian: `compare.html` and `compare.parquet`; it must not exist.
    plan : Plan, str or Path, optional
        The analyses to measure; by default, counts of codes.
    cohort, population : Cohort, optional
        Source and population; by default, as the first release's `custody/spec.yaml` says.
    tell : callable, optional
        Called with the name of each stage.

    Returns
    -------
    Exploration
        `points`, a table with one row for each release, and `page`.

    Raises
    ------
    BadInput
        No releases, one without custody, releases of different sources, or `out` exists.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> stricter = lw.protect(cohort, lw.Disassociation(k=10, m=2), "stricter")
    >>> lw.compare(["release", "stricter"], "compared", cohort=cohort).points["k"].to_list()
    [5, 10]
    """
    folder = Path(out)
    check_out(folder)
    if not outs:
        raise BadInput("compare needs at least one release folder.")
    specs = [spec_of(each) for each in outs]
    asked = None if plan is None else plan_of(plan)
    with watch(tell) as say:
        if cohort is None:
            say("Reading the source")
            if len({spec.source.path for spec in specs}) > 1:
                raise BadInput(
                    "the releases were made from different sources; compare releases of one source."
                )
            cohort = read_source(specs[0].source)
            known = next((spec.population for spec in specs if spec.population is not None), None)
            population = read_missing(population, known)
        lines, settings = lines_of(asked, specs[0], cohort), settings_of(asked, cohort)
        say("What the source says of the plan")
        prepared = prepare(lines, cohort)
        rows = []
        for each, spec in zip(outs, specs, strict=True):
            say(f"Verifying and measuring {Path(each).name}")
            rows.append(row_of(each, spec, prepared, population, limits(settings["threshold"])))
        table = table_of(rows, len(lines))
        found = Exploration(folder, table, tuple(line.title for line in lines), "compare")
        with written_aside(folder) as aside:
            written = replace(found, folder=aside)
            table.write_parquet(written.table)
            write_page(written, settings)
    return found


def row_of(
    path: str | Path, spec: Spec, prepared: Prepared, population: Cohort | None, thresholds: Sequence[float]
) -> dict[str, Any]:
    """A release as a row of `compare.parquet`: verified today against its source, its risk, what it keeps."""
    release = open_release(path)
    row: dict[str, Any] = {
        "method": release.method,
        "spec": json.dumps({**spec.method, "name": release.method, "folder": Path(path).name}, default=str),
        "k": release.guarantee.get("k"),
        "m": release.guarantee.get("m"),
        "seed": None,
    }
    outcome = verify(path, prepared.cohort, population)
    if not outcome.passed:
        return {**row, "status": "refuted", "message": refusal(outcome)}
    return {
        **row,
        "status": "verified",
        "message": "" if outcome.saw_custody else NO_DIGESTS,
        **risk_of(release, prepared.cohort, population, thresholds),
        "lines": plain(utility_of(prepared, release)),
    }


def spec_of(path: str | Path) -> Spec:
    """The spec that a release was made from, of its custody. BadInput without one."""
    release = open_release(path)
    release.require_format()
    spec = read_custody_spec(release)
    if spec is None:
        raise BadInput(
            f"{path}: no custody/spec.yaml; a comparison needs the custodian's folder, not the share alone."
        )
    return spec
