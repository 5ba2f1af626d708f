"""Errors that a person can act on, each with the exit status of the command line.

A message names the file, row, column, the kind of value and what to do. It never holds patient data: names of
columns, counts and row numbers only.
"""

from __future__ import annotations


class LeewardError(Exception):
    """Base of every error that is shown without a traceback."""

    exit_code = 1


class BadInput(LeewardError):
    """The input or the usage is wrong; nothing was written."""

    exit_code = 2


class GuaranteeUnreachable(LeewardError):
    """The asked guarantee cannot be met on this data; nothing was written."""

    exit_code = 3


class VerificationFailed(LeewardError):
    """The verifier refuted the guarantee; nothing is shared."""

    exit_code = 4
