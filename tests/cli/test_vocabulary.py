"""`leeward vocabulary add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.cli.main import status_of
from leeward.vocabulary import registry


def test_a_phecode_map_is_checked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    (tmp_path / "map.csv").write_text("ICD9,PheCode\n250.0,250.1\n")
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "map.csv")]) == 0
    assert registry.find("phecode").is_file()
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "wrong.csv")]) == 2
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "absent.csv")]) == 2
    assert "absent.csv: there is no such file" in capsys.readouterr().err
