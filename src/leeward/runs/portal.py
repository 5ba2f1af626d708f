"""The story of a portal: set up, served, backed up; and one with made-up data and five people."""

from __future__ import annotations

import gc
import logging
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.portal.settings import Settings

DEMO_PEOPLE = (
    ("rita", "Rita Researcher", ()),
    ("lea", "Lea Lead", ()),
    ("carl", "Carl Custodian", ("custodian",)),
    ("anna", "Anna Approver", ("approver", "auditor")),
    ("ida", "Ida Admin", ("admin",)),
)
"""Login name, name, roles of the house."""
SWITCH = 0.0005
"""Seconds that a thread keeps the interpreter while others wait for it. A reply passes through several threads, and at
Python's own 5 ms each passing may wait so long for a count."""
DEMO_PATIENTS = 5000
DEMO_BUDGET = 10


@dataclass(frozen=True)
class Demo:
    """A portal with made-up data: its people with their passwords, and its project and index."""

    passwords: dict[str, str]
    people: dict[str, str]
    project: str
    index: str
    release: str
    codes: str
    """The index of codes."""


def make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("indexes", "releases"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)


def make_demo(
    folder: Path,
    *,
    patients: int = DEMO_PATIENTS,
    say: Callable[[str], None] = lambda text: None,
    **given: Any,
) -> Demo:
    """A portal with five people, an index of made-up notes, a project, a catalogue and a release. BadInput where there
    is a portal in `folder` already."""
    from leeward.portal.app import make_app
    from leeward.portal.guards import Portal
    from leeward.portal.settings import read_settings
    from leeward.runs.index import index
    from leeward.runs.itemsets import itemsets
    from leeward.synthetic.complaints import complaints

    if (folder / "indexes" / "clinic").exists():
        raise BadInput(f"{folder}: a portal exists already; serve it, or remove it first.")
    make_folder(folder)
    say("Indexing made-up notes ...")
    index(
        complaints(patients), folder / "indexes" / "clinic", epsilon_total=DEMO_BUDGET, threshold=10, terms="lexicon",
        max_rows_per_patient=3, about_patients=patients, new_budget="made-up patients",
        domains={"when": {"low": "2025-01", "high": "2025-12"}, "age": {"low": 0, "high": 99}, "sex": ["f", "m"]},
    )  # fmt: skip
    say("Indexing made-up diagnoses ...")
    _codes(folder / "indexes" / "diagnoses", patients)
    itemsets(folder / "indexes" / "clinic", folder / "releases" / "catalogue", epsilon=1)
    say("Making a release of a made-up cohort ...")
    _release(folder / "releases" / "cohort")
    settings = read_settings(folder, local_accounts=True, **given)
    app: Any = make_app(settings).app  # the gate knows it as any ASGI application
    portal: Portal = app.state.portal
    return _fill(portal)


def _codes(out: Path, patients: int) -> None:
    """An index of made-up ICD-9-CM codes, whole patients."""
    from tempfile import TemporaryDirectory

    from leeward.runs.index import index
    from leeward.synthetic import write_codes

    with TemporaryDirectory() as folder:
        events = Path(folder) / "made-up-diagnoses.csv"
        write_codes(events, patients, seed=2)
        index(
            events, out, epsilon_total=DEMO_BUDGET, threshold=10, terms="icd9", about_patients=patients,
            new_budget="made-up patients",
        )  # fmt: skip


def _release(out: Path) -> None:
    from tempfile import TemporaryDirectory

    from leeward.cohort.readers import read
    from leeward.runs.protect import method_of, protect
    from leeward.synthetic import write_codes

    with TemporaryDirectory() as folder:
        events = Path(folder) / "made-up-cohort.csv"
        write_codes(events, 500, seed=1)
        cohort = read(events)
    protect(cohort, method_of({"name": "disassociation", "k": 3, "m": 2}), out)


def _fill(portal: Any) -> Demo:
    from leeward.portal import accounts, people, proposals
    from leeward.portal.store import reading, writing

    database, indexes = portal.database, portal.indexes
    secret = {login: secrets.token_urlsafe(12) for login, _, _ in DEMO_PEOPLE}
    ids = {}
    for login, name, _ in DEMO_PEOPLE:
        ids[login], link = accounts.make_account(database, login, name)
        accounts.set_up(database, link, secret[login])
    with writing(database) as connection:
        for login, _, roles in DEMO_PEOPLE:
            people.set_house_roles(connection, ids[login], roles, "demo")
    with reading(database) as connection:
        viewers = {login: people.viewer_of(connection, ids[login]) for login in ids}
    carl, anna = viewers["carl"], viewers["anna"]
    assert carl is not None and anna is not None  # just made
    project = people.make_project(
        database, carl, "Winter illnesses", "Which complaints come with influenza, by month and age?", "2026-041",
        ids["lea"],
    )  # fmt: skip
    people.change_member(database, carl, project, "rita", "researcher")
    ends = (datetime.now(UTC) + timedelta(days=180)).date().isoformat()
    for name, title in (("clinic", "Clinic notes 2025"), ("diagnoses", "Diagnoses (ICD-9-CM)")):
        made = proposals.propose_index(indexes, carl, name, title, "", "Made-up patients, to try it.")
        proposals.decide(indexes, anna, made, "confirmed", "Made-up data: no parent needed.")
    index, codes = (row["id"] for row in indexes.rows())
    for each in (index, codes):
        made = proposals.propose_allotment(
            indexes, carl, project, each, "3", ends, False, "A study of one winter.", "1"
        )
        proposals.decide(indexes, anna, made, "confirmed", "Within the cap.")
    for name, title in (("catalogue", "Frequent complaints"), ("cohort", "Cohort of codes")):
        made = proposals.propose_release(
            indexes, carl, name, title, [ids["rita"], ids["lea"]], ends, "Made-up data for the demo."
        )
        proposals.decide(indexes, anna, made, "confirmed", "Verified today.")
    proposals.propose_allotment(indexes, carl, project, index, "4", ends, False, "One more season.")
    from leeward.portal.releases import visible

    release = next(row["id"] for row in visible(database, carl) if row["name"] == "Cohort of codes")
    return Demo(secret, ids, project, index, release, codes)


def make_local_account(folder: Path, login: str, roles: list[str], **given: Any) -> str:
    """Make a local account with roles of the house, on the portal's own computer: the house's first people. Returns
    the address with which its owner sets a password."""
    from leeward.portal import accounts, people
    from leeward.portal.store import writing

    settings, database = _local_accounts(folder, given)
    people.check_roles(roles)
    person, _ = accounts.make_account(database, login, login)
    with writing(database) as connection:
        people.set_house_roles(connection, person, roles, "command line")
        secret = accounts.new_link(connection, person, "command line")
    return accounts.address_of(settings, secret)


def reset_password(folder: Path, login: str, **given: Any) -> str:
    """Make a new set-up link for a local account, and take its second factor away. Returns the link's address."""
    import sqlalchemy as sa

    from leeward.portal import accounts, people
    from leeward.portal.store import tables, writing

    settings, database = _local_accounts(folder, given)
    with writing(database) as connection:
        mine = tables.people.c
        asked = sa.select(mine.id).where(mine.issuer == people.LOCAL, mine.subject == login, mine.active)
        person = connection.scalar(asked)
        if person is None:
            raise BadInput(f"there is no open local account with the login name {login!r}.")
        secret = accounts.reset(connection, person, "command line")
    return accounts.address_of(settings, secret)


def _local_accounts(folder: Path, given: dict[str, Any]) -> tuple[Settings, Any]:
    """Settings and database of a portal that has local accounts; BadInput where they are switched off."""
    from leeward.portal.settings import read_settings
    from leeward.portal.store import open_store

    make_folder(folder)
    settings = read_settings(folder, **given)
    if not settings.local_accounts:
        raise BadInput(
            f"local accounts are switched off. Write `local_accounts = true` into {folder / 'portal.toml'}."
        )
    return settings, open_store(settings.folder, settings.database)


def serve(
    folder: Path, host: str, port: int, say: Callable[[str], None], workers: int = 1, **given: Any
) -> None:
    """Serve until interrupted. Requests are answered by `workers` processes, with threads in each."""
    import os
    from functools import partial
    from tempfile import TemporaryDirectory

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from leeward.portal.middleware import SHARED
    from leeward.portal.protocol import BoundedProtocol
    from leeward.portal.settings import read_settings
    from leeward.portal.store import open_store

    make_folder(folder)
    settings = read_settings(folder, **given)
    open_store(settings.folder, settings.database)  # migrated once, before the workers open it
    config = uvicorn.Config(
        partial(_make_worker, settings, logging.getLogger("leeward.portal").level), factory=True, host=host, port=port,
        workers=workers, log_config=None, access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=20, limit_concurrency=1000, http=BoundedProtocol,
    )  # fmt: skip
    say(f"Leeward's portal: {settings.public_url}/ (Ctrl-C ends it)")
    if workers == 1:
        uvicorn.Server(config).run()
        return
    with TemporaryDirectory(prefix="leeward-metrics-") as figures:
        os.environ[SHARED] = figures
        Multiprocess(config, sockets=[config.bind_socket()]).run()


def _make_worker(settings: Settings, level: int) -> Any:
    from leeward.portal.app import make_app

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("leeward.portal").setLevel(level)
    app = make_app(settings, _withdrawn)
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what a worker begins with is never garbage: looking through it stops every thread for 0.1 s
    return app


def _withdrawn(release: str) -> str | None:
    """Why the house's register counts a release no longer; None where it counts, or the house names no register."""
    from leeward.runs import releases
    from leeward.runs.house import house_register

    known = {} if house_register() is None else releases.show(release)
    return known["why"] if known.get("status") == "withdrawn" else None


def upgrade(folder: Path, say: Callable[[str], None], **given: Any) -> None:
    """Bring the database of an earlier version up to this one. BadInput where there is none."""
    from leeward.portal.settings import read_settings
    from leeward.portal.store import REVISION, find_store, open_store

    settings = read_settings(folder, **given)
    database = find_store(settings.folder, settings.database)
    open_store(settings.folder, settings.database, say)
    say(f"{database.place}: schema {REVISION}, ready")


def back_up(folder: Path, out: Path, **given: Any) -> tuple[list[str], list[str]]:
    """Copy the portal's database and the ledgers while it runs; what was copied, and the servers that were not."""
    from leeward.portal.backup import make_backup
    from leeward.portal.settings import read_settings

    return make_backup(read_settings(folder, **given), out)
