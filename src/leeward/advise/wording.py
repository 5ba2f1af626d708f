"""The advice for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from leeward.advise.recommendation import CONFIDENCE, Recommendation
from leeward.advise.rules import Candidate
from leeward.errors import BadInput
from leeward.fields import nearest

MARK = {"serves": "+", "with care": "~", "does not": "-"}
"""Beside the words, for a quick look."""


def lines_of(found: Recommendation, files: Sequence[str] = ()) -> list[str]:
    """The whole advice. `files`: where the specs were written, in the order of `ready`."""
    facts, plan = found.situation.facts, found.situation.plan
    lines = [f"Data: {_data(found)}", f"Recipient: {plan.recipient.who}"]
    if plan.recipient.controls:
        lines.append(f"Declared controls (no number rests on them): {', '.join(plan.recipient.controls)}")
    lines += ["", f"Sharing model: {found.sharing[0]}. {_sentence(found.sharing[1])}", "", "Numbers"]
    lines += [f"  {step.name}: {step.value}\n      {step.because}" for step in found.steps]
    lines += ["", "Methods, best first"]
    for place, each in enumerate(found.methods, start=1):
        lines += _of_candidate(place, each)
    lines += ["", f"Confidence: {CONFIDENCE}.", ""]
    if not found.best:
        nearest_ones = " What comes nearest:" if found.ready else ""
        lines.append(f"No method serves a line of this plan on these data.{nearest_ones}")
    for place, ready in enumerate(found.ready, start=1):
        lines.append(f"To run {place}, {ready.method}:")
        if ready.spec is None:
            lines += [f"  {command}" for command in ready.commands]
        elif place <= len(files):
            lines.append(f"  leeward protect {files[place - 1]} -o release-{ready.method}")
        else:
            method = ", ".join(f"{key}: {_plain(value)}" for key, value in ready.spec["method"].items())
            lines.append(f"  method: {{{method}}}   (whole specs: -o FOLDER)")
        if ready.spec is not None and ready.spec.get("drop"):
            lines.append(
                f"  left out, as no line of the plan needs them: {', '.join(ready.spec['drop'])} (`keep` names others)"
            )
    lines += ["", "Questions for people"]
    lines += [f"  - {each}" for each in found.questions]
    if facts.kind == "events":
        lines.append("")
        lines.append("Why a method is where it is: --why METHOD")
    return lines


def why_lines(found: Recommendation, method: str) -> list[str]:
    """The chain of reasons for one method. BadInput for an unknown one."""
    known = {each.name: each for each in found.methods}
    if method not in known:
        raise BadInput(f"--why: unknown method `{method}`{nearest(method, known)}")
    each = known[method]
    place = [candidate.name for candidate in found.methods].index(method) + 1
    lines = [
        f"{method}: {each.title}",
        f"Place {place} of {len(found.methods)}.",
        f"Attacker: {each.attacker}",
    ]
    if each.closed is not None:
        lines.append(f"Closed: {each.closed[0]} [{each.closed[1]}]")
    lines += [f"{one.line}: {one.verdict}, because {one.reason} [{one.source}]" for one in each.findings]
    return [*lines, f"Order: {' '.join(found.to_json()['order'].split())}"]


def _data(found: Recommendation) -> str:
    facts = found.situation.facts
    if facts.kind == "notes":
        return f"{facts.mentions:,} notes of {facts.patients:,} patients"
    if facts.kind == "table":
        return f"a table of {facts.patients:,} patients, {facts.codes:,} columns"
    unique = ", ".join(f"{100 * share:.1f} % by {m}" for m, share in enumerate(facts.unique, start=1))
    extra = [text for text, there in (("ages", facts.ages), ("visits", facts.visit_codes)) if there]
    if facts.population is not None:
        extra.append(f"a population of {facts.population:,}")
    return (
        f"{facts.patients:,} patients, {facts.codes:,} distinct codes"
        + (f" ({facts.vocabulary})" if facts.vocabulary else "")
        + f", {facts.mean_codes:g} a patient"
        + (f"; {', '.join(extra)}" if extra else "")
        + f"; codes that nobody else has single out {unique} of the patients"
    )


def _of_candidate(place: int, each: Candidate) -> list[str]:
    if each.closed is not None:
        return [f"  {place}. {each.name}: closed, {each.closed[0]}"]
    lines = [
        f"  {place}. {each.name}: {each.title}",
        f"      against: {each.attacker}",
    ]
    return lines + [
        f"      {MARK[finding.verdict]} {finding.line}: {finding.verdict}, {finding.reason}"
        for finding in each.findings
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _plain(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
