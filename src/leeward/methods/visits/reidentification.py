"""Candidates of patients in released visits (records with the same visit, or the same labels of a record), and an
attack by somebody who knows codes of one visit of a person (docs/methods/visits.md)."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import polars as pl

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.itemsets import supports_of
from leeward.analysis.reidentification import Holders, Known, Tried, draw_known_codes
from leeward.arrays import AnyArray, Float64s, Int64s, count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.contracts.classes import exact
from leeward.methods.visits.sets import Distinct
from leeward.methods.visits.visit_lists import SEPARATOR, VisitLists, bare, class_of, lists_apart
from leeward.randomness import Randomness
from leeward.release import Release

VISITS, SETS = 1_000, 50
"""Numbers of source visits drawn, and of sets of codes looked up for each."""

REMEDY = "`--level containment`, or `--merge-visits` at level visit, leaves none"


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known | None:
    """Number of records (of the same class of demographics, if any) that match the knowledge of the level's attacker.
    None for an extract: its candidates are those of the population."""
    if release.parameters.get("extract"):
        return None
    lists = lists_apart(release)
    before = exact(release.demographics)
    level = str(release.parameters["level"])
    if level in ("visit", "containment"):
        words = f"{before}every code of one visit of a patient that the release shows"
        counted = with_same_visit if level == "visit" else with_codes_of_visit
        candidates = counted(lists, release.records)
        return Known(words, candidates, whole=level == "visit")
    m = int(release.guarantee.get("m") or 1)
    words = f"{before}{count_noun('code', m)} of a patient that the release shows"
    return Known(words, with_labels(release, lists, m), whole=False)


def with_same_visit(lists: VisitLists, records: int) -> Float64s:
    """Number of records with a visit of exactly the same labels, for each visit."""
    distinct = Distinct.of(lists.sets(records), len(lists.labels))
    return distinct.holders[distinct.set_of].astype(np.float64)


def with_codes_of_visit(lists: VisitLists, records: int) -> Float64s:
    """Number of records with all labels of a visit, for each visit drawn."""
    offsets, values = lists.unite(records)
    visits = CodeSets(lists.offsets, lists.values, lists.labels, pl.Series(lists.record))
    _, drawn = draw_known_codes(visits, len(lists.labels), "visits")
    sets = CodeSets(offsets, values, lists.labels, pl.Series(np.arange(records)))
    return supports_of(sets, drawn).astype(np.float64)


def with_labels(release: Release, lists: VisitLists, m: int) -> Float64s:
    """Number of records with all of up to m labels of a record, for each record drawn; all for one without labels."""
    offsets, values = lists.unite(release.records)
    sets = CodeSets(offsets, values, lists.labels, pl.Series(np.arange(release.records)))
    chosen, queries = draw_known_codes(sets, m, "shown codes")
    held = supports_of(sets, [query for query in queries if len(query)])
    alike = _alike(release)[[r for r, query in zip(chosen, queries, strict=True) if not len(query)]]
    return np.concatenate([held, alike]).astype(np.float64)


def _alike(release: Release) -> AnyArray:
    """int64[records]: size of each record's class of demographics; all records without classes."""
    if not release.demographics:
        return np.full(release.records, release.records)
    classes = ReleasedClasses.read(release)
    return classes.records[classes.of_records(release)]


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Search for people by one visit each: codes are mapped to the released labels that contain them, and the labels
    shown in the person's record are looked up in all records. The person's record, from custody, only determines what
    the attacker can see of the visit. Extracts are not attacked: their figures on members cover it."""
    people = release.custody_table("patients")
    if people is None or release.parameters.get("extract"):
        return []
    level, k = str(release.parameters["level"]), int(release.guarantee["k"])
    m = {"codes": release.guarantee.get("m"), "code": 1}.get(level)
    visits, names = lists_apart(release), release.demographics
    class_of_record = (
        ReleasedClasses.read(release).of_records(release) if names else np.zeros(release.records, int)
    )
    offsets, values = visits.unite(release.records)
    labels = _labels_of_codes(visits, bool(names))
    holders = Holders(offsets, values, len(visits.labels))
    del visits
    lens = cohort.visits()
    record_of = _records(lens.patients, people)
    drawn = Randomness.of(0).stream("attack").permutation(lens.n_visits)[:VISITS]
    patient = lens.patient_of_visit()
    attacked = succeeded = 0
    for visit in drawn.tolist():
        mine = int(record_of[patient[visit]])
        number = int(class_of_record[mine])
        own = values[offsets[mine] : offsets[mine + 1]].tolist() if mine >= 0 else []
        codes = lens.values[lens.offsets[visit] : lens.offsets[visit + 1]].tolist()
        shown = sorted({labels.get((number, lens.codes[code]), -1) for code in codes}.intersection(own))
        if shown:
            size = min(m or len(shown), len(shown))
            attacked += 1
            succeeded += any(holders.count(each) < k for each in islice(combinations(shown, size), SETS))
    return [_tell(release, m, k, attacked, succeeded)]


def _labels_of_codes(visits: VisitLists, classed: bool) -> dict[tuple[int, str], int]:
    """The label that contains each code, by class (0 without classes)."""
    return {
        (class_of(label) if classed else 0, member): place
        for place, label in enumerate(visits.labels)
        for member in bare(label).split(SEPARATOR)
    }


def _tell(release: Release, m: int | None, k: int, attacked: int, succeeded: int) -> Tried:
    known = "every code" if m is None else "one code" if m == 1 else f"up to {m} codes"
    beside = ", and the person's exact demographics" if release.demographics else ""
    covered = release.parameters["level"] != "visit" or bool(release.parameters.get("merge_visits"))
    return Tried(
        f"knows {known} of one visit of a person{beside}, and reads the visits of each record together",
        f"fewer than {k} records show what the person's record shows of the visit",
        attacked,
        succeeded,
        covered,
        "" if covered else REMEDY,
    )


def _records(patients: pl.Series, people: pl.DataFrame) -> Int64s:
    left = pl.DataFrame({"patient": patients.cast(pl.String)})
    right = people.with_columns(pl.col("patient").cast(pl.String))
    joined = left.join(right, on="patient", how="left", maintain_order="left")
    return joined["record"].cast(pl.Int64).fill_null(-1).to_numpy()
