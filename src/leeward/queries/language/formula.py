"""Terms joined by and, or, not, in one form: clauses that all hold, each by one of its terms.

`a & (b | c) & !d` has the clauses {a}, {b, c}, {not d}. What is equal by the rules of Boolean algebra that are cheap
(order, repeats, De Morgan, distribution, absorption, what a clause of one term settles in others) and by the public
vocabulary (a code implies the node above it) has the same clauses, so it is paid once. Nothing here looks at data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, reduce
from itertools import product
from typing import Final, NamedTuple

from leeward.errors import BadInput

MOST: Final = 300
"""Terms of a question, and clauses of its form."""


class Literal(NamedTuple):
    """A term that a row has, or has not."""

    name: str
    holds: bool = True

    def negated(self) -> Literal:
        return Literal(self.name, not self.holds)


Clause = frozenset[Literal]
Formula = frozenset[Clause]


def join_by_and(parts: Iterable[Formula]) -> Formula:
    """What holds where all parts hold."""
    return _smallest(frozenset[Clause]().union(*parts))


def join_by_or(parts: Iterable[Formula]) -> Formula:
    """What holds where one of the parts holds. BadInput where its form is too large."""
    return reduce(_either_of_two, parts)


def _either_of_two(one: Formula, other: Formula) -> Formula:
    if len(one) * len(other) > MOST:
        raise _too_large()
    return _smallest(a | b for a, b in product(one, other))


def _smallest(clauses: Iterable[Clause]) -> Formula:
    """The clauses that hold no other one."""
    kept: list[Clause] = []
    for clause in sorted(set(clauses), key=len):
        if not any(each <= clause for each in kept):
            kept.append(clause)
    if len(kept) > MOST:
        raise _too_large()
    return frozenset(kept)


def _too_large() -> BadInput:
    return BadInput(
        f"this question has more than {MOST} combinations of terms; write fewer groups in parentheses, or ask for a "
        "node of the vocabulary instead of its codes."
    )


def normal_form(formula: Formula, covers: Callable[[str, str], bool]) -> Formula:
    """The formula in the form that identifies it, where `covers(outer, inner)` says that whatever has `inner` has
    `outer`. BadInput for one that holds for no row or for every row, whatever the data."""
    names = sorted({literal.name for clause in formula for literal in clause})
    below = {outer: {inner for inner in names if inner == outer or covers(outer, inner)} for outer in names}
    first = {name: min(other for other in below[name] if name in below[other]) for name in names}

    @cache
    def implying(literal: Literal) -> frozenset[Literal]:
        """The literals that imply it, itself among them."""
        if literal.holds:
            return frozenset(Literal(name) for name in below[literal.name])
        return frozenset(Literal(name, False) for name in names if literal.name in below[name])

    def weaker(clause: Clause) -> frozenset[Literal]:
        """The literals that imply the clause alone."""
        return frozenset[Literal]().union(*map(implying, clause))

    clauses: set[Clause] = set()
    # One name of those that say the same, no clause that always holds, no literal that implies another of its clause.
    for clause in formula:
        firsts = frozenset(Literal(first[name], holds) for name, holds in clause)
        implied = weaker(firsts)
        if not any(each.negated() in implied for each in firsts):
            clauses.add(frozenset(a for a in firsts if not any(a in implying(b) for b in firsts if b != a)))
    if not clauses:
        raise BadInput("this question holds for everything, whatever the data; ask for a term.")
    before: set[Clause] = set()
    while before != clauses:  # what a clause of one literal settles in the others
        before = clauses
        settled = frozenset[Literal]().union(*(clause for clause in clauses if len(clause) == 1))
        clauses = {
            frozenset(each for each in clause if settled.isdisjoint(implying(each.negated())))
            for clause in clauses
        }
    if frozenset() in clauses:
        raise BadInput(
            "this question holds for nothing, whatever the data: it asks for a term and for its opposite."
        )
    implied_by = {clause: weaker(clause) for clause in clauses}
    return frozenset(a for a in clauses if not any(b <= implied_by[a] for b in clauses if b != a))
