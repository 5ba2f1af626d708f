"""A question about a code that a release does not have is an error, not a count of 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from leeward.errors import BadInput
from leeward.release import Release

LIST = "codes.parquet"
SHOWN = 3


def require_codes(release: Release, queries: Iterable[Sequence[str]], shown: Collection[str]) -> None:
    """Check that the release shows every asked code.

    Raises
    ------
    BadInput
        It does not: with the nearest codes, and whether the code was suppressed.
    """
    for code in dict.fromkeys(code for query in queries for code in query):
        if code not in shown:
            raise BadInput(_message(release, code, shown))


def _message(release: Release, code: str, shown: Collection[str]) -> str:
    k = release.guarantee["k"]
    names = _list_codes(release)
    if code in names and names[code][1]:
        return (
            f"the code `{code}` was suppressed: at least {k} patients have it, but the release does not show it, so it "
            "cannot be counted."
        )
    near = nearest_codes(code, shown) or [
        each for each, (name, gone) in names.items() if not gone and code.lower() in name.lower()
    ]
    listed = ", ".join(
        f"`{each}`" + (f" ({names[each][0]})" if each in names and names[each][0] else "")
        for each in near[:SHOWN]
    )
    rare = (
        "was suppressed"
        if release.parameters.get("attacker") == "algorithm"
        else f"fewer than {k} patients have it"
    )
    return (
        f"no code `{code}` in this release{f'; nearest: {listed}' if listed else ''}. A code that the release does not "
        f"list is absent, or {rare}."
    )


def _list_codes(release: Release) -> dict[str, tuple[str, bool]]:
    """Name of each listed code, and whether it was suppressed."""
    if LIST not in release.names():
        return {}
    rows = release.table(LIST).select("code", "name", "suppressed").collect().iter_rows()
    return {code: (name, suppressed) for code, name, suppressed in rows}


def nearest_codes(code: str, shown: Collection[str]) -> list[str]:
    """Codes that begin as this one does: first what it extends, then what it begins, then the longest beginning."""

    def rank(other: str) -> tuple[bool, bool, int, str]:
        return not code.startswith(other), not other.startswith(code), -_beginning(code, other), other

    alike = [other for other in shown if _beginning(code, other) >= min(2, len(code))]
    return sorted(alike, key=rank)


def _beginning(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
