"""What a recipient reads first: the lines in the README run as they are, and their bounds hold."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import polars as pl
import pytest

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.release import recipients
from leeward.verify import recipients as again

METHODS = {
    "disassociation": lw.Disassociation(k=3, m=2),
    "constraints": lw.Constraints(k=3, m=2, policy="hierarchy:2"),
    "censoring": lw.Censoring(k=3, scope="global", cap=2),
    "visits": lw.Visits(k=3, enforce="generalize"),
    "trajectories": lw.Trajectories(k=3),
}


def cohort() -> Cohort:
    codes = ("401.9", "250.00", "250.01", "428.0", "272.4", "V10.1")
    rows = [(p, codes[(p * (i + 1)) % len(codes)], p % 3, 40 + p % 4) for p in range(45) for i in range(3)]
    frame = pl.DataFrame(rows, schema=["patient", "code", "visit", "age"], orient="row")
    return lw.read(frame, vocabulary="icd9")


@pytest.mark.parametrize("name", METHODS)
def test_the_lines_of_pandas_run_and_their_bounds_hold(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = cohort()
    population = source if name == "censoring" else None
    lw.protect(source, METHODS[name], tmp_path / "out", population=population, measures=[])
    share = tmp_path / "out/share"
    readme = (share / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(program.splitlines()) <= 12
    monkeypatch.chdir(share)
    sets = source.code_sets()
    truth = dict(zip(sets.codes, sets.supports().tolist(), strict=True))
    listed = pl.read_parquet("data/codes.parquet")["code"].to_list()
    tried = [code for code in listed if code in truth]
    assert tried or name == "constraints"
    for code in tried:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(program.replace("code = listed.index[0]", f"code = {code!r}"), {})
        low, high = (int(number) for number in re.findall(r"\d+", said.getvalue()))
        assert low <= truth[code] <= high
        if name == "disassociation":
            found = lw.estimate(tmp_path / "out", [code])
            assert (low, high) == (found.low, found.high)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program, {})  # as it is


def test_every_column_of_the_files_is_explained(tmp_path: Path) -> None:
    lw.protect(cohort(), METHODS["visits"], tmp_path / "out", measures=[])
    readme = (tmp_path / "out/share/README.md").read_text()
    assert "| `visits` | `visit` |" in readme
    assert "Cite the release as" in readme
    assert "## Citing, terms, questions" in readme


def test_the_verifier_wants_the_same_words() -> None:
    assert recipients.MEANINGS == again.MEANINGS
    assert (recipients.PANDAS, recipients.R) == (again.PANDAS, again.R)


def test_a_readme_with_other_lines_is_refuted(tmp_path: Path) -> None:
    lw.protect(cohort(), METHODS["disassociation"], tmp_path / "out", measures=["placement"])
    file = tmp_path / "out/share/README.md"
    file.write_text(file.read_text().replace("low, high = counted", "low, high = 0 * counted"))
    assert {check.name for check in lw.verify(tmp_path / "out").failures} == {"words"}
