"""Attackers: each guarantee is checked from the released files, with code of its own.

Nothing here imports a method, a kernel of a method or the writer of releases: what a method got wrong, its
verifier must not repeat. Sentences, columns and parameters of releases are data that both read (`contracts`); which of
them a release calls for, and every figure in them, is found here from the files.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from polars.exceptions import PanicException

from leeward.contracts import contract_of
from leeward.contracts.contract import Contract
from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, Verification, failing
from leeward.verify.codes import codes_checks
from leeward.verify.contract_checks import contract_checks, spec_checks
from leeward.verify.manifest import NAME, Share, custody_checks, manifest_checks, manifest_types, open_share
from leeward.verify.order import check_orders, owner_orders
from leeward.verify.storage import storage_checks
from leeward.verify.unchecked import list_gaps

__all__ = ["CHECKERS", "Check", "Share", "Source", "Verification", "verify"]


CHECKERS: dict[str, str] = {
    each.name.replace("_", "-"): f"{__name__}.{each.name}.check:check"
    for each in iter_modules(__path__)
    if each.ispkg
}
"""Method of the manifest -> "module:function", called as `function(share, source) -> list[Check]`. Each folder here is
the verifier of the method of its name, with a `check.py`; the modules beside them are shared."""


SEEDED = (
    "The release was made with a chosen seed: whoever learns the seed can undo its shuffles. "
    "Share only releases made without a seed."
)


def verify(
    path: str | Path,
    source: Source | None = None,
    manifest: str = NAME,
    earlier: str | Path | None = None,
) -> Verification:
    """Check a release folder (`OUT` or `OUT/share`) against the guarantee that its manifest states.

    Reads the shared files and, where it is at hand, the custodian's folder beside them; with `source` also compares
    them with the data they came from. A refuted guarantee is a failed check, not an exception; BadInput when the folder
    is not a release or its method has no verifier. `manifest` is its file name, another one in a release that is not
    published yet. `earlier` is an earlier version of a release that grows (`verify.versions`).
    """
    share = open_share(path, manifest)
    types = manifest_types(share)
    if not types.passed:
        checks = [types, *custody_checks(share)]
        return Verification(str(share.manifest["method"]), tuple(checks), (), source is not None)
    if share.method not in CHECKERS:
        raise BadInput(
            f"release.json: no verifier for the method {share.method!r}; known: {', '.join(CHECKERS)}."
        )
    checks = [types, *manifest_checks(share), *custody_checks(share)]
    if "files_present" not in failing(checks):
        checks = form_and_content(share, source, checks)
    if earlier is not None:
        from leeward.verify.versions import check_earlier

        checks += guard(
            "same_line", lambda: check_earlier(share, open_share(earlier)), formed=not failing(checks)
        )
    warnings = (SEEDED,) if share.manifest.get("seeded") else ()
    return Verification(share.method, tuple(checks), warnings, source is not None, list_gaps(share, source))


def form_and_content(share: Share, source: Source | None, checks: list[Check]) -> list[Check]:
    """After some checks those of the contract, of the files' bytes and orders, of the spec, and the method's own."""
    contract = contract_of(share.method)
    if contract is None:
        detail = "The method has no contract: nothing says what a release of it may hold."
        return [*checks, Check("contract", False, detail), *content_checks(share, source, formed=False)]
    checks = checks + contract_checks(share, contract) + storage_checks(share)
    if "parameters" in failing(checks):
        return checks  # all that follows reads them
    if "only_rows" not in failing(checks):
        checks += guard("codes_listed", lambda: codes_checks(share, source), formed=not failing(checks))
    if "versions" not in share.manifest:
        return orders_and_content(share, contract, source, checks)
    from leeward.verify.versions import add_up, check_batches  # with kernels, which take long to load

    if not failing(checks):
        checks += add_up(share)
    if failing(checks):
        return checks  # it cannot be cut into batches
    return checks + check_batches(
        share, lambda part: orders_and_content(part, contract, None, custody_checks(part))
    )


def orders_and_content(
    share: Share, contract: Contract, source: Source | None, checks: list[Check]
) -> list[Check]:
    """After some checks those of orders, of the spec, and the method's own."""
    if not failing(checks):
        checks += check_orders(share, contract.records) + owner_orders(share, contract.owners, source)
    formed = not failing(checks)
    checks += guard("parameters_of_spec", lambda: spec_checks(share, contract), formed=formed)
    if "columns_of_contract" in failing(checks):
        detail = "Files do not have the columns of the contract, so their content cannot be laid out."
        return [*checks, Check("layout", False, detail)]
    return checks + content_checks(share, source, formed=not failing(checks))


def content_checks(share: Share, source: Source | None, *, formed: bool) -> list[Check]:
    module, function = CHECKERS[share.method].split(":")
    return guard("content", lambda: getattr(import_module(module), function)(share, source), formed=formed)


def guard(name: str, checks: Callable[[], list[Check]], *, formed: bool) -> list[Check]:
    """Some checks. A release whose form is refuted already may not even be readable: that is one more failed check, not
    an exception. Want of memory says nothing of the release."""
    try:
        return checks()
    except BadInput as problem:
        if formed:
            raise
        return [Check(name, False, f"The content could not be checked: {problem}")]
    except (Exception, PanicException) as problem:
        if formed or isinstance(problem, MemoryError):
            raise
        detail = f"The content could not be checked, because the form is wrong ({type(problem).__name__})."
        return [Check(name, False, detail)]
