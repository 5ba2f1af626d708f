"""Bodies and replies of the interface for programs, as pydantic models: what OpenAPI describes is what is sent.

A reply holds the fields that its model names and no other, whatever the row that it is made from holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from leeward.portal.question import Request as Question

Number = int | float
Interval = tuple[Number, Number]


class Place(BaseModel):
    """What a question is asked of: who pays, and an index."""

    project: str
    index: str


class PlacedQuestion(Place, Question):
    """A question of a project to an index."""

    def question(self) -> Question:
        return Question(**self.model_dump(exclude=set(Place.model_fields)))


class Batch(Place):
    """Several questions of a project to an index."""

    questions: list[Question]


class Allotment(Place):
    """What a project may spend of an index, until a date such as 2027-03-31."""

    epsilon: str
    ends: str
    reason: str
    most_an_answer: str = Field(
        default="", description="The largest ε of one answer; empty: as much as is left."
    )
    first_come: bool = Field(
        default=False, description="The cap goes to whoever asks first: allotments may exceed it together."
    )


class Verdict(BaseModel):
    """Why it is confirmed."""

    reason: str = ""


class NewToken(BaseModel):
    """A token's project, its scope (read or ask), how many days it lasts, and its name."""

    project: str
    scope: str
    name: str
    days: int = 0


PROBLEM: Final = "application/problem+json"


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    request: str = Field(description="Number of the request, for the portal's administrator.")
    left: float | None = Field(
        default=None, description="ε that the project has left, where it does not pay."
    )


class Me(BaseModel):
    """Who asks."""

    id: str
    name: str
    roles: list[str]
    projects: Mapping[str, str] = Field(description="Project -> role in it.")
    scope: str | None = Field(description="Of a token: read or ask.")


class Named(BaseModel):
    id: str
    name: str


class Balance(Named):
    """An index that a project may ask, and its ε: the most, and what is left."""

    most: float
    left: float
    ends: str
    most_an_answer: float | None = Field(description="The largest ε of one answer; null: as much as is left.")


class Project(Named):
    """A project. Who sees names only does not get its indexes."""

    indexes: list[Balance] | None = None


class QuasiIdentifier(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    name: str
    kind: str
    domain: list[Any] | None


class Index(BaseModel):
    """What is public about an index."""

    row: str
    vocabulary: str
    vocabulary_public: bool
    example: str = Field(description="A question with names of this vocabulary.")
    max_rows_per_patient: int | None
    synthetic: bool
    unit: str
    threshold: int | None
    accounting: str
    delta: float | None
    charge_projects_separately: bool
    qids: list[QuasiIdentifier]


class Terms(BaseModel):
    """Terms as a question joins them."""

    terms: str = Field(max_length=10_000)


class TermSet(Terms):
    """Terms under a name; changed when and by whom."""

    name: str
    person: str
    changed: str


class Price(BaseModel):
    """What a question costs, and how exact its answer is. Amounts are ε."""

    question: str
    words: str
    epsilon: float
    price: float = Field(description="What it takes now: 0 where it was asked before.")
    left: float
    left_after: float
    enough: bool
    half_width: Number
    confidence: float
    bins: int
    half_width_of_all: Number = Field(description="Of all bins at once.")
    likelihood_factor: float = Field(
        description="So many times as likely the answer is at most with any one unit as without."
    )
    warning: str | None = Field(description="What to think of before it is paid.")


class Sum(BaseModel):
    """Of the bins of a histogram, with its own interval."""

    sum: Number
    interval: Interval


class Answer(BaseModel):
    """Noisy counts, with the 95 % interval of each. A count below `threshold` is null."""

    query: str
    by: str | None = Field(default=None, description="The quasi-identifier with a count for each value.")
    answer: Number | Mapping[str, Number | None] | None
    interval: Interval | Mapping[str, Interval | None] | None
    half_width_of_all: Number | None = Field(default=None, description="Of all bins of a histogram at once.")
    total: Sum | None = Field(default=None, description="Of a histogram's bins; null where one is hidden.")
    likelihood_factor: float
    confidence: float
    epsilon: float
    unit: str
    counted: str
    mechanism: str
    sensitivity: Number
    expected_error: float
    threshold: int | None
    vocabulary_public: bool
    stored: bool
    cost: float
    remaining: float


class Rehearsal(Answer):
    """An answer about made-up patients."""

    dry_run: Literal[True]


class PaidAnswer(Answer):
    """An answer with its identifier."""

    id: str


class PaidAnswers(BaseModel):
    answers: list[PaidAnswer]


class Digest(BaseModel):
    """That a question was answered: all that an auditor sees."""

    id: str
    project: str
    index: str
    key: str
    time: str


class StoredAnswer(Answer, Digest):
    """An answer, and which project asked when."""


class ListedAnswer(BaseModel):
    """An answer in a list; its counts are at its own address."""

    id: str
    index: str
    question: str
    person: str
    time: str
    cost: float


class Proposed(BaseModel):
    """What is proposed; amounts are micro-ε. Which fields there are depends on its kind."""

    name: str | None = None
    index: str | None = None
    epsilon: int | None = None
    most_an_answer: int | None = None
    first_come: bool | None = None
    ends: str | None = None
    data_set: str | None = None
    parent: str | None = None
    epsilon_total: int | None = None
    threshold: int | None = None
    unit: str | None = None
    place: str | None = Field(default=None, description="Where an index's ledger is; never a password.")
    digest: str | None = None
    recipients: list[str] | None = None
    kind: str | None = Field(default=None, description="Of what is to start again.")
    what: str | None = None
    person: str | None = None
    roles: list[str] | None = None


class Proposal(BaseModel):
    """A proposal, and what was decided."""

    id: str
    kind: Literal["index", "allotment", "release", "start", "account", "reset"]
    what: str
    state: Literal["open", "confirmed", "declined", "withdrawn"]
    project: str | None
    project_name: str | None
    index_name: str | None
    recipient_names: list[str]
    body: Proposed
    proposer: str
    proposer_name: str
    reason: str
    created: str
    decider: str | None
    decider_name: str
    answer: str | None
    decided: str | None


class Made(BaseModel):
    id: str


class Decided(Made):
    state: Literal["confirmed"]


class Release(Named):
    """A release, until when it may be downloaded, and path -> SHA-256 of its files."""

    ends: str | None
    files: Mapping[str, str]


class LogEntry(BaseModel):
    """An entry of a log: further fields are those of its event."""

    model_config = ConfigDict(extra="allow")

    log: str
    number: int
    time: str
    hash: str
    event: str


class Token(Made):
    """A token. Its text is given once."""

    token: str
    ends: str
