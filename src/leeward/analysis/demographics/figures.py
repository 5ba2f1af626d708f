"""Figures of releases with demographics, as `measures.json` has them."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class ColumnLoss(Figures):
    """The mean LM of a demographic column over the records, and the level asked for in questions."""

    column: str
    loss: float
    asked: str


@dataclass(frozen=True)
class AreAbove(Figures):
    """The average relative error of one way to answer."""

    way: str
    are: float


@dataclass(frozen=True)
class Asked(Figures):
    """Questions of `codes` codes in a cell of demographics with a true count of at least `at_least`."""

    codes: int
    at_least: int
    questions: int
    errors: tuple[AreAbove, ...]

    def are(self, way: str) -> float | None:
        """The ARE of a way to answer."""
        return next((each.are for each in self.errors if each.way == way), None)


@dataclass(frozen=True)
class KnownBy(Figures):
    """Patients of the source who are alone, or among fewer than k, in their exact demographics and `codes` codes."""

    codes: int
    patients: int
    unique: int
    below_k: int
    exact: bool = True


@dataclass(frozen=True)
class JointRisk(Figures):
    """The risk before release, by what is known."""

    k: int
    patients: int
    before: tuple[KnownBy, ...]


@dataclass(frozen=True)
class JointCandidates(Figures):
    """Pieces of knowledge (exact demographics of a real patient, with up to m codes) looked up in the release."""

    by_demographics: int
    sets: int
    smallest: int
    below_k: int


@dataclass(frozen=True)
class WholePatient(Figures):
    """What a release with demographics keeps, and what an attacker finds in it."""

    classes: int
    smallest_class: int
    loss: float
    columns: tuple[ColumnLoss, ...]
    asked: tuple[Asked, ...]
    outside_bounds: int
    risk: JointRisk
    after: JointCandidates
