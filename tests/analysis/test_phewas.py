"""PheWAS: phenotypes by hand, tests against statsmodels and scipy one by one, lost and false associations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.visits.frames import cohort

from leeward.analysis.phewas import associations as phewas
from leeward.analysis.phewas.phenotypes import Phenotypes, phenotypes_of
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.visits import Visits
from leeward.runs.protect import protect
from leeward.vocabulary import phecode

MAP = """ICD9,PheCode,Phenotype,Excl. Phecodes,Rollup,Ignore Bool,category_string
250.0,250.1,diabetes of a kind,249-250.99,1,0,endocrine
250.1,250.2,diabetes of another kind,249-250.99,1,0,endocrine
272.0,272.1,lipids,272-272.99,1,0,endocrine
401.1,401.1,pressure,401-405.99,1,0,circulatory
401.9,401.1,pressure,401-405.99,1,0,circulatory
428.0,428.1,failure,425-429.99,1,0,circulatory
999.9,1011,complication,,1,1,other
"""


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    (tmp_path / "map.csv").write_text(MAP)
    return tmp_path / "map.csv"


def mentions(*rows: tuple[int, int, str]) -> pl.DataFrame:
    return pl.DataFrame(
        list(rows), schema={"person": pl.Int64, "visit": pl.Int64, "code": pl.String}, orient="row"
    )


EVENTS = mentions(
    (0, 1, "250.0"), (0, 2, "250.0"), (1, 3, "250.0"), (2, 4, "250.1"), (3, 5, "401.1|401.9"), (4, 6, "250.0|250.1"),
    (4, 6, "272.0"), (5, 7, "401.1|428.0"), (5, 7, "250-259"), (6, 8, "999.9"),
)  # fmt: skip


def by_name(found: Phenotypes) -> dict[str, tuple[list[int], list[int]]]:
    return {name: (found.cases(p).tolist(), found.controls(p).tolist()) for p, name in enumerate(found.names)}


def test_cases_controls_and_exclusions_by_hand(map_file: Path) -> None:
    found = by_name(phenotypes_of(EVENTS, 7, phecode.load(map_file)))
    assert found["250.1"] == (
        [0, 1],
        [3, 4, 5, 6],
    )  # 2 has a phecode of the range; 4's label is of two phecodes
    assert found["250.2"] == ([2], [3, 4, 5, 6])
    assert found["401.1"] == ([3], [0, 1, 2, 4, 5, 6])  # all members of the label are pressure; 5's are not
    assert found["272.1"] == ([4], [0, 1, 2, 3, 5, 6])
    assert "1011" not in found
    assert by_name(phenotypes_of(EVENTS, 7, phecode.load(map_file, ignored=True)))["1011"][0] == [6]


def test_two_codes_asked_for_leave_people_with_one_out(map_file: Path) -> None:
    found = by_name(phenotypes_of(EVENTS, 7, phecode.load(map_file), min_codes=2))
    assert found["250.1"] == ([0], [3, 4, 5, 6])
    assert found["272.1"] == ([], [0, 1, 2, 3, 5, 6])


def some_phenotypes(people: int, draws: np.random.Generator) -> Phenotypes:
    cases = [np.sort(draws.choice(people, size, replace=False)) for size in (people // 3, people // 8, 12)]
    out = [np.setdiff1d(draws.choice(people, people // 10, replace=False), each) for each in cases]
    flat = [np.concatenate([[0], np.cumsum([len(e) for e in part])]) for part in (cases, out)]
    return Phenotypes(
        ("1", "2", "3"), people, flat[0], np.concatenate(cases), flat[1], np.concatenate(out).astype(np.int64)
    )


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.booleans())
def test_regression_agrees_with_statsmodels_run_one_by_one(seed: int, continuous: bool) -> None:
    import statsmodels.api as sm

    draws = np.random.Generator(np.random.Philox(key=seed))
    n = 400
    ages = draws.normal(55, 12, n) if continuous else draws.integers(40, 60, n).astype(float)
    people = pl.DataFrame({"snp": draws.integers(0, 3, n), "sex": draws.integers(0, 2, n), "age": ages})
    people = people.with_columns(snp=pl.when(pl.int_range(n) % 37 != 0).then("snp"))
    phenotypes = some_phenotypes(n, draws)
    found = phewas.scan(phenotypes, people, ["snp"], ["sex", "age"], threads=2)
    for p, row in enumerate(found.iter_rows(named=True)):
        who = np.concatenate([phenotypes.cases(p), phenotypes.controls(p)])
        outcome = np.isin(who, phenotypes.cases(p)).astype(float)
        table = people[who].select("snp", "sex", "age").to_numpy().astype(float)
        known = ~np.isnan(table).any(axis=1)
        fit = sm.Logit(outcome[known], sm.add_constant(table[known])).fit(disp=0, tol=1e-12, maxiter=200)
        assert row["cases"] == outcome[known].sum()
        assert row["beta"] == pytest.approx(fit.params[1], abs=1e-6)
        assert row["error"] == pytest.approx(fit.bse[1], abs=1e-6)
        assert row["p"] == pytest.approx(fit.pvalues[1], abs=1e-6)


def test_separated_groups_have_no_regression_and_few_cases_no_test() -> None:
    people = pl.DataFrame({"snp": [0] * 10 + [2] * 10})
    cases = np.arange(10, 20)
    separated = Phenotypes(("1",), 20, np.array([0, 10]), cases, np.array([0, 0]), np.zeros(0, np.int64))
    row = phewas.scan(separated, people, ["snp"]).row(0, named=True)
    assert row["beta"] is None and row["p"] is None and row["p_allelic"] < 1e-6
    assert row["regression"] == "separated"
    few = phewas.scan(separated, people, ["snp"], min_cases=11).row(0, named=True)
    assert few["p_allelic"] is None and few["cases"] == 10 and few["regression"] == "few"


@pytest.mark.parametrize("covariate", ["sex", "age"])
def test_a_covariate_that_separates_or_tells_nothing_is_said(covariate: str) -> None:
    """All cases are women, or all are above 65: no finite coefficient; a constant column adds nothing."""
    draws = np.random.Generator(np.random.Philox(key=3))
    people = pl.DataFrame(
        {"snp": draws.integers(0, 3, 200), "sex": np.arange(200) // 100, "age": np.linspace(20, 90, 200)}
    ).with_columns(same=pl.lit(1.0))
    cases = np.arange(150, 200)
    phenotypes = Phenotypes(("1",), 200, np.array([0, 50]), cases, np.array([0, 0]), np.zeros(0, np.int64))
    row = phewas.scan(phenotypes, people, ["snp"], [covariate]).row(0, named=True)
    assert row["regression"] == "separated" and row["beta"] is None and row["p_allelic"] is not None
    row = phewas.scan(phenotypes, people, ["snp"], ["same"]).row(0, named=True)
    assert row["regression"] == "collinear"
    assert phewas.scan(phenotypes, people, ["snp"]).row(0, named=True)["regression"] == "fitted"


@given(
    st.lists(st.integers(0, 60), min_size=4, max_size=4).filter(lambda c: min(c[0] + c[1], c[2] + c[3]) > 0)
)
def test_allelic_tests_agree_with_scipy(counts: list[int]) -> None:
    from scipy.stats import chi2_contingency, fisher_exact

    table = np.array(counts, np.int64).reshape(1, 2, 2)
    if (table.sum(axis=1) == 0).any():
        return
    _, p, exact = phewas.allelic_tests(table)
    wanted = chi2_contingency(table[0], correction=False)
    assert exact[0] == bool((wanted.expected_freq < 5).any())
    assert p[0] == pytest.approx(fisher_exact(table[0]).pvalue if exact[0] else wanted.pvalue)


def test_lost_and_false_by_hand() -> None:
    def results(*values: float | None) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "predictor": ["snp"] * len(values),
                "phecode": [str(place) for place in range(len(values))],
                "p_allelic": pl.Series(values, dtype=pl.Float64),
            }
        )

    compared = phewas.compare(results(0.001, 0.04, 0.2, 0.011), results(0.03, 0.06, 0.01, None))
    rows = {
        row["rule"]: (row["original"], row["kept"], row["lost"], row["false"]) for row in compared.to_dicts()
    }
    assert rows["p05"] == (3, 1, 2, 1)  # 1 lost its strength, 3 its cases; 2 appeared
    assert rows["bonferroni"] == (2, 0, 2, 1)  # 0.0125 before, 0.0167 after: three tests are left
    assert rows["fdr"] == (2, 1, 1, 1)  # Benjamini and Hochberg: limits 0.011 before, 0.03 after
    assert phewas.totals(compared)["p05"] == {"original": 3, "kept": 1, "lost": 2, "false": 1}


def test_how_far_effects_moved_by_hand() -> None:
    columns = {
        "p_original": [0.01, 0.04, 0.01, 0.5],
        "beta": [1.0, -0.5, 0.2, 0.1],
        "error": [0.2, 0.1, 0.1, 0.3],
        "beta_anonymized": [0.8, -0.2, None, 3.0],
    }
    found = phewas.compare_effects(pl.DataFrame(columns))
    assert found["compared"] == 2
    assert found["moved"] == pytest.approx(-0.25)  # both towards zero, by 0.2 and by 0.3
    assert found["inside"] == 0.5  # 0.2 < 1.96 x 0.2, and 0.3 > 1.96 x 0.1
    assert phewas.compare_effects(pl.DataFrame(columns).clear()) == {"compared": 0, "moved": 0, "inside": 0}


def planted(people: int = 300) -> Cohort:
    draws = np.random.Generator(np.random.Philox(key=5))
    snp = draws.integers(0, 3, people)
    records = {}
    for n in range(people):
        codes = ["401.9"] if draws.random() < 0.2 + 0.25 * snp[n] else ["272.0"]
        records[f"p{n:03d}"] = [codes + (["250.0"] if draws.random() < 0.3 else [])]
    return cohort(
        records, pl.DataFrame({"patient": list(records), "snp": snp, "sex": draws.integers(0, 2, people)})
    )


@pytest.mark.parametrize("test", ["allelic", "logistic"])
def test_a_planted_effect_survives_the_release(tmp_path: Path, map_file: Path, test: str) -> None:
    options = {"predictors": ["snp"], "map": str(map_file), "test": test, "min_cases": 5}
    if test == "logistic":
        options["covariates"] = ["sex"]
    result = protect(
        planted(),
        Visits(k=5, payload=("snp", "sex")),
        tmp_path / "out",
        seed=1,
        measures=["retention", {"phewas": options}],
    )
    found = result.measures["phewas"]
    bonferroni = found["totals"]["bonferroni"]
    assert bonferroni["original"] >= 1 and bonferroni["lost"] == 0
    row = next(row for row in found["tests"] if row["phecode"] == "401.1")
    assert row["p_original"] < 1e-6 and row["p_anonymized"] < 1e-6 and row["effect"] > 0.5
    assert found["regressions"]["original"]["separated"] == 0 < found["regressions"]["original"]["fitted"]
    page = result.report.read_text()
    assert found["effects"]["compared"] >= 1 and found["effects"]["inside"] == 1
    assert "of the original&#39;s associations moved by" in page
    assert "Associations lost and false" in page and "snp: volcano plot" in page and page.count("<svg") >= 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs `predictors`"),
        ({"predictors": ["snp"], "tests": 1}, "unknown option `tests`"),
        ({"predictors": ["gene"]}, "has no patients' columns gene"),
        ({"predictors": ["snp"], "test": "wald"}, "`test` is allelic or logistic; got wald"),
        ({"predictors": ["snp"], "covariates": ["name"]}, "`name` is not a numeric column"),
    ],
)
def test_wrong_options_say_what_to_do(tmp_path: Path, map_file: Path, options, message: str) -> None:
    source = planted(60)
    assert source.patients is not None
    source = Cohort(
        source.events, source.patients.with_columns(name=pl.col("patient")), name="made up", vocabulary="icd9"
    )
    method = Visits(k=2, payload=("snp", "name"))
    with pytest.raises(BadInput, match=message):
        protect(source, method, tmp_path / "out", measures=[{"phewas": {"map": str(map_file), **options}}])
    assert not (tmp_path / "out").exists()
