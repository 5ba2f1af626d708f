"""A PostgreSQL server of the tests' own, in a folder that goes away with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import LONG


def binary(name: str) -> str:
    """A program of PostgreSQL, on the path or where Debian puts it."""
    found = [*sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    program = str(found[0]) if found else shutil.which(name)
    if program is None:
        pytest.fail(
            "PostgreSQL is missing (Debian: apt-get install postgresql); what talks to it cannot be tested"
        )
    return program


@pytest.fixture(scope="module", name="postgres")
def postgres_server() -> Iterator[str]:
    """The URL of a fresh server."""
    with running_postgres(connections=100) as url:
        yield url


@contextmanager
def running_postgres(connections: int, port: int | None = None, tls: Path | None = None) -> Iterator[str]:
    """The URL of a fresh server that listens on a socket, and on a `port` of this computer where one is given; run by
    another user where we are root. It flushes nothing to the disk, whatever it is asked. `tls`: the folder with its
    certificate, its key, and the authority of its clients."""
    # A socket's path must be short, so not below pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="leeward-"))
    other = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
    if other:
        shutil.chown(folder, "nobody")

    def postgres_runs(program: str, *arguments: str) -> None:
        subprocess.run(
            [binary(program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            timeout=LONG,
            **other,
        )

    data = str(folder / "data")
    try:
        postgres_runs(
            "initdb", "-D", data, "-U", "custodian", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"
        )
        options = f"-c listen_addresses='{'127.0.0.1' if port else ''}' -c unix_socket_directories='{folder}'"
        options += f" -c port={port or 5432}"
        if tls is not None:
            for name in ("server.crt", "server.key", "ca.crt"):
                shutil.copy(tls / name, folder / "data" / name)
                (folder / "data" / name).chmod(0o600)
                if other:
                    shutil.chown(folder / "data" / name, "nobody")
            options += " -c ssl=on -c ssl_ca_file=ca.crt"
        options += f" -c fsync=off -c max_connections={connections}"
        postgres_runs("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql+pg8000://custodian@/postgres?unix_sock={folder}/.s.PGSQL.{port or 5432}"
        finally:
            postgres_runs("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
