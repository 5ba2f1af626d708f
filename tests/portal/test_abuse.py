"""The 45 abuse cases by number: each attack fails, and succeeds when its defence is taken away."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.portal import attacks, defences
from tests.portal import attacks_beside as beside
from tests.portal import attacks_on_identity as identity
from tests.portal import attacks_on_pages as pages
from tests.portal.attacks import Attack
from tests.portal.defences import Patch, nothing, without
from tests.portal.made import Bench, make_bench
from tests.portal.provider import CLAIMS, CLIENT, SECRET, SIGNATURES, running_provider
from tests.portal.provider import Provider as FakeProvider

from leeward.portal import (
    accounts,
    api,
    asking,
    guards,
    journal,
    middleware,
    oidc,
    passwords,
    people,
    proposals,
    releases,
    rendering,
    sessions,
    sets,
    tries,
)
from leeward.portal.indexes import Indexes
from leeward.portal.pages import custody, sign_in
from leeward.portal.settings import Provider, Settings
from leeward.portal.visit import Visit
from leeward.queries.ledger import budgets, families, spending

Case = tuple[int, Attack, Callable[[Patch], None]]
CASES: dict[str, Case] = {
    "identity only from session or token": (1, identity.claims_to_be_another, defences.believes_a_header),
    "a new session at sign-in": (4, identity.fixes_a_session, defences.keeps_the_session),
    "signing in again ends the session": (4, identity.uses_the_cookie_from_before, defences.renews_without_ending),
    "signing out ends the session": (
        4, identity.uses_a_cookie_after_sign_out, without(sessions, "end"),
    ),
    "idle sessions end": (4, identity.uses_an_idle_session, defences.never_idle),
    "sessions end": (4, identity.uses_a_session_past_its_end, lambda p: p.setattr(sessions, "now", lambda: "")),
    "origin of a form": (5, attacks.posts_from_another_site, without(guards, "check_origin")),
    "value of a form": (5, attacks.posts_without_the_form, without(guards, "check_csrf")),
    "value and origin of a program's request": (
        5, attacks.posts_to_the_interface_without_the_form, defences.believes_every_origin,
    ),
    "host": (6, attacks.names_another_host, without(middleware, "check_host")),
    "one conditional update": (7, attacks.asks_at_once, defences.takes_nothing),
    "idempotency keys": (8, attacks.reuses_a_key, without(asking, "check_same_body")),
    "one price for one question": (9, attacks.averages, defences.prices_every_spelling),
    "paced counting": (10, attacks.measures_the_time, defences.no_slots),
    "every question is paid": (11, attacks.tracks, defences.takes_nothing),
    "one cap": (12, attacks.colludes, defences.counts_over_no_line),
    "no allotment, no spending": (13, attacks.spends_without_an_allotment, defences.gives_to_everybody),
    "membership": (13, attacks.spends_of_another_project, defences.forgets_membership),
    "ended tokens": (13, identity.uses_an_ended_token, lambda p: defences.looks_not_at(p, "revoked")),
    "tokens end": (13, identity.uses_a_token_past_its_end, lambda p: defences.looks_not_at(p, "ends")),
    "membership of a token": (
        13, identity.uses_a_token_of_a_project_that_was_left, defences.remembers_no_end,
    ),
    "scope of a token": (13, identity.spends_with_a_token_to_read, defences.forgets_the_scope),
    "closed accounts": (13, identity.uses_a_closed_account, lambda p: defences.looks_not_at(p, "active")),
    "data are known": (14, attacks.indexes_again, without(proposals, "check_new_data")),
    "allotments within the cap": (
        15, attacks.allots_too_much, without(budgets, "_check_within_cap"),
    ),
    "answers by membership": (16, attacks.reads_another_projects_answer, defences.sees_every_project),
    "permission of a route": (
        17, attacks.calls_a_custodians_route, without(guards, "check_permission"),
    ),
    "two people": (17, attacks.confirms_ones_own, without(proposals, "check_independent")),
    "decided once": (17, attacks.decides_again, defences.opens_again),
    "public vocabulary": (18, attacks.searches_for_what_is_there, defences.sorts_by_count),
    "escaping": (19, pages.injects_markup, defences.prints_as_it_is),
    "cells": (19, pages.injects_a_formula, lambda p: p.setattr(rendering, "cell_of", lambda value: value)),
    "marks": (19, pages.turns_the_direction, lambda p: p.setattr(rendering, "visible", str)),
    "files by entry": (20, pages.leaves_share, defences.opens_any_path),
    "no links": (20, pages.links_out_of_share, defences.follows_links),
    "sandbox": (21, pages.runs_a_script_in_a_report, lambda p: p.setattr(custody, "REPORT_HEADERS", {})),
    "size": (22, pages.sends_too_much, without(middleware, "check_size")),
    "fields": (22, pages.sends_many_fields, defences.takes_any_number_of_fields),
    "five tries": (23, identity.guesses_a_password, without(tries, "begin")),
    "twenty tries from an address": (
        23, identity.guesses_the_passwords_of_many, without(tries, "begin"),
    ),
    "the same work for unknown names": (
        23, identity.lists_accounts, lambda p: p.setattr(passwords, "_nobodys", lambda: "no hash"),
    ),
    "stored before it is shown": (24, pages.dies_between, defences.shows_before_it_stores),
    "accounts are what the log says": (
        25, pages.edits_the_balance, lambda p: p.setattr(families, "check", defences.unchecked_replay()),
    ),
    "the journal's chain": (
        25, pages.edits_the_journal, without(journal.chain, "broken_link"),
    ),
    "the journal's chain, to its end": (
        25, pages.edits_the_end_of_the_journal, without(journal.chain, "broken_link"),
    ),
    "hashes of secrets": (25, identity.reads_secrets_from_the_database, defences.keeps_secrets),
    "keys of the log": (25, pages.reads_the_log, defences.logs_everything),
    "a reset ends the password": (26, beside.uses_an_old_password_after_a_reset, defences.resets_by_a_link_alone),
    "a second factor takes the password": (
        27, beside.shuts_somebody_out_by_a_second_factor, without(accounts, "check_password"),
    ),
    "a start is of one stop": (28, beside.starts_what_was_stopped_again, defences.starts_whatever_is_stopped),
    "an account is as it was proposed": (
        29, beside.opens_an_account_that_was_closed_since, defences.opens_whatever_is_closed,
    ),
    "proposers with their role": (30, beside.proposes_and_leaves, without(proposals, "check_proposer")),
    "members of what an index answers": (
        31, beside.starts_the_index_of_ones_own_project,
        lambda p: p.setattr(proposals, "projects_that_profit", lambda database, row: {row["project"]}),
    ),
    "tokens end with the membership": (32, beside.wakes_a_token_up, without(people, "end_tokens")),
    "tokens end no tokens": (33, beside.ends_tokens_with_a_token_to_read, without(api, "check_signed_in")),
    "addresses are the provider's": (
        34, beside.is_invited_in_the_place_of_an_address, defences.takes_a_login_name_for_an_address,
    ),
    "no hash for a stranger": (35, beside.has_the_portal_hash, defences.hashes_before_it_looks),
    "a silent provider is asked once": (
        36, beside.waits_for_a_silent_provider, lambda p: p.setattr(oidc, "AGAIN", 0),
    ),
    "failed returns are counted": (37, beside.fills_the_journal, without(tries, "begin")),
    "sets have a length": (
        38, beside.asks_for_a_set_a_thousand_times, lambda p: p.setattr(sets, "LONGEST", 10**9),
    ),
    "notices fail alone": (39, beside.keeps_others_from_being_told, defences.fails_together),
    "one notice until there is a reply": (40, beside.fills_mailboxes, defences.tells_of_every_message),
    "catalogues as confirmed": (41, beside.changes_a_catalogue, defences.opens_what_is_there),
    "stopped releases": (42, beside.publishes_what_is_stopped, without(releases, "check_not_stopped")),
    "decided by one of two": (43, beside.confirms_at_once, defences.opens_again),
    "stopped between price and payment": (44, beside.pays_after_a_stop, without(asking, "check_running")),
    "keys within a membership": (
        45, beside.repeats_a_key_of_a_project_that_was_left, defences.forgets_membership,
    ),
}  # fmt: skip
"""Defence -> the case, the attack, and how the defence is taken away."""
SPOIL = frozenset(
    {
        "one conditional update", "every question is paid", "one cap", "data are known",
        "accounts are what the log says",
    }
)  # fmt: skip
"""Attacks that use up or spoil a portal: each has its own."""
OTHERS = {2, 3}
"""Cases of signing in at a provider, below."""


def bench_for(name: str, request: pytest.FixtureRequest) -> Bench:
    found: Bench = request.getfixturevalue("fresh" if name in SPOIL else "bench")
    return found


def test_every_case_is_here() -> None:
    assert {case for case, _, _ in CASES.values()} | OTHERS == set(range(1, 46))


@pytest.mark.parametrize("name", CASES, ids=lambda name: f"{CASES[name][0]:02d} {name}")
def test_the_attack_fails(name: str, request: pytest.FixtureRequest, monkeypatch: Patch) -> None:
    bench = bench_for(name, request)
    prepare(name, bench, monkeypatch)
    assert not CASES[name][1](bench)


@pytest.mark.parametrize("name", CASES, ids=lambda name: f"{CASES[name][0]:02d} {name}")
def test_it_succeeds_without_its_defence(
    name: str, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    bench = bench_for(name, request)
    prepare(name, bench, monkeypatch)
    CASES[name][2](monkeypatch)
    assert CASES[name][1](bench)


def prepare(name: str, bench: Bench, patch: Patch) -> None:
    """What an attack needs of the portal, beside people and data."""
    if name == "paced counting":
        from leeward.queries.answer import charged_query

        real = charged_query._counts

        def slow(index: Any, plan: Any) -> list[int]:
            attacks.CLOCK.sleep(0.006 if "fever" in plan.query.terms else 0.002)
            return real(index, plan)

        patch.setattr(charged_query, "_counts", slow)
        patch.setattr(charged_query, "time", attacks.CLOCK)


def free_for_the_second(patch: Patch) -> None:
    patch.setattr(spending, "paid_by", lambda ledger, data_set, keys, project: set(keys))


def test_what_others_asked_does_not_show_where_projects_pay_separately(
    apart: Bench, monkeypatch: Patch
) -> None:
    """Price, cost, `stored`, balance, and the work that a reply waits for: the same whether or not it was asked."""
    assert not attacks.learns_what_others_asked(apart, monkeypatch)


@pytest.mark.parametrize("without", [free_for_the_second, None])
def test_it_shows_without_that(
    apart: Bench, fresh: Bench, monkeypatch: Patch, without: Callable[[Patch], None] | None
) -> None:
    if without is not None:
        without(monkeypatch)
    else:
        fresh.allot("two", 4)
    assert attacks.learns_what_others_asked(fresh if without is None else apart, monkeypatch)


def test_10_a_reply_leaves_at_the_end_of_its_slot(bench: Bench, monkeypatch: Patch) -> None:
    """Whatever was done for it, within a slot."""
    clock = attacks.Clock()
    left = []

    async def wait(seconds: float) -> None:
        clock.sleep(seconds)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            left.append(round(clock.now, 6))

    def working(seconds: float) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            clock.sleep(seconds)
            await send({"type": "http.response.start", "status": 200, "headers": []})

        return app

    monkeypatch.setattr(middleware, "time", clock)
    monkeypatch.setattr(clock, "monotonic", clock.perf_counter, raising=False)
    monkeypatch.setattr(middleware.asyncio, "sleep", wait)
    settings = dataclasses.replace(bench.portal.settings, slot=0.05)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"host", settings.host.encode())],
        "client": None,
    }
    for slot, expected in ((0.05, [0.05, 0.05, 0.1]), (0, [0.003, 0.047, 0.051])):
        left.clear()
        for work in (0.003, 0.047, 0.051):
            clock.now = 0.0
            gate = middleware.Gate(
                working(work), dataclasses.replace(settings, slot=slot), bench.portal.metrics
            )
            import asyncio

            asyncio.run(gate(dict(scope), nothing, send))  # type: ignore[arg-type]
        assert left == expected


def test_a_body_that_never_ends_is_refused(bench: Bench, monkeypatch: Patch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.05)
    assert not pages.sends_slowly(bench)


def test_deep_json_and_ranges(bench: Bench) -> None:
    token = bench.token("rita")
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "idempotency-key": "deep",
    }
    assert bench.client().post("/api/v1/questions", content="[" * 60_000, headers=headers).status_code == 400
    path = f"/releases/{bench.release}/files/release.json"
    parts = "bytes=" + ",".join(f"{each}-{each}" for each in range(0, 20_000, 2))
    whole = bench.client("rita").get(path)
    assert bench.client("rita").get(path, headers={"range": parts}).content == whole.content


def test_cookies_of_a_portal_with_tls(bench: Bench) -> None:
    from starlette.responses import Response

    settings = Settings(folder=bench.folder, public_url="https://portal.hospital.example")
    reply = Response()
    sign_in.keep_cookie(reply, settings, "secret")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-leeward=secret; ")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_headers(bench: Bench) -> None:
    headers = bench.client("rita").get("/").headers
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


# -- signing in at a provider: cases 2 and 3 ----


@pytest.fixture(scope="module", name="provider")
def one_provider() -> Any:
    with running_provider() as found:
        yield found


@pytest.fixture(name="door")
def portal_with_provider(
    tmp_path_factory: pytest.TempPathFactory, provider: FakeProvider, request: pytest.FixtureRequest
) -> Bench:
    provider.fault, provider.lax, provider.subject, provider.claims = None, False, "rita", {}
    found: Bench | None = getattr(request.module, "_door", None)
    if found is None:
        settings = Provider(
            issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET, required={"tid": "ours"},
            roles_claim="groups", roles={"leeward-approvers": "approver"},
        )  # fmt: skip
        found = make_bench(tmp_path_factory.mktemp("door") / "portal", provider=settings)
        request.module._door = found
    return found


def go(provider: FakeProvider, client: Any) -> str:
    """From the portal to the provider and back: the callback's address, not yet called."""
    import httpx

    away = client.get("/sign-in/provider")
    assert away.status_code == 303 and away.headers["location"].startswith(f"{provider.issuer}/authorize?")
    back: str = httpx.get(away.headers["location"]).headers["location"]
    return back


def people_there(bench: Bench) -> int:

    from leeward.portal.store import reading, tables

    with reading(bench.portal.database) as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(tables.people)).scalar() or 0)


def test_signing_in_at_the_provider(door: Bench, provider: FakeProvider) -> None:
    provider.subject, provider.claims = "new person", {"groups": ["leeward-approvers", "others"]}
    before = people_there(door)
    for _ in range(2):  # the second time it is the same account
        client = door.client()
        assert client.get(go(provider, client)).headers["location"] == "/"
        me = client.get("/api/v1/me").json()
        assert me["roles"] == ["approver"] and people_there(door) == before + 1
    provider.claims = {}
    client = door.client()
    client.get(go(provider, client))
    assert client.get("/api/v1/me").json()["roles"] == []  # a missing claim gives no role
    assert "no role yet" in client.get("/").text


@pytest.mark.parametrize("fault", [*SIGNATURES, *CLAIMS])
def test_02_a_wrong_token_signs_nobody_in(door: Bench, provider: FakeProvider, fault: str) -> None:
    assert not signs_in_with(door, provider, fault)


@pytest.mark.parametrize("fault", [*SIGNATURES, *CLAIMS])
def test_02_without_the_check_it_does(
    door: Bench, provider: FakeProvider, fault: str, monkeypatch: Patch
) -> None:
    if fault in CLAIMS:
        monkeypatch.setattr(oidc.Client, "_fault", nothing)
    else:
        monkeypatch.setattr(oidc.Client, "check", lambda client, token, nonce: unverified(token))
    assert signs_in_with(door, provider, fault)


def unverified(token: str) -> Any:
    import base64
    import json

    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def signs_in_with(door: Bench, provider: FakeProvider, fault: str) -> bool:
    provider.fault, provider.subject = fault, f"{fault} {secrets.token_hex(4)}"
    before, client = people_there(door), door.client()
    reply = client.get(go(provider, client))
    signed_in = client.get("/api/v1/me").status_code == 200
    assert signed_in == (people_there(door) > before) == (reply.status_code == 303)
    return bool(signed_in)


def test_03_a_callback_belongs_to_the_browser_that_began(door: Bench, provider: FakeProvider) -> None:
    assert not signs_in_with_anothers_callback(door, provider)


def test_03_without_state_verifier_and_nonce_it_does_not(
    door: Bench, provider: FakeProvider, monkeypatch: Patch
) -> None:
    provider.lax = True
    assert not signs_in_with_anothers_callback(door, provider)  # state and nonce hold without PKCE
    real = oidc.Client._fault
    monkeypatch.setattr(oidc, "check_state", nothing)
    assert not signs_in_with_anothers_callback(door, provider)  # the nonce holds without state
    monkeypatch.setattr(
        oidc.Client, "_fault", lambda self, claims, nonce: real(self, claims, claims["nonce"])
    )
    assert signs_in_with_anothers_callback(door, provider)


def signs_in_with_anothers_callback(door: Bench, provider: FakeProvider) -> bool:
    attacker, victim = door.client(), door.client()
    theirs = go(provider, attacker)
    go(provider, victim)
    victim.get(theirs)
    return bool(victim.get("/api/v1/me").status_code == 200)


def test_03_a_callback_is_used_once(door: Bench, provider: FakeProvider, monkeypatch: Patch) -> None:
    provider.lax = True  # the provider takes a code twice
    assert not replays(door, provider)
    monkeypatch.setattr(sign_in, "take_login", keeps_login)
    assert replays(door, provider)


def keeps_login(here: Visit) -> Any:
    row = sessions.find(here.database, here.settings, here.cookie)
    return None if row is None else row["login"]


def replays(door: Bench, provider: FakeProvider) -> bool:
    client = door.client()
    callback = go(provider, client)
    begun = client.cookies[door.portal.settings.cookie]
    provider.fault = "exp"
    assert client.get(callback).status_code == 403
    provider.fault = None
    again = door.client()
    again.cookies.set(door.portal.settings.cookie, begun)
    return bool(again.get(callback).status_code == 303)


def test_a_symmetric_key_is_never_allowed() -> None:
    with pytest.raises(Exception, match="algorithms"):
        Provider(issuer="https://x", client_id="y", algorithms=("RS256", "HS256"))
    assert Indexes is not None
