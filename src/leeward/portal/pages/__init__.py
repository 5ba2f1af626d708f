"""Pages for people; forms work without script."""

from __future__ import annotations

from leeward.portal.pages import ask, audit, custody, project

ALL = tuple(module.router for module in (project, ask, custody, audit))
