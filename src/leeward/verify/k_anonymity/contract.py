"""What a release of a k-anonymous table may hold, and what it must say (see `verify.contract`)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from leeward.verify.condensation.contract import plan
from leeward.verify.contract import Contract, Table, Words, texts, whole
from leeward.verify.manifest import Share
from leeward.verify.readme import stated_facts

ATTACKER = (
    "Somebody who knows all quasi-identifiers of a patient: at least k released rows agree on all of them."
)

OTHERS = "Columns that are no quasi-identifiers are published as they are: {columns}."

SHARED = "What a whole group shares can be read from the release (no l-diversity)."

POOLED = (
    "People who pool what they know: somebody who knows a value of all patients of a group but one can subtract these "
    "from the group's mean, and has the last patient's value. Who is in a group follows from everybody's "
    "quasi-identifiers, and often from columns that are published as they are."
)

README = (
    "`table.parquet` has the columns and types of the original table. In quasi-identifiers ({columns}) each row has "
    "the typical value of its group: the mean, or the most frequent level."
)


def words(share: Share) -> list[Words]:
    """The wording of k-anonymity over the quasi-identifiers named."""
    names = share.manifest["parameters"].get("quasi_identifiers")
    if not texts(names):
        return []
    try:
        columns = pq.read_schema(share.data("table.parquet")).names
    except (OSError, pa.ArrowInvalid):
        return []
    rest = [name for name in columns if name not in names]
    open_doors = (*([OTHERS.format(columns=", ".join(rest))] if rest else []), SHARED, POOLED)
    readme = README.format(columns=", ".join(names))
    return [
        Words("k-anonymity", ATTACKER, open_doors, readme, stated_facts("quasi-identifiers", "release", rest))
    ]


CONTRACT = Contract(
    tables=(Table("table.parquet", None),),
    parameters={"k": whole(2), "quasi_identifiers": texts, "plan": plan},
    required=("k", "quasi_identifiers"),
    words=words,
    records=("table.parquet",),
    owners={"released_rows.parquet": "group"},
)
