"""ICD-9-CM and ICD-10-CM: normalisation, levels, hierarchies, groups for utility policies."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.vocabulary.classification import Classification
from leeward.vocabulary.icd import ICD9CM, ICD10CM

ICD9_TEXTS = [
    ("25000", "250.00", False),
    ("250.0 ", "250.0", False),
    ("v10.1", "V10.1", False),
    ("V101", "V10.1", False),
    ("e8120", "E812.0", False),
    ("E812", "E812", False),
    ("8", "008", True),
    ("8.0", "008.0", True),
    ("38.1", "038.1", True),
    ("0381", "038.1", False),
    ("381", "381", False),
    ("250.", "250", False),
    (" 401 . 9", "401.9", False),
    ("", None, False),
    ("V1", None, False),
    ("E12", None, False),
    ("250.001", None, False),
    ("250000", None, False),
    ("?", None, False),
    ("٢٥٠", None, False),
]

ICD10_TEXTS = [
    ("s72001a", "S72.001A"),
    ("S72.001A", "S72.001A"),
    ("A00.-", "A00"),
    ("a17.0†", "A17.0"),
    ("C4A0", "C4A.0"),
    ("E11.9 ", "E11.9"),
    ("250.00", None),
    ("E1", None),
    ("S72.001AB", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "canonical", "repaired"), ICD9_TEXTS)
def test_icd9_normalisation(text: str, canonical: str | None, repaired: bool) -> None:
    assert ICD9CM.normalise(text) == canonical
    assert ICD9CM.clean(text) == (canonical, repaired)


@pytest.mark.parametrize(("text", "canonical"), ICD10_TEXTS)
def test_icd10_normalisation(text: str, canonical: str | None) -> None:
    assert ICD10CM.normalise(text) == canonical


@given(st.text(alphabet="0123456789.VEve ", max_size=8))
def test_normalisation_is_idempotent(text: str) -> None:
    for classification in (ICD9CM, ICD10CM):
        canonical = classification.normalise(text)
        if canonical is not None:
            assert classification.clean(canonical) == (canonical, False)


@pytest.mark.parametrize(
    ("code", "category", "section", "chapter"),
    [
        ("295.04", "295", "295-299", "290-319"),
        ("250.00", "250", "249-259", "240-279"),
        ("008.45", "008", "001-009", "001-139"),
        ("282.1", "282", "280-289", "280-289 (chapter)"),
        ("338.11", "338", "338-338", "320-389"),
        ("V10.1", "V10", "V10-V19", "V01-V91"),
        ("E812.0", "E812", "E810-E819", "E000-E999"),
        ("E001.0", "E001", "E001-E030", "E000-E999"),
    ],
)
def test_icd9_levels_of_the_disassociation_paper(
    code: str, category: str, section: str, chapter: str
) -> None:
    """Loukides 2014, Table 2: 295 (level 1), 295-299 (2), 290-319 (3)."""
    assert [ICD9CM.level(code, n) for n in range(4)] == [code, category, section, chapter]
    assert (ICD9CM.category(code), ICD9CM.level(code, 2), ICD9CM.level(code, 3)) == (
        category,
        section,
        chapter,
    )


@pytest.mark.parametrize(
    ("code", "section", "chapter"),
    [
        ("C4A.0", "C43-C44", "C00-D49"),
        ("C80.1", "C76-C80", "C00-D49"),
        ("C7A.00", "C7A-C7A", "C00-D49"),
        ("D37.1", "D37-D48", "C00-D49"),
        ("D49.9", "D49-D49", "C00-D49"),
        ("M1A.00X0", "M05-M14", "M00-M99"),
        ("O9A.11", "O94-O9A", "O00-O9A"),
        ("Z3A.10", "Z30-Z39", "Z00-Z99"),
        ("Y09", "X92-Y09", "V00-Y99"),
        ("U07.1", "U00-U49", "U00-U85"),
        ("S72.001A", "S70-S79", "S00-T88"),
    ],
)
def test_icd10_sections_and_chapters(code: str, section: str, chapter: str) -> None:
    assert (ICD10CM.level(code, 2), ICD10CM.level(code, 3)) == (section, chapter)
    assert ICD10CM.is_known(code)


def test_categories_that_do_not_exist_are_unknown() -> None:
    for code in ("000", "019.0", "043", "113", "V92", "V38.0", "E020", "E877", "E839.1", "nonsense"):
        assert not ICD9CM.is_known(code)
    for code in ("A16", "C7C", "A0A", "U99", "T89", "250.00"):
        assert not ICD10CM.is_known(code)
    assert ICD9CM.level("043.9", 2) == "042-044"


def test_titles_and_levels_out_of_range() -> None:
    assert ICD9CM.title("295-299") == "Other psychoses"
    assert ICD9CM.title("280-289 (chapter)") == ICD9CM.title("280-289")
    assert ICD9CM.title("250.00") == "250.00"
    assert ICD10CM.title("C7B-C7B") == "Secondary neuroendocrine tumors"
    with pytest.raises(BadInput, match="1 \\(category\\), 2 \\(section\\) or 3 \\(chapter\\)"):
        ICD9CM.level("250", 4)


@pytest.mark.parametrize("classification", [ICD9CM, ICD10CM])
def test_sections_lie_in_one_chapter_and_do_not_overlap(classification: Classification) -> None:
    for part in classification.sections:
        chapter = [c for c in classification.chapters if c.first <= part.first and part.last <= c.last]
        assert len(chapter) == 1
    spelt = sorted((p.first, p.last) for p in classification.sections if p.first not in classification.placed)
    assert all(before[1] < after[0] for before, after in pairwise(spelt))
    labels = [p.label for p in classification.sections]
    assert len(set(labels)) == len(labels)


def test_icd9_hierarchy_has_five_levels_below_the_root() -> None:
    hierarchy = ICD9CM.hierarchy(["250.00", "250.01", "401.9", "250"])
    line = [hierarchy.labels[x] for x in hierarchy.ancestors(hierarchy.index["250.00"])]
    assert line == ["250.0", "250.*", "249-259", "240-279", "ICD-9-CM"]
    kinds = [
        hierarchy.level_names[hierarchy.level[x]]
        for x in (hierarchy.index["250.00"], *hierarchy.ancestors(hierarchy.index["250.00"]))
    ]
    assert kinds == ["5-digit", "4-digit", "3-digit", "section", "chapter", "root"]
    assert sorted(hierarchy.leaf_labels()) == ["250", "250.00", "250.01", "401.9"]
    above = hierarchy.parent[hierarchy.nodes_of(["250", "401.9"])]
    assert [hierarchy.labels[x] for x in above] == ["250.*", "401"]


def test_codes_without_a_place_are_in_the_tree_below_the_root() -> None:
    hierarchy = ICD9CM.hierarchy(["250.00", "LOCAL7", "999.9", "000"])
    assert set(hierarchy.leaf_labels()) == {"250.00", "LOCAL7", "999.9", "000"}
    assert hierarchy.labels[hierarchy.parent[hierarchy.index["LOCAL7"]]] == "not in ICD-9-CM"
    with pytest.raises(BadInput, match="no code is left"):
        ICD9CM.hierarchy([])


@given(
    st.sets(
        st.sampled_from(
            [
                f"{c}{t}"
                for c in ("001", "295", "296", "V10", "E812", "XX")
                for t in ("", ".0", ".00", ".01", ".1", ".10")
            ]
        ),
        min_size=1,
    )
)
def test_every_code_is_one_leaf_under_its_levels(codes: set[str]) -> None:
    hierarchy = ICD9CM.hierarchy(codes)
    assert sorted(hierarchy.leaf_labels()) == sorted(codes)
    for code in codes:
        if ICD9CM.is_known(code):
            line = [hierarchy.labels[x] for x in hierarchy.ancestors(hierarchy.index[code])]
            assert ICD9CM.level(code, 2) in line
            assert ICD9CM.level(code, 3) in line


def test_level_groups_are_disjoint_and_cover_all_codes() -> None:
    codes = ["295.00", "295.01", "296.0", "401.9", "ODD", "E812.0"]
    assert ICD9CM.level_groups(codes, 1) == {
        "295": ("295.00", "295.01"),
        "296": ("296.0",),
        "401": ("401.9",),
        "E812": ("E812.0",),
        "ODD": ("ODD",),
    }
    assert ICD9CM.level_groups(codes, 3)["290-319"] == ("295.00", "295.01", "296.0")


def test_sim_5_of_the_disassociation_paper() -> None:
    """Loukides 2014, Section 6: sim 5 holds {295.00 … 295.04} and {296.00 … 296.04}."""
    codes = [f"{c}.{x}{y}" for c in ("295", "296") for x in range(10) for y in range(6)]
    groups = ICD9CM.sibling_groups(codes, 5)
    assert tuple(f"295.0{y}" for y in range(5)) in groups
    assert tuple(f"296.0{y}" for y in range(5)) in groups
    assert all(len(group) == 5 for group in groups)


def test_siblings_overflow_to_the_section_and_the_chapter() -> None:
    codes = ["295.0", "295.1", "295.2", "296.0", "297.0", "300.1", "300.2", "401.9", "ODD"]
    assert ICD9CM.sibling_groups(codes, 2) == [
        ("295.0", "295.1"),
        ("295.2", "296.0"),
        ("300.1", "300.2"),
    ]
    assert ICD9CM.sibling_groups(codes, 5) == [
        ("295.0", "295.1", "295.2", "296.0", "297.0"),
        ("300.1", "300.2"),
    ]
    assert ICD9CM.sibling_groups(codes, 100) == [
        ("295.0", "295.1", "295.2", "296.0", "297.0", "300.1", "300.2")
    ]
    with pytest.raises(BadInput, match="at least 2"):
        ICD9CM.sibling_groups(codes, 1)


@given(
    st.sets(
        st.integers(1, 999).map(lambda n: f"{n:03d}")
        | st.integers(2500, 3199).map(lambda n: f"{n // 10}.{n % 10}")
    ),
    st.integers(2, 30),
)
def test_sibling_groups_are_disjoint_and_stay_in_a_chapter(codes: set[str], n: int) -> None:
    groups = ICD9CM.sibling_groups(codes, n)
    members = [code for group in groups for code in group]
    assert len(set(members)) == len(members)
    assert set(members) <= codes
    for group in groups:
        assert 2 <= len(group) <= n
        assert len({ICD9CM.level(code, 3) for code in group}) == 1
    short = [ICD9CM.level(group[0], 3) for group in groups if len(group) < n]
    assert len(set(short)) == len(short)
