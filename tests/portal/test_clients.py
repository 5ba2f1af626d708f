"""Programs ask from Python and R: the real server gives both the same answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.portal.made import Bench
from tests.portal.served import serving
from tests.waiting import LONG

import leeward as lw
from leeward.portal import client
from leeward.portal.app import make_app
from leeward.portal.settings import Settings

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "how-to"
R_FILE = Path(client.__file__).parent / "static" / "leeward-portal.R"


@pytest.fixture(name="address")
def served_portal(fresh: Bench) -> Iterator[str]:
    def make(port: int) -> Any:
        address = f"http://127.0.0.1:{port}"
        return make_app(Settings(folder=fresh.folder, public_url=address, slot=0))

    with serving(make) as port:
        yield f"http://127.0.0.1:{port}"


def test_python_asks(fresh: Bench, address: str) -> None:
    portal = lw.connect(address, token=fresh.token("rita"))
    (index,) = portal.indexes()
    assert portal.terms(index["id"], "pyr")[0]["name"] == "fever"
    assert portal.price(index["id"], "fever", within=10)["half_width"] <= 10
    assert portal.rehearse(index["id"], "fever", epsilon="0.5")["dry_run"]
    answer = portal.ask(index["id"], "fever", within=10)
    assert portal.answer(answer["id"])["answer"] == answer["answer"]
    both = [{"terms": "fever", "epsilon": 0.2}, {"terms": "rash", "epsilon": 0.2}]
    assert len(portal.ask_all(index["id"], both)) == 2
    assert len(portal.answers()) == 3
    table = portal.frame(portal.ask(index["id"], "fever", epsilon="0.3", by="when"))
    assert table.columns == ["bin", "count", "low", "high"] and len(table) == 12
    assert table.filter((table["low"] > table["count"]) | (table["high"] < table["count"])).is_empty()
    with pytest.raises(client.NotEnoughBudget):
        portal.ask(index["id"], "cough", epsilon=5)
    with pytest.raises(client.PortalRefused, match="no term"):
        portal.ask(index["id"], "unheard of", epsilon=0.1)
    with pytest.raises(lw.BadInput, match="https"):
        lw.connect("http://portal.example", token="x")


def test_r_asks(fresh: Bench, address: str, tmp_path: Path) -> None:
    token = fresh.token("rita")
    program = tmp_path / "ask.R"
    program.write_text(
        f"""
        source("{R_FILE}")
        portal <- lw_connect("{address}")
        index <- lw_indexes(portal)$id
        stopifnot(lw_terms(portal, index, "pyr")$name[1] == "fever")
        stopifnot(lw_price(portal, index, "fever", within = 10)$half_width <= 10)
        stopifnot(lw_rehearse(portal, index, "fever", epsilon = "0.5")$dry_run)
        answer <- lw_ask(portal, index, "fever", epsilon = "0.2", key = "one")
        again <- lw_ask(portal, index, "fever", epsilon = "0.2", key = "one")
        stopifnot(identical(answer$answer, again$answer), nrow(lw_answers(portal)) == 1)
        binned <- lw_frame(lw_ask(portal, index, "fever", epsilon = "0.3", by = "when"))
        stopifnot(nrow(binned) == 12, all(binned$low <= binned$count, na.rm = TRUE))
        refused <- tryCatch(lw_ask(portal, index, "cough", epsilon = "5"), error = conditionMessage)
        stopifnot(grepl("402", refused), grepl("Nothing was charged", refused))
        write.csv(lw_frame(answer), "answer.csv", row.names = FALSE)
        """
    )
    environment = {"LEEWARD_TOKEN": token, "PATH": "/usr/bin:/bin"}
    subprocess.run(["Rscript", str(program)], cwd=tmp_path, env=environment, check=True, timeout=120)
    portal = lw.connect(address, token=token)
    (index,) = portal.indexes()
    asked = portal.frame(portal.ask(index["id"], "fever", epsilon="0.2"))
    count = float((tmp_path / "answer.csv").read_text().splitlines()[1].split(",")[1])
    assert count == asked["count"][0]


def portal_of(reply: Callable[[httpx.Request], httpx.Response]) -> client.Portal:
    http = httpx.Client(base_url="https://portal.example", transport=httpx.MockTransport(reply))
    return client.Portal("https://portal.example", "p", http)


def test_a_busy_portal_and_a_lost_reply_are_asked_again_with_the_same_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(client.time, "sleep", paused.append)
    seen: list[str] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["idempotency-key"])
        if len(seen) == 1:
            raise httpx.ReadError("lost")
        if len(seen) == 2:
            return httpx.Response(429, headers={"retry-after": "7"})
        return httpx.Response(201, json={"answer": 3})

    assert portal_of(reply).ask("i", "fever", epsilon=1) == {"answer": 3}
    assert len(seen) == 3 and len(set(seen)) == 1
    assert paused == [0.25, 7]


def test_a_portal_that_stays_silent_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.time, "sleep", lambda _: None)

    def reply(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no")

    with pytest.raises(client.PortalSilent):
        portal_of(reply).answers()


def test_no_redirect_is_followed() -> None:
    """Whoever answers in the portal's place would get the token and the question."""
    asked: list[str] = []

    def reply(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"location": "https://elsewhere.example/"})

    with pytest.raises(client.PortalRefused, match=r"connect to https://elsewhere\.example"):
        portal_of(reply).ask("i", "fever", epsilon=1)
    assert asked == ["portal.example"]


def cells_of(name: str, address: str) -> list[str]:
    """The code of a notebook, cell by cell, for another portal than the demo's."""
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    code = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    return [each.replace("http://127.0.0.1:8000", address) for each in code]


def test_the_notebook_in_python_runs(fresh: Bench, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEEWARD_TOKEN", fresh.token("rita"))
    names: dict[str, Any] = {}
    for cell in cells_of("portal-python.ipynb", address):
        exec(cell, names)
    assert names["again"]["cost"] == 0 and len(names["by_month"]) == 12


def test_the_notebook_in_r_runs(fresh: Bench, address: str, tmp_path: Path) -> None:
    program = tmp_path / "notebook.R"
    program.write_text("\n".join([*cells_of("portal-r.ipynb", address), "stopifnot(nrow(by_month) == 12)"]))
    environment = {"LEEWARD_TOKEN": fresh.token("rita"), "PATH": "/usr/bin:/bin"}
    subprocess.run(["Rscript", str(program)], cwd=tmp_path, env=environment, check=True, timeout=LONG)
