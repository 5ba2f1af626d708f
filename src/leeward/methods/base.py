"""What every method's parameter class is: declared fields, a manifest's view of them, and `protect`."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from leeward.contracts import contract_of
from leeward.fields import Declaration, Declared, Parameter, stated

if TYPE_CHECKING:
    from leeward.analysis.policies import Policy
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

    PolicyLike = Policy | str | Mapping[str, Any] | None
else:  # what a spec can give, so that declaring a policy imports no arithmetic
    PolicyLike = str | Mapping[str, Any] | None

POLICIES_SHOWN = r"none|hierarchy:\d+|similarity:\d+|frequency:[0-9.e-]+|file:[^/\\]+"
"""Utility policies as manifests show them: a file without its folder."""


@dataclass(frozen=True, kw_only=True)
class Parameters(Declared):
    """The parameters of a method. `name` is the method's, as in a spec and in METHODS."""

    name: ClassVar[str]
    ON_ENGINE: ClassVar[str] = ""
    """What an engine such as Spark gets of the work, in words; nothing: ''."""

    def uses_engine(self, patients: int) -> bool:
        """Whether an engine gets work of a run of so many patients."""
        return bool(self.ON_ENGINE)

    def public(self, **found: Any) -> dict[str, Any]:
        """The manifest's parameters: as given, no path and no seed. `found`: values that the run found, by field."""
        shown: dict[str, Any] = {}
        for each in stated(type(self)):
            value = found.get(each.name, getattr(self, each.name))
            if value is None and each.default is not None:
                value = "none"
            if self._shows(each, value):
                shown[each.name] = _as_shown(each.parameter, value)
        return shown

    def _shows(self, each: Declaration, value: Any) -> bool:
        if each.parameter.when is not None:
            name, wanted = each.parameter.when
            other = getattr(self, name)
            if not other if wanted is True else other != wanted:
                return False
        empty = value is None or value is False or value in ((), {})
        return each.parameter.shown == "always" or not (empty or value == each.default)

    def over(self, cohort: Cohort) -> tuple[Self, tuple[str, ...]]:
        """The parameters with names of the cohort's codes for words that stand for them, and notices of that."""
        return self, ()

    def can_store(self) -> bool:
        """Whether the run needs nothing of the source but the patients' codes, visits and ages, so that these may be
        on the disk (`runs.stored`)."""
        return False

    def prepare(self, cohort: Cohort, engine: Engine, randomness: Randomness) -> None:
        """What tasks of an engine can do beforehand of `protect` for a cohort on the disk: they write files beside
        those of the cohort, where `protect` finds them. Of the module `method`; nothing where it has none."""
        prepare = getattr(self._method(), "prepare", None)
        if prepare is not None:
            prepare(self.over(cohort)[0], cohort, engine, randomness)

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | str | Path | None = None,
    ) -> Anonymized:
        """Anonymize a cohort: `protect` of the module `method` beside the parameters.

        `population`, for methods that need one: whom the sample comes from, as a cohort or the path of a Parquet file.
        `randomness` is the operating system's unless a seed was chosen.

        Raises
        ------
        BadInput
            Something in the cohort does not fit the method or its parameters.
        GuaranteeUnreachable
            The guarantee cannot be met on this cohort.
        """
        own, said = self.over(cohort)
        anonymized: Anonymized = self._method().protect(
            own, cohort, engine, randomness=randomness, population=population
        )
        anonymized = dataclasses.replace(anonymized, notices=(*said, *anonymized.notices))
        contract = contract_of(self.name)
        if contract is None or not contract.lists_codes:
            return anonymized
        from leeward.methods.code_list import with_code_list

        return with_code_list(anonymized, cohort)

    def _method(self) -> Any:
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.method")


def _as_shown(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, Mapping):
        items = sorted(value.items()) if parameter.ascending else value.items()
        return {name: _as_shown(parameter, each) for name, each in items}
    if isinstance(value, tuple):
        return sorted(value) if parameter.ascending else list(value)
    if parameter.form is None or value is None or isinstance(value, int):
        return value
    text = str(value)
    if re.fullmatch(parameter.form, text):
        return text
    kind, _, path = text.partition(":")
    return parameter.word or f"{kind}:{Path(path).name}"
