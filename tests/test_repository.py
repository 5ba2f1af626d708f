"""The repository as a whole: nothing of one machine in it, every dependency accounted for."""

from __future__ import annotations

import csv
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
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
        ran = subprocess.run(
            ["git", "ls-files", "-z"], cwd=TREE, capture_output=True, check=True, timeout=120
        )
        return [path for name in ran.stdout.decode().split("\0") if name and (path := TREE / name).is_file()]
    away = {".venv", ".cache", "build", "dist", "__pycache__"}
    return [
        path for path in TREE.rglob("*") if path.is_file() and not away & set(path.relative_to(TREE).parts)
    ]


def machine_paths(text: str) -> list[str]:
    return [match.group() for match in MACHINE_PATH.finditer(text)]


def locks() -> list[Path]:
    found = sorted((TREE / "requirements").glob("*.txt"))
    assert [path.name for path in found] == ["all.txt", "build.txt", "dev.txt", "portal.txt", "run.txt"]
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
    """Names by the lock file that must hold them: run.txt, all.txt, portal.txt, dev.txt, build.txt."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    core = project["project"]["dependencies"]
    extras = [each for group in project["project"]["optional-dependencies"].values() for each in group]
    tools = project["dependency-groups"]["dev"]
    named = {
        "run.txt": core,
        "all.txt": core + extras,
        "portal.txt": core + project["project"]["optional-dependencies"]["portal"],
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


# Design notes that a reader of the repository does not have (built from pieces, or this file would cite them).
ELSEWHERE = re.compile(
    r"\b(?:"
    + "|".join(
        first + rest
        for first, rest in [
            ("ALGO", "RITHMS"),
            ("ARCHI", "TECTURE"),
            ("HOU", "SE"),
            ("ROBUST", "NESS"),
            ("NEW", "COMER"),
            ("UN", "SEEN"),
            ("ATT", "ACKS"),
            ("FIDE", "LITY"),
            ("STRUCT", "URAL"),
            ("PARTI", "TIONING"),
            ("FEASI", "BILITY"),
            ("DP_", "NOTES"),
            ("WHOLE_", "PATIENT"),
            ("FIRST_", "RUN"),
        ]
    )
    + r")(?:\.md\b|[\s,]*(?:§|sections?\b|\"|\d))"
)
TO_COME = ("methods/queries.md", "methods/notes.md")
"""Pages that are being written."""
CITING = ("src", "tests", "benchmarks", "docs", "scripts", "README.md", "CONTRIBUTING.md", "GLOSSARY.md")
PAGE = re.compile(r"(?:docs/)?(methods|studies|decisions)/([\w-]+)\.md(?:#([\w-]+))?")


def anchors(markdown: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: Counter[str] = Counter()
    out = set()
    fenced = False
    for line in markdown.splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"#{1,6} +(.*?) *#*$", line)
        if heading:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            out.add(f"{slug}-{found[slug]}" if found[slug] else slug)
            found[slug] += 1
    return out


def texts(*folders: str) -> Iterator[tuple[Path, str]]:
    for path in tracked():
        inside = path.relative_to(TREE)
        if (
            inside.suffix in {".py", ".md", ".csv", ".toml", ".yaml", ".yml", ".sh", ""}
            and inside.parts[0] in folders
        ):
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def broken_citations(path: Path, text: str) -> list[str]:
    """The pages and sections of docs/ that a text names and that do not exist."""
    broken = []
    for match in PAGE.finditer(text):
        folder, page, anchor = match.groups()
        target = TREE / "docs" / folder / f"{page}.md"
        line = text.count("\n", 0, match.start()) + 1
        if not target.exists():
            broken.append(f"{path}, line {line}: no page {folder}/{page}.md")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            broken.append(f"{path}, line {line}: no section #{anchor} in {folder}/{page}.md")
    return broken


def test_every_cited_page_and_section_exists() -> None:
    broken = [
        each
        for path, text in texts(
            "src", "tests", "benchmarks", "docs", "scripts", "README.md", "CONTRIBUTING.md", "GLOSSARY.md"
        )
        if path != Path(__file__)
        for each in broken_citations(path.relative_to(TREE), text)
    ]
    assert [each for each in broken if not each.endswith(TO_COME)] == []


COMMANDS = TREE / "docs" / "reference" / "commands"
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page to files and sections that do not exist."""
    broken = []
    for match in LINK.finditer(text):
        name, anchor = match.groups()
        target = (page.parent / name).resolve() if name else page
        if target.parent == COMMANDS:
            continue  # docs/conf.py writes these pages, and Sphinx follows the links to them
        if not target.exists():
            broken.append(f"{page.name}: no file {name}")
        elif anchor and target.suffix == ".md":
            there = text if target == page else target.read_text(encoding="utf-8")
            if anchor not in anchors(there):
                broken.append(f"{page.name}: no section #{anchor} in {target.name}")
    return broken


def test_every_link_of_the_documents_leads_somewhere() -> None:
    pages = [path for path, _ in texts("docs", "README.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md")]
    markdown = [path for path in pages if path.suffix == ".md"]
    assert [each for path in markdown for each in broken_links(path, path.read_text(encoding="utf-8"))] == []


def test_a_link_to_nothing_would_be_found() -> None:
    page = TREE / "docs" / "studies" / "README.md"
    good = "# Here\n[a](../benchmarks/index.md), [b](#here), [c](https://example.org/x), [d](robustness.md#ledger)"
    assert broken_links(page, good) == []
    assert broken_links(page, "[a](nothing.py)") == ["README.md: no file nothing.py"]
    assert broken_links(page, "[a](robustness.md#nothing)") == [
        "README.md: no section #nothing in robustness.md"
    ]


DEFINED = re.compile(r"^\s*(?:(?:async )?(?:def|class) )?(\w+)(?:\(|:|\[| =)", re.MULTILINE)
"""Functions, classes, fields and constants of a module; a word in its texts is none."""


def place_faults(place: str) -> list[str]:
    """The places `file`, `file#section` and `file::name` of an item of a paper that are not there."""
    wrong = []
    for each in place.split("; "):
        file, mark, name = re.fullmatch(r"([^:#]+)(?:(#|::)(.+))?", each).groups()  # type: ignore[union-attr]  # any text fits
        text = (TREE / file).read_text(encoding="utf-8") if (TREE / file).is_file() else None
        known = anchors(text or "") if mark == "#" else DEFINED.findall(text or "")
        if text is None or (name and name not in known):
            wrong.append(each)
    return wrong


def test_the_papers_are_placed_whole() -> None:
    """Each of the 243 items of the five papers has its row, places, and a reason where it is not done."""
    folder = TREE / "docs" / "studies"
    with (folder / "papers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == list(range(1, 244))
    assert [each for row in rows for each in place_faults(row["place"])] == []
    assert all(row["mark"] == "D" or row["remark"] for row in rows)
    marks = ("D", "P", "M", "X", "n/a")
    page = (folder / "README.md").read_text(encoding="utf-8")
    for paper in {row["paper"] for row in rows}:
        counted = Counter(row["mark"] for row in rows if row["paper"] == paper)
        shown = " | ".join(str(each) for each in (counted.total(), *(counted[mark] for mark in marks)))
        assert [line.partition(": ")[0] for line in page.splitlines() if line.endswith(f"| {shown} |")] == [
            f"| {paper}"
        ]
    counted = Counter(row["mark"] for row in rows)
    assert f"| all | 243 | {' | '.join(str(counted[mark]) for mark in marks)} |" in page
    assert set(counted) <= {*marks}


def test_a_place_that_is_not_there_is_found() -> None:
    good = "Makefile; docs/benchmarks/scale.md#fit-and-by-how-much-it-missed; tests/test_repository.py::place_faults"
    assert place_faults(good) == []
    assert (
        len(
            place_faults(
                "Makefil; docs/benchmarks/scale.md#fi; tests/test_repository.py::" + "place_" + "fault"
            )
        )
        == 3
    )


def test_a_citation_of_nothing_would_be_found() -> None:
    here = Path("x.py")
    assert (
        broken_citations(here, "docs/methods/disassociation.md#guarantee, docs/decisions/0001-rooms.md") == []
    )
    assert broken_citations(here, "\n(docs/methods/nothing.md)") == [
        "x.py, line 2: no page methods/nothing.md"
    ]
    assert broken_citations(here, "docs/methods/disassociation.md#no-such-heading") != []


def test_headings_become_anchors() -> None:
    page = "# A title: two\n```\n# no heading\n```\n## Part\n## Part\n### `x` of [y](z.md)\n"
    assert anchors(page) == {"a-title-two", "part", "part-1", "x-of-y"}


def test_nothing_cites_a_page_that_is_not_here() -> None:
    found = [
        f"{path.relative_to(TREE)}: {match.group()}"
        for path, text in texts(
            "src", "tests", "benchmarks", "docs", "scripts", "README.md", "CONTRIBUTING.md", "GLOSSARY.md"
        )
        for match in ELSEWHERE.finditer(text)
    ]
    assert found == []


ALIAS = re.compile(r"^(\w+)(?:: TypeAlias)? = NDArray\[([\w.]+)\]$", re.MULTILINE)


def aliases(sources: dict[str, str]) -> dict[str, set[str]]:
    """What each name of a type of array means in these sources."""
    found: dict[str, set[str]] = {}
    for text in sources.values():
        for name, meaning in ALIAS.findall(text):
            found.setdefault(name, set()).add(meaning)
    return found


def test_a_name_of_a_type_of_array_has_one_meaning() -> None:
    sources = {str(path): path.read_text(encoding="utf-8") for path in (TREE / "src").rglob("*.py")}
    found = aliases(sources)
    assert found["Int32s"] == {"np.int32"}
    assert {name: meanings for name, meanings in found.items() if len(meanings) > 1} == {}


def test_a_name_with_two_meanings_would_be_found() -> None:
    assert aliases({"a": "Ints = NDArray[np.int32]\n", "b": "Ints: TypeAlias = NDArray[np.int64]\n"}) == {
        "Ints": {"np.int32", "np.int64"}
    }


def test_the_source_distribution_holds_what_builds_the_wheel() -> None:
    """A hook that is not in the source distribution ends the build of a wheel from it."""
    build = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    hook = Path(build["targets"]["wheel"]["hooks"]["custom"]["path"])
    assert (TREE / hook).is_file()
    assert f"/{hook.parts[0]}" in build["targets"]["sdist"]["include"]


COMMIT = re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,12}\b")


def unknown_commits(text: str) -> list[str]:
    """What looks like a commit in a text and is none of this repository's history."""
    named = sorted(set(COMMIT.findall(text)))
    asked = subprocess.run(
        ["git", "cat-file", "--batch-check=%(objecttype)"],
        cwd=TREE, input="\n".join(named), capture_output=True, text=True, check=True, timeout=60,
    ).stdout.splitlines()  # fmt: skip
    return [name for name, kind in zip(named, asked, strict=True) if kind != "commit"]


def test_every_commit_that_a_page_names_exists() -> None:
    pages = [path for path in tracked() if path.suffix == ".md" and "docs" in path.parts]
    assert {page.name: lost for page in pages if (lost := unknown_commits(page.read_text("utf-8")))} == {}


def test_a_commit_that_is_not_here_would_be_found() -> None:
    assert unknown_commits("Commit 0123abc, of 1234567 patients, 21e1ab0.") == ["0123abc"]
