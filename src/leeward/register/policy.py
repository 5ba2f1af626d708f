"""What may be released beside what is out already: for every earlier release, the first rule that fits.

A rule allows both, asks for a reason, or refuses. A house can be stricter, never more lenient.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from leeward.errors import BadInput
from leeward.fields import check_keys
from leeward.register.store import Facts, Known

if TYPE_CHECKING:
    from leeward.composition.bound import Bound

Outcome = Literal["allow", "reason", "refuse"]
OUTCOMES: Final = ("allow", "reason", "refuse")
"""From the most lenient to the strictest."""

SMALLEST_K: Final = 2


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A new release beside an earlier one.

    versions : whether one of them was refreshed, perhaps several times, to make the other
    common, only_new, only_old : patients; None where they cannot be compared
    folder, same_content : where the new one is, and whether both say the same; None until it is written
    """

    new: Facts
    old: Known
    versions: bool = False
    common: int | None = None
    only_new: int | None = None
    only_old: int | None = None
    folder: Path | None = None
    same_content: bool | None = None
    bound: Bound | None = None

    @property
    def k(self) -> int:
        return max(self.new.k or SMALLEST_K, self.old.facts.k or SMALLEST_K)


@dataclass(frozen=True)
class Rule:
    """`sentence`: the proof, or what the release may give away.

    measured : whether candidates below k refuse it. Not where the rule's sentence says already what is told: rows of
        one master are recognized by their content, and a version has its records under their numbers
    """

    name: str
    fits: Callable[[Pair], bool]
    outcome: Outcome
    sentence: str
    measured: bool = False


def _is_same(pair: Pair) -> bool:
    """The same patients, by the same method and parameters, and, as soon as it can be told, the same content."""
    one, other = pair.new, pair.old.facts
    asked = (one.method, one.parameters) == (other.method, other.parameters)
    return asked and pair.only_new == pair.only_old == 0 and pair.same_content is not False


def _of_one_master(pair: Pair) -> bool:
    """Cohorts of one master, or a cohort and its master."""
    return pair.new.master is not None and pair.new.master in (pair.old.facts.master, pair.old.share)


def _carries_payload(pair: Pair) -> bool:
    return pair.new.payload or pair.old.facts.payload


def _differs_by_few(pair: Pair) -> bool:
    return any(0 < (each or 0) < pair.k for each in (pair.only_new, pair.only_old))


RULES: Final = (
    Rule(
        "disjoint",
        lambda pair: pair.common == 0,
        "allow",
        "No patient is in both: the data behind them are independent, so each guarantee holds beside the other.",
    ),
    Rule(
        "same",
        _is_same,
        "allow",
        "The same content as the earlier release: nothing is new but the order of the rows.",
    ),
    Rule(
        "version",
        lambda pair: pair.versions,
        "allow",
        "A later version of it: rows that were published stay, and every version and every difference keeps k.",
    ),
    Rule(
        "members",
        lambda pair: _of_one_master(pair) and not _carries_payload(pair),
        "allow",
        "Rows of one master, as the master has them, without a payload: both follow from the master and the list of "
        "members. They tell who is in which cohort.",
    ),
    Rule(
        "difference",
        _differs_by_few,
        "refuse",
        "Fewer than k patients are in one of them and not in the other: what differs is a statement about these few.",
    ),
    Rule(
        "payloads",
        lambda pair: _of_one_master(pair) and _carries_payload(pair),
        "reason",
        "Cohorts of one master with payloads: members of both are recognized by their rows, which joins the payloads.",
    ),
    Rule(
        "unknown",
        lambda pair: pair.common is None,
        "reason",
        "The patients cannot be compared (no identifiers, another or a lost key), which counts as complete overlap.",
        measured=True,
    ),
    Rule(
        "other",
        lambda pair: True,
        "reason",
        "Patients are in both, and no proof covers what both give away together.",
        measured=True,
    ),
)
"""The first rule that fits is used."""

NAMES: Final = tuple(rule.name for rule in RULES)


@dataclass(frozen=True)
class Decision:
    """The rule for a pair, and what it comes to in this house."""

    pair: Pair
    rule: Rule
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """What the register and custody keep of it: counts and names of releases, of nobody's patients."""
        pair, old = self.pair, self.pair.old.facts
        return {
            "id": old.id,
            "recipient": old.recipient,
            "line": old.line,
            "version": old.version,
            "method": old.method,
            "common": pair.common,
            "only_here": pair.only_new,
            "only_there": pair.only_old,
            "rule": self.rule.name,
            "outcome": self.outcome,
            "sentence": self.rule.sentence,
            "bound": None if pair.bound is None else pair.bound.to_json(),
        }

    def __str__(self) -> str:
        pair, old = self.pair, self.pair.old.facts
        said = f"release {old.id}"
        if old.recipient:
            said += f" for {old.recipient}"
        if pair.common is not None:
            said += (
                f" ({pair.common:,} patients in both, {pair.only_new:,} only here, {pair.only_old:,} only there; "
                f"k = {pair.k})"
            )
        said += f": {self.rule.sentence}"
        if pair.bound is not None:
            return f"{said} Measured: fewest candidates {pair.bound.fewest:,}, {pair.bound.below:,} patients below k."
        return f"{said} Nothing was measured." if self.rule.outcome == "reason" else said


def check_policy(stricter: Mapping[str, str]) -> None:
    """BadInput for an unknown rule, and for an outcome that is none or more lenient than the rule's own."""
    check_keys(stricter, NAMES, "register.policy")
    for rule in RULES:
        asked = stricter.get(rule.name, rule.outcome)
        if asked not in OUTCOMES or OUTCOMES.index(asked) < OUTCOMES.index(rule.outcome):
            allowed = " or ".join(OUTCOMES[OUTCOMES.index(rule.outcome) :])
            raise BadInput(f"`register.policy.{rule.name}` is {allowed}: a house can only be stricter.")


def decide(pair: Pair, stricter: Mapping[str, str]) -> Decision:
    """The first rule that fits, and its outcome. Patients with fewer than k candidates refuse what is not proved."""
    rule = next(rule for rule in RULES if rule.fits(pair))
    outcome: Any = stricter.get(rule.name, rule.outcome)
    if outcome == "reason" and rule.measured and pair.bound is not None and pair.bound.below > 0:
        outcome = "refuse"
    return Decision(pair, rule, outcome)


def may_pool(one: str | None, other: str | None, pools: Sequence[Collection[str]]) -> bool:
    """Whether two recipients may put their releases together. Everybody may, but for two of whom the house knows that
    they are in different groups."""
    known = [{group for group, names in enumerate(pools) if name in names} for name in (one, other)]
    return one == other or not all(known) or not known[0].isdisjoint(known[1])
