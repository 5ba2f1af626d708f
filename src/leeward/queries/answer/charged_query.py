"""A charged query from its words to its answer, in the one order that protects.

validate · canonical form · look for the stored answer · reserve the budget · draw the noise · read the data · store ·
hide what is below the public threshold · show. Whether a query is refused depends on its text, on what is public about
the index, and on the budget: never on the data. An answer that is not stored is never shown, and what is stored was
charged before; a process that dies on the way may waste budget, no more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leeward.errors import BadInput
from leeward.queries import ledger as books
from leeward.queries.index.counts import Index
from leeward.queries.language.query import Predicate, Query, month_number, month_text
from leeward.queries.ledger import Charge, Ledger, Terms
from leeward.queries.ledger.chain import digest, text_of
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import shown
from leeward.queries.privacy.mechanism import KINDS, UNITS, Kind, Noise, Unit

if TYPE_CHECKING:
    import polars as pl

LINK: Final = "ledger.json"
"""In an index's folder: where the ledger of its data set is, if it is another index's."""
MOST_BINS: Final = 1000
"""Bins of one histogram."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, before it meets an index."""

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


@dataclass(frozen=True)
class IndexSession:
    """An index with the ledger that pays for its answers, and the terms on which it answers. Threads may share it."""

    index: Index
    ledger: Ledger
    terms: Terms


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A question as it will be answered: all that is known of it without the data."""

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


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """What the asker gets. `values` are the noisy counts (one, or one a bin), None where they are hidden."""

    plan: Plan
    values: tuple[int | float | None, ...]
    cost: int
    """Micro-ε that this call took from the budget: 0 when the answer was stored."""
    remaining: int
    """Micro-ε that the user has left for one more answer."""
    threshold: int | None

    @staticmethod
    def shown(plan: Plan, noisy: Sequence[int | float], *, cost: int, remaining: int, terms: Terms) -> Answer:
        """An answer as it may be shown: noisy values below the public threshold are hidden, now that they are noisy."""
        limit = terms.threshold
        values = tuple(None if limit is not None and value < limit else value for value in noisy)
        return Answer(plan=plan, values=values, cost=cost, remaining=remaining, threshold=limit)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval, exact for the mechanism."""
        return mechanism.half_width(self.plan.noise)

    def interval(self, value: int | float | None) -> list[int | float] | None:
        """The 95 % interval around a value; None for a hidden one."""
        return None if value is None else [value - self.half_width, value + self.half_width]

    def to_polars(self) -> pl.DataFrame:
        """One row a bin: `bin` (null without a histogram), `value`, `low`, `high` (its interval); null where hidden."""
        import polars as pl

        none: tuple[None, None] = (None, None)
        intervals = [self.interval(value) or none for value in self.values]
        bins = [None] if self.plan.by is None else self.plan.bins
        return pl.DataFrame(
            {
                "bin": pl.Series(bins, dtype=pl.String),
                "value": pl.Series(self.values, dtype=pl.Float64),
                "low": pl.Series([low for low, _ in intervals], dtype=pl.Float64),
                "high": pl.Series([high for _, high in intervals], dtype=pl.Float64),
            }
        )

    def __repr__(self) -> str:
        found = (
            self.values[0] if self.plan.by is None else dict(zip(self.plan.bins, self.values, strict=True))
        )
        return (
            f"<Answer {self.plan.query.canonical()}: {found}, 95 % within ± {self.half_width:g}; epsilon "
            f"{shown(self.plan.noise.epsilon):g} a {self.plan.unit}; remaining {shown(self.remaining):g}>"
        )

    def _repr_html_(self) -> str:
        return self.to_polars()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """As `leeward query --json` prints it."""
        plan = self.plan
        found: dict[str, Any] = {"query": plan.query.canonical()}
        if plan.by is None:
            found |= {"answer": self.values[0], "interval": self.interval(self.values[0])}
        else:
            found["by"] = plan.by
            found["answer"] = dict(zip(plan.bins, self.values, strict=True))
            found["interval"] = {
                name: self.interval(value) for name, value in zip(plan.bins, self.values, strict=True)
            }
        return found | {
            "confidence": mechanism.CONFIDENCE,
            "epsilon": shown(plan.noise.epsilon),
            "unit": plan.unit,
            "counted": plan.counted,
            "mechanism": plan.noise.kind,
            "sensitivity": plan.noise.sensitivity,
            "expected_error": mechanism.expected_absolute(plan.noise),
            "threshold": self.threshold,
            "vocabulary_public": plan.vocabulary_public,
            "stored": self.cost == 0,
            "cost": shown(self.cost),
            "remaining": shown(self.remaining),
        }


def open_session(path: str | Path, ledger_url: str | None = None, *, checked: bool = True) -> IndexSession:
    """Open an index and the ledger that pays for it: the one in its folder, or the one at a URL.

    BadInput for what is no index or of another version; LedgerUnreachable without a ledger that knows its data set, or
    (`checked`) where the ledger disagrees with its log or with a head that was remembered.
    """
    index = Index.open(path)
    ledger = books.open_ledger(ledger_of(index.path) if ledger_url is None else ledger_url, index.path)
    terms = books.terms_of(ledger, index.meta.id)
    if checked:
        books.check_opening(ledger, index.meta.id)
    return IndexSession(index, ledger, terms)


def ledger_of(folder: Path) -> str | Path:
    """Where the budget of the index in `folder` is kept: in the folder, or where its `ledger.json` says, for data that
    were indexed before."""
    link = folder / LINK
    if not link.is_file() or (folder / books.EMBEDDED).is_file():
        return folder
    try:
        return Path(json.loads(link.read_text(encoding="utf-8"))["folder"])
    except (ValueError, KeyError, TypeError, OSError):
        raise BadInput(f"{link}: damaged; name the ledger with --ledger URL.") from None


def plan_query(session: IndexSession, asked: Question) -> Plan:
    """A question checked against what is public about the index, with its price. Reads no data.

    BadInput for an unknown term, a condition that a quasi-identifier does not take, a histogram without public bins.
    """
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
    per_patient = True
    if asked.by is not None:
        qid = meta.qid(asked.by.casefold())
        by, bins, per_patient = qid.name, _bins(index, query, qid.name), qid.per_patient
    most = None
    if by is not None and asked.unit == "patient" and not (per_patient and counted == "patient"):
        most = asked.most
    noise = Noise(
        asked.mechanism,
        asked.epsilon,
        mechanism.sensitivity(
            unit=asked.unit,
            counted=counted,
            contributions=_contributions(limit, most, len(bins)),
            bins=len(bins),
            one_bin=per_patient,
            bounded=limit is not None,
        ),
    )
    factor = limit if limit is not None and (asked.unit, session.terms.unit) == ("note", "patient") else 1
    question = text_of(
        {
            "query": query.canonical(),
            "by": by,
            "bins": list(bins) if by is not None else None,
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
        noise=noise,
        price=asked.epsilon * factor,
        factor=factor,
        vocabulary_public=meta.vocabulary_public,
        question=question,
        key=digest(question),
    )


def answer_all(
    session: IndexSession, asked: Sequence[Question], user: str, project: str | None = None
) -> list[Answer]:
    """The answers to questions, all charged at once or, where the budget does not pay for all, none.

    An identical question has one price and one answer, for whoever asks it and however often. BudgetSpent,
    LedgerUnreachable and BadInput leave nothing answered.
    """
    books.named(user)
    return answer_plans(session, [plan_query(session, each) for each in asked], user, project)


def answer_plans(
    session: IndexSession,
    plans: Sequence[Plan],
    user: str,
    project: str | None = None,
    pace: float = 0.0,
    standing: Standing | None = None,
) -> list[Answer]:
    """As `answer_all`, for questions that were planned already, so that their price could be shown before; `standing`:
    of these plans, if it was read.

    `pace`: counting takes a whole number of so many seconds, so that how long it took does not tell how much there was
    to count.
    """
    data_set, separately = session.index.meta.id, session.terms.charge_projects_separately
    there, remaining = standing or standing_of(session, plans, user, project)
    stored: dict[str, str | None] = {plan.key: there.get(plan.key) for plan in plans}
    costs = dict.fromkeys(stored, 0)
    open_plans = [plan for plan in plans if stored[plan.key] is None]
    if open_plans:
        charges = [Charge(key=p.key, question=p.question, epsilon=p.price) for p in open_plans]
        paid = books.reserve(session.ledger, data_set, user, charges, project)
        # Where projects pay separately, an answer that another one paid for is worked out again and dropped: how long
        # it takes does not tell that it was stored.
        stored |= {each.key: each.payload for each in paid if each.payload is not None and not separately}
        for each in paid:
            costs[each.key] += each.cost
        missing = list({plan.key: plan for plan in open_plans if stored[plan.key] is None}.values())
        payloads = {
            plan.key: text_of({"values": values})
            for plan, values in zip(missing, _paced(session.index, missing, pace), strict=True)
        }
        stored |= books.store(session.ledger, data_set, payloads, separately=separately)
        remaining = books.left(session.ledger, data_set, user, project).user
    return [
        _shown(session, plan, stored[plan.key] or "", costs.pop(plan.key, 0), remaining) for plan in plans
    ]


def _shown(session: IndexSession, plan: Plan, payload: str, cost: int, remaining: int) -> Answer:
    values = json.loads(payload)["values"]
    return Answer.shown(plan, values, cost=cost, remaining=remaining, terms=session.terms)


def price_of(
    session: IndexSession, plans: Sequence[Plan], user: str, project: str | None = None
) -> tuple[int, int]:
    """What questions would take from the budget now, and what the user has left, in micro-ε. Charges nothing."""
    there, remaining = standing_of(session, plans, user, project)
    price = {plan.key: plan.price for plan in plans if plan.key not in there}
    return sum(price.values()), remaining


Standing = tuple[Mapping[str, str], int]


def standing_of(
    session: IndexSession, plans: Sequence[Plan], user: str, project: str | None = None
) -> Standing:
    """The answers that cost nothing more (the stored ones, and where projects pay separately those that this one paid),
    and what the user has left."""
    separately = session.terms.charge_projects_separately
    stored, left = books.found_and_left(
        session.ledger,
        session.index.meta.id,
        [plan.key for plan in plans],
        user,
        project,
        separately=separately,
    )
    return stored, left.user


def stored_answers(session: IndexSession, plans: Sequence[Plan], standing: Standing) -> list[Answer] | None:
    """The answers to questions all of which cost nothing more; None where one does."""
    stored, remaining = standing
    if any(plan.key not in stored for plan in plans):
        return None
    return [_shown(session, plan, stored[plan.key], 0, remaining) for plan in plans]


MOST_NOISE: Final = 1000
"""A half-width of the 95 % interval from which on a count is refused without being asked twice, where the custodian
states no number of patients."""


def check_noise(session: IndexSession, plans: Sequence[Plan]) -> None:
    """BadInput for a question whose noise is larger than what it measures, by public figures only: the number of
    patients that the custodian states (a bin's share of it in a histogram), or `MOST_NOISE` where none is stated; the
    public threshold, if that is more.
    """
    stated = session.index.meta.about_patients
    for plan in plans:
        rows = session.index.meta.max_rows_per_patient or 1 if plan.counted == "note" else 1
        largest = MOST_NOISE if stated is None else stated * rows / len(plan.bins)
        limit = max(largest, session.terms.threshold or 0)
        width = mechanism.half_width(plan.noise)
        if width >= limit:
            raise BadInput(
                f"the answer would be off by up to ± {width:,.4g} (95 %), more than most counts are; nothing was "
                "charged. Use a larger --epsilon, or --yes to pay for it all the same."
            )


def charge(
    session: IndexSession,
    question: Mapping[str, Any],
    epsilon: int,
    user: str,
    compute: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """A release of another shape (the catalogue of itemsets) through the same books: paid, then computed, then stored.

    `question` identifies it and holds no data; `epsilon` is its price in micro-ε; `compute` must be private at it, and
    draw its noise from `mechanism`. The same question gets the stored result at no cost.
    """
    text = text_of(question)
    key, data_set = digest(text), session.index.meta.id
    payload = books.found(session.ledger, data_set, key)
    if payload is None:
        charge = Charge(key=key, question=text, epsilon=epsilon)
        payload = books.reserve(session.ledger, data_set, user, [charge])[0].payload
    if payload is None:
        payload = books.store(session.ledger, data_set, {key: text_of(compute())})[key]
    found: dict[str, Any] = json.loads(payload)
    return found


def _paced(index: Index, plans: Sequence[Plan], pace: float) -> list[list[int | float]]:
    """`noisy_values`, which return at a multiple of `pace` seconds after they were asked for."""
    began = time.perf_counter()
    found = noisy_values(index, plans)
    if pace > 0 and plans:
        time.sleep(-(time.perf_counter() - began) % pace)
    return found


def noisy_values(index: Index, plans: Sequence[Plan]) -> list[list[int | float]]:
    """Noise first, for all questions, then the data: reading them cannot change what is drawn."""
    drawn = [mechanism.draw(plan.noise, len(plan.bins)) for plan in plans]
    return [
        [count + z for count, z in zip(_counts(index, plan), noise, strict=True)]
        for plan, noise in zip(plans, drawn, strict=True)
    ]


def _counts(index: Index, plan: Plan) -> list[int]:
    if plan.by is None:
        return [index.count(plan.query, plan.counted)]
    counts = index.count_by(plan.query, plan.by, plan.bins, plan.counted, plan.most)
    return [int(count) for count in counts]


def _contributions(limit: int | None, most: int | None, bins: int) -> int:
    """How much a patient may add to all bins together: rows kept, or bins counted in."""
    return min(limit or bins, most or limit or bins)


def _bins(index: Index, query: Query, qid: str) -> tuple[str, ...]:
    """The bins of a histogram from what is public: the query's own condition, else the declared domain."""
    condition = next((each for each in query.predicates if each.qid == qid), None)
    bins = _enumerated(index.meta.qid(qid).kind, condition) if condition is not None else None
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


def _enumerated(kind: str, condition: Predicate) -> tuple[str, ...] | None:
    """Every value that a condition names, None for a beginning of text."""
    if condition.kind == "prefix":
        return None
    if condition.kind == "equals":
        return (condition.low,)
    if kind == "month":
        low, high = month_number(condition.low), month_number(condition.high)
        assert low is not None and high is not None  # `resolve` typed them
        return tuple(month_text(number) for number in range(low, min(high, low + MOST_BINS) + 1))
    first, last = int(condition.low), int(condition.high)
    return tuple(str(number) for number in range(first, min(last, first + MOST_BINS) + 1))
