"""What a verification could not check with what it was given, in words: for a recipient who has the share alone."""

from __future__ import annotations

from leeward.verify.checks import Source
from leeward.verify.manifest import DIGESTS, DRAWING, NAME, Share, custody_of
from leeward.verify.storage import foreign_writers

LOST_ROWS = "whether codes and days are the patients' own, and what is missing was rare"

WITHOUT_SOURCE = {
    "disassociation": ("whether the chunks hold the patients' codes, with none lost or invented",),
    "constraints": ("whether the records are the patients' own, generalized, with none lost or invented",),
    "censoring": ("whether the records are parts of the patients' own",),
    "trajectories": (
        "whether the records generalize the patients' own codes and ages, each a patient of its own",
        "whether the code hierarchy lists a code that fewer than k patients have",
        "whether the payload is the patients' own",
    ),
    "linked": ("whether the rows are of patients with these demographics", LOST_ROWS),
    "visits": (
        "whether each released visit is part of one visit of its patient, with nothing invented",
        "whether the payload is the patients' own",
    ),
    "condensation": (
        "whether rows were made from groups of at least k patients",
        "whether rows are patients' own, or close to them",
        "whether strata, times and permissible values are as stated",
    ),
    "k-anonymity": ("whether the values are those of groups of the source's rows",),
    "notes": (),
}
"""Method -> what only the source can answer."""

IDENTIFIER = "whether the payload holds an identifier that the spec names as payload"

NEVER = {
    "constraints": ("whether the order of records that several patients could have says whose they are",),
    "censoring": (IDENTIFIER,),
    "trajectories": (IDENTIFIER,),
    "visits": (IDENTIFIER,),
    "condensation": (
        "whether rows are nearer to patients' own than chance makes them, with fewer than three columns of numbers",
        "with --coarsen-groups, whether each time is a median",
        "columns that a stated relation names, and columns with imputed values, number by number",
    ),
}
"""Method -> what this verifier does not check, with the source or without."""

LOST = "whether codes were lost on the way in or out: the method's counts are there"

ORDER = "whether the order of records follows the source"
PARAMETERS = "whether the parameters are those of the run, where neither words nor files depend on them"

WITHOUT_CUSTODY = {
    "disassociation": (
        "whether each cluster is of the patients that it was made of, chunk by chunk",
        "whether the numbers of clusters and subrecords follow the source, or tell which subrecords are one patient's",
    ),
    "notes": ("whether the budget was charged, and whether every item is of the public vocabulary",),
    "constraints": ("whether generalized codes stay inside the utility constraints",),
    "condensation": (
        "the groups, from which k follows",
        "whether groups show their source rows' levels and numbers",
        "whether rows are nearer to patients' own than chance makes them",
        ORDER,
    ),
    "k-anonymity": ("whether groups show their source rows' typical values", ORDER),
    "censoring": (LOST, ORDER, "which patient a record is of, and whether the payload is that patient's"),
    "trajectories": (LOST, ORDER, "which patient a record is of, and whether the payload is that patient's"),
    "linked": (LOST_ROWS, ORDER, "which patient a number is of"),
    "visits": (LOST, ORDER, "which visit of the source a released one comes from"),
}
"""Method -> what needs the custodian's folder."""


WITHOUT_LEDGER = (
    "whether the counts are those that were paid for, and hold any noise at all: noise cannot be seen in one release",
    "whether epsilon, the noise of each level and the thresholds are those that were asked for",
    "whether itemsets were left out",
)
"""What of a catalogue only the ledger's answers show."""

EVIDENCE = "whether the custodian's files (figures, report, spec) are as the run wrote them"

AS_DRAWN = (
    "whether the payload that joined, and the reason why membership is secret, are those of the drawing"
)


def list_gaps(share: Share, source: Source | None) -> tuple[str, ...]:
    """One sentence for each thing that was not checked."""
    found = []
    if source is None:
        found += [f"Without the source: {each}." for each in WITHOUT_SOURCE.get(share.method, ())]
    custody = custody_of(share) is not None
    found += _of_custody(share)
    if share.method == "notes" and (source is None or source.answers is None):
        found += [f"Without the ledger (--index INDEX): {each}." for each in WITHOUT_LEDGER]
    if share.method == "disassociation":
        found += _of_disassociation(share, custody)
    if share.manifest["parameters"].get("demographics") and share.method != "censoring":
        found.append("Never checked: whether the records that joined a small class were drawn at random.")
    if share.manifest["guarantee"].get("m") is None and share.method == "constraints" and not custody:
        found.append("Without the custodian's folder: the listed code sets, which the guarantee is about.")
    foreign = foreign_writers(share)
    if foreign:
        found.append(
            f"Another version of Arrow wrote {foreign} files: their metadata and gaps were inspected, but not whether "
            "dictionaries and statistics hold more than the rows do."
        )
    found += [f"Never checked: {each}." for each in NEVER.get(share.method, ())]
    found.append("Never checked: whether other releases of the same patients exist.")
    return tuple(found)


def _of_custody(share: Share) -> list[str]:
    """What needs the custodian's folder, its digests, and its spec."""
    custody = custody_of(share)
    found = []
    if custody is None:
        found += [
            f"Without the custodian's folder: {each}." for each in WITHOUT_CUSTODY.get(share.method, ())
        ]
        found.append(f"Without the custodian's folder: {EVIDENCE}.")
    elif (custody / DIGESTS).exists():
        found.append(f"Never checked: whether custody/{DIGESTS} was restated after a change.")
    elif share.name == NAME:  # digests are written when all else is
        found.append(
            f"Without custody/{DIGESTS}, which earlier versions of Leeward did not write: {EVIDENCE}."
        )
    if custody is None or not (custody / "spec.yaml").is_file():
        found.append(f"Without the spec of the run: {PARAMETERS}.")
    drawn = share.method == "visits" and share.manifest["parameters"].get("extract")
    if drawn and custody is not None and not (custody / "data" / DRAWING).is_file():
        found.append(
            f"Without custody/data/{DRAWING}, which earlier versions of Leeward did not write: {AS_DRAWN}."
        )
    return found


def _of_disassociation(share: Share, custody: bool) -> list[str]:
    m, parameters = share.manifest["guarantee"].get("m"), share.manifest["parameters"]
    found = []
    if isinstance(m, int) and m > 2:
        found.append(f"Sets of 3 to {m} codes: candidates were counted for a sample of them.")
    if parameters.get("payload") and not custody:
        found.append(
            "Without the custodian's folder: whether payload values are those of their cluster's patients, and whether "
            "their order says whose they are."
        )
    if parameters.get("diversity") and not custody:
        found.append(
            "Without the custodian's folder: whether at most one record in l of every cluster has a given sensitive "
            "code; item chunks have no counts."
        )
    return found
