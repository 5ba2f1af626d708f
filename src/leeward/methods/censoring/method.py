"""`Censoring`: the parameters, and the way from a sample and its population to a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.counts import CodeCounts
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed
from leeward.methods.censoring import guarantee as wording
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.analysis.containment import Multisets, Population
    from leeward.analysis.containment.multisets import Ints
    from leeward.engine import Engine

MOST_MENTIONS = 65_535
ROWS_SHOWN = 20

PopulationLike = Cohort | str | Path
"""A cohort, or the path of a Parquet population (`patient`, `code`, where known `visit`) to be streamed."""


@dataclass(frozen=True)
class Censoring:
    """Repeated codes censored to a k-map of a population (Tamersoy 2011, chapter III).

    k
        Every released record is contained in at least k records of the population.
    caps
        The most mentions of each code that a record may keep, by code.
    cap
        The same for every code that `caps` does not name. Neither given: the highest count in the sample. `caps` alone:
        other codes are censored altogether, with a notice.
    scope
        `global`: Greedy Code Censoring, caps that fall for all records alike. `record`: every record on its own keeps
        the largest part that k people share (ours).
    payload
        Columns of the sample's patients that ride along unprotected.
    """

    name: ClassVar[str] = "censoring"

    k: int
    caps: Mapping[str, int] | None = field(default=None, hash=False)
    cap: int | None = None
    scope: Literal["global", "record"] = "global"
    payload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        if self.cap is not None and not 1 <= self.cap <= MOST_MENTIONS:
            raise BadInput(f"`cap` must be between 1 and {MOST_MENTIONS:,}; got {self.cap}.")
        if self.scope not in ("global", "record"):
            raise BadInput(f"`scope` must be global or record; got {self.scope}.")
        object.__setattr__(
            self, "payload", (self.payload,) if isinstance(self.payload, str) else tuple(self.payload)
        )
        for code, cap in (self.caps or {}).items():
            if not isinstance(code, str):
                raise BadInput('`caps`: codes must be text; quote them, as in `{"250": 2}`.')
            if not isinstance(cap, int) or isinstance(cap, bool) or not 0 <= cap <= MOST_MENTIONS:
                raise BadInput(f"`caps`: every cap must be a whole number from 0 to {MOST_MENTIONS:,}.")

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: PopulationLike | None = None,
    ) -> Anonymized:
        """Censor the sample `cohort` until every record is contained in at least k records of `population`.

        Raises
        ------
        BadInput
            No population, a record of the sample that no population record contains, a patient who stands twice in
            the population, an unknown payload column.
        GuaranteeUnreachable
            k is above the number of people in the population.
        """
        from leeward.methods.censoring.run import censored

        if population is None:
            raise BadInput(
                "censoring needs the population that the sample comes from; give it with `population`."
            )
        sample = cohort.code_counts()
        payload = self._payload_of(cohort, sample)
        everyone, originals = self._population_of(cohort, sample, population, engine)
        _require_contained(cohort.name, sample, everyone, originals)
        caps = self._caps_of(sample)
        outcome = censored(everyone, originals, caps, self.k, self.scope)
        if not everyone.asks_at_once and (everyone.counts(outcome.kept, limit=self.k) < self.k).any():
            raise VerificationFailed(
                "a censored record is contained in fewer than k people; nothing was written."
            )
        notices = [*_notices(cohort, population), *self._cap_notices(sample, caps), *outcome.notices]
        randomness = randomness or Randomness.of(None)
        order = randomness.stream("censoring", "records").permutation(len(sample))
        return wording.release_of(
            self, sample, outcome, order, payload, everyone.n, notices, randomness.seeded
        )

    def parameters(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data."""
        shown: dict[str, Any] = {"k": self.k, "scope": self.scope}
        if self.cap is not None:
            shown["cap"] = self.cap
        if self.caps is not None:
            shown["caps"] = dict(sorted(self.caps.items()))
        if self.payload:
            shown["payload"] = list(self.payload)
        return shown

    def _population_of(
        self, cohort: Cohort, sample: CodeCounts, population: PopulationLike, engine: Engine | None
    ) -> tuple[Population, Multisets]:
        from leeward.analysis.containment import Index, Multisets
        from leeward.engine import make

        engine = make(engine)
        originals = Multisets(sample.offsets, sample.values, sample.counts)
        most = sample.most()
        if most.max() > MOST_MENTIONS:
            raise BadInput(f"{cohort.name}: a record holds more than {MOST_MENTIONS:,} mentions of one code.")
        everyone: Population
        if isinstance(population, Cohort) and engine.name == "local":
            _require_each_once(population)
            self._require_enough(population.require_events()["patient"].n_unique())
            return Index.of(population.code_counts(), sample.codes, most, engine.threads), originals
        from leeward.methods.censoring.streamed import Streamed

        if isinstance(population, Cohort):
            _require_each_once(population)
            columns = [
                name for name in ("patient", "code", "visit") if name in population.require_events().columns
            ]
            everyone = Streamed(
                engine, population.require_events().select(columns), sample.codes, most, originals
            )
        else:
            everyone = Streamed(engine, population, sample.codes, most, originals)
        self._require_enough(everyone.n)
        return everyone, originals

    def _require_enough(self, people: int) -> None:
        if self.k > people:
            raise GuaranteeUnreachable(
                f"`k` is {self.k:,} and the population has {people:,} people: no record can be hidden among so many. "
                "Choose a smaller k or give the whole population."
            )

    def _caps_of(self, sample: CodeCounts) -> Ints:
        """The cap of each code of the sample, never above its highest count there."""
        most = sample.most()
        if self.caps is None:
            return np.minimum(most, MOST_MENTIONS if self.cap is None else self.cap)
        given = [self.caps.get(code, self.cap or 0) for code in sample.codes]
        return np.minimum(most, np.array(given, np.int64))

    def _cap_notices(self, sample: CodeCounts, caps: Ints) -> list[str]:
        if self.caps is None or self.cap is not None:
            return []
        without = sum(code not in self.caps for code in sample.codes)
        if not without:
            return []
        mentions = int(sample.counts[caps[sample.values] == 0].sum())
        return [
            (
                f"{without:,} code{'s' if without > 1 else ''} of the sample without a cap: cap 0, "
                "all mentions censored "
                f"({mentions:,} mentions of codes with cap 0). Name them in `caps`, or give `cap` for the rest."
            )
        ]

    def _payload_of(self, cohort: Cohort, sample: CodeCounts) -> pl.DataFrame | None:
        """The payload of each record, in the order of the sample."""
        if not self.payload:
            return None
        columns = [] if cohort.patients is None else cohort.patients.columns
        for name in self.payload:
            if name not in columns or name in ("record", "codes"):
                listed = ", ".join(c for c in columns if c != "patient") or "none"
                raise BadInput(
                    f"{cohort.name}: no payload column '{name}' among the patients' columns: {listed}."
                )
        assert cohort.patients is not None  # for the types: its columns were just listed
        patients = cohort.patients.select("patient", *self.payload)
        _require_unique(patients["patient"], f"{cohort.name}: the patients' table")
        wanted = sample.patients.alias("patient").to_frame()
        return wanted.join(patients, on="patient", how="left", maintain_order="left").drop("patient")


def _require_contained(name: str, sample: CodeCounts, population: Population, originals: Multisets) -> None:
    """Every original must be contained in a population record, or the claim of 1/k counts no true owner (§4.6)."""
    lost = np.flatnonzero(population.counts(originals, limit=1) < 1)
    if not len(lost):
        return
    rows = np.sort(sample.rows[lost])[:ROWS_SHOWN].tolist()
    shown = ", ".join(map(str, rows)) + (", …" if len(lost) > len(rows) else "")
    raise BadInput(
        f"{name}: {len(lost):,} record{'s' if len(lost) > 1 else ''} of the sample that no record of the population "
        f"contains (beginning in rows {shown}). The sample must come from the population: check that both have the "
        "same codes, spelling and visit column, and that the population is complete."
    )


def _require_each_once(population: Cohort) -> None:
    """No patient may stand twice in the population: two records of one person would hide nobody (§4.6)."""
    if population.patients is not None:
        _require_unique(population.patients["patient"], f"{population.name}: the patients' table")
    events = population.require_events()
    if events["patient"].dtype != pl.String:
        return
    people = events.group_by("patient").agg(
        pl.col("row").min() if "row" in events.columns else pl.lit(0).alias("row")
    )
    alike = pl.col("patient").str.strip_chars().str.to_lowercase().is_duplicated()
    twice = people.filter(alike)
    if twice.height:
        rows = ", ".join(map(str, twice["row"].sort().head(ROWS_SHOWN).to_list()))
        raise BadInput(
            f"{population.name}: {twice.height:,} patients differ from another only in blanks or upper and lower case "
            f"(beginning in rows {rows}); one person must have one identifier, or k counts the same person twice."
        )


def _require_unique(patients: pl.Series, where: str) -> None:
    doubled = patients.is_duplicated()
    if doubled.any():
        rows = ", ".join(map(str, (np.flatnonzero(doubled.to_numpy())[:ROWS_SHOWN] + 1).tolist()))
        raise BadInput(
            f"{where} holds {patients.filter(doubled).n_unique():,} patients more than once (rows {rows}); "
            "keep one row for each."
        )


def _notices(cohort: Cohort, population: PopulationLike) -> list[str]:
    found = []
    if isinstance(population, Cohort):
        visits = ["visit" in source.require_events().columns for source in (cohort, population)]
        if visits[0] != visits[1]:
            having, lacking = ("sample", "population") if visits[0] else ("population", "sample")
            found.append(
                f"The {having} has a visit column and the {lacking} has none: mentions are counted unlike."
            )
    return found
