"""Specs and plans of runs, as callers give them, and the cohorts that they name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from leeward.errors import BadInput
from leeward.fields import declarations
from leeward.randomness import Randomness
from leeward.release.spec import SourceSpec, Spec, load

if TYPE_CHECKING:
    import polars as pl

    from leeward.advise.plan import Plan
    from leeward.cohort.cohort import Cohort
    from leeward.release import Anonymized, Release


@runtime_checkable
class Method(Protocol):
    """A method: frozen parameters and one verb."""

    name: str

    ON_ENGINE: str

    def uses_engine(self, patients: int) -> bool: ...

    def over(self, cohort: Cohort) -> tuple[Any, tuple[str, ...]]: ...

    def protect(
        self,
        cohort: Cohort,
        engine: Any = None,
        *,
        randomness: Randomness | None = None,
        population: Any = None,
    ) -> Anonymized: ...


def open_release(path: Release | str | Path) -> Release:
    """Open a release on disk.

    Parameters
    ----------
    path : Release, str or Path
        Release folder, or its `share/` folder.

    Returns
    -------
    Release
        Manifest, guarantee and tables.

    Raises
    ------
    BadInput
        The folder is not a release.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> lw.open("release/share").records
    300
    """
    from leeward.release import Release

    return path if isinstance(path, Release) else Release.open(path)


def read_custody_spec(release: Release) -> Spec | None:
    """The spec that a release was made from; None for a share alone."""
    file = None if release.custody is None else release.custody / "spec.yaml"
    return load(file) if file is not None and file.is_file() else None


def read_source(source: SourceSpec) -> Cohort:
    """The cohort that a spec's `source:` names. BadInput where it cannot be read."""
    from leeward.cohort.readers import read

    if source.path is None:
        raise BadInput(
            f"the source `{source.name}` was only in memory and cannot be read again; name a file."
        )
    options = {each.name: getattr(source, each.name) for each in dataclasses.fields(source)}
    del options["path"], options["name"]
    return read(source.path, **{**options, "columns": source.columns or None})


def read_missing(given: Cohort | None, source: SourceSpec | None) -> Cohort | None:
    return read_source(source) if given is None and source is not None else given


def parameters_of(method: Method) -> dict[str, Any]:
    """A method as the spec writes it: its name and its parameters; None only where it is not the default."""
    shown: dict[str, Any] = {"name": method.name}
    for each in declarations(type(method)):
        value = getattr(method, each.name)
        if value is None and each.default is not None:
            value = "none"
        if value is not None and value != ():
            shown[each.name] = str(value) if dataclasses.is_dataclass(value) else value
    return shown


def plan_of(plan: Plan | Mapping[str, Any] | str | Path) -> Plan:
    """The plan from its file or mapping; a file without codes of which models alone are wanted is a table."""
    from leeward.advise.plan import Plan, Regression, load
    from leeward.fields import build

    if isinstance(plan, str | Path):
        plan = load(plan)
    found: Plan = plan if isinstance(plan, Plan) else build(Plan, plan, "")
    source = found.source
    if source is None or source.path is None or source.format is not None or "code" in source.columns:
        return found
    if Path(source.path).is_file() and all(isinstance(line, Regression) for line in found.lines):
        return dataclasses.replace(found, source=dataclasses.replace(source, format="table"))
    return found


def no_events() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(schema={"patient": pl.Int64, "code": pl.String})
