"""Flags that several commands share: texts of the command line as values."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.cli.flags import FLAGS, from_text, name_flags
from leeward.cli.main import status_of
from leeward.cli.options import domains_of
from leeward.errors import BadInput
from leeward.fields import declarations
from leeward.methods.condensation.parameters import Condensation
from leeward.methods.k_anonymity.parameters import KAnonymity
from leeward.methods.trajectories.parameters import Trajectories
from leeward.methods.visits.parameters import Visits


def test_domains_are_ranges_lists_and_files_alike(tmp_path: Path) -> None:
    file = tmp_path / "domains.yaml"
    file.write_text("domains:\n  stage: {levels: [I, II], ordered: true}\n", encoding="utf-8")
    assert domains_of(["age=0..99", "when = 2020-01 .. 2020-12", "zip=007,12", "year=2.5", str(file)]) == {
        "age": {"low": 0, "high": 99},
        "when": {"low": "2020-01", "high": "2020-12"},
        "zip": ["007", 12],
        "year": [2.5],
        "stage": {"levels": ["I", "II"], "ordered": True},
    }


@pytest.mark.parametrize(
    "texts", [["sex="], ["=1"], ["sex=F,"], ["age=1.."], ["nosuch.yaml"], ["a=1", "a=2"]]
)
def test_domains_that_cannot_be_read(texts: list[str]) -> None:
    with pytest.raises(BadInput, match=r"--domains|no such file"):
        domains_of(texts)


def test_names_with_numbers_after_a_colon() -> None:
    known = {each.name: each for each in declarations(KAnonymity)}
    assert from_text(known["sensitive_columns"], "hiv:3,stage:2") == {"hiv": 3, "stage": 2}
    assert from_text(known["closeness"], "cost:0.2, age:.5") == {"cost": 0.2, "age": 0.5}
    assert from_text(known["closeness"], "cost:low") == {"cost": "low"}
    (refused,) = (each for each in declarations(Condensation) if each.name == "sensitive_columns")
    assert from_text(refused, "hiv:3") == {"hiv": 3}


def test_messages_name_flags_and_their_values() -> None:
    """Newcomer finding 23: `odd_ages: leave out` is of the spec; on the command line it is a flag with its value."""
    message = "Leave them out with `odd_ages: leave out`, or `drop`; `method.k`, `nothing: here`."
    assert name_flags(message, Trajectories, FLAGS) == (
        "Leave them out with `--odd-ages 'leave out'`, or `--drop`; `--k`, `nothing: here`."
    )
    assert name_flags("`merge_visits: true`", Visits, FLAGS) == "`--merge-visits`"


def test_a_parameter_that_does_not_fit_is_status_2(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n")
    assert status_of(["condense", str(table), "--k", "1", "-o", str(tmp_path / "out")]) == 2
