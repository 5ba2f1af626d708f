"""What a release of visits may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts
from leeward.contracts.readme import BOUNDED_BELOW, knows_the_algorithm, of_codes

NAMES = {
    "visit": "k-anonymous visits",
    "containment": "k-anonymous visits within the union of a patient's visits",
    "codes": "any m codes of a visit shown by at least k patients",
    "code": "codes of at least k patients",
}

ATTACKERS = {
    "visit": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and every code of one "
        "visit of that person: at least {k} patients of the population{same} have a visit with exactly the released "
        "set of codes."
    ),
    "containment": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and every code of one "
        "visit of that person: whatever codes of that visit the person's record shows, by whichever visit, at least "
        "{k} patients of the population{same} have all of them in their record."
    ),
    "code": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and one code of that "
        "person: at least {k} patients of the population{same} have the released code."
    ),
}

ATTACKER_OF_CODES = (
    "Somebody who knows that a person is a patient of the whole released population{exact} and up to {m} codes of one "
    "visit of that person: if {shown} shows them, at least {k} patients of the population{same} have {where} with all "
    "of them."
)

EXACT, SAME = ", the exact {names} of that person,", " with the same released demographics"

NOT_PROTECTED = (
    "Somebody who knows several visits of a person, or how many visits the person had.",
    "What all patients who share a visit's set have in common: it is learnt about each of them.",
    knows_the_algorithm("the patients that fit, and of the codes that a label stands for"),
    "Several releases compared: cohorts drawn from one master can be joined by visits, and so can their payloads.",
)

OPEN_PAYLOAD = "The payload columns: they are released as they are."

NOT_AT_LEVEL_VISIT = (
    "Somebody who knows every code of one visit of a person and reads all visits of a record together: a code that "
    "one visit no longer shows may be shown by another visit of the same person, so fewer than {k} patients of the "
    "population{same} may have in their records all that the person's record shows of the known visit. Merged visits "
    "(`merge_visits`), or level `containment`, exclude this."
)

NOT_AT_LEVEL_CODE = (
    "Somebody who knows two or more codes of a person, be it of one visit: a pair of codes may point at one patient.",
)

NOT_AT_LEVEL_CODES = (
    "Somebody who knows more than {m} codes of a visit, or codes of several visits.",
    "Somebody who concludes from a code that the person has and the release does not show.",
)

README = """\
`data/visits.parquet` holds one row a {row}: `record`, `visit` (a number without meaning: visits are in no order) and
`codes`, a list of distinct labels, sorted. `data/records.parquet` holds one row a record: `record`{payload}.

- A label such as `401.0|401.1` is a generalized code: one or more of its members were recorded.
{nodes}- Rare codes were suppressed{lost}. A code that is shown was recorded; one that is not shown may have been.
- A visit that lost all its codes has no row, a record that lost all its visits still has its row in
  `records.parquet`: count people there.
- For a phenotype, count a generalized code only if all its members belong to the phenotype.
"""

NODES = (
    "- A label of `data/code_hierarchy.csv` (`node,parent`) that is no code is a node of the hierarchy: a code below\n"
    "  it was recorded.\n"
)

IN_CLASSES = """
Codes were merged and suppressed in every class by itself: a code that one class shows may be suppressed in another.
`data/records.parquet` has the labels of each record's class.
"""

DRAWN_CLASSES = """
A class has at least k patients of the population that this cohort was drawn from; `records` counts the cohort's, who
may be fewer.
"""

DRAWN = """
This is a cohort drawn from an anonymized population; other cohorts from it show a patient alike.
"""

MEMBER = (
    "Somebody who knows that a person is in this cohort, and not only in the population: inside the cohort {few:,} of "
    "{visits:,} visits ({few_share:.1%}) have a set of codes that fewer than {k} members{same} share, {alone:,} "
    "({alone_share:.1%}) one that a single member has (smallest: {smallest}; in the population: "
    "{population_smallest})."
)
MEMBER_OF_CLASS = (
    "Somebody who knows that a person is in this cohort and the exact {names} of that person: {few_in_class:,} of "
    "{members:,} members are released with demographics that fewer than {k} members have, {alone_in_class:,} with "
    "demographics that nobody else in the cohort has (smallest: {smallest_class}; in the population: "
    "{population_smallest_class})."
)
JOINED = (
    "Recipients of another cohort of the same population who put both together: {members_alone_population:,} of "
    "{members:,} records ({joined_share:.1%}) have visits that, all together, no other record of the population has "
    "({members_alone:,} that no other record of this cohort has), so such a record is recognized in the other cohort, "
    "and the payloads of both are joined."
)


def limits_of_cohort(parameters: Mapping[str, Any]) -> list[str]:
    """Sentences on a cohort drawn from a population, with places for figures that anybody can count in the files."""
    names = classes.names_of(parameters)
    found = [MEMBER.replace("{same}", SAME if names else "")]
    found += [MEMBER_OF_CLASS.replace("{names}", classes.in_words(names))] if names else []
    return [*found, JOINED]


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


KNOWN = {
    "visit": "all codes of a visit",
    "containment": "some codes of a visit",
    "codes": "up to m codes of a visit",
    "code": "a code",
}


def words(parameters: Mapping[str, Any], *, figures: Mapping[str, Any] | None = None) -> Words:
    """The wording of a level; `figures` of a cohort drawn from a population (`counted`)."""
    level, payload = parameters["level"], parameters.get("payload") or ()
    name = NAMES[level] + (classes.INSIDE if classes.names_of(parameters) else "")
    left_open = (*of_level(parameters), *NOT_PROTECTED, *classes.limits(parameters))
    left_open += (OPEN_PAYLOAD,) if payload else ()
    reading, among = readme_of(parameters, payload), "release"
    if figures is not None:
        name += f", in a population of {parameters.get('population', 0):,}"
        left_open = count_sentences(parameters, figures) + left_open
        reading += (DRAWN_CLASSES if classes.names_of(parameters) else "") + DRAWN
        among = "population"
    facts = stated_facts(KNOWN[level], among, payload, **classes.facts(parameters))
    return Words(name, attacker_of(parameters), left_open, reading, facts)


def attacker_of(parameters: Mapping[str, Any]) -> str:
    names = classes.names_of(parameters)
    exact, same = (EXACT.format(names=classes.in_words(names)), SAME) if names else ("", "")
    if parameters["level"] != "codes":
        return ATTACKERS[parameters["level"]].format(k=parameters["k"], exact=exact, same=same)
    merged = parameters.get("merge_visits")
    shown, where = ("the person's record", "a record") if merged else ("a visit", "a visit")
    return ATTACKER_OF_CODES.format(
        k=parameters["k"], m=parameters["m"], shown=shown, where=where, exact=exact, same=same
    )


def of_level(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What the level by itself does not protect: with visits apart, a set may come back through several visits."""
    if parameters["level"] == "visit" and not parameters.get("merge_visits"):
        same = SAME if classes.names_of(parameters) else ""
        return (NOT_AT_LEVEL_VISIT.format(k=parameters["k"], same=same),)
    if parameters["level"] == "codes":
        return tuple(each.format(m=parameters["m"]) for each in NOT_AT_LEVEL_CODES)
    return NOT_AT_LEVEL_CODE if parameters["level"] == "code" else ()


def readme_of(parameters: Mapping[str, Any], payload: Sequence[str]) -> str:
    names = classes.names_of(parameters)
    labels = f", the labels {classes.quoted(names)}" if names else ""
    carried = f", and the payload {classes.quoted(payload)}" if payload else ""
    rare = ", and some codes were taken out of visits whose set was rare"
    return (classes.readme(parameters) + IN_CLASSES + "\n" if names else "") + README.format(
        row="patient (all visits as one set)" if parameters.get("merge_visits") else "visit",
        payload=labels + carried,
        nodes=NODES if generalizes(parameters) else "",
        lost="" if parameters["level"] == "code" else rare,
    )


def generalizes(parameters: Mapping[str, Any]) -> bool:
    """Whether the release has a hierarchy of codes."""
    return parameters.get("enforce") == "generalize"


def hierarchies_of_codes(parameters: Mapping[str, Any]) -> list[str]:
    """The file of that hierarchy, where there is one."""
    return ["code_hierarchy.csv"] if generalizes(parameters) else []


COUNTING = of_codes(
    pandas="""\
everybody = pd.read_parquet("data/records.parquet")
visits = pd.read_parquet("data/visits.parquet")
hits = visits[[code in list(held) for held in visits.codes]]
low, high = hits.record.nunique(), len(everybody)
""",
    r="""\
everybody <- read("records")
visits <- read("visits")
low <- length(unique(visits$record[has(visits$codes, code)]))
high <- nrow(everybody)
""",
    intro=BOUNDED_BELOW,
)


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
        Table(hierarchies_of_codes, None),
        CODES,
    ),
    parameters=declared("visits"),
    words=words,
    numbers=("k", "m"),
    model="journalist",
    records=("records.parquet", "visits.parquet"),
    owners={"patients.parquet": "patient"},
    meanings=(
        ("visits", "record", "number of the patient, without meaning"),
        ("visits", "visit", "number of the visit, without order"),
        ("visits", "codes", "list of labels; `a|b` stands for a, b or both"),
        ("records", "record", "one row a patient, also one without visits left"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    counting=COUNTING,
)
