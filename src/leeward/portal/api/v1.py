"""`/api/v1`: JSON in and out, errors as problem+json; a token or a session says who asks."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response, StreamingResponse

from leeward.errors import BadInput
from leeward.portal import asking, projects, proposals, releases, tokens
from leeward.portal.asking import Once
from leeward.portal.guards import Malformed, guard, portal_of, viewer_of
from leeward.portal.indexes import Unknown, public_facts
from leeward.portal.pages.answers import digests_only
from leeward.portal.pages.audit import entries_of
from leeward.portal.question import Request as Question
from leeward.portal.question import request_of
from leeward.portal.store import reading, tables
from leeward.portal.terms import search
from leeward.queries.privacy.accounting import shown

router = APIRouter(tags=["v1"])
ROOT: Final = "/api/v1"
KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")

QUESTION: Final = {
    "type": "object",
    "required": ["project", "index", "terms"],
    "properties": {
        "project": {"type": "string"},
        "index": {"type": "string"},
        "terms": {"type": "string", "description": "Terms, all of them required: 'sore throat & fever'."},
        "conditions": {"type": "object", "additionalProperties": {"type": "string"}},
        "by": {"type": "string", "description": "One count for each value of a quasi-identifier."},
        "most": {"type": "integer", "minimum": 1},
        "count": {"enum": ["patient", "note"]},
        "unit": {"enum": ["patient", "note"]},
        "epsilon": {"type": ["string", "number"]},
        "within": {"type": "number", "description": "Half-width of the 95 % interval, instead of epsilon."},
        "large_noise": {"type": "boolean"},
    },
}
BODY: Final = {"requestBody": {"required": True, "content": {"application/json": {"schema": QUESTION}}}}


@guard(router, "GET", f"{ROOT}/me", "own account")
def me(request: Request) -> Response:
    """Who I am, and my roles."""
    viewer = viewer_of(request)
    return JSONResponse(
        {
            "id": viewer.person,
            "name": viewer.name,
            "roles": sorted(viewer.house),
            "projects": dict(viewer.memberships),
            "scope": viewer.token_scope,
        }
    )


@guard(router, "GET", f"{ROOT}/projects", "see projects")
def list_projects(request: Request) -> Response:
    """Projects that I may see."""
    rows = projects.projects_of(portal_of(request).database, viewer_of(request))
    return JSONResponse([{"id": row["id"], "name": row["name"]} for row in rows])


@guard(router, "GET", f"{ROOT}/projects/{{project}}", "see projects")
def one_project(request: Request, project: str) -> Response:
    """A project with what it may spend."""
    portal, viewer = portal_of(request), viewer_of(request)
    row = projects.project_of(portal.database, viewer, project, "see projects")
    found: dict[str, Any] = {"id": row["id"], "name": row["name"]}
    if viewer.house <= {"admin"} and project not in viewer.memberships:
        return JSONResponse(found)
    balances = portal.indexes.balances(project)
    found["indexes"] = [
        {"id": index["id"], "name": index["name"], "most": each.most, "left": each.left, "ends": each.ends}
        for index, each in balances
    ]
    return JSONResponse(found)


def _index(request: Request, index: str) -> Any:
    """The session of an index that one of the viewer's projects was allotted of; Unknown otherwise."""
    portal, viewer = portal_of(request), viewer_of(request)
    mine = viewer.projects("price")
    if mine is not None:
        allotted = tables.allotments.c
        with reading(portal.database) as connection:
            asked = sa.select(allotted.index).where(allotted.index == index, allotted.project.in_(mine))
            if connection.execute(asked).first() is None:
                raise Unknown("there is nothing at this address.")
    return portal.indexes.session(index)


@guard(router, "GET", f"{ROOT}/indexes/{{index}}", "price")
def one_index(request: Request, index: str) -> Response:
    """What is public about an index."""
    return JSONResponse(public_facts(_index(request, index)))


@guard(router, "GET", f"{ROOT}/indexes/{{index}}/vocabulary", "price")
def vocabulary(request: Request, index: str, prefix: str = "") -> Response:
    """Terms of the public vocabulary."""
    found = search(_index(request, index).index, prefix[:100])
    return JSONResponse([{"name": each.name, "label": each.label, "asked": each.asked} for each in found])


@guard(router, "POST", f"{ROOT}/questions:price", "price", often=True, openapi_extra=BODY)
def price(request: Request) -> Response:
    """The price of a question; nothing is charged."""
    portal, viewer = portal_of(request), viewer_of(request)
    project, index, question = _question(request, "price")
    return JSONResponse(portal.asking.price(viewer, project, index, [question])[0].to_json())


@guard(router, "POST", f"{ROOT}/questions:rehearse", "price", openapi_extra=BODY)
def rehearse(request: Request) -> Response:
    """The answer of made-up patients; nothing is charged."""
    portal, viewer = portal_of(request), viewer_of(request)
    project, index, question = _question(request, "price")
    _, answer = portal.asking.rehearse(viewer, project, index, question)
    return JSONResponse(answer.to_json() | {"dry_run": True})


@guard(router, "POST", f"{ROOT}/questions", "spend", often=True, openapi_extra=BODY)
def ask(request: Request) -> Response:
    """Ask and pay: 201 for a new answer, 200 for one that was stored, 402 where the budget does not pay.

    Needs an `Idempotency-Key`: the same key and body get the same answer, charged once.
    """
    project, index, question = _question(request, "spend")
    return _once(request, project, index, [question], single=True)


@guard(router, "POST", f"{ROOT}/batches", "spend")
def ask_batch(request: Request) -> Response:
    """Several questions for one total, all or none: `{"project", "index", "questions": [...]}`."""
    body = request.state.json
    if not isinstance(body, dict) or not isinstance(body.get("questions"), list):
        raise BadInput("`questions` is a list of questions.")
    project, index = _place(request, "spend")
    return _once(request, project, index, [request_of(each) for each in body["questions"]], single=False)


def _place(request: Request, permission: str) -> tuple[str, str]:
    body = request.state.json
    if not isinstance(body, dict):
        raise Malformed("the body is an object.")
    project, index = body.get("project"), body.get("index")
    if not isinstance(project, str) or not isinstance(index, str):
        raise BadInput("`project` and `index` are identifiers.")
    projects.check_project(viewer_of(request), project, permission)  # that it is there, its allotment says
    return project, index


def _question(request: Request, permission: str) -> tuple[str, str, Question]:
    project, index = _place(request, permission)
    body = {name: value for name, value in request.state.json.items() if name not in {"project", "index"}}
    return project, index, request_of(body)


def _once(request: Request, project: str, index: str, questions: list[Question], *, single: bool) -> Response:
    """Pay, or give again what was paid with the same idempotency key."""
    portal, viewer = portal_of(request), viewer_of(request)
    key = request.headers.get("idempotency-key", "")
    if not KEY.fullmatch(key):
        raise BadInput(
            "the header Idempotency-Key has 1 to 128 printable signs; a new one for each question."
        )
    once = Once(key, hashlib.sha256(json.dumps(request.state.json, sort_keys=True).encode()).hexdigest())
    before = portal.asking.paid_before(viewer, once)
    if before is not None:
        answers = [portal.asking.answer(viewer, name) for name in json.loads(before["answers"])]
        found = [{"id": row["id"], **answer.to_json(), "cost": shown(row["cost"])} for row, answer in answers]
        return JSONResponse(found[0] if single else {"answers": found}, before["status"])
    paid = portal.asking.pay(viewer, project, index, questions, once)
    found = [{"id": name, **answer.to_json()} for name, answer in paid]
    return JSONResponse(
        found[0] if single else {"answers": found}, asking.status_of([answer for _, answer in paid])
    )


@guard(router, "GET", f"{ROOT}/answers/{{answer}}", "see answers")
def one_answer(request: Request, answer: str) -> Response:
    """A stored answer."""
    viewer = viewer_of(request)
    row, found = portal_of(request).asking.answer(viewer, answer)
    facts = {
        "id": row["id"],
        "project": row["project"],
        "index": row["index"],
        "key": row["key"],
        "time": row["time"],
    }
    if digests_only(viewer, row["project"]):
        return JSONResponse(facts)
    return JSONResponse({**facts, **found.to_json(), "cost": shown(row["cost"])})


@guard(router, "GET", f"{ROOT}/projects/{{project}}/answers", "see answers")
def answers(request: Request, project: str, find: str = "") -> Response:
    """A project's answers, newest first."""
    portal = portal_of(request)
    projects.project_of(portal.database, viewer_of(request), project, "see answers")
    rows = portal.asking.answers_of(project, find)
    keys = ("id", "index", "question", "person", "time")
    return JSONResponse([{**{key: row[key] for key in keys}, "cost": shown(row["cost"])} for row in rows])


@guard(router, "GET", f"{ROOT}/proposals", "see decisions")
def list_proposals(request: Request) -> Response:
    """Proposals and decisions."""
    return JSONResponse(proposals.proposals_of(portal_of(request).database, viewer_of(request)))


@guard(router, "POST", f"{ROOT}/proposals", "propose allotment")
def propose(request: Request) -> Response:
    """Propose an allotment: `project`, `index`, `epsilon`, `ends`, `reason`, `first_come`."""
    body = request.state.json
    texts = ("project", "index", "epsilon", "ends", "reason")
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in texts):
        raise BadInput(f"an allotment has the texts {', '.join(texts)}.")
    made = proposals.propose_allotment(
        portal_of(request).indexes, viewer_of(request), body["project"], body["index"], body["epsilon"], body["ends"],
        body.get("first_come") is True, body["reason"],
    )  # fmt: skip
    return JSONResponse({"id": made}, 201)


@guard(router, "POST", f"{ROOT}/proposals/{{proposal}}:confirm", "confirm")
def confirm(request: Request, proposal: str) -> Response:
    """Confirm what another proposed: `{"reason": ...}`."""
    body = request.state.json
    reason = body.get("reason") if isinstance(body, dict) else None
    proposals.decide(portal_of(request).indexes, viewer_of(request), proposal, "confirmed", str(reason or ""))
    return JSONResponse({"id": proposal, "state": "confirmed"})


@guard(router, "GET", f"{ROOT}/releases", "download")
def list_releases(request: Request) -> Response:
    """Releases that I may download."""
    rows = releases.visible(portal_of(request).database, viewer_of(request))
    return JSONResponse(
        [
            {"id": row["id"], "name": row["name"], "ends": row["ends"], "files": json.loads(row["files"])}
            for row in rows
        ]
    )


@guard(router, "GET", f"{ROOT}/releases/{{release}}/files/{{path:path}}", "download")
def release_file(request: Request, release: str, path: str) -> Response:
    """A file of a release."""
    blocks = releases.read_file(portal_of(request).database, viewer_of(request), release, path)
    return StreamingResponse(blocks, media_type="application/octet-stream")


@guard(router, "GET", f"{ROOT}/log", "read log")
def log(request: Request, after: int = 0, index: str = "") -> Response:
    """Entries of the logs, oldest first; those after the number `after` of each."""
    found = entries_of(portal_of(request), viewer_of(request), index)
    return JSONResponse([each for each in found if each["number"] > after][:1000])


@guard(router, "POST", f"{ROOT}/tokens", "price")
def make_token(request: Request) -> Response:
    """A token of one's own: `project`, `scope` (read or ask), `days`, `name`. Its text is given once.

    Only for a session: a token makes no other.
    """
    portal, viewer, body = portal_of(request), viewer_of(request), request.state.json
    if viewer.token_scope is not None:
        raise BadInput("a token makes no other token; sign in.")
    if not isinstance(body, dict) or not all(
        isinstance(body.get(name), str) for name in ("project", "scope", "name")
    ):
        raise BadInput("a token has a project, a scope, days and a name.")
    days = body.get("days")
    projects.project_of(portal.database, viewer, body["project"], "price")
    row, secret = tokens.make_token(
        portal.database,
        viewer,
        body["project"],
        body["scope"],
        days if isinstance(days, int) else 0,
        body["name"],
    )
    return JSONResponse({"id": row["id"], "token": secret, "ends": row["ends"]}, 201)


@guard(router, "DELETE", f"{ROOT}/tokens/{{token}}", "own account")
def end_token(request: Request, token: str) -> Response:
    """End a token of one's own."""
    if not tokens.end_token(portal_of(request).database, viewer_of(request), token):
        raise Unknown("there is nothing at this address.")
    return Response(status_code=204)


@guard(router, "GET", f"{ROOT}/openapi.json", "own account", include_in_schema=False)
def schema(request: Request) -> Response:
    """This interface as OpenAPI 3.1."""
    return JSONResponse(get_openapi(title="Leeward portal", version="1", routes=router.routes))
