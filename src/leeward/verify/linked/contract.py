"""What a release of linked tables may hold, and what it must say (see `verify.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.verify import class_words
from leeward.verify.contract import CODES, Contract, Table, Words, whole
from leeward.verify.manifest import Share
from leeward.verify.readme import stated_facts

NAME = "k-anonymity of joined tables"

ROWS = {
    "patients+events": "one code",
    "patients+visits": "the day of one visit",
    "patients+visits+events": "one code with its day",
    "patients+events+events": "two codes",
}

KNOWS_THE_ALGORITHM = (
    "Somebody who knows the algorithm can rule out data that it would have turned into something else. Of the patients "
    "that fit, some may then be more likely than others, and at times one alone is left."
)

OPEN = (
    "Knowledge of more rows than a view has, of how many rows a patient has, or of codes that the patient lacks.",
    "One number joins a patient's rows: an attacker who finds one of them in another way reads them all.",
    KNOWS_THE_ALGORITHM,
    "Attackers who pool what they know, or who hold an earlier release of the same patients.",
    "What a patient suffers from, when all candidates share it.",
)

README = """\
`patients.parquet` has one row a patient, with a number (`record`) that is new in this release and the same in all its
tables. `visits.parquet` has the patients' visits (`record`, `visit`), `events.parquet` the codes of each (`record`,
`visit`, `code`); join them on `record` and `visit`. Codes{days} that fewer than k patients of a class share in one
of the views ({views}) are left out: a patient without a code may have had it.
"""

DAYS = """
`day` counts from the patient's first visit, in steps of {days} (`0`, `{days}`, …): all dates of a patient moved
together, and calendar dates are not released.
"""


def views(value: Any) -> bool:
    """Some of the views, each once and in their order."""
    return isinstance(value, list) and bool(value) and value == [each for each in ROWS if each in value]


def dated(parameters: Mapping[str, Any]) -> bool:
    """Whether a view has visits: days are released then, and only then."""
    return any("visits" in view for view in parameters["views"])


def words(share: Share) -> list[Words]:
    """The wording for the views named."""
    parameters = share.manifest["parameters"]
    named, names, days = parameters["views"], class_words.names_of(parameters), parameters.get("days")
    if dated(parameters) is not (days is not None):
        return []
    known = " or ".join(ROWS[view] for view in named) + ("" if names else " of a patient")
    if names:
        known = f"the exact {class_words.in_words(names)} of a patient and {known}"
    further: dict[str, Any] = {"demographics": names} if names else {}
    facts = stated_facts("rows of views", "release", **further, views=named)
    body = README.format(days=" and visits" if days else "", views=", ".join(named))
    body += DAYS.format(days=days) if days else ""
    if names:
        body = class_words.readme(parameters) + "\n" + body
    open_doors = (*OPEN, class_words.SMALL_CLASSES) if names else OPEN
    return [Words(NAME, f"knows {known}, and that the patient is in the data", open_doors, body, facts)]


def visit_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of `visits.parquet`: with `days`, one more."""
    found = {"record": ("int64",), "visit": ("int64",)}
    return {**found, **({"day": ("int64",)} if parameters.get("days") else {})}


CONTRACT = Contract(
    tables=(
        *class_words.TABLES,
        Table("patients.parquet", {}, made=class_words.labelled({"record": ("int64",)}), order=("record",)),
        Table("visits.parquet", {}, made=visit_columns, order=("record", "visit")),
        Table("events.parquet", {"record": ("int64",), "visit": ("int64",), "code": ("string",)}),
        CODES,
    ),
    parameters={"k": whole(2), "views": views, "days": whole(1), **class_words.PARAMETERS},
    required=("k", "views"),
    words=words,
    records=("patients.parquet", "visits.parquet", "events.parquet"),
    owners={"records.parquet": "place"},
)
