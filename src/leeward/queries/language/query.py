"""The query language: health terms joined by and, or, not, and conditions on quasi-identifiers.

`parse("sore throat & fever", when="2009-04..2009-06", zip="1230*")` is the paper's ⟨April–June 2009, 1230*, {sore
throat, fever}⟩ (Li & Qin 2017, section 3); `fever & (cough | sore throat) & !rash` is a row with a fever, one of the
two, and no rash. A condition is an equality (`9`), an inclusive range
(`0..17`) or a trailing wildcard (`1230*`). Two texts that must mean the same have the same `canonical()` form; what
also needs the index's public vocabulary and domains (nodes, types) is done by `Index.resolve`. Nothing here looks at
data, so whether a query is refused says nothing about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from leeward.errors import BadInput
from leeward.queries.language import formula
from leeward.queries.language.formula import Formula

WHEN = "when"
"""The quasi-identifier of the visit's month, `YYYY-MM`."""

EXACT = "="
"""In front of a term: the code itself, without the codes below it."""

SPECIAL = re.compile(r'[&;="*]|\.\.|^\s|\s$|^$')
SIGNS = re.compile(r"[|!()@]")
"""What the language means something by beside `SPECIAL`. Earlier canonical forms have it bare."""
MONTH = re.compile(r"(\d{4})-(\d{1,2})")
PIECE = re.compile(r'"[^"]*"|[&|!()"]|[^&|!()"]+')
DEEPEST: Final = 20
"""Parentheses in parentheses."""
DECADE = {"0": (1, 9), "1": (10, 12)}

Kind = Literal["equals", "range", "prefix"]


@dataclass(frozen=True, order=True)
class Predicate:
    """One condition on a quasi-identifier.

    `low` is the value (`equals`), the lower end (`range`) or the text before the star (`prefix`); `high` the upper
    end, included, of a range and empty otherwise.
    """

    qid: str
    kind: Kind
    low: str
    high: str = ""

    def text(self, write: Callable[[str], str] = str) -> str:
        """As a person writes it: `9`, `0..17`, `1230*`; `write` quotes the values."""
        if self.kind == "range":
            return f"{write(self.low)}..{write(self.high)}"
        return f"{write(self.low)}{'*' if self.kind == 'prefix' else ''}"


@dataclass(frozen=True)
class Query:
    """What a row must have: all terms, a literal of each further clause, and its quasi-identifiers' conditions (at most
    one each); all sorted. There is a term or a clause."""

    terms: tuple[str, ...]
    predicates: tuple[Predicate, ...] = ()
    clauses: tuple[tuple[formula.Literal, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.terms and not self.clauses:
            raise BadInput("a query needs at least one health term; for example `sore throat & fever`.")
        object.__setattr__(self, "terms", tuple(sorted(set(self.terms))))
        object.__setattr__(self, "predicates", tuple(sorted(self.predicates)))
        names = [predicate.qid for predicate in self.predicates]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"`{name}` has two conditions; give one.")

    @staticmethod
    def of(asked: Formula, predicates: tuple[Predicate, ...] = ()) -> Query:
        """The query for what a formula says."""
        alone = {clause: one for clause in asked if len(clause) == 1 for one in clause if one.holds}
        further = sorted(tuple(sorted(clause)) for clause in asked - alone.keys())
        return Query(tuple(one.name for one in alone.values()), predicates, tuple(further))

    def to_formula(self) -> Formula:
        terms = (frozenset([formula.Literal(term)]) for term in self.terms)
        return frozenset([*terms, *map(frozenset, self.clauses)])

    @property
    def names(self) -> tuple[str, ...]:
        """Every term that is named, those that a row must not have too."""
        return tuple(sorted({literal.name for clause in self.to_formula() for literal in clause}))

    def terms_text(self, write: Callable[[str], str]) -> str:
        """The terms as a person writes them, each by `write`."""
        clauses = [((formula.Literal(term)),) for term in self.terms] + list(self.clauses)
        texts = [" | ".join(("" if one.holds else "!") + write(one.name) for one in each) for each in clauses]
        if len(clauses) == 1:
            return texts[0]
        return " & ".join(
            f"({text})" if len(each) > 1 else text for text, each in zip(texts, clauses, strict=True)
        )

    def canonical(self) -> str:
        """The text that identifies the query in every order of terms and conditions. Call it on
        `Index.resolve(query)`: only there are nodes, aliases and types known.

        Where all terms are required they are bare, as they always were; else each is quoted, so that no such text is
        that of a term with the signs of the language in it."""
        parts = [self.terms_text(_quote_always if self.clauses else quote)]
        parts += [f"{quote(each.qid)}={each.text(quote)}" for each in self.predicates]
        return "; ".join(parts)

    def __str__(self) -> str:
        return self.canonical()


def parse(text: str, conditions: Mapping[str, str] | None = None, /, **more: str) -> Query:
    """A query from its terms (`sore throat & (fever | chills) & !rash`) and its conditions by quasi-identifier.

    A term that has a sign of the language in it is put in double quotes. `=401` is the code 401 alone, `401` with all
    codes below it.

    BadInput: no term, an empty term, & beside | without parentheses, a malformed range, a wildcard that is not at the
    end, a quasi-identifier twice.
    """
    given = {**(conditions or {}), **more}
    predicates = [condition(name, value) for name, value in given.items()]
    return Query.of(
        _Reader(text).read_all(), tuple(predicate for predicate in predicates if predicate is not None)
    )


class _Reader:
    """The pieces of a text, from left to right."""

    def __init__(self, text: str) -> None:
        self.pieces = PIECE.findall(text)
        self.at = self.depth = self.terms = 0
        if '"' in self.pieces:
            raise BadInput("the query has a quotation mark without its partner.")

    def read_all(self) -> Formula:
        found = self.read_group(True)
        if self.at < len(self.pieces):
            raise BadInput(
                "a query has & or | between its terms; put a term that begins with a parenthesis in double quotes."
            )
        return found

    def read_group(self, holds: bool) -> Formula:
        """Terms and groups joined by one sign; where it does not hold, the opposite."""
        parts, sign = [self.read_part(holds)], ""
        while (found := self.next_piece()) in ("&", "|"):
            if sign not in ("", found):
                raise BadInput("say by parentheses what belongs together: `a & (b | c)` or `(a & b) | c`.")
            sign = found
            self.at += 1
            parts.append(self.read_part(holds))
        return formula.join_by_or(parts) if (sign == "|") == holds else formula.join_by_and(parts)

    def read_part(self, holds: bool) -> Formula:
        while self.next_piece() == "!":
            self.at += 1
            holds = not holds
        if self.next_piece() == "(":
            return self.read_parentheses(holds)
        self.terms += 1
        if self.terms > formula.MOST:
            raise BadInput(
                f"a query has at most {formula.MOST} terms; ask for a node of the vocabulary instead."
            )
        return frozenset([frozenset([formula.Literal(_read_term(self.read_text()), holds)])])

    def read_parentheses(self, holds: bool) -> Formula:
        self.at += 1
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadInput(f"a query has at most {DEEPEST} parentheses in each other.")
        found = self.read_group(holds)
        if self.next_piece() != ")":
            raise BadInput(
                "the query has a parenthesis that is not closed, or lacks a sign between two terms."
            )
        self.at += 1
        self.depth -= 1
        return found

    def read_text(self) -> str:
        """A term as it is written, with parentheses inside of it: `hepatitis (viral)`."""
        start, inside = self.at, 0
        for piece in self.pieces[start:]:
            if piece in ("&", "|") or (piece == ")" and self.depth and not inside):
                break
            inside += {"(": 1, ")": -1 if inside else 0}.get(piece, 0)
            self.at += 1
        return "".join(self.pieces[start : self.at])

    def next_piece(self) -> str:
        """The next piece that is not blank, which `at` then is; empty at the end."""
        while self.at < len(self.pieces) and not self.pieces[self.at].strip():
            self.at += 1
        return self.pieces[self.at] if self.at < len(self.pieces) else ""


def _read_term(text: str) -> str:
    mark = EXACT if text.strip().startswith(EXACT) else ""
    inner = text.strip().removeprefix(EXACT).strip()
    if re.fullmatch('"[^"]*"', inner):
        inner = inner[1:-1]
    elif '"' in inner:
        raise BadInput("quotation marks go around a whole term.")
    elif any(sign in inner for sign in "|!;*"):
        raise BadInput(
            "a query joins terms by & (and), | (or), ! (not) and parentheses; put a term that holds ! ; or * in double "
            "quotes."
        )
    if not fold(inner):
        raise BadInput("a query needs a term on each side of & and |; for example `sore throat & fever`.")
    return mark + fold(inner)


def fold(text: str) -> str:
    """Normalize case and white space of a name."""
    return " ".join(text.casefold().split())


def condition(qid: str, text: str) -> Predicate | None:
    """One condition from its text, or None if it admits everything (`*`); BadInput for a range without both ends or
    with a third, and a wildcard that is not the last character."""
    name, value = fold(qid), text.strip()
    if not name:
        raise BadInput("a condition needs the name of a quasi-identifier.")
    if not value:
        raise BadInput(f"`{name}`: the condition is empty; give a value, a range a..b or a prefix with *.")
    if value == "*":
        return None
    if "*" in value[:-1]:
        raise BadInput(f"`{name}`: the wildcard * can only be the last character, as in 1230*.")
    if ".." in value:
        ends = [fold(end) for end in value.split("..")]
        if len(ends) != 2 or not all(ends) or ends[1].startswith(".") or "*" in value:
            raise BadInput(
                f"`{name}`: malformed range; write low..high, both ends included, as in 2009-04..2009-06."
            )
        low, high = ends
        found = Predicate(name, "equals", low) if low == high else Predicate(name, "range", low, high)
    elif value.endswith("*"):
        found = Predicate(name, "prefix", fold(value[:-1]))
    else:
        found = Predicate(name, "equals", fold(value))
    return in_months(found) if name == WHEN else found


def in_months(predicate: Predicate) -> Predicate:
    """A condition on months as one month or a range of them; a year stands for its twelve. BadInput: not `YYYY-MM`
    or `YYYY`, no such month, or a range that runs backwards."""
    if predicate.kind == "prefix":
        low, high = _months_with_prefix(predicate)
    else:
        low = _month(predicate.qid, predicate.low)[0]
        high = _month(predicate.qid, predicate.high or predicate.low)[1]
    if low > high:
        raise BadInput(f"`{predicate.qid}`: the range runs backwards; write the earlier month first.")
    if low == high:
        return Predicate(predicate.qid, "equals", month_text(low))
    return Predicate(predicate.qid, "range", month_text(low), month_text(high))


def month_number(text: str) -> int | None:
    """12 × year + month − 1 of `YYYY-MM`; None for another text."""
    found = MONTH.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    return 12 * int(found[1]) + int(found[2]) - 1


def month_text(number: int) -> str:
    return f"{number // 12:04d}-{number % 12 + 1:02d}"


def _month(qid: str, text: str) -> tuple[int, int]:
    if re.fullmatch(r"\d{4}", text):
        return 12 * int(text), 12 * int(text) + 11
    number = month_number(text)
    if number is None:
        raise BadInput(f"`{qid}`: a month is written YYYY-MM and a year YYYY, as in 2009-04..2009-06.")
    return number, number


def _months_with_prefix(predicate: Predicate) -> tuple[int, int]:
    """Months that begin with a whole year and up to one digit of the month: an interval, so that it equals a range."""
    found = re.fullmatch(r"(\d{4})(?:-([01]?))?", predicate.low)
    if found is None:
        raise BadInput(
            f"`{predicate.qid}`: before the * of a month stands at least the year, as in 2009-* or 2009-0*."
        )
    first, last = DECADE[found[2]] if found[2] else (1, 12)
    return 12 * int(found[1]) + first - 1, 12 * int(found[1]) + last - 1


def quote(text: str) -> str:
    """A name in canonical form: bare, or as JSON text if it holds a character of the syntax."""
    return _quote_always(text) if SPECIAL.search(text.removeprefix(EXACT)) else text


def write_term(text: str) -> str:
    """A term as a person writes it: in quotation marks where it holds a sign of the language."""
    return _quote_always(text) if SIGNS.search(text) else quote(text)


def _quote_always(text: str) -> str:
    mark = EXACT if text.startswith(EXACT) else ""
    return mark + json.dumps(text.removeprefix(EXACT), ensure_ascii=False)
