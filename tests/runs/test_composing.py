"""Two folders of the custodian are compared by the sources that they name, as long as these are the same."""

from __future__ import annotations

from pathlib import Path

import leeward as lw
from leeward.runs.composing import measure_folders
from leeward.runs.running import run


def test_folders_are_measured_while_their_sources_are_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    lw.synth.write_codes(file, patients=60, codes=20, seed=1)
    for k in (2, 4):
        spec = tmp_path / f"k{k}.yaml"
        spec.write_text(
            f"source: {{path: events.csv}}\nmethod: {{name: disassociation, k: {k}, m: 2}}\nseed: 1\n"
        )
        run(spec, tmp_path / f"k{k}")
    found = measure_folders(tmp_path / "k2", tmp_path / "k4")
    assert found is not None
    assert (found.k, found.looked_at) == (2, 60)
    lw.synth.write_codes(file, patients=60, codes=20, seed=2)
    assert measure_folders(tmp_path / "k2", tmp_path / "k4") is None
