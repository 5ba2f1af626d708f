"""`Trajectories`: the parameters, and the way from a cohort to a release."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.analysis.policies import PolicyLike
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.trajectories import Trajectories as Lens
from leeward.errors import BadInput
from leeward.methods.trajectories import guarantee as wording
from leeward.methods.trajectories import hierarchies, space
from leeward.methods.trajectories.space import Space
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.engine import Engine
    from leeward.methods.trajectories.run import Group, Records
    from leeward.vocabulary.age import AgeTree
    from leeward.vocabulary.hierarchy import Hierarchy

PARTITION = 65_000
"""Largest part that is clustered at once: N² work a part, so that a million records take minutes."""

RESERVED = ("record", "position", "code", "age")


@dataclass(frozen=True)
class Trajectories:
    """(code, age) trajectories made k-anonymous (LDA; Tamersoy 2011, chapter IV).

    k
        Every published trajectory is published for at least k patients.
    joining
        How a cluster chooses its next record: `normalised` (default; loses least), `size`, `thesis`.
    weights
        (codes, ages), at least 0, sum 1: which attribute is to lose less.
    hierarchy
        Of the codes: `icd9`, `icd10`, or a CSV with the columns node,parent; default the cohort's vocabulary.
    codes
        The list of codes that the hierarchy spans; default a file's whole hierarchy, or the codes that occur.
    ages
        `0-127` (default), `1-128` (the thesis), `hipaa`, or a CSV.
    odd_ages
        Rows without an age inside the hierarchy: `refuse` them, or `leave out` with their row numbers told.
    improve, improve_rounds, improve_seconds
        Local search after clustering, at most so many rounds and seconds in all, on all threads (what the clock
        cuts short differs from run to run; the custodian is told). Keeps groups diverse.
    partition
        Largest number of records clustered at once; 0: all at once.
    payload
        Columns of the patients that ride along unprotected.
    sensitive, sensitive_column, diversity
        No published value is a sensitive code for more than 1 in `diversity` of the codes below it; no value of
        the payload column makes up more than 1 in `diversity` of those published alike.
    policy, widest_age
        A utility policy: codes are generalized together only inside one constraint; no age wider than so many
        years is published.
    """

    name: ClassVar[str] = "trajectories"

    k: int
    joining: Literal["normalised", "size", "thesis"] = "normalised"
    weights: tuple[float, ...] = (0.5, 0.5)
    hierarchy: str | None = None
    codes: tuple[str, ...] = ()
    ages: str = "0-127"
    odd_ages: Literal["refuse", "leave out"] = "refuse"
    improve: bool = False
    improve_rounds: int = 6
    improve_seconds: float = 120.0
    partition: int = PARTITION
    payload: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    sensitive_column: str | None = None
    diversity: int | None = None
    policy: PolicyLike = None
    widest_age: int | None = None

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        if self.joining not in ("normalised", "size", "thesis"):
            raise BadInput(f"`joining` must be normalised, size or thesis; got {self.joining}.")
        if len(self.weights) != 2:
            raise BadInput(f"`weights` must be two numbers, of codes and of ages; got {len(self.weights)}.")
        space.exact_weights((float(self.weights[0]), float(self.weights[1])))
        if self.odd_ages not in ("refuse", "leave out"):
            raise BadInput(f"`odd_ages` must be refuse or leave out; got {self.odd_ages}.")
        if self.partition < 0 or 0 < self.partition < 4 * self.k:
            raise BadInput(f"`partition` must be 0 or at least 4k = {4 * self.k}; got {self.partition}.")
        if self.improve_rounds < 1 or self.improve_seconds <= 0:
            raise BadInput("`improve_rounds` must be at least 1 and `improve_seconds` above 0.")
        if (self.diversity is None) != (not self.sensitive and self.sensitive_column is None):
            raise BadInput("`diversity` goes with `sensitive` or `sensitive_column`; give both or neither.")
        if self.diversity is not None and not self.diversity >= 2:
            raise BadInput(f"`diversity` must be at least 2; got {self.diversity}.")
        if self.diversity is not None and self.sensitive_column is not None and self.diversity > self.k:
            raise BadInput(f"`diversity` must be at most k = {self.k} for a column; got {self.diversity}.")
        if self.sensitive_column is not None and self.sensitive_column not in self.payload:
            raise BadInput("`sensitive_column` must be one of the `payload` columns.")
        if self.widest_age is not None and self.widest_age < 1:
            raise BadInput(f"`widest_age` must be at least 1 year; got {self.widest_age}.")
        if any(name in RESERVED for name in self.payload):
            raise BadInput(f"`payload`: a column cannot be called {', '.join(RESERVED)}.")

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: object = None,
    ) -> Anonymized:
        """Cluster the cohort's trajectories and publish each cluster as one trajectory.

        Raises
        ------
        BadInput
            No ages, odd ages (`odd_ages: refuse`), codes that the hierarchy lacks, fewer than k patients.
        GuaranteeUnreachable
            A sensitive value is too frequent for the diversity asked.
        """
        from leeward.engine import make
        from leeward.methods.trajectories import losses
        from leeward.methods.trajectories.run import Records

        engine = make(engine)
        years = hierarchies.age_tree(self.ages)
        lens = cohort.trajectories(years.first, years.last)
        notices = self._told(cohort, lens)
        tree, found_in_data = self._code_tree(cohort, lens)
        if found_in_data and self.sensitive:
            raise BadInput(
                f"{cohort.name}: `sensitive` bounds the share of sensitive codes below a value, so the codes of the "
                "hierarchy must be stated: give `codes`, or a hierarchy file."
            )
        spaces = self._space(cohort, lens, tree, years)
        payload = self._payload(cohort, lens)
        values = None if self.sensitive_column is None else _numbered(payload, self.sensitive_column)
        records = Records(
            lens.offsets, tree.nodes_of(lens.labels)[lens.codes], years.nodes(lens.ages), values
        )
        if len(records) < self.k:
            raise BadInput(
                f"{cohort.name}: {len(records):,} patients with a trajectory are fewer than k = {self.k}; "
                "no group of k can be made. Give more patients or a smaller k."
            )
        groups, facts = self._groups(records, spaces, engine)
        lost = losses.of(groups, records.lengths(), spaces)
        facts |= {"ilm": lost.ilm, "alm": lost.alm, "total": lost.total, "kept_pairs": lost.kept}
        facts |= {"levels": losses.by_level(groups, records.lengths(), spaces)}
        facts |= wording.facts_of(groups, records, spaces)
        notices += wording.search_notices(facts)
        listed = wording.common_nodes(tree, records, self.k) if found_in_data else None
        if listed is not None:
            hidden = tree.n_leaves - int(listed[tree.leaves].sum())
            notices.append(
                f"No list of codes was stated: losses are shares of the {tree.n_leaves:,} codes that occur, and "
                f"the released code hierarchy lists those that at least k = {self.k} patients have ({hidden:,} have "
                "fewer). State a list with `codes`, or a hierarchy file, if it should not depend on the data."
            )
        randomness = randomness or Randomness.of(None)
        order = randomness.stream("trajectories", "records").permutation(len(records))
        return wording.release_of(
            self, groups, spaces, order, payload, facts, notices, randomness.seeded, listed
        )

    def parameters(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data."""
        shown: dict[str, Any] = {"k": self.k, "joining": self.joining, "weights": list(self.weights)}
        shown |= {"ages": self.ages if "-" in self.ages or self.ages == "hipaa" else "custom"}
        shown |= {"hierarchy": self.hierarchy if hierarchies.is_built_in(self.hierarchy) else "custom"}
        for name in ("codes", "payload", "sensitive"):
            if getattr(self, name):
                shown[name] = list(getattr(self, name))
        for name in ("sensitive_column", "diversity", "widest_age"):
            if getattr(self, name) is not None:
                shown[name] = getattr(self, name)
        return shown

    def _told(self, cohort: Cohort, lens: Lens) -> list[str]:
        odd = [notice for notice in lens.odd if notice.kind != "no trajectory"]
        if odd and self.odd_ages == "refuse":
            raise BadInput(
                f"{cohort.name}: {'; '.join(str(notice) for notice in odd)}. Correct the ages, choose a wider age "
                "hierarchy with `ages`, or leave these rows out with `odd_ages: leave out`."
            )
        return [f"Left out: {notice}." if notice in odd else f"{notice}." for notice in lens.odd]

    def _code_tree(self, cohort: Cohort, lens: Lens) -> tuple[Hierarchy, bool]:
        try:
            return hierarchies.code_tree(self.hierarchy or cohort.vocabulary, self.codes, lens.labels)
        except BadInput as problem:
            raise BadInput(f"{cohort.name}: {problem}") from None

    def _space(self, cohort: Cohort, lens: Lens, tree: Hierarchy, years: AgeTree) -> Space:
        constraint = self._constraints(cohort, tree) if self.policy is not None else None
        shown = None
        if self.sensitive or constraint is not None:
            share = 1 / self.diversity if self.diversity else 1.0
            shown = space.publishable_codes(tree, self.sensitive, share, constraint)
        narrow = None if self.widest_age is None else space.narrow_ages(years, self.widest_age)
        return space.make(tree, years, (float(self.weights[0]), float(self.weights[1])), shown, narrow)

    def _constraints(self, cohort: Cohort, tree: Hierarchy) -> NDArray[np.int32]:
        """The constraint of each leaf of the code hierarchy; -1 for codes in none."""
        from leeward.analysis import policies
        from leeward.vocabulary import load

        sets = cohort.code_sets()
        named = self.hierarchy or cohort.vocabulary
        vocabulary = load(named) if named else None
        found = policies.constraints(policies.parse(self.policy), sets, vocabulary)
        of_leaf = np.full(tree.n_leaves, -1, np.int32)
        leaf_number = {label: number for number, label in enumerate(tree.leaf_labels())}
        for code, constraint in zip(sets.codes, found.of_code.tolist(), strict=True):
            if code in leaf_number:
                of_leaf[leaf_number[code]] = constraint
        return of_leaf

    def _groups(self, records: Records, spaces: Space, engine: Engine) -> tuple[list[Group], dict[str, Any]]:
        from leeward.methods.trajectories import diversity, improvement, run

        settings = run.Settings(
            self.k,
            self.joining,
            max(1, self.k // self.diversity) if self.sensitive_column and self.diversity else 1 << 30,
            self.improve,
            self.improve_rounds,
            self.improve_seconds,
            diversity=self.diversity if self.sensitive_column and self.diversity else 0,
        )
        if records.group is not None and self.diversity is not None:
            diversity.require_reachable(records.group, self.diversity)
        parts = ceil(len(records) / self.partition) if self.partition else 1
        facts: dict[str, Any] = {"partitions": 1}
        searched: list[improvement.Progress] = []
        if parts == 1 and engine.name == "local":
            groups = run.clustered(
                records, spaces, settings, engine.threads, run.said_by(engine), searched=searched
            )
        elif parts == 1:
            groups = run.in_parts(
                records, np.zeros(len(records), np.int32), spaces, settings, engine, searched
            )
        else:
            part = run.describe_parts(records, spaces, self.partition)
            groups = run.in_parts(records, part, spaces, settings, engine, searched)
            facts["partitions"] = int(part.max()) + 1
            facts["one_halving_costs"] = run.cost_of_halving(records, spaces, settings, engine.threads)
        if records.group is not None:
            assert self.diversity is not None  # for the types: goes with the column
            groups = diversity.made_diverse(groups, records, spaces, self.diversity, self.k)
        if self.improve:
            facts["search"] = wording.search_of(searched, facts["partitions"])
        return groups, facts

    def _payload(self, cohort: Cohort, lens: Lens) -> pl.DataFrame | None:
        """The payload of each record, in the order of the lens."""
        if not self.payload:
            return None
        columns = [] if cohort.patients is None else cohort.patients.columns
        for name in self.payload:
            if name not in columns or name == "patient":
                listed = ", ".join(c for c in columns if c != "patient") or "none"
                raise BadInput(
                    f"{cohort.name}: no payload column '{name}' among the patients' columns: {listed}."
                )
        assert cohort.patients is not None  # for the types: its columns were just listed
        patients = cohort.patients.select("patient", *self.payload)
        if patients["patient"].is_duplicated().any():
            raise BadInput(
                f"{cohort.name}: the patients' table holds a patient more than once; keep one row for each."
            )
        wanted = lens.patients.alias("patient").to_frame()
        return wanted.join(patients, on="patient", how="left", maintain_order="left").drop("patient")


def _numbered(payload: pl.DataFrame | None, column: str) -> NDArray[np.int32]:
    """The values of a payload column as numbers; a missing value is a value of its own."""
    assert payload is not None  # for the types: the column is one of the payload's
    ranks = payload[column].rank("dense").fill_null(0).cast(pl.Int32)
    return ranks.to_numpy().astype(np.int32)
