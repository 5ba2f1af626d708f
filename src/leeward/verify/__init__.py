"""Attackers: each guarantee is checked from the released files, with code of its own.

Nothing here imports a method, a kernel of a method or the writer of releases: what a method got wrong, its
verifier must not repeat.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, Verification
from leeward.verify.codes import codes_checks
from leeward.verify.contract import Contract, contract_checks
from leeward.verify.manifest import Share, manifest_checks, open_share
from leeward.verify.storage import storage_checks
from leeward.verify.unchecked import unchecked

__all__ = ["CHECKERS", "Check", "Share", "Source", "Verification", "verify"]


def _checkers() -> dict[str, str]:
    """Every module and folder here that checks a method is called as the method (`k_anonymity` for `k-anonymity`)."""
    found = {}
    for each in iter_modules(__path__):
        if each.ispkg:
            found[each.name.replace("_", "-")] = f"{__name__}.{each.name}.check:check"
        elif each.name not in SHARED:
            found[each.name.replace("_", "-")] = f"{__name__}.{each.name}:check"
    return found


SHARED = frozenset(
    {
        "checks",
        "class_labels",
        "class_words",
        "classes",
        "codes",
        "contract",
        "manifest",
        "readme",
        "storage",
        "unchecked",
    }
)
