"""Candidate records of patients in a disassociated release, for attackers without and with the algorithm."""

from __future__ import annotations

import numpy as np

from leeward.analysis.demographics.joint import records_in_release
from leeward.analysis.reidentification import Further, Known, Scope, draw_known_codes
from leeward.analysis.workloads import WORKLOAD_SEED
from leeward.arrays import count_noun
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact, in_words
from leeward.methods.disassociation.measures import name_codes
from leeward.methods.disassociation.measures.pieces import published_of
from leeward.methods.disassociation.measures.risk import Knowledge, knowledge_of, risk_after, single_codes
from leeward.release import Release

COUNTS_ALONE = "if all they know of the algorithm is when codes are counted"
WITHOUT_ALGORITHM, WITH_ALGORITHM = ", but not the algorithm", " and the algorithm"
WITH_COUNTS = ", and when codes are counted"
WITH_RULES = ", and what is counted, listed or shared where"


def scope(release: Release) -> Scope | None:
    """Scope of the guarantee: attackers who do not use the algorithm; None if it covers those who do."""
    if covers_algorithm(release):
        return None
    if knows_rules(release):
        return Scope(
            "if they know what is counted and listed in these clusters",
            "if they know how the clusters were found",
            "nothing is proved",
            "`attacker: algorithm` also covers attackers who know that.",
        )
    if knows_counts(release):
        found = f"some sets with a rare code leave fewer than {release.guarantee['k']} candidates"
        covered = "`attacker: rules` also covers attackers who know all but how the clusters were found."
        return Scope(COUNTS_ALONE, "if they know the whole algorithm", found, covered)
    without = ", without demographics," if release.parameters.get("demographics") else ""
    return Scope(
        "if they do not use the algorithm",
        "if they do",
        f"sets with a rare code leave fewer than {release.guarantee['k']} candidates",
        f"`attacker: algorithm`{without} also covers attackers who do.",
    )


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """Count the candidate records of each drawn patient by up to m known codes (sets that the release shows nowhere
    match every record), and those left for attackers who know the algorithm."""
    sets = records_in_release(release, cohort, name_codes(release, cohort))
    attacker = knowledge_of(release, published_of(release), cohort, sets)
    chosen, drawn = draw_known_codes(sets, attacker.published.m, "known codes")
    queries = [np.sort(numbers[numbers >= 0]) for numbers in (attacker.translate[codes] for codes in drawn)]
    asked = np.array([len(query) > 0 for query in queries], np.bool_)
    found, _ = attacker.candidates(attacker.number[chosen[asked]], [query for query in queries if len(query)])
    candidates = np.where(found > 0, found, release.records).astype(np.float64)
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    words = f"{exact(names)}{count_noun('code', int(release.guarantee['m']))} of a patient"
    if covers_algorithm(release):
        return Known(words + WITH_ALGORITHM, candidates, whole=False)
    if knows_rules(release):
        return Known(words + WITH_RULES, candidates, whole=False)
    without = WITH_COUNTS if knows_counts(release) else WITHOUT_ALGORITHM
    return Known(words + without, candidates, False, further_of(attacker, words + WITH_ALGORITHM, names))


def further_of(attacker: Knowledge, words: str, names: list[str]) -> Further:
    """Candidates for attackers who know the algorithm: by every single code, and by rare sets of up to m codes."""
    k, m = attacker.published.k, attacker.published.m
    singles = single_codes(attacker)
    tried = risk_after(attacker, seed=WORKLOAD_SEED)
    return Further(
        knows=words,
        known=f"sets of {in_words(names)} and one code" if names else "codes",
        sets=len(singles.candidates),
        below_k=int((singles.candidates < k).sum()),
        patients=singles.patients_below(k),
        among=len(attacker.sets),
        smallest=min(
            int(singles.candidates.min(initial=k)), tried["smallest_candidates_algorithm_known"] or k
        ),
        tried=tried["sets"] if m > 1 else 0,
        tried_below_k=tried["below_k_algorithm_known"],
        largest=m,
    )


def knows_counts(release: Release) -> bool:
    """Whether the guarantee's attacker knows from how many patients on codes are counted."""
    return release.parameters.get("attacker") == "counts"


def knows_rules(release: Release) -> bool:
    """Whether it knows what is counted, listed or shared where."""
    return release.parameters.get("attacker") == "rules"


def covers_algorithm(release: Release) -> bool:
    return release.parameters.get("attacker") == "algorithm"
