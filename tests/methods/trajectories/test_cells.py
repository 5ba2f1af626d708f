"""Clustering by shared cells: against plain code, by its definition, and released and verified."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forging import by_method
from tests.methods.trajectories.frames import HIERARCHY, cohort
from tests.oracles import cells as oracle

from leeward.errors import BadInput
from leeward.methods.trajectories import Trajectories, cells, hierarchies
from leeward.methods.trajectories.records import Records
from leeward.methods.trajectories.report import little_left
from leeward.report.sections import percent
from leeward.runs import protect as workflow
from leeward.verify import Source, verify
from leeward.vocabulary import age
from leeward.vocabulary.hierarchy import Hierarchy

PARENT = dict(row.split(",")[:2] for row in HIERARCHY.splitlines()[1:])
CHAPTERS = {"C1", "C2"}


def cell(level, pair):
    """The cell of the small hierarchy: the child of a chapter and 8 years; the chapter and 16 years."""
    code, years = pair
    section = code if PARENT[code] in CHAPTERS else PARENT[code]
    return (section, years // 8) if level == 0 else (PARENT[section], years // 16)


def spaces():
    tree = Hierarchy.from_pairs([(node, parent or None) for node, parent in PARENT.items()])
    return hierarchies.make_space(tree, age.binary(0, 127))


def records_of(people, where):
    sizes = [len(person) for person in people]
    codes = where.code.hierarchy.nodes_of([code for person in people for code, _ in person])
    ages = where.age.hierarchy.nodes_of([str(years) for person in people for _, years in person])
    return Records(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), codes, ages)


pair = st.tuples(st.sampled_from("abcdefg"), st.integers(30, 60))
people = st.lists(st.lists(pair, min_size=1, max_size=6), min_size=4, max_size=24)


@settings(max_examples=60)
@given(people, st.integers(2, 4))
def test_groups_are_the_oracles(made, k) -> None:
    where = spaces()
    found = [group.tolist() for group in cells.cluster(records_of(made, where), where, k, 1 << 30)]
    assert found == oracle.cluster(made, k, cell)
    assert sorted(r for group in found for r in group) == list(range(len(made)))
    assert all(k <= len(group) for group in found)


def fits(published, person, where):
    """Whether published pairs stand for different pairs of a person: augmenting paths, plain."""
    code, years = where.code.hierarchy, where.age.hierarchy
    covers = [
        [
            bool(code.is_ancestor(c, code.index[x]) and years.is_ancestor(a, years.index[str(y)]))
            for x, y in person
        ]
        for c, a in published
    ]
    taken = {}

    def assign(p, seen):
        for j, possible in enumerate(covers[p]):
            if possible and j not in seen:
                seen.add(j)
                if j not in taken or assign(taken[j], seen):
                    taken[j] = p
                    return True
        return False

    return all(assign(p, set()) for p in range(len(published)))


@settings(max_examples=60)
@given(people, st.integers(2, 4))
def test_every_usable_pair_that_a_group_can_share_is_published(made, k) -> None:
    where = spaces()
    records = records_of(made, where)
    groups = cells.cluster(records, where, k, 1 << 30)
    usable = hierarchies.usable_codes(where.code.hierarchy)
    counted = []
    for group in cells.publish(groups, records, where, in_order=False):
        shown = usable[group.codes] & (where.years[group.ages] <= 8)
        counted.append(int(shown.sum()))
        assert counted[-1] == oracle.most_usable(group.members.tolist(), made, cell)
        published = list(zip(group.codes.tolist(), group.ages.tolist(), strict=True))
        assert all(fits(published, made[r], where) for r in group.members.tolist())
    for group, most in zip(cells.publish(groups, records, where, in_order=True), counted, strict=True):
        assert int((usable[group.codes] & (where.years[group.ages] <= 8)).sum()) <= most
        for r in group.members.tolist():  # in order: the leftmost fit of each pair in turn
            person = iter(sorted(made[r], key=lambda at: (at[1], at[0])))
            for c, a in zip(group.codes.tolist(), group.ages.tolist(), strict=True):
                assert any(fits([(c, a)], [each], where) for each in person)


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("hierarchy") / "codes.csv"
    path.write_text(HIERARCHY)
    return str(path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"order": "free"},
        {"order": "kept"},
        {"order": "free", "payload": ("sex",), "sensitive_column": "sex", "diversity": 2},
        {"order": "kept", "sensitive": ("a",), "diversity": 2},
        {"order": "free", "sensitive": ("a",), "diversity": 2},
        {"order": "free", "policy": "hierarchy:1", "widest_age": 4},
        {"order": "free", "ages": "hipaa"},
    ],
    ids=lambda p: "-".join(map(str, p.values())),
)
def test_every_release_is_verified_against_its_source(tmp_path, hierarchy, parameters) -> None:
    method = Trajectories(k=4, hierarchy=hierarchy, clustering="cells", **parameters)
    result = workflow.protect(cohort(), method, tmp_path / "out", seed=1, threads=2)
    assert result.verification.passed and result.verification["owners"].figures["matched"]
    assert result.measures["loss"]["total"] == pytest.approx(result.measures["method"]["total"])
    assert result.release.parameters["order"] == parameters["order"]


def test_cells_publish_more_usable_pairs_than_alignment(tmp_path, hierarchy) -> None:
    usable = {}
    for name, further in (
        ("alignment", {"clustering": "alignment"}),
        ("kept", {"order": "kept"}),
        ("free", {}),
    ):
        method = Trajectories(k=4, hierarchy=hierarchy, **further)
        result = workflow.protect(cohort(), method, tmp_path / name, seed=1, threads=1)
        usable[name] = result.measures["usable"]["usable"]
        assert usable[name] <= result.measures["usable"]["at_most"]
    assert usable["alignment"] < usable["kept"] <= usable["free"]


def test_by_default_records_are_grouped_by_cells_and_the_first_screen_says_how_many_pairs_are_usable(
    tmp_path, hierarchy
) -> None:
    made = {}
    for name, stated in (("default", {}), ("stated", {"clustering": "cells", "order": "free"})):
        method = Trajectories(k=4, hierarchy=hierarchy, **stated)
        made[name] = workflow.protect(cohort(), method, tmp_path / name, seed=1, threads=1)
    result = made["default"]
    assert {name: result.release.parameters[name] for name in ("clustering", "order")} == {
        "clustering": "cells",
        "order": "free",
    }
    shares = [(each.path / "share" / "data" / "trajectories.parquet").read_bytes() for each in made.values()]
    assert shares[0] == shares[1]
    first = str(result.summary.costs[0])
    assert first.startswith(percent(result.measures["usable"]["usable"])) and "pairs are usable" in first


@pytest.mark.parametrize(
    ("parameters", "tried"),
    [
        ({"clustering": "alignment"}, True),
        ({"clustering": "cells", "order": "kept"}, True),
        ({"order": "free"}, False),
    ],
)
def test_what_to_try_is_not_what_was_done(parameters, tried) -> None:
    assert ("--clustering cells" in little_left({"usable": 0.01}, parameters)) == tried


def test_same_seed_same_bytes_whatever_the_threads(tmp_path, hierarchy, monkeypatch) -> None:
    shares = []
    monkeypatch.setattr(cells, "LARGEST", 40)
    method = Trajectories(k=3, hierarchy=hierarchy, clustering="cells", order="free")
    for threads in (1, 3):
        out = tmp_path / str(threads)
        workflow.protect(cohort(), method, out, seed=7, threads=threads)
        shares.append({p.name: p.read_bytes() for p in (out / "share" / "data").iterdir()})
        assert verify(out).passed
    assert shares[0] == shares[1]


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"clustering": "alignment", "order": "free"}, "goes with `clustering: cells`"),
    ],
)
def test_what_does_not_go_together(further, message) -> None:
    with pytest.raises(BadInput, match=message):
        Trajectories(k=3, **further)


@pytest.fixture
def free(tmp_path, hierarchy):
    source = cohort()
    method = Trajectories(k=4, hierarchy=hierarchy, clustering="cells", order="free")
    result = workflow.protect(source, method, tmp_path / "out", seed=1, threads=1)
    return result.path, Source(source.events, source.patients)


def failed(path, source=None):
    return by_method(verify(path, source))


def test_pairs_that_are_not_sorted_are_caught(free) -> None:
    from tests.verify.test_trajectories import rewritten

    path, _ = free
    assert failed(path) == set()
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.with_columns(position=pl.len().over("record") - 1 - pl.col("position")).sort(
            "record", "position"
        ),
    )
    assert "sorted_by_age" in failed(path)


def test_one_source_pair_published_twice_is_caught(free) -> None:
    """Each record of one group shows its last pair once more: no member has a second pair for it."""
    from tests.verify.test_trajectories import rewritten

    path, source = free
    table = pl.read_parquet(path / "share" / "data" / "trajectories.parquet")
    shown = table.group_by("record").agg(
        pl.concat_str("code", "age").sort().str.join(";").alias("all"), pl.len()
    )
    kind = shown.sort("len", "all", descending=True)["all"][0]
    chosen = shown.filter(pl.col("all") == kind)["record"].to_list()

    def twice(t):
        last = t.filter(pl.col("record").is_in(chosen)).sort("position").group_by("record").tail(1)
        extra = pl.concat([last.with_columns(position=pl.col("position") + i) for i in range(1, 9)])
        return pl.concat([t, extra.select(t.columns)]).sort("record", "position")

    rewritten(path, "trajectories.parquet", twice)
    assert failed(path) == set() and failed(path, source) == {"own_patients", "owners"}
