"""The advice: sharing model, methods line by line, k, m and epsilon with their derivation, specs, open questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from leeward.advise.accuracy import posterior
from leeward.advise.plan import Counts, Query
from leeward.advise.risk import met, odds
from leeward.advise.rules import Candidate, candidates, noisy_accuracy, rules, total_epsilon
from leeward.advise.situation import Facts, Situation
from leeward.advise.specs import commands_of, exact_times, spec_of
from leeward.advise.trials import EXACT, Trial, after_trials

if TYPE_CHECKING:
    from leeward.advise.plan import Plan

BEST = 2
CONFIDENCE = (
    "the specs below were run once on these data and verified; other methods were not and are rated with "
    "care at best; `leeward explore` measures more"
)


class Step(NamedTuple):
    """A number of the advice and how it follows: `k = 14` from `1/0.075 = 13.3, rounded up`."""

    name: str
    value: str
    because: str


@dataclass(frozen=True)
class Ready:
    """What to run for a method: a spec without its source, or commands.

    trial : the spec, tried; None for commands, and where nothing was tried yet.
    """

    method: str
    spec: dict[str, Any] | None
    commands: tuple[str, ...] = ()
    trial: Trial | None = None

    def to_json(self) -> dict[str, Any]:
        trial = None if self.trial is None else self.trial.to_json()
        return {"method": self.method, "spec": self.spec, "commands": list(self.commands), "trial": trial}


@dataclass(frozen=True)
class Recommendation:
    situation: Situation
    sharing: tuple[str, str]
    methods: tuple[Candidate, ...]
    steps: tuple[Step, ...]
    ready: tuple[Ready, ...]
    questions: tuple[str, ...]

    @property
    def best(self) -> tuple[str, ...]:
        """The methods that are open and serve some line, best first."""
        return tuple(each.name for each in self.methods if each.serves_something)

    @property
    def untried(self) -> Ready | None:
        """The first spec that is to be tried before it is handed out."""
        return next((each for each in self.ready if each.spec is not None and each.trial is None), None)

    def to_json(self) -> dict[str, Any]:
        """As JSON. It has exact figures of the data: for the custodian."""
        plan = self.situation.plan
        limit = plan.limit
        return {
            "confidence": CONFIDENCE,
            "data": asdict(self.situation.facts),
            "recipient": {"who": plan.recipient.who, "declared_controls": list(plan.recipient.controls)},
            "threshold": None
            if limit is None
            else {"name": limit.name, "maximum": limit.maximum, "source": limit.cited},
            "sharing": {"model": self.sharing[0], "reason": self.sharing[1]},
            "order": " ".join(rules()["order"].split()),
            "methods": [each.to_json() for each in self.methods],
            "numbers": [each._asdict() for each in self.steps],
            "ready": [each.to_json() for each in self.ready],
            "questions": list(self.questions),
        }

    def __repr__(self) -> str:
        return f"Recommendation({', '.join(self.best) or 'no method'})"


def of_facts(
    plan: Plan, facts: Facts, codes: Sequence[str] = (), trials: Mapping[str, Trial] | None = None
) -> Recommendation:
    """The advice for a plan and facts of the data, after the trials of some methods' specs."""
    situation, trials = Situation(plan, facts), trials or {}
    found = after_trials(candidates(situation), trials)
    ready = tuple(
        Ready(name, None, tuple(commands_of(situation)))
        if name == "queries"
        else Ready(name, spec_of(name, situation, codes), trial=trials.get(name))
        for name in _chosen(found, trials)
    )
    return Recommendation(
        situation,
        sharing_of(situation, found),
        tuple(found),
        tuple(steps_of(situation)),
        ready,
        tuple(questions_of(situation, ready)),
    )


def _chosen(found: Sequence[Candidate], trials: Mapping[str, Trial]) -> list[str]:
    """The best methods, and the next open one to compare with; where none serves a line, those that were tried."""
    best = [each.name for each in found if each.serves_something]
    others = [each.name for each in found if each.closed is None and each.name not in (*best, *EXACT)]
    return [*best, *(others if best else [name for name in others if name in trials])][:BEST]


def sharing_of(situation: Situation, found: Sequence[Candidate]) -> tuple[str, str]:
    """The sharing model that discloses least and still serves the plan (NIST SP 800-188 asks this first)."""
    needing = [each.title for each in situation.plan.lines if not isinstance(each, Counts | Query)]
    if not needing and not situation.plan.keep and situation.facts.kind != "table":
        return _sharing_of_counts(situation)
    if not any(each.serves_something for each in found):
        return "none", "no method serves an analysis of this plan on these data; see why each is excluded"
    if situation.plan.recipient.who == "enclave":
        return (
            "records in an enclave",
            "some analyses need records; the recipient works where they are kept, and results are checked",
        )
    return "records", f"counts alone do not serve: {'; '.join(needing) or 'columns to keep'}"


def _sharing_of_counts(situation: Situation) -> tuple[str, str]:
    """Of a plan of counts: how they are shared, by what they cost."""
    total, most = total_epsilon(situation), situation.plan.epsilon
    if total <= most:
        return "counts", (
            f"every analysis is a count, and epsilon {total:.3g} of at most {most:g} pays for all of them: answer "
            f"them from an index, so that no record leaves"
        )
    if situation.facts.kind == "notes":
        return (
            "none",
            "text is not released, and the plan's counts cost more epsilon than it allows: plan fewer counts",
        )
    return "records", (
        f"every analysis is a count, but together they would cost epsilon {total:.3g}, more than the plan's {most:g}: "
        "fewer counts or a larger error would do without records"
    )


def steps_of(situation: Situation) -> Iterator[Step]:
    """k, m and epsilon, each with what it follows from."""
    limit, risk = situation.plan.limit, 1 / situation.k
    because = f"usual, not derived: the plan has no threshold. A maximum risk of {odds(risk)}"
    if limit is not None and limit.maximum is not None:
        because = (
            f"the smallest whole number with 1/k at most {limit.maximum:g} ({limit.name}: {limit.cited}); a maximum "
            f"risk of {odds(risk)}"
        )
    yield Step("k", str(situation.k), because)
    above = [f"{each.name} ({each.maximum:g})" for each, within in met(risk) if not within]
    if above:
        yield Step(
            "thresholds above which 1/k is", ", ".join(above), "as reported; see `threshold` of the plan"
        )
    if situation.facts.kind == "events":
        yield _step_of_m(situation)
    yield from _steps_of_costs(situation)


def _steps_of_costs(situation: Situation) -> Iterator[Step]:
    plan, total = situation.plan, total_epsilon(situation)
    for line in plan.lines:
        one = noisy_accuracy(situation, line)
        if one is not None:
            yield Step(
                f"epsilon for {line.title}",
                f"{one.epsilon:.6f} a count, {one.total:.3g} for {one.questions:,}",
                f"the smallest with which 95 of 100 counts are off by at most {one.half_width:,} patients (two-sided "
                "geometric noise, exact law)",
            )
    if total:
        allowed = "within" if total <= plan.epsilon else "above"
        belief = f"a belief of 50 % that somebody is in the data may become {100 * posterior(total):.1f} %"
        yield Step("epsilon in all", f"{total:.3g}", f"{allowed} the plan's {plan.epsilon:g}; {belief}")


def _step_of_m(situation: Situation) -> Step:
    knows = situation.plan.recipient.knows
    if situation.m is None:
        return Step("m", "all", "the attacker knows all codes of a patient")
    most = situation.facts.visit_codes or 0
    of_visits = f", and {knows.visits} visits of up to {most} codes" if knows.visits else ""
    return Step("m", str(situation.m), f"the attacker knows {knows.codes} codes of a patient{of_visits}")


WAYS_OUT = {
    "condensation": "Then add `coarsen_time: true`.",
    "k-anonymity": "Then name it among the `quasi_identifiers`.",
}
ALWAYS_ASKED = (
    "Which other data about these patients can the recipient or people around them access (registries, news)?",
    "Was any part of these patients released before, to anybody? Releases add up.",
    "What harm would a patient suffer from being found, or from a wrong guess?",
    "Which law and which ethics decision covers this use, and who signs?",
)


def questions_of(situation: Situation, ready: Sequence[Ready] = ()) -> list[str]:
    """What no program knows, for people to answer."""
    plan, facts, limit = situation.plan, situation.facts, situation.plan.limit
    found = [*ALWAYS_ASKED]
    if limit is None:
        found.append("Which maximum risk is acceptable here, and who decided it?")
    elif limit.read == "second-hand":
        found.append(
            f"Is {limit.maximum:g} the number that {limit.rule} gives for your case? It was read second-hand."
        )
    if plan.recipient.controls:
        controls = ", ".join(plan.recipient.controls)
        found.append(f"Are the declared controls ({controls}) in force? No number here rests on them.")
    found += [*_questions_of_the_public(situation), *_questions_of_times(situation, ready)]
    if plan.keep:
        found.append(
            f"Do {', '.join(plan.keep)} single out patients on their own? They are released unprotected with codes."
        )
    if facts.kind == "events" and not plan.sensitive:
        found.append(
            "Are there codes that no attacker may learn (HIV, addiction, abuse)? None was named as sensitive."
        )
    if facts.kind == "notes":
        found.append(
            "How many names does the annotator miss in your notes? Read a sample before anything is indexed."
        )
    return found


def _questions_of_the_public(situation: Situation) -> Iterator[str]:
    knows, kind = situation.plan.recipient.knows, situation.facts.kind
    assumed = f"{knows.codes} codes" if kind == "events" and knows.codes != "all" else ""
    if kind == "table":
        assumed = ", ".join(knows.columns)
    if situation.plan.recipient.who == "public" and assumed:
        yield (
            f"The release is public, and the plan assumes that nobody knows more than {assumed} of a patient: does "
            f"that hold for neighbours, employers and insurers?"
        )


def _questions_of_times(situation: Situation, ready: Sequence[Ready]) -> Iterator[str]:
    for each in ready:
        times = () if each.spec is None else exact_times(each.spec["method"], situation)
        if times:
            yield (
                f"{each.method} publishes every patient's {', '.join(times)} as it is: could anybody know when a "
                f"patient died or fell ill again (a notice in the paper, a colleague)? {WAYS_OUT[each.method]}"
            )
