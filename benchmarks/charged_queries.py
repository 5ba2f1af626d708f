"""Whole charged queries: canonical form, budget, noise, exact count, answer stored and flushed to the disk.

    python benchmarks/charged_queries.py [--notes N] [--ledger URL]

The index and the questions are those of queries.py. Every question is new, so each is charged and stored. With
`--ledger` the budget is kept in that database instead of the index's own SQLite file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import table, write_page
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import IndexSession, Question, open_session
from leeward.queries.index.build import index_table
from leeward.queries.index.counts import Index
from leeward.queries.ledger import auditing, budgets, opening, spending
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import Budget, micro
from queries import TERMS, notes, questions

EPSILON = 0.1
WARM_UP = 50


def timed(work: Callable[[Any], Any], asked: list[Any]) -> list[float]:
    """Seconds of each call, ascending."""
    seconds = []
    for each in asked:
        begin = time.perf_counter()
        work(each)
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)


def row(name: str, seconds: list[float]) -> list[str]:
    return [
        name,
        *(f"{1000 * seconds[int(share * (len(seconds) - 1))]:.2f} ms" for share in (0.5, 0.9, 0.99)),
    ]


def flushes(folder: Path, count: int) -> list[float]:
    """Seconds of writing 4 kB and flushing them: below this no committed answer can be."""
    with (folder / "probe").open("wb", buffering=0) as file:

        def flush(_: int) -> None:
            file.write(b"x" * 4096)
            os.fsync(file.fileno())

        return timed(flush, list(range(count)))


def parts(session: IndexSession, asked: list[Question]) -> list[list[str]]:
    """The same questions step by step, at another price, so that they are charged again."""
    from leeward.queries.answer.plan import plan_query

    data_set = session.index.meta.id
    plans = [plan_query(session, each) for each in asked]

    def reserve(plan: Any) -> None:
        spending.reserve(
            session.ledger,
            data_set,
            "ann",
            [spending.Charge(key=plan.key, question=plan.question, epsilon=plan.price)],
        )

    return [
        row("canonical form, check and price", timed(lambda each: plan_query(session, each), asked)),
        row(
            "look for a stored answer",
            timed(lambda plan: spending.find_answer(session.ledger, data_set, plan.key), plans),
        ),
        row("reserve the budget", timed(reserve, plans)),
        row("draw the noise", timed(lambda plan: mechanism.draw(plan.noise, 1), plans)),
        row("exact count", timed(lambda plan: session.index.count(plan.query), plans)),
        row(
            "store the answer, flushed",
            timed(lambda plan: spending.store(session.ledger, data_set, {plan.key: "{}"}), plans),
        ),
        row("say what is left", timed(lambda plan: spending.left(session.ledger, data_set, "ann"), plans)),
    ]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--notes", type=int, default=1_000_000)
    options.add_argument("--ledger", metavar="URL")
    options.add_argument("--print", action="store_true", help="Print instead of writing the page.")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        index = index_table(notes(chosen.notes), folder / "index", terms=TERMS).index
        ledger = opening.make_ledger(chosen.ledger or folder / "index")
        everything = Budget(epsilon=micro(1000))
        budgets.register(
            ledger, budgets.DataSet(id=index.meta.id, budget=everything, default_allotment="all")
        )
        session = open_session(folder / "index", chosen.ledger)
        queries = list({index.resolve(each).canonical(): each for each in questions(1200)}.values())[
            : 1000 + WARM_UP
        ]
        asked = [Question(query=each, epsilon=micro(EPSILON)) for each in queries]
        timed(lambda each: answer_all(session, [each], "ann"), asked[:WARM_UP])
        asked = asked[WARM_UP:]
        rows = [
            row("**A new question, whole**", timed(lambda each: answer_all(session, [each], "ann"), asked)),
            row(
                "asked again: the stored answer",
                timed(lambda each: answer_all(session, [each], "bob"), asked),
            ),
            *parts(session, [Question(query=each.query, epsilon=micro(2 * EPSILON)) for each in asked[:300]]),
            row("4 kB written and flushed, for comparison", flushes(folder, 300)),
        ]
        assert Index(folder / "index").rows == chosen.notes
        assert auditing.audit(session.ledger, index.meta.id).passed
        place = session.ledger.engine.dialect.name
    text = (
        f"{len(asked):,} different questions at ε = {EPSILON} to an index of {chosen.notes:,} made-up notes, one after "
        f"the other; ledger in {place}, each answer on the disk before it is shown. The ledger agreed with itself "
        "afterwards.\n\n"
    ) + table(["Step", "p50", "p90", "p99"], rows)
    if chosen.print:
        print(text)
    else:
        name, flag = ("charged", "") if not chosen.ledger else (f"charged-{place}", " --ledger URL")
        write_page(name, f"Charged queries, {place}", f"python benchmarks/charged_queries.py{flag}", text)


if __name__ == "__main__":
    main()
