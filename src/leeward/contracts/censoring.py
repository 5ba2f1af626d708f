"""What a release of censored records may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts
from leeward.contracts.readme import BOUNDED_BELOW, of_codes

ATTACKER = (
    "Somebody who knows the codes of a person of the population, each with its number of mentions,{exact} but not who "
    "is in the sample, and who takes for a candidate everybody whose record contains a released one{fits}: at least "
    "{k} people are, so a guess at the record's person is right at most once in {k}."
)

EXACT, FITS = " and the exact {names},", " and whose demographics fit its labels"

NOT_PROTECTED = (
    "Somebody who knows that a person is in the sample: there a record may be the only one of its kind.",
    "What all candidates have in common: if each of them has a diagnosis, it is learnt.",
    "The payload columns: they are released as they are.",
    "Several releases of the same people compared with one another, or people who pool what they know.",
)

KNOWS_THE_GREEDY_RULE = (
    "Somebody who has everybody's full records and knows that all codes up to the final caps are shown: a "
    "candidate of whom more would be shown cannot be the owner. That may leave fewer than {k} candidates, at times "
    "one; the custodian's report says for how many records."
)

KNOWS_THE_RECORD_RULE = (
    "Somebody who has everybody's full records and knows this rule, by which each record keeps the largest part "
    "that {k} people share: a candidate of whom more could have been shown cannot be the owner. That often leaves "
    "fewer than {k} candidates, at times one; the custodian's report says for how many records."
)

ATTACKER_OF_GROUPS = (
    "Somebody who has everybody's full records{exact} and knows the method, but not who is in the sample: at least {k} "
    "people of the population would be published exactly as each released record is{fits}, so a guess at "
    "the record's person is right at most once in {k}."
)
EVERYBODY, ALIKE = " with the exact {names}", ", with the same labels of demographics"

README = """\
`data/records.parquet` holds one row a record: `record` (a new number), `codes` (a list, sorted; a code that was
recorded n times is listed n times, unless censored){payload}.

- A code's number of mentions is a lower bound: mentions may have been censored, none was added or changed.
- For a phenotype of "at least two mentions" count a code's places in the list. Cases found are cases; some records
  that had two mentions may show one.
- Records without any code stay in the file with an empty list, so the number of records is that of the sample.
- {rule}
"""

CLASSES = """\
`data/classes.parquet` has one row a *class*: records that are released with the same demographics ({names}), each as a
label of a hierarchy, and the number of `records`. At least k people of the population could have these labels, fewer
may be in the sample. `hierarchies/*.csv` list the published labels with their parents; `*` is the root: nothing is
released. An interval such as `70-79` includes both ends, `441**` is every text of that length that begins so, and
`(missing)` are patients without a value. A patient may fit several classes. `data/records.parquet` has the labels of
each record's class. Codes were censored in every class by itself.
"""
LEFT_OUT = "Patients whose demographics fewer than k people of the population share are not in the release.\n"

RULES = {
    "global": "All records are censored alike: no code is more often in any record than its final cap.",
    "raise": "All records are censored alike: no code is more often in any record than its final cap.",
    "record": "Each record was censored by itself, so how often a code may occur differs from record to record.",
    "groups": "Each record shows what a group of at least k people of the population has in common; a code that is not "
    "shown may be there, and which codes are hidden differs from group to group.",
}

MOST_MENTIONS = 65_535


def words(parameters: Mapping[str, Any]) -> Words:
    """The wording of a k-map by scope."""
    k, scope, payload = parameters["k"], parameters["scope"], parameters.get("payload") or ()
    grouped = scope == "groups"
    attacker, exact, fits = (ATTACKER_OF_GROUPS, EVERYBODY, ALIKE) if grouped else (ATTACKER, EXACT, FITS)
    names, opening, carried = classes.names_of(parameters), "", ""
    if names:
        opening = CLASSES.format(names=classes.in_words(names))
        opening += (LEFT_OUT if parameters.get("small") == "drop" else "") + "\n"
        carried = f", the labels {classes.quoted(names)}"
        exact = exact.format(names=classes.in_words(names))
    else:
        exact = fits = ""
    carried += f", and {classes.quoted(payload)} as they were" if payload else ""
    rule = {"record": (KNOWS_THE_RECORD_RULE,), "groups": ()}.get(scope, (KNOWS_THE_GREEDY_RULE,))
    known = "codes and mentions" + (", and the method" if grouped else "")
    return Words(
        "k-map" + (classes.INSIDE if names else ""),
        attacker.format(k=k, exact=exact, fits=fits),
        (*NOT_PROTECTED, *(each.format(k=k) for each in rule), *classes.limits(parameters)),
        opening + README.format(payload=carried, rule=RULES[scope]),
        stated_facts(known, "population", payload, **classes.facts(parameters)),
    )


COUNTING = of_codes(
    pandas="""\
everybody = pd.read_parquet("data/records.parquet")
hits = everybody[[code in list(held) for held in everybody.codes]]
low, high = len(hits), len(everybody)
""",
    r="""\
everybody <- read("records")
low <- sum(has(everybody$codes, code))
high <- nrow(everybody)
""",
    intro=BOUNDED_BELOW,
)


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table(
            "records.parquet",
            {},
            payload=True,
            made=classes.label_columns({"record": "int64", "codes": LISTS}),
            order=("record",),
        ),
        CODES,
    ),
    parameters=declared("censoring"),
    words=words,
    model="journalist",
    records=("records.parquet",),
    owners={"records.parquet": "place"},
    meanings=(
        ("records", "record", "number of the patient, without meaning"),
        ("records", "codes", "list of codes, a code as often as it is released; may be empty"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    counting=COUNTING,
)
