"""Each study runs to its page on little made-up data, and every cell of its tables says something."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.studies.pages import faults_of, faults_of_csv

from leeward.cohort import read

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def studies_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Studies are scripts: they find each other in their folder."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in {"common", "benchmarks"}]:
        del sys.modules[name]


def test_the_committed_pages_have_no_empty_cell() -> None:
    pages = [
        *(ROOT / "docs" / "benchmarks").glob("*.md"),
        *(ROOT / "docs" / "studies").rglob("*.md"),
    ]
    assert len(pages) > 6
    found = {page.name: faults_of(page.read_text(encoding="utf-8")) for page in pages}
    found |= {str(file): faults_of_csv(file.read_text(encoding="utf-8")) for file in files_of_pages()}
    assert {name: faults for name, faults in found.items() if faults} == {}


def files_of_pages() -> list[Path]:
    """The tables in files beside the pages of benchmarks and studies."""
    return [*(ROOT / "docs" / "benchmarks").glob("*/*.csv"), *(ROOT / "docs" / "studies").glob("*/*.csv")]


def test_long_tables_are_files_and_each_is_linked_once(tmp_path: Path) -> None:
    from common import save

    pages = [*(ROOT / "docs" / "benchmarks").glob("*.md"), *(ROOT / "docs" / "studies").glob("*.md")]
    linked = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        save(tmp_path / page.name, text)
        assert (tmp_path / page.name).read_text(encoding="utf-8") == text, page
        for rows, name in re.findall(
            rf"^Table \((\d+) rows\): \[.*\]\({page.stem}/(.+)\)$", text, re.MULTILINE
        ):
            file = page.with_suffix("") / name
            assert len(file.read_text(encoding="utf-8").splitlines()) == int(rows) + 1
            linked.append(file)
    assert sorted(linked) == sorted(files_of_pages())


def test_a_long_table_becomes_a_file(tmp_path: Path) -> None:
    from common import MOST_ROWS, save, table

    page = tmp_path / "page.md"
    short = table(["a"], [[0]] * MOST_ROWS)
    one, two = (table(["a", "b"], [[name, "1 \\| 2"]] * (MOST_ROWS + 1)) for name in "xy")
    save(page, f"# Page\n\n## Part, 1 %\n\n{short}\n\n{one}\n\n{two}\n\nEnd\n")
    link = "Table (13 rows): [part-1{0}.csv](page/part-1{0}.csv)"
    assert (
        page.read_text()
        == f"# Page\n\n## Part, 1 %\n\n{short}\n\n{link.format('')}\n\n{link.format('-2')}\n\nEnd\n"
    )
    assert (tmp_path / "page" / "part-1.csv").read_text() == "a,b\n" + "x,1 | 2\n" * 13
    save(page, page.read_text().replace(link.format(""), two))  # a part that is measured again
    assert (tmp_path / "page" / "part-1.csv").read_text() == "a,b\n" + "y,1 | 2\n" * 13
    save(page, page.read_text().replace(link.format("-2"), ""))
    assert [file.name for file in (tmp_path / "page").iterdir()] == ["part-1.csv"]


def test_a_page_with_a_fault_is_found() -> None:
    page = "| | a |\n| --- | ---: |\n| x | {} |\n"
    assert faults_of(page.format("1.0")) == []
    for wrong in ("nan", "", "inf %", "None", "0.1 ± nan"):
        assert len(faults_of(page.format(wrong))) == 1, wrong
        assert len(faults_of_csv(f",a\nx,{wrong}\n")) == 1, wrong
    assert faults_of_csv(",a\nx,1.0\n") == []
    assert faults_of_csv(",a\nx\n") == ["row 1: 1 cells"]


def test_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_queries as study

    monkeypatch.setattr(study, "NOTES", 240)
    monkeypatch.setattr(study, "PATIENTS", 120)
    monkeypatch.setattr(study, "SUPPORTS", (3, 4, 5, 6, 8))
    monkeypatch.setattr(study, "ASKED", 20)
    page = study.page(None, tmp_path, "command")
    assert faults_of(page) == []
    assert page.count("\n|") > 20


def test_queries_with_seasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import leeward as lw
    import study_queries_seasons as study
    from leeward.synthetic.notes import NotePlan, write_notes

    for name, value in {"NOTES": 160, "PATIENTS": 80, "SEEDS": 2, "SUPPORTS": (2, 3), "LEAST": 3}.items():
        monkeypatch.setattr(study, name, value)
    monkeypatch.setattr(study, "STRENGTHS", (0.0, 2.0))
    page = study.seasons()
    assert faults_of(page) == []
    assert page.count("\n|") == 3 * (2 + 4)
    write_notes(tmp_path / "notes.parquet", NotePlan(80, 160, seed=1, seasons=1.0))
    given = {"members": ("rules", "dictionary"), "i2b2": "safe-harbor", "zip3": ("hhs",), "seed": 1}
    lw.annotate(tmp_path / "notes.parquet", tmp_path / "out", **given)
    whole = pl.read_parquet(tmp_path / "out" / "custody" / "table.parquet")
    facts = pl.read_csv(tmp_path / "out" / "share" / "i2b2" / "observation_fact.csv")
    page = study.harbor_of(whole, facts, tmp_path / "indexes")
    assert faults_of(page) == []
    errors = {
        cells[1].strip(): cells[3].strip() for line in page.splitlines() if len(cells := line.split("|")) > 5
    }
    assert errors["year"] == errors["sex"] == "0.000" < errors["month"]  # the rule takes months alone
    known = study.notes_of(facts)
    alone, stated = study.alone_in(known, study.SHARED)
    seen: dict[tuple[str, ...], set[int]] = {}
    for row in known.iter_rows(named=True):
        values = tuple(row[name] for name in study.SHARED)
        if None not in values:
            seen.setdefault(values, set()).add(row["patient_num"])
    assert alone == len(set().union(*(who for who in seen.values() if len(who) == 1))) > 0
    assert stated == len(set().union(*seen.values()))
    assert faults_of(study.budgets()) == []
    (tmp_path / "page.md").write_text(f"# Page\n\n{study.BEFORE}\nleaks\n", encoding="utf-8")
    for body in ("first", "second"):
        study.put("budgets", body, tmp_path / "page.md")
    found = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "first" not in found and found.index("second") < found.index(study.BEFORE)


def test_censoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_censoring as study

    monkeypatch.setattr(study, "PATIENTS", 30_000)
    monkeypatch.setattr(study, "SEEDS", (1, 2))
    (tmp_path / "data").mkdir()
    page = "\n".join(study.synthetic_part(tmp_path / "data", tmp_path / "page.md"))
    assert faults_of(page) == []
    assert page.count("\n|") > 20
    assert [*tmp_path.glob("*.svg")]


def test_censoring_of_the_same_margins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_censoring_margins as study
    from leeward.randomness import Randomness
    from leeward.synthetic.repeats import write_repeats

    write_repeats(tmp_path / "population.parquet", 2_000, seed=1)
    cohort = read(tmp_path / "population.parquet")
    counts = study.counts_of(cohort)
    again = study.cohort_of(counts, np.arange(len(counts)), "again").code_counts()
    assert (again.counts == cohort.code_counts().counts).all()
    dealt = {way: study.deal(counts, way, Randomness.of(1).stream("test")) for way in study.WAYS}
    for each in dealt.values():
        assert ((each > 0) == (counts > 0)).all() and (np.sort(each, axis=0) == np.sort(counts, axis=0)).all()
    spread = {way: each.sum(axis=1).var() for way, each in dealt.items()}
    assert spread["at random"] < spread["half together"] < spread["together"]
    monkeypatch.setattr(study, "WAYS", study.WAYS[1:2])
    monkeypatch.setattr(study, "TABLE_1", {5: study.TABLE_1[5]})
    page = study.section([counts], 100)
    assert faults_of(page) == [] and page.count("\n|") == 2 + 1


def test_trajectories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_trajectories as study

    for name, shape in study.SETS.items():
        monkeypatch.setitem(study.SETS, name, replace(shape, patients=220))
    monkeypatch.setattr(study, "KS", (2, 5))
    page = study.Page()
    sets = study.synthetic(tmp_path)
    study.table_3(page, sets)
    found = study.figures_9_to_11(page, sets)
    levels = study.figures_13_and_14(page, sets)
    errors = study.figure_12(page, sets[:1], tmp_path)
    study.figure_15(page, sets[0])
    assert errors and levels and found
    text = "\n".join(page.lines)
    assert faults_of(text) == []
    assert text.count("\n|") > 20


def test_bounds_of_trajectories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import benchmarks.study_trajectories as trajectories
    import benchmarks.study_trajectories_bounds as study

    from leeward.methods.trajectories import Trajectories
    from leeward.runs.protect import protect
    from leeward.synthetic.trajectories import write_trajectories

    monkeypatch.setattr(study, "KS", (2, 5))
    write_trajectories(tmp_path / "t.parquet", 150, shape="d4-smp", seed=1)
    each = trajectories.Set(
        "d4-smp", trajectories.cohort_of(pl.read_parquet(tmp_path / "t.parquet"), "t", "icd9")
    )
    page = study.baseline_part([each], None)
    assert faults_of(page) == []
    method = Trajectories(k=5, clustering="alignment", joining="thesis", ages="1-128")
    made = protect(each.cohort, method, tmp_path / "made", seed=1)
    baseline, ags = (
        [float(cell.split()[0]) for cell in line.split("|")[2:4]] for line in page.splitlines()[-2:]
    )
    assert ags[1] == round(made.measures["avgre"]["avgre"], 3)  # k = 5: as of the release
    assert baseline[0] > ags[0]
    (tmp_path / "releases").mkdir()
    page = study.pairs_part([each], tmp_path / "releases")
    assert faults_of(page) == []
    cells = {line.split("|")[2].strip(): line.split("|")[3:] for line in page.splitlines()[-4:]}
    assert float(cells["none"][1]) > float(cells["`widest_age: 8`"][1]) <= 8 / 128
    assert float(cells["`policy: hierarchy:1`"][0]) < 1
    page = study.ranges_part([each], tmp_path)
    assert faults_of(page) == []
    assert page.splitlines()[-3].split("|")[3].split()[0] == f"{ags[1]:.3f}"  # one year: as of Fig. 12
    page = study.others_part([each], tmp_path)
    assert faults_of(page) == []
    ilm, alm, codes, ages, both = map(float, page.splitlines()[-1].split("|")[3:8])
    assert 0 < codes < ilm and 0 < ages < alm and both == pytest.approx((codes + ages) / 2, abs=0.001)
    monkeypatch.setattr(study, "SEEDS", (1, 2))
    monkeypatch.setattr(study, "synthetic", lambda folder, seed: [each])
    page = study.seeds_part(tmp_path, None)
    lost = each.loss(each.groups(5, "thesis")).total
    assert (
        f"| d4-smp, thesis | {each.loss(each.groups(2, 'thesis')).total:.3f} ± 0.000 | {lost:.3f} ± 0.000 |"
        in page
    )
    (tmp_path / "page.md").write_text(f"# Page\n\n{study.BEFORE}\nfiles\n", encoding="utf-8")
    for body in ("first", "second"):
        study.put("pairs", "Pairs", "command", body, tmp_path / "page.md")
    found = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "first" not in found
    assert found.index("second") < found.index(study.BEFORE)


def test_disassociation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_disassociation as study
    from leeward.cohort.readers import read
    from leeward.methods.disassociation import method
    from leeward.synthetic.codes import write_codes

    few = {"SIZES": (150, 300), "KS": (2, 25), "REPEAT": 1, "CHAINS": 50, "POLICIES": ("hierarchy:1",)}
    few |= {"LEVELS": ("hierarchy:1", "hierarchy:3"), "SIMILAR": (), "FREQUENT": ("frequency:0.0125",)}
    for name, value in few.items():
        monkeypatch.setattr(study, name, value)
    monkeypatch.setattr(method, "FEW", 0)
    write_codes(tmp_path / "codes.parquet", 300, 70, 4.0, seed=1)
    cohort = study.shuffled(read(tmp_path / "codes.parquet", vocabulary="icd9"), 1)
    part = study.Study("UCI", cohort, tmp_path)
    figures = {name: list(make(part)) for name, (make, _) in study.FIGURES.items()}
    merged = {
        name: [study.merged([row] * min(2, study.FIGURES[name][1])) for row in rows]
        for name, rows in figures.items()
    }
    assert all(merged.values())
    found = {name: {**study.size_of(part), **merged} for name in ("UCI", "synthetic")}
    part = study.Study("two chapters", study.two_chapters(200), tmp_path)
    found["two chapters"] = {**study.size_of(part), "subtrees": list(study.subtrees(part))}
    (tmp_path / "disassociation").mkdir()
    study.write_page(study.rounded(found), tmp_path)
    page = (tmp_path / "disassociation.md").read_text(encoding="utf-8")
    assert faults_of(page) == []
    files = [faults_of_csv(file.read_text(encoding="utf-8")) for file in tmp_path.glob("*/*.csv")]
    assert files and files == [[]] * len(files)


def test_seeds_are_merged_to_means_with_intervals() -> None:
    import study_disassociation as study

    rows = [{"policy": "a", "n": 3, "x": x, "p_x": x, "w": {"1": x}, "none": None} for x in (1.0, 3.0)]
    half = 12.706204736  # t(.975, 1) · √2 / √2
    assert study.merged(rows) == {
        "policy": "a",
        "n": 3,
        "x": [2.0, pytest.approx(half)],
        "p_x": 3.0,
        "w": {"1": [2.0, pytest.approx(half)]},
        "none": None,
    }


def test_a_histogram_without_noise_errs_by_its_cap_alone() -> None:
    from tests.attacks.test_whole_patient import cohort_of

    import dp_histogram

    sets = cohort_of([({}, ["a", "b"])] * 4 + [({}, ["a"])] * 4).code_sets()
    asked = [[np.array([0])], [np.array([0, 1])]]
    assert dp_histogram.histogram_errors(sets, asked, 1e6, 1) == [(0.0, 2), (0.0, 2)]
    one = dp_histogram.capped(sets, 1, np.random.default_rng(1))
    assert one.lengths().tolist() == [1] * 8
    loud = [error for error, _ in dp_histogram.histogram_errors(sets, asked, 1e-3, 1)]
    assert min(loud) > 0


def test_condensation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_condensation as study
    import study_condensation_page as page
    from common import once
    from leeward.cohort.readers import read
    from leeward.synthetic.registry import registry

    known = ("DiagAge", "Gender", "Race")
    plan = study.plan_of("SurvInterval", "VitalStat", 0, ["DiagAge", "Stage", "Gender"], ["DiagAge"])
    small = study.Set(read(registry(500, "colon", 9, seed=1), format="table"), plan, known)
    for name, value in {
        "AT_ONCE": 2,
        "PILOTS": 2,
        "PILOTED": ("colon",),
        "DRAWS": (1, 2),
        "DRAWN": 1,
    }.items():
        monkeypatch.setattr(study, name, value)
    monkeypatch.setattr(study, "MOST", {"colon": 2})
    monkeypatch.setattr(study, "FURTHER", {"alone": 1, "unseen": 1, "attacked": 1, "membership": 1})
    monkeypatch.setattr(study, "made_up", lambda site, seed: small)
    monkeypatch.setattr(page, "bars", lambda name, rows, *given, **options: f"{name}: {len(rows)} bars")
    ready, keep = study.ready(small), tmp_path / "kept.json"
    found = study.found_of(lambda name: ready, ["colon"], 4, keep)
    made = page.page_of(page.Found(found), "python benchmarks/study_condensation.py")
    assert faults_of(made) == []
    for method in study.METHODS:
        models, linked, *_ = [line for line in made.splitlines() if line.startswith(f"| colon | {method} |")]
        assert float(linked.split("|")[3].partition("±")[0]) > 0.2, method
        assert int(models.split("|")[3]) == (1 if found[f"colon/{method}/0"]["fixed"] else 2)
        if method in study.CLASSES:  # classes of K rows and more
            assert int(linked.split("|")[-2]) >= 100, method
    assert {method for method in study.METHODS if found[f"colon/{method}/0"]["fixed"]} == set(study.CLASSES)
    risks = {method: found[f"colon/{method}/0"] for method in ("balanced", "bootstrap")}
    assert min(risks["bootstrap"]["membership"]) > max(risks["balanced"]["membership"])
    assert all(row["time"] > 0.5 for row in risks["bootstrap"]["attacked"])
    monkeypatch.setattr(study, "measured", None)  # whatever is kept is not done again
    assert study.found_of(lambda name: ready, ["colon"], 4, keep) == once(keep, "", dict) | found


def test_condensation_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_condensation_measures as study
    from leeward.cohort.readers import read
    from leeward.synthetic.registry import registry
    from study_condensation_sets import Set, plan_of

    plan = plan_of("SurvInterval", "VitalStat", 0, ["DiagAge", "Stage"], ["DiagAge"])
    small = Set(read(registry(500, "colon", 9, seed=1), format="table"), plan, ("DiagAge", "Gender"))
    few = ("balanced", "k-anonymity, known columns", "bootstrap")
    for name, value in {"METHODS": few, "LEADING": few, "REPEATED": few[:1]}.items():
        monkeypatch.setattr(study, name, value)
    for name, number in {"SEEDS": 1, "REPETITIONS": 2, "AT_ONCE": 1}.items():
        monkeypatch.setattr(study, name, number)
    page, ready = tmp_path / "page.md", study.halved(small)
    page.write_text(f"# Page\n\n{study.HEADING}\nNothing\n", encoding="utf-8")
    for part in study.PARTS:
        found = {name: work() for name, work in study.tasks(part, ["colon"], lambda _: ready).items()}
        study.write(part, ["colon"], found, page)
    text = page.read_text(encoding="utf-8")
    assert faults_of(text) == [] and text.endswith("Nothing\n")
    rows = {
        line.split("|")[1].strip(): line.split("|") for line in text.splitlines() if line.startswith("| ")
    }
    assert float(rows["k-anonymity, known columns"][-2]) >= 100 and rows["bootstrap"][-2].strip() == "–"
    assert float(rows["bootstrap"][2]) < float(rows["balanced"][2]) < 100
    assert rows["colon"][3].strip() == "2"


def test_what_balanced_reached_is_judged_by_intervals() -> None:
    from study_condensation_page import none_seen, verdict

    def judged(outside: list[float], flips: float = 0.0, repetitions: int = 100) -> str:
        times = repetitions // len(outside)
        own = [[(0.05, flips, share)] for share in outside * times]
        return verdict(own, [[(0.05, 0.0, 0.0)]] * repetitions, 0.01)[-1]

    assert none_seen(100) == pytest.approx(0.0295, abs=1e-4)
    assert judged([0.0]) == "yes"
    assert (
        judged([0.0], repetitions=10) == "not established"
    )  # 26 % of repetitions might have a changed direction
    assert judged([0.0] * 19 + [0.1]) == "yes"  # .5 ± .4 %
    assert judged([0.0] * 9 + [0.1]) == "not established"
    assert judged([0.0, 0.1]) == "no"
    assert judged([0.0], flips=0.001) == "no"


def test_estimates_without_a_fit_are_left_out() -> None:
    from study_condensation_page import Estimate, metric_of, percents

    runs = [[(0.2, 0.0, 0.5), None], [(0.4, 0.0, 0.5), None]]
    assert metric_of(runs, [0, 1], 0).mean == pytest.approx(0.3)
    assert percents(runs, [0]).endswith(" / 0.0 / 50.0")
    assert percents(runs, [1]) == "– (2 of 2 did not converge)"
    nothing = metric_of(runs, [1], 0)
    assert Estimate.over([Estimate(0.3, 0.3), nothing, Estimate(0.5, 0.4)]) == Estimate(
        0.4, pytest.approx(0.25)
    )
    assert nothing.shown() == "–"


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import benchmarks.study_options as study

    import study_condensation
    from leeward.synthetic.codes import write_codes
    from leeward.synthetic.registry import registry
    from leeward.synthetic.trajectories import write_trajectories

    monkeypatch.setattr(study, "REPETITIONS", 2)
    monkeypatch.setattr(study, "RECONSTRUCTIONS", 2)
    monkeypatch.setattr(study, "POLICIES", ("hierarchy:1",))
    monkeypatch.setattr(study, "CATALOGUES", ("1",))
    monkeypatch.setattr(study, "ASKED", 5)
    write_codes(tmp_path / "codes.parquet", 400, 120, 4.0, seed=1)
    cohort = read(tmp_path / "codes.parquet", vocabulary="icd9")
    plan = study_condensation.plan_of("SurvInterval", "VitalStat", 0, ["DiagAge", "Stage"], ["DiagAge"])
    table = study_condensation.Set(read(registry(400, "colon", 9, seed=1), format="table"), plan)
    write_trajectories(tmp_path / "trajectories.parquet", 300, seed=1)
    page = "".join(
        [
            study.disassociation({"small": cohort}, tmp_path),
            study.trajectories(tmp_path / "trajectories.parquet", tmp_path),
            study.catalogue(cohort, tmp_path),
            study.places(cohort, tmp_path),
            study.condensation({"small": table}),
        ]
    )
    assert faults_of(page) == []
    assert page.count("\n|") == (2 + 5) + (2 + 2) + (2 + 4) + (2 + 2) + (2 + 6) + (2 + 2)


def test_caps_of_catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import benchmarks.study_options_caps as study

    from leeward.synthetic.codes import write_codes

    monkeypatch.setattr(study, "REPETITIONS", 2)
    monkeypatch.setattr(study, "CAPS", (1, 1_000))
    monkeypatch.setattr(study, "EPSILONS", ("900",))
    write_codes(tmp_path / "codes.parquet", 300, 40, 4.0, seed=1)
    cohort = read(tmp_path / "codes.parquet", vocabulary="icd9")
    page = study.section(cohort, tmp_path / "index")
    assert faults_of(page) == []
    cells = [line.split("|") for line in page.splitlines() if line.startswith("| 900 |")]
    assert len(cells) == 4
    wrong = [float(each[7]) for each in cells]  # of pairs
    # A cap above all that patients have, and hardly any noise: counts are nearly right; with a cap of 1 most are lost.
    assert max(wrong[2:]) < 0.35 < 0.5 < min(wrong[:2])
    (tmp_path / "page.md").write_text(f"# Page\n\n{study.BEFORE}\nplaces\n", encoding="utf-8")
    for body in ("first", "second"):
        study.put(body, tmp_path / "page.md")
    found = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "first" not in found and found.index("second") < found.index(study.BEFORE)


def test_notes(tmp_path: Path) -> None:
    import study_notes as study
    from leeward.synthetic.notes import NotePlan
    from leeward.synthetic.notes import synthetic_notes as made

    notes = [note.annotated for note in made(NotePlan(10, 20, "held-out", 1))]
    page = study.synthetic("Held-out synthetic notes", study.members(), notes)
    assert faults_of(page) == []
    peer = (
        tmp_path / "python"
    )  # finds the first four letters of every text, surely and once more with a low score
    peer.write_text("#!/bin/sh\nwhile read -r text; do echo '[[0, 4, 1.0], [5, 9, 0.1]]'; done\necho 0.5\n")
    peer.chmod(0o700)
    spans, seconds = study.spans_of_peer("philter", [note.text for note in notes], peer)
    assert seconds == 0.5 and [(span.start, span.end) for span in spans[-1]] == [(0, 4)]
    page = study.foreign_set("made-up", study.members(), notes, peer)
    assert faults_of(page) == []
    assert all(page.count(f"\n| {name} |") == 2 for name in study.PEERS.values())
    assert all(
        re.search(rf"\| {name} \| \d\.\d+ \(\d\.\d+ to \d\.\d+\) \|", page)
        for name in ("ensemble", "Philter")
    )


def test_methods_with_demographics_side_by_side(tmp_path: Path) -> None:
    import study_whole_patient_methods as study

    sexes, codes = ("F", "M"), ("250.00", "250.01", "401.9", "428.0")
    rows = [
        {"patient": p, "visit": f"{p}-{c % 2}", "code": codes[(p + c) % 4], "at": 40 + p % 30 + c}
        for p in range(120)
        for c in range(1 + p % 3)
    ]
    events = pl.DataFrame(rows)
    people = pl.DataFrame({"patient": range(120), "age": [45 + p % 30 for p in range(120)],
                           "sex": [sexes[p % 2] for p in range(120)]})  # fmt: skip
    columns: dict[str, Any] = {"patient": "patient", "visit": "visit", "code": "code"}
    made_up, aged = (
        replace(read(events, columns=each, vocabulary="icd9"), patients=people)
        for each in (columns, {"patient": "patient", "code": "code", "age": "at"})
    )
    one_of_each = {task.lost: task for task in study.tasks(made_up, 60, aged)}
    page = study.side_by_side([*one_of_each.values()], tmp_path)
    assert faults_of(page) == []
    assert page.count("\n|") == 1 + len(one_of_each)


def test_defaults_are_worse_only_beyond_their_interval() -> None:
    import defaults

    cell = defaults.Cell("partitioning", "paper", "UCI", 300, 5, "no", "2 codes")
    figures = {
        "worse": [(0.22, 0.2), (0.21, 0.19), (0.24, 0.22)],
        "same": [(0.22, 0.2), (0.2, 0.2), (0.2, 0.22)],
        "better": [(0.2, 0.22), (0.19, 0.21), (0.22, 0.24)],
    }
    for said, each in figures.items():
        assert defaults.verdict_of(cell, each).verdict == said
    found = defaults.verdict_of(cell, [(0.199, 0.099)] * 3)
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    usable = cell._replace(workload=defaults.KEPT)
    assert defaults.verdict_of(usable, figures["worse"]).verdict == "better"
    verdicts = {cell: found, usable: defaults.verdict_of(usable, figures["same"])}
    assert "| partitioning | paper | all | 2 | 0 | 1 | 1 |" in defaults.summary(verdicts)
    assert "| 300 | no | – | 2 codes 2.00 (2.00–2.00) | – | – |" in defaults.worse(verdicts)


def test_phenotypes_of_trajectories(tmp_path: Path) -> None:
    import benchmarks.study_trajectories_phenotypes as study
    from tests.laws.cases import events

    (tmp_path / "map.csv").write_text("ICD9,PheCode,Phenotype\n250.0,401,a\n250.1,401,a\n272.0,495,b\n")
    made = study.cohort_of(events().select("patient", "code", "age"), "small", "icd9")
    people = (
        made.require_events()
        .select("patient")
        .unique()
        .with_row_index("Dx")
        .select("patient", pl.col("Dx") % 2)
    )
    page = study.section(replace(made, patients=people), tmp_path / "map.csv", [3], tmp_path, min_cases=3)
    assert faults_of(page) == [] and page.count("| cells, k = 3 |") == 1 and "| 495 | -1.00 |" in page
