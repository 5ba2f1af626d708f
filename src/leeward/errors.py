"""Errors that a person can act on, each with the exit status of the command line.

A message names the file, row, column, the kind of value and what to do. It never holds patient data: names of
columns, counts and row numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec


class LeewardError(Exception):
    """Base of every error that is shown without a traceback. Its message is one line, whatever a file is called."""

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(each) if isinstance(each, str) else each for each in args))


def one_line(text: str) -> str:
    r"""The text with line breaks, control characters and all that is not printable written out (`\n`, `\x1b`)."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


class BadInput(LeewardError):
    """The input or the usage is wrong; nothing was written."""

    exit_code = 2


class GuaranteeUnreachable(LeewardError):
    """The asked guarantee cannot be met on this data; nothing was written."""

    exit_code = 3


class VerificationFailed(LeewardError):
    """The verifier refuted the guarantee; nothing is shared."""

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
