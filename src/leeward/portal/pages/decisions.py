"""Decisions: what was proposed, by whom, and what another person decided."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from leeward.portal import proposals
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.replies import page, redirect

router = APIRouter(include_in_schema=False)


@router.get("/decisions", dependencies=need("see decisions"))
def listing(request: Request) -> Response:
    """Proposals with two names and reasons."""
    portal, viewer = portal_of(request), viewer_of(request)
    rows = proposals.proposals_of(portal.database, viewer)
    return page(request, "decisions.html", proposals=rows, may_confirm=viewer.may("confirm"))


@router.post("/decisions/{proposal}", dependencies=need("confirm"))
def decide(request: Request, proposal: str) -> Response:
    """Confirm or decline what another proposed."""
    form = request.state.form
    indexes, viewer = portal_of(request).indexes, viewer_of(request)
    proposals.decide(indexes, viewer, proposal, form["verdict"], form["reason"])
    return redirect(request, "/decisions")
