"""Names of a cohort's codes: those of ICD are built in, others come from the source's own tables.

A name beside each event (Synthea's DESCRIPTION, FHIR's `display`) is text of patients' rows; a release shows it only
where at least k patients have the code with this name. A name of a vocabulary table (OMOP's CONCEPT) is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from leeward.cohort.cohort import CodeName, Cohort
from leeward.vocabulary.names import icd_name, icd_of, system_name

ICD_TITLES = {"icd9": "ICD-9-CM", "icd10": "ICD-10-CM"}


def names_of(cohort: Cohort, codes: Iterable[str]) -> dict[str, CodeName]:
    """The name of each code or node; an empty name where none is known."""
    of_rows = vocabularies_of(cohort)
    found = {}
    for code in codes:
        vocabulary = of_rows.get(code)
        icd = (
            ICD_TITLES.get(vocabulary)
            if vocabulary in ICD_TITLES
            else icd_of(code, vocabulary or cohort.vocabulary)
        )
        title = None if icd is None else icd_name(code, icd)
        if title is not None:
            found[code] = CodeName(title, icd or "")
        elif code in cohort.names:
            found[code] = cohort.names[code]
        else:
            found[code] = CodeName("", system_name(vocabulary or ""))
    return found


def vocabularies_of(cohort: Cohort) -> Mapping[str, str]:
    """The vocabulary of each code where rows name it; nothing for a code with several."""
    events = cohort.events
    if events is None or "vocabulary" not in events.columns:
        return {}
    pairs = events.select(pl.col("code").cast(pl.String), pl.col("vocabulary").cast(pl.String)).unique()
    pairs = pairs.drop_nulls().filter(pl.col("code").is_unique())
    return dict(pairs.iter_rows())


def names_of_events(
    events: pl.DataFrame, code: pl.Series, name: pl.Series, vocabulary: str = ""
) -> dict[str, CodeName]:
    """The name that most patients' rows give each code (the first of equals); the arguments have the same rows."""
    rows = pl.DataFrame(
        {"patient": events["patient"], "code": code.cast(pl.String), "name": name.cast(pl.String)}
    )
    rows = rows.with_columns(pl.col("name").str.strip_chars().replace("", None)).drop_nulls("name")
    counted = rows.group_by("code", "name").agg(pl.col("patient").n_unique().alias("patients"))
    best = counted.sort("code", "patients", "name", descending=[False, True, False]).unique(
        "code", keep="first", maintain_order=True
    )
    return {
        code: CodeName(name, vocabulary, patients)
        for code, name, patients in best.select("code", "name", "patients").iter_rows()
    }
