"""What every method's parameter class is: declared fields, a manifest's view of them, and `protect`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from leeward.fields import OMIT, Declared, declarations

if TYPE_CHECKING:
    from pathlib import Path

    from leeward.analysis.policies import Policy
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

    PolicyLike = Policy | str | Mapping[str, Any] | None
else:  # what a spec can give, so that declaring a policy imports no arithmetic
    PolicyLike = str | Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Parameters(Declared):
    """The parameters of a method. `name` is the method's, as in a spec and in METHODS."""

    name: ClassVar[str]
    lists_codes: ClassVar[bool] = False
    """Whether releases have the list of codes that `code_list` makes."""

    def public(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data, no path and no seed."""
        found: dict[str, Any] = {}
        for each in declarations(type(self)):
            value, shown = getattr(self, each.name), each.parameter.shown
            if callable(shown):
                value = shown(self)
            elif shown == "never" or (shown == "given" and (value is None or value in ((), False))):
                value = OMIT
            if value is not OMIT:
                found[each.name] = list(value) if isinstance(value, tuple) else value
        return found

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
        method = importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.method")
        anonymized: Anonymized = method.protect(
            self, cohort, engine, randomness=randomness, population=population
        )
        if not self.lists_codes:
            return anonymized
        from leeward.methods.code_list import with_code_list

        return with_code_list(anonymized, cohort)
