"""`share/leeward-read.R` in Debian's R, without packages: its bounds are those of `leeward estimate`, for every method
that has codes of patients; what the release has not, or what was changed, is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.laws.cases import DEMOGRAPHICS, Case, cases, classed_cases, method_of_case

import leeward as lw
from leeward.errors import BadInput
from leeward.methods import METHODS
from leeward.release import Release
from leeward.runs.estimate import COUNTED, estimates

pytestmark = pytest.mark.skipif(shutil.which("Rscript") is None, reason="Rscript is not installed")

ASKED = 30
CASES: dict[str, Case] = {
    **cases(),
    **classed_cases(),
    "disassociation in joint clusters": Case(
        cases()["disassociation"].cohort,
        {"k": 4, "m": 2, "max_cluster": 8, "partitioning": "paper", "nested": True},
    ),
    "linked with demographics": Case(
        classed_cases()["visits with demographics"].cohort, {"k": 3, **DEMOGRAPHICS}
    ),
}


@pytest.fixture(scope="module", params=sorted(CASES))
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    case = CASES[request.param]
    method = METHODS[method_of_case(request.param).split(" in ")[0]].parameters_class()(**case.parameters)
    out = tmp_path_factory.mktemp("reader") / "out"
    lw.protect(
        case.cohort, method, out, population=case.population, formats=("parquet", "csv"), measures=[], seed=1
    )
    assert lw.verify(out, case.cohort, case.population).passed
    yield Release.open(out)


def run_r(share: Path, program: str) -> subprocess.CompletedProcess[str]:
    given = f'source("leeward-read.R"); release <- lw_open(".")\n{program}'
    return subprocess.run(
        ["Rscript", "--vanilla", "-e", given], cwd=share, capture_output=True, text=True, timeout=120
    )


def codes_of(release: Release) -> list[str]:
    """Codes and labels that can be asked for, the suppressed ones left out."""
    listed = release.table("codes.parquet").collect()
    shown = listed.filter(~listed["suppressed"])
    inner = shown["members"].explode(empty_as_null=True).to_list() if "members" in shown.columns else []
    return list(dict.fromkeys([*inner, *shown["code"].to_list()]))


def test_bounds_are_those_of_the_command(release: Release) -> None:
    if release.method not in (*COUNTED, "linked"):
        done = run_r(release.share, 'lw_count(release, "250.0")')
        assert done.returncode == 1 and "has no codes of patients; use its tables" in done.stderr
        return
    codes = codes_of(release)[:ASKED]
    asked = [[code] for code in codes] + [list(pair) for pair in combinations(codes, 2)][
        :: max(1, len(codes) // 4)
    ]
    asked += [codes[:3], codes[1:6]]
    queries = "\n".join(f"lw_count(release, c({', '.join(map(repr, each))}))," for each in asked)
    done = run_r(
        release.share, f"write.table(rbind({queries.rstrip(',')}), col.names = FALSE, row.names = FALSE)"
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    assert len(found) == len(asked) > 20
    if release.method == "linked":
        events = release.table("events.parquet").collect()
        truth = [events.filter(events["code"] == code)["record"].n_unique() for code in codes]
        assert [int(low) for low, _, _ in found[: len(codes)]] == truth
        assert {int(high) for _, _, high in found} == {release.records}
        return
    known = estimates(release, asked)
    assert [(int(low), int(high)) for low, _, high in found] == [(each.low, each.high) for each in known]
    if release.method != "disassociation":
        assert [float(mean) for _, mean, _ in found] == pytest.approx([each.expected for each in known])


def test_a_code_that_the_release_has_not_is_refused(release: Release) -> None:
    if release.method not in COUNTED:
        return
    with pytest.raises(BadInput, match="no code"):
        estimates(release, [["999.9"]])
    done = run_r(release.share, 'lw_count(release, "999.9")')
    assert done.returncode == 1 and not done.stdout
    assert "no code `999.9` in this release: its count is unknown, not 0" in done.stderr


def test_every_table_is_read_as_it_is_released(release: Release) -> None:
    done = run_r(
        release.share, 'for (name in names(release$tables)) cat(name, dim(release$tables[[name]]), "\\n")'
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        name, rows, columns = line.split()
        assert release.table(f"{name}.csv").collect().shape == (int(rows), int(columns))
    assert len(done.stdout.splitlines()) == sum(name.endswith(".csv") for name in release.names())


def test_the_lines_of_the_readme_run(release: Release) -> None:
    alone, *_ = re.findall(r"```r\n(.*?)```", (release.share / "README.md").read_text(), re.DOTALL)
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", alone], cwd=release.share, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "data.frame" in done.stdout and ("low" in done.stdout) == ("codes.csv" in release.names())


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    lw.protect(CASES["visits"].cohort, lw.Visits(k=3), tmp_path / "out", formats=("csv",), measures=[])
    share = tmp_path / "out/share"
    with (share / "data/visits.csv").open("a") as file:
        file.write('0,99,"401.0"\n')
    done = run_r(share, "")
    assert done.returncode == 1 and "visits.csv: not as released (another SHA-256)" in done.stderr
    (share / "data/visits.csv").unlink()
    assert "not there: ./data/visits.csv" in run_r(share, "").stderr
