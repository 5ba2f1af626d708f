"""How much a person asks in a minute."""

from __future__ import annotations

from pathlib import Path

from tests.portal.made import Bench, make_bench


def test_prices_rehearsals_and_questions_count_together(tmp_path: Path) -> None:
    """A rehearsal counts as ten; a stored answer too; others, and what was refused, do not."""
    bench = make_bench(tmp_path / "portal", questions_a_minute=24)
    token = bench.token("rita")

    def post(path: str, token: str = token) -> int:
        headers = {"authorization": f"Bearer {token}"}
        body = bench.question("fever", "0.5")
        return int(bench.client().post(f"/api/v1/questions{path}", json=body, headers=headers).status_code)

    assert [post(":rehearse") for _ in range(3)] == [200, 200, 429]
    assert [post(":price"), bench.ask(token, "a", bench.question("fever", "0.5")).status_code] == [200, 201]
    assert [bench.ask(token, key, bench.question("fever", "0.5")).status_code for key in "bcd"] == [
        200,
        200,
        429,
    ]
    assert post(":price") == 429
    page = bench.post("rita", f"/projects/{bench.project['one']}/ask", terms="fever", within="20")
    assert page.status_code == 429 and "in a minute" in page.text
    assert 0 < int(page.headers["retry-after"]) <= 60
    assert post(":price", bench.token("lea")) == 200


def test_a_person_may_ask_again_when_a_minute_has_passed(tmp_path: Path) -> None:
    bench = make_bench(tmp_path / "portal", questions_a_minute=1)
    token = bench.token("rita")
    assert bench.ask(token, "a", bench.question("fever", "0.5")).status_code == 201
    assert bench.ask(token, "b", bench.question("fever", "0.5")).status_code == 429
    limiter = bench.portal.asking._limiter
    for entries in limiter.storage.events.values():  # type: ignore[attr-defined]
        for entry in entries:
            entry.expiry -= 60
            entry.atime -= 60
    assert bench.ask(token, "b", bench.question("fever", "0.5")).status_code == 200


def test_noise_that_is_refused_takes_no_key(fresh: Bench) -> None:
    """The same key is good for the question that accepts it."""
    token = fresh.token("rita")
    assert fresh.ask(token, "same", fresh.question("fever", "0.001")).status_code == 422
    assert fresh.ask(token, "same", fresh.question("fever", "0.001", large_noise=True)).status_code == 201
