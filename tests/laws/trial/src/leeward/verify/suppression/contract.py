"""What a release of suppressed codes may hold, and what it must say (see `verify.contract`)."""

from __future__ import annotations

from leeward.verify.contract import LISTS, Contract, Table, Words, whole
from leeward.verify.manifest import Share
from leeward.verify.readme import stated_facts

README = "`records.parquet` has one row per patient; codes of fewer than k patients were suppressed."


def words(share: Share) -> list[Words]:
    """The one wording."""
    attacker = "Somebody who knows one code of a patient: at least k records have it, or none."
    not_protected = ("Somebody who knows two codes or more of a patient.",)
    return [Words("codes of k patients", attacker, not_protected, README, stated_facts("a code", "release"))]


CONTRACT = Contract(
    tables=(Table("records.parquet", {"codes": LISTS}),),
    parameters={"k": whole(2)},
    required=("k",),
    words=words,
    records=("records.parquet",),
)
