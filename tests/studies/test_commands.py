"""Every figure of the pages comes out of a command that `make studies` runs."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECTION: re.Pattern[str] = runpy.run_path(str(ROOT / "benchmarks" / "common.py"))["SECTION"]
COMMANDS: list[str] = runpy.run_path(str(ROOT / "benchmarks" / "run_all.py"))["commands"]()
PAGES = [
    *sorted(path for path in (ROOT / "docs" / "benchmarks").glob("*.md") if path.name != "index.md"),
    *sorted(path for path in (ROOT / "docs" / "studies").glob("*.md") if path.name != "README.md"),
]


def commands_of(page: str) -> list[str]:
    """The commands between backticks, on one line each, without an option that takes a part of them."""
    found = re.findall(r"`((?:python\s+(?:benchmarks/|-m )|leeward synth visits )[^`]+)`", page)
    return [re.sub(r" --only \S+", "", " ".join(command.split())) for command in found]


def test_every_command_of_a_page_is_run() -> None:
    named = {page.name: commands_of(page.read_text(encoding="utf-8")) for page in PAGES}
    assert [name for name, commands in named.items() if not commands] == []
    runs = {re.sub(r" --only \S+", "", command) for command in COMMANDS}
    assert {name: set(commands) - runs for name, commands in named.items() if set(commands) - runs} == {}


def test_a_command_that_is_not_run_would_be_found() -> None:
    page = "Commit a. Command: `python\nbenchmarks/cox.py\n--data DIR --only x --k 5`, and `python benchmarks/a.py`."
    assert commands_of(page) == ["python benchmarks/cox.py --data DIR --k 5", "python benchmarks/a.py"]
    assert not {*commands_of(page)} & {*COMMANDS}


def test_every_page_of_the_benchmarks_names_its_command() -> None:
    pages = [page for page in PAGES if page.parent.name == "benchmarks"]
    assert len(pages) > 20
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parts = [SECTION.sub("", text), *(found[0] for found in SECTION.finditer(text))]
        assert [part.count("Command: `") for part in parts] == [1] * len(parts), page.name


def test_every_command_is_one_that_its_script_takes() -> None:
    for command in COMMANDS:
        program, *words = command.removeprefix("python ").split()
        if program.endswith(".py"):
            source = (ROOT / program).read_text(encoding="utf-8")
            texts = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
            assert [word for word in words if word.startswith("--") and word not in texts] == [], command


def test_every_study_is_run() -> None:
    scripts = {
        path.name
        for path in (ROOT / "benchmarks").glob("study_*.py")
        if "ArgumentParser(" in path.read_text()
    }
    assert scripts == {
        name for command in COMMANDS for name in re.findall(r"benchmarks/(study_\w+\.py)", command)
    }


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_what_a_script_takes_of_leeward_is_there(script: Path) -> None:
    """Imports inside functions too: most scripts run for hours, and only when their figures are wanted again."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "leeward":
            module = importlib.import_module(str(node.module))
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")
