"""What a verification could not check with what it was given, in words: for a recipient who has the share alone."""

from __future__ import annotations

from leeward.verify.checks import Source
from leeward.verify.manifest import Share
from leeward.verify.storage import foreign_writers

WITHOUT_SOURCE = {
    "disassociation": (
        "whether the chunks hold the patients' codes, with none lost or invented",
        "whether the numbers of subrecords tell which of them belong to one patient",
    ),
    "constraints": (
        "whether the records are the patients' own, generalized, with none lost or invented",
        "whether the order of records says whose they are",
    ),
    "censoring": ("whether the records are parts of the patients' own", "the order of records"),
    "trajectories": (
        "whether the records generalize the patients' own codes and ages, each a patient of its own",
        "whether the code hierarchy lists a code that fewer than k patients have",
        "whether the payload is the patients' own, and holds no identifier",
        "whether the order of records says whose they are",
    ),
    "visits": (
        "whether each released visit is part of one visit of its patient, with nothing invented",
        "whether the payload is the patients' own, and holds no identifier",
        "whether the order of records or visits says whose they are",
    ),
    "condensation": (
        "whether rows were made from groups of at least k patients",
        "whether rows are patients' own, or close to them",
        "whether strata, times and permissible values are as stated",
        "whether the order of rows says whose they are",
    ),
    "k-anonymity": (
        "whether the values are those of groups of the source's rows",
        "whether the order of rows says whose they are",
    ),
    "notes": (),
}
"""Method -> what only the source can answer."""

WITHOUT_CUSTODY = {
    "notes": (
        "whether the counts hold the noise stated: noise cannot be seen in one release",
        "whether the budget was charged, and whether every item is of the public vocabulary",
    ),
    "constraints": ("whether generalized codes stay inside the utility constraints",),
    "condensation": ("the groups, from which k follows",),
}
"""Method -> what needs the custodian's folder."""


def unchecked(share: Share, source: Source | None) -> tuple[str, ...]:
    """One sentence for each thing that was not checked."""
    found = []
    if source is None:
        found += [f"Without the source: {each}." for each in WITHOUT_SOURCE.get(share.method, ())]
    custody = share.folder.name == "share" and (share.folder.parent / "custody").is_dir()
    if not custody:
        found += [
            f"Without the custodian's folder: {each}." for each in WITHOUT_CUSTODY.get(share.method, ())
        ]
    if share.method == "disassociation":
        found += _of_disassociation(share, source)
    if share.manifest["guarantee"].get("m") is None and share.method == "constraints" and not custody:
        found.append("Without the custodian's folder: the listed code sets, of which the guarantee speaks.")
    foreign = foreign_writers(share)
    if foreign:
        found.append(
            f"Another version of Arrow wrote {foreign} files: their metadata and gaps were inspected, but not whether "
            "dictionaries and statistics hold more than the rows do."
        )
    found.append("Never checked: whether other releases of the same patients exist.")
    return tuple(found)


def _of_disassociation(share: Share, source: Source | None) -> list[str]:
    m, parameters = share.manifest["guarantee"].get("m"), share.manifest["parameters"]
    found = []
    if isinstance(m, int) and m > 2:
        found.append(f"Sets of 3 to {m} codes: candidates were counted for a sample of them.")
    if parameters.get("diversity"):
        found.append(
            "Whether at most one record in l of every cluster has a given sensitive code: item chunks have no counts"
            + ("." if source is None else "; only their sum over the clusters was compared with the source.")
        )
    return found
