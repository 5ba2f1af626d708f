"""A question as a person writes it, and the words and commands that it is shown with."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from leeward.errors import BadInput
from leeward.portal.store.rows import Row
from leeward.queries.answer.plan import Plan, Question
from leeward.queries.answer.session import IndexSession
from leeward.queries.language.query import parse, quoted
from leeward.queries.privacy.mechanism import Unit

FIELDS: Final = frozenset({"terms", "conditions", "by", "most", "count", "unit", "epsilon", "within"})


@dataclass(frozen=True, kw_only=True)
class Request:
    """A question as a person writes it: the fields of a form or of the interface for programs.

    `epsilon` or `within` (a half-width of the 95 % interval) says how exact; `within` is turned into the least ε.
    """

    terms: str
    conditions: Mapping[str, str]
    by: str | None = None
    most: int | None = None
    count: str | None = None
    unit: str = "patient"
    epsilon: str | None = None
    within: float | None = None
    large_noise: bool = False
    """Pay also for noise that is larger than what it may measure."""

    def to_json(self) -> dict[str, Any]:
        """What asks the same again; the precision as ε."""
        found = {
            "terms": self.terms, "conditions": dict(self.conditions), "by": self.by, "most": self.most,
            "count": self.count, "unit": self.unit, "epsilon": self.epsilon,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value not in (None, {}, "")}


def request_of(found: Any) -> Request:
    """A request from decoded JSON; BadInput for another field or kind."""
    if not isinstance(found, dict) or not set(found) <= FIELDS | {"large_noise"}:
        raise BadInput(f"a question is an object with the fields {', '.join(sorted(FIELDS))}.")
    terms, conditions = found.get("terms"), found.get("conditions", {})
    if not isinstance(terms, str) or len(terms) > 2000:
        raise BadInput("`terms` is a text such as 'sore throat & fever'.")
    if not isinstance(conditions, dict) or not all(
        isinstance(name, str) and isinstance(value, str) for name, value in conditions.items()
    ):
        raise BadInput("`conditions` maps names of quasi-identifiers to texts.")
    for name in ("by", "count", "unit"):
        if not isinstance(found.get(name, ""), str | None):
            raise BadInput(f"`{name}` is a text.")
    most, epsilon, within = found.get("most"), found.get("epsilon"), found.get("within")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int)):
        raise BadInput("`most` is a whole number.")
    for name, value in (("epsilon", epsilon), ("within", within)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | str)):
            raise BadInput(f"`{name}` is a number.")
    try:
        width = None if within in (None, "") else float(str(within))
    except ValueError:
        raise BadInput("`within` is a number of patients, for example 20.") from None
    return Request(
        terms=terms,
        conditions=conditions,
        by=found.get("by") or None,
        most=most,
        count=found.get("count") or None,
        unit=found.get("unit") or "patient",
        epsilon=None if epsilon in (None, "") else str(epsilon),
        within=width,
        large_noise=found.get("large_noise") is True,
    )


def at_price(request: Request, epsilon: int) -> Question:
    """What is planned, at a price of `epsilon` micro-ε."""
    return Question(
        query=parse(request.terms, {name: text for name, text in request.conditions.items() if text.strip()}),
        epsilon=epsilon,
        unit=cast(Unit, request.unit),  # another is refused with the plan
        counted=cast(Unit | None, request.count),
        by=request.by,
        most=request.most,
    )


def words_of(session: IndexSession, plan: Plan) -> str:
    """A planned question with its terms as a person calls them, and its conditions."""
    terms = " & ".join(quoted(session.index.terms.shown(name)) for name in plan.query.terms)
    conditions = [f"{each.qid}={each.text()}" for each in plan.query.predicates]
    return "; ".join([terms, *conditions])


def command_of(row: Row, index: Path, person: str) -> str:
    """The command that gives the same answer on the custodian's computer, at no cost."""
    found = json.loads(row["request"])
    words = ["leeward", "query", str(index), found["terms"]]
    for name, value in sorted(found.get("conditions", {}).items()):
        words += ["--where", f"{name}={value}"]
    for flag in ("by", "most", "unit", "epsilon"):
        if found.get(flag) is not None:
            words += [f"--{flag}", str(found[flag])]
    if found.get("count"):
        words += ["--count", f"{found['count']}s"]
    words += ["--project", row["project"], "--user", person]
    return shlex.join(words)


def python_of(row: Row, url: str) -> str:
    """The call that gives the same answer through this portal, at no cost."""
    found = json.loads(row["request"])
    arguments = [repr(row["index"]), repr(found["terms"])]
    fields = ("conditions", "by", "most", "count", "unit", "epsilon")
    arguments += [f"{name}={found[name]!r}" for name in fields if found.get(name) is not None]
    return f"leeward.connect({url!r}, token=TOKEN).ask({', '.join(arguments)})"
