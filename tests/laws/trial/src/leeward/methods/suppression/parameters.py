"""The parameters of suppression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from leeward.fields import Parameter
from leeward.methods.base import Parameters


@dataclass(frozen=True, kw_only=True)
class Suppression(Parameters):
    """Sets of codes without the codes that fewer than k patients have."""

    name: ClassVar[str] = "suppression"

    k: Annotated[int, Parameter("Minimum number of patients who have each released code.", ge=2)]
