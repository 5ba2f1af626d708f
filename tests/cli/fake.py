"""A method small enough to be seen through, so that the command line is tested apart from any real one.

It releases how many patients have each code that at least k patients have.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import polars as pl
import pytest

from leeward.contracts.contract import Contract, Table, Words
from leeward.errors import GuaranteeUnreachable
from leeward.fields import Parameter
from leeward.methods import METHODS, Method
from leeward.methods.base import Parameters
from leeward.randomness import Randomness
from leeward.release import Anonymized, Guarantee, Release, ReleaseTable
from leeward.verify import CHECKERS, Check, contract_of


@dataclass(frozen=True, kw_only=True)
class Counting(Parameters):
    """Counts of frequent codes."""

    name: ClassVar[str] = "counting"
    k: Annotated[int, Parameter("Smallest count.", ge=2)]
    policy: Annotated[str | Mapping[str, Any] | None, Parameter("Not used.")] = None
    broken: Annotated[bool, Parameter("Release what must not be released.")] = False

    def protect(
        self, cohort: Any, engine: Any = None, *, randomness: Randomness | None = None, population: Any = None
    ) -> Anonymized:
        sets = cohort.code_sets()
        if len(sets) < self.k:
            raise GuaranteeUnreachable(f"`k` is {self.k}, but the cohort has {len(sets)} patients; lower k.")
        supports = sets.supports()
        shown = [i for i, s in enumerate(supports) if self.broken or s >= self.k]
        frame = pl.DataFrame(
            {"code": [sets.codes[i] for i in shown], "count": [int(supports[i]) for i in shown]}
        )
        source = randomness or Randomness.of(None)
        order = source.stream("rows").permutation(frame.height)
        return Anonymized(
            method=self.name,
            parameters={"k": self.k},
            guarantee=Guarantee("k-counts", "knows a code", ("sums",), k=self.k),
            records=frame.height,
            tables=(ReleaseTable.of("counts.parquet", frame[order].to_arrow()),),
            readme="Read `counts.parquet`.",
            custody={"left out": len(supports) - len(shown)},
            notices=("a notice of the method",),
            seeded=source.seeded,
        )


def check(share: Any, source: Any) -> list[Check]:
    counts = pl.read_parquet(share.folder / "data" / "counts.parquet")["count"]
    below = int((counts < share.manifest["guarantee"]["k"]).sum())
    return [Check("counts_of_at_least_k", below == 0, f"{below} counts below k.", {"below": below})]


CONTRACT = Contract(
    tables=(Table("counts.parquet", {"code": ("string",), "count": ("int64",)}),),
    parameters={"k": {"type": "integer", "minimum": 2, "shown": "always"}},
    words=lambda parameters: Words("k-counts", "knows a code", ("sums",), "Read `counts.parquet`."),
)


DEFAULTS = ({"share": {}},)


def measure(release: Release, cohort: Any, wanted: Any) -> dict[str, Any]:
    return {"share": release.table("counts.parquet").collect().height / len(cohort.code_sets().codes)}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the method into the registries."""
    row = Method(f"{__name__}:Counting", "count", "Release counts.", measures=__name__, sections=__name__)
    monkeypatch.setitem(METHODS, "counting", row)
    monkeypatch.setitem(CHECKERS, "counting", f"{__name__}:check")
    contracts = {"counting": CONTRACT}
    monkeypatch.setattr(
        sys.modules["leeward.verify"], "contract_of", lambda name: contracts.get(name) or contract_of(name)
    )
