"""Every route with every role: what docs/reference/roles.md says is what happens."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from tests.portal.made import Bench, sign_in

from leeward.portal.permissions import PERMISSIONS, PUBLIC, ROLES, Viewer

TREE = Path(__file__).resolve().parents[2]
WHO = {
    "researcher": "rita",
    "lead": "lea",
    "custodian": "carl",
    "approver": "anna",
    "auditor": "audrey",
    "admin": "ida",
}


@pytest.fixture(scope="module", name="script")
def roles_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("portal_roles", TREE / "scripts" / "portal_roles.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_application_says(script: ModuleType) -> None:
    assert script.text() == (TREE / "docs/reference/roles.md").read_text(encoding="utf-8")


def test_the_table_is_the_designs() -> None:
    """Row by row, as it was designed: y or – for researcher, lead, custodian, approver, auditor, admin."""
    design = {
        "see projects": "yyyyyy", "price": "yyy---", "spend": "yy----", "see answers": "yyyyy-", "invite": "-yy---",
        "propose index": "--y---", "propose allotment": "--y---", "ask allotment": "yyy---",
        "propose release": "--y---", "confirm": "---y--", "download": "yyyy--", "see custody": "--yy--",
        "read log": "-yyyy-", "read metrics": "----yy",
        "confirm accounts": "---y-y", "stop": "--yy--",
        "see administration": "----yy", "administer": "-----y",
        "raise a cap, delete an answer, edit the log": "------",
    }  # fmt: skip
    for permission, marks in design.items():
        granted = PERMISSIONS[permission][1]
        assert "".join("y" if role in granted else "-" for role in ROLES) == marks, permission


def test_a_role_in_one_project_is_none_in_another() -> None:
    """What is filtered by project is filtered by the role that is held there."""
    found = Viewer("p", "P", frozenset(), {"led": "lead", "joined": "researcher"})
    for permission, roles in (("read log", {"lead"}), ("spend", {"lead", "researcher"}), ("confirm", set())):
        held = [project for project, role in found.memberships.items() if role in roles]
        assert found.projects(permission) == tuple(held)
        for project in ("led", "joined", "another"):
            assert found.may_in(permission, project) == (project in held)
    house = Viewer("p", "P", frozenset({"approver"}), {"joined": "researcher"})
    assert house.projects("read log") is None and house.projects("spend") == ("joined",)


def test_every_route_with_every_role(bench: Bench, script: ModuleType) -> None:
    reply = bench.ask(bench.token("rita"), "roles", bench.question("fever", "0.3"))
    values = {
        "project": bench.project["one"], "index": bench.index, "answer": reply.json()["id"], "release": bench.release,
        "path": "release.json", "name": "portal.css", "proposal": "0" * 32, "token": "0" * 32, "person": "0" * 32,
        "asked": "0" * 32,
    }  # fmt: skip
    wrong = []
    for path, method, permission in script.table():
        for role, login in WHO.items():
            status = call(bench, login, method, path, values)
            granted = permission == PUBLIC or role in PERMISSIONS[permission][1]
            if status >= 500 or status == 401 or (status == 403) == granted:
                wrong.append(f"{method} {path} by {role}: {status}")
            if path == "/sign-out":
                sign_in(bench, login)
        anonymous = bench.client().request(method, path.replace(":path}", "}").format(**values)).status_code
        if permission != PUBLIC and anonymous not in (303, 401):
            wrong.append(f"{method} {path} by nobody: {anonymous}")
    assert wrong == []


def call(bench: Bench, login: str, method: str, path: str, values: dict[str, str]) -> int:
    """The status of a request that holds nothing but what every form holds."""
    client = bench.client(login)
    address = path.replace(":path}", "}").format(**values)
    headers = {
        "origin": bench.portal.settings.origin,
        "x-csrf-token": bench.csrf[login],
        "idempotency-key": "x",
    }
    options: dict[str, Any] = {"headers": headers}
    if method != "GET" and address.startswith("/api/"):
        options["json"] = {}
    elif method != "GET":
        options["data"] = {
            "csrf": bench.csrf[login],
            "login": "nobody at all",
            "password": "x",
            "role": "none",
        }
    from tests.portal.attacks import forget_tries

    if address == "/sign-in" and method == "POST":
        forget_tries(bench)
        return 200 if client.request(method, address, **options).status_code == 403 else 500
    return client.request(method, address, **options).status_code


def test_no_route_is_without_a_permission(bench: Bench, script: ModuleType) -> None:
    assert len(script.table()) > 50
    app: Any = bench.gate.app
    routes = list(iter_route_contexts(app.routes))
    served = sorted((each.path, method) for each in routes for method in each.methods or ())
    assert served == [each[:2] for each in script.table()]  # nothing else, and no other method
    assert all(permission in {*PERMISSIONS, PUBLIC} for _, _, permission in script.table())


def test_removing_the_check_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"project": bench.project["one"]}
    assert call(bench, "rita", "POST", "/projects/{project}/members", values) == 403
    monkeypatch.setattr("leeward.portal.guards.check_permission", lambda viewer, permission: None)
    assert call(bench, "rita", "POST", "/projects/{project}/members", values) == 404  # the second lock
    monkeypatch.setattr(Viewer, "may_in", lambda viewer, permission, project: True)
    assert call(bench, "rita", "POST", "/projects/{project}/members", values) == 422
