"""The repository as a whole: nothing of one machine in it, every dependency accounted for."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parent.parent
LARGEST = 1_000_000  # bytes

# A folder of one machine, as an absolute path (built from pieces, or this file would be the first caught),
# preceded by nothing that makes it the middle of an address or of a relative path.
MACHINE_PATH = re.compile(
    r"(?<![\w.~}\-])/(?:" + "|".join(["work", "home", "root", "tmp", "Users"]) + r")/[A-Za-z]"
)
ADDRESS = re.compile(r"https?://|file:|--(?:extra-)?index-url|--find-links|^-[if]\s", re.MULTILINE)


def tracked() -> list[Path]:
    """Files that git knows of; in an archive without git, all but environments and caches."""
    if (TREE / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, capture_output=True, check=True).stdout
        return [path for name in listed.decode().split("\0") if name and (path := TREE / name).is_file()]
    away = {".venv", ".cache", "build", "dist", "__pycache__"}
    return [
        path for path in TREE.rglob("*") if path.is_file() and not away & set(path.relative_to(TREE).parts)
    ]


def machine_paths(text: str) -> list[str]:
    return [match.group() for match in MACHINE_PATH.finditer(text)]


def locks() -> list[Path]:
    found = sorted((TREE / "requirements").glob("*.txt"))
    assert [path.name for path in found] == ["all.txt", "build.txt", "dev.txt", "run.txt"]
    return found


def name_of(requirement: str) -> str:
    return re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_no_path_of_a_machine_in_a_tracked_file() -> None:
    files = tracked()
    assert len(files) > 20
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a Parquet file
        found += [f"{path.relative_to(TREE)}: {what}..." for what in machine_paths(text)]
    assert found == []


@pytest.mark.parametrize("folder", ["work", "home", "root", "tmp", "Users"])
def test_a_path_of_a_machine_would_be_found(folder: str) -> None:
    assert machine_paths(f'DATA = "/{folder}/somebody/events.csv"') == [f"/{folder}/s"]
    assert machine_paths(f"https://example.org/{folder}/page and docs/{folder}/page") == []


def test_lock_files_name_no_index() -> None:
    for path in locks():
        assert ADDRESS.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_lock_files_pin_every_line_by_version_and_hash() -> None:
    for path in locks():
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert lines, path.name
        for line in lines:
            assert re.match(r"[A-Za-z0-9._\-]+(\[[^\]]+\])?==[^\s]+ ", line), f"{path.name}: {line[:60]}"
            assert "--hash=sha256:" in line, f"{path.name}: {line[:60]}"


def test_lock_files_agree_on_versions() -> None:
    pins: dict[str, set[str]] = {}
    for path in locks():
        for name, version in re.findall(
            r"^([A-Za-z0-9._\-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            pins.setdefault(name, set()).add(version)
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


def direct_dependencies() -> dict[str, list[str]]:
    """Names by the lock file that must hold them: run.txt, all.txt, dev.txt, build.txt."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    core = project["project"]["dependencies"]
    extras = [each for group in project["project"]["optional-dependencies"].values() for each in group]
    tools = project["dependency-groups"]["dev"]
    named = {
        "run.txt": core,
        "all.txt": core + extras,
        "dev.txt": core + extras + tools,
        "build.txt": project["build-system"]["requires"],
    }
    return {lock: sorted({name_of(each) for each in those} - {"leeward"}) for lock, those in named.items()}


def test_every_direct_dependency_is_locked() -> None:
    for lock, names in direct_dependencies().items():
        pinned = {
            name_of(name)
            for name in re.findall(
                r"^([A-Za-z0-9._\-]+)(?:\[[^\]]+\])?==",
                (TREE / "requirements" / lock).read_text(encoding="utf-8"),
                re.MULTILINE,
            )
        }
        assert sorted(set(names) - pinned) == [], f"{lock} is older than pyproject.toml: make lock"


def test_every_direct_dependency_has_its_reason_and_licence() -> None:
    table = (TREE / "docs" / "decisions" / "dependencies.md").read_text(encoding="utf-8")
    rows = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) >= 3:
            rows[name_of(cells[0])] = cells
    needed = sorted({name for names in direct_dependencies().values() for name in names})
    assert [name for name in needed if name not in rows or not all(rows[name])] == []
    assert [name for name in needed if re.search(r"(?<!\w)A?L?GPL", rows[name][-1])] == []


def test_tracked_files_are_small() -> None:
    large = [
        f"{path.relative_to(TREE)}: {path.stat().st_size:,} bytes"
        for path in tracked()
        if path.stat().st_size > LARGEST
    ]
    assert large == []
