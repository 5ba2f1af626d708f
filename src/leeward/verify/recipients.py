"""Words for recipients that the README of a release must have: columns, lines that count a code, citing.

Written again beside `release.recipients`: a README that says something else is refuted.
"""

from __future__ import annotations

from collections.abc import Sequence

COLUMNS = """\
| file | column | meaning |
|---|---|---|
"""

MEANINGS = {
    "disassociation": (
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
    "constraints": (
        ("records", "record", "number of the patient, without meaning"),
        ("records", "codes", "list of released labels; may be empty"),
        ("codes", "code", "a released label, or a suppressed code"),
        ("codes", "members", "the codes that the label stands for; empty for a suppressed code"),
        ("codes", "suppressed", "true where the code is in no record"),
    ),
    "censoring": (
        ("records", "record", "number of the patient, without meaning"),
        ("records", "codes", "list of codes, a code as often as it is released; may be empty"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    "visits": (
        ("visits", "record", "number of the patient, without meaning"),
        ("visits", "visit", "number of the visit, without order"),
        ("visits", "codes", "list of labels; `a|b` stands for a, b or both"),
        ("records", "record", "one row a patient, also one without visits left"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
    "trajectories": (
        ("trajectories", "record", "number of the patient, without meaning"),
        ("trajectories", "position", "place of the pair in the patient's trajectory"),
        ("trajectories", "code", "a code, or a node of `code_hierarchy.csv` above it"),
        ("trajectories", "age", "years, such as `33` or `33-36`"),
        ("records", "record", "one row a patient, also one without pairs left"),
        ("codes", "code, name, vocabulary, suppressed", "see above"),
    ),
}
"""Method -> file, column, meaning."""

INTRO = """\
How many patients have a code, with bounds that are certain. Run in this folder:
"""

LISTED = """\
import pandas as pd

listed = pd.read_parquet("data/codes.parquet").set_index("code")
code = listed.index[0]  # or another one
assert code in listed.index, "not in this release: unknown, not 0"
"""

PANDAS = {
    "disassociation": """\
nodes = pd.read_parquet("data/nodes.parquet").set_index("node")
chunks = pd.read_parquet("data/chunks.parquet")
hits = chunks[[code in list(held) for held in chunks.codes]]
item = hits[hits.kind == "item"]
counted = len(hits) - len(item)
low, high = counted + len(item), counted + nodes.records[item.node].sum()
""",
    "constraints": """\
everybody = pd.read_parquet("data/records.parquet")
labels = listed[[code in list(held) for held in listed.members]]
hits = everybody[[bool(set(held) & set(labels.index)) for held in everybody.codes]]
exact = code in labels.index and len(labels.members[code]) == 1
low, high = (len(hits) if exact else 0), (len(hits) if len(labels) else len(everybody))
""",
    "censoring": """\
everybody = pd.read_parquet("data/records.parquet")
hits = everybody[[code in list(held) for held in everybody.codes]]
low, high = len(hits), len(everybody)
""",
    "visits": """\
everybody = pd.read_parquet("data/records.parquet")
visits = pd.read_parquet("data/visits.parquet")
hits = visits[[code in list(held) for held in visits.codes]]
low, high = hits.record.nunique(), len(everybody)
""",
    "trajectories": """\
everybody = pd.read_parquet("data/records.parquet")
pairs = pd.read_parquet("data/trajectories.parquet")
low, high = pairs.record[pairs.code == code].nunique(), len(everybody)
""",
}

PRINT = """\
print(low, "to", high, "patients")
"""

R_LISTED = """\
read <- function(name) arrow::read_parquet(paste0("data/", name, ".parquet"))
has <- function(lists, code) vapply(lists, function(held) code %in% held, NA)
listed <- read("codes")
code <- unlist(listed$code)[1]  # or another one
stopifnot(code %in% unlist(listed$code))  # else not in this release: unknown, not 0
"""

R = {
    "disassociation": """\
nodes <- read("nodes")
chunks <- read("chunks")
hits <- chunks[has(chunks$codes, code), ]
item <- hits[hits$kind == "item", ]
counted <- nrow(hits) - nrow(item)
low <- counted + nrow(item)
high <- counted + sum(nodes$records[match(item$node, nodes$node)])
""",
    "constraints": """\
everybody <- read("records")
labels <- listed[has(listed$members, code), ]
hits <- sum(vapply(everybody$codes, function(held) any(held %in% labels$code), NA))
low <- if (code %in% labels$code && length(labels$members[[match(code, labels$code)]]) == 1) hits else 0
high <- if (nrow(labels)) hits else nrow(everybody)
""",
    "censoring": """\
everybody <- read("records")
low <- sum(has(everybody$codes, code))
high <- nrow(everybody)
""",
    "visits": """\
everybody <- read("records")
visits <- read("visits")
low <- length(unique(visits$record[has(visits$codes, code)]))
high <- nrow(everybody)
""",
    "trajectories": """\
everybody <- read("records")
pairs <- read("trajectories")
low <- length(unique(pairs$record[pairs$code == code]))
high <- nrow(everybody)
""",
}

R_PRINT = """\
cat(low, "to", high, "patients\\n")
"""

CITING = """\
## Citing, terms, questions

Cite the release as: "{records:,} records, method {method} ({guarantee}), made with Leeward {version}; counts are \
estimates with bounds". Whoever gave you this folder states the terms of use and answers questions; quote the first \
characters of `sha256sum release.json`, which name this release.
"""


def columns_table(method: str, files: Sequence[str]) -> str:
    """The meaning of the columns of the files that are there; empty for a method without such a list."""
    there = {path.removeprefix("data/").partition(".")[0] for path in files}
    rows = [
        f"| `{name}` | `{column.replace(', ', '`, `')}` | {meaning.replace('|', '&#124;')} |"
        for name, column, meaning in MEANINGS.get(method, ())
        if name in there
    ]
    return COLUMNS + "\n".join(rows) + "\n" if rows else ""


def counting_lines(method: str) -> str:
    """Lines of pandas and of R that count the patients with a code; empty for a method without them."""
    if method not in PANDAS:
        return ""
    pandas = LISTED + PANDAS[method] + PRINT
    r = R_LISTED + R[method] + R_PRINT
    return f"{INTRO}\n```python\n{pandas}```\n\nThe same in R (needs the package `arrow`):\n\n```r\n{r}```\n"


def citing(method: str, guarantee: str, records: int, version: str) -> str:
    """How to cite the release, on which terms it is used, whom to ask."""
    return CITING.format(method=method, guarantee=guarantee, records=records, version=version)
