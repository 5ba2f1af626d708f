"""Mutations of the form of a release, made from what it has: every file, column, key, claim and byte. All are refuted.

Digests, rows and the README's table are restated after each, as a careful forger would.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.forging import restate
from tests.verify.made import cases

from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import CHECKERS, contract_of, verify

CASES = {name: case for name, case in cases().items() if ", " not in name and "by " not in name}
RANDOM_BYTES = 40


@pytest.fixture(scope="module", params=CASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    name = str(request.param)
    case = CASES[name]
    more = {} if case.population is None else {"population": case.population}
    made = case.method.protect(case.cohort, randomness=Randomness.of(3), **more)
    return name, write(made, tmp_path_factory.mktemp("contract") / "out")


def of_manifest(manifest: dict[str, Any]) -> Iterator[tuple[str, Callable[[dict[str, Any]], Any]]]:
    """Changes of release.json: a key more or less at every place, every number, every sentence."""
    yield "a key more", lambda m: m.update(note="p001")
    yield "seed named", lambda m: m.update(seed=3)
    yield "a key more in the guarantee", lambda m: m["guarantee"].update(risk_note="none")
    yield "a key more in a file's entry", lambda m: m["files"][0].update(source="p001")
    yield "a parameter more", lambda m: m["parameters"].update(identifiers=["p001"])
    yield "hierarchies without demographics", lambda m: m["parameters"].update(hierarchies={"sex": "file"})
    yield "seed among the parameters", lambda m: m["parameters"].update(seed=3)
    yield "version of words", lambda m: m.update(leeward="p001")
    yield "k of the guarantee", lambda m: m["guarantee"].update(k=m["guarantee"]["k"] + 1)
    yield "k of the parameters", lambda m: m["parameters"].update(k=m["parameters"]["k"] + 1)
    yield "k is 1", lambda m: (m["guarantee"].update(k=1), m["parameters"].update(k=1))
    yield "k is a text", lambda m: m["parameters"].update(k="5")
    yield "facts gone", lambda m: m["guarantee"].pop("facts")
    for fact in manifest["guarantee"]["facts"]:
        yield f"fact {fact} changed", lambda m, f=fact: m["guarantee"]["facts"].update({f: "x"})
    yield "a fact more", lambda m: m["guarantee"]["facts"].update(candidates_of="everybody")
    yield "not_protected is empty", lambda m: m["guarantee"].update(not_protected=[])
    yield "a line of not_protected more", lambda m: m["guarantee"]["not_protected"].append("p001")
    yield (
        "the order of not_protected",
        lambda m: m["guarantee"]["not_protected"].append(m["guarantee"]["not_protected"].pop(0) + " "),
    )
    for place in range(len(manifest["guarantee"]["not_protected"])):
        yield f"line {place} of not_protected gone", lambda m, p=place: m["guarantee"]["not_protected"].pop(p)
    yield "anybody as the attacker", lambda m: m["guarantee"].update(attacker="Anybody, whatever they know.")
    yield "another name", lambda m: m["guarantee"].update(name="epsilon-differential privacy")
    yield "another unit", lambda m: m["guarantee"].update(unit="household")
    yield "an epsilon claimed", lambda m: m["guarantee"].update(epsilon=0.1)
    contract = contract_of(manifest["method"])
    assert contract is not None
    for key in manifest["parameters"]:
        if contract.parameters[key]["shown"] == "always" or key == "listed_codes":
            yield f"parameter {key} gone", lambda m, k=key: m["parameters"].pop(k)
        yield f"parameter {key} is an object", lambda m, k=key: m["parameters"].update({k: {"p001": 1}})
    for key in ("name", "attacker", "not_protected", "unit"):
        yield f"{key} gone from the guarantee", lambda m, k=key: m["guarantee"].pop(k)


def plain_write(table: pa.Table, file: Path, **options: Any) -> None:
    chosen = {
        "compression": "zstd",
        "store_schema": False,
        "version": "2.6",
        "row_group_size": 1 << 20,
        **options,
    }
    pq.write_table(table, file, **chosen)


def of_file(file: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Changes of a data file: riders in its metadata and gaps, and of every column its name, type, order, presence."""
    name = file.name
    if file.suffix == ".csv":
        yield f"{name}: a line more", lambda: file.write_text(file.read_text() + "p001\n")
        yield f"{name}: other quotes", lambda: file.write_text(file.read_text().replace('"', ""))
        return
    table = pq.read_table(file)
    rider = {"p001": "G1"}
    yield (
        f"{name}: key-value metadata",
        lambda: pq.write_table(table.replace_schema_metadata(rider), file, compression="zstd"),
    )
    yield f"{name}: Arrow schema", lambda: plain_write(table, file, store_schema=True)
    yield f"{name}: another compression", lambda: plain_write(table, file, compression="snappy")
    yield f"{name}: small row groups", lambda: plain_write(table, file, row_group_size=2)
    yield f"{name}: bytes before the footer", lambda: gap(file)
    yield (
        f"{name}: a column more",
        lambda: plain_write(
            table.append_column("pid", pa.array([f"p{n:03d}" for n in range(table.num_rows)])), file
        ),
    )
    for place, field in enumerate(table.schema):
        if file.name != "table.parquet":
            yield f"{name}: {field.name} gone", lambda p=place: plain_write(table.remove_column(p), file)
            renamed = [f"x{each}" if n == place else each for n, each in enumerate(table.column_names)]
            yield (
                f"{name}: {field.name} renamed",
                lambda r=renamed: plain_write(table.rename_columns(r), file),
            )
        if pa.types.is_int64(field.type) and file.name != "table.parquet":
            narrow = table.set_column(place, field.name, table.column(place).cast(pa.int32()))
            yield f"{name}: {field.name} of another type", lambda t=narrow: plain_write(t, file)


def gap(file: Path) -> None:
    """A thousand bytes between the pages and the footer, which stays where readers look for it."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:-footer] + b"p001" * 250 + content[-footer:])


def of_share(share: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Changes of the folder: files and folders more, the README missing or longer."""
    readme = share / "README.md"
    yield "README missing", readme.unlink
    yield "README with identifiers", lambda: readme.write_text(readme.read_text() + "\np001 p002\n")
    yield "README with another k", lambda: readme.write_text(readme.read_text().replace("k = ", "k = 1"))
    yield "a folder with a name", lambda: (share / "data" / "p001").mkdir()
    yield "a folder beside data", lambda: (share / "p001").mkdir()
    yield "a file more", lambda: (share / "data" / "linkage.csv").write_text("record,patient\n0,p001\n")
    yield "a listed table more", lambda: listed_table(share)
    yield "space after release.json", lambda: spaced(share / "release.json")


def spaced(file: Path) -> None:
    file.write_text(file.read_text() + " \t \n")


def listed_table(share: Path) -> None:
    plain_write(pa.table({"record": [0, 1], "patient": ["p000", "p001"]}), share / "data" / "linkage.parquet")
    manifest = json.loads((share / "release.json").read_text())
    manifest["files"].append({"path": "data/linkage.parquet", "rows": 2, "sha256": ""})
    (share / "release.json").write_text(json.dumps(manifest))


def edit(out: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    file = out / "share" / "release.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def kinds(out: Path) -> list[tuple[str, Callable[[Path], Any], bool]]:
    """(name, change of a copy, whether digests are restated) of all mutations of this release."""
    manifest = json.loads((out / "share" / "release.json").read_text())
    found: list[tuple[str, Callable[[Path], Any], bool]] = []
    for name, change in of_manifest(manifest):
        found.append((name, lambda copy, c=change: edit(copy, c), False))
    for entry in manifest["files"]:
        for place, (name, _) in enumerate(of_file(out / "share" / entry["path"])):
            path = entry["path"]
            found.append((name, lambda c, p=path, n=place: list(of_file(c / "share" / p))[n][1](), True))
    for place, (name, _) in enumerate(of_share(out / "share")):
        found.append(
            (name, lambda c, n=place: list(of_share(c / "share"))[n][1](), not name.startswith("space"))
        )
    return found


def refuted(out: Path) -> bool:
    """Whether the share alone is refuted; a population or custody is not needed for that."""
    case = next(case for case in CASES.values() if case.method.name == json.loads(
        (out / "share" / "release.json").read_text())["method"])  # fmt: skip
    return not verify(out, case.source()).passed


def test_every_mutation_of_the_form_is_refuted(release: tuple[str, Path], tmp_path: Path) -> None:
    name, out = release
    survivors = []
    mutations = kinds(out)
    for place, (mutation, change, restated) in enumerate(mutations):
        copy = tmp_path / str(place)
        shutil.copytree(out, copy)
        change(copy)
        if restated:
            restate(copy)
        if not refuted(copy):
            survivors.append(mutation)
        shutil.rmtree(copy)
    sys.stdout.write(f"{name}: {len(mutations) - len(survivors)} of {len(mutations)} mutations refuted\n")
    assert len(mutations) >= 40
    assert survivors == []


def test_every_changed_byte_is_refuted(release: tuple[str, Path], tmp_path: Path) -> None:
    """One byte of some shared file is another; digests are restated where the file is data."""
    _, out = release
    draws = np.random.Generator(np.random.Philox(key=2))
    files = sorted(path.relative_to(out) for path in (out / "share" / "data").rglob("*.*"))
    survivors = []
    for place in range(RANDOM_BYTES):
        copy = tmp_path / str(place)
        shutil.copytree(out, copy)
        file = copy / files[int(draws.integers(len(files)))]
        content = bytearray(file.read_bytes())
        at = int(draws.integers(len(content)))
        content[at] ^= int(draws.integers(1, 256))
        file.write_bytes(bytes(content))
        if not refuted(copy):
            survivors.append((file.name, at))
        shutil.rmtree(copy)
    assert survivors == []


@pytest.mark.parametrize(
    ("key", "other", "checks"),
    [("sha256", lambda digest: digest[::-1], {"file_hashes"}), ("rows", lambda n: n + 1, {"file_rows", "words"})],
    ids=["hash", "rows"],
)  # fmt: skip
def test_another_hash_or_number_of_rows_than_stated(
    release: tuple[str, Path], key: str, other: Callable[[Any], Any], checks: set[str], tmp_path: Path
) -> None:
    name, out = release
    files = json.loads((out / "share" / "release.json").read_text())["files"]
    for place in range(len(files)):
        copy = shutil.copytree(out, tmp_path / str(place))
        edit(copy, lambda m, p=place: m["files"][p].update({key: other(m["files"][p][key])}))
        assert {check.name for check in verify(copy, CASES[name].source()).failures} == checks


def test_every_method_has_a_contract() -> None:
    assert all(contract_of(method) is not None for method in CHECKERS)


def test_what_could_not_be_checked_is_said(release: tuple[str, Path]) -> None:
    name, out = release
    if name == "censoring":
        with pytest.raises(BadInput, match="give the population"):
            verify(out / "share")
        return
    alone, whole = verify(out / "share"), verify(out, CASES[name].source())
    assert any("Without the source" in sentence for sentence in alone.unchecked)
    assert not any("Without the source" in sentence for sentence in whole.unchecked)
    assert alone.to_json()["unchecked"] == list(alone.unchecked)
