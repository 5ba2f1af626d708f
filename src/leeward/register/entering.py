"""Entering a release, publishing it, taking it back; repairing and auditing a register."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from leeward.arrays import AnyArray, count_noun
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger.auditing import Check
from leeward.queries.ledger.chain import Entry
from leeward.queries.ledger.opening import reading
from leeward.register import head as heads
from leeward.register import sketch as sketches
from leeward.register.head import OlderRegister
from leeward.register.policy import Decision, Pair, decide, may_pool
from leeward.register.store import Change, Facts, Register, State, changing, read_sketch, read_state

if TYPE_CHECKING:
    from leeward.composition.bound import Bound

FILE: Final = "register.json"
SKETCH: Final = "register.sketch"
"""The entry of a release in its own custody, from which it can be entered again."""


def _pairs(
    connection: sa.Connection, state: State, facts: Facts, sketch: AnyArray | None, pools: Sequence[Any]
) -> Iterator[Pair]:
    """The release beside each earlier one that counts, but itself, and that its recipient may put together with it."""
    before = state.before(facts)
    for known in state.releases.values():
        old = known.facts
        if old.id == facts.id or not known.counts or not may_pool(facts.recipient, old.recipient, pools):
            continue
        pair = Pair(new=facts, old=known, versions=old.id in before or facts.id in state.before(old))
        if sketch is None or old.sketch is None or facts.epoch != old.epoch:
            yield pair
            continue
        there = sketch if old.sketch == facts.sketch else read_sketch(connection, old)
        common = int(sketches.count_common(sketch, there))
        yield replace(pair, common=common, only_new=len(sketch) - common, only_old=len(there) - common)


def with_sketch(facts: Facts, register: Register, sketch: AnyArray | None) -> Facts:
    """The facts with what is known of the patients."""
    if sketch is None:
        return facts
    digest = sketches.digest_of(sketches.to_bytes(sketch))
    return replace(facts, patients=len(sketch), sketch=digest, epoch=register.epoch)


def compare(register: Register, facts: Facts, sketch: AnyArray | None = None) -> list[Decision]:
    """Every earlier release with its rule; nothing is entered. `sketch`: None for that of a release of the register."""
    state = read_state(register)
    with reading(register.database) as connection:
        if sketch is None and facts.sketch is not None:
            sketch = read_sketch(connection, facts)
        found = list(_pairs(connection, state, facts, sketch, register.pools))
    return [decide(pair, register.policy) for pair in found]


@dataclass(frozen=True)
class Entered:
    """A release that is entered and not yet published."""

    register: Register
    facts: Facts
    sketch: AnyArray | None
    decisions: tuple[Decision, ...]
    entry: Entry

    @property
    def compared(self) -> list[dict[str, Any]]:
        return [each.to_json() for each in self.decisions]

    def to_json(self) -> dict[str, Any]:
        """What its custody keeps."""
        own = {"number": self.entry.number, "hash": self.entry.hash}
        return {"facts": asdict(self.facts), **own, "compared": self.compared}


def enter(register: Register, facts: Facts, sketch: AnyArray | None) -> Entered:
    """Enter a release that will be made, with the overlaps counted in the same transaction. GuaranteeUnreachable where
    a rule refuses it, BadInput where one asks for a reason and none is given; nothing is entered then."""
    with changing(register) as change:
        facts = replace(with_sketch(facts, register, sketch), version=change.state.next_version(facts))
        pairs = _pairs(change.connection, change.state, facts, sketch, register.pools)
        decisions = tuple(decide(pair, register.policy) for pair in pairs)
        _require_allowed(decisions, facts.reason)
        if sketch is not None:
            change.keep(sketches.to_bytes(sketch))
        compared = [each.to_json() for each in decisions]
        entry = change.append("intended", id=facts.id, facts=asdict(facts), compared=compared)
    return Entered(register, facts, sketch, decisions, entry)


def settle(entered: Entered, folder: Path, content: str, measure: Callable[[Pair], Bound | None]) -> Entered:
    """The decisions again, now that the release is written and not yet published: whether its content is that of an
    earlier one is known, and what both give away can be measured."""
    settled, policy = [], entered.register.policy
    for each in entered.decisions:
        pair = replace(each.pair, folder=folder, same_content=each.pair.old.content == content)
        found = decide(pair, policy)
        if found.outcome == "reason":
            found = decide(replace(pair, bound=measure(pair)), policy)
        settled.append(found)
    _require_allowed(settled, entered.facts.reason)
    return replace(entered, decisions=tuple(settled))


def _require_allowed(decisions: Sequence[Decision], reason: str | None) -> None:
    """GuaranteeUnreachable or BadInput that names the first earlier release that stands against the new one."""
    for each in decisions:
        if each.outcome == "refuse":
            raise GuaranteeUnreachable(f"{each} Nothing was released.")
    asked = [each for each in decisions if each.outcome == "reason"]
    if asked and not reason:
        more = f" {len(asked) - 1} further releases ask for one too." if len(asked) > 1 else ""
        raise BadInput(
            f"{asked[0]}{more} Nothing was released. Give a reason why both may be out (--reason TEXT); the register "
            "keeps it."
        )


def publish(entered: Entered, folder: Path, **digests: Any) -> None:
    """Say that a release has its place. `digests`: share, content and source of the whole release."""
    with changing(entered.register) as change:
        more = {"folder": str(folder), "compared": entered.compared, **digests}
        change.append("released", id=entered.facts.id, **more)


def withdraw(register: Register, text: str, reason: str, by: str) -> None:
    """Say that a release is in nobody's hands, so that it counts no longer. BadInput where it is so already, or
    without a reason."""
    if not reason.strip():
        raise BadInput("a withdrawal needs a reason (--reason TEXT): why nobody has this release.")
    with changing(register) as change:
        known = change.state.find(text)
        if not known.counts:
            raise BadInput(f"release {known.facts.id} is withdrawn already ({known.why}).")
        change.append("withdrawn", id=known.facts.id, why=reason.strip(), withdrawn_by=by)


def repair(
    register: Register, folders: Sequence[Path], digests_of: Callable[[Path], Mapping[str, Any]]
) -> dict[str, Any]:
    """Enter what the folders of releases hold and the register lacks, and say of them that they are published. What was
    seen before and is in no folder is entered as a release with everybody in it, so that nothing is forgotten. Returns
    the releases `restored`, `published` and `lost`, and how many the register has."""
    seen: heads.Head | None = None
    with suppress(OlderRegister):
        seen = heads.read_head(register.head)
    there = {entry["facts"]["id"]: (entry, folder) for folder in folders for entry in [entry_of(folder)]}
    with changing(register, repairing=True) as change:
        known = change.state.releases
        restored = [name for name in there if name not in known]
        late = [name for name in there if name in known and known[name].status == "intended"]
        lost = [name for name in (seen.releases if seen else ()) if name not in known and name not in there]
        for name in (*restored, *late):
            entry, folder = there[name]
            more = {"id": name, "compared": entry["compared"]}
            if name in restored:
                change.append("intended", facts=_keep_again(change, entry["facts"], folder), **more)
            change.append("released", folder=str(folder.absolute()), **more, **digests_of(folder))
        for name in lost:
            change.append("lost", id=name, facts=asdict(Facts(id=name)))
        change.append("repaired", seen=None if seen is None else seen.head, restored=restored)
    return {
        "restored": restored,
        "published": late,
        "lost": lost,
        "releases": len(known) + len(restored) + len(lost),
    }


def entry_of(folder: Path) -> dict[str, Any]:
    """What the custody of a release says of its entry. BadInput where it says nothing."""
    try:
        found: dict[str, Any] = json.loads((folder / "custody" / FILE).read_bytes())
        Facts(**found["facts"]), found["compared"]
    except (OSError, ValueError, TypeError, KeyError):
        raise BadInput(f"{folder}: there is no entry of a register here (custody/{FILE}).") from None
    return found


def _keep_again(change: Change, facts: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Keep the patients that custody has. Returns the facts; with everybody where custody lacks the patients."""
    file = folder / "custody" / SKETCH
    content = file.read_bytes() if file.is_file() else b""
    if facts["sketch"] != sketches.digest_of(content):
        return {**facts, "sketch": None, "patients": None}
    change.keep(content)
    return dict(facts)


def audit(register: Register, expected: str | None = None) -> tuple[list[Check], str]:
    """Whether the register agrees with itself and with what was seen before; and its last hash, to be kept elsewhere.
    `expected`: a hash that an earlier audit gave."""
    try:
        state = read_state(register)
    except OlderRegister as error:
        return [Check("entries", False, str(error))], ""
    known, hashes = state.releases.values(), [entry.hash for entry in state.entries]
    own = {each.facts.sketch: each.facts for each in known if each.facts.sketch is not None}
    with reading(register.database, snapshot=True) as connection:
        wrong = sum(_is_lost(connection, facts) for facts in own.values())
    everybody = sum(each.facts.sketch is None or each.facts.epoch != register.epoch for each in known)
    intended = sum(each.status == "intended" for each in known)
    counted = (
        f"{len(known)} releases, {intended} not known to be published, {everybody} that count as everybody"
    )
    checks = [
        Check(
            "entries",
            True,
            f"{len(hashes)}, each hash covers the one before, and none that was seen is missing",
        ),
        Check("patients", not wrong, f"{count_noun('set', len(own))} of patients, {wrong} lost or changed"),
        Check("releases", True, counted),
    ]
    if expected is not None:
        found = expected in hashes
        checks.append(
            Check("hash of an earlier audit", found, "it is there" if found else "no entry has this hash")
        )
    return checks, hashes[-1] if hashes else ""


def _is_lost(connection: sa.Connection, facts: Facts) -> bool:
    """Whether the patients of a release are gone or changed."""
    try:
        return sketches.digest_of(sketches.to_bytes(read_sketch(connection, facts))) != facts.sketch
    except OlderRegister:
        return True
