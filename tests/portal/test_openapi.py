"""The interface for programs as OpenAPI says: each route's replies of each kind fit their schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.portal.attacks import fresh_epsilon, key
from tests.portal.made import Bench

from leeward.portal import api, models
from leeward.queries.ledger import opening

TREE = Path(__file__).resolve().parents[2]
NOBODY = "0" * 32


def test_the_published_description_is_the_applications() -> None:
    """docs/reference/portal-openapi.json, written by scripts/reference.py."""
    there = (TREE / "docs" / "reference" / "portal-openapi.json").read_text(encoding="utf-8")
    assert json.loads(there) == api.openapi()


def test_it_is_read_without_signing_in_and_names_nothing_of_the_house(bench: Bench) -> None:
    text = bench.client().get("/api/v1/openapi.json").text
    assert json.loads(text) == api.openapi()
    for name in ("Clinic", "clinic", str(bench.folder), bench.portal.settings.host, bench.index):
        assert name not in text


def test_every_operation_says_what_it_takes_and_gives() -> None:
    described = api.openapi()
    assert set(described["components"]["securitySchemes"]) == {"token", "session"}
    for path, operations in described["paths"].items():
        for method, each in operations.items():
            name = f"{method} {path}"
            assert each["security"] == [{"token": []}, {"session": []}], name
            assert {"400", "401", "403", "404", "422", "429", "503"} <= set(each["responses"]), name
            paid = path.endswith(("/questions", "/batches")) and method == "post"
            assert paid == ("402" in each["responses"]) and paid <= ("409" in each["responses"]), name
            keys = [one for one in each.get("parameters", ()) if one["name"] == "Idempotency-Key"]
            assert len(keys) == paid and all(one["required"] for one in keys), name
            for status, reply in each["responses"].items():
                if status == "204":
                    continue
                ((kind, content),) = reply["content"].items()
                expected = "application/problem+json" if int(status) >= 400 else "application/json"
                assert kind == expected or path.endswith("{path}"), name
                assert content["schema"] not in ({}, {"type": "string"}), name
            if "requestBody" in each:
                schema = each["requestBody"]["content"]["application/json"]["schema"]
                model = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
                assert model["properties"] and model["description"], name


def calls(bench: Bench) -> Iterator[tuple[str, str, str, dict[str, Any], int]]:
    """(login, method, path as described, its values and options, status): each route's replies of each kind."""
    one, index = bench.project["one"], bench.index
    question = bench.question("fever", fresh_epsilon(), large_noise=True)
    by_when = bench.question("cough", fresh_epsilon(), by="when", large_noise=True)
    batch = {"project": one, "index": index, "questions": [{"terms": "rash", "epsilon": 0.5}]}
    allotment = {
        "project": bench.project["two"],
        "index": index,
        "epsilon": "0.5",
        "ends": "2099-01-01",
        "reason": "r",
    }
    made = bench.ask(bench.token("rita"), key(), bench.question("rash", "0.25", large_noise=True)).json()[
        "id"
    ]
    token = {"project": one, "scope": "read", "name": "t", "days": 1}
    for who in ("rita", "carl", "audrey", "ida"):
        yield who, "get", "/me", {}, 200
        yield who, "get", "/projects", {}, 200
        yield who, "get", "/projects/{project}", {"project": one}, 200
    yield "rita", "get", "/projects/{project}", {"project": NOBODY}, 404
    yield "rita", "get", "/indexes/{index}", {"index": index}, 200
    yield "rob", "get", "/indexes/{index}", {"index": index}, 404
    yield "rita", "get", "/indexes/{index}/vocabulary", {"index": index, "params": {"prefix": "fe"}}, 200
    yield "anna", "get", "/indexes/{index}/vocabulary", {"index": index}, 403
    yield "rita", "get", "/indexes/{index}/vocabulary", {"index": index, "params": {"below": ""}}, 200
    named = {"project": one, "name": "warm", "json": {"terms": "fever | rash"}}
    yield "rita", "put", "/projects/{project}/sets/{name}", named, 204
    yield "rita", "put", "/projects/{project}/sets/{name}", named | {"json": {"terms": "fever |"}}, 422
    yield "rita", "get", "/projects/{project}/sets", {"project": one}, 200
    yield "rob", "get", "/projects/{project}/sets", {"project": one}, 404
    yield "rita", "delete", "/projects/{project}/sets/{name}", named, 204
    for path in ("/questions:price", "/questions:rehearse"):
        yield "rita", "post", path, {"json": question}, 200
        yield "rita", "post", path, {"json": by_when}, 200
        yield "rita", "post", path, {"json": question | {"terms": "unheard of"}}, 422
        yield "rob", "post", path, {"json": question}, 404
        yield "rita", "post", path, {"content": "{"}, 400
        yield "rita", "post", path, {"content": "x" * 70_000}, 413
    for path, body, free in (
        ("/questions", question, "epsilon"),
        ("/questions", by_when, "epsilon"),
        ("/batches", batch, ""),
    ):
        same = key()
        yield "rita", "post", path, {"json": body, "key": same}, 201
        yield "rita", "post", path, {"json": body, "key": same}, 201
        yield "rita", "post", path, {"json": body, "key": key()}, 200
        yield "rita", "post", path, {"json": body | {"index": "another"}, "key": same}, 409
        dear = {"questions": [{"terms": "fever", "epsilon": 900}]} if not free else {"epsilon": "900"}
        yield "rita", "post", path, {"json": body | dear, "key": key()}, 402
        yield "rita", "post", path, {"json": body}, 422
        yield "carl", "post", path, {"json": body, "key": key()}, 403
    yield "rita", "get", "/answers/{answer}", {"answer": made}, 200
    yield "audrey", "get", "/answers/{answer}", {"answer": made}, 200
    yield "rob", "get", "/answers/{answer}", {"answer": made}, 404
    yield "rita", "get", "/projects/{project}/answers", {"project": one}, 200
    yield "carl", "post", "/proposals", {"json": allotment}, 201
    yield "carl", "post", "/proposals", {"json": allotment | {"ends": "soon"}}, 422
    yield "anna", "get", "/proposals", {}, 200
    yield "anna", "post", "/proposals/{proposal}:confirm", {"proposal": "?", "json": {"reason": "r"}}, 200
    yield "anna", "post", "/proposals/{proposal}:confirm", {"proposal": "?", "json": {"reason": "r"}}, 409
    yield "rita", "get", "/releases", {}, 200
    yield "carl", "get", "/releases", {}, 200
    yield "rita", "get", "/releases/{release}/files/{path}", {"release": bench.release, "path": "x"}, 404
    yield "audrey", "get", "/log", {}, 200
    yield "audrey", "get", "/log", {"params": {"after": "x"}}, 422
    yield "rita", "post", "/tokens", {"json": token}, 201
    yield "rita", "post", "/tokens", {"json": token | {"days": 0}}, 422
    yield "rita", "delete", "/tokens/{token}", {"token": "?"}, 204
    yield "rita", "delete", "/tokens/{token}", {"token": NOBODY}, 404


def fits(described: dict[str, Any], method: str, path: str, reply: Any) -> None:
    """AssertionError or ValidationError where a reply is not what is described."""
    expected = described["paths"][f"{api.ROOT}{path}"][method]["responses"][str(reply.status_code)]
    if "content" not in expected:
        assert reply.content == b""
        return
    ((kind, content),) = expected["content"].items()
    assert reply.headers["content-type"] == kind
    jsonschema.Draft202012Validator({**content["schema"], "components": described["components"]}).validate(
        reply.json()
    )


def send(bench: Bench, login: str | None, method: str, path: str, options: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json", "origin": bench.portal.settings.origin}
    if login is not None:
        headers["x-csrf-token"] = bench.csrf[login]
    if "key" in options:
        headers["idempotency-key"] = options["key"]
    names = re.findall(r"{(\w+)}", path)
    given = {name: each for name, each in options.items() if name in ("json", "content", "params")}
    address = api.ROOT + path.format(**{name: options[name] for name in names})
    return bench.client(login).request(method, address, headers=headers, **given)


def test_every_reply_fits_its_schema(bench: Bench) -> None:
    described, seen, last = api.openapi(), set(), ""
    for login, method, path, options, status in calls(bench):
        filled = {name: last if value == "?" else value for name, value in options.items()}
        reply = send(bench, login, method, path, filled)
        assert reply.status_code == status, (login, method, path, reply.text)
        fits(described, method, path, reply)
        seen.add((method, path))
        if status == 201 and "id" in reply.json():
            last = reply.json()["id"]
    every = {
        (method, path.removeprefix(api.ROOT)) for path, each in described["paths"].items() for method in each
    }
    assert seen == every


def test_refusals_that_any_route_gives_fit_their_schema(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = api.openapi()
    values = dict.fromkeys(
        ("project", "index", "answer", "release", "path", "proposal", "token", "name"), NOBODY
    )

    def gone(*arguments: Any, **more: Any) -> Any:
        raise opening.LedgerUnreachable("the disk is full")

    for path, operations in described["paths"].items():
        short = path.removeprefix(api.ROOT)
        for method in operations:
            reply = send(bench, None, method, short, values)
            assert reply.status_code == 401
            fits(described, method, short, reply)
            with monkeypatch.context() as patch:
                patch.setattr("leeward.portal.sessions.fetch_one", gone)
                reply = send(bench, "rita", method, short, values)
            assert reply.status_code == 503
            fits(described, method, short, reply)


class Never:
    """A limiter that lets nothing through."""

    def hit(self, *arguments: Any, **more: Any) -> bool:
        return False

    def get_window_stats(self, *arguments: Any) -> Any:
        return type("Stats", (), {"reset_time": 0})


def test_too_many_fits_its_schema(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.portal.asking, "_limiter", Never())
    body = bench.question("fever", fresh_epsilon(), large_noise=True)
    for path in ("/questions", "/questions:price", "/questions:rehearse"):
        reply = send(bench, "rita", "post", path, {"json": body, "key": key()})
        assert reply.status_code == 429
        fits(api.openapi(), "post", path, reply)


def test_a_reply_that_does_not_fit_would_be_found(bench: Bench) -> None:
    reply = bench.client("rita").get("/api/v1/me")
    with pytest.raises(jsonschema.ValidationError):
        fits(api.openapi(), "get", "/projects", reply)


def test_a_reply_holds_no_field_beside_its_models(bench: Bench) -> None:
    """A proposal's row holds folder and ledger, an answer's row its request; a release's row its folder."""
    folder = str(bench.folder)
    for login, path in (("anna", "/proposals"), ("rita", f"/projects/{bench.project['one']}/answers"),
                        ("carl", "/releases"), ("rita", "/projects")):  # fmt: skip
        found = bench.client(login).get(api.ROOT + path)
        assert found.json() and folder not in found.text and '"ledger"' not in found.text, path
    assert "folder" not in models.Proposed.model_fields
