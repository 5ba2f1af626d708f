"""A released catalogue against the answers that the ledger keeps: what was published was paid, number by number.

Counts that are not those of a stored answer have other noise, or none, than what was charged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.verify.checks import Check
from leeward.verify.manifest import Share

Rows = Sequence[tuple[tuple[str, ...], float]]
Answer = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A question, and what was answered."""

MICRO = 1_000_000


def check_answer(share: Share, rows: Rows, answers: Sequence[tuple[str, str]]) -> Check:
    """Whether one stored answer of the ledger has these itemsets, counts and levels and was asked as stated.

    answers : texts of the questions and answers that the ledger keeps of the data set.
    """
    known = [each for each in map(parse_answer, answers) if each is not None]
    same = [question for question, found in known if equals(found, rows, share.manifest["parameters"])]
    if not same:
        return Check(
            "published_answer",
            False,
            f"None of {len(known):,} catalogues that the ledger keeps has these itemsets, counts and levels.",
            {"stored": len(known)},
        )
    unlike = min(differing(question, share.manifest) for question in same)
    good = "The itemsets, counts and levels are those of an answer that the ledger keeps, asked as stated."
    bad = f"The ledger keeps this answer for another question: {unlike} of its parameters differ from the manifest's."
    return Check("published_answer", unlike == 0, bad if unlike else good, {"stored": len(known)})


def parse_answer(answer: tuple[str, str]) -> Answer | None:
    """Question and answer of a catalogue; None for answers to other questions."""
    question, found = (json.loads(text) for text in answer)
    if not isinstance(question, dict) or question.get("release") != "itemsets" or not isinstance(found, dict):
        return None
    return question, found


def equals(found: Mapping[str, Any], rows: Rows, parameters: Mapping[str, Any]) -> bool:
    """Whether an answer has these rows, in their order, and the stated levels."""
    listed = [(tuple(items), float(n)) for items, n in zip(found["itemsets"], found["counts"], strict=True)]
    return listed == list(rows) and found["levels"] == parameters.get("levels")


def differing(question: Mapping[str, Any], manifest: Mapping[str, Any]) -> int:
    """How many parameters of the question are not what the manifest says."""
    parameters, stated = manifest["parameters"], manifest["guarantee"].get("epsilon")
    pairs = [(question[name], parameters.get(name)) for name in ("max_size", "contributions", "vocabulary")]
    pairs.append((sets_of(question["domains"]), sets_of(parameters.get("domains") or {})))
    pairs.append((question["rows"], parameters.get("max_rows_per_patient")))
    asked = question["epsilon"] / MICRO
    agrees = isinstance(stated, int | float) and math.isclose(asked, stated, rel_tol=1e-9)
    return sum(one != other for one, other in pairs) + (not agrees)


def sets_of(domains: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Domains in whatever order their values were declared."""
    return {name: sorted(values) for name, values in domains.items()}
