"""Which phecodes the labels of a released hierarchy tell: against plain code, and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.analysis.phewas.phenotypes import phecodes_of_tree
from leeward.vocabulary import phecode
from leeward.vocabulary.hierarchy import Hierarchy
from leeward.vocabulary.icd import ICD9CM
from leeward.vocabulary.phecode import PhecodeMap

MAP = """ICD9,PheCode,Phenotype
250.00,250.2,type 2
250.01,250.1,type 1
250,250,diabetes
401.0,401.3,other
401.1,401.1,essential
401.9,401.1,essential
401,401.1,essential
401.2,401,hypertension
493.9,495,asthma
"""


@pytest.fixture
def mapping(tmp_path: Path) -> PhecodeMap:
    (tmp_path / "map.csv").write_text(MAP)
    return phecode.load(tmp_path / "map.csv")


def test_a_node_tells_what_all_codes_below_it_have(mapping: PhecodeMap) -> None:
    """The release lists 250.00 alone; that a patient with 250 may have 250.01 is known from the map."""
    told = phecodes_of_tree(
        ICD9CM.hierarchy(["250.00", "401.1", "401.9", "493.9", "493.0", "428.0"]), mapping, ("icd9",)
    )
    assert told["250.00"] == {"250", "250.2"} and told["250.0"] == {"250"} and told["250"] == {"250"}
    assert told["401.1"] == {"401", "401.1"} and told["401"] == {"401"}
    assert told["493.9"] == {"495"}
    assert told["493"] == frozenset(), "493.0 has no phecode"
    assert told["390-459"] == told["ICD-9-CM"] == frozenset()


def test_a_code_above_others_is_not_the_node_above_it(mapping: PhecodeMap) -> None:
    told = phecodes_of_tree(ICD9CM.hierarchy(["250", "250.00", "401", "401.1"]), mapping, ("icd9",))
    assert told["401.1"] == {"401", "401.1"} and told["401"] == told["401.*"] == {"401"}
    assert told["250"] == told["250.*"] == {"250"}


def test_a_leaf_whose_codes_are_not_listed_is_a_node(mapping: PhecodeMap) -> None:
    """The hierarchy that lists the codes of k patients only may end at 401, which 401.0 and 401.1 are below."""
    pairs = [
        (label, None if label == "ICD-9-CM" else above)
        for above, label in [("", "ICD-9-CM"), ("ICD-9-CM", "401")]
    ]
    assert phecodes_of_tree(Hierarchy.from_pairs(pairs), mapping, ("icd9",))["401"] == {"401"}


CODES = "abcdef"


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.sets(st.sampled_from(["1", "2", "3"])), min_size=6, max_size=6),
)
def test_own_hierarchies_against_plain_code(groups: list[int], phecodes: list[set[str]]) -> None:
    """Custom codes are looked up as they are spelt: numbers of ICD-9 that stand for a … f."""
    spelt = [f"{401 + i}.9" for i in range(6)]
    listed = {code: tuple(sorted(found)) for code, found in zip(spelt, phecodes, strict=True) if found}
    mapping = PhecodeMap("map", {"icd9": listed})
    pairs: list[tuple[str, str | None]] = [("any", None), *((f"g{g}", "any") for g in sorted(set(groups)))]
    pairs += [(code, f"g{g}") for code, g in zip(spelt, groups, strict=True)]
    told = phecodes_of_tree(Hierarchy.from_pairs(pairs), mapping, ("icd9",))
    for label in told:
        below = [c for c, g in zip(spelt, groups, strict=True) if label in (c, f"g{g}", "any")]
        assert told[label] == set.intersection(*(set(listed.get(code, ())) for code in below))
