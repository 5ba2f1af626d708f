"""Pages for people, a module each; forms work without script."""

from __future__ import annotations

from leeward.portal.pages import admin, answers, ask, audit, custody, decisions, project, releases, sign_in

ALL = tuple(
    module.router for module in (sign_in, project, ask, answers, custody, releases, decisions, audit, admin)
)
