"""What the fuzzer feeds to the portal, to public functions, and to the annotators of notes."""

from __future__ import annotations

import inspect
import json
import os
from functools import cache
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import polars as pl
from tests.fuzz.ending import release, write_rows
from tests.fuzz.making import CELLS, mutated, one_value
from tests.portal.made import CAP, make_bench, sign_in
from tests.test_wrong_types import CALLS, WRONG, call, make_given

import leeward as lw

PIECES = ["A.", "A. ", "A.B. ", "Dr. Aa A.", "12/", "1-", "(", "((", "[**", "a@", "a.b@c.", "x ", "\n", "\n\n", "-", "__", "0", "9 ", "IV.",
          "St. ", "no ", "denies ", "or ", "and ", "Mr. ", "Jan ", "1.", "1,", "é", "中", "\u202e", "\x00", "\x1f", "=", ":", "http://", "#", "  ",
          "MRN: ", "P.O. Box ", "van der ", "ab-", "'", "'s ", "AAAA", "Aa", "aA", "5 mg ", "100/70 "]  # fmt: skip


def pumped(random: Random, folder: Path) -> None:
    """A note that repeats a few signs many thousand times: its time is that of any other note as long."""
    piece = "".join(random.choice(PIECES) for _ in range(random.randint(1, 3)))
    text = (
        random.choice(PIECES) + piece * (random.choice([3_000, 20_000]) // len(piece)) + random.choice(PIECES)
    )
    file = folder / "notes.csv"
    write_rows(file, ["patient", "text"], [["1", text]])
    mode = random.choice([None, "removed", "surrogates"])
    lw.annotate(file, folder / "out", mode=mode, key=folder / "key" if mode else None, any_language=True)
    assert pl.read_parquet(folder / "out" / "custody" / "table.parquet").height == 1


@cache
def _bench(folder: Path) -> Any:
    return make_bench(
        folder / "portal-of-the-fuzzer" / "portal", release=release("disassociate", folder / "x")
    )


FIELDS = ["terms", "epsilon", "within", "by", "count", "most", "project", "index", "lines", "reason", "verdict", "name", "plan", "ethics",
          "lead", "login", "role", "text", "days", "scope", "folder", "ledger", "recipients", "ends", "first_come", "password", "large_noise",
          "when", "age", "when-from", "conditions", "questions", "unit"]  # fmt: skip


def portal(random: Random, folder: Path) -> int:
    """A form, page or JSON question of somebody who may send it, with odd fields: never an answer of 5xx, and no more
    spent than the cap."""
    bench = _bench(folder.parent)
    login = random.choice(list(bench.ids))
    sign_in(bench, login)
    known = [*bench.project.values(), bench.index, bench.release, *bench.ids.values(), bench.ids[login]]
    good = [
        "fever",
        "fever & cough",
        "0.01",
        "20",
        "age",
        "patient",
        "yes",
        "2099-01-01",
        "researcher",
        "ask",
        "read",
        "confirmed",
        *known,
    ]
    fields = {
        random.choice(FIELDS): random.choice(good if random.random() < 0.6 else CELLS)
        for _ in range(random.randint(0, 8))
    }
    fields |= random.choice(
        [{}, {"project": bench.project["one"], "index": bench.index, "terms": "fever", "epsilon": "0.001"}]
    )
    method, path = random.choice(_routes())
    for name in ("project", "index", "release", "answer", "proposal", "person", "token", "name", "path:path"):
        value = random.choice(known) if random.random() < 0.8 else random.choice(CELLS)
        path = path.replace(f"{{{name}}}", quote(value.encode("utf-8", "surrogatepass"), safe=""))
    headers = {"origin": bench.portal.settings.origin}
    client = bench.client(login)
    if method == "GET":
        reply = client.get(
            path,
            params={name: value for name, value in fields.items() if "\ud800" not in value},
            headers=headers,
        )
    elif path.startswith("/api/"):
        body: Any = (
            {**fields, random.choice(FIELDS): one_value(random)}
            if random.random() < 0.8
            else one_value(random)
        )
        data = json.dumps(body).encode()
        headers |= {
            "x-csrf-token": bench.csrf[login],
            "idempotency-key": f"{random.random()}",
            "content-type": "application/json",
        }
        reply = client.request(
            method, path, content=mutated(data, random) if random.random() < 0.2 else data, headers=headers
        )
    else:
        form = {"active": "yes", "csrf": bench.csrf[login], **fields}
        reply = client.request(
            method,
            path,
            data={name: value for name, value in form.items() if "\ud800" not in value},
            headers=headers,
        )
    assert reply.status_code < 500, f"{method} of a route answered {reply.status_code}"
    assert bench.spent() <= CAP * 10**6, "more was spent than the cap"
    return reply.status_code >= 400


@cache
def _routes() -> list[tuple[str, str]]:
    """Every route; but none that closes the account that asks."""
    from leeward.portal import api
    from leeward.portal.pages import ALL

    return [
        (method, route.path)
        for router in (api.router, *ALL)
        for route in router.routes
        for method in sorted(route.methods)
    ]


@cache
def _given(folder: Path) -> dict[str, Any]:
    made = folder / "given-of-the-fuzzer"
    made.mkdir()
    return make_given(made)


def calls(random: Random, folder: Path) -> None:
    """A public function with some arguments of the wrong kind, or with wrong kinds inside them."""
    given, name = _given(folder.parent), random.choice(sorted(CALLS))
    right = CALLS[name](given, folder / "out")
    values = [value for value in WRONG.values() if not callable(value)]
    parameters = [
        each.name for each in inspect.signature(attrgetter(name)(lw)).parameters.values()
        if each.kind is not each.VAR_KEYWORD and each.name != "tell"
    ]  # fmt: skip
    for parameter in random.sample(parameters, min(len(parameters), random.randint(1, 3))):
        value = random.choice(values)
        right[parameter] = random.choice(
            [
                value,
                [value, random.choice(values)],
                (value,),
                {"x": value},
                {"patient": value, "code": "code"},
            ]
        )
    before = Path.cwd()
    os.chdir(folder)  # a path such as "x" is one here
    try:
        call(attrgetter(name)(lw), right)
    finally:
        os.chdir(before)
