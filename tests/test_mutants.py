"""Rows of scripts/mutants/ that point at what is there: a change that can be made, and tests that can fail."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TREE = Path(__file__).resolve().parents[1]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", TREE / "scripts/mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # where its class of rows looks for its own module
    spec.loader.exec_module(module)
    return module


script = load_script()


@pytest.mark.parametrize("mutant", script.read_mutants(), ids=lambda mutant: f"{mutant.room}: {mutant.name}")
def test_a_row_changes_one_place_and_names_tests_that_are_there(mutant: Any) -> None:
    compile(script.change_text(mutant), mutant.file, "exec")
    assert mutant.old != mutant.new and mutant.tests
    for test in mutant.tests:
        place, _, name = test.partition("::")
        assert (TREE / place).exists(), place
        assert not name or f"def {name.partition('[')[0]}(" in (TREE / place).read_text(encoding="utf-8"), (
            name
        )


def test_what_stands_twice_or_nowhere_is_an_error() -> None:
    for old in ("import", "nothing of the kind"):
        row = script.Mutant("verifier", "made up", "verify/manifest.py", old, "", ["tests/test_mutants.py"])
        with pytest.raises(
            ValueError, match=r"made up: `old` stands \d+ times in verify/manifest.py, not once"
        ):
            script.change_text(row)
