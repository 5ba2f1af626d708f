"""Lexicons from the formats of public vocabularies; the fixtures are made up."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from leeward.errors import BadInput
from leeward.notes.annotators.dictionary import Dictionary
from leeward.notes.lexicon import Lexicon, Names, Places
from leeward.notes.lexicon.loaders import load


def written(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def shown(lexicon: Lexicon) -> dict[str, tuple[str, str]]:
    return {c.id: (c.kind, "|".join(map(str, c.terms))) for c in lexicon.concepts}


def test_our_own_by_name() -> None:
    assert load("leeward") is load("leeward") is load()


# Tables

TABLE = "id,name,kind,synonyms\nX1,fever,symptom,pyrexia|~hot\nX2,=MI,disease,\n"


def test_csv_and_tsv(tmp_path: Path) -> None:
    expected = {"X1": ("symptom", "fever|pyrexia|~hot"), "X2": ("disease", "=MI")}
    file = tmp_path / "own.csv"
    file.write_text("\ufeff" + TABLE)
    assert shown(load(str(file))) == expected
    packed = tmp_path / "own.tsv.gz"
    packed.write_bytes(gzip.compress(TABLE.replace(",", "\t").encode()))
    assert shown(load(packed)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "own.csv: the file is empty"),
        ("id,name,kind,synonyms\n", "own.csv: the file has a header but no concepts"),
        ("id,name,kind\n1,a,symptom\n", "own.csv, row 1: no column 'synonyms'"),
        ("id,name,kind,synonyms\n1,a,symptom,\n2,,symptom,\n", "own.csv, row 3: the column 'name' is empty"),
        ("id,name,kind,synonyms\n,a,symptom,\n", "own.csv, row 2: the column 'id' is empty"),
        (
            "id,name,kind,synonyms\n1,a,mood,\n",
            "own.csv, row 2: the column 'kind' needs one of symptom, disease",
        ),
        ("id,name,kind,synonyms\n1,a,symptom\n", "own.csv, row 2: 3 cells where the header has 4"),
        ('id,name,kind,synonyms\n1,"a,symptom,\n', "own.csv, row 2: not a row of cells"),
        ("id,name,kind,synonyms\n1,a,symptom,\n1,b,symptom,\n", "'1' stands for two concepts"),
    ],
)
def test_broken_tables(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(BadInput) as raised:
        load(file)
    assert message in str(raised.value)


def test_not_a_file_not_text_not_a_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'nowhere.csv' is neither 'leeward' nor a file"):
        load(tmp_path / "nowhere.csv")
    with pytest.raises(BadInput, match="holds no vocabulary that is known here"):
        load(tmp_path)
    with pytest.raises(BadInput, match="layout 'xls' is unknown"):
        load(written(tmp_path, own__csv=TABLE), "xls")
    (tmp_path / "own.csv").write_bytes(b"id,name,kind,synonyms\n1,caf\xe9,drug,\n")
    with pytest.raises(BadInput, match=r"own.csv, row 2: not UTF-8"):
        load(tmp_path / "own.csv")
    (tmp_path / "own.csv.gz").write_bytes(gzip.compress(TABLE.encode())[:-9])
    with pytest.raises(BadInput, match=r"own.csv.gz: the gzip data are damaged"):
        load(tmp_path / "own.csv.gz")


# OMOP

CONCEPT = (
    "concept_id,concept_name,domain_id,vocabulary_id,concept_class_id,standard_concept,concept_code,"
    "valid_start_date,valid_end_date,invalid_reason\n"
    "11,Fever,Condition,SNOMED,Clinical Finding,S,1,,,\n"
    '12,"Hemorrhage, unspecified",Condition,ICD10CM,code,,2,,,\n'
    "13,Celecoxib,Drug,RxNorm,Ingredient,S,3,,,\n"
    "14,Old thing,Condition,SNOMED,Clinical Finding,,4,,,D\n"
    "15,Sodium level,Measurement,LOINC,Lab Test,S,5,,,\n"
    "16,Appendectomy,Procedure,SNOMED,Procedure,S,6,,,\n"
    "17,Ward,Visit,CMS,Visit,S,7,,,\n"
    "10,Fever,Condition,ICD10CM,code,,8,,,\n"
)
SYNONYM = (
    "concept_id,concept_synonym_name,language_concept_id\n"
    "11,Pyrexia,4180186\n11,Fieber,4182504\n14,Old name,4180186\n"
)


def test_omop(tmp_path: Path) -> None:
    folder = written(tmp_path, CONCEPT__csv=CONCEPT, CONCEPT_SYNONYM__csv=SYNONYM)
    expected = {
        "10": ("disease", "~Fever"),
        "11": ("disease", "Fever|Pyrexia"),
        "12": ("disease", "Hemorrhage, unspecified"),
        "13": ("drug", "Celecoxib"),
        "15": ("test", "Sodium level"),
        "16": ("procedure", "Appendectomy"),
    }
    assert shown(load(folder)) == shown(load(folder / "CONCEPT.csv")) == expected
    dictionary = Dictionary(load(folder), names=Names(), places=Places())
    text = "fever and pyrexia on celecoxib"
    found = [(text[s.start : s.end], s.concept, s.category) for s in dictionary.annotate(text)]
    assert found == [("fever", "11", "disease"), ("pyrexia", "11", "disease"), ("celecoxib", "13", "drug")]


def test_omop_with_tabs_and_capitals(tmp_path: Path) -> None:
    text = (
        CONCEPT.splitlines()[0].upper().replace(",", "\t") + '\n21\t5" wound\tCondition\tX\tX\tS\t1\t\t\t\n'
    )
    folder = written(tmp_path, CONCEPT__csv=text)
    assert shown(load(folder)) == {"21": ("disease", '5" wound')}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("concept_name,domain_id", "name,domain_id", "CONCEPT.csv, row 1: no column 'concept_name'"),
        ("\n13,", "\n13x,", "CONCEPT.csv, row 4: the column 'concept_id' needs a whole number"),
        (",S,3,,,", ",S,3", "CONCEPT.csv, row 4: 7 cells where the header has 10"),
    ],
)
def test_broken_omop(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = written(tmp_path, CONCEPT__csv=CONCEPT.replace(old, new))
    with pytest.raises(BadInput) as raised:
        load(folder)
    assert message in str(raised.value)


def test_omop_with_nothing_for_notes(tmp_path: Path) -> None:
    lines = CONCEPT.splitlines(keepends=True)
    with pytest.raises(BadInput, match=r"CONCEPT.csv: no concept of a kind that notes speak of"):
        load(written(tmp_path, CONCEPT__csv=lines[0] + lines[7]))


# UMLS


def conso(cui: str, text: str, *, language: str = "ENG", status: str = "P", form: str = "PF", first: str = "Y",
          suppressed: str = "N") -> str:  # fmt: skip
    cells = [
        cui,
        language,
        status,
        "L1",
        form,
        "S1",
        first,
        "A1",
        "",
        "",
        "",
        "SRC",
        "PT",
        "1",
        text,
        "0",
        suppressed,
        "",
    ]
    return "|".join(cells) + "|\n"


CONSO = (
    conso("C0000001", "pyrexia", status="S")
    + conso("C0000001", "Fever")
    + conso("C0000001", "Fieber", language="GER")
    + conso("C0000001", "FUO", status="S", form="VO")
    + conso("C0000001", "old fever", suppressed="O")
    + conso("C0000002", "Cold")
    + conso("C0000003", "Kitchen")
    + conso("C0000004", "Serum sodium")
)
STY = (
    "C0000001|T184|A|Sign|AT1|256|\nC0000002|T047|A|Disease|AT2||\n"
    "C0000003|T073|A|Object|AT3||\nC0000004|T059|A|Lab|AT4||\n"
)


def test_umls(tmp_path: Path) -> None:
    folder = written(tmp_path, MRCONSO__RRF=CONSO, MRSTY__RRF=STY)
    expected = {
        "C0000001": ("symptom", "Fever|pyrexia|=FUO"),
        "C0000002": ("disease", "~Cold"),
        "C0000004": ("test", "Serum sodium"),
    }
    assert shown(load(folder)) == shown(load(folder / "MRCONSO.RRF")) == expected


def test_broken_umls(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no MRSTY.RRF in this folder"):
        load(written(tmp_path / "a", MRCONSO__RRF=CONSO))
    with pytest.raises(
        BadInput, match=r"MRCONSO.RRF, row 9: 2 cells where 17 are needed; the column 'TS' is missing"
    ):
        load(written(tmp_path / "b", MRCONSO__RRF=CONSO + "C0000005|ENG\n", MRSTY__RRF=STY))
    with pytest.raises(BadInput, match=r"MRSTY.RRF, row 1: the column 'TUI' needs T and digits"):
        load(written(tmp_path / "c", MRCONSO__RRF=CONSO, MRSTY__RRF=STY.replace("T184", "184")))
    with pytest.raises(BadInput, match=r"MRCONSO.RRF, row 6: the column 'CUI' needs C and digits"):
        load(written(tmp_path / "d", MRCONSO__RRF=CONSO.replace("C0000002", "0000002"), MRSTY__RRF=STY))


# SNOMED CT

FSN, SYN = "900000000000003001", "900000000000013009"
DESCRIPTION = (
    "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n"
    + "".join(
        f"{i}\t20200131\t{active}\t1\t{concept}\t{language}\t{kind}\t{term}\t1\n"
        for i, (active, concept, language, kind, term) in enumerate(
            [
                (1, 101, "en", FSN, "Fever (finding)"),
                (1, 101, "en", SYN, "Pyrexia"),
                (0, 101, "en", SYN, "Febris"),
                (1, 101, "sv", SYN, "Feber"),
                (1, 102, "en", FSN, "Asthma (disorder)"),
                (1, 102, "en", SYN, "Asthma"),
                (1, 103, "en", FSN, "Urinalysis (procedure)"),
                (1, 104, "en", FSN, "Appendectomy (procedure)"),
                (1, 105, "en", FSN, "Old disease (disorder)"),
                (1, 106, "en", FSN, "Hospital (environment)"),
                (1, 107, "en", FSN, 'Nausea "sick" (finding)'),
            ]
        )
    )
)
CONCEPTS = "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n" + "".join(
    f"{c}\t20200131\t{int(c != 105)}\t1\t1\n" for c in range(101, 108)
)
RELATIONSHIP = (
    "id\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId\t"
    "characteristicTypeId\tmodifierId\n"
    "1\t20200131\t1\t1\t108\t386053000\t0\t116680003\t1\t1\n"
    "2\t20200131\t1\t1\t103\t108\t0\t116680003\t1\t1\n"
    "3\t20200131\t0\t1\t104\t386053000\t0\t116680003\t1\t1\n"
    "4\t20200131\t1\t1\t107\t418799008\t0\t116680003\t1\t1\n"
)


def snomed(folder: Path, relationships: str = RELATIONSHIP) -> Path:
    written(folder / "Snapshot" / "Terminology")
    inner = folder / "Snapshot" / "Terminology"
    (inner / "sct2_Description_Snapshot-en_INT_20200131.txt").write_text(DESCRIPTION)
    (inner / "sct2_Concept_Snapshot_INT_20200131.txt").write_text(CONCEPTS)
    if relationships:
        (inner / "sct2_Relationship_Snapshot_INT_20200131.txt").write_text(relationships)
    return folder


def test_snomed(tmp_path: Path) -> None:
    assert shown(load(snomed(tmp_path))) == {
        "101": ("finding", "Fever|Pyrexia"),
        "102": ("disease", "Asthma"),
        "103": ("test", "Urinalysis"),
        "104": ("procedure", "Appendectomy"),
        "107": ("symptom", 'Nausea "sick"'),
    }


def test_snomed_without_relationships(tmp_path: Path) -> None:
    kinds = {id_: kind for id_, (kind, _) in shown(load(snomed(tmp_path, ""))).items()}
    assert (kinds["103"], kinds["107"]) == ("procedure", "finding")


def test_broken_snomed(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"sct2_Relationship_Snapshot_INT_20200131.txt, row 3: the column 'active'"
    ):
        load(snomed(tmp_path / "a", RELATIONSHIP.replace("2\t20200131\t1", "2\t20200131\tyes")))
    folder = snomed(tmp_path / "b")
    next(folder.rglob("sct2_Concept_*")).unlink()
    with pytest.raises(BadInput, match=r"no sct2_Concept_\*.txt in this folder"):
        load(folder)


# OBO

OBO = """format-version: 1.2
ontology: made-up

[Term]
id: HP:0000001
name: Fever
def: "Made up." [X:1]
synonym: "Pyrexia" EXACT []
synonym: "Hot \\"head\\"" EXACT layperson [X:1]
synonym: "Warmth" RELATED []

[Term]
id: HP:0000002
name: Old sign
is_obsolete: true

[Term]
id: DOID:3 ! asthma
name: asthma

[Term]
id: ZZ:4
name: exposure

[Typedef]
id: part_of
name: part of
"""


def test_obo(tmp_path: Path) -> None:
    folder = written(tmp_path, made__obo=OBO)
    assert shown(load(folder / "made.obo")) == {
        "HP:0000001": ("symptom", 'Fever|Pyrexia|Hot "head"'),
        "DOID:3": ("disease", "asthma"),
        "ZZ:4": ("finding", "exposure"),
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: asthma\n", "", "made.obo, row 17: the term that begins here has no 'name'"),
        ("name: exposure", "exposure", "made.obo, row 23: a line of an OBO file needs `tag: value`"),
        (
            '"Pyrexia" EXACT []',
            "Pyrexia",
            "made.obo, row 8: a synonym needs its text in quotes and its scope",
        ),
        ("[Term]", "", "made.obo: no concept of a kind that notes speak of"),
    ],
)
def test_broken_obo(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = written(tmp_path, made__obo=OBO.replace(old, new))
    with pytest.raises(BadInput) as raised:
        load(folder / "made.obo")
    assert message in str(raised.value)


def test_not_obo(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"made.obo: no \[Term\] in this file"):
        load(written(tmp_path, made__obo="format-version: 1.2\n") / "made.obo")
