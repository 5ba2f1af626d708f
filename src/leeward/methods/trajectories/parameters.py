"""The parameters of trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from leeward.errors import BadInput
from leeward.fields import BadParameter, Parameter
from leeward.methods.base import PolicyLike
from leeward.methods.demographics import WithRecoding

RESERVED = ("record", "position", "code", "age")


@dataclass(frozen=True, kw_only=True)
class Trajectories(WithRecoding):
    """k-anonymous trajectories of codes and ages (LDA: A-GS and MDAV; Tamersoy 2011, chapter IV).

    Examples
    --------
    >>> import leeward as lw
    >>> claims = lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    >>> codes = [f"diag_{n}" for n in range(1, 11)]
    >>> columns = {"code": codes, "visit": "claim", "age": "age", "patients": ["sex"]}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> result = lw.protect(cohort, lw.Trajectories(k=5), "release")
    >>> result.release.records
    300
    """

    name: ClassVar[str] = "trajectories"
    ON_ENGINE: ClassVar[str] = "each part"

    k: Annotated[int, Parameter("Minimum number of patients with the same published trajectory.", ge=2)]
    joining: Annotated[
        Literal["normalised", "thesis"],
        Parameter("How a cluster chooses its next record; normalised loses least.", shown="always"),
    ] = "normalised"
    clustering: Annotated[
        Literal["cells", "alignment"],
        Parameter(
            "cells: group records by the 3-digit codes and 8-year ages that they share, which publishes "
            "more usable pairs, many times more for long records. alignment: A-GS and MDAV (the "
            "thesis).",
            shown="always",
        ),
    ] = "cells"
    order: Annotated[
        Literal["free", "kept"] | None,
        Parameter(
            "free (with cells): pairs are ordered only by their published ages. kept: published pairs keep "
            "every patient's order.",
            default="free with cells, kept with alignment",
            shown="always",
            when=("clustering", "cells"),
            found=True,
        ),
    ] = None
    weights: Annotated[
        tuple[float, float],
        Parameter(
            "Weights of the losses of codes and of ages; they sum to 1.",
            ge=0,
            metavar="CODES,AGES",
            shown="always",
        ),
    ] = (0.5, 0.5)
    time: Annotated[
        str,
        Parameter(
            "What a code has beside it: its age, or its date, given the first and the last year (2000-2019): a month, "
            "quarter, year or decade of them.",
            metavar="age|YEAR-YEAR",
            form=r"\d{4}-\d{4}",
        ),
    ] = "age"
    ages: Annotated[
        str,
        Parameter(
            "Hierarchy of ages: 0-127, 1-128 (the thesis), hipaa, or a CSV with the columns node,parent.",
            when=("time", "age"),
            metavar="0-127|1-128|hipaa|FILE.csv",
            flag="--age-hierarchy",
            shown="always",
            form=r"\d+-\d+|hipaa|custom",
            word="custom",
        ),
    ] = "0-127"
    codes: Annotated[
        tuple[str, ...],
        Parameter(
            "The codes that the hierarchy spans.",
            default="a file's whole hierarchy, or the codes that occur",
            metavar="CODE[,CODE…]",
            flag="--hierarchy-codes",
        ),
    ] = ()
    payload: Annotated[
        tuple[str, ...], Parameter("Columns of the patients to release unprotected.", metavar="COL[,COL…]")
    ] = ()
    sensitive: Annotated[
        tuple[str, ...],
        Parameter("Sensitive codes: never disclosed with confidence above 1/L.", metavar="CODE[,CODE…]"),
    ] = ()
    sensitive_column: Annotated[
        str | None, Parameter("A payload column with sensitive values.", metavar="COL")
    ] = None
    diversity: Annotated[
        int | None,
        Parameter(
            "L: at most 1 in L records of a group may have the same sensitive value.", ge=2, metavar="L"
        ),
    ] = None
    widest_age: Annotated[
        int | None,
        Parameter("Widest age (or date) to publish; wider ones are suppressed.", ge=1, metavar="YEARS"),
    ] = None
    odd_ages: Annotated[
        Literal["refuse", "leave out"],
        Parameter(
            "What to do with rows whose age or date is missing or outside the hierarchy; either way they are listed.",
            shown="never",
        ),
    ] = "refuse"
    policy: Annotated[
        PolicyLike,
        Parameter(
            "Groups of codes to keep analysable: only codes of one group are generalized together.",
            metavar="hierarchy:1|similarity:10|frequency:0.0125|file:PATH",
            shown="never",
        ),
    ] = field(default=None, hash=False)
    inherited: ClassVar[None]
    hierarchy: Annotated[
        str | None,
        Parameter(
            "Hierarchy of codes; on the command line, --vocabulary.",
            default="the cohort's vocabulary",
            metavar="icd9|icd10|FILE.csv",
            flag="",
            shown="always",
            form="icd9|icd10|icd|icd-undotted|custom",
            word="custom",
            found=True,
        ),
    ] = None
    listed_codes: Annotated[
        Literal["of at least k patients"] | None,
        Parameter("Which codes the released hierarchy lists, where not all of its kind.", found=True),
    ] = field(default=None, init=False)

    @property
    def in_order(self) -> bool:
        return self.clustering == "alignment" or self.order == "kept"

    def can_store(self) -> bool:
        return not (self.demographics or self.payload)

    def rules(self) -> None:
        super().rules()
        from leeward.methods.trajectories.hierarchies import exact_weights, time_tree

        exact_weights(self.weights)
        if self.time != "age":
            time_tree(vars(self))
        column, diversity = self.sensitive_column, self.diversity
        if diversity is not None and column is not None and diversity > self.k:
            raise BadParameter("diversity", f"must be at most k = {self.k} for a column; got {diversity}.")
        wrong = {
            "`diversity` goes with `sensitive` or `sensitive_column`; give both or neither.": (
                (diversity is None) != (not self.sensitive and column is None)
            ),
            "`sensitive_column` must be one of the `payload` columns.": (
                column is not None and column not in self.payload
            ),
            "`ages` goes with `time: age`.": self.time != "age" and self.ages != "0-127",
            "`order: free` goes with `clustering: cells`.": (
                self.order == "free" and self.clustering != "cells"
            ),
            f"`payload`: a column cannot be called {', '.join(RESERVED)}.": (
                not set(RESERVED).isdisjoint(self.payload)
            ),
        }
        for message, holds in wrong.items():
            if holds:
                raise BadInput(message)
