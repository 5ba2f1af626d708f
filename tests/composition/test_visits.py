"""Two releases of visits: who shows the same visit in both, by plain loops and on planted releases."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest
from tests.methods.visits.frames import cohort
from tests.verify.test_visits import made_up

from leeward.cohort.cohort import Cohort
from leeward.composition import Held, attacks, measure
from leeward.methods.visits import Visits
from leeward.release import Release
from leeward.runs.extract import extract
from leeward.runs.protect import protect


def held(source: Cohort, out: Path, **parameters: object) -> Held:
    protect(source, Visits(policy=None, **parameters), out, seed=1)  # type: ignore[arg-type]  # parameters by name
    return Held(Release.open(out), source)


def images(one: Held) -> dict[tuple[str, int], tuple[str, ...]]:
    """Of each patient and visit of the source, the codes shown, by the custodian's files."""
    custody, share = one.release.custody, one.release.share
    assert custody is not None
    events = one.source.require_events()
    visit = dict(events.select("row", "visit").rows())
    patient = dict(pl.read_parquet(custody / "data/patients.parquet").select("record", "patient").rows())
    row = {(r, v): at for r, v, at in pl.read_parquet(custody / "data/visits.parquet").iter_rows()}
    shown = pl.read_parquet(share / "data/visits.parquet").select("record", "visit", "codes")
    return {(patient[r], visit[row[r, v]]): tuple(sorted(codes)) for r, v, codes in shown.iter_rows()}


def part(source: Cohort, visits: int) -> Cohort:
    """The events of the first so many visits."""
    events = source.require_events().filter(pl.col("visit") <= visits)
    codes = events["code"].unique().cast(pl.String).sort()
    return Cohort(events.with_columns(pl.col("code").cast(pl.Enum(codes))), vocabulary=source.vocabulary)


def test_two_masters_against_plain_loops(tmp_path: Path) -> None:
    whole = made_up(120)
    one, two = held(part(whole, 170), tmp_path / "1", k=3), held(whole, tmp_path / "2", k=3)
    old, new = images(one), images(two)
    shows: list[dict[tuple[str, ...], set[str]]] = [defaultdict(set), defaultdict(set)]
    for place, each in enumerate((old, new)):
        for (patient, _), image in each.items():
            shows[place][image].add(patient)
    linked: dict[str, int] = {}
    for (patient, visit), image in old.items():
        if (patient, visit) in new:
            both = len(shows[0][image] & shows[1][new[patient, visit]])
            linked[patient] = min(both, linked.get(patient, 99))
    sources = [set(each.source.require_events().select("patient", "visit").rows()) for each in (one, two)]
    later = {patient for patient, _ in sources[1] - sources[0]}
    fresh: dict[str, int] = {}
    for patient, visit in sources[1] - sources[0]:
        if (image := new.get((patient, visit))) is not None:
            fresh[patient] = min(len(shows[1][image] & later), fresh.get(patient, 99))
    for bound, expected in zip(attacks(one, two), (linked, fresh), strict=False):
        counts = Counter(expected.values())
        assert bound.by_fewest == (counts[1], counts[2])
        assert bound.looked_at == len(expected)
        assert bound.exact
        assert bound.below > 0
        assert bound.fewest == min(expected.values())


def test_the_same_master_twice_gives_nothing_more(tmp_path: Path) -> None:
    """Visits are deterministic but for the order, so that every known visit still has k candidates; whole records that
    nobody else has are found again."""
    source = made_up(100)
    pair = [held(source, tmp_path / name, k=3) for name in ("1", "2")]
    linked, content = attacks(*pair)
    assert (linked.fewest, linked.below) == (3, 0)
    assert content.certain == content.by_fewest[0] > 0


def test_cohorts_of_one_master_join_by_whole_records(tmp_path: Path) -> None:
    """a, b and c have one visit, d and e two; in both cohorts are a, b, d and e: only d has a record like no other."""
    visit = ["401.00", "427.31"]
    records = {name: [visit] for name in "abcfgh"} | {name: [visit, visit] for name in "dei"}
    source = cohort(records)
    held(source, tmp_path / "master", k=3)
    cohorts = []
    for name, members in (("1", "abd"), ("2", "abdei")):
        extract(tmp_path / "master", pl.Series(list(members)), tmp_path / name, seed=1)
        cohorts.append(Held(Release.open(tmp_path / name), source))
    found = measure(*cohorts)
    assert found is not None
    assert (found.looked_at, found.by_fewest, found.certain) == (3, (0, 2), 0)


@pytest.mark.parametrize("parameters", [{"level": "code"}, {"level": "codes"}], ids=str)
def test_at_other_levels_only_whole_records_are_compared(
    parameters: dict[str, object], tmp_path: Path
) -> None:
    source = made_up(60)
    pair = [held(source, tmp_path / name, k=k, **parameters) for name, k in (("1", 3), ("2", 6))]
    assert len(attacks(*pair)) == 1


def test_without_custody_nothing_is_measured(tmp_path: Path) -> None:
    source = made_up(60)
    held(source, tmp_path / "1", k=3)
    pair = [Held(Release.open(tmp_path / "1/share"), source)] * 2
    found = [Held(Release(each.release.share, None, each.release.manifest), source) for each in pair]
    assert measure(*found) is None
