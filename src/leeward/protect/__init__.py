"""Methods: each a frozen parameter class with `.protect(cohort, engine)`, and its kernels."""

from __future__ import annotations

METHODS: dict[str, str] = {
    "censoring": "leeward.protect.censoring:Censoring",
    "condensation": "leeward.protect.condensation:Condensation",
    "constraints": "leeward.protect.constraints:Constraints",
    "disassociation": "leeward.protect.disassociation:Disassociation",
    "k-anonymity": "leeward.protect.tables:KAnonymity",
    "trajectories": "leeward.protect.trajectories:Trajectories",
    "visits": "leeward.protect.visits:Visits",
}
"""Method of the spec -> "module:class". A new method adds a row."""
