"""What a release of linked tables may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, Contract, Counting, Table, Words, declared, stated_facts
from leeward.contracts.readme import BOUNDED, knows_the_algorithm

ROWS = {
    "patients+events": "one code",
    "patients+visits": "the day of one visit",
    "patients+visits+events": "one code with its day",
    "patients+events+events": "two codes",
}
"""What an attacker knows who can do a join, beside demographics."""

NOT_PROTECTED = (
    "Knowledge of more rows than a view has, of how many rows a patient has, or of codes that the patient lacks.",
    "One number joins a patient's rows: an attacker who finds one of them in another way reads them all.",
    knows_the_algorithm("the patients that fit"),
    "Attackers who pool what they know, or who hold an earlier release of the same patients.",
    "What a patient suffers from, when all candidates share it.",
)

README = """\
`patients.parquet` has one row a patient, with a number (`record`) that is new in this release and the same in all its
tables. `visits.parquet` has the patients' visits (`record`, `visit`), `events.parquet` the codes of each (`record`,
`visit`, `code`); join them on `record` and `visit`. Codes{and_days} that fewer than k patients of a class share in one
of the views ({views}) are left out: a patient without a code may have had it.
"""

DAYS = """
`day` counts from the patient's first visit, in steps of {days} (`0`, `{days}`, …): all dates of a patient moved
together, and calendar dates are not released.
"""


def views(value: Any) -> bool:
    """Some of the views, each once and in their order."""
    return isinstance(value, list) and bool(value) and value == [each for each in ROWS if each in value]


def has_days(parameters: Mapping[str, Any]) -> bool:
    """Whether a view has visits: days are released then, and only then."""
    return any("visits" in view for view in parameters["views"])


def words(parameters: Mapping[str, Any]) -> Words:
    named, names, days = parameters["views"], classes.names_of(parameters), parameters.get("days")
    known = " or ".join(ROWS[view] for view in named)
    whose = (
        f"the exact {classes.in_words(names)} of a patient and {known}" if names else f"{known} of a patient"
    )
    reading = README.format(and_days=" and visits" if days else "", views=", ".join(named))
    return Words(
        "k-anonymity of joined tables",
        f"knows {whose}, and that the patient is in the data",
        (*NOT_PROTECTED, *classes.limits(parameters)),
        (classes.readme(parameters) + "\n" if names else "")
        + reading
        + (DAYS.format(days=days) if days else ""),
        stated_facts("rows of views", "release", **classes.facts(parameters), views=named),
    )


def visit_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of `visits.parquet`: with `days`, one more."""
    found = {"record": "int64", "visit": "int64"}
    return {**found, **({"day": "int64"} if parameters.get("days") else {})}


COUNTING = Counting(
    intro=BOUNDED,
    pandas="""\
import pandas as pd

everybody = pd.read_parquet("data/patients.parquet")
events = pd.read_parquet("data/events.parquet")
code = events.code.iloc[0]  # or another one: what is not there is unknown, not 0
low, high = events.record[events.code == code].nunique(), len(everybody)
print(low, "to", high, "patients")
""",
    r="""\
read <- function(name) arrow::read_parquet(paste0("data/", name, ".parquet"))
everybody <- read("patients")
events <- read("events")
code <- events$code[1]  # or another one: what is not there is unknown, not 0
low <- length(unique(events$record[events$code == code]))
high <- nrow(everybody)
cat(low, "to", high, "patients\\n")
""",
)


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table("patients.parquet", {}, made=classes.label_columns({"record": "int64"}), order=("record",)),
        Table("visits.parquet", {}, made=visit_columns, order=("record", "visit")),
        Table("events.parquet", {"record": "int64", "visit": "int64", "code": "string"}),
        CODES,
    ),
    parameters=declared("linked"),
    rules=lambda p: views(p["views"]) and has_days(p) == ("days" in p),
    words=words,
    records=("patients.parquet", "visits.parquet", "events.parquet"),
    owners={"records.parquet": "place"},
    meanings=(
        ("patients", "record", "number of the patient, without meaning; the same in all tables"),
        ("visits", "visit", "number of the visit inside the patient"),
        ("visits", "day", "days since the patient's first visit, cut to steps"),
        ("events", "visit", "the visit in which the code was recorded"),
        ("events", "code", "a code"),
    ),
    counting=COUNTING,
)
