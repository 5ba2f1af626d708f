"""Values of another type than the contract's: a refuted check of every method, never an exception."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.laws.cases import Case, cases, classed_cases, method_of_case
from tests.verify.test_notes import Made

import leeward as lw
from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import contract_of, verify
from leeward.verify.contract_checks import fits, visible

CASES = cases() | {name: case for name, case in classed_cases().items() if name.startswith("disassociation")}
PLAN = (
    {"cox": {"time": "days", "event": "died", "covariates": ["age", "sex"]}},
    {"linear": {"response": "age", "covariates": ["stage"]}},
)
NEW: tuple[Any, ...] = ("5", None, [5], 5.5, True, 10**30, 10**400, {"p00": 1}, float("nan"), "a\nb", -1)
"""What stands in the place of a value."""
EACH = 3
"""A place is given every third of them, its neighbours the others: a verification is asked of each."""


def released(case: Case, name: str, out: Path, **further: Any) -> Path:
    method = METHODS[method_of_case(name)].parameters_class()(**{**case.parameters, **further})
    return write(method.protect(case.cohort, randomness=Randomness.of(7), population=case.population), out)


def cohort_of_master(out: Path) -> Path:
    """A cohort; its master lies beside it."""
    case = CASES["visits"]
    lw.protect(case.cohort, lw.Visits(k=3), out.parent / "master", seed=7)
    some = case.cohort.require_events()["patient"].unique().sort()[::2]
    return lw.extract(out.parent / "master", some, out, membership_is_secret="a test", seed=7).path


MAKERS = {
    **{name: lambda out, n=name: released(CASES[n], n, out) for name in CASES},
    "planned": lambda out: released(CASES["k-anonymity"], "k-anonymity", out, plan=PLAN),
    "nested": lambda out: released(CASES["disassociation"], "disassociation", out, nested=True),
    "cohort": cohort_of_master,
    "catalogue": lambda out: Made().write(out),
}


@pytest.fixture(scope="module", params=MAKERS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(MAKERS[request.param](tmp_path_factory.mktemp("types") / "out"))


def manifest_of(out: Path) -> Any:
    return json.loads((out / "share/release.json").read_text(encoding="utf-8"))


def put_manifest(out: Path, manifest: Any) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (out / "share/release.json").write_text(text, encoding="utf-8")


Place = tuple[str | int, ...]


def values(content: Any, above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value, lists and objects too, with the way to it."""
    if above:
        yield above, content
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from values(value, (*above, key))


def changed(manifest: Any, place: Place, value: Any) -> Any:
    """A copy with another value at a place."""
    found = copy.deepcopy(manifest)
    inside = found
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return found


def of_another_type(manifest: Any) -> Iterator[tuple[Place, Any]]:
    """What no release of the method can have at these places; without an object `guarantee`, a list `files` or a known
    method it is no release, which is an error of its own."""
    contract = contract_of(manifest["method"])
    assert contract is not None
    for number, (place, old) in enumerate(values(manifest)):
        for value in NEW[number % EACH :: EACH]:
            allowed = False
            if len(place) == 2 and place[0] == "parameters":
                stated = {**manifest["parameters"], str(place[1]): value}
                allowed = fits(contract.parameters[str(place[1])], value)
                allowed = allowed and visible(contract.parameters, contract.completed(stated)) == stated
            no_release = place in (("guarantee",), ("files",)) or (place[0] == "files" and len(place) == 2)
            same = type(value) is type(old) and isinstance(value, str | float | bool) and value == value
            if not (allowed or no_release or same):
                yield place, value


def test_a_value_of_another_type_is_refuted(release: Path) -> None:
    manifest = manifest_of(release)
    asked = list(of_another_type(manifest))
    passing = []
    try:
        for place, value in asked:
            put_manifest(release, changed(manifest, place, value))
            if verify(release).passed:
                passing.append((place, value))
    finally:
        put_manifest(release, manifest)
    assert len(asked) > 200 / EACH and passing == []


def test_what_is_no_release_is_bad_input(release: Path) -> None:
    manifest = manifest_of(release)
    wrong = [(("guarantee",), "5"), (("files",), None), (("files", 0), 5), (("method",), "5")]
    for place, value in wrong:
        put_manifest(release, changed(manifest, place, value))
        with pytest.raises(BadInput, match=r"release\.json"):
            verify(release)
    put_manifest(release, manifest)


@pytest.mark.parametrize("key", ["k", "level", "population"])
def test_a_master_of_another_type_is_refuted(key: str, tmp_path: Path) -> None:
    out = cohort_of_master(tmp_path / "out")
    master = tmp_path / "master"
    note = out / "custody/master.json"
    sound = manifest_of(master)
    where = [place for place, _ in values(sound) if place[-1] == key or place == ("records",)]
    for place in (*where, ("parameters", "payload"), ("parameters",)):
        for value in NEW:
            put_manifest(master, changed(sound, place, value))
            digest = hashlib.sha256((master / "share/release.json").read_bytes()).hexdigest()
            note.write_text(json.dumps({"path": str(master), "sha256": digest}), encoding="utf-8")
            assert "master" in {check.name for check in verify(out).failures}


def test_a_damaged_note_of_the_master_is_bad_input(tmp_path: Path) -> None:
    out = cohort_of_master(tmp_path / "out")
    for text in ("5", "[]", '{"path": "x"}', "{"):
        (out / "custody/master.json").write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=r"master\.json is damaged"):
            verify(out)


@pytest.mark.parametrize(
    ("value", "status"), [('"5"', 4), ("null", 4), ("1" * 5000, 2)], ids=["text", "null", "digits"]
)
def test_the_command_says_so(
    value: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = released(CASES["k-anonymity"], "k-anonymity", tmp_path / "out")
    text = (out / "share/release.json").read_text(encoding="utf-8")
    before, _, after = text.rpartition('"k": 3')  # the guarantee's
    (out / "share/release.json").write_text(f'{before}"k": {value}{after}', encoding="utf-8")
    assert status_of(["verify", str(out)]) == status
    said = capsys.readouterr().err
    assert "release.json" in said and "fault" not in said
