"""Synthetic cohorts with the shape of real data."""

from leeward.synthetic.claims import write_claims
from leeward.synthetic.codes import code_catalogue, write_codes

__all__ = ["code_catalogue", "write_claims", "write_codes"]
