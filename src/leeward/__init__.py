"""Leeward: release patient data for research without giving patients away.

>>> import leeward as lw
>>> cohort = lw.read("events.csv", columns={"patient": "pid", "code": "icd"})  # doctest: +SKIP
>>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")  # doctest: +SKIP

Names are imported when first used, so that `import leeward` is fast.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput, GuaranteeUnreachable, LeewardError, VerificationFailed
from leeward.version import __version__

if TYPE_CHECKING:
    from leeward import synthetic as synth
    from leeward.cohort import Cohort, read
    from leeward.methods.condensation import Condensation
    from leeward.methods.constraints import Constraints
    from leeward.methods.disassociation import Disassociation
    from leeward.methods.disassociation.measures.estimates import estimate
    from leeward.methods.k_anonymity import KAnonymity
    from leeward.methods.visits import Visits
    from leeward.queries.answer.api import query
    from leeward.release import Release
    from leeward.runs.annotate import annotate
    from leeward.runs.extract import extract
    from leeward.runs.protect import Result, measure, protect, run, verify

__all__ = [
    "BadInput",
    "Cohort",
    "Condensation",
    "Constraints",
    "Disassociation",
    "GuaranteeUnreachable",
    "KAnonymity",
    "LeewardError",
    "Release",
    "Result",
    "VerificationFailed",
    "Visits",
    "__version__",
    "annotate",
    "estimate",
    "extract",
    "measure",
    "protect",
    "query",
    "read",
    "run",
    "synth",
    "verify",
]

_WHERE = {
    "Cohort": "leeward.cohort.cohort:Cohort",
    "Constraints": "leeward.methods.constraints:Constraints",
    "Condensation": "leeward.methods.condensation:Condensation",
    "Disassociation": "leeward.methods.disassociation:Disassociation",
    "KAnonymity": "leeward.methods.k_anonymity:KAnonymity",
    "Release": "leeward.release:Release",
    "Result": "leeward.runs.protect:Result",
    "Visits": "leeward.methods.visits:Visits",
    "annotate": "leeward.runs.annotate:annotate",
    "estimate": "leeward.methods.disassociation.measures.estimates:estimate",
    "extract": "leeward.runs.extract:extract",
    "measure": "leeward.runs.protect:measure",
    "protect": "leeward.runs.protect:protect",
    "query": "leeward.queries.answer.api:query",
    "read": "leeward.cohort.readers:read",
    "run": "leeward.runs.protect:run",
    "synth": "leeward.synthetic:",
    "verify": "leeward.runs.protect:verify",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'leeward' has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `lw.protect`, `lw.verify` and `lw.measure` the verbs, though rooms of the same names are
    imported.

    Python binds a subpackage to its parent when it is first imported; for the names above that is refused.
    The rooms stay importable as ever (`from leeward.methods import …`).
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
