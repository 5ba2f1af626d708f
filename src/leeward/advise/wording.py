"""The advice for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from leeward.advise.recommendation import CONFIDENCE, Ready, Recommendation
from leeward.advise.rules import Candidate
from leeward.errors import BadInput
from leeward.fields import nearest

MARK = {"serves": "+", "with care": "~", "does not": "-"}
"""Beside the words, for a quick look."""


def lines_of(found: Recommendation, files: Sequence[str] = ()) -> list[str]:
    """The whole advice. `files`: where the specs were written, in the order of `ready`."""
    recipient = found.situation.plan.recipient
    lines = [f"Data: {_data(found)}", f"Recipient: {recipient.who}"]
    if recipient.controls:
        lines.append(f"Declared controls (no number rests on them): {', '.join(recipient.controls)}")
    model, reason = found.sharing
    lines += ["", f"Sharing model: {model}. {reason[:1].upper()}{reason[1:]}.", "", "Numbers"]
    lines += [f"  {step.name}: {step.value}\n      {step.because}" for step in found.steps]
    lines += ["", "Methods, best first"]
    for place, each in enumerate(found.methods, start=1):
        lines += _of_candidate(place, each)
    lines += ["", f"Confidence: {CONFIDENCE}.", ""]
    if not found.best:
        nearest_ones = " What comes nearest:" if found.ready else ""
        lines.append(f"No method serves an analysis of this plan on these data.{nearest_ones}")
    for place, ready in enumerate(found.ready, start=1):
        lines += _of_ready(place, ready, files[place - 1] if place <= len(files) else None)
    lines += ["", "Questions for people", *(f"  - {each}" for each in found.questions)]
    if found.situation.facts.kind == "events":
        lines += ["", "For the reasons of a method: --why METHOD"]
    return lines


def _of_ready(place: int, ready: Ready, file: str | None) -> list[str]:
    head = f"To run {place}, {ready.method}:"
    if ready.spec is None:
        return [head, *(f"  {command}" for command in ready.commands)]
    if file is not None:
        lines = [head, f"  leeward protect {file} -o release-{ready.method}"]
    else:
        method = ", ".join(f"{key}: {_plain(value)}" for key, value in ready.spec["method"].items())
        lines = [head, f"  method: {{{method}}}   (whole specs: -o FOLDER)"]
    if ready.spec.get("drop"):
        listed = ", ".join(ready.spec["drop"])
        lines.append(
            f"  left out, because no analysis of the plan needs them: {listed} (`keep` names others)"
        )
    return lines


def why_lines(found: Recommendation, method: str) -> list[str]:
    """The chain of reasons for one method. BadInput for an unknown one."""
    known = [each.name for each in found.methods]
    if method not in known:
        raise BadInput(f"--why: unknown method `{method}`{nearest(method, known)}")
    place = known.index(method)
    each = found.methods[place]
    lines = [f"{method}: {each.title}", f"Place {place + 1} of {len(known)}.", f"Attacker: {each.attacker}"]
    if each.closed is not None:
        lines.append(f"Closed: {each.closed[0]} [{each.closed[1]}]")
    lines += [f"{one.line}: {one.verdict}, because {one.reason} [{one.source}]" for one in each.findings]
    return [*lines, f"Order: {found.to_json()['order']}"]


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
    vocabulary = f" ({facts.vocabulary})" if facts.vocabulary else ""
    also = f"; {', '.join(extra)}" if extra else ""
    return (
        f"{facts.patients:,} patients, {facts.codes:,} distinct codes{vocabulary}, {facts.mean_codes:g} a patient"
        f"{also}; codes that nobody else has single out {unique} of the patients"
    )


def _of_candidate(place: int, each: Candidate) -> list[str]:
    if each.closed is not None:
        return [f"  {place}. {each.name}: closed, {each.closed[0]}"]
    lines = [f"  {place}. {each.name}: {each.title}", f"      against: {each.attacker}"]
    return lines + [
        f"      {MARK[one.verdict]} {one.line}: {one.verdict}, {one.reason}" for one in each.findings
    ]


def _plain(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
