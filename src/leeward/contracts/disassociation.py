"""What a release of disassociated chunks may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts
from leeward.contracts.readme import of_codes

NAME = "k^m-anonymity by disassociation (Guarantee 1)"

ATTACKER = "knows up to {m} diagnosis codes of a patient and that the patient is in the data"

SOME_DATA_SET = (
    "The guarantee promises only that some data set that fits these files has {k} matching patients; it need not be "
    "the true one. An attacker who knows the algorithm knows that a code of an item chunk has fewer than {k} patients "
    "in its cluster: for many sets with a rare code, no data set that the algorithm could have started from has k "
    "candidate records."
)
COVERS = (
    "Within a chunk one code may always come with another, so that knowing the first reveals the second (the cover "
    "problem)."
)
NO_COVERS = " Switched off here: no chunk has such a pair."
BEYOND_M = "Knowledge of more than {m} codes of a patient, or of codes that a patient does not have."
POOLED = (
    "Attackers who pool what they know, who know several patients' records, or who hold an earlier release of the same "
    "patients."
)
AGREED = "What a patient suffers from, when all candidate records agree on it."
SENSITIVE = (
    "Sensitive codes are assumed unknown to the attacker; utility constraints that name them are not kept."
)

OF_THE_ALGORITHM = "k^m-anonymity by disassociation (Guarantee 1, of the algorithm)"

KNOWS_ALGORITHM = (
    "knows up to {m} diagnosis codes of a patient, that the patient is in the data, and the algorithm, but not its "
    "random draws"
)

SOME_DATA_SET_OF_THE_ALGORITHM = (
    "The guarantee promises only that some data set that the algorithm turns into these files has {k} candidate "
    "records, not that such data sets are the likeliest."
)

README_OF_COUNTS = """\
`data/nodes.parquet` lists the clusters of patients (`kind` = `cluster`) and the joint clusters made of them
(`joint`; `parent` names the joint cluster above), each with its number of `records`.

`data/chunks.parquet` counts codes. Every chunk is about one code: it has one row for each patient of the node with the
code who is not counted with it in a node below. A code that is in no chunk of a cluster or of the joint clusters above
it may still be some patients' in that cluster: codes that too few patients share are left out.

To count patients with a set of codes, `leeward estimate FOLDER CODE,CODE` gives the least, the expected and the
greatest number. By hand: inside a cluster of N patients multiply the codes' shares of the N patients (for a code of a
joint cluster, its share of the joint cluster's patients in clusters that do not count the code themselves); then add up
the clusters. Pair counts are estimates.
"""

README = """\
`data/nodes.parquet` lists the clusters of patients (`kind` = `cluster`) and the joint clusters made of them
(`joint`; `parent` names the joint cluster above), each with its number of `records`.

`data/chunks.parquet` holds what is published of each node. A *record chunk* (`kind` = `record`) has one row a patient
of the cluster: the codes of that patient that fall in this chunk, an empty list where there is none. Rows of different
chunks are shuffled apart, so nothing tells which subrecords belong to one patient. A *shared chunk* (`shared`) is the
same over all patients of a joint cluster. The *item chunk* (`item`, one row a cluster) lists codes that at least one
patient of the cluster has, without counts.

To count patients with a set of codes, `leeward estimate FOLDER CODE,CODE` gives the least, the expected and the
greatest number. By hand: inside a cluster of N patients the codes of one chunk are counted exactly; for codes in
different chunks multiply their shares of the N patients; an item-chunk code counts once or a little more. Then add up
the clusters. `reconstructions/`, where present, are data sets that could have given these files (an item-chunk code
is on n patients of the cluster with a probability that falls as 1/n^3): analyse several and report the spread. Pair
counts across chunks are estimates; absence of a pair in one reconstruction proves nothing.
"""

CLASSED_NAME = (
    "(k, k^m)-anonymity by disassociation inside classes of demographics (Guarantee 1 in every class)"
)

CLASSED_ATTACKER = (
    "knows the exact {names} of a patient and up to {m} of the patient's diagnosis codes, and that the patient is in "
    "the data"
)

CLASSES = """
Each node of `data/nodes.parquet` belongs to one `class`: no cluster and no joint cluster crosses classes, so counts
inside a class follow from its nodes alone. `leeward estimate FOLDER CODE --where COLUMN=LABEL` counts the patients of
the classes that fit.
"""

PAYLOAD = """
`data/payload.parquet` has the values of the payload columns, one row a patient and `column`, shuffled inside every
cluster (`node`): nothing tells which of the cluster's patients has a value.
"""

PAYLOAD_UNKNOWN = (
    "The payload ({names}) is assumed unknown to the attacker. Values that all records of a cluster share are "
    "disclosed to whoever knows that a patient is in the cluster."
)
COLUMNS_UNKNOWN = (
    "The sensitive columns ({names}) are assumed unknown to the attacker, who sees how often each value occurs in a "
    "class: a value can be inferred by an attacker who knows those of other patients in the class, or how it depends "
    "on codes. That a patient has no value is not protected."
)

SENSITIVE_COLUMNS = """
`data/sensitive.parquet` counts the values of the sensitive columns: `records` of a `class` have the `value` in the
`column`. In no class has a value more than 1 in L of the records: {ells}. An empty value is none and may be frequent.
"""


def words(parameters: Mapping[str, Any]) -> Words:
    k, m = parameters["k"], parameters["m"]
    if parameters.get("attacker") == "algorithm":
        return Words(
            OF_THE_ALGORITHM,
            KNOWS_ALGORITHM.format(m=m),
            (SOME_DATA_SET_OF_THE_ALGORITHM.format(k=k), BEYOND_M.format(m=m), POOLED, AGREED),
            README_OF_COUNTS,
            stated_facts("up to m codes", "data sets"),
        )
    names, ells = classes.names_of(parameters), classes.ells_of(parameters)
    payload = parameters.get("payload") or ()
    more = {"diversity": ells} if ells else {}
    left_open = [
        SOME_DATA_SET.format(k=k),
        COVERS + (NO_COVERS if parameters["safe"] else ""),
        BEYOND_M.format(m=m),
        POOLED,
        AGREED,
        *([SENSITIVE] if parameters.get("sensitive") else []),
        *classes.limits(parameters),
        *([PAYLOAD_UNKNOWN.format(names=classes.in_words(payload))] if payload else []),
        *([COLUMNS_UNKNOWN.format(names=classes.in_words(list(ells)))] if ells else []),
    ]
    return Words(
        CLASSED_NAME if names else NAME,
        (CLASSED_ATTACKER if names else ATTACKER).format(names=classes.in_words(names), m=m),
        tuple(left_open),
        reading(parameters) + README,
        stated_facts("up to m codes", "data sets", payload, **classes.facts(parameters), **more),
    )


def reading(parameters: Mapping[str, Any]) -> str:
    """How classes, payload and sensitive columns are read; nothing without classes."""
    if not classes.names_of(parameters):
        return ""
    ells = ", ".join(f"{name} L = {ell}" for name, ell in classes.ells_of(parameters).items())
    text = classes.readme(parameters) + CLASSES + (PAYLOAD if parameters.get("payload") else "")
    return text + (SENSITIVE_COLUMNS.format(ells=ells) if ells else "") + "\n"


NODES = {"node": "int64", "parent": "int64", "kind": "string", "records": "int64"}


def node_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of `nodes.parquet`: with classes, one more."""
    return {**NODES, **({"class": "int64"} if classes.names_of(parameters) else {})}


RANKED = {"partitioning": "ranked", "nested": True, "safe": True, "reconstructions": 0}
"""What `attacker: algorithm` makes of parameters."""


def complete(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters with the partitioning and size of clusters that they leave to the method."""
    given = {name: value for name, value in parameters.items() if value is not None}
    k, chosen = given.get("k", 5), given.get("partitioning")
    if not isinstance(k, int):
        return given
    if given.get("attacker") == "algorithm":
        return {"max_cluster": 20 * k, **given, **RANKED}
    if chosen not in ("fitted", "recut", "paper"):
        chosen = "fitted" if k >= 3 else "recut"
    times = 2 if chosen != "fitted" else 10 if given.get("demographics") else min(k, 10)
    return {"max_cluster": times * k, **given, "partitioning": chosen}


def reconstructions(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The files of the reconstructions that the parameters state."""
    return (f"reconstructions/{number:02d}.parquet" for number in range(1, parameters["reconstructions"] + 1))


COUNTING = of_codes(
    pandas="""\
nodes = pd.read_parquet("data/nodes.parquet").set_index("node")
chunks = pd.read_parquet("data/chunks.parquet")
hits = chunks[[code in list(held) for held in chunks.codes]]
item = hits[hits.kind == "item"]
counted = len(hits) - len(item)
low, high = counted + len(item), counted + nodes.records[item.node].sum()
""",
    r="""\
nodes <- read("nodes")
chunks <- read("chunks")
hits <- chunks[has(chunks$codes, code), ]
item <- hits[hits$kind == "item", ]
counted <- nrow(hits) - nrow(item)
low <- counted + nrow(item)
high <- counted + sum(nodes$records[match(item$node, nodes$node)])
""",
)


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table("nodes.parquet", NODES, nullable=frozenset({"parent"}), made=node_columns, order=("node",)),
        Table(
            "chunks.parquet",
            {"node": "int64", "chunk": "int64", "kind": "string", "subrecord": "int64", "codes": LISTS},
            nullable=frozenset({"subrecord"}),
            order=("node", "chunk", "subrecord"),
        ),
        Table(
            lambda parameters: ["payload.parquet"] if parameters.get("payload") else [],
            {"node": "int64", "column": "string", "value": "string"},
            nullable=frozenset({"value"}),
        ),
        Table(
            lambda parameters: ["sensitive.parquet"] if classes.ells_of(parameters) else [],
            {"class": "int64", "column": "string", "value": "string", "records": "int64"},
            nullable=frozenset({"value"}),
        ),
        Table(reconstructions, {"record": "int64", "codes": LISTS}, order=("record",)),
        CODES,
    ),
    parameters=declared("disassociation"),
    completed=complete,
    words=words,
    numbers=("k", "m"),
    meanings=(
        ("nodes", "node", "number of a cluster of patients, or of a joint cluster made of several"),
        ("nodes", "parent", "the joint cluster above; empty at the top"),
        ("nodes", "kind", "`cluster` or `joint`"),
        ("nodes", "records", "number of patients in it"),
        ("chunks", "node", "the node that the chunk belongs to"),
        ("chunks", "chunk", "number of the chunk inside its node"),
        ("chunks", "kind", "`record`, `shared` (rows are patients) or `item` (codes that occur, uncounted)"),
        ("chunks", "subrecord", "number of the row inside its chunk; no order; empty for `item`"),
        ("chunks", "codes", "list of codes; may be empty"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    counting=COUNTING,
)
