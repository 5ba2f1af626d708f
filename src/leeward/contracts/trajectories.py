"""What a release of trajectories may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, Contract, Table, Words, declared, stated_facts
from leeward.contracts.readme import BOUNDED_BELOW, knows_the_algorithm, of_codes

ATTACKER = (
    "Somebody who knows everything about a patient's codes and ages, all of them in order, and that the patient is in "
    "the release: at least {k} records look alike in every code and age, so a guess at which of them is the patient's "
    "is right at most once in {k}."
)

CLASSED_ATTACKER = (
    "Somebody who knows the exact {names} of a patient and everything about the patient's codes and ages, all of them "
    "in order, and that the patient is in the release: at least {k} records look alike in every code, age and released "
    "demographic, so a guess at which of them is the patient's is right at most once in {k}."
)

NOT_PROTECTED = (
    "Whatever a group's records share becomes known about every member: their (generalized) codes and ages.",
    knows_the_algorithm("the codes and ages that a generalized value stands for"),
    "Several releases of the same people compared with one another, or people who pool what they know.",
)

PAYLOAD_AS_IS = (
    "The payload columns: they are released as they are, and may single somebody out by themselves."
)

README = """\
`data/trajectories.parquet` holds one row a published pair: `record` (a number that means nothing), `position` (0, 1, …
in order of age), `code` and `age` (text: nodes of the two hierarchies; an age is `33` or `33-36`).
`data/records.parquet` holds one row a record{payload}; a record without any row in `trajectories.parquet` lost all its
pairs. `data/code_hierarchy.csv` and `data/age_hierarchy.csv` (`node,parent`) list what is below each value{listed}.

- At least {k} records share each published trajectory.
- A generalized value stands for one of the leaves below it; which one is unknown. Reading each as equally likely, a
  pair (code, age) below a published pair has probability 1 / (leaves of the code · leaves of the age).
- Pairs may be missing: those that no other member of the group resembled were suppressed. Counts of pairs are lower
  bounds.
- {order}
"""

CLASSES = """
`data/records.parquet` has the demographics of each record. Pairs are generalized in each class by itself: at least {k}
records share each published trajectory and its demographics.
"""

ORDERS = {
    "kept": "Pairs of a record are in order of age; pairs that share an age are in no order that says anything.",
    "free": "Pairs of a record are sorted by the first and then the last year of their age; pairs whose ages overlap "
    "are in no order that says anything.",
}

LISTED = "of at least k patients"
"""The manifest's word for a code hierarchy that lists, of a vocabulary, what k patients have a code below."""

UNLISTED = "; codes that fewer than {k} patients have are not listed there"


def words(parameters: Mapping[str, Any]) -> Words:
    k, names, payload = parameters["k"], classes.names_of(parameters), parameters.get("payload") or ()
    return Words(
        "k-anonymity in classes of demographics" if names else "k-anonymity",
        (CLASSED_ATTACKER if names else ATTACKER).format(k=k, names=classes.in_words(names)),
        (*NOT_PROTECTED, *((PAYLOAD_AS_IS,) if payload else ()), *classes.limits(parameters)),
        (classes.readme(parameters) + CLASSES.format(k=k) + "\n" if names else "")
        + README.format(
            k=k,
            payload=f" with {classes.quoted(payload)} as they were" if payload else "",
            listed=UNLISTED.format(k=k) if "listed_codes" in parameters else "",
            order=ORDERS[parameters.get("order", "kept")],
        ),
        stated_facts("codes and ages", "release", payload, **classes.facts(parameters)),
    )


def together(parameters: Mapping[str, Any]) -> bool:
    """Whether diversity is of something, and codes are listed as the hierarchy calls for."""
    sensitive = "sensitive" in parameters or "sensitive_column" in parameters
    whole = parameters["hierarchy"] == "custom" or "codes" in parameters
    return sensitive == ("diversity" in parameters) and (whole or "listed_codes" in parameters)


RECORDS = {"record": "int64"}

COUNTING = of_codes(
    pandas="""\
everybody = pd.read_parquet("data/records.parquet")
pairs = pd.read_parquet("data/trajectories.parquet")
low, high = pairs.record[pairs.code == code].nunique(), len(everybody)
""",
    r="""\
everybody <- read("records")
pairs <- read("trajectories")
low <- length(unique(pairs$record[pairs$code == code]))
high <- nrow(everybody)
""",
    intro=BOUNDED_BELOW,
)


CONTRACT = Contract(
    tables=(
        Table(
            "trajectories.parquet",
            {"record": "int64", "position": "int64", "code": "string", "age": "string"},
            order=("record", "position"),
        ),
        Table(
            "records.parquet", RECORDS, payload=True, made=classes.label_columns(RECORDS), order=("record",)
        ),
        Table("code_hierarchy.csv", None),
        Table("age_hierarchy.csv", None),
        *classes.TABLES,
        CODES,
    ),
    parameters=declared("trajectories"),
    rules=together,
    words=words,
    records=("records.parquet", "trajectories.parquet"),
    owners={"records.parquet": "place"},
    meanings=(
        ("trajectories", "record", "number of the patient, without meaning"),
        ("trajectories", "position", "place of the pair in the patient's trajectory"),
        ("trajectories", "code", "a code, or a node of `code_hierarchy.csv` above it"),
        ("trajectories", "age", "years, such as `33` or `33-36`"),
        ("records", "record", "one row a patient, also one without pairs left"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    counting=COUNTING,
)
