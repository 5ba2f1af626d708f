"""Index of a disassociated release from each code to the chunks that hold it, whole or in pieces of whole trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leeward.analysis.itemsets import owners_of
from leeward.arrays import distinct_of, offsets_of
from leeward.compiled import njit
from leeward.contracts.disassociation import counted_from
from leeward.errors import BadInput
from leeward.release import Release

Array = NDArray[Any]
KINDS = ("record", "shared", "item")
RECORD, SHARED, ITEM = 0, 1, 2


class Totals(NamedTuple):
    """Of each code, over all clusters: how many count it, and in how many records (`wanting`); how many list it in an
    item chunk, and their records. `records`: of the release; of a part, those of its classes."""

    counting: Array
    counted: Array
    listing: Array
    listed: Array
    records: int

    @staticmethod
    def add(parts: Sequence[Totals]) -> Totals:
        return Totals(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Published:
    """The index. Nodes are numbered anew, all nodes below a node right before it.

    A large release is in `files` instead, each with the arrays of some whole trees: what is counted by trees is a sum
    over `pieces`.

    codes : sorted; k, m : of the guarantee; counted_from : the least number of patients who share a counted code;
        held_back : whether codes are kept from joint clusters at random
    parent, leaf, records : int64, bool and int64[nodes]; -1 for the parent of a root
    node, kind, words, filled : of each chunk, with the 64-bit words of a bitmap and the number of non-empty subrecords
    at : int64[codes + 1]; code c has the entries `at[c]:at[c + 1]`, ascending by node, of
    entry_node, entry_chunk, entry_place : its bitmap over the chunk's non-empty subrecords begins at `bits[place]`
    """

    codes: tuple[str, ...]
    k: int
    m: int
    counted_from: int
    held_back: bool
    parent: Array
    leaf: Array
    records: Array
    node: Array
    kind: Array
    words: Array
    filled: Array
    at: Array
    entry_node: Array
    entry_chunk: Array
    entry_place: Array
    bits: Array
    of_class: Array | None = None
    """int64[nodes], where the release has demographics."""
    fitted: bool = False
    """Partitioned by `fitted` and refined: over all patients at once, few records of two clusters share a code of their
    item chunks."""
    files: tuple[Path, ...] = ()
    of_all: Totals | None = None
    """Of the whole release, where this is a piece of it."""

    def pieces(self) -> Iterator[Published]:
        """The index, a piece after the other, or itself."""
        if not self.files:
            yield self
        for file in self.files:
            yield replace(self, files=(), **np.load(file))

    @cached_property
    def totals(self) -> Totals:
        return self.of_all or totals_of(self)

    @cached_property
    def number(self) -> dict[str, int]:
        return {code: i for i, code in enumerate(self.codes)}

    @cached_property
    def entry_root(self) -> Array:
        """int32[entries], the topmost ancestor of each entry's node."""
        return roots_of(self.parent)[self.entry_node].astype(np.int32)

    @cached_property
    def want(self) -> Array:
        """int64[entries], see `wanting`."""
        return np.asarray(
            wanting(self.at, self.entry_node, self.entry_chunk, self.kind, self.parent, self.records)
        )

    @cached_property
    def most_listed(self) -> Array:
        """The most records of its cluster behind each entry of an item chunk, int64[entries], for who knows from how
        many records on codes are counted."""
        return np.full(len(self.entry_node), self.counted_from - 1)

    @cached_property
    def most_joined(self) -> Array:
        """The same for who knows Refine too: clusters that list a code below a joint cluster that counts it nowhere at
        or below it have it in fewer than that many records together, unless codes were held back from it."""
        return self.most_listed if self.held_back else bound_joined(self)

    @cached_property
    def item_means(self) -> dict[str, Array]:
        """Cache of `estimates.item_means`, by prior."""
        return {}

    def entry_counts(self) -> Array:
        """Number of records or subrecords behind each entry; 0 for item chunks, which publish no count."""
        held, words = offsets_of(np.bitwise_count(self.bits)), self.words[self.entry_chunk]
        shown = self.kind[self.entry_chunk] != ITEM
        return np.where(shown, held[self.entry_place + words] - held[self.entry_place], 0)


def totals_of(p: Published) -> Totals:
    owner, item = owners_of(p.at), p.kind[p.entry_chunk] == ITEM
    leaves = p.leaf if p.of_class is None else p.leaf & np.isin(p.of_class, p.of_class[p.entry_node])

    def sums(entries: Array, weights: Array | None = None) -> Array:
        return np.bincount(owner[entries], None if weights is None else weights[entries], len(p.codes))

    return Totals(
        sums(~item),
        sums(~item, p.want),
        sums(item),
        sums(item, p.records[p.entry_node]),
        int(p.records[leaves].sum()),
    )


def bound_joined(p: Published) -> Array:
    """See `Published.most_joined`."""
    item, nodes = p.kind[p.entry_chunk] == ITEM, len(p.parent)
    key = owners_of(p.at) * nodes + p.entry_node
    counting, found = key[~item], []
    while len(counting):  # each node that counts a code, and those above it
        found.append(counting)
        above = p.parent[counting % nodes]
        counting = distinct_of((counting - counting % nodes + above)[above >= 0])
    beyond = np.array([len(p.codes) * nodes])  # above every key, so that each is found or followed
    counted = distinct_of(np.concatenate([*found, beyond]))
    top = key[item]
    moving = np.arange(len(top))
    while len(moving):
        above = p.parent[top[moving] % nodes]
        moved = top[moving] - top[moving] % nodes + above
        moves = (above >= 0) & (counted[np.searchsorted(counted, moved)] != moved)
        moving = moving[moves]
        top[moving] = moved[moves]
    _, place, listing = np.unique(top, return_inverse=True, return_counts=True)
    most = p.most_listed.copy()
    most[item] = np.maximum(most[item] - (listing[place.reshape(-1)] - 1), 1)
    return most


def read(release: Release | str | Path) -> Published:
    """Index a disassociated release; BadInput for a release of another method, and for damaged files."""
    opened = release if isinstance(release, Release) else Release.open(release)
    facts, nodes = facts_of(opened), nodes_of(opened)
    return index_of(nodes, pa.concat_tables(rows_of(opened.path("chunks.parquet"))), **facts)


def facts_of(release: Release) -> dict[str, Any]:
    """What `index_of` is told of a release; BadInput for one of another method."""
    if release.method != "disassociation":
        raise BadInput(
            f"{release.share}: made by `{release.method}`; counts are estimated for `disassociation`."
        )
    given = release.parameters
    return {
        "k": int(release.guarantee["k"]),
        "m": int(release.guarantee["m"]),
        "least": counted_from(given),
        "fitted": given.get("partitioning") == "fitted" and given.get("refine", True),
        "held_back": given.get("attacker") == "rules",
    }


def nodes_of(release: Release) -> pa.Table:
    return pq.ParquetFile(release.path("nodes.parquet")).read()


def index_of(
    nodes: pa.Table,
    chunks: pa.Table,
    k: int,
    m: int,
    least: int,
    *,
    fitted: bool,
    held_back: bool = False,
    codes: tuple[str, ...] = (),
) -> Published:
    """The index of the rows of `nodes.parquet` and `chunks.parquet`; codes are counted from `least` records
    on. `fitted`: partitioned so, and refined. `held_back`: see `Published`. `codes`: of the release, where the rows are
    a part of its rows."""
    released = nodes.column("node").to_numpy()
    by_number, parent = np.argsort(released, kind="stable"), parents_of(nodes)
    number = bottom_up(parent)
    node, kind, start, offsets, values, codes = _lists(chunks, released[by_number], number[by_number], codes)
    shown = np.diff(offsets) > 0  # only non-empty subrecords take a bit
    filled = np.add.reduceat(np.append(shown, False).astype(np.int64), start[:-1]) if len(node) else node
    chunk_of, width = owners_of(start), max(len(codes), 1)
    bit = (np.cumsum(shown) - 1 - np.repeat(np.cumsum(filled) - filled, np.diff(start)))[owners_of(offsets)]
    keys, entry = np.unique(chunk_of[owners_of(offsets)] * width + values, return_inverse=True)
    chunk, code, words = (keys // width).astype(np.int32), keys % width, (filled + 63) // 64
    places = offsets_of(words[chunk])
    bits = np.zeros(places[-1], np.uint64)
    np.bitwise_or.at(bits, places[entry] + bit // 64, np.uint64(1) << (bit % 64).astype(np.uint64))
    order = np.lexsort((node[chunk], code)) if len(code) else np.empty(0, np.int64)
    at = offsets_of(np.bincount(code, minlength=len(codes)))
    in_order = np.argsort(number)
    renumbered = np.where(parent[in_order] < 0, -1, number[np.maximum(parent[in_order], 0)])
    of_class = nodes.column("class").to_numpy()[in_order] if "class" in nodes.column_names else None
    return Published(
        codes, k, m, least, held_back, renumbered,
        leaves_of(nodes)[in_order],
        nodes.column("records").to_numpy()[in_order].astype(np.int64),
        node, kind, words, filled, at, node[chunk[order]], chunk[order], places[order], bits,
        of_class, fitted,
    )  # fmt: skip


def parents_of(nodes: pa.Table) -> Array:
    """The place of each node's parent in the table; -1 for a root."""
    released, named = nodes["node"].to_numpy(), pc.fill_null(nodes["parent"].cast(pa.int64()), -1).to_numpy()
    by_number = np.argsort(released, kind="stable")
    place = np.searchsorted(released[by_number], named)
    return np.where(named < 0, -1, by_number[np.minimum(place, len(released) - 1)]).astype(np.int64)


def leaves_of(nodes: pa.Table) -> Array:
    return pc.equal(nodes["kind"].cast(pa.string()), "cluster").to_numpy(zero_copy_only=False)


def part(published: Published, classes: Array) -> Published:
    """The release restricted to some classes of demographics: counts of codes are among their records."""
    assert published.of_class is not None
    keep = np.isin(published.of_class, classes)[published.entry_node]
    return replace(
        published,
        at=offsets_of(keep)[published.at],
        entry_node=published.entry_node[keep],
        entry_chunk=published.entry_chunk[keep],
        entry_place=published.entry_place[keep],
    )


def roots_of(parent: Array) -> Array:
    root = np.where(parent < 0, np.arange(len(parent)), parent)
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return root
        root = above


def rows_of(file: Path) -> Iterator[pa.Table]:
    """The rows of `chunks.parquet`, one row group after the other: Arrow reads no lists at once whose dictionaries
    differ between row groups."""
    try:
        metadata = pq.read_metadata(file)
        paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        encoded = [path for path in paths if path.split(".")[0] in ("codes", "kind")]
        source = pq.ParquetFile(file, metadata=metadata, read_dictionary=encoded)
    except (OSError, pa.ArrowInvalid):
        raise BadInput(f"{file.name} cannot be read as Parquet; the release is damaged.") from None
    for i in range(metadata.num_row_groups):
        yield source.read_row_group(i, ["node", "chunk", "kind", "codes"])


def _lists(
    rows: pa.Table, released: Array, number: Array, known: tuple[str, ...]
) -> tuple[Array, Array, Array, Array, Array, tuple[str, ...]]:
    """(node and kind of each chunk, row bounds, code bounds of each row, code numbers, sorted codes)."""
    nodes = number[np.searchsorted(released, rows["node"].to_numpy())].astype(np.int64)
    chunks = rows["chunk"].to_numpy()
    kinds = pc.index_in(rows["kind"].cast(pa.string()), pa.array(KINDS)).to_numpy().astype(np.int8)
    offsets = offsets_of(pc.list_value_length(rows["codes"]).to_numpy())
    flat = pc.list_flatten(rows["codes"]).combine_chunks()
    flat = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    codes = flat.dictionary.to_pylist()
    ordered = known or sorted(codes)
    rank = np.searchsorted(np.array(ordered, object), np.array(codes, object)).astype(np.int32)
    change = np.ones(len(nodes), np.bool_)
    change[1:] = (nodes[1:] != nodes[:-1]) | (chunks[1:] != chunks[:-1])
    start = np.append(np.flatnonzero(change), len(nodes)).astype(np.int64)
    values = rank[flat.indices.to_numpy()]
    return nodes[start[:-1]], kinds[start[:-1]], start, offsets, values, tuple(ordered)


@njit
def bottom_up(parent: Array) -> Any:
    """New number of each node: children before parents, subtrees contiguous."""
    n = len(parent)
    head = np.full(n + 1, -1, np.int64)
    following = np.full(n, -1, np.int64)
    for v in range(n):
        p = parent[v] if parent[v] >= 0 else n
        following[v] = head[p]
        head[p] = v
    number = np.full(n, -1, np.int64)
    stack = np.empty(n + 1, np.int64)
    at = 0
    root = head[n]
    while root != -1:
        depth = 0
        stack[0] = root
        while depth >= 0:
            v = stack[depth]
            child = head[v]
            if child == -1:
                number[v] = at
                at += 1
                depth -= 1
            else:
                head[v] = following[child]
                depth += 1
                stack[depth] = child
        root = following[root]
    return number


@njit
def wanting(
    post_at: Array, post_node: Array, post_group: Array, kind: Array, parent: Array, records: Array
) -> Any:
    """int64[entries], records below each entry's node for which no node further down counts the code: fewer than the
    node has if shared chunks repeat codes of chunks below (`nested`)."""
    found = records[post_node]
    last = np.full(len(parent), -1, np.int64)
    for code in range(len(post_at) - 1):
        for entry in range(post_at[code], post_at[code + 1]):
            last[post_node[entry]] = entry
        for entry in range(post_at[code], post_at[code + 1]):
            up = parent[post_node[entry]]
            while up >= 0:
                above = last[up]
                if above >= post_at[code] and kind[post_group[above]] == SHARED:
                    found[above] -= records[post_node[entry]]
                    break
                up = parent[up]
    return found
