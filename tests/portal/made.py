"""A portal with made-up patients and people, for tests: small, with no waiting for slots."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from starlette.testclient import TestClient

from leeward.portal import people, proposals, sessions
from leeward.portal.app import make_app
from leeward.portal.guards import Portal
from leeward.portal.middleware import Gate
from leeward.portal.permissions import Viewer
from leeward.portal.settings import Settings
from leeward.portal.store import reading, writing
from leeward.queries.index.build import index_table
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger import budgets, opening
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.privacy.accounting import Budget, micro
from leeward.release import write

HOUSE = {
    "carl": ("custodian",),
    "clara": ("custodian", "approver"),
    "anna": ("approver",),
    "audrey": ("auditor",),
    "ida": ("admin",),
}
MEMBERS = {
    "rita": ("one", "researcher"),
    "lea": ("one", "lead"),
    "rob": ("two", "researcher"),
    "nobody": (None, ""),
}
TERMS = Terms(
    ("fever", "cough", "chill", "sore throat", "headache", "rash"),
    labels={"fever": "Fever"},
    aliases={"pyrexia": "fever"},
)
CAP = 10


def notes(patients: int = 40, shift: int = 0) -> pl.DataFrame:
    """A note a patient; every second has a fever."""
    rows = range(patients)
    return pl.DataFrame(
        {
            "patient": [f"canary-{each}" for each in rows],
            "note": list(rows),
            "visit_month": [f"2025-{1 + (each + shift) % 12:02d}" for each in rows],
            "age": [(each * 7 + shift) % 90 for each in rows],
            "terms": [["fever", "cough"] if (each + shift) % 2 else ["headache"] for each in rows],
        }
    )


def make_index(
    folder: Path,
    *,
    epsilon: float = CAP,
    patients: int = 40,
    shift: int = 0,
    ledger_url: str | None = None,
    separately: bool = False,
) -> str:
    """An index with its ledger in `folder`; the data set's identity."""
    domains = {"when": ("2025-01", "2025-12"), "age": ("0", "99")}
    built = index_table(notes(patients, shift), folder, terms=TERMS, domains=domains, max_rows_per_patient=1)
    folder.chmod(0o700)
    ledger = opening.make_ledger(ledger_url or folder, folder)
    budget = Budget(epsilon=micro(epsilon))
    terms = DataSet(id=built.index.meta.id, budget=budget, threshold=5, charge_projects_separately=separately)
    budgets.register(ledger, terms)
    return built.index.meta.id


def make_release(folder: Path, patients: int = 30) -> None:
    """A release that verifies, of made-up codes, with a report that tries to run a script."""
    from leeward.cohort import Cohort
    from leeward.methods.disassociation import Disassociation

    codes = ("250", "401", "428")
    rows = [(patient, code) for patient in range(patients) for code in codes[: 1 + patient % 3]]
    events = pl.DataFrame(
        {
            "patient": [patient for patient, _ in rows],
            "code": pl.Series([code for _, code in rows], dtype=pl.Enum(codes)),
            "row": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt32),
        }
    )
    made = Disassociation(k=3, m=2).protect(Cohort(events=events, vocabulary=None))
    write(made, folder)
    (folder / "custody" / "report.html").write_text("<script>document.title = 'run'</script><h1>Report</h1>")


@dataclass
class Bench:
    """A portal and everybody in it, signed in."""

    gate: Gate
    portal: Portal
    folder: Path
    ids: dict[str, str] = field(default_factory=dict)
    project: dict[str, str] = field(default_factory=dict)
    index: str = ""
    release: str = ""
    csrf: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def client(self, login: str | None = None, **headers: str) -> TestClient:
        """A browser, signed in as somebody or as nobody."""
        base = self.portal.settings.public_url.rstrip("/") + "/"
        found = TestClient(
            self.gate, base_url=base, headers=headers, follow_redirects=False, raise_server_exceptions=False
        )
        if login is not None:
            found.cookies.set(self.portal.settings.cookie, self.cookies[login])
        return found

    def post(self, login: str, path: str, /, client: TestClient | None = None, **form: Any) -> Any:
        """A form, as our own page sends it."""
        headers = {"origin": self.portal.settings.origin}
        return (client or self.client(login)).post(
            path, data={"csrf": self.csrf[login], **form}, headers=headers
        )

    def viewer(self, login: str) -> Viewer:
        """Who somebody is."""
        with reading(self.portal.database) as connection:
            found = people.viewer_of(connection, self.ids[login])
        assert found is not None
        return found

    def token(self, login: str, project: str = "one", scope: str = "ask") -> str:
        """A token's text."""
        return sessions.make_token(
            self.portal.database, self.viewer(login), self.project[project], scope, 2, "test"
        )[1]

    def question(
        self, terms: str = "fever", epsilon: str = "0.1", project: str = "one", **more: Any
    ) -> dict[str, Any]:
        """A question's body."""
        return {
            "project": self.project[project],
            "index": self.index,
            "terms": terms,
            "epsilon": epsilon,
            **more,
        }

    def ask(self, token: str, key: str, body: dict[str, Any], **headers: str) -> Any:
        """Ask and pay as a program does."""
        sent = {"authorization": f"Bearer {token}", "idempotency-key": key, **headers}
        return self.client().post("/api/v1/questions", json=body, headers=sent)

    def log(self) -> list[dict[str, Any]]:
        """The ledger's log."""
        import json

        from leeward.queries.ledger import chain
        from leeward.queries.ledger.families import family_of
        from leeward.queries.ledger.opening import reading as reading_ledger

        session = self.portal.indexes.session(self.index)
        with reading_ledger(session.ledger) as connection:
            family = family_of(connection, session.ledger, session.index.meta.id)
            return [json.loads(entry.body) for entry in chain.entries_of(connection, family)]

    def spent(self) -> int:
        """Micro-ε that the log says were charged."""
        return sum(event["cost"] for event in self.log() if event["event"] == "charged")

    def allot(self, project: str, epsilon: float, *, first_come: bool = False, days: int = 30) -> None:
        """An allotment by two people."""
        ends = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
        made = proposals.propose_allotment(
            self.portal.indexes, self.viewer("carl"), self.project[project], self.index, str(epsilon), ends,
            first_come, "test",
        )  # fmt: skip
        proposals.decide(self.portal.indexes, self.viewer("anna"), made, "confirmed", "test")


def sign_in(bench: Bench, login: str) -> None:
    """A session for somebody, without a password."""
    with writing(bench.portal.database) as connection:
        secret = sessions.renew(connection, bench.portal.settings, None, bench.ids[login], {"sub": login})
    row = sessions.find(bench.portal.database, bench.portal.settings, secret)
    assert row is not None
    bench.cookies[login], bench.csrf[login] = secret, row["csrf"]


def make_bench(
    folder: Path,
    *,
    release: Path | None = None,
    allotted: float = 4,
    cap: float = CAP,
    database: str | None = None,
    ledger: str | None = None,
    separately: bool = False,
    **given: Any,
) -> Bench:
    """A portal in `folder` with an index, two projects, and everybody signed in."""
    for name in ("indexes", "releases"):
        (folder / name).mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    make_index(folder / "indexes" / "clinic", epsilon=cap, ledger_url=ledger, separately=separately)
    given.setdefault("slot", 0)
    given.setdefault("local_accounts", True)
    given.setdefault("questions_a_minute", 100_000)
    ledgers = {} if ledger is None else {"main": ledger}
    settings = Settings(folder=folder, database=database, ledgers=ledgers, **given)
    gate = make_app(settings)
    portal: Portal = gate.app.state.portal  # type: ignore[attr-defined]
    bench = Bench(gate, portal, folder)
    with writing(portal.database) as connection:
        for login in (*HOUSE, *MEMBERS):
            row = people.admit(
                connection, "https://issuer.example", login, login.title(), f"{login}@hospital.example"
            )
            assert row is not None
            bench.ids[login] = row["id"]
            people.set_house_roles(connection, row["id"], HOUSE.get(login, ()), "test")
    for name, lead in (("one", "lea"), ("two", "rob")):
        bench.project[name] = people.make_project(
            portal.database, bench.viewer("carl"), f"Project {name}", "A plan.", "2026-1", bench.ids[lead]
        )
    people.change_member(
        portal.database, bench.viewer("carl"), bench.project["one"], bench.ids["rita"], "researcher"
    )
    made = proposals.propose_index(
        portal.indexes, bench.viewer("carl"), "clinic", "Clinic", next(iter(ledgers), ""), "test"
    )
    proposals.decide(portal.indexes, bench.viewer("anna"), made, "confirmed", "test")
    bench.index = portal.indexes.rows()[0]["id"]
    bench.allot("one", allotted)
    if release is not None:
        shutil.copytree(release, folder / "releases" / "cohort", symlinks=True)
        ends = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
        made = proposals.propose_release(
            portal.indexes, bench.viewer("carl"), "cohort", "Cohort", [bench.ids["rita"]], ends, "test"
        )
        proposals.decide(portal.indexes, bench.viewer("anna"), made, "confirmed", "test")
        from leeward.portal.releases import visible

        bench.release = visible(portal.database, bench.viewer("carl"))[0]["id"]
    for login in bench.ids:
        sign_in(bench, login)
    return bench


__all__ = ["Bench", "make_bench", "make_index", "make_release", "sign_in"]
