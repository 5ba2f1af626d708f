"""The command line: thin, and lazy, so that `leeward --help` imports nothing heavy."""

from __future__ import annotations

from leeward.cli.main import main

__all__ = ["main"]
