"""What is generated from the declarations is current, and the schema takes the specs that the documents show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from scripts.reference import parameters_pages, schema_of_manifests

from leeward.cli.main import status_of
from leeward.methods import METHODS
from leeward.release.manifest import to_json_text
from leeward.runs.reference import spec_schema

TREE = Path(__file__).resolve().parents[1]
RUN = "run python scripts/reference.py"


def test_the_pages_of_parameters_are_current() -> None:
    pages = (TREE / "docs/reference/parameters").glob("*")
    assert {path.stem: path.read_text(encoding="utf-8") for path in pages} == parameters_pages(), RUN


def test_the_schema_is_current() -> None:
    assert (TREE / "docs/reference/spec.schema.json").read_text(encoding="utf-8") == to_json_text(
        spec_schema()
    ), RUN


def test_what_the_verifier_knows_of_parameters_is_current() -> None:
    found = (TREE / "src/leeward/contracts/parameters.json").read_text(encoding="utf-8")
    assert found == schema_of_manifests(), RUN


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["protect", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(to_json_text(spec_schema()))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(spec_schema())


def documented() -> list[object]:
    """Every spec in a YAML block of README and docs."""
    found = []
    for page in (TREE / "README.md", *(TREE / "docs").rglob("*.md")):
        for block in re.findall(
            r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            content = yaml.safe_load(block)
            if isinstance(content, dict) and {"source", "method"} <= set(content):
                found.append(content)
    return found


def test_the_documented_specs_fit_the_schema() -> None:
    assert documented()
    for content in documented():
        jsonschema.validate(content, spec_schema())


SOURCE = {"path": "a.csv", "columns": {"patient": "pid"}}


@pytest.mark.parametrize(
    "method",
    [
        {"name": "disassociation", "k": 5, "m": 2, "sensitive": "401.9"},
        {"name": "disassociation", "k": 5, "policy": {"policy": "hierarchy", "level": 1}},
        {"name": "censoring", "k": 5, "caps": {"250": 2}, "payload": ["sex"]},
        {"name": "condensation", "k": 5, "weight": "pilot", "plan": [{"linear": {}}]},
        {"name": "condensation", "k": 5, "weight": 0.3},
        {"name": "constraints", "k": 5, "m": 2, "algorithm": "coat", "cap": 0.1},
        {"name": "trajectories", "k": 5, "weights": [1, 0]},
        {"name": "visits", "k": 5},
        {"name": "k-anonymity", "k": 5},
    ],
    ids=str,
)
def test_the_schema_takes_good_methods(method: dict[str, object]) -> None:
    jsonschema.validate({"source": SOURCE, "method": method}, spec_schema())


@pytest.mark.parametrize(
    "method",
    [
        {"name": "disassociation", "k": "5"},
        {"name": "disassociation", "k": 1},
        {"name": "disassociation", "kk": 5},
        {"name": "visits"},
        {"name": "visits", "k": 5.5},
        {"name": "visits", "k": 5, "level": "day"},
        {"name": "censoring", "k": 5, "caps": {"250": -1}},
        {"name": "condensation", "k": 5, "weight": 1},
        {"name": "condensation", "k": 5, "coarsen_time": 1},
        {"name": "trajectories", "k": 5, "weights": [1]},
        {"name": "nonsense", "k": 5},
    ],
    ids=str,
)
def test_the_schema_refuses_bad_methods(method: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"source": SOURCE, "method": method}, spec_schema())


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_on_the_page_with_its_help(name: str) -> None:
    from leeward.fields import declarations

    page = parameters_pages()[name]
    for each in declarations(METHODS[name].parameters_class()):
        assert f"| `{each.name}`" in page and each.parameter.help.endswith(".")
