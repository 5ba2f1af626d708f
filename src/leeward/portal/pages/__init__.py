"""Pages for people; forms work without script."""

from __future__ import annotations

from leeward.portal.pages import account, ask, audit, custody, data, project, sign_in

ALL = tuple(module.router for module in (project, sign_in, account, data, ask, custody, audit))
