"""What holds of every method's releases, tried on each method of METHODS."""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.laws.cases import Case, cases, classed_cases, method_of_case
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

import leeward as lw
from leeward.engine import Engine
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.verify import Verification

CASES = cases() | classed_cases()


def test_every_method_has_a_case() -> None:
    assert {method_of_case(name) for name in CASES} == set(METHODS)


def method_of(name: str, **further: Any) -> Any:
    return METHODS[method_of_case(name)].parameters_class()(**{**CASES[name].parameters, **further})


def release(name: str, out: Path, **options: Any) -> lw.Result:
    case = CASES[name]
    return lw.protect(case.cohort, method_of(name), out, population=case.population, **options)


def verify(name: str, result: lw.Result) -> Verification:
    return lw.verify(result.path, CASES[name].cohort, CASES[name].population)


def digests(share: Path) -> dict[str, str]:
    files = (path for path in share.rglob("*") if path.is_file())
    return {str(path.relative_to(share)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Fresh(dict[str, lw.Result]):
    """Releases, each made when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> lw.Result:
        self[name] = release(name, self.folder / name, seed=7, threads=1)
        return self[name]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """A seeded release of each method, made with one thread."""
    return Fresh(tmp_path_factory.mktemp("fresh"))


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(
    name: str, fresh: Fresh, tmp_path: Path
) -> None:
    again = release(name, tmp_path / "again", seed=7, threads=3)
    assert digests(again.release.share) == digests(fresh[name].release.share)


@pytest.mark.parametrize("name", CASES)
def test_the_engine_changes_nothing(name: str, spark_engine: Engine) -> None:  # noqa: F811
    case: Case = CASES[name]
    here, there = (
        method_of(name).protect(case.cohort, engine, randomness=Randomness.of(7), population=case.population)
        for engine in (lw_engine(), spark_engine)
    )
    assert [each.path for each in here.tables] == [each.path for each in there.tables]
    for one, other in zip(here.tables, there.tables, strict=True):
        assert list(one.batches()) == list(other.batches()), one.path
    assert (here.parameters, here.guarantee, here.records) == (
        there.parameters,
        there.guarantee,
        there.records,
    )


def lw_engine() -> Engine:
    from leeward.engine import make

    return make("local", threads=2)


@pytest.mark.parametrize("name", CASES)
def test_a_guarantee_has_facts_for_programs(name: str, fresh: Fresh) -> None:
    release = fresh[name].release
    facts = release.guarantee["facts"]
    columns = {column for file in release.names() for column in release.table(file).collect_schema().names()}
    assert facts["candidates"] in ("release", "population", "group", "data sets")
    assert isinstance(facts["attacker_knows"], str) and set(facts["released_as_is"]) <= columns


@pytest.mark.parametrize("name", CASES)
def test_without_a_seed_releases_differ_and_do_not_warn(name: str, fresh: Fresh, tmp_path: Path) -> None:
    result = release(name, tmp_path / "out")
    assert digests(result.release.share / "data") != digests(fresh[name].release.share / "data")
    assert "seeded" not in result.release.manifest and not verify(name, result).warnings


@pytest.mark.parametrize("name", CASES)
def test_a_seeded_release_warns(name: str, fresh: Fresh) -> None:
    assert fresh[name].release.manifest["seeded"] is True
    assert any("seed" in warning for warning in verify(name, fresh[name]).warnings)
    assert "7" not in {str(value) for value in fresh[name].release.manifest["parameters"].values()}


@pytest.mark.parametrize("name", CASES)
def test_k_above_the_data_is_unreachable_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    with pytest.raises(GuaranteeUnreachable) as stopped:
        lw.protect(
            case.cohort, method_of(name, **case.too_many), tmp_path / "out", population=case.population
        )
    assert stopped.value.exit_code == 3 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", CASES)
def test_the_frames_that_came_in_are_untouched(name: str, tmp_path: Path) -> None:
    before = (cases() | classed_cases())[name]
    release(name, tmp_path / "out", seed=7, threads=2)
    after = CASES[name]
    for one, other in ((before.cohort, after.cohort), (before.population, after.population)):
        if one is None or other is None:
            continue
        for kind in ("events", "patients", "notes"):
            was, now = getattr(one, kind), getattr(other, kind)
            assert (was is None) == (now is None)
            if isinstance(was, pl.DataFrame):
                assert was.equals(now) and was.schema == now.schema


@pytest.mark.parametrize("name", CASES)
def test_a_fresh_release_verifies_with_and_without_its_source(name: str, fresh: Fresh) -> None:
    case = CASES[name]
    beside = verify(name, fresh[name])
    assert beside.passed and beside.with_source and len(beside.checks) > 3
    if case.population is None:
        alone = lw.verify(fresh[name].path)
        assert alone.passed and len(alone.checks) < len(beside.checks)
    else:
        with pytest.raises(BadInput, match="give the population"):
            lw.verify(fresh[name].path)


PAPERS_WORDS = re.compile(r"\b(?:ARE|AvgRE|ILM|ALM|CUL|DC|CC)\b")
BESIDE_WORDS = re.compile(r"\w+ \((?:ARE|AvgRE|ILM|ALM|CUL|DC|CC)\)")


def unexplained(text: str) -> list[str]:
    """Places where a paper's abbreviation is without its words, `average relative error (ARE)`; `text` may be HTML."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    bare = BESIDE_WORDS.sub("", text)
    return [bare[max(0, found.start() - 40) : found.end() + 20] for found in PAPERS_WORDS.finditer(bare)]


def test_an_abbreviation_without_its_words_is_found() -> None:
    assert (
        unexplained("<td>ARE</td>") and unexplained("raised ILM + ALM by") and unexplained('<a title="DC">')
    )
    assert not unexplained("loss (ILM) and loss (ALM), area, dc <style>.DC {}</style>")


@pytest.mark.parametrize("name", CASES)
def test_what_people_read_shows_no_abbreviation_without_its_words(name: str, fresh: Fresh) -> None:
    """The report, the recipient's README, and the end of the command."""
    made = fresh[name]
    ending = [made.summary.little_left or "", *(f"{each.value} {each.what}" for each in made.summary.costs)]
    pages = [made.report.read_text(), (made.path / "share/README.md").read_text(), "\n".join(ending)]
    assert [each for page in pages for each in unexplained(page)] == []
    assert 'fill="white"' not in pages[0], (
        "a chart has no paper of its own: in dark mode its words would be on white"
    )


@pytest.mark.parametrize("name", CASES)
def test_the_first_screen_has_the_risk_and_nothing_is_said_twice(name: str, fresh: Fresh) -> None:
    """The maximum risk is on the first screen alone; below it every limit is said once."""
    page, summary = fresh[name].report.read_text(), fresh[name].summary
    first, _, rest = page[page.index("<main") :].partition("</section>")
    first, rest = (html.unescape(re.sub("<[^>]+>", "", each)) for each in (first, rest))
    assert summary.risk and all(re.sub("[*`]", "", line) in first for line in summary.risk)
    assert "Chance that an attacker" not in rest
    assert [rest.count(re.sub("[*`]", "", each)) for each in summary.not_against] == [1] * len(
        summary.not_against
    )


@pytest.mark.parametrize("name", CASES)
def test_the_custodian_gets_measures_and_a_report(name: str, fresh: Fresh) -> None:
    assert fresh[name].report.is_file()
    measures = set(fresh[name].measures)
    assert measures >= {"source", "notices", "method"}
    assert (len(measures) > 3) is (METHODS[method_of_case(name)].measures_module() is not None)
    assert lw.open(fresh[name].path).manifest["method"] == method_of_case(name)


@pytest.mark.parametrize("name", CASES)
def test_the_spec_in_custody_makes_the_parameters_again(name: str, fresh: Fresh) -> None:
    from leeward.release.spec import load
    from leeward.runs.protect import method_of as made

    custody = fresh[name].release.custody
    assert custody is not None
    assert made(load(custody / "spec.yaml").method) == method_of(name)
