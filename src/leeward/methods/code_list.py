"""`codes.parquet`: which codes a release shows, what they are called, and which frequent ones were suppressed.

So that a recipient can tell "nobody" from "suppressed". Listed are the codes that the files show (alone, inside a
generalized label, or as a node above codes), and every other code that at least k patients have; a code that is not
listed is absent from the source, or rarer than k. Where the attacker knows the algorithm only shown codes are listed:
that a code is listed, or not, would bound the number of its patients.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from leeward.cohort.cohort import CodeName
from leeward.cohort.names import names_of
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


def with_code_list(
    anonymized: Anonymized, cohort: Cohort, frequent: frozenset[str] | None = None
) -> Anonymized:
    """The result with the list of its codes, which is made when it is written: the other tables may be streams.

    `frequent`: the codes of at least k patients, where the cohort's events are not at hand.
    """
    tables = anonymized.tables
    noted: set[str] = set()
    written: set[str] = set()
    k = int(anonymized.guarantee.k or 0)
    shown_only = anonymized.parameters.get("attacker") == "algorithm"

    def batches() -> Iterator[pa.RecordBatch]:
        labels = noted | released_labels(tuple(each for each in tables if each.path not in written))
        bases: dict[str, str] = {}
        if anonymized.method == "visits":
            labels = {member for label in labels for member in label.split(MEMBERS)}
        if anonymized.parameters.get("repeats"):
            bases = {label: MENTION.sub("", label) for label in labels}
        listed = labels | set(bases.values())
        yield code_list(listed, nodes_above(tables), cohort, k, bases, frequent, shown_only=shown_only)

    watched = tuple(_note_labels(each, noted, written) for each in tables)
    return replace(anonymized, tables=(*watched, ReleaseTable(PATH, SCHEMA, batches)))


def _note_labels(table: ReleaseTable, noted: set[str], written: set[str]) -> ReleaseTable:
    """The table, whose labels are noted while it is written, so that it need not be made a second time."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            noted.update(labels_of(table, batch))
            yield batch
        written.add(table.path)

    return replace(table, batches=batches)


def code_list(
    released: set[str],
    above: Mapping[str, str],
    cohort: Cohort,
    k: int,
    bases: Mapping[str, str],
    frequent: frozenset[str] | None = None,
    *,
    shown_only: bool = False,
) -> pa.RecordBatch:
    """One row a code, sorted; see the head of the module. `bases`: the code of each numbered mention."""
    if frequent is None:
        sets = cohort.code_sets()
        supports = sets.supports()
        frequent = frozenset(c for c, support in zip(sets.codes, supports, strict=True) if support >= k)
    rows = sorted(released if shown_only else released | frequent)
    own = names_of(cohort, {bases.get(code, code) for code in rows})
    names = {code: own[bases.get(code, code)] for code in rows}
    return pa.RecordBatch.from_arrays(
        [
            pa.array(rows, pa.string()),
            pa.array([_public_name(names[code], k) for code in rows], pa.string()),
            pa.array([names[code].vocabulary for code in rows], pa.string()),
            pa.array([not _is_shown(code, released, above) for code in rows], pa.bool_()),
        ],
        schema=SCHEMA,
    )


def _public_name(name: CodeName, k: int) -> str:
    return name.name if name.may_be_shown(k) else ""


def _is_shown(code: str, released: set[str], above: Mapping[str, str]) -> bool:
    """Whether a released label is the code or a node above it."""
    node: str | None = code
    while node is not None:
        if node in released:
            return True
        node = above.get(node)
    return False


def released_labels(tables: tuple[ReleaseTable, ...]) -> set[str]:
    """The distinct codes and labels of the data files."""
    return {label for table in tables for batch in table.batches() for label in labels_of(table, batch)}


def labels_of(table: ReleaseTable, batch: pa.RecordBatch) -> set[str]:
    """The distinct codes and labels of some rows of a data file."""
    found: set[str] = set()
    for column, flat in (("codes", _flat), ("code", _plain)):
        if column in table.schema.names and table.path.endswith(".parquet"):
            found.update(pc.unique(flat(batch.column(column))).drop_null().to_pylist())
    return found


def nodes_above(tables: tuple[ReleaseTable, ...]) -> dict[str, str]:
    """The parent of each node of the released hierarchy of codes; nothing without one."""
    found: dict[str, str] = {}
    for table in tables:
        if table.path == "code_hierarchy.csv":
            for batch in table.batches():
                pairs = zip(batch.column("node").to_pylist(), batch.column("parent").to_pylist(), strict=True)
                found |= {node: parent for node, parent in pairs if parent}
    return found


def _flat(column: pa.Array) -> pa.Array:
    return _plain(column.flatten())


def _plain(column: pa.Array) -> pa.Array:
    """The values of a column of texts, of a dictionary those that rows have."""
    if pa.types.is_dictionary(column.type):
        used = pc.unique(column.indices).drop_null()
        return column.dictionary.take(used)
    return column
