"""An earlier mapping on later data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leeward.analysis.policies import Constraints
from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.kernels.greedy import relabel
from leeward.methods.constraints.mapping import Mapping
from leeward.methods.constraints.privacy import AllSets, Listed, Privacy
from leeward.methods.constraints.weighted import WeightedSets, merge_records


def fit_mapping(mapping: Mapping, codes: Sequence[str]) -> tuple[Mapping, tuple[str, ...]]:
    """The mapping with the codes that it does not know suppressed, and those codes."""
    new = mapping.unknown(codes)
    return mapping.over(codes), new


def violates(
    mapping: Mapping, sets: WeightedSets, k: int, m: int | None, listed: Sequence[tuple[int, ...]] | None
) -> bool:
    """Whether the generalized records leave some privacy constraint with a support above 0 and below k."""
    number = mapping.label_numbers(sets.codes)
    used = np.unique(number[number >= 0])
    place = np.full(len(mapping.labels) + 1, -1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    of_code = place[number]
    offsets, values = relabel(sets.offsets, sets.values, of_code, max(len(used), 1))
    labels = tuple(mapping.labels[i] for i in used)
    released = merge_records(offsets, values, sets.weight, labels)
    clusters = Clusters(released, Constraints.none(len(labels)), k)
    privacy: Privacy = AllSets(m or 1)
    if listed is not None:
        images = {tuple(sorted({int(of_code[c]) for c in p if of_code[c] >= 0})) for p in listed}
        privacy = Listed(sorted(image for image in images if image))
    return privacy.next_unsatisfied(clusters) is not None
