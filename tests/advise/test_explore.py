"""Exploring: a point is the release that `protect` makes; stopped and gone on is uninterrupted; failures are shown."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.cases import cohort_of_events, cohort_of_table, events

import leeward as lw
from leeward.advise.frontier import Spot, by_attacker, frontier, spots_of
from leeward.advise.grid import parse_variations, points_of
from leeward.advise.utility.measure import prepare, utility_of
from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.release.aside import alone_in
from leeward.release.spec import Spec
from leeward.runs import explore as story
from leeward.runs.protect import method_of

METHOD = {"name": "disassociation", "k": 3, "m": 2, "policy": "hierarchy:1"}
PLAN: dict[str, Any] = {
    "threshold": {"max": 0.34},
    "plan": [{"counts": {"of": "hierarchy:1", "from": 5}}, {"counts": {"from": 5}}],
}


def spec(**changes: Any) -> Spec:
    from leeward.release.spec import SourceSpec

    return Spec(source=SourceSpec(format="memory", name="cohort"), method={**METHOD, **changes})


def plan() -> Any:
    from leeward.runs.specs import plan_of

    return plan_of(PLAN)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_point_is_protect_and_measure_bit_for_bit(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    found = lw.explore(
        spec(),
        tmp_path / "e",
        vary={"k": [3, 4]},
        methods=("constraints",),
        plan=plan(),
        cohort=cohort,
        keep=True,
    )
    assert found.points.height == 4 and set(found.points["status"]) == {"verified"}
    prepared = prepare(plan().lines, cohort)
    for row in found.points.to_dicts():
        method = json.loads(row["spec"])
        (point,) = [
            p for p in points_of(METHOD, {"k": [method["k"]]}, ("constraints",)) if p.name == method["name"]
        ]
        result = lw.protect(cohort, method_of(method), tmp_path / point.key, seed=row["seed"])
        assert digests(tmp_path / "e" / "releases" / point.key / "share") == digests(
            tmp_path / point.key / "share"
        )
        kept = utility_of(prepared, result.release)
        assert [row["line_1"], row["line_2"]] == [each.value for each in kept]
        assert [row["verdict_1"], row["verdict_2"]] == [each.verdict for each in kept]


def test_measures_of_a_point_are_those_of_protect(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    asked = Spec(source=spec().source, method=METHOD, measure=("are", "mre"))
    lw.explore(asked, tmp_path / "e", vary={"k": [3]}, plan=plan(), cohort=cohort, keep=True)
    (release,) = (tmp_path / "e" / "releases").iterdir()
    result = lw.protect(cohort, method_of(METHOD), tmp_path / "r", seed=1, measures=("are", "mre"))
    assert json.loads((release / "custody" / "measures.json").read_text()) == json.loads(
        (result.path / "custody" / "measures.json").read_text()
    )


def test_stopped_and_gone_on_is_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = cohort_of_events()
    whole: dict[str, Any] = {"vary": {"k": [3, 4, 5]}, "plan": plan(), "cohort": cohort, "repeat": 2}
    lw.explore(spec(), tmp_path / "whole", **whole)
    real, tried = story._Job.tried, []

    def stops(self: Any, point: Any) -> Any:
        if len(tried) == 2:
            raise KeyboardInterrupt
        tried.append(point)
        return real(self, point)

    monkeypatch.setattr(story._Job, "tried", stops)
    with pytest.raises(KeyboardInterrupt):
        lw.explore(spec(), tmp_path / "stopped", threads=1, **whole)
    assert len(list((tmp_path / "stopped" / "points").glob("*.json"))) == 2
    assert not (tmp_path / "stopped" / "explore.parquet").exists()
    monkeypatch.setattr(story._Job, "tried", real)
    lw.explore(spec(), tmp_path / "stopped", **whole)
    for name in ("explore.parquet", "explore.html", "settings.json"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert list((tmp_path / "whole" / "releases").iterdir()) == []


@pytest.mark.parametrize(
    "damage", [b'{"k": 3', b"\xff", b"[" * 9999, b"[]", b'{"k": "x"}', b'{"lines": [1, 2]}']
)
def test_a_damaged_point_is_told(damage: bytes, tmp_path: Path) -> None:
    given: dict[str, Any] = {"vary": {"k": [3]}, "plan": plan(), "cohort": cohort_of_events()}
    lw.explore(spec(), tmp_path / "e", **given)
    (point,) = (tmp_path / "e" / "points").glob("*.json")
    whole = point.read_bytes()
    point.write_bytes(damage)
    with pytest.raises(BadInput, match=f"{point.name}: not what was stored"):
        lw.explore(spec(), tmp_path / "e", **given)
    point.unlink()
    lw.explore(spec(), tmp_path / "e", **given)
    assert point.read_bytes() == whole
    (tmp_path / "e" / "settings.json").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="other data"):
        lw.explore(spec(), tmp_path / "e", **given)


def test_another_exploration_is_not_gone_on_with(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    lw.explore(spec(), tmp_path / "e", vary={"k": [3]}, plan=plan(), cohort=cohort)
    with pytest.raises(BadInput, match="other data, points or analyses"):
        lw.explore(spec(), tmp_path / "e", vary={"k": [4]}, plan=plan(), cohort=cohort)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(BadInput, match="is not an exploration"):
        lw.explore(spec(), tmp_path / "mine", vary={"k": [3]}, plan=plan(), cohort=cohort)


def test_an_exploration_goes_on_whatever_the_order_of_its_settings(tmp_path: Path) -> None:
    """Versions write the keys of `settings.json`, and the fields of the plan's lines in it, in orders of their own."""
    given: dict[str, Any] = {"vary": {"k": [3]}, "plan": plan(), "cohort": cohort_of_events()}
    lw.explore(spec(), tmp_path / "e", **given)
    file = tmp_path / "e" / "settings.json"
    settings = json.loads(file.read_text())
    titles, fields = zip(*(line.split(" {") for line in settings["lines"]), strict=True)
    turned = ["{" + repr(dict(reversed(ast.literal_eval("{" + each).items())))[1:] for each in fields]
    lines = [f"{title} {each}" for title, each in zip(titles, turned, strict=True)]
    assert lines != settings["lines"]
    file.write_text(json.dumps(dict(reversed({**settings, "lines": lines}.items()))))
    lw.explore(spec(), tmp_path / "e", **given)
    file.write_text(json.dumps({**settings, "lines": [*lines[1:], f"{lines[0]}x"]}))
    with pytest.raises(BadInput, match="other data, points or analyses"):
        lw.explore(spec(), tmp_path / "e", **given)


def test_a_folder_that_another_process_explores_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    with alone_in(tmp_path / "e"), pytest.raises(BadInput, match="another leeward explore is using it"):
        lw.explore(spec(), tmp_path / "e", vary={"k": [3]}, plan=plan(), cohort=cohort_of_events())
    assert not list((tmp_path / "e").iterdir())


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    found = lw.explore(spec(), tmp_path / "e", vary={"k": [3]}, plan=plan(), cohort=cohort_of_events())
    assert found.points["status"].to_list() == ["verified"]


@pytest.mark.parametrize(
    "values", ["k=2,x", "k=1e400", "k=2;m=1", "k=2,99999999999999999999", "k=0", "k=true"]
)
def test_every_value_is_checked_before_the_first_point(tmp_path: Path, values: str) -> None:
    with pytest.raises(BadInput, match=r"^--vary k, value \d: `k` must be a whole number"):
        lw.explore(spec(), tmp_path / "e", vary=parse_variations([values]), cohort=cohort_of_events())
    assert not (tmp_path / "e").exists()


def test_values_that_fit_are_taken() -> None:
    fine = {"policy": ["hierarchy:1", "none", {"codes": [["401.9"]]}], "m": [2]}
    assert len(points_of(METHOD, fine)) == 3
    with pytest.raises(BadInput, match="--vary m, value 2: `m` must be"):
        points_of(METHOD, {**fine, "m": [2, 2.5]})


def test_a_point_without_a_release_is_shown_as_such(tmp_path: Path) -> None:
    found = lw.explore(
        spec(),
        tmp_path / "e",
        vary={"k": [3, 61]},
        methods=("trajectories",),
        plan=plan(),
        cohort=cohort_of_events(),
    )
    by_k = {(row["method"], row["k"]): row for row in found.points.to_dicts()}
    assert by_k["disassociation", 3]["status"] == "verified"
    assert (
        by_k["disassociation", 61]["status"] == "cannot be met"
        and by_k["disassociation", 61]["line_1"] is None
    )
    page = found.page.read_text()
    assert "Runs without a release" in page and "cannot be met" in page


def test_the_page_is_offline_and_has_no_script(tmp_path: Path) -> None:
    found = lw.explore(
        spec(), tmp_path / "e", vary={"k": [3, 5]}, plan=plan(), cohort=cohort_of_events(), repeat=2
    )
    page = found.page.read_text()
    assert "default-src 'none'" in page and "<script" not in page
    assert (
        not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)", page)
        and "@import" not in page
        and "url(" not in page
    )
    assert page.count("<svg") >= 4 and "threshold 0.34" in page and "k = 5" in page
    assert oct(found.folder.stat().st_mode)[-3:] == "700"


def test_no_canary_is_in_an_exploration(tmp_path: Path) -> None:
    """Identifiers and rare codes of the source are in no file of it."""
    rare = events().head(1).with_columns(patient=pl.lit("canary-7"), code=pl.lit("E970.1"))
    data = pl.concat([events(), rare])
    cohort = lw.read(data, columns={"patient": "patient", "code": "code"}, vocabulary="icd9")
    found = lw.explore(
        spec(), tmp_path / "e", vary={"k": [3]}, methods=("constraints",), plan=plan(), cohort=cohort
    )
    for path in found.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"canary" not in content and b"E970" not in content, path.name


def test_a_table_is_explored_by_its_models(tmp_path: Path) -> None:
    cox = {"cox": {"time": "days", "event": "died", "event_value": 1, "covariates": ["age"]}}
    asked = Spec(source=spec().source, method={"name": "condensation", "k": 5}, plan=(cox,))
    found = lw.explore(
        asked, tmp_path / "e", vary={"k": [5, 10]}, methods=("k-anonymity",), cohort=cohort_of_table()
    )
    assert set(found.points["status"]) == {"verified"} and found.points["line_1"].is_between(0, 1).all()
    assert found.points["floor_1"].n_unique() == 1


def test_releases_are_compared(tmp_path: Path) -> None:
    events().write_csv(tmp_path / "events.csv")
    for name, k in (("a", 3), ("b", 6)):
        (tmp_path / f"{name}.yaml").write_text(
            "source: {path: events.csv, columns: {patient: patient, code: code}}\n"
            f"method: {{name: disassociation, k: {k}, m: 2, policy: 'hierarchy:1'}}\n"
        )
        assert status_of(["protect", str(tmp_path / f"{name}.yaml"), "-o", str(tmp_path / name)]) == 0
    before = digests(tmp_path / "a" / "share")
    assert status_of(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "c")]) == 0
    assert digests(tmp_path / "a" / "share") == before
    assert not [*(tmp_path / "c").glob("explore.*")], "its page and table are named for the command"
    page = (tmp_path / "c" / "compare.html").read_text()
    assert "b: disassociation, k = 6, m = 2, policy = hierarchy:1" in page and "max_cluster" not in page
    assert "<th>repeat</th>" not in page
    (tmp_path / "b" / "share" / "README.md").write_text("Nothing can be found.\n")
    found = lw.compare([tmp_path / "a", tmp_path / "b"], tmp_path / "d")
    assert found.points["status"].to_list() == ["verified", "refuted"]


def test_the_command_explores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events().write_csv(tmp_path / "events.csv")
    (tmp_path / "spec.yaml").write_text(
        "source: {path: events.csv, columns: {patient: patient, code: code}}\n"
        "method: {name: constraints, k: 3, m: 2, policy: 'hierarchy:1'}\n"
    )
    arguments = [
        "explore",
        str(tmp_path / "spec.yaml"),
        "--vary",
        "k=3,5",
        "--csv",
        "-o",
        str(tmp_path / "e"),
    ]
    assert status_of(arguments) == 0
    assert "2 runs, 2 verified" in capsys.readouterr().out and (tmp_path / "e" / "explore.csv").is_file()
    assert status_of([*arguments[:2], "--vary", "q=3", "-o", str(tmp_path / "f")]) == 2
    assert "has the parameter `q`" in capsys.readouterr().err and not (tmp_path / "f").exists()


def test_the_grid_varies_what_a_method_has() -> None:
    points = points_of(METHOD, {"k": [2, 5], "m": [1, 2]}, ("trajectories", "constraints"), 2)
    assert len(points) == 2 * (4 + 2 + 4) and len({point.key for point in points}) == len(points)
    assert points[0].method == {**METHOD, "k": 2, "m": 1} and (points[0].seed, points[1].seed) == (1, 2)
    assert parse_variations(["k=2,5", "policy=hierarchy:1,none", "nested=true"]) == {
        "k": [2, 5], "policy": ["hierarchy:1", "none"], "nested": [True],
    }  # fmt: skip
    for bad in (["k"], ["k=1", "k=2"]):
        with pytest.raises(BadInput):
            parse_variations(bad)
    with pytest.raises(BadInput, match="did you mean `constraints`"):
        points_of(METHOD, {"k": [2]}, ("constraint",))


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), max_size=12))
def test_the_frontier_is_what_no_other_beats(points: list[tuple[int, int]]) -> None:
    spots = [
        Spot("m", str(i), risk, value, value, value, None, "serves", 1)
        for i, (risk, value) in enumerate(points)
    ]
    beaten = {
        i for i, (risk, value) in enumerate(points)
        if any(r <= risk and v >= value and (r, v) != (risk, value) for r, v in points)
    }  # fmt: skip
    assert {int(spot.spec) for spot in frontier(spots)} == set(range(len(points))) - beaten


def test_each_attacker_has_a_frontier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Releases for unlike attackers do not beat one another; who uses the algorithm finds more than 1/k says."""
    events().write_csv(tmp_path / "events.csv")
    specs = {
        "usual": "disassociation, k: 3, m: 2, attacker: operation",
        "strict": "disassociation, k: 3, m: 2, attacker: algorithm",
        "generalized": "constraints, k: 3, m: 2, policy: 'hierarchy:1'",
    }
    for name, method in specs.items():
        (tmp_path / f"{name}.yaml").write_text(
            "source: {path: events.csv, columns: {patient: patient, code: code}}\n"
            f"method: {{name: {method}}}\n"
        )
        assert status_of(["protect", str(tmp_path / f"{name}.yaml"), "-o", str(tmp_path / name)]) == 0
    capsys.readouterr()
    (tmp_path / "plan.yaml").write_text("plan: [{counts: {from: 5}}]\n")
    outs = [str(tmp_path / name) for name in specs]
    asked = ["--plan", str(tmp_path / "plan.yaml"), "-o", str(tmp_path / "c")]
    assert status_of(["compare", *outs, *asked]) == 0
    found = pl.read_parquet(tmp_path / "c" / "compare.parquet").to_dicts()
    spots = by_attacker(spots_of(found, 1))
    knows = [
        "2 codes of a patient, but not the algorithm",
        "2 codes of a patient and the algorithm",
        "2 codes of a patient",
    ]
    assert list(spots) == knows
    assert [[(json.loads(s.spec)["folder"], s.at_least) for s in spots[each]] for each in knows] == [
        [("usual", False)], [("usual", True), ("strict", False)], [("generalized", False)],
    ]  # fmt: skip
    usual, strict = spots[knows[1]]
    assert usual.risk == 0.5 > strict.risk == 1 / 3
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if "for attackers who know" in line]
    assert lines == [f"  the frontier for attackers who know {each}" for each in knows]
    assert "    risk at least 0.5  kept" in printed
    page = (tmp_path / "c" / "compare.html").read_text()
    assert [page.count(f"<h3>Attackers who know {each}</h3>") for each in knows] == [1, 1, 1]
    within = page[page.index(f"<h3>Attackers who know {knows[1]}</h3>") :].partition("<div")[0]
    assert "strict: " in within and "usual: " not in within


def test_a_sample_of_a_table_is_of_its_rows_and_always_the_same() -> None:
    from tests.laws.cases import cohort_of_table

    from leeward.runs.explore import sampled

    cohort = cohort_of_table()
    some, again = sampled(cohort, 20).patients, sampled(cohort, 20).patients
    assert cohort.patients is not None and some is not None and again is not None
    assert (
        some.equals(again) and some.height == 20 and some.join(cohort.patients, on=some.columns).height >= 20
    )
    assert sampled(cohort, 60) is cohort
