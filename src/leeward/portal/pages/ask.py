"""Ask: terms, conditions, precision and price; a rehearsal with made-up patients; and a second step that pays."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from leeward.errors import BadInput
from leeward.portal import projects
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.indexes import Unknown, public_facts
from leeward.portal.question import Request as Question
from leeward.portal.question import request_of
from leeward.portal.rendering import chart_of, rows_of
from leeward.portal.replies import message_of, page, redirect
from leeward.portal.terms import search

router = APIRouter(include_in_schema=False)
EMPTY = {"terms": "", "by": "", "most": "", "within": "20", "epsilon": "", "count": "", "find": "", "add": ""}


@router.get("/projects/{project}/ask", dependencies=need("price"))
def show(request: Request, project: str) -> Response:
    """The form; its fields may be in the address, so that a question can be linked to. Nothing is charged."""
    return _page(request, project, dict(request.query_params))


@router.post("/projects/{project}/ask", dependencies=need("price"))
def try_out(request: Request, project: str) -> Response:
    """Price, rehearse, look a term up or go on to the second step; charges nothing."""
    return _page(request, project, request.state.form)


@router.get("/projects/{project}/terms", dependencies=need("price"))
def terms(request: Request, project: str, index: str = "", find: str = "") -> Response:
    """Terms of the public vocabulary, as a part of the page."""
    portal = portal_of(request)
    projects.project_of(portal.database, viewer_of(request), project, "price")
    portal.asking.allotment(project, index)
    found = search(portal.indexes.session(index).index, find[:100])
    return page(request, "terms.html", found=found, find=find)


@router.post("/projects/{project}/answers", dependencies=need("spend"))
def pay(request: Request, project: str) -> Response:
    """Ask and pay; the same form sent twice is charged once."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    projects.project_of(portal.database, viewer, project, "spend")
    question = question_of(form)
    ((answer, _),) = portal.asking.pay(viewer, project, form.get("index", ""), [question])
    return redirect(request, f"/answers/{answer}")


def question_of(form: dict[str, str]) -> Question:
    """A question from a form's fields."""
    conditions = {
        name.removeprefix("where_"): text.strip()
        for name, text in form.items()
        if name.startswith("where_") and text.strip()
    }
    most, within = form.get("most", "").strip(), form.get("within", "").strip()
    if most and not (most.isdecimal() and len(most) < 6):
        raise BadInput("`most` is a whole number.")
    found: dict[str, Any] = {"terms": form.get("terms", ""), "conditions": conditions}
    found |= {name: form[name].strip() for name in ("by", "count", "epsilon") if form.get(name, "").strip()}
    if most and form.get("by"):
        found["most"] = int(most)
    if within and "epsilon" not in found:
        found["within"] = within
    return request_of(found | {"large_noise": form.get("large_noise") == "yes"})


def _page(request: Request, project: str, form: dict[str, str]) -> Response:
    portal, viewer = portal_of(request), viewer_of(request)
    row = projects.project_of(portal.database, viewer, project, "price")
    balances = portal.indexes.balances(project)
    values = {**EMPTY, **form}
    chosen = values.get("index") or (balances[0][0]["id"] if balances else "")
    if chosen not in {index["id"] for index, _ in balances}:
        if balances:
            raise Unknown
        return page(request, "ask.html", project=row, balances=[], step="none", fault="", values=values)
    session = portal.indexes.session(chosen)
    if values["add"]:
        values["terms"] = " & ".join(part for part in (values["terms"].strip(), values["add"]) if part)
    found: dict[str, Any] = {"priced": None, "answer": None, "chart": None, "rows": [], "fault": ""}
    step = values.get("do", "price")
    if values["terms"].strip():
        try:
            question = question_of(values)
            if step == "rehearse":
                priced, answer = portal.asking.rehearse(viewer, project, chosen, question)
                title = f"Rehearsal with made-up patients: {priced.words}"
                found |= {"priced": priced, "answer": answer, "rows": rows_of(answer)}
                if priced.plan.by is not None:
                    found["chart"] = chart_of(priced.plan.bins, answer.values, answer.half_width, title, True)
            else:
                found["priced"] = portal.asking.price(viewer, project, chosen, [question])[0]
        except Unknown:
            raise
        except BadInput as error:
            found["fault"] = message_of(error)
    if found["fault"] or found["priced"] is None:
        step = "price"
    template = "price.html" if "hx-request" in request.headers else "ask.html"
    status = 422 if found["fault"] and request.method == "POST" and template == "ask.html" else 200
    return page(
        request,
        template,
        status,
        project=row,
        balances=balances,
        index=next(index for index, _ in balances if index["id"] == chosen),
        facts=public_facts(session),
        terms=search(session.index, values["find"]) if values["find"] else None,
        values=values,
        step=step,
        may_spend=viewer.may_in("spend", project),
        **found,
    )
