"""Pages for people; forms work without script."""

from __future__ import annotations

from leeward.portal.pages import account, ask, audit, custody, data, project

ALL = tuple(module.router for module in (project, account, data, ask, custody, audit))
