"""Leeward: release patient data for research without giving patients away.

>>> import leeward as lw
>>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
>>> result = lw.protect(lw.read("events.csv"), lw.Disassociation(k=5, m=2), "release")

Names are imported when first used, so that `import leeward` is fast.
"""

from __future__ import annotations

import importlib
import sys
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput, GuaranteeUnreachable, LeewardError, VerificationFailed
from leeward.methods import METHODS
from leeward.version import __version__

if TYPE_CHECKING:
    from leeward import synthetic
    from leeward.cohort import Cohort as Cohort
    from leeward.cohort import read as read
    from leeward.methods.censoring import Censoring as Censoring
    from leeward.methods.condensation import Condensation as Condensation
    from leeward.methods.constraints import Constraints as Constraints
    from leeward.methods.disassociation import Disassociation as Disassociation
    from leeward.methods.k_anonymity import KAnonymity as KAnonymity
    from leeward.methods.linked import Linked as Linked
    from leeward.methods.trajectories import Trajectories as Trajectories
    from leeward.methods.visits import Visits as Visits
    from leeward.portal.client import connect as connect
    from leeward.queries.answer.api import audit as audit
    from leeward.queries.answer.api import budget as budget
    from leeward.queries.answer.api import query as query
    from leeward.release import Release as Release
    from leeward.runs import releases as releases
    from leeward.runs.annotate import annotate as annotate
    from leeward.runs.annotate import decrypt as decrypt
    from leeward.runs.compare import compare as compare
    from leeward.runs.dossier import dossier as dossier
    from leeward.runs.estimate import estimate as estimate
    from leeward.runs.explore import explore as explore
    from leeward.runs.extract import extract as extract
    from leeward.runs.index import index as index
    from leeward.runs.itemsets import itemsets as itemsets
    from leeward.runs.measure import measure as measure
    from leeward.runs.omop import omop as omop
    from leeward.runs.profile import profile as profile
    from leeward.runs.protect import Result as Result
    from leeward.runs.protect import protect as protect
    from leeward.runs.protect import verify as verify
    from leeward.runs.recommend import recommend as recommend
    from leeward.runs.refresh import refresh as refresh
    from leeward.runs.running import run as run
    from leeward.runs.specs import open_release
    from leeward.runs.split import split as split

    synth, open = synthetic, open_release  # noqa: A001  # `leeward.open`, as in other libraries

_WHERE = {
    **{method.class_name: method.parameters for method in METHODS.values()},
    "Cohort": "leeward.cohort.cohort:Cohort",
    "Release": "leeward.release:Release",
    "Result": "leeward.runs.protect:Result",
    "annotate": "leeward.runs.annotate:annotate",
    "audit": "leeward.queries.answer.api:audit",
    "budget": "leeward.queries.answer.api:budget",
    "connect": "leeward.portal.client:connect",
    "decrypt": "leeward.runs.annotate:decrypt",
    "compare": "leeward.runs.compare:compare",
    "dossier": "leeward.runs.dossier:dossier",
    "estimate": "leeward.runs.estimate:estimate",
    "explore": "leeward.runs.explore:explore",
    "extract": "leeward.runs.extract:extract",
    "index": "leeward.runs.index:index",
    "itemsets": "leeward.runs.itemsets:itemsets",
    "measure": "leeward.runs.measure:measure",
    "omop": "leeward.runs.omop:omop",
    "open": "leeward.runs.specs:open_release",
    "profile": "leeward.runs.profile:profile",
    "protect": "leeward.runs.protect:protect",
    "query": "leeward.queries.answer.api:query",
    "read": "leeward.cohort.readers:read",
    "recommend": "leeward.runs.recommend:recommend",
    "refresh": "leeward.runs.refresh:refresh",
    "releases": "leeward.runs.releases:",
    "run": "leeward.runs.running:run",
    "split": "leeward.runs.split:split",
    "synth": "leeward.synthetic:",
    "verify": "leeward.runs.protect:verify",
}
"""Each name that is imported when first used: "module:attribute". Methods follow from METHODS."""

__all__ = [  # names, made of names
    "BadInput",
    "GuaranteeUnreachable",
    "LeewardError",
    "VerificationFailed",
    "__version__",
    *_WHERE,
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'leeward' has no attribute {name!r}")
    from leeward.runs.calls import check_arguments

    module, _, attribute = _WHERE[name].partition(":")
    found = importlib.import_module(module)
    if not attribute:
        return SimpleNamespace(**{each: check_arguments(getattr(found, each)) for each in found.__all__})
    found = getattr(found, attribute)
    if module.endswith(".parameters"):
        from leeward.fields import document

        document(found)
    return check_arguments(found) if isinstance(found, FunctionType) else found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `lw.protect`, `lw.verify` and `lw.measure` the verbs, though rooms of the same names are imported.

    Python binds a subpackage to its parent when it is first imported; for the names above that is refused. The packages
    can still be imported (`from leeward.methods import …`).
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
