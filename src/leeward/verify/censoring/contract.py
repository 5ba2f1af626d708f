"""What a release of censored records may hold, and what it must say (see `verify.contract`)."""

from __future__ import annotations

from typing import Any

from leeward.verify.contract import CODES, LISTS, Contract, Table, Words, one_of, texts, whole
from leeward.verify.manifest import Share
from leeward.verify.readme import stated_facts

ATTACKER = (
    "Somebody who knows the codes of a person of the population, each with its number of mentions, but not who "
    "is in the sample, and who takes for a candidate everybody whose record contains a released one: at least "
    "{k} people are, so a guess at whose record it is is right at most once in {k}."
)

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
    "Somebody who has everybody's full records and knows the method, but not who is in the sample: at least {k} people "
    "of the population would be published exactly as each released record is, so a guess at whose record it is is "
    "right at most once in {k}."
)

README = """\
`data/records.parquet` holds one row a record: `record` (a new number), `codes` (a list, sorted; a code that was
recorded n times is listed n times, unless censored){payload}.

- A code's number of mentions is a lower bound: mentions may have been censored, none was added or changed.
- For a phenotype of "at least two mentions" count a code's places in the list. Cases found are cases; some records
  that had two mentions may show one.
- Records without any code stay in the file with an empty list, so the number of records is that of the sample.
- {rule}
"""

RULES = {
    "global": "All records are censored alike: no code is more often in any record than its final cap.",
    "raise": "All records are censored alike: no code is more often in any record than its final cap.",
    "record": "Each record was censored by itself, so how often a code may occur differs from record to record.",
    "groups": "Each record shows what a group of at least k people of the population has in common; a code that is not "
    "shown may be there, and which codes are hidden differs from group to group.",
}

MOST_MENTIONS = 65_535


def words(share: Share) -> list[Words]:
    """The wording of a k-map by scope."""
    parameters = share.manifest["parameters"]
    scope = parameters.get("scope")
    if scope not in RULES:
        return []
    k = parameters.get("k")
    rule = KNOWS_THE_RECORD_RULE if scope == "record" else KNOWS_THE_GREEDY_RULE
    payload = [f"`{name}`" for name in parameters.get("payload") or ()]
    carried = f", and {', '.join(payload)} as they were" if payload else ""
    knows = "codes and mentions" + (", and the method" if scope == "groups" else "")
    return [
        Words(
            "k-map",
            (ATTACKER_OF_GROUPS if scope == "groups" else ATTACKER).format(k=k),
            NOT_PROTECTED if scope == "groups" else (*NOT_PROTECTED, rule.format(k=k)),
            README.format(payload=carried, rule=RULES[scope]),
            stated_facts(knows, "population", parameters.get("payload") or ()),
        )
    ]


def caps(value: Any) -> bool:
    """A cap for each of some codes, the codes ascending."""
    cap = whole(0, MOST_MENTIONS)
    return isinstance(value, dict) and list(value) == sorted(value) and all(map(cap, value.values()))


CONTRACT = Contract(
    tables=(
        CODES,
        Table(r"records\.parquet", {"record": ("int64",), "codes": LISTS}, payload=True, order=("record",)),
    ),
    parameters={
        "k": whole(2),
        "scope": one_of(*RULES),
        "cap": whole(1, MOST_MENTIONS),
        "caps": caps,
        "payload": texts,
    },
    required=("k", "scope"),
    words=words,
    model="journalist",
    records=("records.parquet",),
    owners={"records.parquet": "place"},
)
