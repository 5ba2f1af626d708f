"""What a verification could not check with what it was given, in words: for a recipient who has the share alone."""

from __future__ import annotations

from leeward.verify.checks import Source
from leeward.verify.manifest import DIGESTS, DRAWING, NAME, Share
from leeward.verify.storage import foreign_writers

LOST_ROWS = "whether codes and days are the patients' own, and what is missing was rare"

WITHOUT_SOURCE = {
    "disassociation": ("whether the chunks hold the patients' codes, with none lost or invented",),
    "constraints": ("whether the records are the patients' own, generalized, with none lost or invented",),
    "censoring": ("whether the records are parts of the patients' own",),
    "trajectories": (
        "whether the records generalize the patients' own codes and ages (or dates), each a patient of its own",
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

NO_CUSTODY = "Without the custodian's folder"
LISTED_SETS = "the listed code sets, which the guarantee is about"
AS_ARROW_WROTE = (
    "their metadata and gaps were inspected, but not whether dictionaries and statistics hold more than the "
    "rows do"
)
OTHERS = "whether other releases of the same patients exist"


def list_gaps(share: Share, source: Source | None) -> tuple[str, ...]:
    """One sentence for each thing that was not checked."""
    method, parameters = share.method, share.manifest["parameters"]
    drawn = bool(parameters.get("demographics")) and method != "censoring"
    no_answers = method == "notes" and (source is None or source.answers is None)
    whole_sets = method == "constraints" and share.manifest["guarantee"].get("m") is None
    foreign = foreign_writers(share)
    return (
        *_gaps(source is None, "Without the source", *WITHOUT_SOURCE.get(method, ())),
        *_of_custody(share),
        *_gaps(no_answers, "Without the ledger (--index INDEX)", *WITHOUT_LEDGER),
        *_of_disassociation(share),
        *_gaps(drawn, "Never checked", "whether the records that joined a small class were drawn at random"),
        *_gaps(whole_sets and share.custody is None, NO_CUSTODY, LISTED_SETS),
        *_gaps(foreign > 0, f"Another version of Arrow wrote {foreign} files", AS_ARROW_WROTE),
        *_gaps(True, "Never checked", *NEVER.get(method, ()), OTHERS),
    )


def _gaps(applies: bool, why: str, *gaps: str) -> list[str]:
    """What was not checked and why, where that applies."""
    return [f"{why}: {each}." for each in gaps] if applies else []


def _of_custody(share: Share) -> list[str]:
    """What needs the custodian's folder, its digests, and its spec."""
    custody, earlier = share.custody, ", which earlier versions of Leeward did not write"
    if custody is None:
        lacking = [*WITHOUT_CUSTODY.get(share.method, ()), EVIDENCE]
        return [*_gaps(True, NO_CUSTODY, *lacking), *_gaps(True, "Without the spec of the run", PARAMETERS)]
    digests, extract = (custody / DIGESTS).exists(), share.manifest["parameters"].get("extract")
    undrawn = share.method == "visits" and bool(extract) and share.kept(DRAWING) is None
    written = share.name == NAME  # digests are written when all else is
    return [
        *_gaps(digests, "Never checked", f"whether custody/{DIGESTS} was restated after a change"),
        *_gaps(written and not digests, f"Without custody/{DIGESTS}{earlier}", EVIDENCE),
        *_gaps(not (custody / "spec.yaml").is_file(), "Without the spec of the run", PARAMETERS),
        *_gaps(undrawn, f"Without custody/data/{DRAWING}{earlier}", AS_DRAWN),
    ]


def _of_disassociation(share: Share) -> list[str]:
    if share.method != "disassociation":
        return []
    m, parameters = share.manifest["guarantee"].get("m"), share.manifest["parameters"]
    without = share.custody is None
    sampled = isinstance(m, int) and m > 2
    return [
        *_gaps(sampled, f"Sets of 3 to {m} codes", "candidates were counted for a sample of them"),
        *_gaps(
            bool(parameters.get("payload")) and without,
            NO_CUSTODY,
            "whether payload values are those of their cluster's patients, and whether their order says whose they are",
        ),
        *_gaps(
            bool(parameters.get("diversity")) and without,
            NO_CUSTODY,
            "whether at most one record in l of every cluster has a given sensitive code; item chunks have no counts",
        ),
    ]
