"""Verify a k-anonymous table: with the checks of condensed ones, which count equal rows too."""

from __future__ import annotations

from leeward.verify.condensation.check import check

__all__ = ["check"]
