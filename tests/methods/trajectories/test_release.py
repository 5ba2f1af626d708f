"""From a cohort to a verified release: contract, diversity, policies, partitions, errors."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter

import polars as pl
import pytest
from tests.methods.trajectories.frames import HIERARCHY, cohort, listed, with_rare_codes
from tests.oracles import trajectories as oracle

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.trajectories import Trajectories, parts
from leeward.methods.trajectories.report import costs, glance
from leeward.runs import protect as workflow
from leeward.runs.measure import measure


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("hierarchy") / "codes.csv"
    path.write_text(HIERARCHY)
    return str(path)


def released(tmp_path, source, **parameters):
    method = Trajectories(**{"clustering": "alignment", **parameters})
    return workflow.protect(source, method, tmp_path / "out", seed=1, threads=2)


def test_contract_of_the_files(tmp_path, hierarchy):
    result = released(tmp_path, cohort(), k=4, hierarchy=hierarchy, payload=("dna",))
    data = result.release.share / "data"
    assert sorted(p.name for p in data.iterdir()) == [
        "age_hierarchy.csv", "code_hierarchy.csv", "codes.csv", "codes.parquet", "records.csv", "records.parquet",
        "trajectories.csv", "trajectories.parquet",
    ]  # fmt: skip
    pairs = pl.read_parquet(data / "trajectories.parquet")
    assert pairs.schema == {"record": pl.Int64, "position": pl.Int64, "code": pl.String, "age": pl.String}
    assert pl.read_parquet(data / "records.parquet").columns == ["record", "dna"]
    with (data / "code_hierarchy.csv").open(newline="") as file:
        assert list(csv.reader(file))[:3] == [["node", "parent"], ["Any", ""], ["C1", "Any"]]
    assert result.verification.passed and result.verification["owners"].figures["matched"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"joining": "thesis"},
        {"joining": "thesis", "weights": (0.8, 0.2)},
        {"ages": "1-128"},
        {"ages": "hipaa"},
        {"payload": ("sex",), "sensitive_column": "sex", "diversity": 2},
        {"sensitive": ("a",), "diversity": 2},
        {"policy": "hierarchy:1", "widest_age": 8},
    ],
    ids=lambda p: "-".join(p),
)
def test_every_release_is_verified_against_its_source(tmp_path, hierarchy, parameters):
    result = released(tmp_path, cohort(), k=4, hierarchy=hierarchy, **parameters)
    assert result.verification.passed
    assert result.measures["loss"]["total"] == pytest.approx(result.measures["method"]["total"])
    assert "At a glance" in result.report.read_text()


def test_codes_without_a_hierarchy_of_which_some_are_rare_are_measured(tmp_path):
    source = dataclasses.replace(with_rare_codes(), vocabulary="flat")
    result = released(tmp_path, source, k=4)
    assert listed(result.path) == {"*", "250.00", "401.9"}
    assert not [notice for notice in result.measures["notices"] if "not measured" in str(notice)]
    assert result.measures["loss"]["total"] == pytest.approx(result.measures["method"]["total"])
    assert 0 < result.measures["usable"]["usable"] <= result.measures["usable"]["at_most"] < 1


def test_releases_in_parts_are_verified_and_keep_nearly_as_much(tmp_path, hierarchy, monkeypatch):
    whole = released(tmp_path / "whole", cohort(), k=4, hierarchy=hierarchy)
    monkeypatch.setattr(parts, "LARGEST", 40)
    further = {"payload": ("sex",), "sensitive_column": "sex", "diversity": 2}
    for name, parameters in (
        ("parts", {}),
        ("diverse", further),
        ("codes", {"sensitive": ("a",), "diversity": 2}),
    ):
        result = released(tmp_path / name, cohort(), k=4, hierarchy=hierarchy, **parameters)
        assert result.verification.passed and result.measures["method"]["partitions"] > 2
        if name == "parts":
            assert result.measures["loss"]["total"] < 1.25 * whole.measures["loss"]["total"]


def test_sensitive_codes_are_never_published_alone(tmp_path, hierarchy):
    result = released(tmp_path, cohort(), k=4, hierarchy=hierarchy, sensitive=("a",), diversity=2)
    published = set(result.release.table("trajectories.parquet").collect()["code"])
    assert "a" not in published and published <= {
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
        "S1",
        "S2",
        "S3",
        "C1",
        "C2",
        "Any",
    }


def test_too_frequent_a_sensitive_value(tmp_path, hierarchy):
    source = cohort()
    patients = source.patients.with_columns(sex=pl.when(pl.col("patient") < 100).then(1).otherwise(2))
    source = dataclasses.replace(source, patients=patients)
    with pytest.raises(GuaranteeUnreachable, match="more than 1 in 2"):
        released(
            tmp_path, source, k=4, hierarchy=hierarchy, payload=("sex",), sensitive_column="sex", diversity=2
        )
    assert not (tmp_path / "out").exists()


def test_policy_keeps_generalizations_inside_constraints(tmp_path, hierarchy):
    result = released(tmp_path, cohort(), k=4, hierarchy=hierarchy, policy="hierarchy:1", widest_age=4)
    pairs = result.release.table("trajectories.parquet").collect()
    assert set(pairs["code"]) <= {"a", "b", "c", "d", "e", "f", "g", "S1", "S2", "S3"}
    spans = [age.split("-") for age in set(pairs["age"])]
    assert max(int(span[-1]) - int(span[0]) for span in spans) <= 3


def test_losses_are_those_of_the_definition(tmp_path, hierarchy):
    """ILM and ALM by each member's own pairs (the oracle's maps) equal the closed form that is reported."""
    source = cohort(60)
    result = released(tmp_path, source, k=3, hierarchy=hierarchy, joining="thesis", ages="0-127")
    lens = source.trajectories()
    records = [tuple((code, str(age)) for code, age in lens.record(r)) for r in range(len(lens))]
    rows = [line.split(",") for line in HIERARCHY.splitlines()[1:]]
    icd = oracle.Tree([(node, parent or None) for node, parent in rows])
    ages = oracle.full_binary(0, 127)
    clusters = oracle.mdav(records, 3, icd, ages, joining="thesis")
    ilm, alm = oracle.losses(records, clusters, icd, ages)
    assert result.measures["loss"]["ilm"] == pytest.approx(float(ilm))
    assert result.measures["loss"]["alm"] == pytest.approx(float(alm))
    published = [rep for members, rep in clusters for _ in members]
    expected, queries = oracle.average_relative_error(records, published, icd, ages, -(-len(records) // 20))
    again = measure(result.path, source, [{"avgre": {"min_support": 0.05}}])["avgre"]
    assert again["queries"] == queries and again["avgre"] == pytest.approx(float(expected))


def test_usable_pairs_are_those_of_the_definition(tmp_path, hierarchy):
    """Counted pair by pair from the files; nobody can have more than the cells that k patients share."""
    source = cohort(120)
    result = released(tmp_path, source, k=3, hierarchy=hierarchy)
    found = result.measures["usable"]
    shown = result.release.table("trajectories.parquet").collect()
    lens = source.trajectories()
    total = len(lens.values)
    chapters = {"C1", "C2"}

    def years(age):
        low, _, high = age.partition("-")
        return int(high or low) - int(low) + 1

    pairs = [(code, years(age)) for code, age in zip(shown["code"], shown["age"], strict=True)]
    fine = [code not in chapters | {"Any"} and width <= 8 for code, width in pairs]
    assert found["usable"] == pytest.approx(sum(fine) / total)
    assert found["chapter"] == pytest.approx(sum(c != "Any" and w <= 16 for c, w in pairs) / total)
    assert found["root"] == pytest.approx(sum(code == "Any" for code, _ in pairs) / total)
    assert found["lost"] == pytest.approx(1 - len(pairs) / total)
    with_one = {record for record, usable in zip(shown["record"], fine, strict=True) if usable}
    assert found["none"] == pytest.approx(1 - len(with_one) / len(lens))
    parent = dict(row.split(",")[:2] for row in HIERARCHY.splitlines()[1:])
    holders = {}
    for r in range(len(lens)):
        held = Counter(
            (code if parent[code] in chapters else parent[code], age // 8) for code, age in lens.record(r)
        )
        for cell, count in held.items():
            for j in range(count):
                holders.setdefault((cell, j), []).append(r)
    assert found["at_most"] == pytest.approx(sum(len(h) for h in holders.values() if len(h) >= 3) / total)
    assert found["usable"] <= found["at_most"] <= 1


def test_same_seed_same_bytes_whatever_the_threads(tmp_path, hierarchy):
    shares = []
    for threads in (1, 3):
        out = tmp_path / str(threads)
        method = Trajectories(k=3, hierarchy=hierarchy, clustering="alignment")
        workflow.protect(cohort(), method, out, seed=7, threads=threads)
        shares.append({p.name: p.read_bytes() for p in (out / "share" / "data").iterdir()})
    assert shares[0] == shares[1]


ODD = ((900, "a", -0.4), (900, "b", 300.0), (901, "b", None))


def test_odd_ages_are_refused_by_row(tmp_path, hierarchy):
    source = cohort(40, extra=ODD)
    n = source.events.height
    with pytest.raises(BadInput) as problem:
        released(tmp_path, source, k=3, hierarchy=hierarchy)
    assert "1 rows without a readable age" in str(problem.value)
    assert f"before birth (row {n - 2})" in str(problem.value)
    assert f"0–127 years (row {n - 1})" in str(problem.value)


def test_odd_ages_can_be_left_out_and_are_told(tmp_path, hierarchy):
    result = released(tmp_path, cohort(40, extra=ODD), k=3, hierarchy=hierarchy, odd_ages="leave out")
    assert result.release.records == 40 and result.verification.passed
    told = " ".join(notice["message"] for notice in result.measures["notices"])
    assert "rows without a readable age" in told and "2 patients have no event with a usable age" in told


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 1}, "`k` must be a whole number of at least 2; got 1."),
        ({"k": 3, "weights": (0.5, 0.6)}, "sum to 1"),
        ({"k": 3, "weights": (-0.5, 1.5)}, "at least 0"),
        ({"k": 3, "diversity": 2}, "goes with"),
        ({"k": 3, "sensitive_column": "sex", "diversity": 2}, "one of the `payload`"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(BadInput, match=message):
        Trajectories(**parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,parent\nAny,\na,Any\n", "are not in this hierarchy"),
        ("node,parent\nAny,\nx,y\ny,x\n", "its own ancestor"),
        ("node,parent\nAny,\nOther,\na,Any\n", "2 roots"),
    ],
)
def test_bad_hierarchies(tmp_path, text, message):
    file = tmp_path / "codes.csv"
    file.write_text(text)
    with pytest.raises(BadInput, match=message):
        released(tmp_path, cohort(30), k=3, hierarchy=str(file))
    assert not (tmp_path / "out").exists()


def test_fewer_than_k_patients(tmp_path, hierarchy):
    with pytest.raises(GuaranteeUnreachable, match="fewer than k = 50"):
        released(tmp_path, cohort(20), k=50, hierarchy=hierarchy)


def test_no_ages(tmp_path, hierarchy):
    source = cohort(20)
    with pytest.raises(BadInput, match="need the age"):
        released(
            tmp_path, dataclasses.replace(source, events=source.events.drop("age")), k=3, hierarchy=hierarchy
        )


def test_hierarchy_made_of_the_datas_codes_lists_only_those_that_k_patients_have(tmp_path):
    result = released(tmp_path, with_rare_codes(), k=3)
    names = listed(tmp_path / "out")
    assert {"250.00", "401.9"} <= names and not {"250.01", "250.02", "780.6"} & names
    assert result.verification.passed and result.verification["hierarchy_lists_common_codes"].passed
    assert result.measures["loss"]["total"] == pytest.approx(result.measures["method"]["total"])


def test_node_above_rare_codes_is_listed_where_k_patients_are_below_it(tmp_path):
    source = with_rare_codes()
    events = source.require_events().filter(pl.col("code").cast(pl.String) != "250.00")
    released(tmp_path, dataclasses.replace(source, events=events), k=3)
    names = listed(tmp_path / "out")
    assert "250.0" in names and not {"250.01", "250.02"} & names


def test_stated_list_of_codes_is_published_whole(tmp_path):
    codes = ("250.00", "250.01", "250.02", "401.9", "780.6", "786.05")
    result = released(tmp_path, with_rare_codes(), k=3, codes=codes)
    assert set(codes) <= listed(tmp_path / "out") and result.verification.passed


def test_diversity_of_codes_needs_a_stated_list(tmp_path):
    with pytest.raises(BadInput, match="must be stated"):
        released(tmp_path, with_rare_codes(), k=3, sensitive=("401.9",), diversity=2)


@pytest.mark.parametrize(("usable", "tone"), [(0.05, "bad"), (0.163, "warn"), (0.6, "good")])
def test_usable_pairs_have_one_colour_in_the_report(tmp_path, hierarchy, usable, tone):
    """What the first screen warns of has no second card, of another colour, below it."""
    release = released(tmp_path, cohort(), k=4, hierarchy=hierarchy).release
    first, *_ = costs(release, {"usable": {"usable": usable}}).figures
    lost = {"ilm": 0.3, "alm": 0.2, "kept_pairs": 0.8, "levels": {"code": (), "age": ()}}
    (tiles,) = glance(release, lost).parts
    assert first.tone == tone
    assert first.value not in {tile.value for tile in tiles.tiles}
    (scale,) = [tile.note for tile in tiles.tiles if "ILM" in tile.label]
    assert scale.startswith("on a scale from 0 %"), "not as if 0 % were exact and 100 % suppressed"
