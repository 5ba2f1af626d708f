"""k-anonymity of tables, as a stand-in for the commercial tool that Gal et al. compare with."""

from leeward.methods.k_anonymity.parameters import KAnonymity

__all__ = ["KAnonymity"]
