"""What two releases give away together, measured from the custodian's folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leeward.release import Release
from leeward.runs.specs import read_custody_spec, read_source
from leeward.runs.writing import files_of

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.composition import Bound
    from leeward.release.spec import SourceSpec


def measure_folders(earlier: str | Path, later: str | Path, source: Cohort | None = None) -> Bound | None:
    """The strongest attack on two releases of overlapping patients. None where no attack on such a pair is known, or
    the source of one is no longer as it was: nothing is measured then, which is not the same as safe.

    Parameters
    ----------
    earlier, later : folders with custody
    source : of the later one, where it was read already

    Raises
    ------
    BadInput
        A folder is not a release or is damaged.
    """
    from leeward.composition import Held, measure

    if source is not None and source.files:  # larger than memory
        return None
    one, two = Release.open(earlier), Release.open(later)
    if any("versions" in each.manifest for each in (one, two)):  # custody names the source of one batch alone
        return None
    return measure(Held(one, _source_of(one)), Held(two, _source_of(two) if source is None else source))


def _source_of(release: Release) -> Cohort | None:
    place = unchanged_source(release)
    return None if place is None else read_source(place)


def unchanged_source(release: Release) -> SourceSpec | None:
    """Where a release's source is, if its files are still those that were read."""
    spec, files = read_custody_spec(release), release.custody_json("source_files.json")
    if spec is None or files is None or files_of(spec.source) != files["files"]:
        return None
    return spec.source
