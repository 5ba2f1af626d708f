"""Adapters of the study's public sets: the sets' forms in small, offsets exact."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from leeward.errors import BadInput

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "notes_corpora.py"


@pytest.fixture(scope="module")
def corpora() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes_corpora", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def query(text: str, *tags: tuple[str, str]) -> str:
    rows = "\n".join(json.dumps({"identifier_type": kind, "value": value}) for kind, value in tags)
    return f"===QUERY===\n{text}\n===PHI_TAGS===\n{rows}\n\n"


def test_values_without_offsets_are_found(corpora: ModuleType, tmp_path: Path) -> None:
    content = query(
        "Ann S. of St. Luke’s, seen 4/5/2009 (MRN 12-34), then Ann S. again; Annex.",
        ("NAME", "Ann S."),
        ("GEOGRAPHIC_LOCATION", "St. Luke's"),
        ("DATE", "4/5/2009"),
        ("MEDICAL_RECORD_NUMBER", "12-34"),
        ("NAME", "Ann"),
    ) + query("What is the dose of aspirin?")
    write(tmp_path, "phi-synthetic-queries/synthetic_dataset.txt", content)
    first, second = corpora.queries(tmp_path)
    found = [(first.text[s.start : s.end], s.kind, s.category) for s in first.spans]
    # Every occurrence, the longer value first; "Ann" alone stands nowhere else as a word.
    assert found == [
        ("Ann S.", "EID", "name"),
        ("St. Luke’s", "QID", "place"),
        ("4/5/2009", "QID", "date"),
        ("12-34", "EID", "record_number"),
        ("Ann S.", "EID", "name"),
    ]
    assert second.spans == ()
    write(tmp_path, "phi-synthetic-queries/synthetic_dataset.txt", query("Nobody here.", ("NAME", "Zebulon")))
    with pytest.raises(BadInput, match="query 1: a tagged value does not occur") as error:
        corpora.queries(tmp_path)
    assert "Zebulon" not in str(error.value)


def test_offsets_are_checked(corpora: ModuleType, tmp_path: Path) -> None:
    document = {
        "name": "doc_0",
        "text": "Name: Ann Poe",
        "annotations": [{"start": 6, "end": 13, "cui": "PATIENT", "value": " Ann Poe"}],
    }
    write(tmp_path, "medcat-deid/deid_train_data.json", json.dumps({"projects": [{"documents": [document]}]}))
    (note,) = corpora.medcat(tmp_path)
    assert [note.text[s.start : s.end] for s in note.spans] == ["Ann Poe"]
    document["annotations"][0]["start"] = 5
    write(tmp_path, "medcat-deid/deid_train_data.json", json.dumps({"projects": [{"documents": [document]}]}))
    with pytest.raises(BadInput, match="document 1, annotation 1"):
        corpora.medcat(tmp_path)


def test_labels_that_mean_nothing_here_are_left_out(corpora: ModuleType, tmp_path: Path) -> None:
    spans = [
        {"entity_type": "TITLE", "start_position": 0, "end_position": 3},
        {"entity_type": "PERSON", "start_position": 4, "end_position": 7},
    ]
    row = {"full_text": "Mr. Poe pays.", "spans": spans}
    write(tmp_path, "presidio-synth/synth_dataset_v2.json", json.dumps([row]))
    (note,) = corpora.presidio(tmp_path)
    assert [(note.text[s.start : s.end], s.category) for s in note.spans] == [("Poe", "name")]


def test_what_was_marked_by_hand_holds_no_text() -> None:
    entries = json.loads((SCRIPT.parent / "notes_hand_checked.json").read_text(encoding="utf-8"))
    assert len(entries) == 19 and sum(len(entry["spans"]) for entry in entries) == 506
    for entry in entries:
        assert set(entry) == {"note", "sha256", "characters", "spans"}
        for start, end, kind, category, why in entry["spans"]:
            assert 0 <= start < end <= entry["characters"]
            assert (
                kind in ("EID", "QID", "HMI")
                and category.isalpha()
                and why in ("", "negated", "uncertain", "family", "historical")
            )
