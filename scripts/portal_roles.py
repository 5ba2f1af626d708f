"""Write docs/reference/roles.md: who may do what in the portal, and which route needs which permission.

    python scripts/portal_roles.py

Both tables come from the running application; a test compares them with the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leeward.portal.app import routers
from leeward.portal.permissions import PERMISSIONS, PUBLIC, ROLES

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/roles.md"
HEAD = """# The portal's roles

Researcher and lead are roles in a project, the others in the hospital. *own*: in one's own projects; *if named*: as a
recipient. Nobody confirms an own proposal. An administrator has no permission on data; the auditor sees who has that
role and another one. `python scripts/portal_roles.py` writes this page from the application.
"""


def table() -> list[tuple[str, str, str]]:
    """(path, method, permission) of every route, by path."""
    every: list[Any] = [route for router in routers() for route in router.routes]
    return sorted(
        (route.path, method, route.dependencies[0].dependency.permission)
        for route in every
        for method in route.methods
    )


def text() -> str:
    """The page."""
    lines = [HEAD, f"| permission | {' | '.join(ROLES)} |", f"|---|{'---|' * len(ROLES)}"]
    for words, granted in PERMISSIONS.values():
        lines.append(f"| {words} | {' | '.join(granted.get(role, '–') for role in ROLES)} |")
    lines += [
        "",
        "## Routes",
        "",
        f"| route | method | {' | '.join(ROLES)} |",
        f"|---|---|{'---|' * len(ROLES)}",
    ]
    for path, method, permission in table():
        granted = dict.fromkeys(ROLES, PUBLIC) if permission == PUBLIC else PERMISSIONS[permission][1]
        lines.append(f"| `{path}` | {method} | {' | '.join(granted.get(role, '–') for role in ROLES)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
