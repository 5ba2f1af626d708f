"""What a release is, in three answers: whom it is safe against, whom not, and what it cost.

A method says what its releases cost in its own terms (`costs` of its report); the command line, notebooks and the
report's first screen all show the same summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, Literal

from leeward.arrays import count_noun
from leeward.release import Release
from leeward.report.sections import number, percent

Tone = Literal["plain", "good", "warn", "bad"]

DOORS_SHOWN = 2
"""What is not protected, in a summary: so many sentences, and how many more there are."""


COUNTS_USELESS = 0.4
"""Mean relative error of counts above which they answer little: cohorts of 100 patients have 0.48 to 0.55 for pairs."""

NOT_MEASURED = "not measured; `leeward measure` with the source does"


@dataclass(frozen=True)
class Cost:
    """One figure of what a release cost: `value` of `what`, such as "26.3 %" "of the codes' occurrences …"."""

    value: str
    what: str
    tone: Tone = "plain"
    counts: bool = False
    """An error of counts. Where the first of these is bad, little is left, whatever the method."""

    def __str__(self) -> str:
        return f"{self.value} {self.what}"


@dataclass(frozen=True)
class Costs:
    """What a release cost: up to three figures, and where little is left, a sentence with what to try."""

    figures: tuple[Cost, ...] = ()
    little_left: str = ""


@dataclass(frozen=True)
class Summary:
    """The first screen of a report, and the last lines of a command.

    guarantee : the guarantee's name with its numbers.
    safe_against : the attacker against whom it holds.
    not_against : every sentence on what is not protected.
    costs : up to three figures.
    little_left : empty unless the release is probably useless.
    risk : sentences on the guarantee's maximum risk.
    """

    guarantee: str
    safe_against: str
    not_against: tuple[str, ...]
    costs: tuple[Cost, ...] = field(default=())
    little_left: str = ""
    risk: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "guarantee": self.guarantee,
            "safe_against": self.safe_against,
            "risk": list(self.risk),
            "not_against": list(self.not_against),
            "costs": [{"value": each.value, "what": each.what, "tone": each.tone} for each in self.costs],
            "little_left": self.little_left or None,
        }


def summarize(release: Release, costs: Costs, risk: Sequence[str] = ()) -> Summary:
    """The summary of a release: its guarantee as the manifest states it, its maximum risk in words, and its costs."""
    guarantee = release.guarantee
    return Summary(
        guarantee=f"{guarantee['name']} ({numbers_of(guarantee)})",
        safe_against=sentence(str(guarantee["attacker"])),
        not_against=tuple(begun(str(each)) for each in guarantee["not_protected"]),
        costs=costs.figures,
        little_left=costs.little_left or counts_useless(costs.figures),
        risk=tuple(risk),
    )


def headline(release: Release) -> str:
    """`1,200 records released with the method linked (k = 5)`; a catalogue has no records."""
    numbers = numbers_of(release.guarantee)
    if not release.records:
        return f"Catalogue of noisy counts ({numbers})"
    return f"{count_noun('record', release.records)} released with the method {release.method} ({numbers})"


def sentence(attacker: str) -> str:
    """The attacker as a sentence; some methods leave out who it is."""
    whole = f"Somebody who {attacker}" if attacker.startswith("knows ") else attacker
    return begun(whole if whole.endswith(".") else f"{whole}.")


def begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def numbers_of(guarantee: Mapping[str, Any]) -> str:
    """`k = 5, m = 2`; an epsilon of 2.0 is 2."""
    found = {key: guarantee[key] for key in ("k", "m", "epsilon", "delta") if key in guarantee}
    return ", ".join(
        f"{key} = {value:g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in found.items()
    )


def share(value: float, what: str, *, warn: float, bad: float) -> Cost:
    """A share as a cost: the larger the worse."""
    return Cost(percent(value), what, "bad" if value > bad else "warn" if value > warn else "good")


def cost_of_share(value: float, what: str, *, warn: float, bad: float) -> Cost:
    """A share that is left: the smaller the worse."""
    return Cost(percent(value), what, "bad" if value < bad else "warn" if value < warn else "good")


def codes_gone(gone: int, total: int, what: str) -> Cost:
    """Codes that are lost: more than half are bad."""
    tone: Tone = "bad" if 2 * gone > total else "warn" if gone else "good"
    return Cost(f"{number(gone)} of {number(total)}", what, tone)


def counts_off(errors: float, what: str) -> Cost:
    return replace(share(errors, what, warn=0.1, bad=COUNTS_USELESS), counts=True)


def counts_useless(figures: Sequence[Cost]) -> str:
    """Sentence if the first error of counts says that they are mostly wrong, else empty."""
    first = next((each for each in figures if each.counts), None)
    if first is None or first.tone != "bad":
        return ""
    return f"{first}; try a smaller k or m, codes of fewer digits, or more patients."


def mean_errors(measures: Mapping[str, Any]) -> dict[int | str, float]:
    """The mean relative error of counts by workload: random sets by their number of codes, and `frequent`."""
    found: dict[int | str, float] = {}
    for each in (measures.get("are") or {}).get("workloads", ()):
        if each.get("queries"):
            found.setdefault(each["size"] if each["name"] == "random" else "frequent", each["are"])
    return found


def errors_of_pairs_and_triples(measures: Mapping[str, Any]) -> tuple[Cost, ...]:
    """Errors of counts of random pairs and triples; where they were not measured, of whatever was."""
    errors = mean_errors(measures)
    wanted = [
        counts_off(errors[size], f"mean error of counts of {name} of codes")
        for size, name in ((2, "pairs"), (3, "triples"))
        if size in errors
    ]
    if not wanted and "frequent" in errors:
        return (counts_off(errors["frequent"], "mean error of counts of frequent sets of codes"),)
    return tuple(wanted)


def result_html(
    release: Release,
    verification: Mapping[str, Any],
    measures: Mapping[str, Any],
    report: Path,
    summary: Summary,
) -> str:
    """What the release is safe against, what not, what it cost, and where its files are, as HTML."""
    checks = verification["checks"]
    source = measures.get("source", {})
    rows = {
        **({"little is left": summary.little_left} if summary.little_left else {}),
        "guarantee": summary.guarantee,
        "safe against": summary.safe_against,
        **({"risk": " ".join(summary.risk)} if summary.risk else {}),
        "not against": " ".join(summary.not_against),
        "it cost": "; ".join(map(str, summary.costs)) or NOT_MEASURED,
        "source": f"{source.get('name', '–')}: {number(source.get('patients'))} patients, "
        f"{number(source.get('codes'))} codes",
        "verified": f"{sum(check['passed'] for check in checks)} of {len(checks)} checks passed",
    }
    links = {"for the recipient": release.share / "README.md", "report": report}
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td "
        f"style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    cells += "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>"
        f"<a href='{escape(str(path))}'>{escape(str(path))}</a></td></tr>"
        for name, path in links.items()
    )
    title = escape(headline(release))
    return f"<table><caption style='text-align:left'><b>{title}</b></caption><tbody>{cells}</tbody></table>"
