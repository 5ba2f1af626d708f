"""Pages to ask: terms, conditions, precision and price; a rehearsal with made-up patients; then payment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from leeward.errors import BadInput
from leeward.portal.asking import Priced, TooMany
from leeward.portal.guards import need
from leeward.portal.indexes import public_facts
from leeward.portal.permissions import Viewer
from leeward.portal.question import Request as Question
from leeward.portal.question import command_of, python_of, request_of, words_of
from leeward.portal.rendering import chart_of, csv_of, message_of, rows_of, sentence_of
from leeward.portal.sets import remove_set, save_set, sets_of
from leeward.portal.store import tables
from leeward.portal.store.rows import Unknown, names_of
from leeward.portal.terms import look_up
from leeward.portal.visit import Fields, Here, Text, attached

router = APIRouter(include_in_schema=False)
FIELDS = ("terms", "by", "most", "within", "epsilon", "count", "unit", "find", "add", "below", "set_name")
EMPTY = dict.fromkeys(FIELDS, "") | {"within": "20"}


@router.get("/projects/{project}/ask", dependencies=need("price"))
def show_form(here: Here, project: str) -> Response:
    """The form; its fields may be in the address, so that a question can be linked to. Nothing is charged."""
    return _ask_page(here, project, here.request.query_params)


@router.post("/projects/{project}/ask", dependencies=need("price"))
def try_out(here: Here, project: str, form: Fields) -> Response:
    """Price, rehearse, look a term up or go on to the second step; charges nothing."""
    return _ask_page(here, project, form)


@router.get("/projects/{project}/terms", dependencies=need("price"))
def find_terms(here: Here, project: str, index: str = "", find: str = "", below: str = "") -> Response:
    """Terms of the public vocabulary, as a part of the page."""
    here.asking.allotment(project, index)
    listed = look_up(here.indexes.session(index).index.terms, find[:100], below[:200])
    return here.page("terms.html", listed=listed, find=find)


@router.post("/projects/{project}/answers", dependencies=need("spend"))
def pay(here: Here, project: str, form: Fields) -> Response:
    """Ask and pay; the same form sent twice is charged once."""
    ((answer, _),) = here.asking.pay(here.viewer, project, form.get("index", ""), [question_of(form)])
    return here.redirect(f"/answers/{answer}")


@router.post("/projects/{project}/sets", dependencies=need("spend"))
def keep_set(here: Here, project: str, form: Fields) -> Response:
    """Save the form's terms under a name, or take a name away; back to the form."""
    terms = form.get("terms", "")
    if form.get("remove"):
        remove_set(here.database, here.viewer, project, form["remove"])
    else:
        terms = "@" + save_set(here.database, here.viewer, project, form.get("set_name", ""), terms)
    asked = urlencode({"index": form.get("index", ""), "terms": terms})
    return here.redirect(f"/projects/{project}/ask?{asked}")


def question_of(form: Mapping[str, str]) -> Question:
    conditions = {
        name.removeprefix("where_"): text.strip()
        for name, text in form.items()
        if name.startswith("where_") and text.strip()
    }
    names = ("by", "count", "epsilon", "most", "unit", "within")
    found: dict[str, Any] = {name: text for name in names if (text := form.get(name, "").strip())}
    if "by" not in found:
        found.pop("most", None)
    if "epsilon" in found:
        found.pop("within", None)
    found |= {"terms": form.get("terms", ""), "conditions": conditions}
    return request_of({**found, "large_noise": form.get("large_noise") == "yes"})


def _ask_page(here: Here, project: str, form: Mapping[str, str]) -> Response:
    balances = here.indexes.balances(project)
    values = {**EMPTY, **form}
    if not balances:
        return here.page("ask.html", balances=[], step="none", fault="", values=values)
    listed = {index["id"]: index for index, _ in balances}
    ceilings = {index["id"]: balance.most_an_answer for index, balance in balances}
    chosen = values.get("index") or next(iter(listed))
    if chosen not in listed:
        raise Unknown
    session = here.indexes.session(chosen)
    if values["add"]:
        before = values["terms"].strip()
        before = f"({before})" if "|" in before else before
        values["terms"] = " & ".join(filter(None, (before, values["add"])))
    found = _try_question(here, project, chosen, values)
    step = "price" if found["fault"] or found["priced"] is None else values.get("do", "price")
    template = "price.html" if "hx-request" in here.request.headers else "ask.html"
    status = 422 if found["fault"] and here.request.method == "POST" and template == "ask.html" else 200
    return here.page(
        template,
        status,
        balances=balances,
        index=listed[chosen],
        ceiling=ceilings[chosen],
        facts=public_facts(session),
        listed=look_up(session.index.terms, values["find"][:100], values["below"][:200]),
        values=values,
        step=step,
        may_spend=here.viewer.may_in("spend", project),
        sets=sets_of(here.database, project),
        **found,
    )


def _try_question(here: Here, project: str, index: str, values: dict[str, str]) -> dict[str, Any]:
    """What the form's question costs, or what a rehearsal of it answers; or its fault, in words."""
    found: dict[str, Any] = {"priced": None, "answer": None, "chart": None, "rows": [], "fault": ""}
    if not values["terms"].strip():
        return found
    try:
        question = question_of(values)
        if values.get("do") != "rehearse":
            return found | {"priced": here.asking.price(here.viewer, project, index, [question])[0]}
        priced, answer = here.asking.rehearse(here.viewer, project, index, question)
    except (Unknown, TooMany):
        raise
    except BadInput as error:
        return found | {"fault": message_of(error)}
    found |= {"priced": priced, "answer": answer, "rows": rows_of(answer)}
    if priced.plan.by is not None:
        title = f"Rehearsal with made-up patients: {priced.said.words}"
        found["chart"] = chart_of(priced.plan.bins, answer.values, answer.half_width, title, True)
    return found


@router.get("/answers/{answer}", dependencies=need("see answers"))
def show_answer(here: Here, answer: str) -> Response:
    """An answer: interval, a sentence to quote, chart and table, and how to get the same elsewhere.

    An auditor sees what was asked and the digest of the answer.
    """
    row, found = here.asking.answer(here.viewer, answer)
    index = here.indexes.row(row["index"])
    session = here.indexes.session(row["index"])
    names = names_of(here.database, tables.people)
    if digests_only(here.viewer, row["project"]):
        return here.page("digest.html", row=row, index=index, by=names.get(row["person"], ""))
    plan = found.plan
    chart = None
    if plan.by is not None:
        chart = chart_of(plan.bins, found.values, found.half_width, f"{row['question']}, by {plan.by}")
    return here.page(
        "answer.html",
        row=row,
        answer=found,
        index=index,
        rows=rows_of(found),
        chart=chart,
        by=names.get(row["person"], ""),
        sentence=sentence_of(found, row["question"], index["name"], session.index.meta.synthetic),
        command=command_of(row, Path(Path(index["folder"]).name), row["person"]),
        python=python_of(row, f"{here.settings.origin}{here.settings.prefix}"),
        synthetic=session.index.meta.synthetic,
        told=here.asking.explain(row, plan),
    )


@router.get("/answers/{answer}/table.csv", dependencies=need("see answers"))
def download_table(here: Here, answer: str) -> Response:
    row, found = _answer_of(here, answer)
    header = ("question", found.plan.by or "bin", "value", "low", "high")
    cells = [
        [row["question"], each["bin"], each["value"], each["low"], each["high"]] for each in rows_of(found)
    ]
    headers = attached(f"answer-{answer[:8]}.csv")
    return Response(csv_of(header, cells), media_type="text/csv", headers=headers)


@router.get("/answers/{answer}/answer.json", dependencies=need("see answers"))
def download_json(here: Here, answer: str) -> Response:
    return JSONResponse({"id": answer, **_answer_of(here, answer)[1].to_json()})


def _answer_of(here: Here, answer: str) -> tuple[dict[str, Any], Any]:
    row, found = here.asking.answer(here.viewer, answer)
    if digests_only(here.viewer, row["project"]):
        raise Unknown
    return row, found


def digests_only(viewer: Viewer, project: str) -> bool:
    """Whether the viewer sees only that a question was answered, not the answer."""
    return project not in viewer.memberships and not viewer.house & {"custodian", "approver"}


@router.get("/projects/{project}/answers", dependencies=need("see answers"))
def list_answers(here: Here, project: str, find: str = "", after: str = "") -> Response:
    rows, following = here.asking.answers_of(project, find, after)
    names = names_of(here.database, tables.people)
    total = here.asking.total_of(project, find)
    return here.page("answers.html", rows=rows, after=following, total=total, names=names, find=find)


@router.get("/projects/{project}/batch", dependencies=need("price"))
def show_batch(here: Here, project: str) -> Response:
    """Several questions for one total, all or none."""
    return _batch_page(here, project)


@router.post("/projects/{project}/batch", dependencies=need("price"))
def price_batch(here: Here, project: str, index: Text, lines: Text, epsilon: Text) -> Response:
    """The total of a batch; charges nothing."""
    questions = questions_of(lines, epsilon)
    priced = here.asking.price(here.viewer, project, index, questions)
    return _batch_page(here, project, priced, index=index, lines=lines, epsilon=epsilon)


@router.post("/projects/{project}/batch/pay", dependencies=need("spend"))
def pay_batch(here: Here, project: str, index: Text, lines: Text, epsilon: Text) -> Response:
    """Ask and pay a batch: all are charged or none."""
    found = here.asking.pay(here.viewer, project, index, questions_of(lines, epsilon))
    session = here.indexes.session(index)
    done = [(name, words_of(session, answer.plan), answer, rows_of(answer)) for name, answer in found]
    return here.page("batch_done.html", done=done)


def _batch_page(here: Here, project: str, priced: Sequence[Priced] | None = None, **form: str) -> Response:
    values = {"lines": "", "epsilon": "0.1", **form}
    distinct = {} if priced is None else {each.plan.key: each.said.price for each in priced}
    return here.page(
        "batch.html", balances=here.indexes.balances(project), values=values, priced=priced,
        total=sum(distinct.values()), may_spend=here.viewer.may_in("spend", project),
    )  # fmt: skip


def questions_of(lines: str, epsilon: str) -> list[Question]:
    """Questions, one a line, as in a file of `leeward query --batch`: 'fever & cough' --when 2009 --by age."""
    found = []
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            raise BadInput(f"line {number}: a quotation mark is without its partner.") from None
        if not words:
            continue
        fields: dict[str, Any] = {"terms": words[0], "conditions": {}, "epsilon": epsilon}
        if len(words) % 2 == 0 or any(not word.startswith("--") for word in words[1::2]):
            raise BadInput(f"line {number}: write the terms in quotation marks, then --NAME VALUE pairs.")
        for name, value in zip(words[1::2], words[2::2], strict=True):
            name = name.removeprefix("--")
            if name in {"by", "epsilon", "within", "count", "most", "unit"}:
                fields[name] = value
            else:
                fields["conditions"][name.replace("-", "_")] = value
        found.append(request_of(fields))
    if not found:
        raise BadInput("there is no question in this batch.")
    return found
