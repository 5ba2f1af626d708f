"""Fixtures of the command line's tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli import fake

from leeward.cli.main import status_of

EVENTS = "pid,icd\n" + "".join(
    f"canary-{patient:04d},{code}\n"
    for patient in range(60)
    for code in ("401.9", "250.00", f"E8{patient % 50:02d}")
)
"""60 patients; every identifier starts with `canary`, which must be found in no release and no message."""


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.out)
        return content


Run = Callable[..., Outcome]


@pytest.fixture
def leeward(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: `leeward("profile", path)`."""

    def run(*args: object) -> Outcome:
        capfd.readouterr()
        status = status_of([str(arg) for arg in args])
        captured = capfd.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "events.csv"
    path.parent.mkdir()
    path.write_text(EVENTS)
    return path


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small method of `fake`, known to the registries."""
    fake.install(monkeypatch)


@pytest.fixture
def spec(events: Path, counting: None) -> Path:
    path = events.parent / "spec.yaml"
    path.write_text(
        "source: {path: events.csv, columns: {patient: pid, code: icd}}\nmethod: {name: counting, k: "
        "5}\nformats: [parquet, csv]\nseed: 7\n"
    )
    return path
