"""Risk after release, for the attacker of the guarantee and for one who uses the algorithm, with the demographics that
the release's attacker knows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.test_whole_patient import known_of, small_cohort
from tests.methods.disassociation.test_whole_patient import people
from tests.oracles.risk_after import Person, pieces

from leeward.advise.risk import measure_risk
from leeward.cohort.cohort import Cohort
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import measure
from leeward.randomness import Randomness
from leeward.release import Release, write


def released(cohort: Cohort, out: Path, **parameters: object) -> tuple[Release, int]:
    """A release, and in how many clusters a code with more patients was moved to the item chunk."""
    method = Disassociation(**{"m": 2, "attacker": "operation", **parameters})  # type: ignore[arg-type]  # the tests name real parameters
    made = method.protect(cohort, randomness=Randomness.of(7))
    return Release.open(write(made, out)), int(made.custody["empty_item_chunk_condition_fired"])


def known_to(release: Release, cohort: Cohort) -> list[Person]:
    """Exact demographics and codes of each patient, those that the release's attacker knows."""
    names = tuple(release.parameters.get("demographics") or ())
    return [({name: values[name] for name in names}, codes) for values, codes in known_of(cohort)]


@given(
    seed=st.integers(0, 10_000),
    k=st.integers(2, 4),
    names=st.sampled_from([(), ("sex",), ("age", "sex")]),
    partitioning=st.sampled_from(["fitted", "paper"]),
    small=st.sampled_from(["merge", "suppress"]),
    attacker=st.sampled_from(["operation", "counts"]),
)
def test_the_risk_is_that_of_a_plain_count(
    seed: int, k: int, names: tuple[str, ...], partitioning: str, small: str, attacker: str
) -> None:
    cohort = small_cohort(seed)
    more = {"demographics": names, "small": small} if names else {}
    more["attacker"] = attacker
    with tempfile.TemporaryDirectory() as folder:
        release, moved = released(cohort, Path(folder) / "out", k=k, partitioning=partitioning, **more)
        counted = pieces(release.share, known_to(release, cohort))
        risk = measure_risk(release, cohort)
        after = measure(release, cohort, [{"risk": {}}])["risk"]["after"]
    assert risk is not None and "further" in risk
    one = counted.of_size(1)
    few = [piece for piece in one if counted.algorithm[piece] < k]
    assert (risk["further"]["sets"], risk["further"]["below_k"]) == (len(one), len(few))
    assert risk["further"]["patients"] == len(set().union(*(counted.patients[piece] for piece in few)))
    assert moved or all(len(counted.patients[piece]) <= counted.algorithm[piece] for piece in counted.plain)
    up_to_two = counted.of_size(2)  # so few that every one is drawn
    plain = [counted.plain[piece] for piece in up_to_two]
    algorithm = [counted.algorithm[piece] for piece in up_to_two]
    assert (after["sets"], after["smallest_candidates"]) == (len(up_to_two), min(plain))
    assert after["below_k"] == 0 == sum(n < k for n in plain)
    assert after["smallest_candidates_algorithm_known"] == min(algorithm)
    assert (
        after["below_k_algorithm_known"] == sum(n < k for n in algorithm) == risk["further"]["tried_below_k"]
    )
    assert risk["further"]["smallest"] == min(*algorithm, k)
    assert k <= 1 / risk["maximum"] <= max(plain) and 1 / risk["maximum"] >= min(plain)


@pytest.mark.parametrize("recoding", ["full", "local"])
def test_post_codes_missing_ages_and_classes_of_several_levels(recoding: str, tmp_path: Path) -> None:
    cohort, names = people(300, seed=9), ("age", "sex", "zip")
    release, _ = released(
        cohort, tmp_path / "out", k=4, demographics=names, recoding=recoding, keep={"zip": 3}
    )
    counted = pieces(release.share, known_of(cohort, names))
    risk = measure_risk(release, cohort)
    assert risk is not None and "further" in risk
    one = counted.of_size(1)
    few = [piece for piece in one if counted.algorithm[piece] < 4]
    assert 0 < len(few) < len(one)
    assert (risk["further"]["sets"], risk["further"]["below_k"]) == (len(one), len(few))
    assert risk["further"]["patients"] == len(set().union(*(counted.patients[piece] for piece in few)))
    assert all(len(counted.patients[piece]) <= counted.algorithm[piece] for piece in one)


def test_demographics_that_the_attacker_knows_make_more_sets_rare(tmp_path: Path) -> None:
    """The same patients with and without: what is known with age and sex is looked up in their classes alone."""
    cohort = people(400, seed=4)
    bare, _ = released(cohort, tmp_path / "bare", k=4)
    joint, _ = released(
        cohort, tmp_path / "joint", k=4, demographics=("age", "sex"), keep={"age": 20, "sex": "exact"}
    )
    found = [measure(release, cohort, [{"risk": {}}])["risk"]["after"] for release in (bare, joint)]
    shares = [each["below_k_algorithm_known"] / each["sets"] for each in found]
    assert shares[1] > 2 * shares[0]
    assert all(each["below_k"] == 0 for each in found)


def test_sensitive_codes_are_assumed_unknown(tmp_path: Path) -> None:
    """A sensitive code is in item chunks whatever its patients: nobody knows it, so it is no piece of knowledge."""
    cohort = people(200, seed=1)
    usual, _ = released(cohort, tmp_path / "usual", k=4)
    secret, _ = released(cohort, tmp_path / "secret", k=4, sensitive=("c00", "c01"))
    risks = [measure_risk(release, cohort) for release in (usual, secret)]
    sets = [risk["further"]["sets"] for risk in risks if risk is not None and "further" in risk]
    assert sets[0] - sets[1] == 2


def test_made_for_an_attacker_who_knows_the_algorithm_there_is_no_other(tmp_path: Path) -> None:
    cohort = people(300, seed=2)
    release, _ = released(cohort, tmp_path / "out", k=4, attacker="algorithm")
    risk = measure_risk(release, cohort)
    assert risk is not None and "further" not in risk
    assert risk["knows"] == "2 codes of a patient and the algorithm" and risk["maximum"] <= 0.25
