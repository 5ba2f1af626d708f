"""Whatever a public function is given, it does its work or says in one sentence what is wrong."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import leeward as lw
from leeward.errors import LeewardError
from leeward.fields import declarations
from leeward.methods import METHODS

WRONG: dict[str, Any] = {
    "none": None, "true": True, "zero": 0, "minus one": -1, "half": 0.5, "nan": float("nan"), "infinity": float("inf"),
    "huge": 10**30, "empty text": "", "text": "x", "NUL": "\0", "long text": "a" * 5000, "bytes": b"x",
    "surrogate": "\udcff", "list": [], "list of numbers": [1], "list of text": ["x"], "tuple": (), "mapping": {},
    "mapping of numbers": {1: 2}, "mapping of text": {"x": "y"}, "set": {1}, "array": np.array([1]),
    "number of NumPy": np.int64(1), "frame": pl.DataFrame({"a": [1]}), "series": pl.Series([1]), "object": object(),
    "class": int, "function": lambda: None, "no such path": Path("nope"), "date": datetime.date(2020, 1, 1),
    "range": range(3),
}  # fmt: skip

Given = Mapping[str, Any]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What right calls are made of: a cohort, a release, an index, a spec."""
    return make_given(tmp_path_factory.mktemp("given"))


def make_given(folder: Path) -> dict[str, Any]:
    """The same in a folder."""
    people = [str(n) for n in range(40) for _ in range(2)]
    events = pl.DataFrame({"patient": people, "code": ["401.9", "250.00"] * 40})
    events.write_csv(folder / "events.csv")
    cohort = lw.read(folder / "events.csv")
    method = lw.Disassociation(k=2, m=1)
    lw.protect(cohort, method, folder / "release", seed=1, register=folder / "register.db")
    lw.index(str(folder / "events.csv"), folder / "index", epsilon_total=1)
    (folder / "spec.yaml").write_text(
        "source: {path: events.csv}\nmethod: {name: disassociation, k: 2, m: 1}\n"
    )
    return {"folder": folder, "events": str(folder / "events.csv"), "cohort": cohort, "method": method,
            "register": folder / "register.db",
            "release": folder / "release", "index": folder / "index", "spec": folder / "spec.yaml"}  # fmt: skip


CALLS: dict[str, Callable[[Given, Path], dict[str, Any]]] = {
    "annotate": lambda g, new: {"notes": g["events"], "out": new},
    "audit": lambda g, new: {"index": g["index"]},
    "budget": lambda g, new: {"index": g["index"]},
    "compare": lambda g, new: {"outs": [new, new], "out": new},
    "connect": lambda g, new: {"url": "http://127.0.0.1:9"},
    "decrypt": lambda g, new: {"path": g["events"], "key": g["events"], "out": new},
    "dossier": lambda g, new: {"release": new, "out": new},
    "estimate": lambda g, new: {"release": g["release"], "codes": ["401.9"]},
    "explore": lambda g, new: {"spec": new, "out": new, "vary": {"k": [2]}},
    "extract": lambda g, new: {"master": g["release"], "selection": g["events"], "out": new},
    "index": lambda g, new: {"source": g["events"], "out": g["folder"], "epsilon_total": 1},
    "itemsets": lambda g, new: {"index": g["index"], "epsilon": 0.01, "dry_run": True},
    "measure": lambda g, new: {"release": g["release"], "cohort": g["cohort"], "wanted": ["nothing"]},
    "omop": lambda g, new: {"release": g["release"], "out": new},
    "open": lambda g, new: {"path": g["release"]},
    "profile": lambda g, new: {"cohort": g["cohort"]},
    "protect": lambda g, new: {"cohort": g["cohort"], "method": g["method"], "out": g["folder"]},
    "query": lambda g, new: {"index": g["index"], "terms": "401.9", "epsilon": 5},
    "read": lambda g, new: {"path": g["events"]},
    "recommend": lambda g, new: {"cohort": g["cohort"], "plan": new},
    "refresh": lambda g, new: {"master": g["release"], "new": g["cohort"], "out": new},
    "run": lambda g, new: {"spec": g["spec"], "out": g["folder"]},
    "split": lambda g, new: {"source": g["events"], "out": new, "parts": 2},
    "releases.audit": lambda g, new: {"register": g["register"]},
    "releases.list": lambda g, new: {"register": g["register"]},
    "releases.overlap": lambda g, new: {"release": "x", "register": g["register"]},
    "releases.repair": lambda g, new: {"folders": [g["folder"]], "register": g["register"]},
    "releases.show": lambda g, new: {"release": "x", "register": g["register"]},
    "releases.withdraw": lambda g, new: {"release": "x", "reason": "x", "register": g["register"]},
    "synth.code_catalogue": lambda g, new: {"codes": 5},
    "synth.write_claims": lambda g, new: {"path": new, "patients": 3},
    "synth.write_codes": lambda g, new: {"path": new, "patients": 3},
    "verify": lambda g, new: {"path": g["release"], "source": g["cohort"]},
}
"""Of each function arguments that are right, or that are refused after all have been looked at."""


def test_every_public_function_is_called() -> None:
    public = {name for name in lw._WHERE if inspect.isfunction(getattr(lw, name))}
    groups = {f"{group}.{name}" for group in ("releases", "synth") for name in vars(getattr(lw, group))}
    assert public | groups == set(CALLS)


def call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The call with arguments by name, whatever may be given by place alone."""
    parameters = inspect.signature(function).parameters
    places = [n for n, each in parameters.items() if each.kind is each.POSITIONAL_ONLY and n in arguments]
    return function(
        *(arguments[name] for name in places),
        **{name: value for name, value in arguments.items() if name not in places},
    )


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for name in sorted(CALLS)
        for parameter, each in inspect.signature(attrgetter(name)(lw)).parameters.items()
        if each.kind is not each.VAR_KEYWORD
    ],
)
def test_wrong_values_are_refused_in_a_sentence(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parameter: str
) -> None:
    monkeypatch.chdir(tmp_path)
    function = attrgetter(name)(lw)
    faults = {}
    for number, (kind, value) in enumerate(WRONG.items()):
        right = CALLS[name](given, tmp_path / f"new-{number}")
        if parameter == "tell" and callable(value):
            continue  # it is called, and what it raises is its own
        try:
            call(function, {**right, parameter: value})
        except LeewardError:
            continue
        except BaseException as error:
            faults[kind] = f"{type(error).__name__}: {error}"[:150]
    assert not faults


@pytest.mark.parametrize("field", ["events", "patients", "notes", "name", "notices", "domains"])
def test_a_cohort_of_something_else_is_refused(field: str) -> None:
    faults = {}
    events = pl.DataFrame({"patient": [1], "code": ["a"]}, schema_overrides={"code": pl.Enum(["a"])})
    lw.profile(lw.Cohort(events))
    for kind, value in WRONG.items():
        try:
            lw.profile(lw.Cohort(**{"events": events, field: value}))
        except LeewardError:
            continue
        except BaseException as error:
            faults[kind] = f"{type(error).__name__}: {error}"[:150]
    assert not faults


@pytest.mark.parametrize(
    ("method", "parameter"),
    [(m, field.name) for m in METHODS.values() for field in declarations(getattr(lw, m.class_name))],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_parameter_of_something_else_is_refused(method: Any, parameter: str) -> None:
    made = getattr(lw, method.class_name)
    right = {each.name: 5 for each in dataclasses.fields(made) if each.default is dataclasses.MISSING}
    faults = {}
    for kind, value in WRONG.items():
        try:
            made(**{**right, parameter: value})
        except LeewardError:
            continue
        except BaseException as error:
            faults[kind] = f"{type(error).__name__}: {error}"[:150]
    assert not faults
