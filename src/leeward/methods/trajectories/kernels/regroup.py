"""Kernels of the local search that make clusters anew: of the records of near clusters, and out of existence."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit
from leeward.methods.trajectories.kernels.improve import best_build, diverse, join, realign, room_for, saving


@njit(error_model="numpy")
def levels(tasks, clusters):
    """The level of each task, int32: one more than the last level at which one of its clusters was touched before.

    tasks : int32[n, …], the clusters that each touches. Tasks of a level share no cluster, so doing level after level,
    those of a level in any order, gives what doing the tasks one by one gives.
    """
    last = np.zeros(clusters, np.int32)
    found = np.empty(len(tasks), np.int32)
    for i in range(len(tasks)):
        level = np.int32(0)
        for cluster in tasks[i]:
            level = max(level, last[cluster])
        found[i] = level
        for cluster in tasks[i]:
            last[cluster] = level + 1
    return found


@njit(error_model="numpy")
def anew(D, pool, quotas, seeds, kept, longest):
    """Cluster a pool of records greedily into clusters of quotas[0], quotas[1], … records (in sum all), around each of
    `seeds` of them in turn, and write the best to `kept`, int32[clusters, at least the largest quota].

    Returns Σ S·W of the best, -1 if no try keeps every cluster diverse.
    """
    score, length = D.entries.score, D.entries.length
    value, ell = D.entries.group, D.diversity
    count = len(pool)
    room = room_for(longest)
    bc, ba = np.empty(longest, np.int32), np.empty(longest, np.int32)
    left = np.empty(count, np.int32)
    tried = np.empty_like(kept)
    best = np.int64(-1)
    for number in range(seeds):
        total = np.int64(0)
        remaining = count
        left[:] = pool
        at = number * count // seeds
        fits = True
        for part in range(len(quotas)):
            quota = quotas[part]
            entry = left[at]
            remaining -= 1
            left[at] = left[remaining]
            m = length[entry]
            for i in range(m):
                bc[i] = D.codes.nodes[D.entries.code[D.entries.offsets[entry] + i]]
                ba[i] = D.ages.nodes[D.entries.age[D.entries.offsets[entry] + i]]
            weight, s = score[m], np.int64(m) * D.unit
            tried[part, 0] = entry
            size = 1
            while size < quota:
                nearest, most = -1, np.int64(-1)
                for i in range(remaining):
                    if ell > 0:
                        alike = 1
                        for j in range(size):
                            if value[tried[part, j]] == value[left[i]]:
                                alike += 1
                        if alike * ell > quota:
                            continue
                    v = saving(D, bc, ba, m, left[i], room.row) * (score[length[left[i]]] + weight)
                    if v > most:
                        nearest, most = i, v
                if nearest < 0:
                    break
                entry = left[nearest]
                remaining -= 1
                left[nearest] = left[remaining]
                m, s = join(D, bc, ba, m, entry, room)
                weight += score[length[entry]]
                tried[part, size] = entry
                size += 1
            if size < quota or not diverse(D, tried[part], size, -1, -1):
                fits = False
                break
            total += np.int64(s) * weight
            # The next seed: what the cluster just made would keep least of.
            least, at = np.int64(2**62), 0
            for i in range(remaining):
                v = saving(D, bc, ba, m, left[i], room.row) * score[length[left[i]]]
                if v < least:
                    least, at = v, i
        if fits and total > best:
            best = total
            kept[:] = tried
    return best


@njit(error_model="numpy")
def regroup(D, triples, k, clusters, changed, stamp, since, longest):
    """Cluster the records of three clusters anew, around every seed; keep it if Σ S·W rises.

    triples : int32[n, 3]. Touches no other clusters; returns how many were changed.
    """
    members, sizes, xc, xa, pairs, worth, weights = clusters
    score, length = D.entries.score, D.entries.length
    capacity = members.shape[1]
    room = room_for(longest)
    pool, kept = np.empty(3 * capacity, np.int32), np.empty((3, capacity), np.int32)
    quotas = np.empty(3, np.int64)
    bc, ba = np.empty((3, longest), np.int32), np.empty((3, longest), np.int32)
    bm, bs, bw = np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3, np.int64)
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    buffer = np.empty(capacity, np.int32)
    made = 0
    for triple in range(len(triples)):
        three = triples[triple]
        count, now, due = 0, np.int64(0), False
        for g in three:
            if sizes[g] == 0:
                due = False
                break
            due = due or changed[g] >= since
            now += worth[g] * weights[g]
            for r in range(sizes[g]):
                pool[count] = members[g, r]
                count += 1
        if not due:
            continue
        rest = count
        for part in range(3):  # k each, the last the rest; more where the last could not hold it
            quotas[part] = rest if part == 2 else max(k, rest - (2 - part) * (2 * k - 1))
            rest -= quotas[part]
        if anew(D, pool[:count], quotas, count, kept, longest) <= now:
            continue
        total = np.int64(0)
        for part in range(3):
            own = kept[part, : quotas[part]]
            bm[part], bs[part] = best_build(D, own, bc[part], ba[part], tc, ta, buffer, room)
            bw[part] = 0
            for entry in own:
                bw[part] += score[length[entry]]
            total += bs[part] * bw[part]
        if total <= now:
            continue
        for part in range(3):
            g = three[part]
            sizes[g] = quotas[part]
            members[g, : sizes[g]] = kept[part, : sizes[g]]
            pairs[g], worth[g], weights[g] = bm[part], bs[part], bw[part]
            xc[g, : pairs[g]] = bc[part, : pairs[g]]
            xa[g, : pairs[g]] = ba[part, : pairs[g]]
            changed[g] = stamp
        made += 1
    return made


@njit(error_model="numpy")
def dissolve(D, chosen, near, k, clusters, changed, stamp, longest, found, commit):
    """Give all records of a cluster to near ones wherever that raises Σ S·W; returns how many that is.

    chosen : int32[n], the clusters tried.  found : bool[n], whether each pays; with `commit` it is done as well.
    """
    members, sizes, xc, xa, pairs, worth, weights = clusters
    score, length = D.entries.score, D.entries.length
    capacity = members.shape[1]
    room = room_for(longest)
    target = np.empty(capacity, np.int64)
    made = 0
    for place in range(len(chosen)):
        a = np.int64(chosen[place])
        found[place] = False
        if sizes[a] == 0:
            continue
        gain = -worth[a] * weights[a]
        fits = True
        for r in range(sizes[a]):
            x = members[a, r]
            best, target[r] = np.int64(-(2**62)), -1
            for t in range(near.shape[1]):
                b = np.int64(near[a, t])
                if b < 0 or b == a or sizes[b] == 0 or sizes[b] >= 2 * k - 1:
                    continue
                taken = False
                for s in range(r):
                    taken = taken or target[s] == b
                if taken:  # one newcomer a cluster: gains are exact
                    continue
                value = (
                    saving(D, xc[b], xa[b], pairs[b], x, room.row) * (weights[b] + score[length[x]])
                    - worth[b] * weights[b]
                )
                if value > best and diverse(D, members[b], sizes[b], -1, x):
                    best, target[r] = value, b
            if target[r] < 0:
                fits = False
                break
            gain += best
        if not fits or gain <= 0:
            continue
        found[place] = True
        made += 1
        if not commit:
            continue
        for r in range(sizes[a]):
            x, b = members[a, r], target[r]
            members[b, sizes[b]] = x
            sizes[b] += 1
            pairs[b], worth[b] = join(D, xc[b], xa[b], pairs[b], x, room)
            weights[b] += score[length[x]]
            realign(D, b, b + 1, clusters, longest)
            changed[b] = stamp
        sizes[a], worth[a], weights[a], pairs[a] = 0, 0, 0, 0
    return made
