"""`/api/v1`: JSON in and out, errors as problem+json; a token or a session says who asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from leeward.errors import BadInput
from leeward.portal import models, people, proposals, releases, sessions, sets
from leeward.portal.asking import Once, status_of
from leeward.portal.guards import Asker, Portal, ThisPortal, need, program_needs
from leeward.portal.indexes import Unknown, known, public_facts
from leeward.portal.logs import Wanted
from leeward.portal.pages.ask import digests_only
from leeward.portal.permissions import PUBLIC, Viewer
from leeward.portal.question import Request as Question
from leeward.portal.store import fetch_one, tables
from leeward.portal.terms import Found, browse, search
from leeward.queries.answer.plan import IndexSession
from leeward.queries.privacy.accounting import to_epsilon

ROOT: Final = "/api/v1"
REFUSED: Final = {
    400: "The body cannot be read.",
    401: "No token and no session, or one that has ended.",
    402: "The budget does not pay, or the allotment has ended; nothing was charged.",
    403: "No role, or not the token's scope, has the permission.",
    404: "There is nothing at this address, or nothing for you.",
    409: "It was decided already, the key was used for another body, or the release does not verify today.",
    413: "The body is larger than 64 KiB.",
    422: "Something to correct; nothing was charged.",
    429: "Too many in a minute.",
    503: "A database that is needed does not answer; what was paid is not paid again.",
}
MOST_ENTRIES: Final = 1000
NEXT: Final = {"Link": {"description": "The next part, rel=next.", "schema": {"type": "string"}}}
PAGED: Final[dict[int | str, dict[str, Any]]] = {200: {"headers": NEXT}}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": models.Problem, "description": REFUSED[status]} for status in statuses}


router = APIRouter(prefix=ROOT, tags=["v1"], responses=refusals(400, 401, 403, 404, 413, 422, 429, 503))


def stored(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """What a payment replies beside 201."""
    return {
        200: {"model": model, "description": "All was stored: nothing was charged."},
        **refusals(402, 409),
    }


@dataclass(frozen=True)
class Paging:
    """Where a part of a list begins."""

    request: Request
    response: Response
    portal: Portal
    after: str

    def link(self, rows: Sequence[Any], following: str | None) -> Sequence[Any]:
        """The rows; the header Link has where the next part is (RFC 8288)."""
        if following is not None:
            query = urlencode({**self.request.query_params, "after": following})
            self.response.headers["link"] = f'<{self.portal.url(self.request.url.path)}?{query}>; rel="next"'
        return rows


AFTER: Final = Query(
    description="The last one of the part before: the header Link has the address of the next."
)


async def _paging(
    request: Request, response: Response, portal: ThisPortal, after: Annotated[str, AFTER] = ""
) -> Paging:
    return Paging(request, response, portal, after)


Part = Annotated[Paging, Depends(_paging)]


@dataclass(frozen=True)
class Paying:
    """A payment under an idempotency key."""

    portal: Portal
    viewer: Viewer
    response: Response
    key: str

    def pay(self, body: models.Place, questions: list[Question]) -> list[dict[str, Any]]:
        """Pay, or give again what was paid with the same key."""
        viewer = self.viewer
        people.check_project(viewer, body.project, "spend")  # that it is there, its allotment says
        given = json.dumps(body.model_dump(exclude_unset=True), sort_keys=True)
        once = Once(self.key, hashlib.sha256(given.encode()).hexdigest())
        paid = self.portal.asking.pay(viewer, body.project, body.index, questions, once)
        self.response.status_code = status_of([answer for _, answer in paid])
        return [{"id": name, **answer.to_json()} for name, answer in paid]


KEY: Final = Header(
    alias="Idempotency-Key", pattern=r"^[\x21-\x7e]{1,128}$", description="A new one for each question."
)


async def _paying(
    portal: ThisPortal, viewer: Asker, response: Response, idempotency_key: Annotated[str, KEY]
) -> Paying:
    return Paying(portal, viewer, response, idempotency_key)


Payment = Annotated[Paying, Depends(_paying)]


@router.get("/me", dependencies=program_needs("own account"))
def me(viewer: Asker) -> models.Me:
    """Who I am, and my roles."""
    return models.Me(
        id=viewer.person,
        name=viewer.name,
        roles=sorted(viewer.house),
        projects=viewer.memberships,
        scope=viewer.token_scope,
    )


@router.get("/projects", dependencies=program_needs("see projects"), response_model=list[models.Named])
def list_projects(portal: ThisPortal, viewer: Asker) -> Any:
    """Projects that I may see."""
    return people.projects_of(portal.database, viewer)


@router.get("/projects/{project}", dependencies=program_needs("see projects"), response_model=models.Project)
def one_project(portal: ThisPortal, viewer: Asker, project: str) -> Any:
    """A project with what it may spend."""
    row = people.project_of(portal.database, viewer, project, "see projects")
    if viewer.house <= {"admin"} and project not in viewer.memberships:
        return row
    return {**row, "indexes": [index | vars(each) for index, each in portal.indexes.balances(project)]}


def _index(portal: Portal, viewer: Viewer, index: str) -> IndexSession:
    """The session of an index that one of the viewer's projects was allotted of; Unknown otherwise."""
    mine = viewer.projects("price")
    if mine is not None:
        allotted = tables.allotments.c
        asked = sa.select(allotted.index).where(allotted.index == index, allotted.project.in_(mine))
        known(fetch_one(portal.database, asked))
    return portal.indexes.session(index)


@router.get("/indexes/{index}", dependencies=program_needs("price"))
def one_index(portal: ThisPortal, viewer: Asker, index: str) -> models.Index:
    """What is public about an index."""
    return public_facts(_index(portal, viewer, index))


@router.get("/indexes/{index}/vocabulary", dependencies=program_needs("price"))
def vocabulary(
    portal: ThisPortal, viewer: Asker, index: str, prefix: str = "", below: str | None = None
) -> list[Found]:
    """Names of the public vocabulary: those that `prefix` calls, best first; or those directly below a name (the top
    where it is empty)."""
    terms = _index(portal, viewer, index).index.terms
    return search(terms, prefix[:100]) if below is None else browse(terms, below[:200])


@router.get(
    "/projects/{project}/sets", dependencies=program_needs("price"), response_model=list[models.TermSet]
)
def list_sets(portal: ThisPortal, viewer: Asker, project: str) -> Any:
    """Saved sets of terms, which a question names as @name."""
    people.project_of(portal.database, viewer, project, "price")
    return sets.sets_of(portal.database, project)


@router.put("/projects/{project}/sets/{name}", dependencies=program_needs("spend"), status_code=204)
def save_set(portal: ThisPortal, viewer: Asker, project: str, name: str, body: models.Terms) -> None:
    """Save terms under a name, in the place of what was there."""
    people.project_of(portal.database, viewer, project, "spend")
    sets.save_set(portal.database, viewer, project, name, body.terms)


@router.delete("/projects/{project}/sets/{name}", dependencies=program_needs("spend"), status_code=204)
def remove_set(portal: ThisPortal, viewer: Asker, project: str, name: str) -> None:
    """Take a set's name away; answers to questions that named it stay."""
    people.project_of(portal.database, viewer, project, "spend")
    sets.remove_set(portal.database, viewer, project, name)


@router.post("/questions:price", dependencies=program_needs("price"), response_model=models.Price)
def price(portal: ThisPortal, viewer: Asker, body: models.PlacedQuestion) -> Any:
    """The price of a question; nothing is charged."""
    people.check_project(viewer, body.project, "price")
    return portal.asking.price(viewer, body.project, body.index, [body.question()])[0].to_json()


@router.post("/questions:rehearse", dependencies=program_needs("price"), response_model=models.Rehearsal)
def rehearse(portal: ThisPortal, viewer: Asker, body: models.PlacedQuestion) -> Any:
    """The answer of made-up patients; nothing is charged."""
    people.check_project(viewer, body.project, "price")
    _, answer = portal.asking.rehearse(viewer, body.project, body.index, body.question())
    return answer.to_json() | {"dry_run": True}


@router.post(
    "/questions",
    dependencies=program_needs("spend"),
    status_code=201,
    response_model=models.PaidAnswer,
    responses=stored(models.PaidAnswer),
)
def ask(payment: Payment, body: models.PlacedQuestion) -> Any:
    """Ask and pay: 201 for a new answer, 200 for one that was stored, 402 where the budget does not pay.

    The same key and body get the same answer, charged once.
    """
    return payment.pay(body, [body.question()])[0]


@router.post(
    "/batches",
    dependencies=program_needs("spend"),
    status_code=201,
    response_model=models.PaidAnswers,
    responses=stored(models.PaidAnswers),
)
def ask_batch(payment: Payment, body: models.Batch) -> Any:
    """Several questions for one total, all or none."""
    return {"answers": payment.pay(body, body.questions)}


@router.get(
    "/answers/{answer}",
    dependencies=program_needs("see answers"),
    response_model=models.StoredAnswer | models.Digest,
)
def one_answer(portal: ThisPortal, viewer: Asker, answer: str) -> Any:
    """A stored answer; an auditor sees that there is one."""
    row, found = portal.asking.answer(viewer, answer)
    if digests_only(viewer, row["project"]):
        return row
    return {**row, **found.to_json(), "cost": to_epsilon(row["cost"])}


@router.get(
    "/projects/{project}/answers",
    dependencies=program_needs("see answers"),
    response_model=list[models.ListedAnswer],
    responses=PAGED,
)
def answers(portal: ThisPortal, viewer: Asker, project: str, part: Part, find: str = "") -> Any:
    """A project's answers, newest first, 200 at a time."""
    people.project_of(portal.database, viewer, project, "see answers")
    rows, following = portal.asking.answers_of(project, find, part.after)
    return part.link([row | {"cost": to_epsilon(row["cost"])} for row in rows], following)


@router.get(
    "/proposals",
    dependencies=program_needs("see decisions"),
    response_model=list[models.Proposal],
    responses=PAGED,
)
def list_proposals(portal: ThisPortal, viewer: Asker, part: Part) -> Any:
    """Proposals and decisions: open ones, then the newest, 200 at a time."""
    return part.link(*proposals.proposals_of(portal.database, viewer, part.after))


@router.post("/proposals", dependencies=program_needs("propose allotment"), status_code=201)
def propose(portal: ThisPortal, viewer: Asker, body: models.Allotment) -> models.Made:
    """Propose an allotment."""
    return models.Made(id=proposals.propose_allotment(portal.indexes, viewer, **body.model_dump()))


@router.post("/proposals/{proposal}:confirm", dependencies=program_needs("confirm"), responses=refusals(409))
def confirm(portal: ThisPortal, viewer: Asker, proposal: str, body: models.Verdict) -> models.Decided:
    """Confirm what another proposed, except on accounts: a set-up link is handed over by a person."""
    proposals.proposal_of(portal.database, proposal, proposals.KINDS.keys() - proposals.ACCOUNTS)
    proposals.decide(portal.indexes, viewer, proposal, "confirmed", body.reason)
    return models.Decided(id=proposal, state="confirmed")


@router.get("/releases", dependencies=program_needs("download"), response_model=list[models.Release])
def list_releases(portal: ThisPortal, viewer: Asker) -> Any:
    """Releases that I may download."""
    rows = releases.visible(portal.database, viewer)
    return [row | {"files": json.loads(row["files"])} for row in rows]


@router.get(
    "/releases/{release}/files/{path:path}",
    dependencies=program_needs("download"),
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        **refusals(409),
    },
)
def release_file(portal: ThisPortal, viewer: Asker, release: str, path: str) -> Response:
    """A file of a release."""
    blocks = releases.read_file(portal.database, viewer, release, path)
    return StreamingResponse(blocks, media_type="application/octet-stream")


@router.get(
    "/log", dependencies=program_needs("read log"), response_model=list[models.LogEntry], responses=PAGED
)
def log(portal: ThisPortal, viewer: Asker, part: Part, index: str = "") -> Any:
    """Entries of the logs, oldest first, 1,000 at a time: of an index, of the `portal`, or of all; those after the
    number `after` of each."""
    return part.link(*Wanted(portal.indexes, viewer, index).part(part.after, MOST_ENTRIES))


@router.post("/tokens", dependencies=program_needs("price"), status_code=201)
def make_token(portal: ThisPortal, viewer: Asker, body: models.NewToken) -> models.Token:
    """A token of one's own. Its text is given once.

    Only for a session: a token makes no other.
    """
    check_signed_in(viewer)
    people.project_of(portal.database, viewer, body.project, "price")
    row, secret = sessions.make_token(portal.database, viewer, **body.model_dump())
    return models.Token(id=row["id"], token=secret, ends=row["ends"])


def check_signed_in(viewer: Viewer) -> None:
    if viewer.token_scope is not None:
        raise BadInput("a token neither makes nor ends a token; sign in.")


@router.delete("/tokens/{token}", dependencies=program_needs("own account"), status_code=204)
def end_token(portal: ThisPortal, viewer: Asker, token: str) -> None:
    """Revoke one of the caller's tokens. Only for a session."""
    check_signed_in(viewer)
    if not sessions.end_token(portal.database, viewer, token):
        raise Unknown


@router.get("/openapi.json", dependencies=need(PUBLIC), include_in_schema=False)
def schema(request: Request) -> Mapping[str, Any]:
    """This interface as OpenAPI 3.1: the same for everybody, and published with the documentation."""
    app: FastAPI = request.app
    return app.openapi()


@cache
def openapi() -> dict[str, Any]:
    """The interface as OpenAPI 3.1; refusals are of the media type that they are sent with."""
    found = get_openapi(
        title="Leeward portal",
        version="1",
        description="Ask, price and pay; see answers, decisions, releases and logs.",
        routes=router.routes,
    )
    for operations in found["paths"].values():
        for operation in operations.values():
            for status, reply in operation["responses"].items():
                if int(status) >= 400:
                    reply["content"] = {models.PROBLEM: reply["content"].pop("application/json")}
    return found
