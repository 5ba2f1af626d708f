"""Whose process this is: a command's, or that of somebody who imported the library and may import more."""

from __future__ import annotations


class Process:
    """This one."""

    of_command = False
    """Set by the command line."""
