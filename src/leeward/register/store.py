"""The register on a database: SQLite (WAL, flushed before it returns) or PostgreSQL by URL, as a ledger.

What is known of a release is what its entries say, in order: entered (`intended`), published (`released`), taken back
(`withdrawn`), entered again from its folder or as lost (`restored`).
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
from leeward.queries.ledger.opening import Ledger, Words, lock_row, migrate, open_database, reading, writing
from leeward.register import head as heads
from leeward.register import sketch as sketches
from leeward.register import tables
from leeward.register.head import OlderRegister

REVISION: Final = "0001"
WORDS: Final = Words(
    "register of releases",
    "Nothing was released.",
    "",
    "`leeward releases repair FOLDER…` goes on with an older one.",
)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the register keeps of a release. None: not known, or not so.

    follows : the release of which it is the next version, made by `refresh`. Only this makes versions: the name of a
        line can be given to anything
    parameters : digest of the method's parameters
    sketch : digest of its patients' keyed hashes; without one they count as everybody
    epoch, rule : key and spelling of these
    master : of a cohort or a master, the digest of the master's manifest; payload : whether columns were added
    compared : for each earlier release the rule that allows both, and what was counted
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
    rule: str | None = None
    master: str | None = None
    payload: bool = False
    compared: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Known:
    """A release as the register knows it now."""

    facts: Facts
    status: str
    time: str
    share: str | None = None
    """Digest of the manifest, which has those of all files."""
    content: str | None = None
    """Digest of what the files say, whatever their order (`content`)."""
    source: str | None = None
    folder: str | None = None
    why: str | None = None
    """Reason of a withdrawal."""

    @property
    def counts(self) -> bool:
        """Whether it is taken to be in its recipient's hands."""
        return self.status != "withdrawn"

    def to_json(self) -> dict[str, Any]:
        own = {key: value for key, value in asdict(self).items() if key != "facts"}
        return {**asdict(self.facts), **own}


@dataclass(frozen=True)
class Register:
    """An open register, and the key of its sketches. `head`: the file that remembers the last entry."""

    database: Ledger
    key: bytes
    head: Path

    @property
    def epoch(self) -> str:
        return sketches.epoch_of(self.key)


def open_register(
    where: str, key: bytes, key_file: Path, *, may_create: bool = True, repairing: bool = False
) -> Register:
    """The register at a database's URL, or in a file of SQLite; made where there is none and `may_create`. BadInput
    where a later version made it; OlderRegister for an empty one (unless `repairing`) where one in use was seen."""
    url = where if "://" in where else f"sqlite:///{Path(where).expanduser().absolute()}"
    if (
        not (may_create or repairing)
        and url.startswith("sqlite:///")
        and not is_file(Path(url.removeprefix("sqlite:///")))
    ):
        raise BadInput(f"{url.removeprefix('sqlite:///')}: there is no register of releases here.")
    register = Register(open_database(url, WORDS), key, heads.head_file(key_file))
    with reading(register.database) as connection:
        found = _revision(connection)
    if found is not None and found > REVISION:
        raise BadInput(
            f"{register.database.place}: the register was made by a later version of Leeward (its schema is {found}, "
            f"this version knows {REVISION}). Nothing was released. Install the later version."
        )
    if found is None and not repairing:
        if not may_create:
            raise BadInput(f"{register.database.place}: there is no register of releases here.")
        _make(register)
    return register


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("register_version"):
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM register_version").scalar()
    return found


def _make(register: Register) -> None:
    """Make the tables and the first entry, whose nonce makes each register's log its own."""
    with writing(register.database, family="register") as connection:
        if _revision(connection) == REVISION:  # another process was first
            return
        heads.require_seen(register.database.place, heads.read_head(register.head), [])
        _make_tables(connection)
        entry = _append(connection, {"event": "opened", "nonce": secrets.token_hex(8), "rule": sketches.RULE})
        heads.remember(register.head, [entry], [])  # before it is committed: a head without a register stops


def _make_tables(connection: sa.Connection) -> None:
    migrate(connection, Path(__file__).parent / "migrations", REVISION)


def _append(connection: sa.Connection, body: Mapping[str, Any]) -> Entry:
    return journal.record(connection, tables.JOURNAL, body)


@dataclass
class State:
    """The register's entries at one moment, and what they say."""

    place: str
    entries: list[Entry]
    releases: dict[str, Known]

    def find(self, text: str) -> Known:
        """The release with an identifier, or with the only one that begins so. BadInput for none or several."""
        found = [known for name, known in self.releases.items() if name.startswith(text)]
        if text in self.releases:
            return self.releases[text]
        if len(found) != 1:
            said = "no release" if not found else f"{len(found)} releases"
            raise BadInput(f"{self.place}: {said} with an identifier that begins with {text!r}.")
        return found[0]

    def counting(self) -> list[Known]:
        return [known for known in self.releases.values() if known.counts]

    def versions(self, facts: Facts) -> int:
        """How many versions there are before a new release: those that it follows, else those of its line's name."""
        if facts.follows in self.releases:
            return self.releases[facts.follows].facts.version
        own = (known.facts.version for known in self.releases.values() if known.facts.line == facts.line)
        return max(own, default=0) if facts.line is not None else 0

    def before(self, facts: Facts) -> set[str]:
        """The releases of which this one is a later version, whether they count or not."""
        found: set[str] = set()
        while facts.follows in self.releases and facts.follows not in found:
            found.add(facts.follows)
            facts = self.releases[facts.follows].facts
        return found


def read_state(register: Register) -> State:
    """What the register says now. OlderRegister where it lacks what was seen before, BadInput for a broken chain."""
    seen = heads.read_head(register.head)  # first: the register may go on meanwhile, and then has more
    with reading(register.database, snapshot=True) as connection:
        return _state(register, connection, seen)


def _state(register: Register, connection: sa.Connection, seen: heads.Head | None) -> State:
    state = unchecked_state(register, connection)
    heads.require_seen(register.database.place, seen, state.entries)
    return state


def unchecked_state(register: Register, connection: sa.Connection) -> State:
    """What the register says, whatever was seen of it before."""
    count, head = journal.end_of(connection, tables.JOURNAL)
    entries = list(journal.entries(connection, tables.JOURNAL))
    _, fault = chain.follow(entries, count, head)
    if fault is not None:
        raise OlderRegister(
            f"{register.database.place}: the register is inconsistent: {fault}. Nothing was released. "
            "`leeward releases audit` lists what disagrees; put a copy back that is whole."
        )
    return State(register.database.place, entries, replay(entries))


def replay(entries: Iterable[Entry]) -> dict[str, Known]:
    """Each release by its identifier, oldest first, as its entries leave it."""
    found: dict[str, Known] = {}
    for entry in entries:
        body = json.loads(entry.body)
        event, name = body["event"], body.get("id")
        if event in ("intended", "restored"):
            facts = Facts(**{**body["facts"], "compared": tuple(body["facts"]["compared"])})
            found[name] = Known(facts=facts, status=body.get("status", event), time=entry.time)
        elif event == "released":
            more = {key: body[key] for key in ("share", "content", "source", "folder")}
            facts = replace(found[name].facts, compared=tuple(body["compared"]))
            found[name] = replace(found[name], facts=facts, status=event, **more)
        elif event == "withdrawn":
            found[name] = replace(found[name], status=event, why=body["reason"])
    return found


@dataclass
class Change:
    """A register locked by this transaction, and what it says."""

    connection: sa.Connection
    state: State
    written: list[Entry] = field(default_factory=list)

    def append(self, event: str, **facts: Any) -> Entry:
        entry = _append(self.connection, {"event": event, **facts})
        self.written.append(entry)
        return entry

    def keep(self, sketch: AnyArray) -> str:
        """Keep a sketch, once, and return its digest."""
        content = sketches.to_bytes(sketch)
        digest, own = sketches.digest_of(content), tables.sketches
        if self.connection.scalar(sa.select(own.c.digest).where(own.c.digest == digest)) is None:
            self.connection.execute(own.insert().values(digest=digest, hashes=content))
        return digest


@contextmanager
def changing(register: Register, *, repairing: bool = False) -> Iterator[Change]:
    """A transaction that locks the register against other writers: the second one sees what the first has entered.
    Its last entry is remembered when it is on the disk. `repairing`: the register may lack what was seen before."""
    seen = None if repairing else heads.read_head(register.head)
    with writing(register.database, family="register") as connection:
        if repairing and _revision(connection) is None:
            _make_tables(connection)
            _append(connection, {"event": "opened", "nonce": secrets.token_hex(8), "rule": sketches.RULE})
        lock_row(connection, sa.select(tables.end).with_for_update())
        state = unchecked_state(register, connection) if repairing else _state(register, connection, seen)
        change = Change(connection, state)
        yield change
    entries = [*state.entries, *change.written]
    heads.remember(register.head, entries, list(replay(entries)), anew=repairing)


def read_sketch(connection: sa.Connection, known: Facts) -> AnyArray:
    """The patients of a release. BadInput where the register lost them or part of them."""
    own = tables.sketches.c
    content = connection.scalar(sa.select(own.hashes).where(own.digest == known.sketch))
    if content is None or len(content) != 8 * (known.patients or 0):
        raise OlderRegister(
            f"the register has lost the patients of release {known.id}. Nothing was released. "
            "`leeward releases audit` lists what disagrees."
        )
    return sketches.from_bytes(bytes(content))
