"""No circle of imports, lazy and type-only ones included, and no room that imports one above it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TREE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def graph() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_graph", TREE / "scripts/import_graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_circle(graph: ModuleType) -> None:
    imports = graph.imports()
    assert len(imports) > 100 and sum(map(len, imports.values())) > 500
    assert graph.circles(imports) == []


def test_no_arrow_back_up(graph: ModuleType) -> None:
    assert graph.arrows_up(graph.imports()) == []


def test_a_circle_is_found_however_it_is_imported(graph: ModuleType, tmp_path: Path) -> None:
    house = tmp_path / "leeward"
    files = {
        "__init__": "",
        "a/__init__": "",
        "a/one": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from leeward.a.two import x\n",
        "a/two": "def f():\n    from leeward.a import three\n",
        "a/three": "import leeward.a.one\n",
        "a/four": "from leeward.a import one\n",
        "b/__init__": "from leeward.cli import main\n",
        "cli/__init__": "",
    }
    for name, text in files.items():
        path = house / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    imports = graph.imports(house)
    assert graph.circles(imports) == [("leeward.a.one", "leeward.a.three", "leeward.a.two")]
    assert graph.arrows_up(imports) == ["b -> cli"]
    assert graph.lines_of_rooms(house)["a"] == 7


def test_rooms_that_import_each_other_are_found(graph: ModuleType) -> None:
    between = {"leeward.a.x": {"leeward.b.y"}, "leeward.b.z": {"leeward.a.w"}}
    assert graph.circles(between) == []
    assert graph.arrows_up(between) == ["a <-> b"]
