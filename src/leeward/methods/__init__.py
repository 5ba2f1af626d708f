"""Methods: each a frozen parameter class with `.protect(cohort, engine)`, and its kernels."""

from __future__ import annotations

METHODS: dict[str, str] = {
    "censoring": "leeward.methods.censoring:Censoring",
    "condensation": "leeward.methods.condensation:Condensation",
    "constraints": "leeward.methods.constraints:Constraints",
    "disassociation": "leeward.methods.disassociation:Disassociation",
    "k-anonymity": "leeward.methods.k_anonymity:KAnonymity",
    "trajectories": "leeward.methods.trajectories:Trajectories",
    "visits": "leeward.methods.visits:Visits",
}
"""Method of the spec -> "module:class". A new method adds a row."""
