"""Readers of annotated notes: exact offsets, round trips, errors that name file and row and never a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.notes import writers

from leeward.errors import BadInput
from leeward.notes.corpora import formats, mapping_of, read
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote, Span

SECRET = "Zebulon"
"""A name that must be in no message."""
TEXT = f"Mr. {SECRET} was seen on 4/5/2009.\nHe denies fever; he has asthma. Cell 555-123-4567."


def span(words: str, kind: str, category: str, **more: object) -> Span:
    start = TEXT.index(words)
    return Span(start, start + len(words), kind, category, source="gold", **more)  # type: ignore[arg-type]  # kinds are given as literals


NOTE = AnnotatedNote(
    "one",
    TEXT,
    (
        span(SECRET, "EID", "name"),
        span("4/5/2009", "QID", "date"),
        span("fever", "HMI", "symptom", concept="S1", asserted=False),
        span("asthma", "HMI", "disease", concept="D1"),
        span("555-123-4567", "EID", "phone"),
    ),
    "visit note",
)

I2B2 = f"""<?xml version="1.0" encoding="UTF-8" ?>
<deIdi2b2>
<TEXT><![CDATA[Mr. {SECRET} & son,
age 91, lives in Lowell.]]></TEXT>
<TAGS>
<NAME id="P0" start="4" end="11" text="{SECRET}" TYPE="PATIENT" comment="" />
<AGE id="P1" start="23" end="25" text="91" TYPE="AGE" comment="" />
<LOCATION id="P2" start="36" end="42" text="Lowell" TYPE="CITY" comment="" />
<PROFESSION id="P3" start="4" end="11" text="{SECRET}" TYPE="PROFESSION" comment="" />
</TAGS>
</deIdi2b2>
"""


def test_i2b2_offsets_count_the_text_s_characters(tmp_path: Path) -> None:
    (tmp_path / "110-01.xml").write_text(I2B2, encoding="utf-8")
    (note,) = read(tmp_path)
    assert note.name == "110-01"
    assert [(note.text[s.start : s.end], s.kind, s.category) for s in note.spans] == [
        (SECRET, "EID", "name"),
        ("91", "EID", "age"),  # above 89
        ("Lowell", "QID", "place"),
    ]


def test_jsonl_brings_everything_back(tmp_path: Path) -> None:
    formats.write_jsonl(
        tmp_path / "notes.jsonl",
        [NOTE, AnnotatedNote("two", "é 😀 Öz", (Span(4, 6, "EID", "name", source="gold"),))],
    )
    one, two = read(tmp_path / "notes.jsonl")
    assert one == NOTE
    assert two.text[two.spans[0].start : two.spans[0].end] == "Öz"


def test_brat_brings_back_spans_and_denials(tmp_path: Path) -> None:
    writers.write_brat(tmp_path / "notes", [NOTE])
    (note,) = read(tmp_path / "notes")
    assert note.text == NOTE.text
    assert [(s.start, s.end, s.kind, s.category, s.asserted) for s in note.spans] == [
        (s.start, s.end, s.kind, s.category, s.asserted) for s in NOTE.spans
    ]


@pytest.mark.parametrize("counted", [0, 1])
def test_brat_reads_texts_with_a_byte_order_mark(tmp_path: Path, counted: int) -> None:
    """Programs differ in whether the mark counts as a character; the words at the offsets decide."""
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfSeen by Ann Bode.")
    row = f"T1\tEID_name {8 + counted} {16 + counted}\tAnn Bode\n"
    (tmp_path / "a.ann").write_text(row, encoding="utf-8")
    (note,) = read(tmp_path, "brat")
    assert note.text == "Seen by Ann Bode."
    assert [note.text[span.start : span.end] for span in note.spans] == ["Ann Bode"]


def test_brat_reads_a_span_in_two_parts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("left and right arm", encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tPROBLEM 0 4;15 18\tleft arm\n", encoding="utf-8")
    (note,) = read(tmp_path)
    assert [note.text[s.start : s.end] for s in note.spans] == ["left", "arm"]


def test_conll_brings_back_words_and_labels(tmp_path: Path) -> None:
    writers.write_conll(tmp_path / "notes.conll", [NOTE, NOTE])
    one, two = read(tmp_path / "notes.conll")
    assert one.text == two.text
    spans = [(one.text[s.start : s.end].replace(" ", ""), s.kind, s.category) for s in one.spans]
    assert spans == [(TEXT[s.start : s.end], s.kind, s.category) for s in NOTE.spans]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("Al B-NAME\nBo I-NAME\nran O\n", ["Al Bo"]),
        ("Al B-NAME\nBo B-NAME\n", ["Al", "Bo"]),
        ("Al NAME\nBo NAME\n\nCy NAME\n", ["Al Bo", "Cy"]),
        ("Al S-NAME\nBo B-NAME\nCy E-NAME\n", ["Al", "Bo Cy"]),
        ("Al I-NAME\nBo I-CITY\n", ["Al", "Bo"]),
    ],
)
def test_conll_marks(tmp_path: Path, rows: str, expected: list[str]) -> None:
    (tmp_path / "a.conll").write_text(rows, encoding="utf-8")
    (note,) = read(tmp_path / "a.conll")
    assert [note.text[s.start : s.end] for s in note.spans] == expected


def test_own_labels_are_mapped_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("label,kind,category\nPER,EID,name\nNOISE,OTHER,\n", encoding="utf-8")
    (tmp_path / "a.conll").write_text("Al B-PER\nwas B-NOISE\n", encoding="utf-8")
    (note,) = read(tmp_path / "a.conll", mapping=mapping_of(tmp_path / "map.csv"))
    assert [(s.kind, s.category) for s in note.spans] == [("EID", "name")]
    (tmp_path / "map.csv").write_text("label,kind,category\nPER,EID,nose\n", encoding="utf-8")
    with pytest.raises(BadInput, match="row 2, column `category`: for EID one of name"):
        mapping_of(tmp_path / "map.csv")


def write(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def annotated(row: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "a.txt").write_text(TEXT, encoding="utf-8")
        return write("a.ann", row)(folder)

    return make


BROKEN: list[tuple[Callable[[Path], Path], str]] = [
    (write("a.xml", f"<deIdi2b2><TEXT>{SECRET}</deIdi2b2>"), "row 1, column .*is no well-formed XML"),
    (write("a.xml", f"<deIdi2b2><BODY>{SECRET}</BODY></deIdi2b2>"), "has no element TEXT"),
    (write("a.xml", f'<!DOCTYPE x [<!ENTITY a "{SECRET}">]><x>&a;</x>'), "declares a document type"),
    (write("a.xml", I2B2.replace('end="11"', 'end="999"')), "tag 1: the span 4–999 does not lie in its text"),
    (write("a.xml", I2B2.replace('end="11"', 'end="x"')), "tag 1, attribute `end`: must be a whole number"),
    (
        write("a.xml", I2B2.replace('start="36" end="42"', 'start="35" end="41"')),
        "tag 3: its attribute `text`",
    ),
    (
        write("a.xml", I2B2.replace('TYPE="CITY"', f'TYPE="{SECRET}"')),
        "tag 3: a label that is not known here",
    ),
    (write("a.xml", b"\x89PNG\0\0" + SECRET.encode()), "is a binary file"),
    (write("a.jsonl", b'{"text": "ok"}\n{"text": "caf\xe9"}'), "row 2: is not UTF-8"),
    (write("a.jsonl", '{"text": "ok"}\n{"text": "' + SECRET), "row 2, column 10: is no JSON"),
    (write("a.jsonl", '{"text": 7}'), "row 1, field `text`: must be a string"),
    (
        write("a.jsonl", '{"text": "ab", "spans": [{"start": 1.0, "end": 2}]}'),
        "span 1, field `start`: must be a whole",
    ),
    (
        write("a.jsonl", '{"text": "ab", "spans": [{"start": 1, "end": 1, "label": "NAME"}]}'),
        "does not lie in its text",
    ),
    (write("a.jsonl", '{"text": "ab", "spans": [{"start": 0, "end": 1}]}'), "needs `kind` and `category`"),
    (write("a.jsonl", ""), "holds no note"),
    (write("a.conll", f"{SECRET}\n"), "row 1: a token and its label are expected"),
    (write("a.conll", f"Al O\n{SECRET} X-NAME\n"), "row 2: the label must begin with"),
    (write("a.ann", "T1\tNAME 0 1\ta\n"), "its text a.txt is not beside it"),
    (annotated(f"T1\tNAME 0 7\t{SECRET}\n"), "row 1: the text given is not the text at"),
    (annotated("T1\tNAME zero 7\tx\n"), "row 1: offsets must be pairs"),
    (annotated(f"T1\t{SECRET}\n"), "row 1: must be an identifier, a label with offsets"),
]


@pytest.mark.parametrize(("make", "message"), BROKEN)
def test_broken_files_are_named_and_never_quoted(
    tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as error:
        read(make(tmp_path))
    assert SECRET not in str(error.value)


def test_what_is_not_there_or_not_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder"):
        read(tmp_path / "none.xml")
    (tmp_path / "a.doc").write_text("x", encoding="utf-8")
    with pytest.raises(BadInput, match="no file whose ending names a format"):
        read(tmp_path)
    with pytest.raises(BadInput, match="the format 'word' is unknown"):
        read(tmp_path, "word")
    with pytest.raises(BadInput, match=r"no file \*.xml in this folder"):
        read(tmp_path, "i2b2")


def test_every_category_has_a_label_of_its_own() -> None:
    mapping = Mapping()
    assert mapping.of("EID:record_number", "here") == ("EID", "record_number")
    assert mapping.of("qid_zip", "here") == ("QID", "zip")
    assert mapping.of("PROFESSION", "here") is None
