"""The end of a command: what holds and against whom, what it cost, what the reader noticed, whether it is any use."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.conftest import Run

from leeward.cli.telling import format_notice, table_lines, told, with_flags
from leeward.methods.censoring.report import little_left as little_left_of_censoring
from leeward.methods.constraints.report import little_left
from leeward.methods.trajectories.report import empty_pairs
from leeward.release import Release
from leeward.report.sections import Table
from leeward.report.summary import Cost, counts_useless, errors_of_pairs_and_triples

MANY_RARE = "patient,code\n" + "".join(
    f"{patient},{code}\n"
    for patient in range(40)
    for code in ("401.9", f"{10 * (patient % 20) + 100:03d}.0", f"{10 * (patient % 20) + 310:03d}.0", "")
)
"""One code that everybody has, forty that two patients have each, and a row without code per patient."""

FLAGS: tuple[object, ...] = ("--k", 5, "--m", 2, "--policy", "none")


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    path = tmp_path / "rare.csv"
    path.write_text(MANY_RARE)
    return path


def test_a_release_that_loses_most_codes_says_so(leeward: Run, rare: Path, tmp_path: Path) -> None:
    shown = leeward("constrain", rare, "--k", 5, "--m", 2, "--policy", "hierarchy:1", "-o", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "Safe against" in shown.out
    assert "knows up to 2" in shown.out
    assert "Not against" in shown.out
    assert "codes suppressed" in shown.out
    assert "of 41 codes" in " ".join(shown.out.split()).partition("Little is left: ")[2][:20]
    assert shown.out.index("Verified") < shown.out.index("Little is left")


def test_every_notice_of_the_reader_is_printed_with_its_rows(
    leeward: Run, rare: Path, tmp_path: Path
) -> None:
    shown = leeward("disassociate", rare, *FLAGS, "--measure", "placement", "-o", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "40 missing codes in column 'code' left out (rows 4, 8, 12," in " ".join(shown.out.split())


def test_the_summary_is_in_json_and_on_the_first_screen(leeward: Run, rare: Path, tmp_path: Path) -> None:
    shown = leeward("disassociate", rare, *FLAGS, "--json", "-o", tmp_path / "out")
    summary = shown.json()["summary"]
    assert summary["safe_against"] == f"Somebody who {shown.json()['guarantee']['attacker']}."
    assert len(summary["costs"]) == 3
    assert {cost["tone"] for cost in summary["costs"]} <= {"good", "warn", "bad", "plain"}
    page = (tmp_path / "out/custody/report.html").read_text()
    first = page[page.index("<main") :].partition("</section>")[0]
    assert "Safe against" in first
    assert summary["costs"][0]["value"] in first


def test_measure_prints_tables_not_keys(leeward: Run, rare: Path, tmp_path: Path) -> None:
    assert leeward("disassociate", rare, *FLAGS, "-o", tmp_path / "out").status == 0
    shown = leeward("measure", tmp_path / "out", "--source", rare)
    assert shown.status == 0, shown.err
    assert "Average relative error (ARE) of estimated counts" in shown.out
    assert "workloads" not in shown.out
    assert "--json shows" not in shown.out


def test_a_table_as_text_has_a_line_per_row() -> None:
    table = Table("Counts", ("code", "patients"), (("401.9", "40"), ("**250**", "1,234")))
    assert list(table_lines(table)) == [
        "Counts",
        "  code   patients",
        "  ---------------",
        "  401.9        40",
        "  250       1,234",
    ]


def test_the_verdict_of_a_method_that_kept_little() -> None:
    fate = {"total": 915, "intact": 55, "generalized": 32, "suppressed": 828}
    assert little_left(fate, {"total": 100, "suppressed": 27}).startswith(
        "87 of 915 codes are left, and 73.0 %"
    )
    assert little_left(fate, {"total": 100, "suppressed": 27}, " of the classes").startswith(
        "87 of 915 codes of the classes are left"
    )
    assert not little_left({**fate, "suppressed": 400}, {"total": 100, "suppressed": 10})
    gone: dict[str, Any] = {"before": 36_740, "kept": 0.0}
    assert little_left_of_censoring(7, 915, gone).startswith(
        "7 of 915 codes are left, and 0.0 % of the repeats"
    )
    assert not little_left_of_censoring(900, 915, {"before": 0, "kept": 1.0})


def test_pairs_whose_code_is_any_code_count_as_lost() -> None:
    levels = [
        {"level": "5-digit", "share": 0.4},
        {"level": "chapter", "share": 0.2},
        {"level": "classification", "share": 0.15},
        {"level": "root", "share": 0.25},
    ]
    assert empty_pairs(levels) == pytest.approx(0.4)
    assert empty_pairs(levels[:2]) == pytest.approx(0.2)


def test_control_characters_of_a_notice_do_not_reach_the_terminal(
    rare: Path, leeward: Run, tmp_path: Path
) -> None:
    leeward("disassociate", rare, *FLAGS, "--measure", "placement", "-o", tmp_path / "out")
    from leeward.runs.reports import summary_of

    release = Release.open(tmp_path / "out")
    measures = {"notices": [{"kind": "x", "message": "column '\x1b[2J'", "count": 1, "rows": []}]}
    result: Any = SimpleNamespace(
        release=release,
        summary=summary_of(release, measures),
        verification=SimpleNamespace(checks=[], warnings=()),
        measures=measures,
        report=tmp_path / "out/custody/report.html",
    )
    lines = told(result, "1 record.")
    assert not any("\x1b[2J" in line for line in lines)
    assert format_notice({"message": "odd", "count": 3, "rows": [1, 2]}) == "odd (rows 1, 2, …)"


def test_a_notice_of_a_method_names_flags(leeward: Run, rare: Path, tmp_path: Path) -> None:
    leeward("disassociate", rare, *FLAGS, "--measure", "placement", "-o", tmp_path / "out")
    release = Release.open(tmp_path / "out")
    notice = {"kind": "method", "message": "State them as `max_cluster`.", "count": 1, "rows": []}
    assert with_flags(notice, release) == "State them as `--max-cluster`."
    assert with_flags({**notice, "kind": "reader"}, release) == "State them as `max_cluster`."


@pytest.mark.parametrize(("error", "little"), [(0.3, False), (0.48, True)])
def test_counts_that_are_off_by_half_are_little(error: float, little: bool) -> None:
    measured = {"are": {"workloads": [{"name": "random", "size": 2, "queries": 9, "are": error}]}}
    (found,) = errors_of_pairs_and_triples(measured)
    assert bool(counts_useless([Cost("9", "codes gone", "bad"), found])) is little
    assert found.tone == ("bad" if little else "warn")
