"""Two releases of overlapping patients, the product's own measurement being the attacker."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.attacks.test_disassociation import patients
from tests.composition.test_visits import part
from tests.methods.disassociation.shapes import cohort_of
from tests.verify.test_visits import made_up

from leeward.cohort.cohort import Cohort
from leeward.composition import Held, attacks
from leeward.methods.disassociation import Disassociation
from leeward.methods.visits import Visits
from leeward.release import Release
from leeward.runs.protect import protect


def held(cohort: Cohort, method: Disassociation | Visits, out: Path) -> Held:
    protect(cohort, method, out, seed=1)
    return Held(Release.open(out), cohort)


def test_a_second_disassociation_costs_few_patients_their_k_candidates(tmp_path: Path) -> None:
    cohort = cohort_of(patients())
    pair = [held(cohort, Disassociation(k=k, m=2), tmp_path / str(k)) for k in (3, 6)]
    (found,) = attacks(*pair)
    assert found.looked_at == 250
    assert found.below < 0.05 * found.looked_at


def test_visits_that_are_released_anew_cost_many_patients_theirs(tmp_path: Path) -> None:
    whole = made_up(120)
    pair = [
        held(each, Visits(k=3, policy=None), tmp_path / name)
        for name, each in (("1", part(whole, 170)), ("2", whole))
    ]
    linked, fresh, _ = attacks(*pair)
    assert linked.below > 0.05 * linked.looked_at
    assert linked.fewest == 1
    assert fresh.below > 0
    shown = pl.read_parquet(tmp_path / "2/share/data/visits.parquet")
    assert shown.group_by(pl.col("codes").list.sort()).agg(pl.col("record").n_unique())["record"].min() >= 3
