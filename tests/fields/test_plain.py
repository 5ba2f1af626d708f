"""What is seen to fit without pydantic, pydantic keeps as it is: of every declared field."""

from __future__ import annotations

import math
import typing
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from leeward.fields import Declared, _adapter, declarations
from leeward.fields.declarations import LARGEST, Declaration
from leeward.fields.plain import NOT_PLAIN, plain
from leeward.methods import METHODS
from leeward.release.spec import SourceSpec, Spec

CLASSES = [SourceSpec, Spec, *(method.parameters_class() for method in METHODS.values())]
FIELDS = [(cls, each) for cls in CLASSES for each in declarations(cls)]


def words_of(hint: Any) -> list[str]:
    """The texts that a type names anywhere in it."""
    if typing.get_origin(hint) is typing.Literal:
        return [str(each) for each in typing.get_args(hint)]
    return [word for inner in typing.get_args(hint) for word in words_of(inner)]


def edges_of(field: Declaration) -> list[int | float]:
    """Numbers at, below and above the ends of a range."""
    parameter = field.parameter
    ends = [
        each for each in (parameter.ge, parameter.gt, parameter.le, parameter.lt, LARGEST) if each is not None
    ]
    whole = [int(end) + by for end in ends if math.isfinite(end) for by in (-1, 0, 1)]
    return [*whole, -LARGEST, -LARGEST - 1, *(float(end) for end in ends)]


def values_of(field: Declaration) -> list[Any]:
    """Values of every kind, alone, in lists and tuples, and as keys and values of mappings."""
    texts = ["", "a", "hierarchy:1", "\udc80", "é", *words_of(field.hint)]
    numbers = [0, 1, 2, 3, -1, 0.0, 0.5, 1.0, math.inf, math.nan, *edges_of(field)]
    alone = [None, True, False, *texts, *numbers, field.default, b"a", np.int64(3)]
    keys = [each for each in alone if isinstance(each, Hashable)]
    several = [
        [],
        (),
        *([each] for each in alone),
        *((each,) for each in alone),
        *(("a", each) for each in alone),
    ]
    return [*alone, *several, {}, *({"a": each} for each in alone), *({each: 1} for each in keys)]


@dataclass(frozen=True, kw_only=True)
class OfTwoKinds(Declared):
    """Text is a list of one where a list is wanted too."""

    first: str | tuple[str, ...] = "a"
    last: tuple[str, ...] | str = "a"


FIELDS += [(OfTwoKinds, each) for each in declarations(OfTwoKinds)]


@pytest.mark.parametrize(
    ("cls", "field"), FIELDS, ids=lambda each: getattr(each, "__name__", getattr(each, "name", ""))
)
def test_what_is_plain_is_kept_by_pydantic_as_it_is(cls: type, field: Declaration) -> None:
    for value in values_of(field):
        kept = plain(field.hint, field.parameter, value)
        if kept is not NOT_PLAIN:
            found = _adapter(cls, field.name).validate_python(value)
            assert (type(found), repr(found)) == (type(kept), repr(kept))


def test_a_mapping_is_kept_apart_from_the_callers() -> None:
    (columns,) = (each for each in declarations(SourceSpec) if each.name == "columns")
    given_ = {"patient": "pid"}
    kept = plain(columns.hint, columns.parameter, given_)
    assert kept == given_ and kept is not given_


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [(SourceSpec, "path", "a.csv"), (SourceSpec, "missing", ("?",)), (Spec, "formats", ("parquet", "csv"))],
)
def test_a_usual_value_is_plain(cls: type, name: str, value: Any) -> None:
    (field,) = (each for each in declarations(cls) if each.name == name)
    assert plain(field.hint, field.parameter, value) == value
