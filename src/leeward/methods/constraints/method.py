"""`Constraints`: the parameters, and the way from a cohort to a release."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from leeward.analysis.policies import Policy, constraints, parse
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.constraints.mapping import Mapping, read_mapping
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints as UtilityConstraints
    from leeward.cohort.lenses.code_sets import CodeSets
    from leeward.engine import Engine
    from leeward.methods.constraints.weighted import WeightedSets
    from leeward.vocabulary.hierarchy import Hierarchy

Algorithm = Literal["cba", "ugaclip", "coat", "apriori"]

GREEDY = ("cba", "ugaclip", "coat")

POLICY = pa.schema([("constraint", pa.string()), ("code", pa.string())])
PRIVACY = pa.schema([("constraint", pa.int64()), ("code", pa.string())])


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Generalization under utility and privacy constraints (CBA, UGACLIP, COAT), and Apriori k^m.

    algorithm
        `cba`: the merge that loses least; `ugaclip`: the rarest code first; `coat`: as `ugaclip`, and says
        which utility constraints lost more codes than `cap`; `apriori`: full-subtree recoding along the
        vocabulary.
    k
        Every privacy constraint that occurs is held by at least k records.
    m
        Protect every set of up to m codes (k^m-anonymity).
    privacy
        In place of m: a file of the code sets to protect, one a line. Nothing else is protected.
    policy
        Utility policy; codes are merged inside its constraints only, codes in none are never merged.
    cap
        COAT: largest share of a utility constraint's codes that may be suppressed.
    weights
        `leaves`: merges are weighed by how far apart codes are in the vocabulary; `none`: all alike.
    mapping
        The `codes.parquet` of an earlier release: apply it to this cohort instead of finding a new one.
        Codes that it does not know are suppressed.
    """

    name: ClassVar[str] = "constraints"

    algorithm: Algorithm = "cba"
    k: int
    m: int | None = None
    privacy: str | None = None
    policy: str | MappingOf[str, Any] | Policy | None = None
    cap: float | None = None
    weights: Literal["none", "leaves"] = "none"
    mapping: str | None = None

    def __post_init__(self) -> None:
        _require(
            self.algorithm in (*GREEDY, "apriori"),
            "algorithm",
            "cba, ugaclip, coat or apriori",
            self.algorithm,
        )
        _require(_whole(self.k) and self.k >= 2, "k", "a whole number of at least 2", self.k)
        if (self.m is None) == (self.privacy is None):
            raise BadInput(
                "give either `m` (protect every set of up to m codes) or `privacy` (a file of code sets)."
            )
        _require(
            self.m is None or (_whole(self.m) and self.m >= 1), "m", "a whole number of at least 1", self.m
        )
        _require(self.cap is None or 0 <= self.cap <= 1, "cap", "a share between 0 and 1", self.cap)
        _require(self.weights in ("none", "leaves"), "weights", "none or leaves", self.weights)
        if self.cap is not None and self.algorithm != "coat":
            raise BadInput(f"`cap` belongs to the algorithm coat; got {self.algorithm}.")
        if self.algorithm == "apriori" and (self.privacy or self.policy or self.weights != "none"):
            raise BadInput(
                "apriori takes `k` and `m` only: it knows no utility policy, no privacy file and no weights."
            )
        if self.mapping is not None and self.weights != "none":
            raise BadInput("`weights` has no meaning with `mapping`: nothing is merged anew.")
        object.__setattr__(self, "policy", parse(self.policy))

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: object = None,
    ) -> Anonymized:
        """Generalize and suppress codes until every privacy constraint is held by 0 or at least k records.

        Raises
        ------
        BadInput
            A vocabulary is missing, a file of constraints or a mapping is wrong, a population was given.
        GuaranteeUnreachable
            Fewer than k records, or an earlier mapping that does not protect this cohort.
        """
        from leeward.methods.constraints import guarantee as wording
        from leeward.methods.constraints.counting import counted

        if population is not None:
            raise BadInput("constraints needs no population; leave it out.")
        randomness = randomness or Randomness.of(None)
        sets = cohort.code_sets()
        if len(sets) < self.k:
            raise GuaranteeUnreachable(
                f"{cohort.name}: {len(sets):,} records, fewer than k = {self.k}; nothing was written."
            )
        utility = constraints(self.policy, sets, cohort.vocabulary)
        listed = self._listed(sets)
        weighted = counted(sets, engine)
        mapping, facts, notices = self._find(cohort, weighted, utility, listed)
        offsets, values = mapping.apply(sets)
        order = randomness.stream("constraints", "records").permutation(len(sets))
        return Anonymized(
            method=self.name,
            parameters=self.parameters(),
            guarantee=wording.guarantee_of(self),
            records=len(sets),
            tables=(mapping.records_table(offsets, values, order), mapping.codes_table()),
            readme=wording.readme_of(self),
            custody_tables=_custody_tables(utility, listed, sets.codes),
            custody={**facts, **wording.losses(mapping, sets, utility, self.cap)},
            notices=tuple(notices + wording.notices(mapping, sets, utility, self.cap)),
            seeded=randomness.seeded,
        )

    def parameters(self) -> dict[str, Any]:
        """The manifest's parameters: as given, files by name only."""
        from pathlib import Path

        shown: dict[str, Any] = {
            "algorithm": self.algorithm if self.mapping is None else "mapping",
            "k": self.k,
        }
        if self.m is not None:
            shown["m"] = self.m
        else:
            shown["privacy"] = "listed"
        if isinstance(self.policy, Policy):
            path = self.policy.path
            shown["policy"] = str(self.policy) if path is None else f"file:{Path(path).name}"
        if self.cap is not None:
            shown["cap"] = self.cap
        if self.weights != "none":
            shown["weights"] = self.weights
        return shown

    def _find(
        self,
        cohort: Cohort,
        weighted: WeightedSets,
        utility: UtilityConstraints,
        listed: list[tuple[int, ...]] | None,
    ) -> tuple[Mapping, dict[str, Any], list[str]]:
        """The mapping, facts about the search for the custodian, and notices."""
        if self.mapping is not None:
            return self._reapplied(weighted, listed)
        if self.algorithm == "apriori":
            from leeward.methods.constraints.apriori import recode

            found = recode(weighted, _hierarchy(cohort, weighted.codes), self.k, self.m or 1)
            facts = {"raises": found.raises, "ncp": float(found.ncp)}
            return Mapping.of(found.node_of_code, weighted.codes), facts, []
        from leeward.methods.constraints import greedy
        from leeward.methods.constraints.clusters import Clusters

        hierarchy = None if self.weights == "none" else _hierarchy(cohort, weighted.codes)
        clusters = Clusters(weighted, utility, self.k, hierarchy)
        treated = greedy.run(clusters, _privacy(self.m, listed), self.algorithm)
        return Mapping.of(clusters.of_code, weighted.codes), {"treated": treated}, []

    def _reapplied(
        self, weighted: WeightedSets, listed: list[tuple[int, ...]] | None
    ) -> tuple[Mapping, dict[str, Any], list[str]]:
        """The earlier mapping, once it is known to protect these records too."""
        from leeward.methods.constraints.reapply import fitted, violates

        earlier = read_mapping(self.mapping or "")
        mapping, new = fitted(earlier, weighted.codes)
        if violates(mapping, weighted, self.k, self.m, listed):
            raise GuaranteeUnreachable(
                f"the mapping does not protect this cohort: fewer than k = {self.k} records hold some of its "
                f"labels together. Leave out `mapping` to find a new one. Nothing was written."
            )
        notices = (
            [f"{len(new):,} codes that the earlier mapping does not know were suppressed."] if new else []
        )
        return mapping, {"unknown_codes": len(new)}, notices

    def _listed(self, sets: CodeSets) -> list[tuple[int, ...]] | None:
        if self.privacy is None:
            return None
        from leeward.methods.constraints.privacy import read_constraints

        return read_constraints(self.privacy, sets.codes)


def _privacy(m: int | None, listed: list[tuple[int, ...]] | None) -> Any:
    from leeward.methods.constraints.privacy import AllSets, Listed

    return AllSets(m or 1) if listed is None else Listed(listed)


def _hierarchy(cohort: Cohort, codes: tuple[str, ...]) -> Hierarchy:
    if cohort.vocabulary is None:
        raise BadInput(
            f"{cohort.name}: a vocabulary to generalize along is missing; say icd9, icd10 or a file."
        )
    from leeward.vocabulary import load

    return load(cohort.vocabulary).hierarchy(codes)


def _custody_tables(
    utility: UtilityConstraints, listed: list[tuple[int, ...]] | None, codes: tuple[str, ...]
) -> tuple[ReleaseTable, ...]:
    """What the custodian keeps: the policy applied, and the privacy constraints where they were listed."""
    rows = utility.rows(codes)
    policy = pa.table({"constraint": [c for c, _ in rows], "code": [c for _, c in rows]}, schema=POLICY)
    tables = [ReleaseTable.of("policy.parquet", policy)]
    if listed is not None:
        numbers = [number for number, members in enumerate(listed) for _ in members]
        names = [codes[code] for members in listed for code in members]
        table = pa.table({"constraint": numbers, "code": names}, schema=PRIVACY)
        tables.append(ReleaseTable.of("privacy.parquet", table))
    return tuple(tables)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(holds: bool, name: str, wanted: str, value: object) -> None:
    if not holds:
        raise BadInput(f"`{name}` must be {wanted}; got {value}.")
