"""What a release of visits may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README, of_codes

TEXT = texts_of("visits")


def limits_of_cohort(parameters: Mapping[str, Any]) -> list[str]:
    """Sentences on a cohort drawn from a population, with places for figures that anybody can count in the files."""
    names = classes.names_of(parameters)
    found = [TEXT.member.replace("{same}", TEXT.same if names else "")]
    found += [TEXT.member_of_class.replace("{names}", classes.in_words(names))] if names else []
    return [*found, TEXT.joined]


def count_sentences(parameters: Mapping[str, Any], figures: Mapping[str, Any]) -> tuple[str, ...]:
    """These sentences with their figures.

    Figures: of the cohort's `visits`, those whose set of codes `few`er than k members have, or one `alone`; the
    `smallest` such number and `population_smallest`; of its `members`, `members_alone` and
    `members_alone_population`, whose visits nobody else has; and with demographics `few_in_class`, `alone_in_class`,
    `smallest_class`, `population_smallest_class`.
    """
    visits, members = max(1, figures["visits"]), max(1, figures["members"])
    shares = {
        "few_share": figures["few"] / visits,
        "alone_share": figures["alone"] / visits,
        "joined_share": figures["members_alone_population"] / members,
    }
    return tuple(
        each.format(**{**figures, **shares, "k": parameters["k"]}) for each in limits_of_cohort(parameters)
    )


def words(parameters: Mapping[str, Any], *, figures: Mapping[str, Any] | None = None) -> Words:
    """The wording of a level; `figures` of a cohort drawn from a population (`counted`)."""
    level, payload = parameters["level"], parameters.get("payload") or ()
    name = TEXT.names[level] + (classes.INSIDE if classes.names_of(parameters) else "")
    algorithm = README.knows_algorithm.format(what=TEXT.fitting)
    left_open = (*of_level(parameters), *TEXT.not_protected, algorithm, *classes.limits(parameters))
    left_open += (TEXT.open_payload,) if payload else ()
    reading, among = readme_of(parameters, payload), "release"
    if figures is not None:
        name += f", in a population of {parameters.get('population', 0):,}"
        left_open = count_sentences(parameters, figures) + left_open
        reading += (TEXT.drawn_classes if classes.names_of(parameters) else "") + TEXT.drawn
        among = "population"
    facts = stated_facts(TEXT.known[level], among, payload, **classes.facts(parameters))
    return Words(name, attacker_of(parameters), left_open, reading, facts)


def attacker_of(parameters: Mapping[str, Any]) -> str:
    names, level = classes.names_of(parameters), parameters["level"]
    exact, same = (TEXT.exact.format(names=classes.in_words(names)), TEXT.same) if names else ("", "")
    merged = parameters.get("merge_visits")
    shown, where = ("the person's record", "a record") if merged else ("a visit", "a visit")
    given = {"k": parameters["k"], "m": parameters.get("m"), "exact": exact, "same": same}
    found: str = TEXT.attackers[level].format(**given, shown=shown, where=where)
    return found


def of_level(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What the level by itself does not protect: with visits apart, a set may come back through several visits."""
    if parameters["level"] == "visit" and not parameters.get("merge_visits"):
        same = TEXT.same if classes.names_of(parameters) else ""
        return (TEXT.not_at_level_visit.format(k=parameters["k"], same=same),)
    if parameters["level"] == "codes":
        return (TEXT.not_at_level_codes.format(m=parameters["m"]),)
    return (TEXT.not_at_level_code,) if parameters["level"] == "code" else ()


def readme_of(parameters: Mapping[str, Any], payload: Sequence[str]) -> str:
    names = classes.names_of(parameters)
    labels = f", the labels {classes.quoted(names)}" if names else ""
    carried = f", and the payload {classes.quoted(payload)}" if payload else ""
    rare = ", and some codes were taken out of visits whose set was rare"
    opening = classes.readme(parameters) + TEXT.in_classes + "\n" if names else ""
    return opening + str(TEXT.readme).format(
        row="patient (all visits as one set)" if parameters.get("merge_visits") else "visit",
        payload=labels + carried,
        nodes=TEXT.nodes if generalizes(parameters) else "",
        lost="" if parameters["level"] == "code" else rare,
    )


def generalizes(parameters: Mapping[str, Any]) -> bool:
    return parameters.get("enforce") == "generalize"


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table(
            "visits.parquet", {"record": "int64", "visit": "int64", "codes": LISTS}, order=("record", "visit")
        ),
        Table(
            "records.parquet",
            {},
            payload=True,
            made=classes.label_columns({"record": "int64"}),
            order=("record",),
        ),
        Table(lambda p: ["code_hierarchy.csv"] if generalizes(p) else [], None),
        CODES,
    ),
    parameters=declared("visits"),
    words=words,
    numbers=("k", "m"),
    model="journalist",
    records=("records.parquet", "visits.parquet"),
    owners={"patients.parquet": "patient"},
    meanings=TEXT.meanings,
    counting=of_codes(TEXT.pandas, TEXT.r, README.bounded_below),
)
