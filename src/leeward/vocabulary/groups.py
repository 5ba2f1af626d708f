"""Groups of codes for utility policies: all codes under a node, or runs of n siblings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leeward.errors import BadInput


def leaf_groups(codes: Sequence[str], key: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    """The codes of each key, keys in order of first appearance, codes in the order given."""
    groups: dict[str, list[str]] = {}
    for code in codes:
        groups.setdefault(key(code), []).append(code)
    return {label: tuple(members) for label, members in groups.items()}


def sibling_runs(codes: Sequence[str], paths: Sequence[tuple[str, ...]], n: int) -> list[tuple[str, ...]]:
    """Disjoint runs of `n` codes under the lowest common node possible; see `Classification.sibling_groups`.

    Parameters
    ----------
    codes : in the order in which runs are cut.
    paths : for each code its node at each level, lowest level first; the highest is never crossed.
    n : codes a run; the last run of a highest node may have fewer, but at least two.

    Returns
    -------
    The runs, ordered by their first code's place in `codes`.
    """
    if n < 2:
        raise BadInput(f"A group of siblings has at least 2 codes; {n} were asked for.")
    height = len(paths[0]) if paths else 0
    waiting = list(range(len(codes)))
    runs: list[list[int]] = []
    for level in range(height):
        pools: dict[str, list[int]] = {}
        for i in waiting:
            pools.setdefault(paths[i][level], []).append(i)
        waiting = []
        for pool in pools.values():
            whole = len(pool) - len(pool) % n
            runs += [pool[start : start + n] for start in range(0, whole, n)]
            rest = pool[whole:]
            if level < height - 1:
                waiting += rest
            elif len(rest) > 1:
                runs.append(rest)
        waiting.sort()
    return [tuple(codes[i] for i in run) for run in sorted(runs)]
