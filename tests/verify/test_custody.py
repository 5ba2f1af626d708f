"""Custody's own evidence: what was changed since the run is found wherever it is used; what cannot be seen is said."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from tests.forging import restate_custody
from tests.laws.cases import cohort_of_events, events

import leeward as lw
from leeward.cli.main import status_of
from leeward.errors import VerificationFailed
from leeward.runs.dossier import check, dossier

EVIDENCE = "figures, report, spec"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release from a file, so that custody has all that a run writes."""
    folder = tmp_path_factory.mktemp("custody")
    events().write_csv(folder / "events.csv")
    (folder / "spec.yaml").write_text(
        f"source: {{path: {folder / 'events.csv'}, vocabulary: icd9}}\n"
        "method: {name: disassociation, k: 3, m: 2, policy: 'hierarchy:1'}\n",
        encoding="utf-8",
    )
    return lw.run(folder / "spec.yaml", folder / "out").path


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def names_in(custody: Path) -> list[str]:
    return sorted(path.relative_to(custody).as_posix() for path in custody.rglob("*") if path.is_file())


def test_the_run_writes_the_digest_of_every_file_of_custody(release: Path) -> None:
    listed = json.loads((release / "custody/digests.json").read_text(encoding="utf-8"))["files"]
    assert list(listed) == sorted(listed)
    assert {*listed, "digests.json"} == set(names_in(release / "custody"))
    assert {"measures.json", "report.html", "verification.json", "spec.yaml", "source_files.json"} < set(
        listed
    )
    assert any(name.startswith("data/") for name in listed)
    assert lw.verify(release)["custody_files"].passed


def test_a_changed_or_lost_file_of_custody_is_refuted(release: Path) -> None:
    custody = release / "custody"
    for name in set(names_in(custody)) - {"digests.json"}:
        file, before = custody / name, (custody / name).read_bytes()
        file.write_bytes(before + b" ")
        found = lw.verify(release)["custody_files"]
        assert not found.passed and name in found.detail
        file.unlink()
        assert not lw.verify(release)["custody_files"].passed
        file.write_bytes(before)
    assert lw.verify(release).passed


def test_figures_that_were_made_smaller_are_refuted(release: Path) -> None:
    measures = release / "custody/measures.json"
    content = json.loads(measures.read_text(encoding="utf-8"))
    content["method"] = {"lost": 0.001}
    measures.write_text(json.dumps(content), encoding="utf-8")
    assert [each.name for each in lw.verify(release).failures] == ["custody_files"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "5", "[]", "{}", '{"files": []}', '{"files": {}}', '{"files": {"spec.yaml": 5}}', "[" * 100_000,
     '{"files": {"../share/release.json": "DIGEST"}}', '{"files": {"spec\\u0000.yaml": "00"}}'],
)  # fmt: skip
def test_damaged_digests_are_refuted(text: str, release: Path) -> None:
    outside = hashlib.sha256((release / "share/release.json").read_bytes()).hexdigest()
    (release / "custody/digests.json").write_text(text.replace("DIGEST", outside), encoding="utf-8")
    assert [each.name for each in lw.verify(release).failures] == ["custody_files"]


def test_a_file_that_the_custodian_adds_is_no_fault(release: Path) -> None:
    (release / "custody/review-record.json").write_text("{}", encoding="utf-8")
    assert lw.verify(release).passed


def test_who_restates_the_digests_is_not_found_and_that_is_said(release: Path) -> None:
    (release / "custody/report.html").write_text("other figures", encoding="utf-8")
    restate_custody(release)
    found = lw.verify(release)
    assert found.passed and any("digests.json was restated" in each for each in found.unchecked)


def test_a_release_of_an_earlier_version_passes_and_says_what_was_not_seen(release: Path) -> None:
    (release / "custody/digests.json").unlink()
    found = lw.verify(release)
    assert found.passed and "custody_files" not in {each.name for each in found.checks}
    assert any(EVIDENCE in each and "digests.json" in each for each in found.unchecked)


def test_without_custody_it_is_said_too(release: Path, tmp_path: Path) -> None:
    shutil.move(release / "share", tmp_path / "share")
    found = lw.verify(tmp_path / "share")
    assert found.passed and any(
        "Without the custodian's folder" in e and EVIDENCE in e for e in found.unchecked
    )


def test_while_a_release_is_written_nothing_is_missed(release: Path) -> None:
    written = json.loads((release / "custody/verification.json").read_text(encoding="utf-8"))
    assert not any("digests.json" in each for each in written["unchecked"])


def test_damaged_custody_is_no_exception(release: Path) -> None:
    (release / "custody/data/clusters.parquet").write_bytes(b"PAR1")
    found = lw.verify(release, lw.read(events(), vocabulary="icd9"))
    assert {"custody_files", "content"} <= {each.name for each in found.failures}


def test_no_dossier_rests_on_changed_figures(release: Path, tmp_path: Path) -> None:
    (release / "custody/measures.json").write_text("{}", encoding="utf-8")
    with pytest.raises(VerificationFailed, match="custody_files"):
        dossier(release, tmp_path / "dossier", cohort=cohort_of_events())
    assert not (tmp_path / "dossier").exists()


def test_a_dossier_no_longer_matches_when_custody_was_changed(release: Path, tmp_path: Path) -> None:
    written = dossier(release, tmp_path / "dossier").folder
    assert check(written, release).matches
    (release / "custody/report.html").write_text("other figures", encoding="utf-8")
    found = check(written, release)
    assert not found.matches and "custody_files" in " ".join(found.faults)


@pytest.mark.parametrize("kept", [True, False])
def test_a_dossier_says_whether_custody_was_seen(release: Path, tmp_path: Path, *, kept: bool) -> None:
    if not kept:
        (release / "custody/digests.json").unlink()
    content = dossier(release, tmp_path / "dossier").content
    (entry,) = [e for e in content["parts"][9]["entries"] if "custodian's figures" in e["label"]]
    assert (entry["block"], entry.get("value")) == (("measured", True) if kept else ("open", None))


def test_a_comparison_says_whether_custody_was_seen(release: Path, tmp_path: Path) -> None:
    changed, earlier = (Path(shutil.copytree(release, tmp_path / name)) for name in ("changed", "earlier"))
    (changed / "custody/measures.json").write_text("{}", encoding="utf-8")
    (earlier / "custody/digests.json").unlink()
    found = lw.compare([release, changed, earlier], tmp_path / "compared").points
    assert found["status"].to_list() == ["verified", "refuted", "verified"]
    sound, refuted, unseen = found["message"].to_list()
    assert not sound and "custody_files" in refuted and "lacks the digests" in unseen


def test_the_command_names_the_file(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (release / "custody/report.html").write_text("other figures", encoding="utf-8")
    assert status_of(["verify", str(release)]) == 4
    assert "report.html" in capsys.readouterr().err
