"""k-anonymity of tables is checked by the same code as condensation: both release a table of patients."""

from __future__ import annotations

from leeward.verify.condensation.check import check as check
