"""One table of wrong values over the parameters of all methods: in a call, in a spec and on the command line."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.fields import Declaration, declarations
from leeward.methods import METHODS
from leeward.runs.protect import method_of

NEEDED = {"constraints": {"m": 2}}
"""What makes a method's smallest valid parameters, beside k."""


def valid(name: str) -> dict[str, Any]:
    return {"k": 5, **NEEDED.get(name, {})}


def wrong_values(each: Declaration) -> list[Any]:
    """Values that no reading of the declaration takes: wrong kinds, and numbers outside the range."""
    options = typing.get_args(each.hint) if type(None) in typing.get_args(each.hint) else (each.hint,)
    kinds = {typing.get_origin(option) or option for option in options} | set(typing.get_args(options[0]))
    found: list[Any] = [object(), b"5", 3 + 1j]
    found += [] if type(None) in options else [None]
    if int in kinds:
        found += [5.5, "5", True, [5], {}, float("nan"), np.float64(5)]
        found += [each.parameter.ge - 1] if each.parameter.ge is not None else []
        found += [each.parameter.le + 1] if each.parameter.le is not None else []
    elif float in kinds and tuple not in kinds:
        found += ["0.5", True, [0.5], {}, float("nan"), float("inf"), -1.0]
    elif tuple in kinds:
        found += [5, True, {"a": 1}]
        found += [["a", 1], [None], [True]] if str in kinds else []
        found += ["0.5,0.5", [0.5], [0.5, 0.25, 0.25], ["a", "b"], [1.5, -0.5]] if float in kinds else []
    elif bool in kinds:
        found += [0, 1, "true", "no", []]
    elif any(typing.get_origin(option) is Literal for option in options):
        found += ["nonsense", 1, True, []]
    elif str in kinds:
        found += [5, True, [1]]
    return found


TABLE = [
    (name, each.name, value)
    for name, method in METHODS.items()
    for each in declarations(method.parameters_class())
    for value in wrong_values(each)
]


def test_the_table_covers_every_parameter() -> None:
    covered = {(name, parameter) for name, parameter, _ in TABLE}
    declared = {(n, each.name) for n, m in METHODS.items() for each in declarations(m.parameters_class())}
    assert covered == declared
    assert len(TABLE) > 400


@pytest.mark.parametrize("name", METHODS)
def test_the_smallest_parameters_are_valid(name: str) -> None:
    assert METHODS[name].parameters_class()(**valid(name)).k == 5


@pytest.mark.parametrize("name", METHODS)
def test_wrong_values_are_refused_in_one_shape(name: str) -> None:
    """The sentence names the parameter, what it must be and the kind of what was given; never by a bare TypeError."""
    cls = METHODS[name].parameters_class()
    for parameter, value in ((each, value) for method, each, value in TABLE if method == name):
        with pytest.raises(BadInput) as found:
            cls(**{**valid(name), parameter: value})
        text = str(found.value)
        assert text.startswith((f"`{parameter}` must ", f"`{parameter}[", f"`{parameter}.")), (
            parameter,
            value,
            text,
        )
        assert " must " in text and "; got " in text and text[-1] in ".?", text
        with pytest.raises(BadInput) as in_a_spec:
            method_of({"name": name, **valid(name), parameter: value})
        assert str(in_a_spec.value) == text.replace(f"`{parameter}", f"`method.{parameter}", 1)


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("visits", {"k": 5.5}, "`k` must be a whole number of at least 2; got a decimal number."),
        ("k-anonymity", {"k": "5"}, "`k` must be a whole number of at least 2; got text."),
        ("censoring", {"k": None}, "`k` must be a whole number of at least 2; got nothing."),
        ("censoring", {"k": True}, "`k` must be a whole number of at least 2; got true or false."),
        ("trajectories", {"k": 1}, "`k` must be a whole number of at least 2; got 1."),
        ("censoring", {"cap": 70_000}, "`cap` must be a whole number from 1 to 65,535; got 70000."),
        ("censoring", {"caps": {"250": -1}}, "`caps.250` must be a whole number from 0 to 65,535; got -1."),
        (
            "censoring",
            {"caps": {250: 1}},
            '`caps` must have keys of text, quoted as in "250"; got a whole number.',
        ),
        (
            "visits",
            {"key": "abslute"},
            "`key` must be `absolute` or `relative`; got `abslute`; did you mean `absolute`?",
        ),
        (
            "disassociation",
            {"m": 10**20},
            f"`m` must be a whole number of at least 1; got {10**20}, more than 2**63 - 1.",
        ),
        ("visits", {"payload": ["sex", 3]}, "`payload[2]` must be text; got a whole number."),
        ("visits", {"policy": 5}, "`policy` must be text or a mapping; got a whole number."),
        (
            "condensation",
            {"weight": 1.5},
            "`weight` must be a number above 0 and below 1 or `pilot`; got 1.5.",
        ),
        ("condensation", {"coarsen_time": 1}, "`coarsen_time` must be true or false; got a whole number."),
        ("condensation", {"plan": 3}, "`plan` must be a list; got a whole number."),
        ("trajectories", {"weights": [1]}, "`weights` must be two numbers of at least 0; got a list."),
        ("constraints", {"cap": 2.0}, "`cap` must be a number from 0 to 1; got 2.0."),
        (
            "disassociation",
            {"max_cluster": 3},
            "`max_cluster` must be a whole number of at least 6; got 3.",
        ),
    ],
)
def test_the_sentences(name: str, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as found:
        METHODS[name].parameters_class()(**{**valid(name), **wrong})
    assert str(found.value) == sentence


@pytest.mark.parametrize("name", METHODS)
def test_parameters_are_given_by_name_only(name: str) -> None:
    with pytest.raises(TypeError):
        METHODS[name].parameters_class()(5)


@pytest.mark.parametrize("name", METHODS)
def test_whole_numbers_of_numpy_are_whole_numbers(name: str) -> None:
    made = METHODS[name].parameters_class()(**{**valid(name), "k": np.int64(5)})
    assert made == METHODS[name].parameters_class()(**valid(name)) and type(made.k) is int


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--k", "5.5"), "`--k` must be a whole number of at least 2; got a decimal number."),
        (("--k", "five"), "`--k` must be a whole number of at least 2; got text."),
        (("--k", "1"), "`--k` must be a whole number of at least 2; got 1."),
        (
            ("--k", "5", "--delete-first", "abslute"),
            "`--delete-first` must be `absolute` or `relative`; got `abslute`; did you mean",
        ),
        (("--k", "5", "--payload", "a,,b"), "`--payload` must be values separated by commas; one is empty."),
        (
            ("--k", "5", "--level", "code", "--enforce", "generalize"),
            "`--enforce` generalize is only for `--level` visit",
        ),
    ],
)
def test_the_command_line_names_the_flag(
    flags: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["visits", "events.csv", *flags, "-o", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("trajectories", {"ages": "/data/my-ages.csv"}, {"ages": "custom"}),
        ("trajectories", {"ages": "1-128", "order": "kept"}, {"ages": "1-128", "order": "kept"}),
        ("visits", {"policy": "file:/data/a.csv"}, {"policy": "file:a.csv"}),
        ("visits", {"policy": "phecode:/data/a.csv"}, {"policy": "phecode:a.csv"}),
        ("visits", {"policy": None}, {"policy": "none", "m": None, "key": "absolute"}),
        ("visits", {"level": "codes"}, {"m": 2, "key": None}),
        ("constraints", {"m": None, "privacy": "/data/sets.txt"}, {"privacy": "listed", "m": None}),
        ("constraints", {"algorithm": "coat", "cap": 0}, {"cap": 0}),
        ("constraints", {"mapping": "/data/codes.parquet"}, {"algorithm": "mapping", "mapping": None}),
        ("disassociation", {"policy": "file:/data/a.csv"}, {"policy": "file"}),
        ("disassociation", {"attacker": "algorithm"}, {"partitioning": "ranked", "safe": True}),
        (
            "censoring",
            {"demographics": ("zip",), "hierarchies": {"zip": "/data/zip.csv"}},
            {"hierarchies": {"zip": "file"}, "small": "merge"},
        ),
    ],
)
def test_a_manifest_shows_what_the_fields_declare(
    name: str, given: dict[str, Any], shown: dict[str, Any]
) -> None:
    """None: not shown."""
    public = METHODS[name].parameters_class()(**{**valid(name), **given}).public()
    assert {each: public.get(each) for each in shown} == shown
