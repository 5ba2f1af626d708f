"""A portal of the version before is opened by this one, once somebody says so; a portal is put back from its copies.

`earlier/VERSION.tar.xz` is a portal's folder, made by `make_bench` of that version for carl, anna, ida, rita, lea and
rob, with rita's answers to `fever` (23) and `cough` (20) at epsilon 0.5 each, and dora, who has a password.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tarfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.portal.made import Bench, make_bench, sign_in
from tests.postgres_fixture import binary, postgres_server
from tests.waiting import LONG

import leeward as lw
from leeward.cli.main import status_of
from leeward.portal import passwords
from leeward.portal.app import make_app
from leeward.portal.backup import make_backup
from leeward.portal.settings import Settings
from leeward.portal.store import REVISION, tables
from leeward.portal.store.rows import fetch_all
from leeward.queries.ledger import families, opening

assert postgres_server  # pytest finds the fixture here
EARLIER = Path(__file__).parent / "earlier" / "0.2.0.tar.xz"


@pytest.fixture(name="old")
def portal_of_the_version_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `portal` of the working folder; its places are relative to that."""
    with tarfile.open(EARLIER) as kept:
        kept.extractall(tmp_path, filter="data")
    for folder in ("portal", "portal/indexes/clinic"):
        (tmp_path / folder).chmod(0o700)
    monkeypatch.chdir(tmp_path)
    return Path("portal")


def opened(folder: Path) -> Bench:
    """A portal that is there, as those of `make_bench`, with its people signed in."""
    gate = make_app(Settings(folder=folder, slot=0, local_accounts=True))
    bench = Bench(gate, gate.app.state.portal, folder)  # type: ignore[attr-defined]
    for row in fetch_all(bench.portal.database, sa.select(tables.people)):
        bench.ids[row["subject"]] = row["id"]
        sign_in(bench, row["subject"])
    for row in fetch_all(bench.portal.database, sa.select(tables.projects)):
        bench.project[row["name"].removeprefix("Project ")] = row["id"]
    bench.index = bench.portal.indexes.rows()[0]["id"]
    return bench


def revision(file: Path) -> str:
    with sqlite3.connect(file) as connection:
        return str(connection.execute("SELECT version_num FROM portal_version").fetchone()[0])


def test_a_portal_of_the_version_before_waits_to_be_upgraded(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["serve", "--folder", "portal"]) == 2
    said = capsys.readouterr().err
    assert "earlier version" in said and "back up" in said and "--upgrade" in said
    assert revision(old / "portal.db") == "0001"
    assert (
        status_of(["serve", "--folder", "portal", "--backup", "copy"]) == 0
    )  # by the new version, before the upgrade
    assert revision(old / "portal.db") == revision(Path("copy/portal.db")) == "0001"
    assert len([*Path("copy/ledgers").glob("*/ledger.db")]) == 1
    capsys.readouterr()
    assert status_of(["serve", "--folder", "portal", "--upgrade"]) == 0
    url = f"sqlite:///{old}/portal.db"
    assert (
        capsys.readouterr().out == f"{url}: from schema 0001 to {REVISION}\n{url}: schema {REVISION}, ready\n"
    )
    assert status_of(["serve", "--folder", "portal", "--upgrade"]) == 0
    assert capsys.readouterr().out == f"{url}: schema {REVISION}, ready\n"


def test_what_the_version_before_kept_is_there(old: Path) -> None:
    assert status_of(["serve", "--folder", "portal", "--upgrade"]) == 0
    bench = opened(old)
    assert {"carl", "anna", "ida", "rita", "lea", "rob", "dora"} <= bench.ids.keys()
    assert bench.client("carl").get("/api/v1/me").json()["roles"] == ["custodian"]
    row = passwords.sign_in(bench.portal.database, "dora", "a long password of Dora", "127.0.0.1")
    assert row is not None and row["id"] == bench.ids["dora"]
    page = bench.client("rita").get(f"/projects/{bench.project['one']}/answers").text
    assert "2 answers, ε 1 in all" in page
    for answer in fetch_all(bench.portal.database, sa.select(tables.answers)):
        page = bench.client("rita").get(f"/answers/{answer['id']}")
        assert page.status_code == 200, page.text
    token = bench.token("rita")
    again = bench.ask(token, "again", bench.question("fever", "0.5"))
    assert (again.status_code, again.json()["answer"], again.json()["cost"]) == (200, 23, 0)
    new = bench.ask(token, "new", bench.question("rash", "0.5"))
    assert (new.status_code, new.json()["remaining"]) == (201, 2.5)
    assert lw.audit(old / "indexes" / "clinic").passed
    proposals = bench.client("anna").get("/api/v1/proposals").json()
    assert proposals and all(each["state"] == "confirmed" for each in proposals)


def test_where_there_is_no_portal_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], postgres: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir(mode=0o700)
    for folder in ("missing", "empty"):
        for wanted in (["--backup", "copy"], ["--upgrade"]):
            assert status_of(["serve", "--folder", folder, *wanted]) == 2
            assert f"{folder}: there is no portal in this folder" in capsys.readouterr().err
    assert status_of(["serve", "--folder", "empty", "--database", postgres, "--backup", "copy"]) == 2
    assert "there is no portal" in capsys.readouterr().err
    assert not Path("missing").exists() and not [*Path("empty").iterdir()] and not Path("copy").exists()


def test_accounts_on_postgresql_and_a_ledger_on_sqlite_are_put_back(tmp_path: Path, postgres: str) -> None:
    """The copy is pg_dump's, and then that of `serve --backup`; both are put back after the disk was lost."""
    bench = make_bench(tmp_path / "portal", database=postgres)
    token = bench.token("rita")
    first = bench.ask(token, "a", bench.question("fever", "0.5")).json()
    socket = sa.make_url(postgres).query["unix_sock"]
    assert isinstance(socket, str)
    at = ["--host", str(Path(socket).parent), "--username", "custodian"]
    dump = tmp_path / "portal.dump"

    def program(name: str, *arguments: str) -> None:
        subprocess.run([binary(name), *at, *arguments], check=True, timeout=LONG)

    program("pg_dump", "--format=custom", f"--file={dump}", "postgres")
    copied, servers = make_backup(bench.portal.settings, tmp_path / "backup")
    assert copied == [f"ledgers/{bench.index}/ledger.db"] and "before a backup" in servers[0]
    index = bench.folder / "indexes" / "clinic"
    families.close(bench.portal.indexes.session(bench.index).ledger)
    opening.close_engine(bench.portal.database)
    for file in index.glob("ledger.db*"):
        file.unlink()
    program("dropdb", "--force", "--maintenance-db=template1", "postgres")
    program("createdb", "--maintenance-db=template1", "postgres")
    program("pg_restore", "--single-transaction", "--dbname=postgres", str(dump))
    shutil.copy2(tmp_path / "backup" / copied[0], index / "ledger.db")
    gate = make_app(bench.portal.settings)
    bench.gate, bench.portal = gate, gate.app.state.portal  # type: ignore[attr-defined]
    again = bench.ask(token, "b", bench.question("fever", "0.5"))
    assert (again.status_code, again.json()["answer"]) == (200, first["answer"])
    assert bench.ask(token, "c", bench.question("cough", "0.5")).json()["remaining"] == 3
    assert lw.audit(index).passed
    assert "Last backup</dt><dd>20" in bench.client("ida").get("/admin").text
