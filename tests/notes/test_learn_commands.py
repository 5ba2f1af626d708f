"""`leeward synth notes`, `leeward notes train` and `evaluate`, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import sklearn.svm  # noqa: F401  # its import draws from Python's global generator: here, before a test is watched

from leeward.cli.main import status_of
from leeward.notes.corpora import formats
from leeward.notes.pipeline import members
from leeward.notes.spans import AnnotatedNote, Span
from leeward.synthetic.notes import NotePlan, synthetic_notes

SECRET = "Zebulon"


def test_synthetic_notes_are_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        arguments = ["synth", "notes", "--patients", "30", "--notes", "50", "--seed", "1"]
        files = ["-o", str(tmp_path / f"{name}.parquet"), "--spans", str(tmp_path / f"{name}.jsonl")]
        assert status_of([*arguments, *files]) == 0
    assert "50 notes of 30 patients" in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "a.parquet").equals(pl.read_parquet(tmp_path / "b.parquet"))
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert status_of(["synth", "notes", "--patients", "30", "-o", str(tmp_path / "a.parquet")]) == 2


def test_train_and_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [note.annotated for note in synthetic_notes(NotePlan(40, 40, "training", 2))]
    formats.write_jsonl(tmp_path / "gold.jsonl", gold)
    out = tmp_path / "models"
    corpus = ["--corpus", str(tmp_path / "gold.jsonl")]
    assert status_of(["notes", "train", *corpus, "--seed", "1", "-o", str(out)]) == 0
    assert "models of 40 notes" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["crf.crfsuite", "model.json", "svm.npz"]
    assert json.loads((out / "model.json").read_text())["corpus"] == {"name": "gold.jsonl", "notes": 40}

    assert status_of(["notes", "evaluate", *corpus, "--models", str(out), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    by_name = {result["annotator"]: result for result in figures["annotators"]}
    assert list(by_name) == ["rules", "dictionary", "svm", "crf", "ensemble"]
    recalls = {name: result["spans"].get("EID", {}).get("recall") for name, result in by_name.items()}
    assert recalls["ensemble"] == max(recalls.values()) > 0.9
    assert by_name["ensemble"]["wrongly_kept"]["all"]["gold"] > 50

    assert status_of(["notes", "evaluate", *corpus, "--models", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "EID recall" in shown and "EID:name" in shown


def test_nothing_of_a_note_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"Mr. {SECRET} has asthma."
    formats.write_jsonl(
        tmp_path / "a.jsonl", [AnnotatedNote(SECRET, text, (Span(4, 11, "EID", "name"),))] * 3
    )
    assert status_of(["notes", "evaluate", "--corpus", str(tmp_path / "a.jsonl")]) == 0
    (tmp_path / "b.jsonl").write_text(
        f'{{"text": "{text}", "spans": [{{"start": 4, "end": 99, "label": "NAME"}}]}}'
    )
    for command in (["evaluate"], ["train", "-o", str(tmp_path / "out")]):
        assert status_of(["notes", *command, "--corpus", str(tmp_path / "b.jsonl")]) == 2
    said = capsys.readouterr()
    assert "b.jsonl, row 1, span 1" in said.err
    assert SECRET not in said.out + said.err
    assert not (tmp_path / "out").exists()


def test_the_ensemble_finds_more_than_each_member() -> None:
    from leeward.notes.corpora.evaluation import evaluate

    notes = [note.annotated for note in synthetic_notes(NotePlan(60, 120, "held-out", 5))]
    results = {name: evaluate(name, notes, annotate) for name, annotate in members().items()}
    recalls = {name: result.spans["EID"].recall for name, result in results.items()}
    ensemble = results["ensemble"]
    assert all(recalls["ensemble"] > recall for name, recall in recalls.items() if name != "ensemble")
    assert recalls["ensemble"] >= 0.97 and ensemble.spans["EID"].precision >= 0.9
    assert ensemble.spans["HMI"].f >= 0.9


def test_made_up_figures_are_shown_beside_those_of_real_text() -> None:
    from leeward.cli.notes import _on_real_text, _real_text

    real = _real_text()
    assert real["notes"] == 50 and real["names right"] > 0 and "dirty" not in real["commit"]
    shown = " ".join(_on_real_text())
    assert f"{real['names wrong']} wrong" in shown and "Made-up notes flatter" in shown
