"""Abuse cases about who somebody is: sessions, tokens, accounts and passwords. Each says whether it succeeded."""

from __future__ import annotations

from tests.portal.attacks import forget_tries, fresh_epsilon, key, number
from tests.portal.made import Bench, sign_in

from leeward.portal import accounts, passwords, people, sessions
from leeward.portal.store import now, tables, writing


def claims_to_be_another(bench: Bench) -> bool:
    """1: a header, a field or the environment says who asks."""
    token, other = bench.token("rita"), bench.ids["carl"]
    before = len(bench.log())
    for header in ("x-user", "x-forwarded-user", "remote-user", "leeward-user"):
        bench.ask(token, key(), bench.question(epsilon=fresh_epsilon()), **{header: other})
    bench.ask(token, key(), bench.question(epsilon=fresh_epsilon(), user=other))
    bench.client("rita", **{"x-user": other}).get("/api/v1/me")
    return any(event.get("user") == other for event in bench.log()[before:])


def fixes_a_session(bench: Bench) -> bool:
    """4: a session that the attacker knows before its victim signs in with it."""

    with writing(bench.portal.database) as connection:
        known = sessions.begin(connection, bench.portal.settings, None)
        sessions.renew(connection, bench.portal.settings, known, bench.ids["rita"])
    thief = bench.client()
    thief.cookies.set(bench.portal.settings.cookie, known)
    return thief.get("/api/v1/me").status_code == 200


def uses_the_cookie_from_before(bench: Bench) -> bool:
    """4: a cookie that was stolen before its owner signed in again in the same browser."""

    stolen = bench.cookies["rita"]
    with writing(bench.portal.database) as connection:
        new = sessions.renew(connection, bench.portal.settings, stolen, bench.ids["rita"])
    thief = bench.client()
    thief.cookies.set(bench.portal.settings.cookie, stolen)
    reached = thief.get("/api/v1/me").status_code == 200
    row = sessions.find(bench.portal.database, bench.portal.settings, new)
    assert row is not None
    bench.cookies["rita"], bench.csrf["rita"] = new, row["csrf"]
    return reached


def uses_a_cookie_after_sign_out(bench: Bench) -> bool:
    """4: a cookie that was stolen before its owner signed out."""

    stolen = bench.cookies["rita"]
    bench.post("rita", "/sign-out")
    thief = bench.client()
    thief.cookies.set(bench.portal.settings.cookie, stolen)
    reached = thief.get("/api/v1/me").status_code == 200
    sign_in(bench, "rita")
    return reached


def uses_an_idle_session(bench: Bench) -> bool:
    """4: a session that nobody used for half an hour."""

    with writing(bench.portal.database) as connection:
        connection.execute(
            tables.sessions.update()
            .where(tables.sessions.c.person == bench.ids["rita"])
            .values(seen="2020-01-01T00:00:00.000+00:00")
        )
    reached = bench.client("rita").get("/api/v1/me").status_code == 200
    sign_in(bench, "rita")
    return reached


def uses_a_session_past_its_end(bench: Bench) -> bool:
    """4: a session that was kept busy until it was over."""

    def set_end(ends: str) -> None:
        with writing(bench.portal.database) as connection:
            mine = tables.sessions.c.id == sessions.hash_of(bench.cookies["rita"])
            connection.execute(tables.sessions.update().where(mine).values(seen=now(), ends=ends))

    set_end("2020-01-01T00:00:00.000+00:00")
    reached = bench.client("rita").get("/api/v1/me").status_code == 200
    set_end("2099-01-01T00:00:00.000+00:00")
    return reached


def uses_an_ended_token(bench: Bench) -> bool:
    """13: a token that its owner ended, as it had leaked."""
    token = bench.token("rita")
    assert reaches(bench, token)
    (made,) = [
        each
        for each in sessions.tokens_of(bench.portal.database, bench.viewer("rita"))
        if token.startswith(each["start"])
    ]
    assert bench.post("rita", f"/tokens/{made['id']}/end").status_code == 303
    return reaches(bench, token) or spends(bench, token)


def uses_a_token_past_its_end(bench: Bench) -> bool:
    """13: a token whose days are over."""

    token = bench.token("rita")
    assert reaches(bench, token)
    with writing(bench.portal.database) as connection:
        mine = tables.tokens.c.digest == sessions.hash_of(token)
        connection.execute(tables.tokens.update().where(mine).values(ends="2020-01-01T00:00:00.000+00:00"))
    return reaches(bench, token) or spends(bench, token)


def spends_with_a_token_to_read(bench: Bench) -> bool:
    """13: a token that was handed out to read only pays for a question, or for a batch of them."""
    token, before = bench.token("rita", scope="read"), bench.spent()
    assert reaches(bench, token)
    body = bench.question("fever", fresh_epsilon(), large_noise=True)
    headers = {"authorization": f"Bearer {token}"}
    assert bench.client().post("/api/v1/questions:price", json=body, headers=headers).status_code == 200
    asked = {"terms": "fever", "epsilon": fresh_epsilon(), "large_noise": True}
    batch = {"project": bench.project["one"], "index": bench.index, "questions": [asked]}
    statuses = [bench.ask(token, key(), body).status_code]
    headers["idempotency-key"] = key()
    statuses.append(bench.client().post("/api/v1/batches", json=batch, headers=headers).status_code)
    return statuses != [403, 403] or bench.spent() != before


def reaches(bench: Bench, token: str) -> bool:
    """Whether a token says who somebody is."""
    headers = {"authorization": f"Bearer {token}"}
    return bench.client().get("/api/v1/me", headers=headers).status_code == 200


def spends(bench: Bench, token: str) -> bool:
    """Whether a token pays for a question."""
    before = bench.spent()
    bench.ask(token, key(), bench.question("fever", fresh_epsilon(), large_noise=True))
    return bench.spent() != before


def uses_a_token_of_a_project_that_was_left(bench: Bench) -> bool:
    """13: somebody who was taken out of a project, and is in another one still."""
    carl, database = bench.viewer("carl"), bench.portal.database
    for project in ("one", "two"):
        people.change_member(database, carl, bench.project[project], bench.ids["nobody"], "researcher")
    token = bench.token("nobody")
    assert reaches(bench, token)
    people.change_member(database, carl, bench.project["one"], bench.ids["nobody"], "none")
    reached = reaches(bench, token) or spends(bench, token)
    people.change_member(database, carl, bench.project["two"], bench.ids["nobody"], "none")
    return reached


def uses_a_closed_account(bench: Bench) -> bool:
    """13: somebody who left, with a session and a token from before that nobody took away."""

    token = bench.token("lea")
    people = tables.people

    def open_or_close(active: bool) -> None:
        with writing(bench.portal.database) as connection:
            mine = people.c.id == bench.ids["lea"]
            connection.execute(people.update().where(mine).values(active=active))

    open_or_close(False)
    try:
        by_cookie = bench.client("lea").get("/api/v1/me").status_code == 200
        return by_cookie or reaches(bench, token) or spends(bench, token)
    finally:
        open_or_close(True)


def guesses_a_password(bench: Bench) -> bool:
    """23: more than five guesses in a quarter of an hour."""
    login = f"guessed{next(number)}"
    statuses = [
        bench.client().post("/sign-in", data={"login": login, "password": f"guess {each}"}).status_code
        for each in range(8)
    ]
    forget_tries(bench)
    return statuses.count(429) != 3


def guesses_the_passwords_of_many(bench: Bench) -> bool:
    """23: more than twenty guesses in a quarter of an hour from one address, each at another account."""
    forget_tries(bench)
    statuses = [
        bench.client()
        .post("/sign-in", data={"login": f"guessed{next(number)}", "password": "a usual password"})
        .status_code
        for _ in range(23)
    ]
    forget_tries(bench)
    return statuses.count(429) != 3


def reads_secrets_from_the_database(bench: Bench) -> bool:
    """25: a copy of the portal's database, such as a backup; whether it holds what signs somebody in."""
    import sqlite3

    token = bench.token("rita")
    file = sqlite3.connect(bench.folder / "portal.db")
    text = "\n".join(file.iterdump())
    file.close()
    assert bench.ids["rita"] in text
    return any(secret in text for secret in (token, bench.cookies["rita"], bench.cookies["ida"]))


def lists_accounts(bench: Bench) -> bool:
    """23: whether the reply, or the work done for it, tells that an account is there."""

    login = f"there{next(number)}"
    _, link = accounts.make_account(bench.portal.database, login, "There")
    accounts.set_up(bench.portal.database, link, "a long password")
    done: list[int] = []
    real = passwords.matches
    passwords.matches = lambda hashed, given: (done.append(len(hashed)), real(hashed, given))[1]  # type: ignore[assignment]
    try:
        replies = [
            bench.client().post("/sign-in", data={"login": name, "password": "wrong password"})
            for name in (login, "not there")
        ]
    finally:
        passwords.matches = real
    forget_tries(bench)
    bodies = {reply.text.split("request ")[0] for reply in replies}
    return (
        len({reply.status_code for reply in replies}) > 1
        or len(bodies) > 1
        or len(done) != 2
        or len(set(done)) > 1
    )
