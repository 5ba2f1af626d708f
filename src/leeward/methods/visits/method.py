"""`Visits`: the parameters, and the way from a cohort to a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl

from leeward.analysis.policies import Policy
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed
from leeward.methods.visits.groups import PHECODE, checked
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.cohort.lenses.visits import Visits as Lens
    from leeward.engine import Engine
    from leeward.methods.visits.bins import Merging
    from leeward.methods.visits.enforce import Ints, VisitSets

LEVELS = ("code", "containment", "visit")
KEYS = ("absolute", "relative")


@dataclass(frozen=True)
class Visits:
    """Codes of a population's visits, merged and suppressed until k patients share them (Heatherly et al. 2013).

    k
        At least k patients share what an attacker may know.
    level
        `visit`: every released visit set is held exactly by k patients (the paper's privacy section). `containment`:
        every visit set is part of what k patients have over all their visits (its overview); only with `merge_visits`.
        `code`: every code occurs in k patients (all that its procedure enforces).
    policy
        Which codes may merge: a utility policy (`hierarchy:1`), `phecode`, `phecode:FILE`, or `none`.
    key
        Which code leaves a set that too few hold: after the violations that are left, the one that the fewest patients
        lose altogether (`absolute`) or the smallest share of its patients (`relative`: keeps more distinct codes).
    enforce
        `delete`, or `generalize`: a code climbs to its node of hierarchy level `climb_to` before it is deleted.
    rescue
        Codes that stay below k after merging join the least frequent code of their group, instead of being lost.
    merge_visits
        One set a patient instead of visits.
    payload
        Columns of the patients that ride along unprotected.
    """

    name: ClassVar[str] = "visits"

    k: int
    level: Literal["code", "containment", "visit"] = "visit"
    policy: str | Mapping[str, Any] | Policy | None = field(default="hierarchy:1", hash=False)
    key: Literal["absolute", "relative"] = "absolute"
    enforce: Literal["delete", "generalize"] = "delete"
    climb_to: int = 3
    rescue: bool = False
    merge_visits: bool = False
    payload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        for name, choices in (("level", LEVELS), ("key", KEYS), ("enforce", ("delete", "generalize"))):
            if getattr(self, name) not in choices:
                raise BadInput(f"`{name}` must be one of {', '.join(choices)}; got {getattr(self, name)}.")
        if self.level == "containment" and not self.merge_visits:
            raise BadInput(
                "`level: containment` protects nobody while visits stay apart: a visit's set may still be held exactly "
                "by one patient. Add `merge_visits: true`, or take `level: visit`."
            )
        if self.enforce == "generalize" and self.level != "visit":
            raise BadInput("`enforce: generalize` is for `level: visit` only; leave it out.")
        if self.climb_to < 1:
            raise BadInput(f"`climb_to` must be at least 1; got {self.climb_to}.")
        object.__setattr__(self, "policy", checked(self.policy))
        given = (self.payload,) if isinstance(self.payload, str) else tuple(self.payload)
        object.__setattr__(self, "payload", given)

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Anonymize all patients of `cohort`; extracts of the release are drawn by `leeward cohort`.

        Raises
        ------
        BadInput
            A population (it is the cohort itself here), no visits, an unknown payload column, a policy that does not
            fit the codes.
        GuaranteeUnreachable
            Fewer than k patients.
        """
        from leeward.engine import make
        from leeward.methods.visits import guarantee as wording

        if population is not None:
            raise BadInput(
                "visits: the population is what is anonymized: give it as the source, and draw the cohort from the "
                "release with `leeward cohort`."
            )
        merged_early = self.merge_visits and self.level != "containment"
        lens = cohort.visits(merged=merged_early)
        if self.k > len(lens):
            raise GuaranteeUnreachable(
                f"`k` is {self.k:,} and the cohort has {len(lens):,} patients: nobody can be hidden among so many. "
                "Choose a smaller k or give more patients."
            )
        payload = self._payload_of(cohort, lens)
        engine = make(engine)
        entries = engine.frame(lens.table())
        merging = self._merged(cohort, lens, engine, entries)
        labels, of_code, up = self._labels(merging, lens, cohort.vocabulary)
        mapped = self._mapped(engine, entries, lens, of_code, len(labels))
        enforced, steps = self._enforced(mapped, len(labels), up, engine.threads)
        self._recheck(enforced, len(labels))
        return wording.release_of(
            self,
            wording.Outcome(lens, merging, labels, of_code, up, mapped, enforced, steps),
            payload,
            cohort.vocabulary,
            randomness or Randomness.of(None),
        )

    def parameters(self, vocabulary: str | None) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data; files by name, without a path."""
        shown: dict[str, Any] = {"k": self.k, "level": self.level, "policy": self._policy_text()}
        if vocabulary is not None:
            shown["vocabulary"] = Path(vocabulary).name
        if self.level == "visit":
            shown |= {"key": self.key, "enforce": self.enforce}
        if self.enforce == "generalize":
            shown["climb_to"] = self.climb_to
        shown |= {name: True for name in ("rescue", "merge_visits") if getattr(self, name)}
        if self.payload:
            shown["payload"] = list(self.payload)
        return shown

    def _policy_text(self) -> str:
        """The policy with file names only: a path is the custodian's."""
        kind, _, value = str(self.policy or "none").partition(":")
        return (
            f"{kind}:{Path(value).name}"
            if kind in (PHECODE, "file") and value
            else str(self.policy or "none")
        )

    def _merged(self, cohort: Cohort, lens: Lens, engine: Engine, entries: Any) -> Merging:
        from leeward.methods.visits.bins import merge
        from leeward.methods.visits.groups import groups_of
        from leeward.methods.visits.relational import code_frequencies, holders_of

        groups = groups_of(self.policy, cohort, lens)  # type: ignore[arg-type]  # `checked` parsed it
        frequencies = code_frequencies(engine, entries, len(lens.codes))
        rare = holders_of(engine, entries, np.flatnonzero(frequencies < self.k).tolist())
        return merge(lens.codes, frequencies.tolist(), rare, groups.tolist(), self.k, rescue=self.rescue)

    def _labels(
        self, merging: Merging, lens: Lens, vocabulary: str | None
    ) -> tuple[tuple[str, ...], Ints, Ints | None]:
        """All labels, the label of each code (-1: suppressed), and where labels climb."""
        from leeward.methods.visits.climbing import climbing

        labels, up = merging.labels, None
        label_of: tuple[str | None, ...] = merging.label_of
        if self.enforce == "generalize":
            nodes = climbing(labels, lens.codes, self.climb_to, vocabulary)
            labels, up = nodes.labels, nodes.up
            label_of = tuple(own or above for own, above in zip(label_of, nodes.of_code, strict=True))
        number = {label: place for place, label in enumerate(labels)}
        of_code = np.array([-1 if label is None else number[label] for label in label_of], np.int32)
        return labels, of_code, up

    def _mapped(self, engine: Engine, entries: Any, lens: Lens, of_code: Ints, labels: int) -> VisitSets:
        from leeward.methods.visits.enforce import VisitSets
        from leeward.methods.visits.relational import relabelled, visit_arrays

        if (of_code == np.arange(len(of_code))).all():  # every code stays itself
            return VisitSets(lens.patient_offsets, lens.offsets, lens.values)
        arrays = visit_arrays(relabelled(engine, entries, of_code), lens.n_visits, max(labels, 1))
        return VisitSets(lens.patient_offsets, *arrays)

    def _enforced(
        self, mapped: VisitSets, labels: int, up: Ints | None, threads: int
    ) -> tuple[VisitSets, int]:
        if self.level == "code":
            return mapped, 0
        if self.level == "containment":
            from leeward.methods.visits.containment import enforce_containment

            return enforce_containment(mapped, labels, self.k, threads)
        from leeward.methods.visits.enforce import enforce_visits

        return enforce_visits(mapped, labels, self.k, relative=self.key == "relative", up=up)

    def _recheck(self, visits: VisitSets, labels: int) -> None:
        """Belt and braces before anything is written; the verifier checks the files by itself."""
        from leeward.methods.visits.enforce import violations

        if self.level == "visit" and violations(visits, labels, self.k):
            raise VerificationFailed("a visit's set is held by fewer than k patients; nothing was written.")

    def _payload_of(self, cohort: Cohort, lens: Lens) -> pl.DataFrame | None:
        """The payload of each patient, in the order of the lens."""
        if not self.payload:
            return None
        columns = [] if cohort.patients is None else cohort.patients.columns
        for name in self.payload:
            if name not in columns or name in ("patient", "record"):
                listed = ", ".join(c for c in columns if c != "patient") or "none"
                raise BadInput(
                    f"{cohort.name}: no payload column '{name}' among the patients' columns: {listed}."
                )
        assert cohort.patients is not None  # for the types: its columns were just listed
        wanted = lens.patients.alias("patient").to_frame()
        chosen = cohort.patients.select("patient", *self.payload)
        if chosen["patient"].is_duplicated().any():
            raise BadInput(
                f"{cohort.name}: the patients' table holds a patient more than once; keep one row for each."
            )
        return wanted.join(chosen, on="patient", how="left", maintain_order="left").drop("patient")
