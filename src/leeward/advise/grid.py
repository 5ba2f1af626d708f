"""The points of an exploration: every combination of methods, varied parameters and repeats, each once."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from leeward.errors import BadInput
from leeward.fields import check_values, declarations, is_declared, nearest
from leeward.fields.declarations import options_of
from leeward.fields.refusals import BadParameter
from leeward.methods import METHODS

MOST_POINTS = 2_000


@dataclass(frozen=True)
class Point:
    """A release to try. `method` is a spec's `method:`; `seed` is that of its repeat, numbered from 1."""

    method: dict[str, Any]
    seed: int

    @property
    def name(self) -> str:
        return str(self.method["name"])

    @property
    def spec(self) -> str:
        """Method and parameters as one line of JSON."""
        return json.dumps(self.method, sort_keys=True, default=str)

    @property
    def key(self) -> str:
        """What its file is called: follows from method, parameters and seed."""
        return hashlib.sha256(f"{self.spec}#{self.seed}".encode()).hexdigest()[:16]


def points_of(
    method: Mapping[str, Any], vary: Mapping[str, Sequence[Any]], methods: Sequence[str] = (), repeat: int = 1
) -> list[Point]:
    """The grid, in order: methods as given (the spec's own first), parameters in their order, repeats last.

    A further method starts with its defaults, and with the spec's values of `k`, `m` and `policy` where it has them. A
    parameter that a method does not have is not varied for it.

    Raises BadInput: an unknown method, a parameter that no method has, no value, one that does not fit, or too many
    points.
    """
    names = list(dict.fromkeys([str(method["name"]), *methods]))
    for name in names:
        if name not in METHODS:
            raise BadInput(f"--methods: unknown `{name}`{nearest(name, METHODS)}")
    known = {name: {each.name for each in declarations(METHODS[name].parameters_class())} for name in names}
    _check(vary, known)
    found: dict[str, Point] = {}
    for name in names:
        varied = {key: values for key, values in vary.items() if key in known[name]}
        base = _base(method, name, known[name])
        for *chosen, seed in itertools.product(*varied.values(), range(1, repeat + 1)):
            point = Point({**base, **dict(zip(varied, chosen, strict=True))}, seed)
            found.setdefault(point.key, point)
    if len(found) > MOST_POINTS:
        raise BadInput(f"--vary asks for {len(found):,} releases; at most {MOST_POINTS:,} are tried at once.")
    return list(found.values())


def _check(vary: Mapping[str, Sequence[Any]], known: Mapping[str, set[str]]) -> None:
    """BadInput at a parameter that no method has, or a value that a method does not take. Rules between parameters are
    not checked here: a point that breaks one has that as its outcome."""
    everything = set().union(*known.values())
    for parameter, values in vary.items():
        if parameter not in everything:
            raise BadInput(
                f"--vary: no method here has the parameter `{parameter}`{nearest(parameter, everything)}"
            )
        if not values:
            raise BadInput(f"--vary {parameter}: give at least one value.")
    for name in known:
        kind = METHODS[name].parameters_class()
        for each in declarations(kind):
            # Of a mapping that a class is built from its own class judges, in the point.
            built = any(map(is_declared, options_of(each.hint)))
            for number, value in enumerate(vary.get(each.name, ()), start=1):
                if not (built and isinstance(value, Mapping)):
                    try:
                        check_values(kind, {each.name: value})
                    except BadParameter as error:
                        raise BadInput(
                            f"--vary {each.name}, value {number}: `{each.name}` {error.rest}"
                        ) from None


def _base(method: Mapping[str, Any], name: str, known: set[str]) -> dict[str, Any]:
    if method["name"] == name:
        return dict(method)
    shared = {
        "k": method.get("k"),
        "m": method.get("m"),
        "policy": method.get("policy", method.get("utility")),
    }
    found = {"name": name} | {key: each for key, each in shared.items() if key in known and each is not None}
    if name == "visits":
        found["merge_visits"] = True  # the patient's codes as one set, as in other methods
    elif name == "linked" and (method.get("m") or 1) > 1:
        found["views"] = ["patients+events+events"]
    return found


def parse_variations(texts: Sequence[str]) -> dict[str, list[Any]]:
    """`k=2,5,11` and `policy=hierarchy:1,none` as parameters. BadInput without `=`, or for a name given twice."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name:
            raise BadInput(f"--vary takes NAME=VALUE,VALUE such as k=2,5,11; got {text[:60]}.")
        if name in found:
            raise BadInput(f"--vary {name} is given twice; put all its values into one.")
        found[name] = [_value(each.strip()) for each in values.split(",") if each.strip()]
    return found


def _value(text: str) -> Any:
    """A number, true, false, or text, as YAML reads it; `hierarchy:1` stays text."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text
