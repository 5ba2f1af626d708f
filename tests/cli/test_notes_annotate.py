"""`leeward notes annotate` and `decrypt`, end to end."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run
from tests.notes.test_table import FIGURE_2, FIGURE_3, ZIPS, concepts_of
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

from leeward import annotate
from leeward.cli.notes import COLUMNS
from leeward.engine import Engine
from leeward.notes import reading
from leeward.notes.identities.keys import HEAD

CANARY = "Quorraxanthippe"
"""A name that stands in every note and in no message."""

FAST = ("--members", "rules,dictionary")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "notes.csv"
    path.parent.mkdir()
    texts = [f"{text} Seen by Dr. {CANARY}." for text in FIGURE_2]
    pl.DataFrame({"patient": [f"canary-{i}" for i in range(5)], "zip": ZIPS, "text": texts}).write_csv(path)
    return path


def table(out: Path) -> pl.DataFrame:
    """The table in the order of the notes."""
    numbers = pl.read_parquet(out / "custody" / "numbers.parquet").select("note", "row")
    return pl.read_parquet(out / "custody" / "table.parquet").join(numbers, on="note").sort("row")


def test_the_five_notes_of_the_paper_end_to_end(leeward: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "notes.csv", tmp_path / "OUT"
    pl.DataFrame({"note": range(5), "patient": range(5), "text": FIGURE_2}).write_csv(path)
    registration = tmp_path / "registration.csv"
    pl.DataFrame({"patient": range(5), "zip": ZIPS}).write_csv(registration)
    result = leeward("notes", "annotate", path, "--metadata", registration, "-o", out, "--json")
    assert result.status == 0, result.err
    found = table(out)
    for row, (month, year, age, sex, zip_code, words) in zip(found.to_dicts(), FIGURE_3, strict=True):
        assert (row["visit_month"], row["visit_year"], row["age"], row["sex"]) == (month, year, age, sex)
        assert row["zip"] == zip_code and set(row["terms"]) == concepts_of(*words)
    assert result.json()["notes"] == 5
    assert "index" in leeward("notes", "annotate", "--help").out


def test_what_is_written_where(leeward: Run, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "OUT"
    assert leeward("notes", "annotate", notes, "-o", out, *FAST).status == 0
    assert sorted(str(f.relative_to(out)) for f in out.rglob("*.*")) == [
        "custody/numbers.parquet",
        "custody/review.html",
        "custody/summary.json",
        "custody/table.parquet",
    ]
    page = (out / "custody" / "review.html").read_text()
    assert page.count("<article") == 5 and CANARY in page
    assert "http:" not in page and "https:" not in page  # opens offline
    assert sorted(table(out)["note"]) == list(range(5))


@pytest.mark.parametrize("mode", ["removed", "surrogates", "encrypted"])
def test_texts_hold_no_identity_and_share_holds_no_page(
    leeward: Run, notes: Path, tmp_path: Path, mode: str
) -> None:
    out, key = tmp_path / "OUT", tmp_path / "notes.key"
    key.write_text(
        f"{HEAD}{base64.b64encode(bytes(32)).decode()}\n", encoding="ascii"
    )  # surrogates follow from it
    key.chmod(0o600)
    assert leeward("notes", "annotate", notes, "-o", out, "--text", mode, "--key", key, *FAST).status == 0
    shared = b"".join(f.read_bytes() for f in (out / "share").rglob("*") if f.is_file())
    assert not list((out / "share").rglob("*.html"))
    texts = pl.read_parquet(out / "share" / "text.parquet")
    assert not texts["text"].str.contains(CANARY).any() and not texts["text"].str.contains("Brown").any()
    assert b"canary-" not in shared and CANARY.encode() not in shared
    home = "custody" if mode == "surrogates" else "share"
    assert sorted(f.name for f in (out / "share").iterdir()) == sorted(
        ["README.md", "text.parquet", *(["replacements.parquet"] if home == "share" else [])]
    )
    assert ("replacements.parquet" in (out / "share" / "README.md").read_text()) == (home == "share")
    replaced = pl.read_parquet(out / home / "replacements.parquet")
    assert {"name", "date"} <= set(replaced["category"])
    both = replaced.join(texts, on="note").with_columns(
        pl.col("text").str.slice("start", pl.col("end") - pl.col("start")).alias("stands")
    )
    if mode == "removed":
        assert set(both.filter(pl.col("category") == "name")["stands"]) == {"[NAME]"}


def test_decrypt_gives_the_texts_back_and_another_key_none(leeward: Run, notes: Path, tmp_path: Path) -> None:
    out, key, other = tmp_path / "OUT", tmp_path / "a.key", tmp_path / "b.key"
    leeward("notes", "annotate", notes, "-o", out, "--text", "encrypted", "--key", key, *FAST)
    leeward("notes", "annotate", notes, "-o", tmp_path / "X", "--text", "encrypted", "--key", other, *FAST)
    wrong = leeward("notes", "decrypt", out, "--key", other, "-o", tmp_path / "back.parquet")
    assert wrong.status == 2 and "the key does not open" in wrong.err
    assert not (tmp_path / "back.parquet").exists() and not list(tmp_path.glob("*.partial"))
    assert leeward("notes", "decrypt", out, "--key", key, "-o", tmp_path / "back.parquet").status == 0
    back = pl.read_parquet(tmp_path / "back.parquet")["text"]
    assert set(back) == set(pl.read_csv(notes)["text"])
    again = leeward("notes", "decrypt", out, "--key", key, "-o", tmp_path / "back.parquet")
    assert again.status == 2 and "exists already" in again.err


def test_one_key_gives_one_hash_a_patient_whatever_the_run(leeward: Run, notes: Path, tmp_path: Path) -> None:
    key = tmp_path / "notes.key"
    for name in ("A", "B"):
        leeward("notes", "annotate", notes, "-o", tmp_path / name, "--key", key, *FAST)
    leeward("notes", "annotate", notes, "-o", tmp_path / "C", *FAST)
    first, second, third = (table(tmp_path / name)["patient"].to_list() for name in "ABC")
    assert first == second != third
    assert not any("canary" in patient for patient in first)


def test_a_recipient_has_one_key_that_is_kept_and_others_have_theirs(
    leeward: Run, notes: Path, tmp_path: Path
) -> None:
    kept = Path(os.environ["LEEWARD_STATE"]) / "keys"
    texts = {}
    for name, who in (("A", ()), ("B", ()), ("C", ("--recipient", "ann")), ("D", ("--recipient", "ann"))):
        done = leeward("notes", "annotate", notes, "-o", tmp_path / name, "--text", "surrogates", *who, *FAST)
        assert done.status == 0 and str(kept / f"{who[-1] if who else 'everybody'}.key") in done.out
        texts[name] = sorted(pl.read_parquet(tmp_path / name / "share" / "text.parquet")["text"])
    assert texts["A"] == texts["B"] != texts["C"] == texts["D"]
    assert {path.name: path.stat().st_mode & 0o777 for path in kept.iterdir()} == {
        "everybody.key": 0o600,
        "ann.key": 0o600,
    }
    assert not [path for path in tmp_path.rglob("*.key") if "share" in path.parts or "custody" in path.parts]


@pytest.mark.parametrize("who", [(), ("--recipient", "ann")])
def test_texts_encrypted_for_a_recipient_are_read_with_the_key_that_was_kept(
    leeward: Run, notes: Path, tmp_path: Path, who: tuple[str, ...]
) -> None:
    leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", "--text", "encrypted", *who, *FAST)
    back = leeward("notes", "decrypt", tmp_path / "OUT", "-o", tmp_path / "back.parquet", *who)
    assert back.status == 0, back.err
    assert set(pl.read_parquet(tmp_path / "back.parquet")["text"]) == set(pl.read_csv(notes)["text"])
    none = leeward("notes", "decrypt", tmp_path / "OUT", "-o", tmp_path / "x.parquet", "--recipient", "bob")
    assert none.status == 2 and "bob.key: no such file" in none.err


def test_without_a_place_for_the_key_nothing_is_written(
    leeward: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEEWARD_STATE", str(tmp_path / "file" / "state"))
    done = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", *FAST)
    assert done.status == 2 and "keys of recipients) is kept here, and it cannot be written" in done.err
    assert not (tmp_path / "OUT").exists()


def test_two_runs_under_one_key_have_no_token_in_common(leeward: Run, notes: Path, tmp_path: Path) -> None:
    found = []
    for name in ("A", "B"):
        leeward("notes", "annotate", notes, "-o", tmp_path / name, "--text", "encrypted", *FAST)
        texts = pl.read_parquet(tmp_path / name / "share" / "text.parquet")["text"]
        found.append([token for text in texts for token in re.findall(r"\[[A-Z_]+:[^\]]+\]", text)])
    assert len({*found[0], *found[1]}) == len(found[0]) + len(found[1]) > 20


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (
            "surrogates",
            (
                "One date that somebody knows",
                "the days between two dates are as they were",
                "other\nsurrogates",
            ),
        ),
        ("encrypted", ("how many identities a note has", "steps of 32\nbytes")),
        ("removed", ()),
    ],
)
def test_the_readme_says_what_stands_in_the_identities_place_tells(
    leeward: Run, notes: Path, tmp_path: Path, mode: str, words: tuple[str, ...]
) -> None:
    leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", "--text", mode, *FAST)
    readme = (tmp_path / "OUT" / "share" / "README.md").read_text()
    assert all(each.lower() in readme.lower() for each in words)
    assert ("dates moved" in readme) == (mode == "surrogates") and ("token" in readme) == (
        mode == "encrypted"
    )


@pytest.mark.parametrize("mode", ["surrogates", "encrypted"])
def test_a_seed_gives_the_same_files(leeward: Run, notes: Path, tmp_path: Path, mode: str) -> None:
    for name in ("A", "B"):
        leeward("notes", "annotate", notes, "-o", tmp_path / name, "--text", mode, "--seed", 1, *FAST)
    for file in ("custody/table.parquet", "share/text.parquet", "custody/review.html"):
        assert (tmp_path / "A" / file).read_bytes() == (tmp_path / "B" / file).read_bytes()


def test_the_page_is_the_same_when_spans_were_kept_and_when_they_are_found_again(
    leeward: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for kept in (5_000, 0):
        monkeypatch.setattr("leeward.runs.annotate.SPANS_KEPT", kept)
        out = tmp_path / f"kept-{kept}"
        leeward("notes", "annotate", notes, "--seed", 1, "-o", out, *FAST)
        pages.append((out / "custody" / "review.html").read_bytes())
    assert pages[0] == pages[1]


def test_spark_gives_the_same_rows(spark_engine: Engine, notes: Path, tmp_path: Path) -> None:  # noqa: F811
    for name, engine in (("local", "local"), ("spark", spark_engine)):
        annotate(notes, tmp_path / name, mode="encrypted", key=tmp_path / "k", engine=engine, seed=3)
    for file in ("custody/table.parquet", "share/text.parquet", "share/replacements.parquet"):
        assert pl.read_parquet(tmp_path / "local" / file).equals(pl.read_parquet(tmp_path / "spark" / file))


BAD = {
    "empty note": "note,patient,text\n1,p,{canary} has fever\n2,p,\n",
    "1 MB note": "note,patient,text\n1,p,{canary} " + "has fever. " * 95_400 + "\n",
    "short row": "note,patient,text\n1,{canary}\n",
    "no text": "note,patient,words\n1,p,{canary}\n",
    "binary": "note,patient,text\n1,p,{canary}\0\0\0\n",
}


def test_stray_control_characters_are_counted_and_left_out(leeward: Run, tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_bytes(b"note,patient,text\n1,p,Mr. Ros\0enberg has fever and a cough.\n2,q,No cough.\n")
    out, key = tmp_path / "OUT", tmp_path / "k"
    result = leeward("notes", "annotate", path, "-o", out, "--text", "encrypted", "--key", key, *FAST)
    assert result.status == 0 and "control characters removed from the notes: 1." in result.out
    assert leeward("notes", "decrypt", out, "--key", key, "-o", tmp_path / "back.csv").status == 0
    back = (tmp_path / "back.csv").read_text()
    assert "Mr. Rosenberg has fever and a cough." in back and "No cough." in back


@pytest.mark.parametrize("case", BAD)
def test_bad_notes_leave_nothing_and_say_nothing_of_the_text(leeward: Run, tmp_path: Path, case: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(BAD[case].replace("{canary}", CANARY))
    result = leeward("notes", "annotate", path, "-o", tmp_path / "OUT", *FAST)
    assert result.status == 2
    assert "bad.csv" in result.err and CANARY not in result.err + result.out
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--key", "k", "--recipient", "ann"), "give --key or --recipient, not both"),
        (("--recipient", "../ann"), "--recipient: a name of letters"),
        (("--members", "rules,oracle"), "there is no annotator `oracle`"),
        (("--text-column", "words"), "no column 'words' among"),
        (("--birth", "born"), "no column 'born' among"),
        (("--lexicon", "nowhere.csv"), "nowhere.csv"),
        (("--metadata", "nowhere.csv"), "--metadata nowhere.csv: no such file"),
    ],
)
def test_wrong_flags_leave_nothing(
    leeward: Run, notes: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", *arguments)
    assert result.status == 2 and message in result.err
    assert not (tmp_path / "OUT").exists() and not list(tmp_path.glob("OUT.*"))


def test_a_key_in_the_release_or_of_another_kind_is_refused(
    leeward: Run, notes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "OUT"
    inside = leeward("notes", "annotate", notes, "-o", out, "--key", out / "notes.key", *FAST)
    assert inside.status == 2 and "may not lie in the folder" in inside.err
    other = leeward("notes", "annotate", notes, "-o", out, "--key", notes, *FAST)
    assert other.status == 2 and "holds no key" in other.err and CANARY not in other.err
    assert not out.exists()


def test_a_fault_says_nothing_of_the_text(
    leeward: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str, *rest: object) -> None:
        raise RuntimeError(f"cannot read {text}")

    monkeypatch.setattr("leeward.notes.table.of_note", broken)
    monkeypatch.delenv("LEEWARD_DEBUG", raising=False)
    result = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", *FAST)
    assert result.status == 1 and CANARY not in result.err + result.out
    assert not (tmp_path / "OUT").exists()


def test_progress_and_figures_say_nothing_of_the_text(
    leeward: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    from contextlib import contextmanager

    @contextmanager
    def watched(tell: object):
        yield told.append

    monkeypatch.setattr("leeward.runs.annotate.watch", watched)
    result = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", "--json", *FAST)
    assert "5 of 5 notes (100%)" in told
    said = " ".join(told) + result.out + result.err + (tmp_path / "OUT/custody/summary.json").read_text()
    for secret in (CANARY, "canary-", "Brown", "Amy", "4/5/2009"):
        assert secret not in said
    assert json.loads(result.out)["spans"]["EID"] >= 7


SPANISH = (
    "Paciente de 54 años que acude por dolor torácico desde hace dos días. No refiere fiebre ni tos. Vive con su "
    "esposa en Sevilla. Se realiza electrocardiograma sin alteraciones y fue dado de alta con tratamiento."
)
GERMAN = (
    "Der Patient wurde mit Verdacht auf eine Lungenembolie aufgenommen. In der Bildgebung zeigte sich kein Thrombus. "
    "Wir entlassen ihn in gutem Zustand nach Hause und bitten um eine Kontrolle bei dem Hausarzt."
)
ENGLISH = "The patient was seen for a cough. She has had no fever and was sent home with her husband."


def written(tmp_path: Path, *texts: str) -> Path:
    path = tmp_path / "mixed.csv"
    pl.DataFrame({"note": range(len(texts)), "patient": range(len(texts)), "text": texts}).write_csv(path)
    return path


@pytest.mark.parametrize(("text", "language"), [(SPANISH, "Spanish"), (GERMAN, "German")])
def test_texts_in_another_language_are_refused(
    leeward: Run, tmp_path: Path, text: str, language: str
) -> None:
    notes = written(tmp_path, *[ENGLISH] * 20, text)
    done = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", "--text", "removed", *FAST)
    assert done.status == 2 and not (tmp_path / "OUT").exists()
    assert f"1 in {language}; first: row 21" in done.err and "Sevilla" not in done.err


def test_notes_in_another_language_are_flagged_and_many_are_refused(leeward: Run, tmp_path: Path) -> None:
    few = leeward(
        "notes", "annotate", written(tmp_path, *[ENGLISH] * 20, SPANISH), "-o", tmp_path / "A", *FAST
    )
    assert few.status == 0 and "WARNING" in few.err and "1 in Spanish" in few.err
    many = written(tmp_path, ENGLISH, SPANISH, GERMAN)
    refused = leeward("notes", "annotate", many, "-o", tmp_path / "B", *FAST)
    assert refused.status == 2 and "2 of 3 notes are not in English" in refused.err
    asked = leeward(
        "notes", "annotate", many, "-o", tmp_path / "B", "--text", "removed", "--any-language", *FAST
    )
    assert asked.status == 0 and "WARNING" in asked.err
    assert "2 of the 3 notes are not in English" in (tmp_path / "B" / "share" / "README.md").read_text()


def test_every_column_of_a_table_of_notes_has_a_flag() -> None:
    assert set(COLUMNS) == set(reading.COLUMNS)


def test_the_paper_s_notes_as_a_star_whole_and_by_safe_harbor(
    leeward: Run, notes: Path, tmp_path: Path
) -> None:
    """What the hospital may release of Figure 3 by Safe Harbor: year, age, sex, three digits and terms (section 3)."""
    for detail in ("full", "safe-harbor"):
        done = leeward(
            "notes", "annotate", notes, "-o", tmp_path / detail, "--i2b2", detail, "--zip3", "hhs", *FAST
        )
        assert done.status == 0, done.err
    whole, shared = tmp_path / "full" / "custody" / "i2b2", tmp_path / "safe-harbor" / "share" / "i2b2"
    assert (
        not (tmp_path / "full" / "share").exists()
        and not (tmp_path / "safe-harbor" / "custody" / "i2b2").exists()
    )
    facts = {folder: pl.read_csv(folder / "observation_fact.csv") for folder in (whole, shared)}
    kinds = ("ZIP", "AGE", "SEX")
    said = {
        folder: {kind: sorted(c for c in each["concept_cd"] if c.startswith(kind)) for kind in kinds}
        for folder, each in facts.items()
    }
    assert said[shared]["ZIP"] == ["ZIP:123"] * 5
    assert said[whole]["ZIP"] == ["ZIP:12301"] * 3 + ["ZIP:12302"] * 2
    for kind in ("AGE", "SEX"):
        assert said[whole][kind] == said[shared][kind] != []
    assert set(facts[whole]["start_date"]) == {f"2009-0{month}-01" for month in (4, 5, 6)}
    assert set(facts[shared]["start_date"]) == {"2009-01-01"}
    files = b"".join(file.read_bytes() for file in shared.iterdir())
    assert CANARY.encode() not in files and b"canary" not in files and b"Nothing is guaranteed" in files


@pytest.mark.parametrize(
    ("flags", "message"),
    [(("--zip3", "12"), "--zip3"), (("--i2b2", "safe-harbor", "--text", "surrogates"), "shared i2b2 star")],
)
def test_settings_that_would_tell_more_are_refused(
    leeward: Run, notes: Path, tmp_path: Path, flags: tuple[str, ...], message: str
) -> None:
    refused = leeward("notes", "annotate", notes, "-o", tmp_path / "OUT", *flags, *FAST)
    assert refused.status == 2 and message in refused.err
    assert not (tmp_path / "OUT").exists()


def test_texts_with_three_digits_say_so(leeward: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    pl.DataFrame({"patient": [1], "text": ["Lives in Boulder, CO 80301. Seen for fever."]}).write_csv(path)
    for name, flags in (("A", ()), ("B", ("--zip3", "hhs"))):
        leeward("notes", "annotate", path, "-o", tmp_path / name, "--text", "removed", *flags, *FAST)
    texts = [pl.read_parquet(tmp_path / name / "share" / "text.parquet")["text"][0] for name in "AB"]
    assert "[ZIP]" in texts[0] and "803**" in texts[1] and "80301" not in "".join(texts)
    said = [(tmp_path / name / "share" / "README.md").read_text("utf-8") for name in "AB"]
    assert "three digits" not in said[0] and "three digits of ZIP codes" in said[1]
