"""The attacker of charged queries: knows everybody but one patient, and asks until the budget ends.

`ask(terms, conditions)` is the desk: a noisy count, or None where it refuses. The attacker knows the public vocabulary,
the noise's scale, and the count without the target; what is guessed is whether the target is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Ask = Callable[[str, Mapping[str, str]], float | None]

PHRASINGS = ("{a} & {b}", "{b} & {a}", "{a} & {b} & {a}", " {A}  & {b}")
"""The same question in other words."""


def averaging(ask: Ask, a: str, b: str, conditions: Mapping[str, str], times: int) -> float:
    """The mean of the answers to one question, asked again and again in all its phrasings."""
    asked = [PHRASINGS[i % len(PHRASINGS)].format(a=a, b=b, A=a.upper()) for i in range(times)]
    answers = [value for text in asked if (value := ask(text, conditions)) is not None]
    return sum(answers) / len(answers)


def differencing(
    ask: Ask, term: str, conditions: Mapping[str, str], column: str, values: Sequence[str], without: float
) -> bool:
    """Whether the target is counted, from a count and its parts by a column: both estimate it, their mean is compared
    with the count without the target and with one more."""
    whole = ask(term, conditions)
    parts = [ask(term, {**conditions, column: value}) for value in values]
    estimates = [whole] if whole is not None else []
    if None not in parts:
        estimates.append(sum(value for value in parts if value is not None))
    return bool(estimates) and sum(estimates) / len(estimates) > without + 0.5


def until_refused(ask: Ask, terms: Sequence[str], conditions: Mapping[str, str]) -> int:
    """How many different questions are answered before the budget ends."""
    for number, term in enumerate(terms):
        if ask(term, conditions) is None:
            return number
    return len(terms)
