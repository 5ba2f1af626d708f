"""A disassociated release against the data it came from: nothing lost, nothing invented.

`custody/data/clusters.parquet` is a witness: it says which patients a cluster is of, and what it says is checked. With
it the whole content of a release follows from the source: the subrecords of a chunk are its members' codes in the
chunk's domain, as multisets, and an item chunk lists what its members have besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.disassociation import kernels as counting
from leeward.verify.disassociation.layout import ITEM, Layout, count_bounds, first_chunk, first_node
from leeward.verify.disassociation.numbering import Parts, check_zipping
from leeward.verify.disassociation.stated import counts_of_single_codes, has_columns, with_payload
from leeward.verify.flat import Ints, Longs, Words, find, heads_of, offsets_of, places_of, run_sums
from leeward.verify.manifest import Share, draw_words
from leeward.verify.order import order_check

SAMPLED_RECORDS = 300
"""Source records whose place in some cluster is looked for."""


def against_source(
    layout: Layout, source: Source, share: Share, *, fit: bool = True, payload: bool = False
) -> list[Check]:
    """Every source code is released and no other, records agree, counts lie in their bounds, records fit a
    cluster: the one that custody names, or any (which is left out without `fit`). `payload`: whether each cluster has
    one value per record and column."""
    parameters, released, records = (
        share.manifest["parameters"],
        layout.chunks.codes,
        share.manifest["records"],
    )
    events = number_repeats(source.events) if parameters.get("repeats") else source.events
    events = with_enum(where(events.select("patient", "code"), pl.col("patient", "code").is_not_null()))
    # For l-diversity, occurrences of sensitive codes (all in item chunks) may have been suppressed.
    sensitive = set(parameters.get("sensitive") or ()) if parameters.get("diversity") else set()
    open_code = {code for code in released if base_code(code, parameters) in sensitive}
    kept, held, missing = released_codes(events, released)
    invented, patients = len(released) - held, events["patient"].n_unique()
    lost = sum(base_code(code, parameters) not in sensitive for code in missing)
    checks = [
        of_count(
            "nothing_invented",
            invented,
            "Every released code is in the source.",
            "codes are not in the source.",
        ),
        Check(
            "source_records",
            patients == records,
            f"The source has {patients:,} patients, the release {records:,} records.",
            {"source": patients, "release": records},
        ),
    ]
    if parameters.get("attacker") == "algorithm":
        return [*checks, counts_of_single_codes(layout, events)]
    of_codes = of_count(
        "source_codes", lost, "Every code of the source is released.", "codes of the source are missing."
    )
    checks.insert(0, of_codes)
    if lost or invented:
        return checks
    del events
    return checks + beside(layout, source, share, kept, open_code, fit=fit, payload=payload)


def released_codes(events: pl.DataFrame, released: tuple[str, ...]) -> tuple[pl.DataFrame, int, list[str]]:
    """`patient` and `code` (the released code's number) of the events with a released code; how many released codes
    they have, and which others there are. `events`: see `with_enum`."""
    kind = events.schema["code"]
    assert isinstance(kind, pl.Enum)
    number = {code: i for i, code in enumerate(released)}
    translate = np.array([number.get(code, -1) for code in kind.categories] or [-1], np.int32)
    physical = events["code"].to_physical()
    held = physical.unique().to_numpy()
    missing = kind.categories.gather(held[translate[held] < 0]).to_list()
    numbered = pl.DataFrame({"patient": events["patient"], "code": translate[physical.to_numpy()]})
    return where(numbered, pl.col("code") >= 0), len(held) - len(missing), missing


def beside(
    layout: Layout,
    source: Source,
    share: Share,
    kept: pl.DataFrame,
    open_code: set[str],
    *,
    fit: bool,
    payload: bool,
) -> list[Check]:
    """The counts of codes, and the records, of the source against the chunks. `kept`: see `released_codes`;
    `open_code`: the released codes of which occurrences may have been suppressed."""
    held_by = pairs_of(kept, max(len(layout.chunks.codes), 1))
    suppressible = np.array([code in open_code for code in layout.chunks.codes], np.bool_)
    checks = [counts_in_bounds(layout, held_by[1], suppressible)]
    if share.kept("clusters.parquet") is not None:
        if payload and source.patients is not None and has_columns(share, source.patients):
            layout, kept = with_payload(layout, kept, share, source.patients)
            held_by = pairs_of(kept, len(layout.chunks.codes))
            suppressible = np.array([code in open_code for code in layout.chunks.codes], np.bool_)
        custody = share.folder.parent / "custody" / "data"
        return checks + against_members(layout, share, kept, held_by, custody, suppressible)
    if not fit:
        return checks
    return [*checks, records_fit(layout, kept.filter(~suppressible[kept["code"].to_numpy()]))]


def where(frame: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """The rows that meet a condition; no copy where all of them do."""
    met = frame.select(pl.all_horizontal(condition)).to_series()
    return frame if met.all() else frame.filter(met)


def with_enum(events: pl.DataFrame) -> pl.DataFrame:
    if isinstance(events.schema["code"], pl.Enum):
        return events
    text = events["code"].cast(pl.String)
    return events.with_columns(code=text.cast(pl.Enum(text.unique().sort())))


def number_repeats(events: pl.DataFrame) -> pl.DataFrame:
    """Repeated codes renamed as the release names them: the i-th of a patient is `code#i` (paper, section 7)."""
    if "visit" in events.columns:
        events = events.unique(["patient", "visit", "code"])
    instance = pl.int_range(1, pl.len() + 1).over("patient", "code").cast(pl.String)
    return events.with_columns(pl.col("code").cast(pl.String) + "#" + instance)


def base_code(code: str, parameters: Mapping[str, Any]) -> str:
    """The code of the source behind a released one."""
    return code.rsplit("#", 1)[0] if parameters.get("repeats") else code


def counts_in_bounds(layout: Layout, keys: Longs, suppressible: NDArray[np.bool_]) -> Check:
    """Each code's number of patients is between what its chunks show: exact but for item chunks (1 to
    all). Codes that may have been suppressed have no upper bound. `keys`: see `pairs_of`."""
    low, high = count_bounds(layout)
    true = np.bincount(keys % max(len(low), 1), minlength=len(low))
    outside = int(((true < low) | ((true > high) & ~suppressible)).sum())
    return of_count(
        "source_counts",
        outside,
        "Each code's number of patients is within what the chunks show.",
        "codes have a number of patients that the chunks exclude.",
    )


def records_fit(layout: Layout, events: pl.DataFrame) -> Check:
    """Sampled source records each fit some cluster: every code visible, every projection one of the subrecords."""
    patients = events["patient"].unique().sort()
    generator = np.random.Generator(np.random.Philox(key=len(patients)))
    chosen = patients.gather(np.sort(generator.permutation(len(patients))[:SAMPLED_RECORDS]))
    taken = events.filter(pl.col("patient").is_in(chosen.implode()))
    records = [
        np.array(r, np.int32)
        for r in taken.group_by("patient").agg(pl.col("code").unique())["code"].to_list()
    ]
    holders = Holders(layout)
    lost = sum(not holders.fit(record) for record in records)
    return of_count(
        "source_records_fit",
        lost,
        f"Each of {len(records):,} sampled source records fits a cluster.",
        f"of {len(records):,} sampled source records fit no cluster.",
        {"sampled": len(records)},
    )


class Holders:
    """Which chunks hold a code, so that only clusters that may hold a record's rarest code are looked at."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.numbers = {code: i for i, code in enumerate(layout.chunks.codes)}
        by_code = np.argsort(layout.codes, kind="stable")
        self.nodes: Ints = layout.chunks.node[layout.group[by_code]]
        self.offsets = offsets_of(np.bincount(layout.codes, minlength=len(layout.chunks.codes)))
        self.stamp = np.zeros(max(len(layout.chunks.codes), 1), np.int64)

    def number(self, codes: Iterable[str]) -> Ints | None:
        """The codes as numbers; None where the release lacks one."""
        found = [self.numbers.get(code, -1) for code in codes]
        return None if -1 in found else np.array(found, np.int32)

    def fit(self, record: Ints | None) -> bool:
        """True when some cluster may hold the record."""
        if record is None:
            return False
        rarest = min(record, key=lambda c: self.offsets[c + 1] - self.offsets[c])
        holders = self.nodes[self.offsets[rarest] : self.offsets[rarest + 1]]
        return bool(counting.fits_somewhere(record, holders, self.layout.flat, self.stamp))

    def candidates(self, wanted: Ints | None, enough: int) -> int:
        """Records that may hold all of `wanted`, the best cluster of each tree of nodes, until there are enough."""
        if wanted is None:
            return 0
        leaves, flat = np.flatnonzero(self.layout.nodes.leaf), self.layout.flat
        return int(counting.candidates_of_trees(wanted, enough, leaves, flat, self.stamp))


SUPPRESSED = "suppressed.parquet"


def against_members(
    layout: Layout,
    share: Share,
    events: pl.DataFrame,
    held_by: tuple[pl.Series, Longs],
    custody: Path,
    sensitive: NDArray[np.bool_],
) -> list[Check]:
    """Every check that needs the clusters' members. `events`: `patient`, `code` (the released code's number), no nulls;
    `held_by`: `pairs_of` them; `sensitive`: of each released code."""
    patients, starts, values = records_of(events, held_by, custody, layout)
    node = clusters_of(layout, patients, custody)
    if isinstance(node, Check):
        return [node]
    size = np.bincount(node, minlength=len(layout.nodes.leaf))
    uneven = layout.nodes.leaf & (size != layout.nodes.records)
    chunks, group = layout.chunks, layout.group
    secret = draw_words(share, len(chunks.codes))
    parts, lost, holders = project(layout, node, starts, values, secret)
    words = run_sums(secret[chunks.values], chunks.offsets)
    filled = np.diff(chunks.offsets) > 0
    owner = np.repeat(np.arange(len(chunks.kind)), chunks.rows())
    item = chunks.kind == ITEM
    own = of_chunks(parts.word, parts.chunk, len(item))
    differing = ~item & (own != of_chunks(words[filled], owner[filled], len(item)))
    idle = np.bincount(group[item[group] & (holders == 0)], minlength=len(item)) > 0
    return [
        of_count(
            "members",
            int(uneven.sum()),
            f"The clusters have the {len(patients):,} patients that custody names.",
            "clusters do not have as many records as custody names patients."
            + first_node(layout.nodes, uneven),
        ),
        of_count(
            "subrecords_of_members",
            int(differing.sum()),
            "Every chunk holds its members' codes in its domain, and payload their values, subrecord by subrecord.",
            "chunks hold subrecords, or payload values, that differ from those of their members."
            + first_chunk(layout, differing),
        ),
        of_count(
            "codes_of_members",
            lost + int(idle.sum()),
            "Every code of a member is in a chunk, every value in the payload, and every code of an item chunk is a "
            "member's.",
            "codes of members are in no chunk, or their values in no payload of the cluster, or item chunks list codes "
            "that no member has.",
        ),
        *diversity(layout, share, holders, item[group], sensitive),
        order_check(
            "order_of_nodes", {"member": pl.Series(np.unique(node, return_index=True)[1])}, "clusters"
        ),
        check_zipping(layout, parts, words),
    ]


def clusters_of(layout: Layout, patients: pl.Series, custody: Path) -> Longs | Check:
    """The cluster of each patient by custody, or what is wrong there."""
    clusters = pl.read_parquet(custody / "clusters.parquet").select("patient", "node")
    if clusters["patient"].dtype == patients.dtype and not clusters["patient"].equals(patients):
        clusters = patients.to_frame().join(clusters, on="patient", how="left", maintain_order="left")
    if clusters.height != len(patients) or clusters["patient"].dtype != patients.dtype:
        detail = "custody/data/clusters.parquet does not name the source's patients once each."
        return Check("members", False, detail)
    node = find(layout.nodes.numbers, clusters["node"].fill_null(-1).to_numpy().astype(np.int64), -1)
    strange = (node < 0) | ~layout.nodes.leaf[np.maximum(node, 0)]
    if strange.any():
        return of_count("members", int(strange.sum()), "", "patients are in no cluster of the release.")
    return node


def records_of(
    events: pl.DataFrame, held_by: tuple[pl.Series, Longs], custody: Path, layout: Layout
) -> tuple[pl.Series, Longs, Ints]:
    """The patients, ascending, with their distinct codes: record r has values[starts[r]:starts[r + 1]]."""
    width = max(len(layout.chunks.codes), 1)
    patients, keys = held_by
    if (custody / SUPPRESSED).is_file():
        gone = pl.read_parquet(custody / SUPPRESSED)
        known = {code: place for place, code in enumerate(layout.chunks.codes)}
        places = [known.get(code, -1) for code in gone["code"].to_list()]
        gone = gone.select("patient").with_columns(code=pl.Series(places, dtype=pl.Int32))
        rows = events.select("patient", pl.col("code").cast(pl.Int32))
        patients, keys = pairs_of(rows.join(gone, on=["patient", "code"], how="anti"), width)
    starts = np.searchsorted(keys, np.arange(len(patients) + 1) * width).astype(np.int64)
    return patients, starts, (keys % width).astype(np.int32)


def pairs_of(events: pl.DataFrame, codes: int) -> tuple[pl.Series, Longs]:
    """The patients, ascending, and their distinct codes as ascending keys: place of the patient × `codes` + code."""
    patient = events["patient"]
    if patient.is_sorted():
        first = patient.ne_missing(patient.shift(1)).fill_null(True).to_numpy().copy()
        first[:1] = True
        patients, key = patient.filter(pl.Series(first)), np.cumsum(first, dtype=np.int64)
        key -= 1
    else:
        patients = patient.unique().sort()
        key = patients.search_sorted(patient).to_numpy().astype(np.int64)
    key *= codes
    key += events["code"].to_numpy()
    key.sort()
    new = np.append(True, key[1:] != key[:-1])[: len(key)]
    return patients, key if new.all() else key[new]


def project(
    layout: Layout, node: Longs, starts: Longs, values: Ints, salt: Words
) -> tuple[Parts, int, Longs]:
    """Put members' codes into the chunks: the parts that chunks have of them, how many codes have no chunk, and how
    many members have each (chunk, code). A code belongs to the lowest chunk of its cluster's chain that has it. `node`:
    the cluster of each member."""
    member = np.argsort(layout.flat.position[node], kind="stable")
    first = offsets_of(np.bincount(node, minlength=len(layout.nodes.leaf))[layout.order])
    lengths = np.diff(starts)[member]
    slot = np.repeat(np.arange(len(member)), lengths)
    code = values[places_of(starts[:-1][member], lengths)]
    place = layout.lowest(node[member][slot], code)
    lost, held = int((place < 0).sum()), np.bincount(place[place >= 0], minlength=len(layout.codes))
    part = np.flatnonzero(place >= 0)
    part = part[layout.chunks.kind[layout.group[place[part]]] != ITEM]
    key = layout.group[place[part]] * len(member) + slot[part]
    order = np.argsort(key, kind="stable")
    heads = np.flatnonzero(heads_of(key[order]))
    chunk, slot = np.divmod(key[order][heads], max(len(member), 1))
    word = run_sums(salt[code[part][order]], np.append(heads, len(order)))
    return Parts(member, first, chunk, slot, word), lost, held


def of_chunks(words: Words, chunk: Longs, n: int) -> Words:
    """For each of n chunks the sum of its subrecords' words, mixed; `chunk` ascends."""
    return run_sums(mix(words), np.searchsorted(chunk, np.arange(n + 1)))


def mix(words: Words) -> Words:
    """Words spread over 64 bits (splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def diversity(
    layout: Layout,
    share: Share,
    holders: Longs,
    in_item: NDArray[np.bool_],
    sensitive: NDArray[np.bool_],
) -> list[Check]:
    """At most one member in l of a cluster has a given sensitive code."""
    most = share.manifest["parameters"].get("diversity")
    if most is None:
        return []
    size = layout.nodes.records[layout.chunks.node[layout.group]]
    above = in_item & sensitive[layout.codes] & (holders * most > size)
    return [
        of_count(
            "diverse_clusters",
            int(above.sum()),
            f"At most one member in {most} of a cluster has a given sensitive code.",
            f"sensitive codes are held by more than one member in {most} of a cluster.",
        )
    ]
