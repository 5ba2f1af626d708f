"""What the routes of a running portal work with."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.portal.asking import Asking
from leeward.portal.indexes import Indexes
from leeward.portal.metrics import Metrics
from leeward.portal.oidc import Client
from leeward.portal.settings import Settings
from leeward.portal.store import Database


@dataclass(frozen=True)
class Portal:
    """What the routes work with."""

    settings: Settings
    database: Database
    indexes: Indexes
    asking: Asking
    metrics: Metrics
    provider: Client | None

    def url(self, path: str) -> str:
        """An address below the prefix."""
        return f"{self.settings.prefix}{path}"
