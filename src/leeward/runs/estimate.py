"""Count patients in a release, whatever the method: how many have some codes, and some demographics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.generalized import counts_in, read_parts
from leeward.analysis.record_counts import counts_where, labels_of
from leeward.arrays import Float64s, Int64s
from leeward.errors import BadInput
from leeward.methods.disassociation.measures import estimates as chunks
from leeward.methods.disassociation.measures.estimates import DEFAULT, Estimate, nearest_codes, require_codes
from leeward.release import Release
from leeward.runs.specs import open_release

BETWEEN = re.compile(r",(?![^(]*\))")
"""The commas between codes of a text, not those inside a label in brackets."""

COUNTED = ("disassociation", "constraints", "visits", "censoring", "trajectories")


def estimate(
    release: Release | str | Path,
    codes: Iterable[str] | str,
    prior: str | None = None,
    *,
    where: Mapping[str, str] | None = None,
) -> Estimate:
    """Estimate how many patients of a release have all of some codes.

    Parameters
    ----------
    release : Release, str or Path
        The folder that the recipient got (`share/`), or the one that contains it.
    codes : str or iterable of str
        Codes; a text may list several with commas. A generalized code as released, `(410,411)`, counts patients with
        any of its codes.
    prior : str, optional
        For disassociation only, what to assume about a code that is listed without a count: `occupancy` (default),
        `cubic`, `graded`, `uniform` or `one`.
    where : mapping of str to str, optional
        Labels of demographic columns, such as `{"age": "70-79"}`: only patients at or below them count.

    Returns
    -------
    Estimate
        `low` and `high`, which are certain bounds, and the `expected` number of patients.

    Raises
    ------
    BadInput
        A method whose releases are not counted, or a code, column or label that the release lacks; the message names
        the nearest.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> found = lw.estimate("release/share", "935.01")
    >>> found.low <= found.expected <= found.high
    True
    """
    asked = codes_of(codes) if isinstance(codes, str) else list(codes)
    return estimates(release, [asked], prior, where)[0]


def codes_of(text: str) -> list[str]:
    """The codes between the commas of a text, a label in brackets as one. BadInput where one is empty."""
    codes = [code.strip() for code in BETWEEN.split(text)]
    if not all(codes):
        raise BadInput("`codes`: a code between the commas is empty.")
    return codes


def estimates(
    release: Release | str | Path,
    queries: Sequence[Sequence[str]],
    prior: str | None = None,
    where: Mapping[str, str] | None = None,
) -> list[Estimate]:
    opened = open_release(release)
    if opened.method not in COUNTED:
        raise BadInput(
            f"{opened.share}: counts can be estimated from releases of {', '.join(COUNTED)}; this one is of "
            f"{opened.method}."
        )
    if opened.method == "disassociation":
        return _to_list(_of_chunks(opened, queries, prior or DEFAULT, where))
    if prior is not None:
        raise BadInput(f"a prior is for item chunks, which releases of {opened.method} lack. Leave it out.")
    concerned = ReleasedClasses.read(opened).part_of(where) if where else None
    if opened.method == "constraints":
        parts = read_parts(opened)
        _require_labels(queries, {code for part in parts for code in part.places})
        return _to_list(counts_in(parts, queries, concerned=concerned))
    labelled = labels_of(opened)
    require_codes(opened, queries, labelled.askable())
    return _to_list(counts_where(opened, labelled, queries, concerned))


class _Bounds(Protocol):
    @property
    def low(self) -> Int64s: ...
    @property
    def expected(self) -> Float64s: ...
    @property
    def high(self) -> Int64s: ...


def _of_chunks(
    release: Release, queries: Sequence[Sequence[str]], prior: str, where: Mapping[str, str] | None
) -> _Bounds:
    published = chunks.read_once(release)
    require_codes(release, queries, published.number)
    if where:
        return chunks.estimates_where(release, published, queries, where, prior)
    return chunks.estimates(published, queries, prior)


def _to_list(found: _Bounds) -> list[Estimate]:
    bounds = zip(found.low, found.expected, found.high, strict=True)
    return [Estimate(int(low), float(expected), int(high)) for low, expected, high in bounds]


def _require_labels(queries: Sequence[Sequence[str]], known: set[str]) -> None:
    for code in (code for query in queries for code in query):
        if code not in known:
            near = ", ".join(f"`{each}`" for each in nearest_codes(code, known)[:3])
            raise BadInput(
                f"no code `{code}` in this release{f'; nearest: {near}' if near else ''}. It is absent, or suppressed "
                "everywhere."
            )
