"""What waits for somebody, on their first page, and by mail or webhook where the house set one up.

A notice says what kind of thing waits, and where. It holds no question, no count, no reason and no patient's data.
"""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final
from urllib.parse import urlsplit

import sqlalchemy as sa

from leeward.portal.people import with_people
from leeward.portal.permissions import HOUSE_ROLES, Viewer
from leeward.portal.proposals import ACCOUNTS, KINDS
from leeward.portal.settings import LOOPBACK, Notify, Settings
from leeward.portal.store import Database, from_now, now, reading, tables
from leeward.portal.store.rows import fetch_all

LOG: Final = logging.getLogger("leeward.portal")
SECONDS: Final = 10
SOON_DAYS: Final = 14


@dataclass(frozen=True)
class Waiting:
    """Something that waits for somebody: a sentence, and the path of its page."""

    text: str
    path: str


def waiting_for(database: Database, viewer: Viewer) -> list[Waiting]:
    """What waits for this person: decisions, requests, messages, releases that do not verify, allotments that end."""
    kinds = (_decisions, _requests, _messages, _broken, _ending)
    with reading(database) as connection:
        return [each for kind in kinds for each in kind(connection, viewer)]


def _decisions(connection: sa.Connection, viewer: Viewer) -> Iterator[Waiting]:
    proposals = tables.proposals.c
    asked = sa.select(proposals.kind).where(proposals.state == "open", proposals.proposer != viewer.person)
    if not viewer.may("confirm"):
        asked = asked.where(proposals.kind.in_(ACCOUNTS if viewer.may("administer") else ()))
    for kind in connection.scalars(asked.order_by(proposals.created)):
        yield Waiting(f"A decision: {KINDS[kind].title}.", "/decisions")


def _requests(connection: sa.Connection, viewer: Viewer) -> Iterator[Waiting]:
    requests = tables.requests.c
    asked = with_people(tables.requests).where(requests.closed.is_(None)).order_by(requests.time)
    if viewer.may("make project"):
        for row in connection.execute(asked):
            yield Waiting(f"{row.name} asks for a project.", "/data")


def _messages(connection: sa.Connection, viewer: Viewer) -> Iterator[Waiting]:
    """Projects whose last message is from the other side: members for the house, the house for members."""
    messages, projects = tables.messages.c, tables.projects.c
    place = sa.func.row_number().over(partition_by=messages.project, order_by=messages.time.desc())
    latest = sa.select(messages.project, messages.person, place.label("place")).subquery()
    asked = (
        sa.select(projects.id, projects.name, latest.c.person)
        .join(latest, latest.c.project == projects.id)
        .where(latest.c.place == 1)
        .order_by(projects.name)
    )
    members = {
        (row.project, row.person)
        for row in connection.execute(sa.select(tables.members.c.project, tables.members.c.person))
    }
    for row in connection.execute(asked):
        from_member = (row.id, row.person) in members
        mine = row.id in viewer.memberships
        if (mine and not from_member) or (not mine and from_member and "custodian" in viewer.house):
            yield Waiting(f"A message in {row.name}.", f"/projects/{row.id}")


def _broken(connection: sa.Connection, viewer: Viewer) -> Iterator[Waiting]:
    releases = tables.releases.c
    asked = sa.select(releases.id, releases.name).where(releases.passed == sa.false())
    if viewer.may("see custody"):
        for row in connection.execute(asked):
            yield Waiting(f"The release {row.name} does not verify.", f"/releases/{row.id}")


def _ending(connection: sa.Connection, viewer: Viewer) -> Iterator[Waiting]:
    allotments, projects = tables.allotments.c, tables.projects.c
    led = [project for project, role in viewer.memberships.items() if role == "lead"]
    asked = (
        sa.select(projects.id, projects.name, allotments.ends)
        .join(tables.allotments, allotments.project == projects.id)
        .where(projects.id.in_(led), allotments.ends > now(), allotments.ends < from_now(days=SOON_DAYS))
        .order_by(allotments.ends)
    )
    for row in connection.execute(asked):
        yield Waiting(f"An allotment of {row.name} ends on {row.ends[:10]}.", f"/projects/{row.id}")


def deciders(database: Database, kind: str) -> list[str]:
    """Who may decide a proposal of a kind."""
    return holders(database, ("approver", "admin") if kind in ACCOUNTS else ("approver",))


def holders(database: Database, roles: Sequence[str]) -> list[str]:
    """Everybody with one of these roles of the house."""
    assert set(roles) <= set(HOUSE_ROLES)
    held = tables.house_roles.c
    rows = fetch_all(database, sa.select(held.person).distinct().where(held.role.in_(roles)))
    return [row["person"] for row in rows]


def tell(
    database: Database, settings: Settings, people: Iterable[str], what: str, path: str, but: str = ""
) -> None:
    """Tell people of something that waits for them, except `but`, who did it. A notice that cannot be sent is logged
    and changes nothing else: what waits is on their first page as well."""
    notify = settings.notify
    if notify is None:
        return
    address = f"{settings.public_url.rstrip('/')}{path}"
    table = tables.people.c
    asked = sa.select(table.email).where(
        table.id.in_(set(people) - {but}), table.active, table.email.is_not(None)
    )
    with reading(database) as connection:
        to = sorted(set(connection.scalars(asked)))
    if notify.webhook is not None:
        with failing_alone():
            _post(notify, {"text": f"{what} {address}"})
    if notify.mail is not None and to:
        with failing_alone():
            send_mail(notify, to, what, f"{what}\n\n{address}\n")


@contextmanager
def failing_alone() -> Iterator[None]:
    """What is sent in it is logged where it fails, and keeps nothing else from being sent."""
    try:
        yield
    except (OSError, ValueError, smtplib.SMTPException) as error:
        LOG.warning(json.dumps({"event": "notice not sent", "kind": type(error).__name__}))


def _post(notify: Notify, body: dict[str, str]) -> None:
    import httpx

    try:
        httpx.post(str(notify.webhook), json=body, timeout=SECONDS).raise_for_status()
    except httpx.HTTPError as error:
        raise OSError(type(error).__name__) from None


def send_mail(notify: Notify, to: Sequence[str], subject: str, text: str) -> None:
    """A mail to each address of its own, over TLS except to this computer. OSError or SMTPException where it fails."""
    parts = urlsplit(str(notify.mail))
    host, tls = parts.hostname or "", ssl.create_default_context()
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=SECONDS, context=tls)
    else:
        server = smtplib.SMTP(host, parts.port or 587, timeout=SECONDS)
    with server:
        if parts.scheme == "smtp" and host not in LOOPBACK:
            server.starttls(context=tls)
        if parts.username:
            server.login(parts.username, parts.password or "")
        for address in to:
            with failing_alone():
                message = EmailMessage()
                message["Subject"], message["From"], message["To"] = subject, notify.sender, address
                message.set_content(text)
                server.send_message(message)
