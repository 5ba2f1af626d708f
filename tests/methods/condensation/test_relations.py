"""Relations that hold in every source row: proposed, confirmed, kept, verified."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given
from hypothesis import strategies as st
from tests.cohort.sources import read_table
from tests.oracles import proposed_relations

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation import Condensation, condense, proposals
from leeward.methods.condensation import keeping as kernels
from leeward.methods.condensation.proposals import propose
from leeward.methods.condensation.relations import broken, relation_of
from leeward.randomness import Randomness
from leeward.release import Anonymized, write
from leeward.verify import Source, verify

PLANTED = (
    "recurrence <= death",
    "status = none => recurrence = death",
    "code = copy",
    "group -> class",
    "dose = 0 <=> cycles = 0",
    "menopause = 1 => age >= 40",
    "menopause = 0 => age <= 60",
)


def planted(rows: int = 600, seed: int = 1) -> pl.DataFrame:
    """A registry with one relation of each kind, no row of which breaks any."""
    random = np.random.default_rng(seed)
    age = np.round(random.normal(52, 12, rows)).clip(25, 85)
    menopause = np.where(age < 40, 0, np.where(age > 60, 1, random.random(rows) < (age - 40) / 20)).astype(
        int
    )
    death = np.ceil(1000 * random.exponential(size=rows) * np.exp(-0.03 * (age - 52))) + 1
    recurred = random.random(rows) < 0.5
    recurrence = np.where(recurred, np.ceil(death * random.uniform(0.1, 0.95, rows)), death)
    treated = random.random(rows) < 0.6
    cycles = np.where(treated, random.integers(1, 9, rows), 0)
    group = random.choice(list("abcdef"), rows, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    code = random.integers(0, 40, rows)
    return pl.DataFrame(
        {
            "age": age.astype(int),
            "menopause": menopause,
            "death": death,
            "recurrence": recurrence,
            "status": np.where(recurred, "local", "none"),
            "cycles": cycles,
            "dose": np.round(cycles * random.uniform(10, 20, rows), 1),
            "group": group,
            "class": np.isin(group, ["a", "b"]).astype(int),
            "code": code,
            "copy": code,
            "event": (random.random(rows) < 0.6).astype(int),
        }
    )


def impossible(frame: pl.DataFrame) -> pl.Series:
    """Rows that break a planted relation, written anew."""
    classes = pl.col("group").is_in(["a", "b"]).cast(pl.Int64)
    rules = (
        (pl.col("recurrence") > pl.col("death"))
        | ((pl.col("status") == "none") & (pl.col("recurrence") != pl.col("death")))
        | (pl.col("code") != pl.col("copy"))
        | (pl.col("class") != classes)
        | ((pl.col("dose") == 0) != (pl.col("cycles") == 0))
        | ((pl.col("menopause") == 1) & (pl.col("age") < 40))
        | ((pl.col("menopause") == 0) & (pl.col("age") > 60))
    )
    return frame.select(rules).to_series()


def run(frame: pl.DataFrame, seed: int = 1, **parameters: Any) -> Anonymized:
    method = Condensation(**{"strata": ("event",), **parameters})
    return method.protect(read_table(frame), randomness=Randomness.of(seed))


def table_of(made: Anonymized) -> pl.DataFrame:
    frame = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(frame, pl.DataFrame)
    return frame


@pytest.mark.parametrize("k", [5, 10, 60])
def test_confirmed_relations_hold_in_every_row(k: int, tmp_path: Path) -> None:
    source = planted()
    assert not impossible(source).any()
    made = run(source, k=k, relations=PLANTED)
    released = table_of(made)
    assert not impossible(released).any()
    before = impossible(table_of(run(source, k=k, relations="none"))).mean()
    assert before is not None
    assert before > 0.3  # what it is without
    for name in source.columns:  # no value was thrown away: groups keep their levels
        if name in ("status", "group", "event"):
            assert sorted(released[name]) == sorted(source[name]), name
    assert "recurrence <= death" in made.readme
    assert verify(write(made, tmp_path / "out")).passed


def test_every_planted_relation_is_found_and_no_other() -> None:
    """But for what menopause asks of age: one patient has the least age, so the cut would be a patient's."""
    found = {each.text for each in propose(read_table(planted()).table())}
    wanted = {each for each in PLANTED if "age" not in each and "dose" not in each}
    assert found == wanted | {"cycles = 0 <=> dose = 0", "cycles <= dose"}


def hidden(rows: int = 1_200) -> pl.DataFrame:
    """Relations of kinds that no run proposed before: ranges whose ends many share, dates, numbers of two types."""
    random = np.random.default_rng(3)
    nodes = random.choice([0, 1, 2, 3, 4, 6, 9, 10, 15, 20], rows, p=[0.3, 0.1, 0.1, *[0.1] * 2, *[0.06] * 5])
    seen = np.datetime64("2015-01-01") + random.integers(0, 900, rows).astype("timedelta64[D]")
    sex = random.choice(["f", "m"], rows)
    return pl.DataFrame(
        {
            "nodes": nodes,
            "class": np.array(["N0", "N1", "N2", "N3"])[np.searchsorted([1, 4, 10], nodes, "right")],
            "seen": seen,
            "treated": seen
            + (random.integers(0, 40, rows) * (random.random(rows) < 0.6)).astype("timedelta64[D]"),
            "sex": sex,
            "births": np.where(sex == "m", 0, random.poisson(1.4, rows)),
            "nodes as read": nodes.astype(float),
        }
    )


HIDDEN = (
    "nodes = 'nodes as read'",
    "seen <= treated",
    "class = N0 => nodes <= 0",
    "class = N1 => nodes <= 3",
    "class = N2 => nodes <= 9",
    "class = N1 => nodes >= 1",
    "class = N2 => nodes >= 4",
    "class = N3 => nodes >= 10",
    "sex = m => births <= 0",
)


def test_ranges_dates_and_numbers_of_two_types_are_found_and_kept(tmp_path: Path) -> None:
    source = hidden()
    assert [each.text for each in propose(read_table(source).table())] == list(HIDDEN)
    made = run(source, k=20, strata=())
    assert made.parameters["relations"] == list(HIDDEN)
    assert not [text for text in HIDDEN if breaks(text, table_of(made))]
    before = table_of(run(source, k=20, strata=(), relations="none"))
    assert len([text for text in HIDDEN if breaks(text, before)]) >= 4
    rows = read_table(source).patients
    assert rows is not None
    assert verify(write(made, tmp_path / "out"), Source(pl.DataFrame(), rows)).passed


@pytest.mark.parametrize("k", [5, 40])
def test_what_fewer_than_k_patients_show_is_not_found(k: int) -> None:
    """Who knows a patient's one column would read the other one, and none but few patients share the answer."""
    random = np.random.default_rng(1)
    flag = (np.arange(400) % 100 < 1).astype(int) * (np.arange(400) < 200 * (k > 5) + 399)  # 4 rows
    level = np.where(np.arange(400) < k - 1, "rare", random.choice(["a", "b"], 400))
    frame = pl.DataFrame({"flag": flag, "copy": flag, "level": level, "of": (level == "b").astype(int)})
    made = run(frame, k=k, strata=(), rare="keep")
    assert "relations" not in made.parameters
    shown = run(frame.filter(pl.col("level") != "rare"), k=k, strata=(), rare="keep")
    assert shown.parameters["relations"] == ["level -> of"]


def test_an_accidental_level_is_not_found() -> None:
    """A part is its whole in nine rows of ten: in all rows of some small level by chance."""
    random = np.random.default_rng(1)
    whole = random.integers(5, 60, 2_000)
    part = np.where(random.random(2_000) < 0.9, whole, whole // 2)
    level = random.permutation(np.where(np.arange(2_000) < 40, "small", "large"))
    level = np.where((level == "small") & (part < whole), "large", level)
    frame = pl.DataFrame({"whole": whole, "part": part, "level": level})
    assert [each.text for each in propose(read_table(frame).table())] == ["part <= whole"]


def test_found_relations_that_cannot_be_kept_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    impossible_ones = [relation_of(f"status = {level} => age >= 90") for level in ("none", "local")]
    monkeypatch.setattr(condense, "propose", lambda *given: [*impossible_ones, *propose(*given)])
    source = planted()
    made = run(source, k=10)
    assert made.parameters["relations"] == [each.text for each in propose(read_table(source).table())]


@pytest.mark.parametrize("k", [5, 10, 50])
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_columns_never_part(k: int, seed: int) -> None:
    source = (
        planted(seed=seed)
        .drop("recurrence")
        .with_columns(twin="age", named="status", gone=pl.when(pl.arange(0, 600) % 9 > 0).then("dose"))
    )
    source = source.with_columns(lost="gone")
    made = run(source, k=k, time=("death",))
    released = table_of(made)
    for one, other in (("code", "copy"), ("age", "twin"), ("status", "named"), ("gone", "lost")):
        assert released[one].equals(released[other], null_equal=True), one
        assert f"{one} = {other}" in made.parameters["relations"]
    assert "What holds for everybody" in " ".join(made.guarantee.not_protected)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_proposed_where_columns_are_independent(seed: int) -> None:
    random = np.random.default_rng(seed)
    frame = planted().select(pl.all().exclude("event"))
    shuffled = frame.with_columns(frame[name].gather(random.permutation(600)) for name in frame.columns)
    assert propose(read_table(shuffled).table()) == []


def test_a_flag_below_a_count_is_no_relation() -> None:
    random = np.random.default_rng(1)
    nodes = random.poisson(1.0, 900)
    frame = pl.DataFrame(
        {"patient": range(900), "nodes": nodes, "hormon": (nodes > 0) & (random.random(900) < 0.4)}
    )
    frame = frame.with_columns(pl.col("hormon").cast(pl.Int64))
    assert propose(read_table(frame).table()) == []


def test_relations_that_are_not_kept_are_listed_with_the_rows_that_break_them() -> None:
    source = planted()
    made = run(source, k=20, relations="none")
    listed = {each["relation"]: each["broken"] for each in made.custody["relations"]["proposed"]}
    released = table_of(made)
    assert listed["recurrence <= death"] == (released["recurrence"] > released["death"]).sum() > 0
    assert listed["code = copy"] == (released["code"] != released["copy"]).sum() > 0
    assert "`code = copy`: broken in" in made.readme
    (notice,) = [each for each in made.notices if "Confirm" in each]
    assert "`recurrence <= death`" in notice
    assert "relations" not in made.parameters


CELLS = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, None])


@given(
    columns=st.lists(
        st.tuples(st.integers(0, 4), st.lists(CELLS, min_size=12, max_size=12)), min_size=4, max_size=4
    ),
    levels=st.lists(st.sampled_from("abc"), min_size=12, max_size=12),
)
def test_pairs_settled_by_their_first_rows_are_proposed_as_if_all_were_looked_at(
    columns: list[tuple[int, list[float | None]]], levels: list[str]
) -> None:
    frame = pl.DataFrame({"patient": range(24), "g": levels * 2})
    for place, (way, cells) in enumerate(columns):
        before = frame[f"x{place - 1}"] if place else pl.Series([0.0] * 24)
        level = pl.Series([float(ord(each)) for each in levels * 2])
        own = pl.Series(cells * 2, dtype=pl.Float64)
        ways = [
            own,
            before,
            before + own,
            level,
            pl.select(pl.when(level < 98).then(before).otherwise(own)).to_series(),
        ]
        frame = frame.with_columns(ways[way].alias(f"x{place}"))
    table = read_table(frame).table()
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(proposals, "FIRST", 5)
        changed.setattr(proposals, "GUARD", 2)
        changed.setattr(proposals, "COPIED", 2)
        assert [each.text for each in propose(table)] == proposed_relations.propose(table, 2, 2)


def test_new_pairs_of_a_proposed_mapping_are_counted() -> None:
    relation = relation_of("a -> b")
    before = {"a": np.array([0.0, 0, 1, np.nan]), "b": np.array([5.0, 5, 6, 7])}
    after = {"a": np.array([0.0, 0, 1, 2, np.nan, 1]), "b": np.array([5.0, 6, 6, 6, 6, np.nan])}
    assert proposals._new_pairs(before, after, relation) == 2


def test_a_relation_that_does_not_hold_is_refused_with_its_rows() -> None:
    source = planted(300)
    wrong = source.with_columns(recurrence=pl.when(pl.arange(0, 300) == 6).then(9e9).otherwise("recurrence"))
    with pytest.raises(BadInput, match=r"'recurrence <= death' does not hold in 1 rows \(rows 7\)"):
        run(wrong, k=20, relations="recurrence <= death")


TWO_TIMES = ("death", "recurrence")


@pytest.mark.parametrize(
    "text",
    ["recurrence <= death", "status = none => recurrence = death", "age <= death", "death = recurrence"],
)
def test_a_relation_that_names_one_of_several_exact_times_is_refused(text: str) -> None:
    """A relation moved exact times towards the true pair."""
    source = planted(300).with_columns(pl.col("recurrence").clip(86), pl.col("death").clip(86))
    if text == "death = recurrence":
        source = source.with_columns(recurrence="death")
    with pytest.raises(
        GuaranteeUnreachable, match=r"one of 2 times that are released as they are \(death, rec"
    ):
        run(source, k=20, time=TWO_TIMES, relations=text)


def test_coarse_times_keep_a_relation_between_them() -> None:
    released = table_of(
        run(planted(), k=10, time=TWO_TIMES, coarsen_time=True, relations="recurrence <= death")
    )
    assert (released["recurrence"] <= released["death"]).all()


def test_relations_of_several_exact_times_are_neither_kept_nor_proposed_for_confirmation() -> None:
    """The recipient reads that the release breaks them; the custodian is not asked for what would be refused."""
    made = run(planted(), k=20, time=TWO_TIMES)
    assert "`recurrence <= death`: broken in" in made.readme
    assert "code = copy" in made.parameters["relations"]
    assert not [each for each in made.notices if "Confirm" in each]


def test_a_relation_of_one_exact_time_is_kept_only_where_it_is_given() -> None:
    """Who knows the one column and the relation would rule out rows by their exact times."""
    source = planted().with_columns(pl.min_horizontal("recurrence", pl.col("death") - 1))
    by_default = run(source, k=20, time=("death",))
    (notice,) = [each for each in by_default.notices if "Confirm" in each]
    assert "`recurrence <= death`" in notice
    given = run(source, k=20, time=("death",), relations="recurrence <= death")
    assert given.parameters["relations"][0] == "recurrence <= death"
    assert "code = copy" in given.parameters["relations"]
    assert (table_of(given)["recurrence"] <= table_of(given)["death"]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a < b", "has no known form"),
        ("recurrence <= deth", "Did you mean 'death'"),
        ("menopause = 7 => age >= 40", "does not hold|no level"),
        ("status = gone => recurrence = death", "no level of 'status'"),
        ("group <= death", "needs numbers in 'group'"),
        ("age -> menopause", "needs levels in 'age'"),
        ("event <= death", "is a stratum"),
    ],
)
def test_what_a_relation_cannot_say(text: str, message: str) -> None:
    if text.startswith("menopause = 7"):
        run(planted(200), k=20, relations=text)  # a number that nobody has: nothing to keep
        return
    with pytest.raises(BadInput, match=message):
        run(planted(200), k=20, relations=text)


def test_names_with_blanks_are_quoted() -> None:
    found = relation_of("'time to  event' <= d.time")
    assert (found.kind, found.a, found.b) == ("at-most", "time to event", "d.time")


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_bounded_values_are_a_permutation_wherever_one_is_possible(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    a, bound = random.integers(0, 6, rows).astype(float), random.integers(0, 8, rows).astype(float)
    possible = any(all(x <= y for x, y in zip(each, bound, strict=True)) for each in permutations(a))
    found = a.copy()
    changed = kernels.at_most(found, bound, np.zeros(rows, bool), np.array([0, rows]), True)
    assert (found <= bound).all()
    if possible:
        assert changed == 0
        assert sorted(found) == sorted(a)
    if (a <= bound).all():
        assert found.tolist() == a.tolist()


def woven(rows: int, seed: int, *, gaps: bool) -> pl.DataFrame:
    """Columns that many relations at once hold of, some with missing values."""
    random = np.random.default_rng(seed)
    age = np.round(random.normal(55, 12, rows)).clip(25, 90).astype(int)
    group = random.choice(list("abcdef"), rows, p=[0.4, 0.2, 0.2, 0.1, 0.07, 0.03])
    death = np.ceil(1000 * random.exponential(size=rows) * np.exp(-0.02 * (age - 55))) + 1
    relapse = np.where(random.random(rows) < 0.4, death, np.ceil(death * random.uniform(0.2, 1, rows)))
    nodes = random.poisson(2, rows) * (random.random(rows) < 0.6)
    er, pgr = random.integers(0, 200, rows), random.integers(0, 200, rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "same": age,
            "old": (age >= 60).astype(int),
            "phase": np.where(age >= 60, "late", np.where(age >= 45, "mid", "early")),
            "late": (age >= 60).astype(int),
            "group": group,
            "class": np.array([{"a": 1, "b": 1, "c": 0, "d": 0, "e": 0, "f": 2}[each] for each in group]),
            "er": er,
            "total": er + pgr,
            "nodes": nodes,
            "some": nodes.clip(0, 3),
            "dose": np.round(nodes * random.uniform(1, 2, rows), 1),
            "first": np.ceil(relapse * random.uniform(0.1, 1, rows)),
            "relapse": relapse,
            "death": death,
            "seen": death + random.integers(0, 200, rows),
            "status": np.where(relapse == death, "none", "local"),
            "event": (random.random(rows) < 0.6).astype(int),
        }
    )
    if not gaps:
        return frame
    absent = {
        name: random.random(rows) < random.choice([0.01, 0.2])
        for name in ("age", "group", "er", "nodes", "status")
    }
    return frame.with_columns(
        pl.when(pl.Series(each)).then(None).otherwise(name).alias(name) for name, each in absent.items()
    )


WOVEN = (
    "same = age",
    "old = 1 => age >= 60",
    "old = 0 => age <= 59",
    "phase = late => same >= 60",
    "phase = early => age <= 44",
    "phase -> late",
    "late = 1 => age >= 60",
    "group -> class",
    "er <= total",
    "some <= nodes",
    "nodes <= dose",
    "some = 0 <=> nodes = 0",
    "nodes = 0 <=> dose = 0",
    "first <= relapse",
    "first <= seen",
    "relapse <= death",
    "death <= seen",
    "status = none => relapse = death",
)


def breaks(text: str, frame: pl.DataFrame) -> bool:
    table, relation = read_table(frame).table(), relation_of(text)
    values = {name: table.encode(name) for name in relation.columns()}
    return bool(broken(relation, values, {each.name: each for each in table.columns}).any())


def kept(source: pl.DataFrame, texts: tuple[str, ...], seed: int) -> Anonymized:
    method = Condensation(k=5, strata=("event",), time=("seen",), relations=texts)
    return method.protect(read_table(source), randomness=Randomness.of(seed))


@pytest.mark.parametrize(
    "texts",
    [
        ("old = 1 => age >= 60", "old = 0 => age <= 59", "same = age"),
        ("some <= nodes", "same = age", "old = 1 => same >= 60"),
    ],
)
def test_what_is_said_of_equal_columns_is_kept(texts: tuple[str, ...]) -> None:
    """Equal columns were copied over values that a cut had put right: legitimate sets were refused."""
    released = table_of(kept(woven(200, 1, gaps=False), texts, 1))
    assert not [text for text in texts if breaks(text, released)]


@pytest.mark.parametrize("seed", range(8))
def test_relations_that_hold_together_are_kept_together(seed: int, tmp_path: Path) -> None:
    """Nothing legitimate is refused, nothing impossible released, and the verifier agrees."""
    random = np.random.default_rng(seed)
    source = woven(150, seed, gaps=seed % 2 == 1)
    texts = tuple(random.choice(WOVEN, 7, replace=False).tolist())
    made = kept(source, texts, seed)
    assert not [text for text in texts if breaks(text, table_of(made))]
    assert sorted(table_of(made)["seen"]) == sorted(source["seen"])
    rows = read_table(source).patients
    assert rows is not None
    outcome = verify(write(made, tmp_path / "out"), Source(pl.DataFrame(), rows))
    assert not outcome.failures


def test_the_verifier_refutes_a_row_that_breaks_a_stated_relation(tmp_path: Path) -> None:
    import json

    from leeward.release.tables import sha256_of

    out = write(run(planted(), k=20, relations=PLANTED), tmp_path / "out")
    path = out / "share" / "data" / "table.parquet"
    good = pl.read_parquet(path)
    broken = {
        "recurrence": good["death"] + 1,
        "copy": good["copy"].shift(1, fill_value=0),
        "class": good["class"].shift(1, fill_value=0),
        "cycles": good["cycles"] * 0,
        "age": good["age"] * 0 + 39,
    }
    for name, values in broken.items():
        good.with_columns(values.alias(name)).write_parquet(path)
        manifest = json.loads((out / "share" / "release.json").read_text())
        manifest["files"][0]["sha256"] = sha256_of(path)
        (out / "share" / "release.json").write_text(json.dumps(manifest))
        assert "relations" in [check.name for check in verify(out).failures], name


def test_the_verifier_refutes_a_stated_relation_that_the_source_breaks(tmp_path: Path) -> None:
    source = planted()
    out = write(run(source, k=20), tmp_path / "out")
    rows = read_table(source).patients
    assert rows is not None
    assert verify(out, Source(pl.DataFrame(), rows)).passed
    other = rows.with_columns(copy=pl.col("copy").shift(1, fill_value=0))
    assert "relations" in [check.name for check in verify(out, Source(pl.DataFrame(), other)).failures]
