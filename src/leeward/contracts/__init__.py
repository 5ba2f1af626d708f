"""What a release of each method may hold and what it must say, as data: one module a method.

Releases are rendered from here and judged by here. The judge takes no sentence and no figure from the release: it
renders the words anew from parameters and facts that it finds in the files itself.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leeward.contracts.contract import Contract


def contract_of(method: str) -> Contract | None:
    """What releases of the method may hold; None where there is no contract, which refutes every release."""
    module = f"{__name__}.{method.replace('-', '_')}"
    if find_spec(module) is None:
        return None
    found: Contract = import_module(module).CONTRACT
    return found
