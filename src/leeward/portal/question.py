"""A question as a person writes it, and the words and commands that it is shown with."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from leeward.errors import BadInput
from leeward.portal.store.rows import Row
from leeward.queries.answer.plan import IndexSession, Plan, Question
from leeward.queries.language.query import parse, write_term
from leeward.queries.language.vocabulary import Terms, Vocabulary
from leeward.queries.privacy.mechanism import Unit


class Request(BaseModel):
    """A question as a person writes it: the fields of a form or of the interface for programs.

    `epsilon` or `within` says how exact; `within` is turned into the least ε.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    terms: str = Field(
        max_length=20_000, description="Terms joined by & | ! and parentheses: 'fever & (cough | rash)'."
    )
    conditions: dict[str, str] = Field(
        {}, description="Quasi-identifier -> value, range a..b or beginning a*."
    )
    by: str | None = Field(None, description="One count for each value of a quasi-identifier.")
    most: int | None = Field(None, description="In how many of its bins one patient may count.")
    count: Unit | None = None
    unit: Unit = "patient"
    epsilon: str | float | None = None
    within: float | None = Field(
        None, description="Half-width of the 95 % interval in patients, instead of epsilon."
    )
    large_noise: bool = Field(
        False, description="Pay also for noise that is larger than what it may measure."
    )

    @field_validator("by", "count", "epsilon", "within", mode="before")
    @classmethod
    def _none_for_blank(cls, value: Any) -> Any:
        return None if value == "" else value

    def to_json(self) -> dict[str, Any]:
        """Fields that repeat the question; the precision as ε."""
        found = self.model_dump(exclude={"within", "large_noise"})
        return {name: value for name, value in found.items() if value not in (None, {}, "")}


def request_of(fields: Mapping[str, Any]) -> Request:
    """A request from its fields. BadInput for another field or kind."""
    try:
        return Request.model_validate(fields)
    except ValidationError as error:
        raise BadInput(faults_of(error.errors())) from None


def faults_of(errors: Iterable[Any]) -> str:
    """Pydantic's errors by field name, without values."""
    faults = []
    for each in errors:
        place = [str(part) for part in each["loc"] if part not in ("body", "query", "path")]
        faults.append(f"`{'.'.join(place)}`: {each['msg']}" if place else each["msg"])
    return "; ".join(faults)


def at_price(request: Request, epsilon: int) -> Question:
    """What is planned, at a price of `epsilon` micro-ε."""
    return Question(
        query=parse(request.terms, {name: text for name, text in request.conditions.items() if text.strip()}),
        epsilon=epsilon,
        unit=request.unit,
        counted=request.count,
        by=request.by,
        most=request.most,
    )


def words_of(session: IndexSession, plan: Plan) -> str:
    """A planned question with its terms as a person calls them, codes with their titles, and its conditions."""
    terms = plan.query.terms_text(lambda name: write_term(called(session.index.terms, name)))
    conditions = [f"{each.qid}={each.text()}" for each in plan.query.predicates]
    return "; ".join([terms, *conditions])


def called(terms: Vocabulary, name: str) -> str:
    """A term as a person calls it; a code with its title."""
    title = terms.title_of(name)
    return title if isinstance(terms, Terms) or title == name else f"{name} {title}"


def command_of(row: Row, index: Path, person: str) -> str:
    """The command that gives the same answer on the custodian's computer, at no cost."""
    found = row["request"]
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
    found = row["request"]
    arguments = [repr(row["index"]), repr(found["terms"])]
    fields = ("conditions", "by", "most", "count", "unit", "epsilon")
    arguments += [f"{name}={found[name]!r}" for name in fields if found.get(name) is not None]
    return f"leeward.connect({url!r}, token=TOKEN).ask({', '.join(arguments)})"
