"""Utility policies: how they are written, what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leeward.analysis.policies import Constraints, Policy, constraints, maximal_itemsets, parse
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput

CODES = ("250.00", "250.01", "272.0", "295.04", "296.00", "296.01", "401.0", "404.00", "692.71", "695.10")


def sets_of(records: list[tuple[str, ...]]) -> CodeSets:
    codes = tuple(sorted({code for record in records for code in record}))
    values = [sorted(codes.index(code) for code in record) for record in records]
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    flat = np.array([v for record in values for v in record], np.int32)
    return CodeSets(offsets, flat, codes, pl.Series(range(len(records))))


def groups(found: Constraints, codes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(codes[i] for i in members)
        for name, members in zip(found.names, found.members(), strict=True)
    }


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("hierarchy:1", Policy("hierarchy", 1)),
        ("similarity:10", Policy("similarity", 10)),
        ("frequency:0.0125", Policy("frequency", 0.0125)),
        ("frequency:1.25%", Policy("frequency", 0.0125)),
        ("file:a:b.csv", Policy("file", "a:b.csv")),
        ({"policy": "hierarchy", "level": 1}, Policy("hierarchy", 1)),
        ({"policy": "similarity", "size": 5}, Policy("similarity", 5)),
        ({"policy": "frequency", "min_support": 0.05}, Policy("frequency", 0.05)),
        ({"policy": "hierarchy:3"}, Policy("hierarchy", 3)),
        (Policy("hierarchy", 2), Policy("hierarchy", 2)),
        (None, None),
        ("none", None),
        ({}, None),
    ],
)
def test_a_policy_is_read_from_text_mapping_or_nothing(written: object, policy: Policy | None) -> None:
    assert parse(written) == policy  # type: ignore[arg-type]  # the table holds every accepted kind


def test_a_policy_prints_as_it_is_written() -> None:
    for text in ("hierarchy:1", "similarity:10", "frequency:0.0125", "file:mine.csv"):
        assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("hierachy:1", "unknown policy 'hierachy': the nearest is 'hierarchy'"),
        ("hierarchy", "lacks its value"),
        ("hierarchy:x", "level must be a number; got 'x'"),
        ("hierarchy:1.5", "whole number"),
        ("hierarchy:0", "at least 1; got 0"),
        ("similarity:1", "at least 2; got 1"),
        ("frequency:0", "above 0"),
        ("frequency:nan", "finite"),
        ({"policy": "hierarchy", "lvl": 1}, "unknown key 'lvl'; the nearest is `level`"),
        ({"policy": "hierarchy"}, "needs `level`"),
        ({"level": 1}, "needs the key `policy`"),
        ({"policy": "similar", "size": 3}, "the nearest is 'similarity'"),
        (7, "got int"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_remedy(written: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(written)  # type: ignore[arg-type]  # wrong on purpose


def test_hierarchy_levels_are_category_section_and_chapter() -> None:
    sets = sets_of([CODES])
    level_1 = groups(constraints("hierarchy:1", sets, "icd9"), CODES)
    assert level_1["250"] == ("250.00", "250.01")
    assert level_1["272"] == ("272.0",)  # a constraint of one code is kept
    assert level_1["296"] == ("296.00", "296.01")
    level_2 = groups(constraints("hierarchy:2", sets, "icd9"), CODES)
    assert ("295.04", "296.00", "296.01") in level_2.values()
    assert ("401.0", "404.00") in level_2.values()
    level_3 = groups(constraints("hierarchy:3", sets, "icd9"), CODES)
    assert ("250.00", "250.01", "272.0") in level_3.values()


def test_every_code_is_in_one_constraint_of_a_hierarchy_policy() -> None:
    sets = sets_of([(*CODES, "unplaceable")])
    for level in (1, 2, 3):
        found = constraints(f"hierarchy:{level}", sets, "icd9")
        assert (found.of_code >= 0).all()
        assert set(found.of_code.tolist()) == set(range(len(found)))


def test_icd10_has_the_same_levels() -> None:
    codes = ("E11.2", "E11.9", "I10", "I11.0")
    level_1 = groups(constraints("hierarchy:1", sets_of([codes]), "icd10"), codes)
    assert sorted(level_1.values()) == [("E11.2", "E11.9"), ("I10",), ("I11.0",)]


def test_similarity_makes_groups_of_siblings() -> None:
    codes = tuple(f"295.{i:02d}" for i in range(7)) + tuple(f"296.{i:02d}" for i in range(3))
    found = groups(constraints("similarity:5", sets_of([codes]), "icd9"), codes)
    assert list(found.values()) == [
        ("295.00", "295.01", "295.02", "295.03", "295.04"),
        ("295.05", "295.06", "296.00", "296.01", "296.02"),
    ]


def write_hierarchy(folder: Path) -> str:
    path = folder / "tree.csv"
    path.write_text("node,parent\nall,\nA,all\nB,all\nA1,A\nA2,A\n" + "a,A1\nb,A1\nc,A2\nd,A2\ne,B\nf,B\n")
    return str(path)


def test_a_custom_hierarchy_counts_levels_from_its_leaves(tmp_path: Path) -> None:
    codes = tuple("abcdef")
    tree = write_hierarchy(tmp_path)
    level_1 = groups(constraints("hierarchy:1", sets_of([codes]), tree), codes)
    assert level_1 == {"A1": ("a", "b"), "A2": ("c", "d"), "B": ("e", "f")}
    level_2 = groups(constraints("hierarchy:2", sets_of([codes]), tree), codes)
    assert level_2 == {"A": ("a", "b", "c", "d"), "B": ("e", "f")}


def test_siblings_of_a_custom_hierarchy(tmp_path: Path) -> None:
    codes = tuple("abcdef")
    found = constraints("similarity:2", sets_of([codes]), write_hierarchy(tmp_path))
    assert list(groups(found, codes).values()) == [("a", "b"), ("c", "d"), ("e", "f")]


def test_hierarchy_and_similarity_need_a_vocabulary() -> None:
    for policy in ("hierarchy:1", "similarity:5"):
        with pytest.raises(BadInput, match="needs a vocabulary"):
            constraints(policy, sets_of([CODES]))
    with pytest.raises(BadInput, match="neither built in"):
        constraints("hierarchy:1", sets_of([CODES]), "icd99")


def test_maximal_itemsets_are_in_no_larger_one() -> None:
    assert maximal_itemsets([(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]) == [(3,), (0, 1, 2)]


def test_frequency_takes_maximal_itemsets_by_support_without_overlap() -> None:
    # ab: 3, bc: 4, de: 3, f: 2 (single); bc comes first, ab shares b with it and is skipped.
    records = [("b", "c")] * 4 + [("a", "b")] * 3 + [("d", "e")] * 3 + [("f",)] * 2
    sets = sets_of(records)
    found = groups(constraints("frequency:2", sets), sets.codes)
    assert list(found.values()) == [("b", "c"), ("d", "e"), ("f",)]
    assert constraints("frequency:2", sets).of_code[0] == -1


def test_no_policy_leaves_every_code_free() -> None:
    found = constraints(None, sets_of([CODES]))
    assert found.names == ()
    assert (found.of_code == -1).all()


@pytest.mark.parametrize(
    "text",
    [
        "constraint,code\nu1,250.00\nu1,250.01\nu2,401.0\n",
        "constraint,title,code\nu1,x,250.00\nu1,x,250.01\nu2,y,401.0\n",
    ],
)
def test_a_file_of_constraint_and_code(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.csv"
    path.write_text(text)
    found = constraints(f"file:{path}", sets_of([CODES]))
    assert groups(found, CODES) == {"u1": ("250.00", "250.01"), "u2": ("401.0",)}
    assert found.rows(CODES) == [("u1", "250.00"), ("u1", "250.01"), ("u2", "401.0")]


def test_a_file_of_one_constraint_a_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.txt"
    path.write_text("250.00, 250.01\n\n401.0\n")
    found = constraints(f"file:{path}", sets_of([CODES]))
    assert groups(found, CODES) == {"line 1": ("250.00", "250.01"), "line 3": ("401.0",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "constraint,code\nu1,250.00\nu1,250.02\n",
            r"policy.csv, row 3: constraint 'u1' names a code .*'250.02'",
        ),
        (
            "constraint,code\nu1,250.00\nu2,401.0\nu2,250.00\n",
            r"rows 2 and 4: constraints 'u1' and 'u2' share a code",
        ),
        ("250.00,250.01\n250.01,401.0\n", r"rows 1 and 2: constraints 'line 1' and 'line 2' share"),
        ("constraint,code\nu1\n", r"row 2: 1 cells"),
        ("250.00,,401.0\n", r"row 1: an empty code"),
        ("\n", "is empty"),
    ],
)
def test_a_wrong_file_is_refused_with_its_rows(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        constraints(f"file:{path}", sets_of([CODES]))


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        constraints("file:nowhere.csv", sets_of([CODES]))
