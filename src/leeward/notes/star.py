"""The table of notes as i2b2's star schema, whole or by HIPAA's Safe Harbor rule (45 CFR 164.514(b)(2)(i)).

All that a note says of its patient is facts of the note, since notes of a patient may differ. A concept is `TERM:ID` of
the lexicon, or `AGE:`, `SEX:`, `RACE:`, `ZIP:` or `PLACE:` with a value.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from leeward.notes.lexicon import Lexicon
from leeward.notes.table import OLDEST, QUASI

UNKNOWN = date(1900, 1, 1)
"""The day of a note whose year is unknown: a fact of i2b2 has to have one."""

README = """# Clinical notes as tables of i2b2, by HIPAA's Safe Harbor rule

`observation_fact.csv` has a row for each health term (`TERM:`), age, sex, race and, where three digits were kept, ZIP
code that a note states. Of dates only the year is the patient's: `start_date` is 1 January, or 1900-01-01 for an
unknown year. Ages above 89 are `AGE:90`; ages from which one above 89 would follow are left out.

Nothing is guaranteed: a patient may be the only one of an age and sex in a year, and programs that read notes err.
Whoever gets these tables must not try to find out who the patients are.
"""


def generalize_by_safe_harbor(table: pl.DataFrame, restricted: frozenset[str] | None) -> pl.DataFrame:
    """The table with years for dates, no places, three digits of ZIP codes (000 for `restricted` areas; None: no
    digits), and no age from which, with the year of a later visit, an age above 89 follows."""
    later = pl.col("visit_year").max().over("patient") - pl.col("visit_year")
    # 1: a birthday between
    tells = (pl.col("age") < OLDEST) & (later > 0) & (pl.col("age") + later + 1 >= OLDEST)
    area = pl.col("zip").str.head(3) if restricted is not None else pl.lit(None, pl.String)
    return table.with_columns(
        pl.lit(None, pl.Int32).alias("visit_month"),
        pl.when(tells.fill_null(False)).then(None).otherwise("age").alias("age"),
        pl.when(area.is_in(restricted or [])).then(pl.lit("000")).otherwise(area).alias("zip"),
        pl.lit(None, pl.String).alias("place"),
    )


def build_star(table: pl.DataFrame, words: Lexicon) -> dict[str, pl.DataFrame]:
    """The tables of the star, by name; patients are numbered in the order of their pseudonyms, which has no meaning."""
    notes = table.select(
        encounter_num="note",
        patient_num=pl.col("patient").rank("dense").cast(pl.Int64),
        start_date=pl.date("visit_year", pl.col("visit_month").fill_null(1), 1).fill_null(UNKNOWN),
        TERM="terms",
        **{name.upper(): pl.concat_list(pl.col(name).cast(pl.String)) for name in QUASI},
    ).sort("encounter_num")
    key = notes.columns[:3]
    said = notes.unpivot(index=key, variable_name="kind").explode("value", empty_as_null=True).drop_nulls()
    facts = said.select(
        *key, "kind", "value", concept_cd=pl.format("{}:{}", "kind", "value"),
        provider_id=pl.lit("@"), modifier_cd=pl.lit("@"), instance_num=1,
    ).sort("encounter_num", "concept_cd")  # fmt: skip
    once = facts.unique("concept_cd").sort("concept_cd")
    names = {term: words[term].name for term in once.filter(kind="TERM")["value"] if term in words}
    return {
        "observation_fact": facts.drop("kind", "value"),
        "patient_dimension": notes.select("patient_num").unique().sort("patient_num"),
        "visit_dimension": notes.select(key),
        "concept_dimension": once.select(
            pl.format("\\Notes\\{}\\{}\\", "kind", "value").alias("concept_path"),
            "concept_cd",
            name_char=pl.col("value").replace(names),
        ),
    }
