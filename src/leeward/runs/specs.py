"""Specs of runs: the cohort that one names, and the one of a run that was started without."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from leeward.errors import BadInput
from leeward.fields import declarations
from leeward.randomness import Randomness
from leeward.release.spec import SourceSpec, Spec, load

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Anonymized, Release


@runtime_checkable
class Method(Protocol):
    """A method: frozen parameters and one verb."""

    name: str

    def protect(
        self,
        cohort: Cohort,
        engine: Any = None,
        *,
        randomness: Randomness | None = None,
        population: Any = None,
    ) -> Anonymized:
        """Anonymize the cohort."""
        ...


def read_custody_spec(release: Release) -> Spec | None:
    """The spec that a release was made from; None for a share alone."""
    file = None if release.custody is None else release.custody / "spec.yaml"
    return load(file) if file is not None and file.is_file() else None


def read_source(source: SourceSpec) -> Cohort:
    """The cohort that a spec's `source:` names.

    Raises
    ------
    BadInput
        It cannot be read.
    """
    from leeward.cohort.readers import read

    if source.path is None:
        raise BadInput(
            f"the source `{source.name}` was given in memory and cannot be read again; name a file."
        )
    return read(
        source.path,
        format=source.format,
        columns=source.columns or None,
        vocabulary=source.vocabulary,
        missing=source.missing,
        lines=source.lines,
        date_format=source.date_format,
        drop=source.drop,
        domains=source.domains,
        query=source.query,
        table=source.table,
        concepts=source.concepts,
        accept_unknown=source.accept_unknown,
        code_separator=source.code_separator,
    )


def spec_of(
    cohort: Cohort,
    method: Method,
    engine: Any,
    seed: int | None,
    formats: Sequence[str],
    measure: Sequence[Any],
    population: SourceSpec | None,
    source: SourceSpec | None,
) -> Spec:
    """The spec of a run that was started without one."""
    return Spec(
        source=source or SourceSpec(format="memory", name=cohort.name),
        method=parameters_of(method),
        population=population,
        measure=tuple(measure),
        engine=engine,
        formats=tuple(dict.fromkeys(("parquet", *formats))),  # type: ignore[arg-type]  # checked when made
        seed=seed,
    )


def in_memory(population: Cohort | None) -> SourceSpec | None:
    """The source of a population that was given as an object."""
    return None if population is None else SourceSpec(format="memory", name=population.name)


def parameters_of(method: Method) -> dict[str, Any]:
    """A method as the spec writes it: its name and all its parameters that have a value, or none where that is not the
    default."""
    shown: dict[str, Any] = {"name": method.name}
    for each in declarations(type(method)):
        value = getattr(method, each.name)
        if value is None and each.default is not None:
            value = "none"
        if value is not None and value != ():
            shown[each.name] = str(value) if dataclasses.is_dataclass(value) else value
    return shown
