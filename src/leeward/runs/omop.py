"""A release as tables of the OMOP CDM 5.4, checked by rules in SQL before they are handed over (`omop.yaml`).

What the release does not have is made up, and said to be: every patient is born on one day; each visit is on a day of
its own, codes without visits all on one, and a code with an age in the middle of the years of that age.
"""

from __future__ import annotations

import textwrap
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from leeward.cohort.readers.omop import ATTRIBUTES
from leeward.contracts.trajectories import axis_of
from leeward.errors import BadInput, VerificationFailed, require_extra
from leeward.methods.trajectories.hierarchies import time_tree
from leeward.release import Release, ReleaseTable
from leeward.release.aside import written_aside
from leeward.release.folder import FORMATS, check_out, disk_errors
from leeward.release.tables import write_table
from leeward.runs.specs import open_release
from leeward.version import __version__

BIRTH = date(1900, 1, 1)
"""The artificial birth of every patient."""

DAY = date(1950, 1, 1)
"""The artificial day of a code that has neither age nor visit, and of a first visit."""

UNKNOWN = 0
"""The concept of what has none; the only one, unless the vocabulary that was added has another."""

CDM_5_4 = 756265
"""The concept of the version."""

REFUSED = {
    "disassociation": "its chunks do not say which codes belong to one patient, and patients would have to be invented",
    "condensation": "its rows are made up, one for nobody, and have no codes",
    "k-anonymity": "its rows are a table without codes",
    "linked": "its views are k-anonymous as they are joined there",
    "notes": "it has counts, and no records",
}
"""Methods whose releases are no tables of the CDM, and why."""

OF_PERSON = {
    "sex": "gender_source_value",
    **{name.removesuffix("_source_value"): name for name in ATTRIBUTES[4::2]},
}
"""Released columns that stand in PERSON, beside those that are called like these."""

MOST = 250
"""Characters of a text in METADATA."""


def omop(release: Release | str | Path, out: str | Path, *, format: str = "csv") -> list[dict[str, Any]]:  # noqa: A002  # as of `read`
    """Write a release of visits, trajectories, censoring or constraints as tables of the OMOP CDM 5.4.

    Parameters
    ----------
    release : Release, str or Path
        The folder that the recipient got (`share/`), or the one that contains it.
    out : str or Path
        Folder to write; it must not exist.
    format : {'csv', 'parquet'}, optional
        Format of the tables.

    Returns
    -------
    list of dict
        The rules that were checked: `table`, `field`, `rule`, the number of `failed` rows and, if it may fail, why
        (`expected`).

    Raises
    ------
    BadInput
        A release of another method, or `out` exists.
    VerificationFailed
        A rule fails without a reason. After any error, nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> claims = lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    >>> codes = [f"diag_{n}" for n in range(1, 11)]
    >>> columns = {"code": codes, "visit": "claim", "age": "age", "patients": ["sex"]}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> master = lw.protect(cohort, lw.Visits(k=5), "release")
    >>> rules = lw.omop("release", "cdm")
    >>> [each["rule"] for each in rules if each["failed"] and not each["expected"]]
    []
    """
    if format not in FORMATS:
        raise BadInput(f"`format`: cannot write `{format}`; choose from {', '.join(FORMATS)}.")
    opened, out = open_release(release), Path(out)
    if opened.method in REFUSED:
        raise BadInput(
            f"{opened.share}: a release by {opened.method} is not written as OMOP tables: {REFUSED[opened.method]}."
        )
    check_out(out)
    model = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    events, said = _events(opened)
    concepts = concepts_among(events["code"])
    tables = tables_of(opened, events, said, concepts, model["tables"])
    with disk_errors(out, "tables"), written_aside(out) as folder:
        for name, rows in tables.items():
            file = ReleaseTable.of(f"{name}.{format}", rows.to_arrow())
            write_table(file, folder, folder)
        found = check(folder, model, concepts.to_list())
        wrong = [each for each in found if each["failed"] and not each["expected"]]
        if wrong:
            told = "; ".join(
                f"{each['table']}.{each['field']} {each['rule']}: {each['failed']:,} rows" for each in wrong
            )
            raise VerificationFailed(f"{len(wrong)} rules of OMOP tables fail: {told}. Nothing was written.")
    return found


def tables_of(
    release: Release, events: pl.DataFrame, said: str, concepts: pl.Series, columns: dict[str, dict[str, str]]
) -> dict[str, pl.DataFrame]:
    """The tables by name, with the columns of the CDM and nulls where the release has nothing."""
    people = _people(release)
    spans = events.group_by("person_id").agg(
        pl.col("day").min().alias("observation_period_start_date"),
        pl.col("day").max().alias("observation_period_end_date"),
    )
    visits = events.filter(pl.col("visit_occurrence_id").is_not_null()).unique(
        "visit_occurrence_id", keep="first"
    )
    found = {
        "PERSON": people,
        "OBSERVATION_PERIOD": spans.sort("person_id").with_row_index("observation_period_id", 1),
        "VISIT_OCCURRENCE": visits.sort("visit_occurrence_id").select(
            "visit_occurrence_id", "person_id", visit_start_date="day", visit_end_date="day"
        ),
        "CONDITION_OCCURRENCE": events.drop_nulls("code").with_row_index("condition_occurrence_id", 1).select(
            "condition_occurrence_id", "person_id", "visit_occurrence_id",
            pl.when(pl.col("code").is_in(concepts.implode())).then("code").cast(pl.Int64).alias("condition_concept_id"),
            condition_start_date="day", condition_source_value="code",
        ),
        "CDM_SOURCE": _source(release, said),
        "METADATA": _metadata(release, said),
    }  # fmt: skip
    types = {"bigint": pl.Int64, "date": pl.Date, "varchar": pl.String}
    return {name: _laid_out(rows, columns[name], types) for name, rows in found.items()}


def _laid_out(rows: pl.DataFrame, columns: dict[str, str], types: dict[str, Any]) -> pl.DataFrame:
    """The columns of a table in the CDM's order; concepts are 0 and all else null where nothing is given."""
    given = {name: pl.col(name) if name in rows.columns else pl.lit(None) for name in columns}
    return rows.select(
        (each.fill_null(UNKNOWN) if name.endswith("_concept_id") else each)
        .cast(types[columns[name]])
        .alias(name)
        for name, each in given.items()
    )


def _events(release: Release) -> tuple[pl.DataFrame, str]:
    """`person_id`, `visit_occurrence_id`, `code`, `day` of every code, and of visits without codes; what is made up."""
    person = (pl.col("record") + 1).alias("person_id")
    none = pl.lit(None, pl.Int64).alias("visit_occurrence_id")
    if release.method == "trajectories":
        rows = release.table("trajectories.parquet").sort("record", "position").collect()
        if axis_of(release.parameters) == "date":
            return _dated(release, rows.select(person, none, "code", "date"))
        ages = (
            rows["age"].str.extract_groups(r"(?<first>\d+)(?:-(?<last>\d+))?").struct.unnest().cast(pl.Int64)
        )
        first = ages["first"].fill_null(0)
        last = ages["last"].fill_null(first)
        width = int(((last - first + 1) // 2).max() or 0)  # type: ignore[arg-type]  # a length
        year = pl.lit(BIRTH.year + (first + last) // 2)
        said = (
            "a code is on 1 January of the year in which the patient has the released age, or the middle of it "
            f"(at most {width} years off)"
        )
        return rows.select(person, none, "code", pl.date(year, 1, 1).alias("day")), said
    file = "visits.parquet" if release.method == "visits" else "records.parquet"
    rows = release.table(file).collect()
    if release.method == "visits":
        rows = rows.sort("record", "visit").with_row_index("visit_occurrence_id", 1)
        day = pl.lit(DAY) + pl.duration(days="visit")
        said = "each visit of a patient is on a day of its own, in an order that says nothing"
        rows = rows.select(person, "visit_occurrence_id", code="codes", day=day)
        return rows.explode("code", empty_as_null=True, keep_nulls=True), said
    rows = rows.sort("record").select(person, none, code="codes", day=pl.lit(DAY))
    return rows.explode("code", empty_as_null=True, keep_nulls=True).drop_nulls(
        "code"
    ), "all codes are on one day"


def _dated(release: Release, rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Pairs with dates: the first day of the middle month of each."""
    times = time_tree(release.parameters)
    middles = times.first + (times.hierarchy.first_leaf + times.hierarchy.last_leaf) // 2
    months = dict(zip(times.hierarchy.labels, middles.tolist(), strict=True))
    month = pl.col("date").replace_strict(months, return_dtype=pl.Int64)
    said = "a code is on the first day of the month that is released, or of the middle one"
    return rows.with_columns(day=pl.date(month // 12, month % 12 + 1, 1)).drop("date"), said


def _people(release: Release) -> pl.DataFrame:
    """PERSON, with what the release has of its columns under their names or the usual ones."""
    rows = release.table("records.parquet").sort("record").collect()
    carried = {column: pl.col(name).cast(pl.String) for name, column in _columns(release).items() if column}
    return rows.select(
        person_id=pl.col("record") + 1,
        person_source_value=pl.col("record").cast(pl.String),
        year_of_birth=BIRTH.year,
        month_of_birth=BIRTH.month,
        day_of_birth=BIRTH.day,
        **carried,
    )


def _columns(release: Release) -> dict[str, str | None]:
    """The columns of records beside their codes, each with its column of PERSON; None where that has none."""
    names = release.table("records.parquet").collect_schema().names()
    found = {name: OF_PERSON.get(name, name) for name in names if name not in ("record", "codes")}
    return {name: column if column in OF_PERSON.values() else None for name, column in found.items()}


def _source(release: Release, said: str) -> pl.DataFrame:
    guarantee = release.guarantee
    text = (
        f"Released by the method {release.method} under {guarantee['name']}, k = {guarantee['k']}. "
        f"Dates are artificial: every patient is born on {BIRTH}, and {said}. METADATA has the attacker."
    )
    today = date.today()
    return pl.DataFrame(
        {
            "cdm_source_name": ["Anonymized release"],
            "cdm_source_abbreviation": [f"Leeward {release.method}"],
            "cdm_holder": ["whoever gave the release"],
            "source_description": [text],
            "cdm_etl_reference": [f"leeward omop, version {__version__}"],
            "source_release_date": [today],
            "cdm_release_date": [today],
            "cdm_version": ["v5.4"],
            "cdm_version_concept_id": [CDM_5_4],
            "vocabulary_version": ["not stated"],
        }
    )


def _metadata(release: Release, said: str) -> pl.DataFrame:
    """Method, guarantee, attacker and what is made up, in texts of the length that the CDM has room for."""
    guarantee = release.guarantee
    texts = [
        ("method", release.method),
        ("guarantee", str(guarantee["name"])),
        *((name, str(guarantee[name])) for name in ("k", "m") if name in guarantee),
        ("attacker", str(guarantee["attacker"])),
        *(("not protected", str(each)) for each in guarantee["not_protected"]),
        ("dates are artificial", said),
        *([("seeded", "a person chose the seed: for tests and studies only")] if release.seeded else []),
        ("columns left out", ", ".join(name for name, column in _columns(release).items() if column is None)),
    ]
    rows = [(name, part) for name, text in texts for part in textwrap.wrap(text, MOST)]
    return pl.DataFrame(rows, schema=["name", "value_as_string"], orient="row").with_row_index(
        "metadata_id", 1
    )


def concepts_among(codes: pl.Series) -> pl.Series:
    """The codes that are concepts of the CONCEPT_ANCESTOR that was added (`leeward vocabulary add omop`), as texts."""
    from leeward.vocabulary import user_tree
    from leeward.vocabulary.omop import scan

    path, asked = user_tree("omop"), codes.drop_nulls().unique()
    if path is None:
        return asked.clear()
    rows = scan(path).select("ancestor_concept_id", "descendant_concept_id").unpivot().select("value")
    return rows.filter(pl.col("value").is_in(asked.implode())).unique().collect(engine="streaming")["value"]


def check(folder: Path, model: dict[str, Any], concepts: list[str]) -> list[dict[str, Any]]:
    """Each rule with the rows of the files that fail it."""
    require_extra("`omop`", "files", "duckdb")
    import duckdb

    with duckdb.connect() as database:
        for name, columns in model["tables"].items():
            file = next(folder.glob(f"{name}.*"))
            read = (
                f"read_csv(?, header = true, columns = {columns})"
                if file.suffix == ".csv"
                else "read_parquet(?)"
            )
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM {read}", [str(file)])
        database.execute(
            "CREATE TABLE known_concept AS SELECT CAST(unnest(?) AS BIGINT) AS concept_id", [concepts]
        )
        return [
            {
                "table": table,
                "field": field,
                "rule": rule,
                "expected": " ".join(why),
                "failed": int(database.execute(sql).fetchone()[0]),  # type: ignore[index]  # a count has a row
            }
            for table, field, rule, sql, *why in model["rules"]
        ]
