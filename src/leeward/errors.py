"""Errors that a person can act on, each with the exit status of the command line.

A message names the file, row, column, the kind of value and what to do. It never holds patient data: names of
columns, counts and row numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec


class LeewardError(Exception):
    """Base class of all Leeward errors that are shown without a traceback.

    The message is one line and never contains patient data.

    Examples
    --------
    >>> import leeward as lw
    >>> try:
    ...     lw.open("nowhere")
    ... except lw.LeewardError as error:
    ...     print(error.exit_code)
    2
    """

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(each) if isinstance(each, str) else each for each in args))


def one_line(text: str) -> str:
    r"""The text with line breaks, control characters and all that is not printable written out (`\n`, `\x1b`)."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


class BadInput(LeewardError):
    """The input or a parameter is wrong; nothing was written.

    Examples
    --------
    >>> import leeward as lw
    >>> try:
    ...     lw.Disassociation(k=1)
    ... except lw.BadInput as error:
    ...     print(error)
    `k` must be a whole number of at least 2; got 1.
    """

    exit_code = 2


class GuaranteeUnreachable(LeewardError):
    """The guarantee cannot be met on these data; nothing was written.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> cohort = lw.read(pl.DataFrame({"patient": [1, 2, 3], "code": ["401.9", "250.00", "401.9"]}))
    >>> try:
    ...     lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    ... except lw.GuaranteeUnreachable as error:
    ...     print(error)
    frame: 3 patients with a code, fewer than 6 ...
    """

    exit_code = 3


class VerificationFailed(LeewardError):
    """The verifier refuted the guarantee; nothing was released.

    Examples
    --------
    >>> import leeward as lw
    >>> lw.VerificationFailed.exit_code
    4
    """

    exit_code = 4


def require_extra(what: str, extra: str, *modules: str) -> None:
    """BadInput where a module of an extra is not installed: what needs it, and the line that installs it."""
    if any(find_spec(each) is None for each in modules):
        raise BadInput(f"{what} needs leeward[{extra}]: pip install 'leeward[{extra}]'.")


def listed(names: Sequence[object], most: int = 10) -> str:
    """The first names between commas, with `…` for further ones."""
    return ", ".join(map(str, names[:most])) + (", …" if len(names) > most else "")


def nearest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known word that a person may have meant, whatever the case; None where none is near."""
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """` Did you mean 'x'?` for the nearest of the known words, or nothing."""
    close = nearest(word, known, cutoff)
    return f" Did you mean '{close}'?" if close else ""
