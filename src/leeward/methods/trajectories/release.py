"""The release, its files, and facts for the custodian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from leeward.arrays import distinct_of
from leeward.contracts.trajectories import CONTRACT, LISTED
from leeward.methods.trajectories.hierarchies import public_name
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Space
from leeward.methods.whole_patient import record_labels
from leeward.release.content import Anonymized, Guarantee, ReleaseTable
from leeward.vocabulary.hierarchy import Hierarchy

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.methods.trajectories.improvement import Progress
    from leeward.methods.trajectories.parameters import Trajectories

EXAMPLES = 6
"""Groups shown to the custodian, as in the thesis's Table 4."""


def release_of(
    method: Trajectories,
    groups: Sequence[Group],
    spaces: Space,
    order: NDArray[np.int64],
    payload: pl.DataFrame | None,
    facts: dict[str, Any],
    notices: Sequence[str],
    seeded: bool,
    read: Mapping[str, int],
    named: str,
    listed: NDArray[np.bool_] | None = None,
    classes: Classes | None = None,
) -> Anonymized:
    """The release; released record i is record order[i] of the cohort, or of those of its records that have a class.

    `listed`: the nodes of the code hierarchy that are published; None: all. `read`: the pairs of
    each code as they were read; `named`: the hierarchy of codes.
    """
    parameters = method.public(hierarchy=public_name(named), listed_codes=None if listed is None else LISTED)
    words = CONTRACT.words(parameters)
    return Anonymized(
        method=method.name,
        parameters=parameters,
        guarantee=Guarantee.of(CONTRACT, words, parameters),
        records=len(order),
        tables=(
            ReleaseTable.of("trajectories.parquet", _trajectories(groups, spaces, order)),
            ReleaseTable.of("records.parquet", _records(order, payload, classes)),
            ReleaseTable.of("code_hierarchy.csv", _hierarchy(spaces.code.hierarchy, listed)),
            ReleaseTable.of("age_hierarchy.csv", _hierarchy(spaces.age.hierarchy)),
        ),
        readme=words.readme,
        custody_tables=(
            ReleaseTable.of("records.parquet", _places(order)),
            ReleaseTable.of("codes.parquet", _accounts(groups, spaces, read)),
        ),
        custody=facts,
        notices=tuple(notices),
        seeded=seeded,
    )


def _trajectories(groups: Sequence[Group], spaces: Space, order: NDArray[np.int64]) -> pa.Table:
    group_of = np.empty(len(order), np.int64)
    for number, group in enumerate(groups):
        group_of[group.members] = number
    pairs = np.array([len(group.codes) for group in groups], np.int64)
    starts = np.concatenate([[0], np.cumsum(pairs)])
    shown = group_of[order]
    ends = np.cumsum(pairs[shown])
    position = np.arange(int(ends[-1])) - np.repeat(ends - pairs[shown], pairs[shown])
    at = np.repeat(starts[shown], pairs[shown]) + position
    codes = np.concatenate([group.codes for group in groups])[at]
    ages = np.concatenate([group.ages for group in groups])[at]
    return pa.table(
        {
            "record": pa.array(np.repeat(np.arange(len(order)), pairs[shown])),
            "position": pa.array(position),
            "code": _labels(spaces.code.hierarchy, codes),
            "age": _labels(spaces.age.hierarchy, ages),
        }
    )


def _labels(tree: Hierarchy, nodes: NDArray[np.int32]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(nodes), pa.array(tree.labels, pa.string()))


def _records(order: NDArray[np.int64], payload: pl.DataFrame | None, classes: Classes | None) -> pa.Table:
    number = pa.array(np.arange(len(order), dtype=np.int64))
    columns: dict[str, Any] = {"record": number, **record_labels(classes, order)}
    if payload is not None:
        arrow = payload[order].to_arrow()
        columns |= {name: arrow[name] for name in payload.columns}
    return pa.table(columns)


def _places(order: NDArray[np.int64]) -> pa.Table:
    """Whose record is whose, for the custodian's measures: patients by their place in ascending identifiers."""
    return pa.table({"record": pa.array(np.arange(len(order), dtype=np.int64)), "place": pa.array(order)})


def _accounts(groups: Sequence[Group], spaces: Space, read: Mapping[str, int]) -> pa.Table:
    """For each code: its pairs as they were read, and the pairs that are to be released with it or the node so
    called."""
    labels = spaces.code.hierarchy.labels
    shown = np.zeros(len(labels), np.int64)
    for group in groups:
        np.add.at(shown, group.codes, len(group.members))
    counts = {label: int(count) for label, count in zip(labels, shown, strict=True) if count}
    names = sorted({*read, *counts})
    return pa.table(
        {
            "code": pa.array(names, pa.string()),
            "read": pa.array([read.get(name, 0) for name in names], pa.int64()),
            "shown": pa.array([counts.get(name, 0) for name in names], pa.int64()),
        }
    )


def common_nodes(tree: Hierarchy, records: Records, k: int) -> NDArray[np.bool_]:
    """The nodes that at least k records have a code below.

    Published values are among them, since k records share each. What a hierarchy that is made of the data's own codes
    would tell beyond them is not covered by k-anonymity: that somebody has a rare code.
    """
    owner = np.repeat(np.arange(len(records), dtype=np.int64), records.lengths())
    held = distinct_of(owner * len(tree) + records.codes)
    node = (held % len(tree)).astype(np.int32)
    common = np.bincount(node, minlength=len(tree)) >= k
    owner, node = held[~common[node]] // len(tree), node[~common[node]]
    for deep in range(int(tree.depth.max()), 0, -1):  # rare ones count for the node above
        node = np.where(tree.depth[node] == deep, tree.parent[node], node)
        held = distinct_of(owner * len(tree) + node)
        common |= np.bincount(held % len(tree), minlength=len(tree)) >= k
        common[tree.parent[common & (tree.depth == deep)]] = True
    return common


def _hierarchy(tree: Hierarchy, listed: NDArray[np.bool_] | None = None) -> pa.Table:
    pairs = tree.to_pairs()
    if listed is not None:
        names = {label for label, shown in zip(tree.labels, listed, strict=True) if shown}
        pairs = [pair for pair in pairs if pair[0] in names]
    nodes, parents = zip(*pairs, strict=True)
    return pa.table({"node": pa.array(nodes, pa.string()), "parent": pa.array(parents, pa.string())})


def facts_of(groups: Sequence[Group], records: Records, spaces: Space) -> dict[str, Any]:
    """Figures that only the method knows: sizes of groups, lengths, and examples."""
    sizes = np.array([len(group.members) for group in groups])
    published = np.array([len(group.codes) for group in groups])
    return {
        "groups": len(groups),
        "sizes": {str(size): int(n) for size, n in zip(*np.unique(sizes, return_counts=True), strict=True)},
        "pairs": int(records.offsets[-1]),
        "published_pairs": int(sizes @ published),
        "empty_records": int(sizes[published == 0].sum()),
        "examples": _examples(groups, spaces),
    }


def search_of(searched: Sequence[Progress], parts: int) -> dict[str, Any]:
    """What the local search did; of parts that ran on other machines nothing is known."""
    return {
        "parts": parts,
        "known_parts": len(searched),
        "cut_short": sum(each.stopped_by_clock for each in searched),
        "rounds": max((each.rounds for each in searched), default=0),
    } | {
        name: sum(getattr(each, name) for each in searched)
        for name in ("splits", "swaps", "regrouped", "dissolved", "realigned")
    }


def search_notices(facts: dict[str, Any]) -> list[str]:
    """A sentence if the clock may have cut the search short: then another run gives other groups."""
    found = facts.get("search")
    if not found:
        return []
    other = "another run may give other groups and a slightly different loss."
    if found["cut_short"]:
        where = "" if found["parts"] == 1 else f" in {found['cut_short']:,} of {found['parts']:,} parts"
        rounds = f"after {found['rounds']} rounds at most"
        return [f"The local search was cut short by `improve_seconds`{where}, {rounds}: {other}"]
    if found["known_parts"] < found["parts"]:
        return [f"The local search ran on other machines; where `improve_seconds` cut it short, {other}"]
    return []


def _examples(groups: Sequence[Group], spaces: Space) -> list[dict[str, Any]]:
    """Groups from little to much lost on a pair, those with at least three pairs if there are any."""
    code, age = spaces.code.hierarchy, spaces.age.hierarchy
    long = [group for group in groups if len(group.codes) >= 3] or list(groups)
    code_loss, age_loss = code.losses, age.losses
    lost = [
        float(np.mean(code_loss[g.codes]) + np.mean(age_loss[g.ages])) if len(g.codes) else 2.0 for g in long
    ]
    order = np.argsort(np.array(lost), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, EXAMPLES).astype(int))]
    return [
        {
            "records": len(long[i].members),
            "pairs": [
                f"({code.labels[c]}, {age.labels[v]})"
                for c, v in zip(long[i].codes, long[i].ages, strict=True)
            ],
            "lost_a_pair": lost[i] / 2,
        }
        for i in chosen.tolist()
    ]
