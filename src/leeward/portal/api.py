"""`/api/v1`: JSON in and out, errors as problem+json; a token or a session says who asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import sqlalchemy as sa
from fastapi import APIRouter, FastAPI, Header, Query
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from leeward.errors import BadInput
from leeward.portal import models, people, proposals, releases, sessions, sets
from leeward.portal.asking import Once
from leeward.portal.guards import need, program_needs
from leeward.portal.indexes import public_facts
from leeward.portal.logs import Wanted
from leeward.portal.pages.ask import digests_only
from leeward.portal.permissions import PUBLIC
from leeward.portal.question import Request as Question
from leeward.portal.store import tables
from leeward.portal.store.rows import Unknown, fetch_one, known
from leeward.portal.terms import Found, browse, search
from leeward.portal.visit import Here, Visit
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


After = Annotated[
    str, Query(description="The last one of the part before: the header Link has the address of the next.")
]


def linked(here: Visit, rows: Sequence[Any], following: str | None) -> Sequence[Any]:
    """A part of a list; the header Link has where the next one is (RFC 8288)."""
    if following is not None:
        query = urlencode({**here.request.query_params, "after": following})
        here.response.headers["link"] = f'<{here.portal.url(here.request.url.path)}?{query}>; rel="next"'
    return rows


Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key", pattern=r"^[\x21-\x7e]{1,128}$", description="A new one for each question."
    ),
]


def paid(here: Visit, key: str, body: models.Place, questions: list[Question]) -> list[dict[str, Any]]:
    """Answers with their identifiers: pay, or give again what was paid with the same key."""
    people.check_project(here.viewer, body.project, "spend")  # that it is there, its allotment says
    given = json.dumps(body.model_dump(exclude_unset=True), sort_keys=True)
    once = Once(key, hashlib.sha256(given.encode()).hexdigest())
    answers = here.asking.pay(here.viewer, body.project, body.index, questions, once)
    here.response.status_code = 201 if any(answer.cost for _, answer in answers) else 200
    return [{"id": name, **answer.to_json()} for name, answer in answers]


@router.get("/me", dependencies=program_needs("own account"))
def me(here: Here) -> models.Me:
    """Who I am, and my roles."""
    return models.Me(
        id=here.viewer.person,
        name=here.viewer.name,
        roles=sorted(here.viewer.house),
        projects=here.viewer.memberships,
        scope=here.viewer.token_scope,
    )


@router.get("/projects", dependencies=program_needs("see projects"), response_model=list[models.Named])
def list_projects(here: Here) -> Any:
    """Projects that I may see."""
    return people.projects_of(here.database, here.viewer)


@router.get("/projects/{project}", dependencies=program_needs("see projects"), response_model=models.Project)
def one_project(here: Here, project: str) -> Any:
    """A project with what it may spend."""
    if here.viewer.house <= {"admin"} and project not in here.viewer.memberships:
        return here.project
    return {**here.project, "indexes": [index | vars(each) for index, each in here.indexes.balances(project)]}


def _index(here: Visit, index: str) -> IndexSession:
    """The session of an index that one of the here.viewer's projects was allotted of; Unknown otherwise."""
    mine = here.viewer.projects("price")
    if mine is not None:
        allotted = tables.allotments.c
        asked = sa.select(allotted.index).where(allotted.index == index, allotted.project.in_(mine))
        known(fetch_one(here.database, asked))
    return here.indexes.session(index)


@router.get("/indexes/{index}", dependencies=program_needs("price"))
def one_index(here: Here, index: str) -> models.Index:
    """What is public about an index."""
    return public_facts(_index(here, index))


@router.get("/indexes/{index}/vocabulary", dependencies=program_needs("price"))
def vocabulary(here: Here, index: str, prefix: str = "", below: str | None = None) -> list[Found]:
    """Names of the public vocabulary: those that `prefix` calls, best first; or those directly below a name (the top
    where it is empty)."""
    terms = _index(here, index).index.terms
    return search(terms, prefix[:100]) if below is None else browse(terms, below[:200])


@router.get(
    "/projects/{project}/sets", dependencies=program_needs("price"), response_model=list[models.TermSet]
)
def list_sets(here: Here, project: str) -> Any:
    """Saved sets of terms, which a question names as @name."""
    return sets.sets_of(here.database, project)


@router.put("/projects/{project}/sets/{name}", dependencies=program_needs("spend"), status_code=204)
def save_set(here: Here, project: str, name: str, body: models.Terms) -> None:
    """Save terms under a name, in the place of what was there."""
    sets.save_set(here.database, here.viewer, project, name, body.terms)


@router.delete("/projects/{project}/sets/{name}", dependencies=program_needs("spend"), status_code=204)
def remove_set(here: Here, project: str, name: str) -> None:
    """Take a set's name away; answers to questions that named it stay."""
    sets.remove_set(here.database, here.viewer, project, name)


@router.post("/questions:price", dependencies=program_needs("price"))
def price(here: Here, body: models.PlacedQuestion) -> models.Price:
    """The price of a question; nothing is charged."""
    people.check_project(here.viewer, body.project, "price")
    return here.asking.price(here.viewer, body.project, body.index, [body.question()])[0].said


@router.post("/questions:rehearse", dependencies=program_needs("price"), response_model=models.Rehearsal)
def rehearse(here: Here, body: models.PlacedQuestion) -> Any:
    """The answer of made-up patients; nothing is charged."""
    people.check_project(here.viewer, body.project, "price")
    _, answer = here.asking.rehearse(here.viewer, body.project, body.index, body.question())
    return answer.to_json() | {"dry_run": True}


@router.post(
    "/questions",
    dependencies=program_needs("spend"),
    status_code=201,
    response_model=models.PaidAnswer,
    responses=stored(models.PaidAnswer),
)
def ask(here: Here, body: models.PlacedQuestion, key: Key) -> Any:
    """Ask and pay: 201 for a new answer, 200 for one that was stored, 402 where the budget does not pay.

    The same key and body get the same answer, charged once.
    """
    return paid(here, key, body, [body.question()])[0]


@router.post(
    "/batches",
    dependencies=program_needs("spend"),
    status_code=201,
    response_model=models.PaidAnswers,
    responses=stored(models.PaidAnswers),
)
def ask_batch(here: Here, body: models.Batch, key: Key) -> Any:
    """Several questions for one total, all or none."""
    return {"answers": paid(here, key, body, body.questions)}


@router.get(
    "/answers/{answer}",
    dependencies=program_needs("see answers"),
    response_model=models.StoredAnswer | models.Digest,
)
def one_answer(here: Here, answer: str) -> Any:
    """A stored answer; an auditor sees that there is one."""
    row, found = here.asking.answer(here.viewer, answer)
    if digests_only(here.viewer, row["project"]):
        return row
    return {**row, **found.to_json(), "cost": to_epsilon(row["cost"])}


@router.get(
    "/projects/{project}/answers",
    dependencies=program_needs("see answers"),
    response_model=list[models.ListedAnswer],
    responses=PAGED,
)
def answers(here: Here, project: str, find: str = "", after: After = "") -> Any:
    """A project's answers, newest first, 200 at a time."""
    rows, following = here.asking.answers_of(project, find, after)
    return linked(here, [row | {"cost": to_epsilon(row["cost"])} for row in rows], following)


@router.get(
    "/proposals",
    dependencies=program_needs("see decisions"),
    response_model=list[models.Proposal],
    responses=PAGED,
)
def list_proposals(here: Here, after: After = "") -> Any:
    """Proposals and decisions: open ones, then the newest, 200 at a time."""
    return linked(here, *proposals.proposals_of(here.database, here.viewer, after))


@router.post("/proposals", dependencies=program_needs("propose allotment"), status_code=201)
def propose(here: Here, body: models.Allotment) -> models.Made:
    """Propose an allotment."""
    return models.Made(id=proposals.propose_allotment(here.indexes, here.viewer, **body.model_dump()))


@router.post("/proposals/{proposal}:confirm", dependencies=program_needs("confirm"), responses=refusals(409))
def confirm(here: Here, proposal: str, body: models.Verdict) -> models.Decided:
    """Confirm what another proposed, except on accounts: a set-up link is handed over by a person."""
    proposals.proposal_of(here.database, proposal, proposals.KINDS.keys() - proposals.ACCOUNTS)
    proposals.decide(here.indexes, here.viewer, proposal, "confirmed", body.reason)
    return models.Decided(id=proposal, state="confirmed")


@router.get("/releases", dependencies=program_needs("download"), response_model=list[models.Release])
def list_releases(here: Here) -> Any:
    """Releases that I may download."""
    return releases.visible(here.database, here.viewer)


@router.get(
    "/releases/{release}/files/{path:path}",
    dependencies=program_needs("download"),
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        **refusals(409),
    },
)
def release_file(here: Here, release: str, path: str) -> Response:
    """A file of a release."""
    blocks = releases.read_file(here.database, here.viewer, release, path)
    return StreamingResponse(blocks, media_type="application/octet-stream")


@router.get(
    "/log", dependencies=program_needs("read log"), response_model=list[models.LogEntry], responses=PAGED
)
def log(here: Here, index: str = "", after: After = "") -> Any:
    """Entries of the logs, oldest first, 1,000 at a time: of an index, of the `portal`, or of all; those after the
    number `after` of each."""
    return linked(here, *Wanted(here.indexes, here.viewer, index).part(after, MOST_ENTRIES))


@router.post("/tokens", dependencies=program_needs("price"), status_code=201)
def make_token(here: Here, body: models.NewToken) -> models.Token:
    """A token of one's own. Its text is given once.

    Only for a session: a token makes no other.
    """
    check_signed_in(here)
    people.project_of(here.database, here.viewer, body.project, "price")
    row, secret = sessions.make_token(here.database, here.viewer, **body.model_dump())
    return models.Token(id=row["id"], token=secret, ends=row["ends"])


def check_signed_in(here: Visit) -> None:
    if here.viewer.token_scope is not None:
        raise BadInput("a token neither makes nor ends a token; sign in.")


@router.delete("/tokens/{token}", dependencies=program_needs("own account"), status_code=204)
def end_token(here: Here, token: str) -> None:
    """Revoke one of the caller's tokens. Only for a session."""
    check_signed_in(here)
    if not sessions.end_token(here.database, here.viewer, token):
        raise Unknown


@router.get("/openapi.json", dependencies=need(PUBLIC), include_in_schema=False)
def schema(here: Here) -> Mapping[str, Any]:
    """This interface as OpenAPI 3.1: the same for everybody, and published with the documentation."""
    app: FastAPI = here.request.app
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
