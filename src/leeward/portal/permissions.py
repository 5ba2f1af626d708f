"""Permissions by role: one table, used by every route and written to docs/reference/roles.md.

A role is a person's in a project (researcher, lead) or in the house; never both for one permission's grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PROJECT_ROLES: Final = ("researcher", "lead")
HOUSE_ROLES: Final = ("custodian", "approver", "auditor", "admin")
ROLES: Final = (*PROJECT_ROLES, *HOUSE_ROLES)

MEMBERS: Final = {"researcher": "own", "lead": "own"}
DECIDERS: Final = {"custodian": "all", "approver": "all"}

ACCOUNTS_ONLY: Final = "accounts"
"""Extent of an administrator's part in decisions: those about accounts, not those about data."""

PERMISSIONS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "see projects": ("see projects one belongs to", MEMBERS | DECIDERS | {"auditor": "all", "admin": "names"}),
    "price": ("price, rehearse", MEMBERS | {"custodian": "all"}),
    "spend": ("spend the project's budget", MEMBERS),
    "see answers": ("see the project's answers", MEMBERS | DECIDERS | {"auditor": "digests"}),
    "invite": ("invite members", {"lead": "own", "custodian": "all"}),
    "propose index": ("register an index, with its cap and floor (once)", {"custodian": "propose"}),
    "propose allotment": ("allot to a project (at most the cap, until a date)", {"custodian": "propose"}),
    "ask allotment": ("ask for a larger allotment", MEMBERS | {"custodian": "all"}),
    "propose release": ("publish a release to recipients", {"custodian": "propose"}),
    "see decisions": (
        "see proposals and decisions",
        DECIDERS | {"lead": "own", "auditor": "all", "admin": ACCOUNTS_ONLY},
    ),
    "confirm": ("confirm or decline what another proposed", {"approver": "confirm"}),
    "confirm accounts": (
        "confirm or decline roles of the house and set-up links that another proposed",
        {"approver": "confirm", "admin": "confirm"},
    ),
    "stop": ("stop a release, an index or a project, end access, lower an allotment", DECIDERS),
    "download": ("download a release's share/", DECIDERS | {"researcher": "if named", "lead": "if named"}),
    "see custody": ("see custody/ reports and indexes", DECIDERS),
    "read log": ("read the log, run the audit", DECIDERS | {"lead": "own", "auditor": "all"}),
    "read metrics": ("read figures for monitoring", {"auditor": "all", "admin": "all"}),
    "see administration": (
        "see accounts, roles, health, age of the backup", {"auditor": "read", "admin": "all"}
    ),
    "administer": ("change accounts, roles and tokens of others", {"admin": "all"}),
    "own account": ("see one's own session, make and end one's own tokens", dict.fromkeys(ROLES, "own")),
    "make project": ("make a project, name its lead", {"custodian": "all"}),
    "raise a cap, delete an answer, edit the log": ("raise a cap, delete an answer, edit the log", {}),
}  # fmt: skip
"""Permission -> its description, and role -> its extent; roles that are not listed lack it."""

HOUSE_SCOPES: Final = {"metrics": "read metrics", "log": "read log"}
"""Scope of a token for programs of the house -> its one permission."""

PUBLIC: Final = "public"
"""Permission of routes that need no sign-in: signing in itself, health, styles, help."""


@dataclass(frozen=True)
class Viewer:
    """The viewer: from a session or a token, never from anything else in the request."""

    person: str
    name: str
    house: frozenset[str]
    memberships: Mapping[str, str] = field(default_factory=dict)
    """Project -> role in it."""
    session: str | None = None
    csrf: str = ""
    token_scope: str | None = None
    """Of a token: `read`, or `ask`, which may also spend, with the rights of one membership, none of the house; or of
    `HOUSE_SCOPES`, with one right of the house."""

    def roles(self) -> frozenset[str]:
        return self.house | frozenset(self.memberships.values())

    def may(self, permission: str) -> bool:
        """Whether some role of this person has the permission somewhere."""
        if self.token_scope in HOUSE_SCOPES and permission not in (PUBLIC, HOUSE_SCOPES[self.token_scope]):
            return False
        if permission in (PUBLIC, "own account"):
            return True
        if self.token_scope == "read" and permission == "spend":
            return False
        return bool(self.roles() & set(PERMISSIONS[permission][1]))

    def reaches_all(self, permission: str) -> bool:
        """Whether a role of the house has the permission, for every project."""
        extents = PERMISSIONS[permission][1]
        return any(extents.get(role, ACCOUNTS_ONLY) != ACCOUNTS_ONLY for role in self.house)

    def may_in(self, permission: str, project: str) -> bool:
        """Whether the permission is held in a project."""
        if not self.may(permission):
            return False
        return self.reaches_all(permission) or self.memberships.get(project) in PERMISSIONS[permission][1]

    def projects(self, permission: str) -> tuple[str, ...] | None:
        """The projects in which the permission is held; None: in all."""
        if self.reaches_all(permission):
            return None
        granted = PERMISSIONS[permission][1]
        return tuple(project for project, role in self.memberships.items() if role in granted)
