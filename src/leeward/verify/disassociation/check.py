"""The attacker of disassociation: re-checks k^m-anonymity of a release from its files alone.

What is checked is in docs/methods/disassociation.md: cluster sizes, chunk domains, k^m-anonymity of every
record and shared chunk, the empty-item-chunk condition (Lemma 2), Property 1, and Guarantee 1 by counting
candidates for every code, every pair of codes and sampled larger sets. With the source at hand,
`source` adds that nothing is lost and nothing is invented.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.contracts.classes import ells_of
from leeward.contracts.disassociation import counted_from
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import (
    Classes,
    class_checks,
    class_source,
    demographics_of,
    find_patients,
    read_classes,
    together,
)
from leeward.verify.disassociation import kernels
from leeward.verify.disassociation.candidates import (
    SAMPLED_SETS,
    candidates,
    check_patients,
    check_some_sets,
    node_classes,
    sample_of,
    split,
)
from leeward.verify.disassociation.in_parts import check_parts, goes_in_parts
from leeward.verify.disassociation.layout import (
    ITEM,
    RECORD,
    SHARED,
    Chunks,
    Layout,
    Nodes,
    StructureFault,
    count_bounds,
    first_chunk,
    first_node,
    lay_out,
    read_chunks,
    read_nodes,
)
from leeward.verify.disassociation.numbering import check_shuffles
from leeward.verify.disassociation.source import against_source, number_repeats
from leeward.verify.disassociation.stated import (
    covers,
    payload_checks,
    payload_source,
    sensitive_codes,
    sensitive_source,
    sensitive_values,
    single_codes,
)
from leeward.verify.flat import falls_of, heads_of, offsets_of, preorder
from leeward.verify.manifest import Share
from leeward.verify.order import order_check


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a disassociated release, in parts where it is large."""
    return (
        check_parts(share, source, check_whole)
        if goes_in_parts(share, source)
        else check_whole(share, source)
    )


def check_whole(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a disassociated release; the later ones are left out when the files cannot be laid out."""
    k, m = share.guarantee("k"), share.guarantee("m")
    least = counted_from(share.manifest["parameters"])
    classed = bool(demographics_of(share))
    try:
        nodes = read_nodes(share.data("nodes.parquet"), classed=classed)
        chunks = read_chunks(share.data("chunks.parquet"), nodes)
    except StructureFault as fault:
        return [Check("layout", False, str(fault))]
    checks, whole = structure(nodes, chunks)
    if not whole:
        return checks
    layout = lay_out(nodes, chunks, least - 1) if least > k else lay_out(nodes, chunks)
    attacker = share.manifest["parameters"].get("attacker")
    rules, alone = attacker == "rules", attacker in ("rules", "algorithm")
    known = {"records": pl.Series(nodes.records), "kind": pl.Series(nodes.leaf)}
    checks += [
        *sizes(layout, least, share.manifest["records"]),
        *rows_of_chunks(layout, full=not alone),
        *domains_and_anonymity(layout, least, m, apart=not rules),
        order_check("order_of_node_numbers", known, "nodes"),
        check_shuffles(layout),
        *sensitive_codes(layout, share.manifest["parameters"]),
        *covers(layout, share.manifest["parameters"]),
    ]
    checks += [single_codes(layout, listed=rules)] if alone else []
    if attacker != "algorithm":
        checks.append(empty_item_chunks(layout, k if rules else least, m, spare=int(rules)))
    if classed:
        return checks + in_classes(layout, share, source)
    checks += [*candidates(layout, k, m), check_some_sets(layout, k, m, share)]
    checks += [
        reconstructions(layout, file) for file in sorted(share.data("reconstructions").glob("*.parquet"))
    ]
    if source is not None:
        checks += against_source(layout, source, share)
    return checks


def in_classes(layout: Layout, share: Share, source: Source | None) -> list[Check]:
    """What a release with demographics must be besides: classes, candidates in each of them, payload, source."""
    k, m = share.guarantee("k"), share.guarantee("m")
    classes = read_classes(share)
    placed = node_classes(layout.nodes, classes)
    checks = [*class_checks(classes, share), placed]
    if not all(check.passed for check in checks):
        return checks
    layouts = split(layout, classes)
    some = SAMPLED_SETS // 10
    checks += together(
        [[*candidates(part, k, m), check_some_sets(part, k, m, share, some)] for part in layouts]
    )
    payload = payload_checks(share, layout) if share.manifest["parameters"].get("payload") else []
    checks += payload
    if ells_of(share.manifest["parameters"]):
        checks += sensitive_values(share, classes)
    checks += [
        reconstructions(layout, file) for file in sorted(share.data("reconstructions").glob("*.parquet"))
    ]
    if source is None:
        return checks
    carried = any(check.passed for check in payload[:1])
    return checks + _with_source(layout, layouts, classes, share, source, carried=carried)


def _with_source(
    layout: Layout, layouts: list[Layout], classes: Classes, share: Share, source: Source, *, carried: bool
) -> list[Check]:
    """The same beside the source; with `small: drop` patients who fit no class are not released. `carried`: whether
    each cluster has one value per record in each payload column."""
    parameters = share.manifest["parameters"]
    events = source.events.drop_nulls(["patient", "code"])
    patients, values = find_patients(share, classes, source, events["patient"].unique().sort())
    events = events.filter(pl.col("patient").is_in(patients.implode()))
    beside = Source(events, source.patients)
    checks = against_source(layout, beside, share, fit=False, payload=carried)
    checks.append(class_source(classes, values, all_released=True))
    if parameters.get("payload"):
        checks.append(payload_source(share, patients, source.patients))
    if ells_of(parameters):
        checks.append(sensitive_source(share, classes, patients, values, source.patients))
    if values is not None and not (parameters.get("diversity") and parameters.get("sensitive")):
        named = number_repeats(events) if parameters.get("repeats") else events
        k, m = share.guarantee("k"), share.guarantee("m")
        checks += check_patients(layouts, classes, sample_of(named, patients), values, k, m)
    return checks


def structure(nodes: Nodes, chunks: Chunks) -> tuple[list[Check], bool]:
    """The tree is a forest of clusters under joint clusters, and chunks lie where their kind may lie."""
    circular = np.ones(len(nodes.parent), np.bool_)
    circular[preorder(nodes.parent)[0]] = False
    has_parent = nodes.parent >= 0
    under_cluster = (
        has_parent & nodes.leaf[np.where(has_parent, nodes.parent, 0)] if len(nodes.parent) else has_parent
    )
    children = np.bincount(nodes.parent[has_parent], minlength=len(nodes.parent))
    lone = ~nodes.leaf & (children < 2)
    broken = (nodes.parent == -2) | circular | under_cluster | lone
    tree = of_count(
        "tree",
        int(broken.sum()),
        f"{int(nodes.leaf.sum()):,} clusters and {int((~nodes.leaf).sum()):,} joint clusters form a forest.",
        "nodes have an unknown parent, a cluster as parent, a cycle above, or are joint clusters of one."
        + first_node(nodes, broken),
        {"clusters": int(nodes.leaf.sum()), "joint_clusters": int((~nodes.leaf).sum())},
    )
    stray = chunks.node < 0
    on_leaf = (
        nodes.leaf[np.maximum(chunks.node, 0)] if len(nodes.leaf) else np.zeros(len(chunks.node), np.bool_)
    )
    misplaced = stray | (on_leaf == (chunks.kind == SHARED))
    places = of_count(
        "chunk_places",
        int(misplaced.sum()),
        f"{len(chunks.node):,} chunks lie where their kind may lie.",
        "chunks belong to no node, or are shared chunks of a cluster, or other chunks of a joint cluster.",
        {"chunks": len(chunks.node)},
    )
    return [tree, places], tree.passed and places.passed and len(nodes.leaf) > 0


def sizes(layout: Layout, k: int, records: int) -> list[Check]:
    """Every cluster holds at least k records, and sums agree up to the manifest."""
    nodes = layout.nodes
    small = nodes.leaf & (nodes.records < k)
    per_leaf = np.where(nodes.leaf, nodes.records, 0)[layout.order]
    running = offsets_of(per_leaf)
    position = np.argsort(layout.order)
    unequal = (running[layout.end] - running[position]) != nodes.records
    total = int(per_leaf.sum())
    return [
        of_count(
            "cluster_sizes",
            int(small.sum()),
            f"Every cluster has at least {k} records.",
            f"clusters have fewer than {k} records." + first_node(nodes, small),
            {"smallest": int(nodes.records[nodes.leaf].min()) if nodes.leaf.any() else 0},
        ),
        of_count(
            "joint_sizes",
            int(unequal.sum()),
            "Every joint cluster has the records of its clusters.",
            "joint clusters do not have the sum of their clusters' records." + first_node(nodes, unequal),
        ),
        Check(
            "record_count",
            total == records,
            f"The clusters hold {total:,} records, the manifest states {records:,}.",
            {"clusters": total, "manifest": records},
        ),
    ]


def rows_of_chunks(layout: Layout, *, full: bool = True) -> list[Check]:
    """A record or shared chunk has one row per record, empty ones too, numbered once each (where not `full`: at most
    one, and no empty one); an item chunk has one row."""
    chunks, nodes = layout.chunks, layout.nodes
    item = chunks.kind == ITEM
    expected = np.where(item, 1, nodes.records[chunks.node])
    wrong = chunks.rows() != expected
    if not full:
        wrong = (chunks.rows() > expected) | (layout.filled != chunks.rows())
    second_item = np.bincount(chunks.node[item], minlength=len(nodes.leaf)) > 1
    empty_item = item & (layout.filled == 0)
    group = np.repeat(np.arange(len(item)), chunks.rows())
    inside = (chunks.number >= 0) & (chunks.number < chunks.rows()[group])
    taken = np.zeros(len(group), np.bool_)
    taken[(chunks.start[group] + chunks.number)[inside]] = True
    bad = np.bincount(group[taken], minlength=len(item)) != chunks.rows()
    bad = np.where(item, chunks.number[chunks.start[:-1]] != -1, bad) & ~wrong
    return [
        of_count(
            "subrecord_counts",
            int(wrong.sum() + second_item.sum()),
            "Every record and shared chunk has one subrecord per record; no cluster has two item chunks."
            if full
            else "No chunk has more subrecords than its node has records, and no subrecord is empty.",
            "chunks have a different number of subrecords than their node has records."
            + first_chunk(layout, wrong),
        ),
        of_count(
            "subrecord_numbers",
            int(bad.sum()),
            "Subrecords are numbered from 0, once each.",
            "chunks have subrecord numbers that are missing, doubled or out of range."
            + first_chunk(layout, bad),
        ),
        of_count(
            "codes_ascend",
            int((layout.unordered > 0).sum() + empty_item.sum()),
            "Codes ascend in every list, so their order reveals nothing and no code is there twice.",
            "chunks have a list whose codes do not ascend, or are empty item chunks."
            + first_chunk(layout, (layout.unordered > 0) | empty_item),
        ),
    ]


def domains_and_anonymity(layout: Layout, k: int, m: int, *, apart: bool = True) -> list[Check]:
    """Chunk domains are disjoint; chunks are k^m-anonymous; shared chunks keep Property 1. `apart`: a code that a
    cluster lists is counted nowhere above it."""
    chunks = layout.chunks
    overlapping, strict = domains(layout, apart=apart)
    subset, whole = kernels.chunk_anonymity(
        chunks.start, chunks.offsets, chunks.values, layout.bounds, layout.codes, chunks.kind, m
    )
    rare = subset < k
    loose = strict & (whole < k)
    known = subset[subset < kernels.UNLIMITED]
    return [
        of_count(
            "chunk_domains",
            int(overlapping.sum()),
            "No code is in two chunks of a cluster that must not share codes.",
            "nodes have a code in two chunks that must not share codes."
            + first_node(layout.nodes, overlapping),
        ),
        of_count(
            "km_anonymous_chunks",
            int(rare.sum()),
            f"Every set of up to {m} codes that occurs in such a chunk does so {k} times or more.",
            f"chunks hold a set of up to {m} codes fewer than {k} times." + first_chunk(layout, rare),
            {"smallest_support": int(known.min()) if len(known) else None},
        ),
        of_count(
            "property_1",
            int(loose.sum()),
            f"Shared chunks whose codes also lie below them ({int(strict.sum())}) are {k}-anonymous.",
            f"shared chunks have codes that also lie below them and are not {k}-anonymous."
            + first_chunk(layout, loose),
            {"shared_chunks_with_codes_below": int(strict.sum())},
        ),
    ]


def domains(layout: Layout, *, apart: bool = True) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(nodes whose visible chunks share a code that they must not share; shared chunks with a code that also lies in a
    record chunk or a lower shared chunk below)."""
    nodes, chunks, group = layout.nodes, layout.chunks, layout.group
    keys, places = layout.of_nodes
    clash = np.zeros(len(group), np.bool_)
    clash[places] = ~heads_of(keys)
    above = layout.lowest(nodes.parent[chunks.node[group]], layout.codes)
    item = chunks.kind[group] == ITEM
    clash |= apart & item & (above >= 0)
    overlapping, strict = np.zeros(len(nodes.leaf), np.bool_), np.zeros(len(chunks.kind), np.bool_)
    overlapping[chunks.node[group[clash]]] = True
    strict[group[above[~item & (above >= 0)]]] = True
    return overlapping, strict


def empty_item_chunks(layout: Layout, k: int, m: int, *, spare: int = 0) -> Check:
    """Lemma 2: a cluster without item chunk needs N + k(h - 1) non-empty subrecords in its record chunks, h = min(m,
    their number), and `spare` more; it is judged by its record chunks alone, and one without any violates the
    condition."""
    nodes, chunks = layout.nodes, layout.chunks
    n = len(nodes.leaf)
    has_items = np.bincount(chunks.node[(chunks.kind == ITEM) & (layout.filled > 0)], minlength=n) > 0
    of_records = chunks.kind == RECORD
    v = np.bincount(chunks.node[of_records], minlength=n)
    filled = np.bincount(chunks.node[of_records], weights=layout.filled[of_records], minlength=n).astype(
        np.int64
    )
    judged = nodes.leaf & ~has_items
    short = judged & ((v == 0) | (filled < nodes.records + k * (np.minimum(m, v) - 1) + spare))
    return of_count(
        "empty_item_chunks",
        int(short.sum()),
        f"The {int(judged.sum()):,} clusters without item chunk have enough non-empty subrecords.",
        "clusters without item chunk have too few non-empty subrecords." + first_node(nodes, short),
        {"clusters_without_item_chunk": int(judged.sum())},
    )


def reconstructions(layout: Layout, file: Path) -> Check:
    """A reconstruction has one non-empty record a record, ascending codes, and counts that the chunks allow."""
    name = f"reconstruction_{file.stem}"
    try:
        table = pl.read_parquet(file, columns=["record", "codes"])
    except (OSError, pl.exceptions.PolarsError):
        return Check(name, False, f"{file.name} cannot be read, or lacks `record` or `codes`.")
    sizes_ = table["codes"].list.len()
    flat = table["codes"].explode(empty_as_null=False).cast(pl.String)
    number = {code: i for i, code in enumerate(layout.chunks.codes)}
    places = flat.replace_strict(number, default=-1, return_dtype=pl.Int32).to_numpy()
    offsets = offsets_of(sizes_.to_numpy())
    falls = falls_of(np.where(places < 0, 0, layout.place[places]), offsets)
    bad = int((sizes_ == 0).sum()) + int(falls.sum()) + int((places < 0).sum())
    bad += abs(table.height - int(layout.nodes.records[layout.nodes.parent < 0].sum()))
    bad += table.height - table["record"].n_unique()
    if bad == 0:
        low, high = count_bounds(layout)
        counted = np.bincount(places, minlength=len(low))
        bad = int(((counted < low) | (counted > high)).sum())
    return of_count(
        name,
        bad,
        "One non-empty record per record, with ascending codes and with counts of codes that the chunks allow.",
        "records are missing or empty, or their codes do not ascend or have counts that the chunks exclude.",
    )
