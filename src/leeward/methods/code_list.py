"""`codes.parquet`: which codes a release shows, what they are called, and which frequent ones were suppressed.

So that a recipient can tell "nobody" from "suppressed". Listed are the codes that the files show (alone, inside a
generalized label, or as a node above codes), and every other code that at least k patients have; a code that is not
listed is absent from the source, or rarer than k. Some releases list shown codes alone (`contracts.lists_shown_only`).
Who knows what is counted gets a name that stands beside patients' rows of counted codes alone: that k patients have it,
or have not, would bound the number of a code's patients.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from leeward.cohort.names import names_of
from leeward.contracts.contract import LARGEST, lists_shown_only
from leeward.release.content import Anonymized, ReleaseTable

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort

PATH = "codes.parquet"
SCHEMA = pa.schema(
    [("code", pa.string()), ("name", pa.string()), ("vocabulary", pa.string()), ("suppressed", pa.bool_())]
)
MEMBERS = "|"
"""Between the members of a generalized label of visits."""

MENTION = re.compile(r"#\d+$")
"""What makes a code's first, second, … mention a label of its own."""


def with_code_list(anonymized: Anonymized, cohort: Cohort) -> Anonymized:
    """The result with the list of its codes, which is made when it is written: the other tables may be streams."""
    tables = anonymized.tables
    noted: set[str] = set()
    counted: set[str] = set()
    written: set[str] = set()

    def note_labels(table: ReleaseTable) -> Iterator[pa.RecordBatch]:
        """The rows of a table, whose labels are noted while it is written, so that it need not be made twice."""
        for batch in table.batches():
            noted.update(labels_of(table, batch))
            if "kind" in table.schema.names:
                rows = batch.filter(pc.not_equal(batch.column("kind").cast(pa.string()), "item"))
                counted.update(labels_of(table, rows))
            yield batch
        written.add(table.path)

    def batches() -> Iterator[pa.RecordBatch]:
        for table in tables:
            if table.path not in written:
                for _ in note_labels(table):
                    pass
        yield code_list(anonymized, noted, counted, cohort)

    watched = tuple(replace(each, batches=partial(note_labels, each)) for each in tables)
    return replace(anonymized, tables=(*watched, ReleaseTable(PATH, SCHEMA, batches)))


def labels_of(table: ReleaseTable, batch: pa.RecordBatch) -> set[str]:
    """The distinct codes and labels of some rows of a data file."""
    found: set[str] = set()
    for name in ("codes", "code"):
        if name in table.schema.names and table.path.endswith(".parquet"):
            column = batch.column(name)
            values = column.flatten() if name == "codes" else column
            if pa.types.is_dictionary(values.type):
                values = values.dictionary.take(pc.unique(values.indices).drop_null())
            found.update(pc.unique(values).drop_null().to_pylist())
    return found


def code_list(
    anonymized: Anonymized,
    labels: set[str],
    counted: set[str],
    cohort: Cohort,
) -> pa.RecordBatch:
    """One row a code, sorted; see the head of the module. `labels`: those of the data files; `counted`: those of them
    that some chunk counts."""
    k = int(anonymized.guarantee.k or 0)
    if anonymized.method == "visits":
        labels = {member for label in labels for member in label.split(MEMBERS)}
    repeats = anonymized.parameters.get("repeats")
    bases = {label: MENTION.sub("", label) for label in labels} if repeats else {}
    released = labels | set(bases.values())
    shown = with_nodes_below(released, anonymized.tables)
    known = cohort.supports()
    frequent = {code for code, held in zip(known.codes, known.patients_of, strict=True) if held >= k}
    shown_only = lists_shown_only(anonymized.method, anonymized.parameters)
    least = LARGEST if anonymized.method == "censoring" else k  # names in rows tell of the sample too
    rows = sorted(released if shown_only else released | frequent)
    own = names_of(cohort, {bases.get(code, code) for code in rows})
    names = [own[bases.get(code, code)] for code in rows]
    if anonymized.parameters.get("attacker") in ("counts", "rules"):
        counted = counted | {bases[code] for code in counted if repeats}
    else:
        counted = set(rows)
    may = [name.patients is None or code in counted for code, name in zip(rows, names, strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(rows, pa.string()),
            pa.array(
                [
                    name.name if named and name.may_be_shown(least) else ""
                    for named, name in zip(may, names, strict=True)
                ],
                pa.string(),
            ),
            pa.array([name.vocabulary for name in names], pa.string()),
            pa.array([code not in shown for code in rows], pa.bool_()),
        ],
        schema=SCHEMA,
    )


def with_nodes_below(released: set[str], tables: Iterable[ReleaseTable]) -> set[str]:
    """The released labels, and every node of the released hierarchy of codes that is below one of them."""
    below: dict[str, list[str]] = {}
    for table in tables:
        for batch in table.batches() if table.path == "code_hierarchy.csv" else ():
            for node, parent in zip(
                *(batch.column(name).to_pylist() for name in ("node", "parent")), strict=True
            ):
                below.setdefault(parent, []).append(node)
    found, waiting = set(released), list(released)
    while waiting:
        new = [node for node in below.get(waiting.pop(), ()) if node not in found]
        found.update(new)
        waiting += new
    return found
