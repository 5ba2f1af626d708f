"""Code sets that are drawn to be looked up in a release."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.test_risk import code_sets
from tests.oracles.published import running_example, running_records, write

from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.measures.risk import draw_sets, knowledge_of_codes


@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_set_of_up_to_m_known_codes_of_a_record_is_drawn_and_no_other(m: int, tmp_path: Path) -> None:
    sets = code_sets(running_records())
    known = np.arange(len(sets.codes)) % 5 > 0
    attacker = knowledge_of_codes(
        read(write(tmp_path / "out", running_example(), 3, m)), sets, known.tolist()
    )
    found = draw_sets(attacker, np.random.Generator(np.random.Philox(3)))
    rows = [
        sorted(c for c in attacker.translate[row] if c >= 0)
        for row in np.split(sets.values, sets.offsets[1:-1])
    ]
    wanted = {(0, *some) for row in rows for size in range(1, m + 1) for some in combinations(row, size)}
    assert len(found) == len(set(found))
    assert set(found) == wanted
