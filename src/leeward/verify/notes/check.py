"""The attacker of a released catalogue of itemsets (`method: notes`), from the files.

Noise cannot be seen in one release, so what is checked is everything that would betray that a count was not private, or
that more was spent than stated: counts are whole and at or above the public threshold of their size, every itemset's
parts are listed (candidates come from noisy results), items are of public domains, the levels' ε add up to no more than
the guarantee's, the stated noise has the stated ε. With the custodian's folder beside it: items are of the public
vocabulary, and the ledger was charged at least the ε that the guarantee states. With the answers that the ledger keeps:
the catalogue is one of them, number by number (`check_answer`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share

TABLE = "itemsets.parquet"
ROUNDING = 1e-9
MILLION = 1_000_000
MOST_CANDIDATES = 100_000
"""Beyond it, those are tried whose parts have the largest counts."""

Rows = list[tuple[tuple[str, ...], float]]


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a catalogue; of `source` only the ledger's answers are used: the guarantee is about the noise, not
    about the data."""
    rows, problem = read(share)
    if problem is not None:
        return [problem]
    none = share.manifest["records"] == 0
    detail = f"{TABLE} lists {len(rows):,} itemsets with a count each, and there are no records."
    checks = [Check("layout", none, detail if none else "The manifest states records; a catalogue has none.")]
    parameters = share.manifest["parameters"]
    levels = {int(level["size"]): level for level in parameters["levels"]}
    checks += [
        itemsets(rows, parameters),
        counts(rows, levels),
        parts(rows, values_of(parameters)),
        order(rows, parameters),
        budget(share, levels),
        numbers(rows, levels),
        candidates(rows, levels, values_of(parameters)),
    ]
    custody = share.folder.parent / "custody"
    if share.folder.name == "share" and custody.is_dir():
        checks += [vocabulary(rows, parameters, custody), charge(share, custody)]
    if source is not None and source.answers is not None:
        checks.append(check_answer(share, rows, source.answers))
    return checks


def read(share: Share) -> tuple[Rows, Check | None]:
    """The itemsets and their counts, or why they cannot be read."""
    table = pl.read_parquet(share.data(TABLE))
    nulls = table.null_count().row(0)
    inside = table["items"].list.eval(pl.element().is_null()).list.any().any()
    if any(nulls) or inside or table["count"].is_nan().any() or table["count"].is_infinite().any():
        return [], Check("layout", False, f"{TABLE} has missing cells or counts that are not numbers.")
    return [(tuple(items), count) for items, count in table.iter_rows()], None


def values_of(parameters: dict[str, Any]) -> dict[str, str]:
    """Item -> its quasi-identifier, by the public domains in the manifest."""
    domains: dict[str, Any] = parameters.get("domains") or {}
    return {f"{name}={value}": name for name, values in domains.items() for value in values}


def itemsets(rows: Rows, parameters: dict[str, Any]) -> Check:
    """Every itemset is a set, listed once, with a term and at most one value of each quasi-identifier."""
    of_qid = values_of(parameters)
    most = parameters.get("max_size", 0)
    bad = 0
    for items, _ in rows:
        named = [of_qid[item] for item in items if item in of_qid]
        whole = len(set(items)) == len(items) <= most and len(named) < len(items)
        bad += not (whole and len(set(named)) == len(named))
    repeated = len(rows) - len({frozenset(items) for items, _ in rows})
    return of_count(
        "itemsets",
        bad + repeated,
        "Every itemset is listed once, has a health term and at most one value of each quasi-identifier.",
        "itemsets are repeated, too large, without a term, or with two values of a quasi-identifier.",
    )


def counts(rows: Rows, levels: dict[int, dict[str, Any]]) -> Check:
    """Counts are whole numbers, as integer noise leaves them, and reach the public threshold of their size."""
    bad = sum(
        len(items) not in levels or count < levels[len(items)]["threshold"] or count != math.floor(count)
        for items, count in rows
    )
    return of_count(
        "counts",
        bad,
        "Every count is whole and at or above the public threshold of its size.",
        "counts are below the public threshold, or not whole.",
    )


def parts(rows: Rows, of_qid: dict[str, str]) -> Check:
    """Every part that has a term is listed too: the itemset was a candidate by noisy results alone."""
    listed = {frozenset(items) for items, _ in rows}
    bad = 0
    for items, _ in rows:
        whole = frozenset(items)
        smaller = (whole - {item} for item in whole)
        bad += any(part not in listed for part in smaller if any(item not in of_qid for item in part))
    return of_count(
        "parts",
        bad,
        "Every itemset's parts are listed, so none was tried because of exact supports.",
        "itemsets have parts that are not listed: they cannot have been candidates.",
    )


def order(rows: Rows, parameters: dict[str, Any]) -> Check:
    """Rows by size, falling count, text; terms before values, each by their text; domains by name, and their values by
    number or text: orders that reveal nothing more."""
    of_qid, domains = values_of(parameters), parameters.get("domains") or {}
    bad = sum(a >= b for a, b in pairwise((len(items), -count, items) for items, count in rows))
    bad += sum(a >= b for items, _ in rows for a, b in pairwise((item in of_qid, item) for item in items))
    bad += sum(a >= b for a, b in pairwise(domains))
    bad += sum(a >= b for values in domains.values() for a, b in pairwise(ranks_of(values)))
    return of_count(
        "order",
        bad,
        "Rows are sorted by size, count and text; items and values of domains are sorted by text.",
        "rows, items or values of domains are in an order that may reveal more.",
    )


def ranks_of(values: Sequence[str]) -> list[tuple[int, str]]:
    """What the values of a domain are ordered by: their numbers where all are whole numbers, else their texts."""
    whole = all(re.fullmatch(r"-?\d+", value) for value in values)
    return [(int(value) if whole else 0, value) for value in values]


def in_millionths(epsilon: float) -> bool:
    """Whether ε is a whole number of millionths, as a ledger charges it, or the next float below one."""
    exact = round(epsilon * MILLION) / MILLION
    return epsilon in (exact, math.nextafter(exact, 0.0))


def budget(share: Share, levels: dict[int, dict[str, Any]]) -> Check:
    """The levels' ε add up to no more than the guarantee's, and each level's noise is that of its ε."""
    stated = share.manifest["guarantee"].get("epsilon")
    contributions = share.manifest["parameters"].get("contributions")
    if type(stated) is not float or not isinstance(contributions, int) or contributions < 1:
        return Check("budget", False, "The manifest states no epsilon, or no bound of contributions.")
    spent = [level["epsilon"] for level in levels.values()]
    if not all(map(in_millionths, (stated, *spent))):
        return Check(
            "budget", False, "The manifest states an epsilon that is not a whole number of millionths."
        )
    total = math.fsum(spent)
    noise = [level["scale"] * level["epsilon"] for level in levels.values()]
    weak = sum(not math.isclose(each, contributions, rel_tol=ROUNDING) for each in noise)
    detail = (
        f"{weak} of them have noise of another scale." if weak else "Their noise is that of their epsilon."
    )
    return Check(
        "budget",
        stated > 0 and total <= stated * (1 + ROUNDING) and weak == 0,
        f"{len(levels)} levels spend epsilon {total:g} together; {stated:g} is stated. {detail}",
        {"levels": total, "stated": stated, "weak": weak},
    )


def numbers(rows: Rows, levels: dict[int, dict[str, Any]]) -> Check:
    """Itemsets of each size as many as stated, never more than there were candidates."""
    found: dict[int, int] = {}
    for items, _ in rows:
        found[len(items)] = found.get(len(items), 0) + 1
    bad = sum(found.get(size, 0) != level["listed"] for size, level in levels.items())
    bad += sum(level["listed"] > level["candidates"] for level in levels.values())
    return of_count(
        "numbers",
        bad,
        "Each size has as many itemsets as stated, and at least as many candidates.",
        "sizes have a different number of itemsets than stated, or more than candidates.",
    )


def candidates(rows: Rows, levels: dict[int, dict[str, Any]], of_qid: dict[str, str]) -> Check:
    """From size 2 on, the candidates follow from what is listed and the public domains: as many are stated."""
    listed: dict[int, set[frozenset[str]]] = {}
    for items, _ in rows:
        listed.setdefault(len(items), set()).add(frozenset(items))
    terms = len(listed.get(1, ()))
    bad = 0
    for size, level in levels.items():
        tried = terms * (terms - 1) // 2 + terms * len(of_qid)
        if size > 2:
            smaller = listed.get(size - 1, set())
            tried = sum(tryable(whole, smaller, of_qid) for whole in extend_sets(smaller, set(of_qid)))
        bad += size > 1 and level["candidates"] != min(tried, MOST_CANDIDATES)
    return of_count(
        "candidates",
        bad,
        "The number of candidates of each size follows from the smaller sets and the public domains.",
        "sizes state a number of candidates that does not follow from the smaller sets and the public domains.",
    )


def extend_sets(smaller: set[frozenset[str]], values: set[str]) -> set[frozenset[str]]:
    """The sets with one item more, which meets each of the others in a listed set or is a value."""
    beside: dict[str, set[str]] = {}
    for whole in smaller:
        for item in whole:
            beside.setdefault(item, set()).update(whole)
    found: set[frozenset[str]] = set()
    for whole in smaller:
        further = set.intersection(*(beside[item] for item in whole)) | values
        found.update(whole | {item} for item in further - whole)
    return found


def tryable(whole: frozenset[str], smaller: set[frozenset[str]], of_qid: dict[str, str]) -> bool:
    """Whether every part with a term is listed, and no two values are of one quasi-identifier."""
    named = [of_qid[item] for item in whole if item in of_qid]
    parts = (whole - {item} for item in whole)
    return len(set(named)) == len(named) and all(
        part in smaller for part in parts if any(item not in of_qid for item in part)
    )


def vocabulary(rows: Rows, parameters: dict[str, Any], custody: Path) -> Check:
    """Every item is of the public vocabulary or of a public domain (needs `custody/`)."""
    try:
        names = set(pl.read_parquet(custody / "data" / "vocabulary.parquet")["item"].to_list())
    except (OSError, pl.exceptions.PolarsError):
        return Check("vocabulary", False, "custody/data/vocabulary.parquet is missing or cannot be read.")
    public = names | set(values_of(parameters))
    bad = sum(any(item not in public for item in items) for items, _ in rows)
    return of_count(
        "vocabulary",
        bad,
        "Every item is in the public vocabulary or a public domain.",
        "itemsets have items that are not public.",
    )


def charge(share: Share, custody: Path) -> Check:
    """The ledger was charged at least the ε that the guarantee states (needs `custody/`)."""
    stated = share.manifest["guarantee"].get("epsilon")
    try:
        charged = json.loads((custody / "charge.json").read_text(encoding="utf-8"))["epsilon"]
        enough = stated <= charged * (1 + ROUNDING)
    except (OSError, ValueError, KeyError, TypeError):
        return Check(
            "charge", False, "custody/charge.json, which says what was charged, is missing or damaged."
        )
    return Check(
        "charge", enough, f"The ledger was charged epsilon {charged:g}; the guarantee states {stated:g}."
    )


Answer = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A question, and what was answered."""

MICRO = 1_000_000


def check_answer(share: Share, rows: Rows, answers: Sequence[tuple[str, str]]) -> Check:
    """Whether one stored answer of the ledger has these itemsets, counts and levels and was asked as stated. `answers`:
    texts of the questions and answers that the ledger keeps of the data set."""
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
    return {name: sorted(values) for name, values in domains.items()}
