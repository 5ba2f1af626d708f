"""What a spec of disassociation leaves to the method is stated as the method decides it, and as nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.mutations.releases import with_people
from tests.mutations.restating import restate_words

from leeward.methods.disassociation import Disassociation
from leeward.runs.protect import protect
from leeward.verify import verify

ASKED: dict[str, dict[str, Any]] = {
    "a small k": {"k": 2},
    "k below 10": {"k": 4},
    "k of 10": {"k": 10},
    "paper": {"k": 3, "partitioning": "paper"},
    "recut": {"k": 3, "partitioning": "recut"},
    "a size asked for": {"k": 3, "max_cluster": 40},
    "classes": {"k": 3, "demographics": ("sex",), "keep": {"sex": "exact"}},
    "algorithm": {"k": 3, "attacker": "algorithm", "policy": "hierarchy:1"},
}
PEOPLE = with_people(200)


@pytest.mark.parametrize("name", ASKED)
def test_the_sizes_of_a_run_are_those_of_its_spec(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    protect(PEOPLE, Disassociation(m=2, **ASKED[name]), out, seed=3, tell=lambda text: None)
    assert verify(out)["parameters_of_spec"].passed
    file = out / "share/release.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["parameters"]["max_cluster"] += 1
    file.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    restate_words(out)
    assert [check.name for check in verify(out).failures] == ["parameters_of_spec"]
