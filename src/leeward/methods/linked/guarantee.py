"""The release in plain words: guarantee, attacker, what is left open, and how a recipient reads the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.methods import demographics_words as whole
from leeward.release.content import Guarantee, stated_facts

if TYPE_CHECKING:
    from leeward.methods.linked.parameters import Linked

ROWS = {
    "patients+events": "one code",
    "patients+visits": "the day of one visit",
    "patients+visits+events": "one code with its day",
    "patients+events+events": "two codes",
}
"""What an attacker knows who can do a join, beside demographics."""

KNOWS_THE_ALGORITHM = (
    "Somebody who knows the algorithm can rule out data that it would have turned into something else. Of the patients "
    "that fit, some may then be more likely than others, and at times one alone is left."
)

README = """\
`patients.parquet` has one row a patient, with a number (`record`) that is new in this release and the same in all its
tables. `visits.parquet` has the patients' visits (`record`, `visit`), `events.parquet` the codes of each (`record`,
`visit`, `code`); join them on `record` and `visit`. Codes{and_days} that fewer than k patients of a class share in one
of the views ({views}) are left out: a patient without a code may have had it.
"""

DAYS = """\

`day` counts from the patient's first visit, in steps of {days} (`0`, `{days}`, …): all dates of a patient moved
together, and calendar dates are not released.
"""


def guarantee_of(parameters: Linked) -> Guarantee:
    """What holds, against whom, and what it does not protect (docs/methods/linked.md#guarantee)."""
    names = parameters.demographics
    known = " or ".join(ROWS[view] for view in parameters.views)
    of_whom = (
        f"the exact {whole.listed(names)} of a patient and {known}" if names else f"{known} of a patient"
    )
    open_ends = [
        "Knowledge of more rows than a view has, of how many rows a patient has, or of codes that the patient lacks.",
        "One number joins a patient's rows: an attacker who finds one of them in another way reads them all.",
        KNOWS_THE_ALGORITHM,
        "Attackers who pool what they know, or who hold an earlier release of the same patients.",
        "What a patient suffers from, when all candidates share it.",
    ]
    return Guarantee(
        name="k-anonymity of joined tables",
        k=parameters.k,
        attacker=f"knows {of_whom}, and that the patient is in the data",
        not_protected=(*open_ends, *(whole.limits(()) if names else ())),
        facts=stated_facts(
            "rows of views",
            "release",
            **({"demographics": list(names)} if names else {}),
            views=list(parameters.views),
        ),
    )


def readme_of(parameters: Linked) -> str:
    """How a recipient reads the tables; it does not depend on the data."""
    days = parameters.days
    body = README.format(and_days=" and visits" if days else "", views=", ".join(parameters.views))
    classes = (
        whole.readme(parameters.demographics, parameters.small) + "\n" if parameters.demographics else ""
    )
    return classes + body + (DAYS.format(days=days) if days else "")
