"""What the portal says of an answer is what was paid: words, intervals, totals, ceilings, warnings."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.portal.made import Bench, make_bench

from leeward.portal import proposals, words
from leeward.portal.store import open_store, reading, tables, writing
from leeward.portal.store.rows import fetch_one


@pytest.mark.parametrize(("epsilon", "factor", "sure"), [("0.15", "1.17", "54"), ("3.7", "40.5", "98")])
def test_an_answer_says_what_its_price_bought(fresh: Bench, epsilon: str, factor: str, sure: str) -> None:
    """The same sentence stood on an answer at 0.15 and at 3.7: "next to nothing"."""
    token, client = fresh.token("rita"), fresh.client("rita")
    found = fresh.ask(token, "one", fresh.question("fever", epsilon)).json()
    page = client.get(f"/answers/{found['id']}").text
    assert (
        f"at most {factor} times as likely with any one patient" in page and f"at most {sure} % sure" in page
    )
    assert "next to nothing" not in page + client.get("/help").text
    assert found["likelihood_factor"] == pytest.approx(float(factor))
    fresh.ask(token, "two", fresh.question("cough", "0.05"))
    together = float(epsilon) + 0.05
    page = client.get(f"/answers/{found['id']}").text
    assert f"All that this project paid for here, ε {together:g}, is together at most" in page


def test_words_are_never_less_than_the_truth() -> None:
    for micros in (1, 1000, 150_000, 693_147, 4_000_000, 15_000_000):
        exact = math.exp(micros / 1e6)
        said = words.times(micros)
        if exact < 1e6:
            assert exact <= float(said.split()[2].replace(",", "")) <= exact * 1.01 + 0.01
        assert "million" in said or exact <= 1e6
        sure = words.certainty(micros)
        assert (
            sure == "as good as certain" or 1 + exact <= exact * 100 / int(sure.split()[2]) * (1 + 1e-9) + 1
        )
    assert words.certainty(10_000_000) == "as good as certain"
    assert "but for a chance of 1e-06" in words.of_project(500_000, "patient", 1e-6)


def test_a_ceiling_holds_at_the_price_and_at_the_payment(tmp_path: Path) -> None:
    bench = make_bench(tmp_path / "portal")
    allot_with_ceiling(bench, "0.5")
    token = bench.token("rita")
    project = f"/projects/{bench.project['one']}"
    for address, shown in ((project, "at most 0.5"), (f"{project}/ask", "may cost at most ε 0.5")):
        assert shown in bench.client("rita").get(address).text  # before anything is refused
    balance = bench.client("rita").get(f"/api/v1/projects/{bench.project['one']}").json()["indexes"][0]
    assert balance["most_an_answer"] == 0.5
    before = bench.spent()
    for question in (bench.question("fever", "0.6"), bench.question("fever", None, within=0)):
        question = {name: value for name, value in question.items() if value is not None}
        priced = bench.client().post(
            "/api/v1/questions:price", json=question, headers={"authorization": f"Bearer {token}"}
        )
        paid = bench.ask(token, f"over-{question.get('within')}", question)
        for refused in (priced, paid):
            assert refused.status_code == 422
            assert (
                "ne answer may cost at most ε 0.5 in this project, which is within ± "
                in refused.json()["detail"]
            )
    assert bench.spent() == before
    assert bench.ask(token, "below", bench.question("fever", "0.5")).status_code == 201
    asked = [{"terms": "cough", "epsilon": "0.4"}, {"terms": "rash", "epsilon": "0.6"}]
    body = {"project": bench.project["one"], "index": bench.index, "questions": asked}
    sent = {"authorization": f"Bearer {token}", "idempotency-key": "batch"}
    assert bench.client().post("/api/v1/batches", json=body, headers=sent).status_code == 422
    assert bench.spent() == before + 500_000, "all or nothing"
    decisions = bench.client("anna").get("/decisions").text
    assert "0.5 at most for one answer" in decisions and "one answer may cost all of it" in decisions


def allot_with_ceiling(bench: Bench, most: str) -> None:
    ends = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
    form = {
        "project": bench.project["one"],
        "index": bench.index,
        "epsilon": "4",
        "ends": ends,
        "reason": "r",
    }
    assert bench.post("carl", "/custody/allotments", **form, most_an_answer=most).status_code == 303
    waiting = proposals.proposals_of(bench.portal.database, bench.viewer("anna"))[0][0]
    assert (
        bench.post("anna", f"/decisions/{waiting['id']}", verdict="confirmed", reason="r").status_code == 303
    )


def test_a_histogram_tells_of_all_its_bins_at_once_and_of_their_sum(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leeward.queries.privacy.mechanism.draw", lambda noise, size: [7] * size)
    found = bench.ask(bench.token("rita"), "sum", bench.question("cough", "0.5", by="when")).json()
    assert found["half_width_of_all"] > 6
    assert found["total"]["sum"] == sum(found["answer"].values()) == 20 + 12 * 7
    low, high = found["total"]["interval"]
    assert high - found["total"]["sum"] == found["total"]["sum"] - low < 12 * found["half_width_of_all"]
    page = bench.client("rita").get(f"/answers/{found['id']}").text
    assert f"all 12 at once are within ± {found['half_width_of_all']}" in page and "Sum of the bins" in page
    ask = f"/projects/{bench.project['one']}/ask"
    price = bench.post("rita", ask, terms="cough", epsilon="0.5", by="when").text
    assert f"all of them at once within ± {found['half_width_of_all']}" in price


def test_a_sum_would_tell_what_is_hidden(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "leeward.queries.privacy.mechanism.draw", lambda noise, size: [9] * (size - 1) + [-9] * min(size, 1)
    )
    found = bench.ask(bench.token("rita"), "no-sum", bench.question("rash", "0.5", by="when")).json()
    assert None in found["answer"].values() and found["total"] is None
    page = bench.client("rita").get(f"/answers/{found['id']}").text
    assert "Their sum would tell what is hidden" in page and "Sum of the bins" not in page


def test_no_interval_goes_below_nobody(bench: Bench) -> None:
    """It was [-10, 10] for programs, and 0 to 10 on the page."""
    found = bench.ask(bench.token("rita"), "low", bench.question("chill", "0.3", by="when")).json()
    ends = [each for each in found["interval"].values() if each is not None]
    single = bench.ask(
        bench.token("rita"), "low-2", bench.question("fever & chill", "0.05", large_noise=True)
    ).json()
    assert all(low >= 0 for low, _ in [*ends, *([single["interval"]] if single["interval"] else [])])


def test_the_price_warns_where_noise_drowns_the_count_and_where_it_is_exact(bench: Bench) -> None:
    ask = f"/projects/{bench.project['one']}/ask"
    drowned = bench.post("rita", ask, terms="fever", epsilon="0.001").text
    exact = bench.post("rita", ask, terms="fever", within="0").text
    usual = bench.post("rita", ask, terms="fever", within="20").text
    assert "larger than what it may measure" in drowned and "exact counts betray people" in exact
    assert "at most 40.5 times as likely" in exact
    assert "larger than" not in usual and "betray" not in usual and "at most 1.17 times as likely" in usual


def test_a_portal_of_before_gets_ceilings_and_sets(tmp_path: Path) -> None:
    with writing(open_store(tmp_path)) as connection:
        row = {"project": "p", "index": "i", "epsilon": 1, "ends": "2099"}
        connection.execute(tables.allotments.insert().values(**row))
        connection.exec_driver_sql("ALTER TABLE portal_allotments DROP COLUMN most_an_answer")
        for table in ("portal_sets", "portal_key"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql("UPDATE portal_version SET version_num = '0001'")
    with reading(open_store(tmp_path, upgrade=print)) as connection:
        found = fetch_one(connection, tables.allotments.select())
        assert found == {**row, "most_an_answer": None}
        assert fetch_one(connection, tables.sets.select()) is None
