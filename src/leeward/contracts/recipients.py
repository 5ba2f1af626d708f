"""What a recipient needs first: the meaning of columns, lines that count one code with bounds, how to cite and ask."""

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
    "linked": (
        ("patients", "record", "number of the patient, without meaning; the same in all tables"),
        ("visits", "visit", "number of the visit inside the patient"),
        ("visits", "day", "days since the patient's first visit, cut to steps"),
        ("events", "visit", "the visit in which the code was recorded"),
        ("events", "code", "a code"),
    ),
    "notes": (
        ("itemsets", "items", "list of health terms, and of values such as `sex=f`"),
        ("itemsets", "count", "number of patients with all of them, with noise"),
    ),
}
"""Method -> file, column, meaning."""

INTRO = """\
How many patients have a code, with bounds that are certain. Run in this folder:
"""

INTROS = {
    "linked": INTRO,
    **dict.fromkeys(
        ("censoring", "visits", "trajectories"),
        """\
How many patients have a code, with bounds that are certain. Codes may be missing in any record, so the upper bound is
everybody; `leeward estimate` has the expected number. Run in this folder:
""",
    ),
    "notes": """\
How many patients were counted for a set of terms, with an interval that holds that number in 95 of 100 cases. Run in
this folder:
""",
    **dict.fromkeys(
        ("condensation", "k-anonymity"),
        """\
How many rows have each value of a column. Rows stand for groups of patients, not for one each, so these are estimates
without certain bounds. Run in this folder:
""",
    ),
}
"""What the lines of a method say they do, where it is not `INTRO`."""

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

WHOLE = {
    "linked": """\
import pandas as pd

everybody = pd.read_parquet("data/patients.parquet")
events = pd.read_parquet("data/events.parquet")
code = events.code.iloc[0]  # or another one: what is not there is unknown, not 0
low, high = events.record[events.code == code].nunique(), len(everybody)
print(low, "to", high, "patients")
""",
    "notes": """\
import json

import pandas as pd

found = pd.read_parquet("data/itemsets.parquet")
with open("release.json", encoding="utf-8") as file:
    scale = {level["size"]: level["scale"] for level in json.load(file)["parameters"]["levels"]}
for items, count in zip(found["items"], found["count"]):
    width = 3 * scale[len(items)]
    print(" & ".join(items), max(0, count - width), "to", count + width, "patients")
""",
    **dict.fromkeys(
        ("condensation", "k-anonymity"),
        """\
import pandas as pd

table = pd.read_parquet("data/table.parquet")
column = table.columns[0]  # or another one
print(table[column].value_counts(dropna=False))
""",
    ),
}
"""All the lines of pandas of a method without a list of codes."""

R_WHOLE = {
    "linked": """\
read <- function(name) arrow::read_parquet(paste0("data/", name, ".parquet"))
everybody <- read("patients")
events <- read("events")
code <- events$code[1]  # or another one: what is not there is unknown, not 0
low <- length(unique(events$record[events$code == code]))
high <- nrow(everybody)
cat(low, "to", high, "patients\\n")
""",
    "notes": """\
found <- arrow::read_parquet("data/itemsets.parquet")
levels <- jsonlite::fromJSON("release.json")$parameters$levels
width <- 3 * levels$scale[match(lengths(found$items), levels$size)]
terms <- vapply(found$items, paste, "", collapse = " & ")
print(data.frame(terms, low = pmax(0, found$count - width), high = found$count + width))
""",
    **dict.fromkeys(
        ("condensation", "k-anonymity"),
        """\
table <- arrow::read_parquet("data/table.parquet")
column <- names(table)[1]  # or another one
print(table(table[[column]], useNA = "ifany"))
""",
    ),
}
"""The same in R."""

OPENING = """\
{records:,} records, anonymized with Leeward {version} (method `{method}`). Records are numbered anew; neither numbers \
nor row order mean anything.
"""

CITING = """\
## Citing, terms, questions

Cite the release as: "{what}, method {method} ({guarantee}), made with Leeward {version}; {counts}". Whoever gave you \
this folder states the terms of use and answers questions; quote the first characters of `sha256sum release.json`, \
which name this release.
"""

PLEASE = """\
Do not try to find out who a record belongs to, and do not combine this release with another release of the same \
people: the guarantee holds for this release alone.
"""

OPENING_OF_CATALOGUE = """\
A catalogue of itemsets with noisy counts, made with Leeward {version} (method `{method}`). The order of rows follows \
from the counts and the texts, and means nothing else.
"""

PLEASE_OF_CATALOGUE = """\
Do not try to find out whom a count is about. What another release of the same people tells comes on top: the \
guarantee holds for this release alone.
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
    """Lines of pandas and of R that count the patients with a code, or the rows with a value."""
    if method not in PANDAS and method not in WHOLE:
        return ""
    pandas = WHOLE.get(method) or LISTED + PANDAS[method] + PRINT
    r = R_WHOLE.get(method) or R_LISTED + R[method] + R_PRINT
    needs = "the packages `arrow` and `jsonlite`" if "jsonlite" in r else "the package `arrow`"
    intro = INTROS.get(method, INTRO)
    return f"{intro}\n```python\n{pandas}```\n\nThe same in R (needs {needs}):\n\n```r\n{r}```\n"


def opening(method: str, records: int, version: str) -> str:
    """What the release is."""
    text = OPENING_OF_CATALOGUE if method == "notes" else OPENING
    return text.format(method=method, records=records, version=version)


def citing(method: str, guarantee: str, records: int, version: str) -> str:
    """How to cite the release, on which terms it is used, whom to ask."""
    what, counts = f"{records:,} records", "counts are estimates with bounds"
    if method == "notes":
        what, counts = "catalogue of itemsets", "counts hold noise"
    return CITING.format(what=what, counts=counts, method=method, guarantee=guarantee, version=version)


def asking(method: str) -> str:
    """What a recipient is asked not to do."""
    return PLEASE_OF_CATALOGUE if method == "notes" else PLEASE
