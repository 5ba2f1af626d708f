"""Phecode maps and the registry of vocabularies that a user added."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from leeward.errors import BadInput
from leeward.vocabulary import phecode, registry

CATALOGUE = """ICD9,ICD9 String,PheCode,Phenotype,Excl. Phecodes,Rollup,Leaf,Ignore Bool,category_string
250,Diabetes mellitus,250,Diabetes mellitus,249-250.99,1.0,0.0,0,endocrine/metabolic
25001,"type I, not uncontrolled",250.1,Type 1 diabetes,249-250.99,1.0,1.0,0,endocrine/metabolic
250.11,ketoacidosis,250.11,Ketoacidosis,"249-250.99, 411-411.8",0.0,1.0,0,endocrine/metabolic
250.11,ketoacidosis,250.1,Type 1 diabetes,249-250.99,0.0,0.0,0,endocrine/metabolic
411.1,angina,411.1,Unstable angina,,1.0,1.0,0,circulatory system
999.9,ignored,411.1,Unstable angina,,1.0,1.0,1,circulatory system
998.9,none,,,,1.0,1.0,0,
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "map.csv"
    path.write_text(CATALOGUE)
    return path


def test_a_code_stands_under_its_longest_phecode(catalogue: Path) -> None:
    """The longest phecode, the largest among equals."""
    mapped = phecode.load(catalogue)
    assert mapped.phecodes("250.11") == ("250.1", "250.11")
    assert mapped.group("25011") == "250.11"
    assert [mapped.group(code) for code in ("250.01", "411.1", "777")] == ["250.1", "411.1", None]
    assert mapped.group("999.9") is None
    ties = phecode.PhecodeMap("m", {"icd9": {"100": ("008.5", "041.2")}})
    assert ties.group("100") == "041.2"


def test_parents_rollup_and_exclusions(catalogue: Path) -> None:
    mapped = phecode.load(catalogue)
    assert mapped.parents("250.11") == ("250.1", "250")
    assert mapped.roll_up("250.01") == ("250", "250.1")
    assert mapped.roll_up("250.11") == ("250.1", "250.11")
    assert mapped.exclude_controls("250.11") == ("250", "250.1", "250.11", "411.1")
    assert mapped.exclude_controls("411.1") == ()
    assert mapped.phenotypes["250.1"] == "Type 1 diabetes"
    assert mapped.categories["411.1"] == "circulatory system"


def test_vocabularies_keep_their_codes_apart(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text("vocabulary_id,code,phecode\nICD9CM,V10.1,153\nICD10CM,V10.1,1000\nICD10CM,e119,250.2\n")
    mapped = phecode.load(path)
    assert mapped.group("V10.1") == "153"
    assert mapped.group("V10.1", "icd10") == "1000"
    assert mapped.group("E11.9", "icd10") == "250.2"
    with pytest.raises(BadInput, match="icd9 and icd10"):
        mapped.group("1", "snomed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,phecode\n1,2\n", "no column with codes"),
        ("ICD9,x\n1,2\n", "no column 'phecode'"),
        ("ICD9,phecode\n250,abc\n", "row 2: 'abc' is not a phecode"),
        ("ICD9,phecode\n250,\n", "no row with a code and a phecode"),
        ("code,vocabulary_id,phecode\n1,SNOMED,2\n", "row 2: vocabulary_id 'SNOMED'"),
    ],
)
def test_bad_maps(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        phecode.load(path)
    assert message in str(caught.value)


def test_registry_keeps_a_checked_copy(catalogue: Path, tmp_path: Path) -> None:
    environ = {"LEEWARD_HOME": str(tmp_path / "home")}
    with pytest.raises(BadInput, match="leeward vocabulary add phecode FILE"):
        registry.find("phecode", environ)
    kept = registry.add("phecode", catalogue, environ)
    assert kept == registry.find("phecode", environ)
    assert kept.read_text() == CATALOGUE
    packed = tmp_path / "map.csv.gz"
    packed.write_bytes(gzip.compress(CATALOGUE.encode()))
    assert registry.add("phecode", packed, environ) == registry.find("phecode", environ)
    assert phecode.load(registry.find("phecode", environ)).group("250.11") == "250.11"
    assert [p.name for p in (tmp_path / "home" / "vocabulary").iterdir()] == ["phecode.csv.gz"]


def test_registry_refuses_what_its_reader_refuses(tmp_path: Path) -> None:
    environ = {"LEEWARD_HOME": str(tmp_path / "home")}
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="no column"):
        registry.add("phecode", bad, environ)
    assert not (tmp_path / "home").exists()
    with pytest.raises(BadInput, match="unknown kind of vocabulary 'loinc'"):
        registry.add("loinc", bad, environ)
    (tmp_path / "file").write_text("")
    good = tmp_path / "good.csv"
    good.write_text("node,parent\n*,\na,*\n")
    with pytest.raises(BadInput, match="set LEEWARD_HOME"):
        registry.add("hierarchy", good, {"LEEWARD_HOME": str(tmp_path / "file")})


def test_home_follows_the_environment(tmp_path: Path) -> None:
    assert registry.home({"LEEWARD_HOME": "/a"}) == Path("/a")
    assert registry.home({"XDG_DATA_HOME": "/x"}) == Path("/x/leeward")
    assert registry.home({}) == Path.home() / ".local/share/leeward"
