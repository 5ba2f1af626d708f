"""Scope `groups`: the population is partitioned by a public rule, and a record publishes what its group shares
(docs/methods/censoring.md#groups).

The rule looks at the population, the caps and k, never at the sample, and treats people with equal records alike. So
at least k people would be published exactly as each released record is, also for somebody who knows the rule.
"""

from __future__ import annotations

import numpy as np

from leeward.analysis.containment import Multisets
from leeward.analysis.containment.multisets import item_offsets, levels_of
from leeward.arrays import Int64s, offsets_of


def publish(people: Multisets, caps: Int64s, k: int) -> tuple[Multisets, Int64s]:
    """What each person would be published as, and the group of each, int64[n]; k must not exceed their number."""
    from leeward.methods.censoring import kernels

    capped = people.capped(caps)
    distinct, number = capped.distinct()
    starts = item_offsets(caps)
    owner, item = levels_of(distinct, starts)
    by_record, by_item = np.lexsort((item, owner)), np.lexsort((owner, item))
    items = item[by_record]
    group = kernels.split(
        offsets_of(np.bincount(owner, minlength=len(distinct))),
        items,
        offsets_of(np.bincount(item, minlength=int(starts[-1]))),
        owner[by_item],
        np.bincount(number, minlength=len(distinct)).astype(np.int64),
        k,
    )
    shown = common_part(distinct, group)
    return shown.take(group[number]), group[number]


def common_part(records: Multisets, group: Int64s) -> Multisets:
    """What all records of each group have in common."""
    owner = group[records.owners()]
    code, count = records.values.astype(np.int64), records.counts
    order = np.lexsort((code, owner))
    owner, code, count = owner[order], code[order], count[order]
    first = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(code) != 0)]) if len(owner) else owner
    held = np.diff(np.r_[first, len(owner)])
    sizes = np.bincount(group)
    everywhere = held == sizes[owner[first]]
    least = np.minimum.reduceat(count, first) if len(first) else count
    kept = first[everywhere]
    return Multisets(
        offsets_of(np.bincount(owner[kept], minlength=len(sizes))),
        code[kept].astype(np.int32),
        least[everywhere].astype(np.int32),
    )
