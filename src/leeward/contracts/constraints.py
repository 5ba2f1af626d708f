"""What a release of generalized records may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import LISTS, Contract, Table, Words, declared, stated_facts
from leeward.contracts.readme import knows_the_algorithm, of_codes

ATTACKER_OF_ANY = (
    "Somebody who knows up to {m} codes of a patient and looks for the records that could be the "
    "patient's: at least {k} records fit, or the codes known tell nothing because they were suppressed."
)

ATTACKER_OF_LISTED = (
    "Somebody who knows one of the code sets that the custodian listed, or a part of it, of a patient: at "
    "least {k} released records fit, or the codes known tell nothing because they were suppressed."
)

SUPPRESSED_OCCUR = "That a suppressed code occurs in the data at all: codes.parquet names it."

CLASSED_OCCUR = (
    "That a suppressed code occurs in the data at all, and that a code of a label occurs in its class: codes.parquet "
    "names them."
)

NOT_PROTECTED = (
    "What the fitting records have in common: if all of them hold a label, it is learnt.",
    "Somebody who knows which codes a patient does not have.",
)

NOT_PROTECTED_FURTHER = (
    knows_the_algorithm("the records that fit, and of the codes that a label stands for"),
    "Several releases of the same people compared with one another, or people who pool what they know.",
)

BEYOND_M = "Somebody who knows more than {m} codes of a patient."

BEYOND_LIST = "Somebody who knows a code set that the custodian did not list."

README = """\
`data/records.parquet` holds one row a patient: `record` (a new number, in an order that says nothing) and
`codes` (a list). A code that reads `(a,b,c)` is generalized: the patient has a, or b, or c, or several of
them. `data/codes.parquet` has one row a released label (`code`, and its `members`) and one a suppressed code
(`suppressed` is true, no members): suppressed codes were taken out of every record. Records that lost all
their codes stay in the file, empty, so that the number of records is the number of patients.

- To count patients with some codes, look up each code's label in `codes.parquet` and count the records that
hold all
  the labels. Where a label has several members that count is an upper bound. A usual estimate takes every
  non-empty subset of the members as equally likely: multiply by (2^(n-t))/(2^n - 1) for t codes asked for
  among n members.
- A count of a whole generalized code, "a or b or c", is exact.
- Nothing can be said of suppressed codes.
"""


CLASSED_ATTACKER_OF_ANY = (
    "Somebody who knows the exact {names} of a patient and up to {m} of the patient's codes, and looks for the records "
    "that could be the patient's: at least {k} records fit."
)

CLASSED_ATTACKER_OF_LISTED = (
    "Somebody who knows the exact {names} of a patient and one of the code sets that the custodian listed, or a part "
    "of it, and looks for the records that could be the patient's: at least {k} records fit."
)

IN_CLASSES = " in classes of demographics"

CLASSES = """
A patient's class is the row of `classes.parquet` with the demographics of the record. Every class has labels of its
own: look codes up in the rows of `codes.parquet` of that `class`. Codes of the data that are in no label of a class are
suppressed there, whether somebody in the class has them or not. To count patients, count in each class and add up.
"""


def words(parameters: Mapping[str, Any]) -> Words:
    """The wording for sets of up to m codes, or for the custodian's list; alone, or with demographics."""
    m, names = parameters.get("m"), classes.names_of(parameters)
    if names:
        name = ("protected code sets" if m is None else "(k, k^m)-anonymity") + IN_CLASSES
        attacker = CLASSED_ATTACKER_OF_LISTED if m is None else CLASSED_ATTACKER_OF_ANY
    else:
        name = "protected code sets" if m is None else "k^m-anonymity"
        attacker = ATTACKER_OF_LISTED if m is None else ATTACKER_OF_ANY
    return Words(
        name,
        attacker.format(names=classes.in_words(names), k=parameters["k"], m=m),
        (
            BEYOND_LIST if m is None else BEYOND_M.format(m=m),
            *NOT_PROTECTED,
            CLASSED_OCCUR if names else SUPPRESSED_OCCUR,
            *NOT_PROTECTED_FURTHER,
            *classes.limits(parameters),
        ),
        (classes.readme(parameters) + CLASSES + "\n" if names else "") + README,
        stated_facts(
            "listed sets of codes" if m is None else "up to m codes", "release", **classes.facts(parameters)
        ),
    )


RECORDS = {"record": "int64", "codes": LISTS}
CODES = {"code": "string", "members": LISTS, "suppressed": "bool"}


def code_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of `codes.parquet`: with classes, whose label it is before all others."""
    return {**({"class": "int64"} if classes.names_of(parameters) else {}), **CODES}


COUNTING = of_codes(
    pandas="""\
everybody = pd.read_parquet("data/records.parquet")
labels = listed[[code in list(held) for held in listed.members]]
hits = everybody[[bool(set(held) & set(labels.index)) for held in everybody.codes]]
exact = code in labels.index and len(labels.members[code]) == 1
low, high = (len(hits) if exact else 0), (len(hits) if len(labels) else len(everybody))
""",
    r="""\
everybody <- read("records")
labels <- listed[has(listed$members, code), ]
hits <- sum(vapply(everybody$codes, function(held) any(held %in% labels$code), NA))
low <- if (code %in% labels$code && length(labels$members[[match(code, labels$code)]]) == 1) hits else 0
high <- if (nrow(labels)) hits else nrow(everybody)
""",
)


CONTRACT = Contract(
    tables=(
        Table("records.parquet", RECORDS, made=classes.label_columns(RECORDS), order=("record",)),
        Table("codes.parquet", CODES, made=code_columns),
        *classes.TABLES,
    ),
    parameters=declared("constraints"),
    completed=lambda p: {**p, "algorithm": "mapping"} if p.get("mapping") else p,
    rules=lambda p: ("m" in p) != ("privacy" in p),
    words=words,
    numbers=("k", "m"),
    records=("records.parquet",),
    meanings=(
        ("records", "record", "number of the patient, without meaning"),
        ("records", "codes", "list of released labels; may be empty"),
        ("codes", "code", "a released label, or a suppressed code"),
        ("codes", "members", "the codes that the label stands for; empty for a suppressed code"),
        ("codes", "suppressed", "true where the code is in no record"),
    ),
    counting=COUNTING,
)
