"""The guard of conftest.py sees what it is there to see."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.conftest import global_generators


@pytest.mark.parametrize("name", ["random", "numpy.random"])
def test_a_draw_from_a_global_generator_is_seen(name: str) -> None:
    before = global_generators()
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    if name == "random":
        random.random()
    else:
        np.random.random()  # noqa: NPY002
    after = global_generators()
    random.setstate(python_state)
    np.random.set_state(numpy_state)  # noqa: NPY002
    assert [key for key in before if before[key] != after[key]] == [name]


def test_a_generator_of_ones_own_is_not_seen() -> None:
    before = global_generators()
    random.Random(1).random()
    np.random.Generator(np.random.Philox(1)).random()
    assert global_generators() == before
