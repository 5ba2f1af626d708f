"""The register on a database: SQLite (WAL, flushed before it returns) or PostgreSQL by URL, as a ledger.

It holds no identifier of a patient: a sketch has keyed hashes, and the key is elsewhere. What is known of a release is
what its entries say, in order: `intended` (or `lost`: a repair found nothing of it), `released`, `withdrawn`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from leeward.arrays import AnyArray
from leeward.errors import BadInput
from leeward.paths import is_file
from leeward.queries.ledger import chain, journal
from leeward.queries.ledger.chain import Entry
from leeward.queries.ledger.opening import Ledger, Words, lock_row, open_database, reading, writing
from leeward.register import head as heads
from leeward.register import sketch as sketches
from leeward.register.head import OlderRegister

FORMAT: Final = 1
"""Of the tables and entries; the first entry states it."""

WORDS: Final = Words(
    "register of releases",
    "Nothing was released.",
    "",
    "`leeward releases repair FOLDER…` goes on with an older one.",
)

metadata = sa.MetaData()
log = sa.Table(
    "register_log", metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("time", "body", "hash")),
)  # fmt: skip
"""What happened to which release. Append-only, each hash covers the one before."""
end = sa.Table(
    "register_end", metadata,
    sa.Column("one", sa.Integer, primary_key=True),
    sa.Column("entries", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)  # fmt: skip
"""Whoever enters a release locks its one row first."""
kept = sa.Table(
    "register_sketches", metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("hashes", sa.LargeBinary, nullable=False),
)  # fmt: skip
"""The patients of a release (`sketch`), by the SHA-256 of the bytes: once for releases of the same patients."""
JOURNAL: Final = journal.Journal(log, end)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a release before it is made. None: not known, or not so.

    follows : the release of which it is the next version, made by `refresh`. Only this makes versions: the name of a
        line can be given to anything
    parameters : digest of the method's parameters
    sketch : digest of its patients' keyed hashes; without one they count as everybody
    epoch : the key of these, and how identifiers were written
    master : of a cohort or a master, the digest of the master's manifest; payload : whether columns were added
    """

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    line: str | None = None
    version: int = 1
    follows: str | None = None
    method: str = ""
    parameters: str = ""
    k: int | None = None
    m: int | None = None
    recipient: str | None = None
    purpose: str | None = None
    reason: str | None = None
    by: str = ""
    leeward: str = ""
    patients: int | None = None
    sketch: str | None = None
    epoch: str | None = None
    master: str | None = None
    payload: bool = False


@dataclass(frozen=True, kw_only=True)
class Known:
    """A release as the register knows it now.

    compared : for each earlier release the rule that allows both, and what was counted
    share : digest of the manifest, which has those of all files
    content : digest of what the files say, whatever their order (`release.canonical`)
    why, withdrawn_by : of a withdrawal
    """

    facts: Facts
    status: str
    time: str
    compared: tuple[Mapping[str, Any], ...] = ()
    share: str | None = None
    content: str | None = None
    source: str | None = None
    folder: str | None = None
    why: str | None = None
    withdrawn_by: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is taken to be in its recipient's hands."""
        return self.status != "withdrawn"

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return {**found.pop("facts"), **found}


@dataclass(frozen=True)
class Register:
    """An open register with the key of its sketches, and what the house decides.

    head : the file that remembers the last entry
    policy : outcomes that are stricter than the rules'
    pools : groups of recipients that may put releases together
    """

    database: Ledger
    key: bytes
    head: Path
    policy: Mapping[str, str] = field(default_factory=dict)
    pools: tuple[tuple[str, ...], ...] = ()

    @property
    def epoch(self) -> str:
        return sketches.epoch_of(self.key)


def open_register(
    where: str, key: bytes, key_file: Path, *, may_create: bool = True, repairing: bool = False
) -> Register:
    """The register at a database's URL, or in a file of SQLite; made where there is none and `may_create`. BadInput
    where a later version made it; OlderRegister for an empty one (unless `repairing`) where one in use was seen."""
    url = where if "://" in where else f"sqlite:///{Path(where).expanduser().absolute()}"
    file = url.removeprefix("sqlite:///")
    missing = BadInput(f"{file}: there is no register of releases here.")
    if not (may_create or repairing or "://" in file or is_file(Path(file))):
        raise missing
    register = Register(open_database(url, WORDS), key, heads.head_file(key_file))
    with reading(register.database) as connection:
        made = _is_made(connection)
        first = next(_entries(connection), None) if made else None
    if first is not None and json.loads(first.body)["format"] > FORMAT:
        raise BadInput(
            f"{register.database.place}: the register was made by a later version of Leeward. Nothing was released. "
            "Install the later version."
        )
    if not made and not repairing:
        if not may_create:
            raise missing
        with writing(register.database, family="register") as connection:
            if not _is_made(connection):  # another process may have been first
                heads.require_seen(register.database.place, heads.read_head(register.head), [])
                entry = _make(connection)
                # before the commit: a head without a register stops
                heads.remember(register.head, [entry], [])
    return register


def _is_made(connection: sa.Connection) -> bool:
    return sa.inspect(connection).has_table(log.name)


def _make(connection: sa.Connection) -> Entry:
    """Make the tables and the first entry, whose nonce makes each register's log its own."""
    metadata.create_all(connection, checkfirst=False)
    journal.append_only(connection, log)
    body = {"event": "opened", "format": FORMAT, "nonce": secrets.token_hex(8), "rule": sketches.RULE}
    return journal.record(connection, JOURNAL, body)


def _entries(connection: sa.Connection) -> Iterator[Entry]:
    return journal.entries(connection, JOURNAL)


@dataclass
class State:
    """The register's entries at one moment, and what they say."""

    place: str
    entries: list[Entry]
    releases: dict[str, Known]

    def find(self, text: str) -> Known:
        """The release with an identifier, or with the only one that begins so. BadInput for none or several."""
        found = [known for name, known in self.releases.items() if name.startswith(text)]
        if len(found) != 1:
            said = f"{len(found)} releases" if found else "no release"
            raise BadInput(f"{self.place}: {said} with an identifier that begins with {text!r}.")
        return found[0]

    def next_version(self, facts: Facts) -> int:
        """The number of a new release: after the one that it follows, else after those of its line's name."""
        if facts.follows in self.releases:
            return self.releases[facts.follows].facts.version + 1
        own = (known.facts.version for known in self.releases.values() if known.facts.line == facts.line)
        return 1 + (max(own, default=0) if facts.line is not None else 0)

    def before(self, facts: Facts) -> set[str]:
        """The releases of which this one is a later version, whether they count or not."""
        found: set[str] = set()
        while facts.follows in self.releases and facts.follows not in found:
            found.add(facts.follows)
            facts = self.releases[facts.follows].facts
        return found


def read_state(register: Register) -> State:
    """What the register says now. OlderRegister where it lacks what was seen before, or its chain is broken."""
    seen = heads.read_head(register.head)  # first: the register may go on meanwhile, and then has more
    with reading(register.database, snapshot=True) as connection:
        state = _state_of(register, connection)
    heads.require_seen(state.place, seen, state.entries)
    return state


def _state_of(register: Register, connection: sa.Connection) -> State:
    """What the register says, whatever was seen of it before."""
    place, entries = register.database.place, list(_entries(connection))
    _, fault = chain.follow(entries, *journal.end_of(connection, JOURNAL))
    if fault is not None:
        raise OlderRegister(
            f"{place}: the register is inconsistent: {fault}. Nothing was released. Put a copy back that is whole."
        )
    return State(place, entries, replay(entries))


def replay(entries: Iterable[Entry]) -> dict[str, Known]:
    """Each release by its identifier, oldest first, as its entries leave it."""
    found: dict[str, Known] = {}
    for entry in entries:
        body = json.loads(entry.body)
        event, name = body.pop("event"), body.pop("id", None)
        if event in ("intended", "lost"):
            facts = Facts(**body.pop("facts"))
            found[name] = Known(facts=facts, status=event, time=entry.time, **body)
        elif name is not None:
            found[name] = replace(found[name], status=event, **body)
    return found


@dataclass
class Change:
    """A register locked by this transaction, and what it says."""

    connection: sa.Connection
    state: State

    def append(self, event: str, **body: Any) -> Entry:
        entry = journal.record(self.connection, JOURNAL, {"event": event, **body})
        self.state.entries.append(entry)
        return entry

    def keep(self, content: bytes) -> None:
        """Keep a sketch, once."""
        digest = sketches.digest_of(content)
        if self.connection.scalar(sa.select(kept.c.digest).where(kept.c.digest == digest)) is None:
            self.connection.execute(kept.insert().values(digest=digest, hashes=content))


@contextmanager
def changing(register: Register, *, repairing: bool = False) -> Iterator[Change]:
    """A transaction that locks the register against other writers: the second one sees what the first has entered.
    Its last entry is remembered when it is on the disk. `repairing`: the register may lack what was seen before."""
    seen = None if repairing else heads.read_head(register.head)
    with writing(register.database, family="register") as connection:
        if repairing and not _is_made(connection):
            _make(connection)
        lock_row(connection, sa.select(end).with_for_update())
        change = Change(connection, _state_of(register, connection))
        if not repairing:
            heads.require_seen(change.state.place, seen, change.state.entries)
        yield change
    entries = change.state.entries
    heads.remember(register.head, entries, replay(entries), anew=repairing)


def read_sketch(connection: sa.Connection, known: Facts) -> AnyArray:
    """The patients of a release. OlderRegister where the register lost them or part of them."""
    content = connection.scalar(sa.select(kept.c.hashes).where(kept.c.digest == known.sketch))
    if content is None or len(content) != 8 * (known.patients or 0):
        raise OlderRegister(
            f"the register has lost the patients of release {known.id}. Nothing was released. "
            "`leeward releases audit` lists what disagrees."
        )
    return sketches.from_bytes(bytes(content))
