"""Classes of demographics, plain and slow, to be read beside docs/methods/whole-patient.md#classes.

A column is a mapping of each label to its parent ("" for the root); a vector is a tuple of labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Tree = Mapping[str, str]
Vector = tuple[str, ...]


def path(tree: Tree, label: str) -> list[str]:
    """The label and what is above it."""
    found = [label]
    while tree[found[-1]]:
        found.append(tree[found[-1]])
    return found


def leaves(tree: Tree, label: str) -> set[str]:
    """The leaves below a label; its own, where it is one."""
    inner = set(tree.values())
    return {leaf for leaf in tree if leaf not in inner and label in path(tree, leaf)}


def loss(tree: Tree, label: str) -> float:
    """LM: the leaves below by all leaves, 0 for a leaf and 1 for the root."""
    inner = set(tree.values())
    if not tree[label]:
        return 1.0
    return 0.0 if label not in inner else len(leaves(tree, label)) / sum(each not in inner for each in tree)


def common(tree: Tree, a: str, b: str) -> str:
    """The least common label of two."""
    above = path(tree, b)
    return next(label for label in path(tree, a) if label in above)


def merged(
    trees: Sequence[Tree],
    vectors: Sequence[Vector],
    k: int,
    weights: Sequence[float],
    rank: Mapping[Vector, int],
) -> Counter[Vector]:
    """The sizes of the classes after all small ones were joined (`merge`); of equals the lower rank, then the older."""
    sizes = Counter(vectors)
    ranks = dict(rank)

    def mean_loss(vector: Vector) -> float:
        losses = [loss(tree, label) for tree, label in zip(trees, vector, strict=True)]
        return sum(w * x for w, x in zip(weights, losses, strict=True)) / sum(weights)

    while small := [v for v in sizes if sizes[v] < k]:
        least = min(sizes[v] for v in small)
        one = min((v for v in small if sizes[v] == least), key=ranks.__getitem__)
        lacking = k - sizes[one]
        choices = []
        for other in sorted((v for v in sizes if v != one), key=ranks.__getitem__):
            takes = lacking if sizes[other] - lacking >= k else sizes[other]
            above = tuple(common(t, a, b) for t, a, b in zip(trees, one, other, strict=True))
            cost = sizes[one] * (mean_loss(above) - mean_loss(one))
            cost += takes * (mean_loss(above) - mean_loss(other))
            choices.append((round(cost, 9), other, above))
        _, other, above = min(choices, key=lambda choice: choice[0])
        records = sizes.pop(one)
        ranks.setdefault(above, len(ranks))
        sizes[above] += records
        wanted = k - sizes[above]
        if wanted > 0:
            takes = wanted if sizes[other] - wanted >= k else sizes[other]
            sizes[other] -= takes
            sizes[above] += takes
            if not sizes[other]:
                del sizes[other]
    return sizes


def merged_alike(
    trees: Sequence[Tree],
    vectors: Sequence[Vector],
    alike: Sequence[int],
    k: int,
    weights: Sequence[float],
    rank: Mapping[Vector, int],
) -> list[Vector]:
    """The class of each record where nothing is drawn: records that are alike are taken together, the rarest first."""
    found, ranks = list(vectors), dict(rank)

    def mean_loss(vector: Vector) -> float:
        losses = [loss(tree, label) for tree, label in zip(trees, vector, strict=True)]
        return sum(w * x for w, x in zip(weights, losses, strict=True)) / sum(weights)

    def take(source: Vector, target: Vector, wanted: int) -> None:
        if source == target:
            return
        own = [i for i, v in enumerate(found) if v == source]
        held = Counter(alike[i] for i in own)
        taken: list[int] = []
        for number in sorted(held, key=lambda n: (held[n], n)):
            if len(taken) < wanted:
                taken += [i for i in own if alike[i] == number]
        for i in taken if len(own) - len(taken) >= k else own:
            found[i] = target

    while small := [v for v, n in Counter(found).items() if n < k]:
        sizes = Counter(found)
        one = min(small, key=lambda v: (sizes[v], ranks[v]))
        lacking = k - sizes[one]
        choices = []
        for other in sorted((v for v in sizes if v != one), key=ranks.__getitem__):
            takes = lacking if sizes[other] - lacking >= k else sizes[other]
            above = tuple(common(t, a, b) for t, a, b in zip(trees, one, other, strict=True))
            cost = sizes[one] * (mean_loss(above) - mean_loss(one))
            cost += takes * (mean_loss(above) - mean_loss(other))
            choices.append((round(cost, 9), other, above))
        _, other, above = min(choices, key=lambda choice: choice[0])
        ranks.setdefault(above, len(ranks))
        take(one, above, sizes[one])
        if (wanted := k - Counter(found)[above]) > 0:
            take(other, above, wanted)
    return found


Labels = Mapping[str, str]
"""The label of each code that a class releases; a code that is not in it is suppressed there."""


def generalized(
    classes: Sequence[Sequence[frozenset[str]]], labels: Sequence[Labels]
) -> list[tuple[int, frozenset[str]]]:
    """The records that a method publishes: (class, labels), where each class has records and labels of its own."""
    return [
        (c, frozenset(label[code] for code in record if code in label))
        for c, (records, label) in enumerate(zip(classes, labels, strict=True))
        for record in records
    ]


def candidates_of_records(
    published: Sequence[tuple[int, frozenset[str]]],
    labels: Sequence[Labels],
    fitting: Sequence[int],
    known: frozenset[str],
) -> int:
    """Records that may be a patient's: of a class that fits the exact demographics, with the labels of all known codes
    that the class releases."""
    return sum(
        c in fitting and {labels[c][code] for code in known if code in labels[c]} <= record
        for c, record in published
    )
