"""What a recipient reads first: the lines in the README run as they are, and their bounds hold."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.contracts import contract_of
from leeward.verify import CHECKERS

METHODS = {
    "disassociation": lw.Disassociation(k=3, m=2),
    "constraints": lw.Constraints(k=3, m=2, policy="hierarchy:2"),
    "censoring": lw.Censoring(k=3, scope="global", cap=2),
    "visits": lw.Visits(k=3, enforce="generalize"),
    "trajectories": lw.Trajectories(k=3),
    "linked": lw.Linked(k=3, views=("patients+events",)),
}


def program_of(share: Path, language: str = "python") -> str:
    """The lines of the README of a release, in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", (share / "README.md").read_text(), re.DOTALL)
    return str(found)


def output_of(program: str) -> str:
    """What lines of Python print."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program, {})
    return said.getvalue()


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
    program = program_of(share)
    assert len(program.splitlines()) <= 12
    monkeypatch.chdir(share)
    sets = source.code_sets()
    truth = dict(zip(sets.codes, sets.supports().tolist(), strict=True))
    name_of_file = "events" if name == "linked" else "codes"
    listed = pl.read_parquet(f"data/{name_of_file}.parquet")["code"].unique(maintain_order=True).to_list()
    tried = [code for code in listed if code in truth]
    assert tried or name == "constraints"
    for code in tried:
        said = output_of(re.sub(r"code = .*", f"code = {code!r}", program, count=1))
        low, high = (int(number) for number in re.findall(r"\d+", said))
        assert low <= truth[code] <= high
        if name == "disassociation":
            found = lw.estimate(tmp_path / "out", [code])
            assert (low, high) == (found.low, found.high)
    assert output_of(program).endswith("patients\n"), "as it is"
    first = next(path for path in lw.open(".").names() if path.endswith(".parquet"))
    answer = duckdb.sql(program_of(share, "sql")).pl()
    assert_frame_equal(answer, pl.read_parquet(f"data/{first}").head(5), check_dtypes=False)


@pytest.mark.parametrize("name", ["condensation", "k-anonymity"])
def test_the_lines_of_a_table_count_values(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"sex": ["f", "m"] * 30, "age": [40 + n % 7 for n in range(60)]})
    table = lw.read(frame, format="table")
    method = lw.Condensation(k=5) if name == "condensation" else lw.KAnonymity(k=5)
    lw.protect(table, method, tmp_path / "out", measures=[])
    monkeypatch.chdir(tmp_path / "out/share")
    assert "30" in output_of(program_of(Path()))


def test_the_lines_of_a_catalogue_give_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame([{"patient": f"p{p}", "terms": ["fever"]} for p in range(200)])
    monkeypatch.setenv("LEEWARD_STATE", str(tmp_path / "state"))
    lw.index(frame, tmp_path / "index", epsilon_total=5, terms="lexicon")
    lw.itemsets(tmp_path / "index", tmp_path / "out", epsilon=4, max_size=1, contributions=1)
    monkeypatch.chdir(tmp_path / "out/share")
    (low, high), *_ = re.findall(r"fever (\d+)\S* to (\d+)", output_of(program_of(Path())))
    assert 150 < int(low) < int(high) < 250


KNOWN_IN_R = {
    "arrow", "read_parquet", "jsonlite", "fromJSON", "cat", "code", "data.frame", "function", "if", "else", "is.na",
    "length", "lengths", "match", "names", "nrow", "paste", "paste0", "pmax", "print", "stopifnot", "sum", "table",
    "unique", "unlist", "vapply", "any", "c",
}  # fmt: skip
"""Functions of base R and of the two packages that the lines may call."""


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_the_lines_of_r_are_well_formed(name: str) -> None:
    """R is not needed to test Leeward: its tokens, brackets and ends of lines are looked at, and what is called."""
    from pygments.lexers import SLexer
    from pygments.token import Comment, Error

    contract = contract_of(name)
    assert contract is not None and contract.counting is not None
    program = contract.counting.r
    assert len(program.splitlines()) <= 13
    tokens = [(kind, text) for kind, text in SLexer().get_tokens(program) if kind not in Comment]
    assert not [text for kind, text in tokens if kind is Error]
    depth: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    code = "".join(text for _, text in tokens)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', code)
    for sign in bare:
        if sign in "([{":
            depth.append(sign)
        elif sign in pairs:
            assert depth.pop() == pairs[sign], code
    assert not depth and not re.search(r"[-+*/,&|=<]\s*$", bare.strip(), re.MULTILINE)
    made = set(re.findall(r"(\w+) <-", bare))
    assert set(re.findall(r"([\w.]+)(?=\()", bare)) <= KNOWN_IN_R | made


def test_every_column_of_the_files_is_explained(tmp_path: Path) -> None:
    lw.protect(cohort(), METHODS["visits"], tmp_path / "out", measures=[])
    readme = (tmp_path / "out/share/README.md").read_text()
    assert "| `visits` | `visit` |" in readme
    assert "Cite the release as" in readme
    assert "## Citing, terms, questions" in readme


def test_the_reader_in_r_is_there_where_csv_is_and_as_it_is_shipped(tmp_path: Path) -> None:
    def failures() -> set[str]:
        return {check.name for check in lw.verify(tmp_path / "out").failures}

    lw.protect(cohort(), METHODS["visits"], tmp_path / "out", measures=[])
    file = tmp_path / "out/share/leeward-read.R"
    shipped = file.read_text()
    assert not failures() and len(shipped.splitlines()) <= 150
    file.write_text(shipped.replace("high = nrow(records)", "high = 0"))
    assert failures() == {"words"}
    file.unlink()
    assert failures() == {"words"}
    lw.protect(cohort(), METHODS["visits"], tmp_path / "plain", formats=("parquet",), measures=[])
    assert not (tmp_path / "plain/share/leeward-read.R").exists()
    (tmp_path / "plain/share/leeward-read.R").write_text(shipped)
    assert "no_other_files" in {check.name for check in lw.verify(tmp_path / "plain").failures}


def test_a_readme_with_other_lines_is_refuted(tmp_path: Path) -> None:
    lw.protect(cohort(), METHODS["disassociation"], tmp_path / "out", measures=["placement"])
    file = tmp_path / "out/share/README.md"
    file.write_text(file.read_text().replace("low, high = counted", "low, high = 0 * counted"))
    assert {check.name for check in lw.verify(tmp_path / "out").failures} == {"words"}
