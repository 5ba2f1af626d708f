"""Releases in the portal: published by decision, downloaded by whoever is named, until a date.

Only files of `share/` that were there when the release was confirmed are handed out, and only while their digests are
the same. A release is verified when it is proposed, when it is confirmed, and again each day before it is downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput, LeewardError
from leeward.portal import journal
from leeward.portal.people import with_people
from leeward.portal.permissions import Viewer
from leeward.portal.stopping import check_running, kind_stopped
from leeward.portal.store import Database, now, tables, writing
from leeward.portal.store.rows import Row, Unknown, fetch_all, known
from leeward.release import Release
from leeward.verify import Verification, verify

BLOCK: Final = 1 << 20
BESIDE: Final = ("release.json", "README.md", "leeward-read.R")
"""Files in `share/` that the manifest does not list."""


class Refused(LeewardError):
    """The release does not verify today, or was changed since it was confirmed; nothing is handed out."""


@dataclass(frozen=True)
class Found:
    """A release folder that verifies: the digest of its manifest, and path -> SHA-256 of what may be handed out."""

    release: Release
    digest: str
    files: dict[str, str]


def inspect(folder: Path) -> Found:
    """A release as it is now. Refused where it does not verify, or a file in `share/` is a link or is not listed."""
    verification = verify(folder)
    if not verification.passed:
        names = ", ".join(check.name for check in verification.checks if not check.passed)
        raise Refused(f"this release does not verify today ({names}); it is not published.")
    release = Release.open(folder, compare=False)
    listed = {entry["path"]: entry["sha256"] for entry in release.manifest["files"]}
    files: dict[str, str] = {}
    for path in (*listed, *(name for name in BESIDE if (release.share / name).exists())):
        copy, files[path] = copy_of(release.share, path)
        copy.close()
    if changed := [path for path, digest in listed.items() if files[path] != digest]:
        raise Refused(f"{len(changed)} files differ from the manifest; the release is not published.")
    return Found(release, files["release.json"], files)


def together_of(folder: Path) -> Row:
    """For those who may see custody: the `versions` of which a release is the last, and its `entry` in the register of
    releases, with the earlier ones that it was compared with; None where no register counts it."""
    release = Release.open(folder, compare=False)
    return {
        "method": release.method,
        "versions": release.manifest.get("versions", ()),
        "entry": release.custody_json("register.json"),
    }


def copy_of(share: Path, path: str) -> tuple[IO[bytes], str]:
    """A private copy of a file in `share/`, which its reader closes, and its SHA-256: what is checked is what is
    sent. Refused for a link, anywhere on the way, and for anything that is no plain file."""
    opened: list[int] = []
    try:
        opened.append(os.open(share, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        *above, name = path.split("/")
        for part in above:
            opened.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1])
    except OSError:
        raise Refused("a file of this release is missing, or is a link; nothing is handed out.") from None
    finally:
        for each in opened:
            os.close(each)
    with os.fdopen(file, "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise Refused("a file of this release is no plain file; nothing is handed out.")
        copy: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (its reader closes it)
        digest = hashlib.sha256()
        while block := source.read(BLOCK):
            digest.update(block)
            copy.write(block)
    copy.seek(0)
    return copy, digest.hexdigest()


def verify_again(database: Database, row: Row) -> Verification | None:
    """Verify a published release now and write the outcome down; None where its folder cannot be read."""
    try:
        found = verify(Path(row["folder"]))
        passed = found.passed
    except LeewardError:
        found, passed = None, False
    with writing(database) as connection:
        connection.execute(
            tables.releases.update()
            .where(tables.releases.c.id == row["id"])
            .values(verified=now(), passed=passed)
        )
        if not passed:
            journal.record(connection, "does not verify", release=row["id"])
    return found


def visible(database: Database, viewer: Viewer) -> list[Row]:
    """The releases that a person may download, newest first, with the end of the link; filtered in the database. Those
    that are stopped are seen by whoever may start them again."""
    releases, recipients = tables.releases, tables.recipients
    stopped = kind_stopped(release=releases.c.id)
    if viewer.reaches_all("download"):
        asked = sa.select(releases, sa.null().label("ends"), stopped.label("stopped"))
    else:
        asked = (
            sa.select(releases, recipients.c.ends, stopped.label("stopped"))
            .join(recipients, recipients.c.release == releases.c.id)
            .where(recipients.c.person == viewer.person, recipients.c.ends > now(), stopped.is_(None))
        )
    return fetch_all(database, asked.order_by(releases.c.published.desc()))


def check_not_stopped(connection: sa.Connection, digest: str) -> None:
    """BadInput for what was published before and is stopped: it is started again, not published anew."""
    releases, stops = tables.releases.c, tables.stops.c
    stopped = sa.select(stops.what).where(stops.kind == "release")
    asked = sa.select(releases.name).where(releases.digest == digest, releases.id.in_(stopped))
    if (name := connection.scalar(asked)) is not None:
        raise BadInput(f"this release is stopped, as {name!r}; propose to start it again.")


def release_of(database: Database, viewer: Viewer, release: str) -> Row:
    """A release that a person may download; Unknown otherwise, in the same words as for none."""
    return known(next((row for row in visible(database, viewer) if row["id"] == release), None))


def recipients_of(database: Database, release: str) -> list[Row]:
    """Who may download a release, until when."""
    recipients = tables.recipients.c
    asked = with_people(tables.recipients, recipients.ends).where(recipients.release == release)
    return fetch_all(database, asked.order_by(tables.people.c.name))


def downloads_of(database: Database, release: str) -> list[dict[str, Any]]:
    """Who downloaded what of a release: the last 200 times."""
    entry = tables.journal.c
    of_it = entry.body.contains('"event":"downloaded"') & entry.body.contains(f'"release":"{release}"')
    asked = sa.select(entry.time, entry.body).where(of_it).order_by(entry.number.desc()).limit(200)
    return [{"time": row["time"], **json.loads(row["body"])} for row in fetch_all(database, asked)][::-1]


def read_file(database: Database, viewer: Viewer, release: str, path: str) -> Iterator[bytes]:
    """A file of a published release, in blocks; the download is in the journal before the first. Unknown for what is
    not listed; Stopped where the release is; Refused where it does not verify today or the file was changed."""
    row = release_of(database, viewer, release)
    check_running(row["stopped"])
    files: dict[str, str] = row["files"]
    if path not in files:
        raise Unknown
    if not row["passed"] or str(row["verified"])[:10] != now()[:10]:
        found = verify_again(database, row)
        if found is None or not found.passed:
            raise Refused("this release does not verify today; nothing is handed out.")
    copy, digest = confirmed_copy(row, path)
    with writing(database) as connection:
        journal.record(
            connection, "downloaded", release=release, person=viewer.person, path=path, digest=digest
        )
    return _blocks(copy)


def confirmed_copy(row: Row, path: str) -> tuple[IO[bytes], str]:
    """A copy of a listed file as it was confirmed, and its digest; Refused where it was changed since."""
    copy, digest = copy_of(Release.open(row["folder"], compare=False).share, path)
    if digest != row["files"][path]:
        copy.close()
        raise Refused("this file was changed since the release was confirmed; nothing is handed out.")
    return copy, digest


def _blocks(copy: IO[bytes]) -> Iterator[bytes]:
    with copy:
        while block := copy.read(BLOCK):
            yield block


def report_of(row: Row) -> bytes:
    """The custodian's report on a release, for a sandboxed frame; Unknown where there is none."""
    path = Path(row["folder"]) / "custody" / "report.html"
    if path.is_symlink() or not path.is_file():
        raise Unknown
    return path.read_bytes()
