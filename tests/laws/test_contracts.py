"""No release is verified without a contract, and what a method's contract does not name is refuted: of every method."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
import yaml
from tests.forging import restate, write_parquet
from tests.laws.cases import cases
from tests.laws.test_completeness import TREE, VERIFIERS, folder

import leeward as lw
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import CHECKERS, contract_of

CASES = cases()


@pytest.fixture(scope="module", params=METHODS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the method, written without measures."""
    case = CASES[request.param]
    method = METHODS[request.param].parameters_class()(**case.parameters)
    made = method.protect(case.cohort, randomness=Randomness.of(7), population=case.population)
    return write(made, tmp_path_factory.mktemp("contracts") / "out", formats=("parquet", "csv"))


def verify(out: Path) -> lw.Verification:
    case = CASES[json.loads((out / "share/release.json").read_text(encoding="utf-8"))["method"]]
    return lw.verify(out, case.cohort, case.population)


def test_every_verifier_is_a_folder_with_a_check_and_a_contract() -> None:
    folders = {
        path.name for path in (TREE / "src/leeward/verify").iterdir() if (path / "__init__.py").is_file()
    }
    assert set(VERIFIERS) == folders == {name.replace("-", "_") for name in CHECKERS}
    assert {folder(name) for name in METHODS} <= folders
    assert all(contract_of(name) is not None for name in CHECKERS)


def test_a_module_beside_the_verifiers_is_no_method() -> None:
    beside = {path.stem.replace("_", "-") for path in (TREE / "src/leeward/verify").glob("*.py")}
    assert len(beside) > 10 and not beside & set(CHECKERS)


def test_a_release_is_refuted_where_its_verifier_has_no_contract(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verify(release).passed
    monkeypatch.setattr(sys.modules["leeward.verify"], "contract_of", lambda method: None)
    found = verify(release)
    assert [check.name for check in found.failures] == ["contract"]
    assert "no contract" in found["contract"].detail and len(found.checks) == len(
        {c.name for c in found.checks}
    )


Change = Callable[[Path], Any]


def in_manifest(change: Callable[[dict[str, Any]], Any]) -> Change:
    """A change of release.json, written again as releases write it."""

    def apply(out: Path) -> None:
        file = out / "share/release.json"
        manifest = json.loads(file.read_text(encoding="utf-8"))
        change(manifest)
        file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    return apply


def with_file(name: str) -> Change:
    """A further data file with identifiers, listed in the manifest and in the README."""

    def apply(out: Path) -> None:
        table = pl.DataFrame({"record": range(3), "patient": ["p00", "p01", "p02"]})
        if name.endswith(".parquet"):
            write_parquet(table, out / "share/data" / name)
        else:
            (out / "share/data" / name).write_text('"record","patient"\n0,"p00"\n1,"p01"\n2,"p02"\n')
        in_manifest(lambda m: m["files"].append({"path": f"data/{name}", "rows": 3, "sha256": ""}))(out)
        readme = out / "share/README.md"
        before, line, after = readme.read_text(encoding="utf-8").partition("\nParquet opens in Python")
        readme.write_text(f"{before[:-1]}\n| `data/{name}` | 3 |\n{line}{after}", encoding="utf-8")

    return apply


def with_column(path: str) -> Change:
    """One more column of identifiers in a data file."""

    def apply(out: Path) -> None:
        table = pl.read_parquet(out / "share" / path)
        write_parquet(
            table.with_columns(pid=pl.Series([f"p{n:02}" for n in range(table.height)])), out / "share" / path
        )

    return apply


def reordered(keys: dict[str, Any]) -> None:
    """The same keys, the last one first."""
    items = list(keys.items())
    keys.clear()
    keys.update(items[-1:] + items[:-1])


def ending_lines_otherwise(name: str) -> Change:
    """The lines of a file end as on Windows."""

    def apply(out: Path) -> None:
        file = out / "share" / name
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    return apply


def at(content: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        content = content[key]
    return content


def stating(key: str, value: float) -> Change:
    """A number that nobody computed, in the manifest, where the guarantee's numbers stand."""

    def add(manifest: dict[str, Any]) -> None:
        stated = manifest["guarantee"] | {key: value}
        order = ("name", "k", "m", "epsilon", "delta")
        manifest["guarantee"] = {name: stated[name] for name in order if name in stated} | stated

    return in_manifest(add)


def claiming(key: str, value: float) -> Change:
    """A number that nobody computed, in the manifest, and in the README wherever that has the numbers."""

    def apply(out: Path) -> None:
        manifest = json.loads((out / "share/release.json").read_text(encoding="utf-8"))
        stated = manifest["guarantee"]
        numbers = ", ".join(
            f"{name} = {stated[name]:g}" for name in ("k", "m") if stated.get(name) is not None
        )
        stating(key, value)(out)
        readme = out / "share/README.md"
        text = readme.read_text(encoding="utf-8")
        assert text.count(f"{numbers})") == 2
        readme.write_text(text.replace(f"{numbers})", f"{numbers}, {key} = {value:g})"), encoding="utf-8")

    return apply


def last_file_first(out: Path) -> None:
    """The last file is listed first, in the manifest and in the README."""
    in_manifest(lambda m: m["files"].insert(0, m["files"].pop()))(out)
    readme = out / "share/README.md"
    before, head, rest = readme.read_text(encoding="utf-8").partition("|---|---:|\n")
    rows, after = rest.split("\n\n", 1)
    *others, last = rows.split("\n")
    readme.write_text(before + head + "\n".join([last, *others]) + "\n\n" + after, encoding="utf-8")


def kinds(manifest: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    """Whatever no contract names: files, columns, parameters, claims, orders and signs."""
    for name in ("names.parquet", "names.csv", "codes_2.parquet"):
        yield f"file {name}", with_file(name)
    for entry in manifest["files"]:
        if entry["path"].endswith(".parquet"):
            yield f"column in {entry['path']}", with_column(entry["path"])
    yield "parameter", in_manifest(lambda m: m["parameters"].update(identifiers=["p00"]))
    yield "parameter that is null", in_manifest(lambda m: m["parameters"].update(note=None))
    yield "key of the manifest", in_manifest(lambda m: m.update(note="p00"))
    yield "key of a file", in_manifest(lambda m: m["files"][0].update(source="p00"))
    for key, value in (("m", 9.0), ("epsilon", 0.1), ("delta", 1e-9)):
        if key not in manifest["guarantee"]:
            yield f"{key} of the guarantee", claiming(key, value)
            yield (
                f"{key} of the manifest alone",
                stating(key, value),
            )
            yield (
                f"{key} of the guarantee, null",
                in_manifest(lambda m, k=key: m["guarantee"].update({k: None})),
            )
    yield "key of the guarantee", in_manifest(lambda m: m["guarantee"].update(note="p00"))
    yield "files in another order", last_file_first
    for place in ((), ("guarantee",), ("parameters",), ("files", 0), ("guarantee", "facts")):
        if len(at(manifest, place)) > 1:
            yield f"keys of {place} in another order", in_manifest(lambda m, p=place: reordered(at(m, p)))
    yield "README with other ends of lines", ending_lines_otherwise("README.md")
    yield "release.json with other ends of lines", ending_lines_otherwise("release.json")


def bytes_of(share: Path) -> dict[str, bytes]:
    return {
        path.relative_to(share).as_posix(): path.read_bytes() for path in share.rglob("*") if path.is_file()
    }


def test_what_no_contract_names_is_refuted(release: Path, tmp_path: Path) -> None:
    manifest = json.loads((release / "share/release.json").read_text(encoding="utf-8"))
    assert verify(release).passed
    passing = []
    for place, (name, change) in enumerate(kinds(manifest)):
        copy = tmp_path / str(place)
        shutil.copytree(release, copy)
        change(copy)
        if "ends of lines" not in name:
            restate(copy)
        assert bytes_of(copy / "share") != bytes_of(release / "share"), name
        if verify(copy).passed:
            passing.append(name)
        shutil.rmtree(copy)
    assert passing == []


@pytest.mark.parametrize(
    "file", sorted((TREE / "src/leeward/contracts").glob("*.yaml")), ids=lambda f: f.stem
)
def test_every_sentence_of_a_contract_is_there_once_and_used(file: Path) -> None:
    """Types cannot see a name that is misspelt, a sentence that nobody says, or one that a later one replaces."""
    text = file.read_text(encoding="utf-8")
    names = re.findall(r"^(\w+):", text, re.MULTILINE)
    assert len(names) == len(set(names)) and set(names) == set(yaml.safe_load(text))
    own = file.with_name(f"{file.stem.replace('-', '_')}.py")
    loaded = "README" if file.stem == "readme" else "TEXT"
    readers = file.parent.glob("*.py") if loaded == "README" else [own]
    used = {
        name
        for each in readers
        for name in re.findall(rf"\b{loaded}\.(?!md\b)(\w+)", each.read_text(encoding="utf-8"))
    }
    assert used == set(names)
