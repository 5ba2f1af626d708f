"""`/api/v1`: JSON in and out, errors as problem+json; a token or a session says who asks."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final

import sqlalchemy as sa
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from leeward.errors import BadInput
from leeward.portal import people, proposals, releases, sessions
from leeward.portal.asking import Once, status_of
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.indexes import Unknown, known, public_facts
from leeward.portal.pages.ask import digests_only
from leeward.portal.pages.audit import entries_of
from leeward.portal.question import Found, search
from leeward.portal.question import Request as Question
from leeward.portal.store import fetch_one, tables
from leeward.queries.privacy.accounting import to_epsilon

PROBLEM: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"description": "Refused (RFC 9457).", "content": {"application/problem+json": {}}}
}
router = APIRouter(tags=["v1"], responses=PROBLEM)
ROOT: Final = "/api/v1"


class Place(BaseModel):
    """What a question is asked of: who pays, and an index."""

    project: str
    index: str


class PlacedQuestion(Place, Question):
    """A question of a project to an index."""

    def question(self) -> Question:
        return Question(**self.model_dump(exclude=set(Place.model_fields)))


class Batch(Place):
    """Several questions of a project to an index."""

    questions: list[Question]


class Allotment(Place):
    """What a project may spend of an index, until a date such as 2027-03-31."""

    epsilon: str
    ends: str
    reason: str
    first_come: bool = Field(
        False,
        strict=True,
        description="The cap goes to whoever asks first: allotments may exceed it together.",
    )


class Verdict(BaseModel):
    """Why it is confirmed."""

    reason: str = ""


class NewToken(BaseModel):
    """A token's project, its scope (read or ask), how many days it lasts, and its name."""

    project: str
    scope: str
    name: str
    days: int = 0


IdempotencyKey = Annotated[
    str, Header(pattern=r"^[\x21-\x7e]{1,128}$", description="A new one for each question.")
]


@router.get(f"{ROOT}/me", dependencies=need("own account"))
def me(request: Request) -> dict[str, Any]:
    """Who I am, and my roles."""
    viewer = viewer_of(request)
    return {
        "id": viewer.person,
        "name": viewer.name,
        "roles": sorted(viewer.house),
        "projects": dict(viewer.memberships),
        "scope": viewer.token_scope,
    }


@router.get(f"{ROOT}/projects", dependencies=need("see projects"))
def list_projects(request: Request) -> list[dict[str, str]]:
    """Projects that I may see."""
    rows = people.projects_of(portal_of(request).database, viewer_of(request))
    return [{"id": row["id"], "name": row["name"]} for row in rows]


@router.get(f"{ROOT}/projects/{{project}}", dependencies=need("see projects"))
def one_project(request: Request, project: str) -> dict[str, Any]:
    """A project with what it may spend."""
    portal, viewer = portal_of(request), viewer_of(request)
    row = people.project_of(portal.database, viewer, project, "see projects")
    found: dict[str, Any] = {"id": row["id"], "name": row["name"]}
    if viewer.house <= {"admin"} and project not in viewer.memberships:
        return found
    balances = portal.indexes.balances(project)
    found["indexes"] = [
        {"id": index["id"], "name": index["name"], "most": each.most, "left": each.left, "ends": each.ends}
        for index, each in balances
    ]
    return found


def _index(request: Request, index: str) -> Any:
    """The session of an index that one of the viewer's projects was allotted of; Unknown otherwise."""
    portal, viewer = portal_of(request), viewer_of(request)
    mine = viewer.projects("price")
    if mine is not None:
        allotted = tables.allotments.c
        asked = sa.select(allotted.index).where(allotted.index == index, allotted.project.in_(mine))
        known(fetch_one(portal.database, asked))
    return portal.indexes.session(index)


@router.get(f"{ROOT}/indexes/{{index}}", dependencies=need("price"))
def one_index(request: Request, index: str) -> dict[str, Any]:
    """What is public about an index."""
    return dict(public_facts(_index(request, index)))


@router.get(f"{ROOT}/indexes/{{index}}/vocabulary", dependencies=need("price"))
def vocabulary(request: Request, index: str, prefix: str = "") -> list[Found]:
    """Terms of the public vocabulary."""
    return search(_index(request, index).index, prefix[:100])


@router.post(f"{ROOT}/questions:price", dependencies=need("price"))
def price(request: Request, body: PlacedQuestion) -> dict[str, Any]:
    """The price of a question; nothing is charged."""
    asking, viewer = portal_of(request).asking, viewer_of(request)
    people.check_project(viewer, body.project, "price")
    return asking.price(viewer, body.project, body.index, [body.question()])[0].to_json()


@router.post(f"{ROOT}/questions:rehearse", dependencies=need("price"))
def rehearse(request: Request, body: PlacedQuestion) -> dict[str, Any]:
    """The answer of made-up patients; nothing is charged."""
    asking, viewer = portal_of(request).asking, viewer_of(request)
    people.check_project(viewer, body.project, "price")
    _, answer = asking.rehearse(viewer, body.project, body.index, body.question())
    return answer.to_json() | {"dry_run": True}


@router.post(f"{ROOT}/questions", dependencies=need("spend"), status_code=201)
def ask(
    request: Request, response: Response, body: PlacedQuestion, idempotency_key: IdempotencyKey
) -> dict[str, Any]:
    """Ask and pay: 201 for a new answer, 200 for one that was stored, 402 where the budget does not pay.

    The same key and body get the same answer, charged once.
    """
    return _once(request, response, body, [body.question()], idempotency_key)[0]


@router.post(f"{ROOT}/batches", dependencies=need("spend"), status_code=201)
def ask_batch(
    request: Request, response: Response, body: Batch, idempotency_key: IdempotencyKey
) -> dict[str, list[dict[str, Any]]]:
    """Several questions for one total, all or none."""
    return {"answers": _once(request, response, body, body.questions, idempotency_key)}


def _once(
    request: Request, response: Response, body: Place, questions: list[Question], key: str
) -> list[dict[str, Any]]:
    """Pay, or give again what was paid with the same idempotency key."""
    asking, viewer = portal_of(request).asking, viewer_of(request)
    people.check_project(viewer, body.project, "spend")  # that it is there, its allotment says
    given = json.dumps(body.model_dump(exclude_unset=True), sort_keys=True)
    once = Once(key, hashlib.sha256(given.encode()).hexdigest())
    before = asking.paid_before(viewer, once)
    if before is not None:
        response.status_code = before["status"]
        answers = [asking.answer(viewer, name) for name in json.loads(before["answers"])]
        return [
            {"id": row["id"], **answer.to_json(), "cost": to_epsilon(row["cost"])} for row, answer in answers
        ]
    paid = asking.pay(viewer, body.project, body.index, questions, once)
    response.status_code = status_of([answer for _, answer in paid])
    return [{"id": name, **answer.to_json()} for name, answer in paid]


@router.get(f"{ROOT}/answers/{{answer}}", dependencies=need("see answers"))
def one_answer(request: Request, answer: str) -> dict[str, Any]:
    """A stored answer."""
    viewer = viewer_of(request)
    row, found = portal_of(request).asking.answer(viewer, answer)
    facts = {name: row[name] for name in ("id", "project", "index", "key", "time")}
    if digests_only(viewer, row["project"]):
        return facts
    return {**facts, **found.to_json(), "cost": to_epsilon(row["cost"])}


@router.get(f"{ROOT}/projects/{{project}}/answers", dependencies=need("see answers"))
def answers(request: Request, project: str, find: str = "") -> list[dict[str, Any]]:
    """A project's answers, newest first."""
    portal = portal_of(request)
    people.project_of(portal.database, viewer_of(request), project, "see answers")
    rows = portal.asking.answers_of(project, find)
    keys = ("id", "index", "question", "person", "time")
    return [{**{key: row[key] for key in keys}, "cost": to_epsilon(row["cost"])} for row in rows]


@router.get(f"{ROOT}/proposals", dependencies=need("see decisions"))
def list_proposals(request: Request) -> list[dict[str, Any]]:
    """Proposals and decisions."""
    return proposals.proposals_of(portal_of(request).database, viewer_of(request))


@router.post(f"{ROOT}/proposals", dependencies=need("propose allotment"), status_code=201)
def propose(request: Request, body: Allotment) -> dict[str, str]:
    """Propose an allotment."""
    made = proposals.propose_allotment(portal_of(request).indexes, viewer_of(request), **body.model_dump())
    return {"id": made}


@router.post(f"{ROOT}/proposals/{{proposal}}:confirm", dependencies=need("confirm"))
def confirm(request: Request, proposal: str, body: Verdict) -> dict[str, str]:
    """Confirm what another proposed."""
    proposals.decide(portal_of(request).indexes, viewer_of(request), proposal, "confirmed", body.reason)
    return {"id": proposal, "state": "confirmed"}


@router.get(f"{ROOT}/releases", dependencies=need("download"))
def list_releases(request: Request) -> list[dict[str, Any]]:
    """Releases that I may download."""
    rows = releases.visible(portal_of(request).database, viewer_of(request))
    return [
        {"id": row["id"], "name": row["name"], "ends": row["ends"], "files": json.loads(row["files"])}
        for row in rows
    ]


@router.get(f"{ROOT}/releases/{{release}}/files/{{path:path}}", dependencies=need("download"))
def release_file(request: Request, release: str, path: str) -> Response:
    """A file of a release."""
    blocks = releases.read_file(portal_of(request).database, viewer_of(request), release, path)
    return StreamingResponse(blocks, media_type="application/octet-stream")


@router.get(f"{ROOT}/log", dependencies=need("read log"))
def log(
    request: Request, after: Annotated[int, Query(le=2**63)] = 0, index: str = ""
) -> list[dict[str, Any]]:
    """Entries of the logs, oldest first; those after the number `after` of each."""
    found = entries_of(portal_of(request), viewer_of(request), index)
    return [each for each in found if each["number"] > after][:1000]


@router.post(f"{ROOT}/tokens", dependencies=need("price"), status_code=201)
def make_token(request: Request, body: NewToken) -> dict[str, str]:
    """A token of one's own. Its text is given once.

    Only for a session: a token makes no other.
    """
    portal, viewer = portal_of(request), viewer_of(request)
    if viewer.token_scope is not None:
        raise BadInput("a token makes no other token; sign in.")
    people.project_of(portal.database, viewer, body.project, "price")
    row, secret = sessions.make_token(portal.database, viewer, **body.model_dump())
    return {"id": row["id"], "token": secret, "ends": row["ends"]}


@router.delete(f"{ROOT}/tokens/{{token}}", dependencies=need("own account"), status_code=204)
def end_token(request: Request, token: str) -> None:
    """Revoke one of the caller's tokens."""
    if not sessions.end_token(portal_of(request).database, viewer_of(request), token):
        raise Unknown


@router.get(f"{ROOT}/openapi.json", dependencies=need("own account"), include_in_schema=False)
def schema(request: Request) -> dict[str, Any]:
    """This interface as OpenAPI 3.1."""
    return get_openapi(title="Leeward portal", version="1", routes=router.routes)
