"""What a release of generalized records may hold, and what it must say (see `verify.contract`)."""

from __future__ import annotations

from leeward.verify.contract import LISTS, POLICY, Contract, Table, Words, number, one_of, text, whole
from leeward.verify.manifest import Share
from leeward.verify.readme import stated_facts

ATTACKER_OF_ANY = (
    "Somebody who knows up to {m} codes of a patient and looks for the records that could be theirs: at "
    "least {k} records fit, or the codes known tell nothing because they were suppressed."
)

ATTACKER_OF_LISTED = (
    "Somebody who knows one of the code sets that the custodian listed, or a part of it, of a patient: at "
    "least {k} released records fit, or the codes known tell nothing because they were suppressed."
)

NOT_PROTECTED = (
    "What the fitting records have in common: if all of them hold a label, it is learnt.",
    "Somebody who knows which codes a patient does not have.",
    "That a suppressed code occurs in the data at all: codes.parquet names it.",
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


def words(share: Share) -> list[Words]:
    """The wording for sets of up to m codes, or for the custodian's list."""
    parameters = share.manifest["parameters"]
    k, m = parameters.get("k"), parameters.get("m")
    if m is None:
        attacker, open_doors = ATTACKER_OF_LISTED.format(k=k), (BEYOND_LIST, *NOT_PROTECTED)
        listed = stated_facts("listed sets of codes", "release")
        return [Words("protected code sets", attacker, open_doors, README, listed)]
    open_doors = (BEYOND_M.format(m=m), *NOT_PROTECTED)
    attacker = ATTACKER_OF_ANY.format(k=k, m=m)
    return [Words("k^m-anonymity", attacker, open_doors, README, stated_facts("up to m codes", "release"))]


CONTRACT = Contract(
    tables=(
        Table(r"records\.parquet", {"record": ("int64",), "codes": LISTS}, order=("record",)),
        Table(r"codes\.parquet", {"code": ("string",), "members": LISTS, "suppressed": ("bool",)}),
    ),
    parameters={
        "algorithm": one_of("cba", "ugaclip", "coat", "apriori", "mapping"),
        "k": whole(2),
        "m": whole(1),
        "privacy": one_of("listed"),
        "policy": text(POLICY),
        "cap": number(0, 1),
        "weights": one_of("leaves"),
    },
    required=("algorithm", "k"),
    words=words,
    numbers=("k", "m"),
    records=("records.parquet",),
)
