"""Open an index with its ledger, and plan questions: bins, noise and price, from public information only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from leeward.errors import BadInput
from leeward.queries.index.counts import Index
from leeward.queries.index.store import Qid
from leeward.queries.language.query import Predicate, Query
from leeward.queries.ledger import budgets, families, opening
from leeward.queries.ledger.budgets import Terms
from leeward.queries.ledger.chain import digest, text_of
from leeward.queries.ledger.opening import Ledger
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.mechanism import KINDS, UNITS, Kind, Noise, Unit

LINK: Final = "ledger.json"
"""File in an index's folder: locates the ledger of its data set if that belongs to another index."""


@dataclass(frozen=True)
class IndexSession:
    """An index with the ledger that pays for its answers, and the terms on which it answers. Threads may share it."""

    index: Index
    ledger: Ledger
    terms: Terms
    kept: dict[tuple[str, str | None], str] = field(default_factory=dict, compare=False, repr=False)
    """Answers that were read, by key and by who pays for them anew: they never change."""


def open_session(path: str | Path, ledger_url: str | None = None, *, checked: bool = True) -> IndexSession:
    """Open an index and the ledger that pays for it: the one in its folder, or the one at a URL. BadInput for what
    is no index or of another version; LedgerUnreachable without a ledger that knows its data set, or (`checked`)
    where the ledger disagrees with its log or with a head that was remembered."""
    index = Index(path)
    ledger = opening.open_ledger(ledger_of(index.path) if ledger_url is None else ledger_url, index.path)
    terms = budgets.terms_of(ledger, index.meta.id)
    if checked:
        families.check_opening(ledger, index.meta.id)
    return IndexSession(index, ledger, terms)


def ledger_of(folder: Path) -> str | Path:
    """Location of the ledger of the index in `folder`: the folder, or the place named in its `ledger.json` for data
    indexed before."""
    link = folder / LINK
    if not link.is_file() or (folder / opening.EMBEDDED).is_file():
        return folder
    try:
        return Path(json.loads(link.read_text(encoding="utf-8"))["folder"])
    except (ValueError, KeyError, TypeError, OSError):
        raise BadInput(f"{link}: damaged; name the ledger with --ledger URL.") from None


MOST_BINS: Final = 1000
"""Bins of one histogram."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question before it is checked against an index."""

    query: Query
    epsilon: int
    """Micro-ε for the unit that is protected."""
    unit: Unit = "patient"
    """What is protected: a patient with all notes, or a single note."""
    counted: Unit | None = None
    """Distinct patients, or notes; by default the unit."""
    mechanism: Kind = "geometric"
    by: str | None = None
    """A quasi-identifier: one count for each of its values, for one price."""
    most: int | None = None
    """Of a histogram: one patient counts in no more than so many bins."""
    mode: str = "private"

    def __post_init__(self) -> None:
        if self.mode == "paper":
            raise BadInput(
                "`mode: paper` answers only what passes an exact minimum support, which tells on which side a count "
                "lies and is not differentially private. It exists for the replication study alone."
            )
        if self.mode != "private":
            raise BadInput(f"`mode` must be private; got {self.mode!r}.")
        if self.unit not in UNITS or self.counted not in (None, *UNITS):
            raise BadInput("`unit` and `count` must be patient or note.")
        if self.mechanism not in KINDS:
            raise BadInput(f"`mechanism` must be geometric or laplace; got {self.mechanism!r}.")
        if self.epsilon <= 0:
            raise BadInput("`epsilon` must be a number above 0, for example 0.5.")
        if self.most is not None and (self.by is None or self.most < 1):
            raise BadInput(
                "`most` bounds the bins of a histogram (`by`) that a patient counts in: at least 1."
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned question: all that is known of it without the data."""

    query: Query
    counted: Unit
    unit: Unit
    by: str | None
    bins: tuple[str, ...]
    most: int | None
    noise: Noise
    price: int
    """Micro-ε that it takes from the budget."""
    factor: int
    """Price over ε: the notes that a patient may have, where notes are protected and the budget protects patients."""
    vocabulary_public: bool
    """False: the index has no list of terms; any text may be asked for."""
    question: str
    key: str


def plan_query(session: IndexSession, asked: Question) -> Plan:
    """A question checked against what is public about the index, with its price; reads no data. BadInput for an
    unknown term, a condition that a quasi-identifier does not take, a histogram without public bins."""
    index, meta = session.index, session.index.meta
    query = index.resolve(asked.query)
    counted = asked.counted or asked.unit
    limit = meta.max_rows_per_patient
    if limit is None and "note" in (counted, asked.unit):
        raise BadInput(
            "This index does not bound how many rows a patient has, so only patients can be counted and protected. "
            "Build it with --max-rows-per-patient to count rows."
        )
    by: str | None = None
    bins: tuple[str, ...] = ("",)
    listed: list[str] | None = None
    per_patient, most = True, None
    if asked.by is not None:
        qid = meta.qid(asked.by.casefold())
        by, bins, per_patient = qid.name, _bins(index, query, qid.name), qid.per_patient
        listed = list(bins)
        if asked.unit == "patient" and (per_patient, counted) != (True, "patient"):
            most = asked.most
    change = mechanism.sensitivity(
        unit=asked.unit,
        counted=counted,
        contributions=min(filter(None, (limit, most)), default=len(bins)),
        bins=len(bins),
        one_bin=per_patient,
        bounded=limit is not None,
    )
    factor = limit if limit is not None and (asked.unit, session.terms.unit) == ("note", "patient") else 1
    question = text_of(
        {
            "query": query.canonical(),
            "by": by,
            "bins": listed,
            "most": most,
            "counted": counted,
            "unit": asked.unit,
            "rows": limit,
            "mechanism": asked.mechanism,
            "epsilon": asked.epsilon,
        }
    )
    return Plan(
        query=query,
        counted=counted,
        unit=asked.unit,
        by=by,
        bins=bins,
        most=most,
        noise=Noise(asked.mechanism, asked.epsilon, change),
        price=asked.epsilon * factor,
        factor=factor,
        vocabulary_public=meta.vocabulary_public,
        question=question,
        key=digest(question),
    )


MOST_NOISE: Final = 1000
"""A half-width of the 95 % interval from which on a count is refused without being asked twice, where the custodian
states no number of patients."""


def check_noise(session: IndexSession, plans: Sequence[Plan]) -> None:
    """BadInput for a question whose noise is larger than what it measures."""
    for plan in plans:
        if drowned(session, plan):
            width = mechanism.half_width(plan.noise)
            raise BadInput(
                f"the answer would be off by up to ± {width:,.4g} (95 %), more than most counts are; nothing was "
                "charged. Use a larger --epsilon, or --yes to pay for it all the same."
            )


def drowned(session: IndexSession, plan: Plan) -> bool:
    """Whether noise is larger than what it measures, by public figures only: the number of patients that the custodian
    states (a bin's share of it in a histogram), or `MOST_NOISE` where none is stated; the public threshold, if that is
    more."""
    stated = session.index.meta.about_patients
    rows = session.index.meta.max_rows_per_patient or 1 if plan.counted == "note" else 1
    largest = MOST_NOISE if stated is None else stated * rows / len(plan.bins)
    return mechanism.half_width(plan.noise) >= max(largest, session.terms.threshold or 0)


def _bins(index: Index, query: Query, qid: str) -> tuple[str, ...]:
    """The bins of a histogram from what is public: the query's own condition, else the declared domain."""
    condition = next((each for each in query.predicates if each.qid == qid), None)
    bins = _enumerate_values(index.meta.qid(qid), condition)
    if bins is None:
        domain = index.domain(qid)
        if domain is None:
            raise BadInput(
                f"`by`: the values of {qid!r} are not public, so a histogram would tell which ones occur. Give a range "
                "or a value for it in the query, or declare its domain when building the index."
            )
        beginning = "" if condition is None else condition.low
        bins = tuple(value for value in domain if value.startswith(beginning))
    if not bins or len(bins) > MOST_BINS:
        raise BadInput(f"`by`: a histogram has 1 to {MOST_BINS} bins; this one has {len(bins)}.")
    return bins


def _enumerate_values(qid: Qid, condition: Predicate | None) -> tuple[str, ...] | None:
    """Every value that a condition names; None without one, and for a text prefix."""
    if condition is None or condition.kind == "prefix":
        return None
    if condition.kind == "equals":
        return (condition.low,)
    low, high = qid.number_of(condition.low), qid.number_of(condition.high)
    assert low is not None and high is not None  # `resolve` typed them
    return tuple(map(qid.text_of, range(low, min(high, low + MOST_BINS) + 1)))
