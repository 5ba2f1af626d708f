"""Attackers: each guarantee is checked from the released files, with code of its own.

Nothing here imports a method, a kernel of a method or the writer of releases: what a method got wrong, its
verifier must not repeat.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, Verification
from leeward.verify.manifest import Share, manifest_checks, open_share

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


SHARED = frozenset({"checks", "manifest"})
"""Modules that all verifiers share."""

CHECKERS: dict[str, str] = _checkers()
"""Method of the manifest -> "module:function", called as `function(share, source) -> list[Check]`."""


def verify(path: str | Path, source: Source | None = None) -> Verification:
    """Check a release folder (`OUT` or `OUT/share`) against the guarantee that its manifest states.

    Reads only the shared files; with `source` also compares them with the data they came from. A refuted
    guarantee is a failed check, not an exception; BadInput when the folder is no release or its method has
    no verifier.
    """
    share = open_share(path)
    if share.method not in CHECKERS:
        raise BadInput(
            f"release.json: no verifier for the method {share.method!r}; known: {', '.join(CHECKERS)}."
        )
    checks = manifest_checks(share)
    if all(check.passed for check in checks if check.name == "files_present"):
        module, function = CHECKERS[share.method].split(":")
        checks += getattr(import_module(module), function)(share, source)
    warnings: tuple[str, ...] = ()
    if share.manifest.get("seeded"):
        warnings = (
            (
                "The release was made with a chosen seed: whoever learns the seed can undo its shuffles. "
                "Share only releases made without a seed."
            ),
        )
    return Verification(share.method, tuple(checks), warnings, source is not None)
