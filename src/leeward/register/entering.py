"""Entering a release, publishing it, taking it back; repairing and auditing a register."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from leeward.arrays import AnyArray
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger import chain, journal
from leeward.queries.ledger.auditing import Check
from leeward.queries.ledger.opening import reading
from leeward.register import head as heads
from leeward.register import sketch as sketches
from leeward.register import tables
from leeward.register.policy import Decision, Pair, decide, may_pool
from leeward.register.store import (
    Change,
    Facts,
    Known,
    Register,
    State,
    changing,
    read_sketch,
    read_state,
    replay,
)

if TYPE_CHECKING:
    from leeward.composition.bound import Bound

FILE: Final = "register.json"
SKETCH: Final = "register.sketch"
"""The entry of a release in its own custody, from which it can be entered again."""


@dataclass(frozen=True)
class House:
    """What a house decides: outcomes that are stricter than the rules', and groups of recipients that may pool."""

    policy: Mapping[str, str]
    pools: tuple[tuple[str, ...], ...] = ()


def pairs_of(
    connection: sa.Connection, state: State, facts: Facts, sketch: AnyArray | None, pools: Sequence[Any]
) -> Iterator[Pair]:
    """The release beside each earlier one that counts, but itself, and that its recipient may put together with it."""
    before = state.before(facts)
    for known in state.counting():
        old = known.facts
        if old.id == facts.id or not may_pool(facts.recipient, old.recipient, pools):
            continue
        both = Pair(new=facts, old=known, versions=old.id in before or facts.id in state.before(old))
        comparable = (facts.epoch, facts.rule) == (old.epoch, old.rule)
        if sketch is None or old.sketch is None or not comparable:
            yield both
            continue
        if old.sketch == facts.sketch:
            common, size = len(sketch), len(sketch)
        else:
            there = read_sketch(connection, old)
            common, size = int(sketches.count_common(sketch, there)), len(there)
        yield replace(both, common=common, only_new=len(sketch) - common, only_old=size - common)


def with_sketch(facts: Facts, register: Register, sketch: AnyArray | None) -> Facts:
    """The facts with what is known of the patients."""
    if sketch is None:
        return facts
    digest = sketches.digest_of(sketches.to_bytes(sketch))
    return replace(facts, patients=len(sketch), sketch=digest, epoch=register.epoch, rule=sketches.RULE)


def compare(register: Register, facts: Facts, sketch: AnyArray | None, house: House) -> list[Decision]:
    """Every earlier release with its rule; nothing is entered."""
    state = read_state(register)
    with reading(register.database) as connection:
        found = list(pairs_of(connection, state, facts, sketch, house.pools))
    return [decide(pair, house.policy) for pair in found]


def compare_entered(register: Register, text: str, house: House) -> tuple[Known, list[Decision]]:
    """A release that was entered beside all others."""
    known = read_state(register).find(text)
    with reading(register.database) as connection:
        sketch = None if known.facts.sketch is None else read_sketch(connection, known.facts)
    return known, compare(register, known.facts, sketch, house)


@dataclass(frozen=True)
class Entered:
    """A release that is entered and not yet published."""

    register: Register
    facts: Facts
    sketch: AnyArray | None
    decisions: tuple[Decision, ...]
    number: int
    hash: str

    def to_json(self) -> dict[str, Any]:
        """What its custody keeps."""
        return {
            "facts": asdict(self.facts),
            "number": self.number,
            "hash": self.hash,
            "compared": [_with_names(each) for each in self.decisions],
        }


def _with_names(decision: Decision) -> dict[str, Any]:
    """A decision, and what the report and the dossier call the earlier release."""
    old = decision.pair.old.facts
    names = {"recipient": old.recipient, "line": old.line, "version": old.version, "method": old.method}
    return {**decision.to_json(), **names, "sentence": decision.rule.sentence}


def enter(register: Register, facts: Facts, sketch: AnyArray | None, house: House) -> Entered:
    """Enter a release that will be made, with the overlaps counted in the same transaction. GuaranteeUnreachable where
    a rule refuses it, BadInput where one asks for a reason and none is given; nothing is entered then."""
    with changing(register) as change:
        facts = with_sketch(facts, register, sketch)
        facts = replace(facts, version=change.state.versions(facts) + 1)
        pairs = pairs_of(change.connection, change.state, facts, sketch, house.pools)
        decisions = tuple(decide(pair, house.policy) for pair in pairs)
        require_allowed(decisions, facts.reason)
        facts = replace(facts, compared=tuple(each.to_json() for each in decisions))
        if sketch is not None:
            change.keep(sketch)
        entry = change.append("intended", id=facts.id, facts=asdict(facts))
    return Entered(register, facts, sketch, decisions, entry.number, entry.hash)


def settle(
    entered: Entered, folder: Path, content: str, house: House, measure: Callable[[Pair], Bound | None]
) -> Entered:
    """The decisions again, now that the release is written and not yet published: whether its content is that of an
    earlier one is known, and what both give away can be measured."""
    settled = []
    for each in entered.decisions:
        pair = replace(each.pair, folder=folder, same_content=each.pair.old.content == content)
        found = decide(pair, house.policy)
        if found.outcome == "reason":
            found = decide(replace(pair, bound=measure(pair)), house.policy)
        settled.append(found)
    require_allowed(settled, entered.facts.reason)
    facts = replace(entered.facts, compared=tuple(each.to_json() for each in settled))
    return replace(entered, facts=facts, decisions=tuple(settled))


def require_allowed(decisions: Sequence[Decision], reason: str | None) -> None:
    """GuaranteeUnreachable or BadInput that names the first earlier release that stands against the new one."""
    for each in decisions:
        if each.outcome == "refuse":
            raise GuaranteeUnreachable(f"{in_words(each)} Nothing was released.")
    asked = [each for each in decisions if each.outcome == "reason"]
    if asked and not reason:
        more = f" {len(asked) - 1} further releases ask for one too." if len(asked) > 1 else ""
        raise BadInput(
            f"{in_words(asked[0])}{more} Nothing was released. Give a reason why both may be out (--reason TEXT); the "
            "register keeps it."
        )


def in_words(decision: Decision) -> str:
    """A decision in a sentence: counts and names of releases, of nobody's patients."""
    pair, old = decision.pair, decision.pair.old.facts
    whose = f" for {old.recipient}" if old.recipient else ""
    counted = (
        f" ({pair.common:,} patients in both, {pair.only_new:,} only here, {pair.only_old:,} only there; k = {pair.k})"
        if pair.counted
        else ""
    )
    said = f"release {old.id}{whose}{counted}: {decision.rule.sentence}"
    if pair.bound is not None:
        return f"{said} Measured: fewest candidates {pair.bound.fewest:,}, {pair.bound.below:,} patients below k."
    return f"{said} Nothing was measured." if decision.rule.outcome == "reason" else said


def publish(entered: Entered, folder: Path, share: str, content: str, source: str | None) -> None:
    """Say that a release has its place; what it is compared with is as it was settled."""
    with changing(entered.register) as change:
        change.append(
            "released",
            id=entered.facts.id,
            share=share,
            content=content,
            source=source,
            folder=str(folder),
            compared=list(entered.facts.compared),
        )


def withdraw(register: Register, text: str, reason: str, by: str) -> Known:
    """Say that a release is in nobody's hands, so that it counts no longer. BadInput where it is so already, or
    without a reason."""
    if not reason.strip():
        raise BadInput("a withdrawal needs a reason (--reason TEXT): why nobody has this release.")
    with changing(register) as change:
        known = change.state.find(text)
        if not known.counts:
            raise BadInput(f"release {known.facts.id} is withdrawn already ({known.why}).")
        change.append("withdrawn", id=known.facts.id, reason=reason.strip(), by=by)
    return replace(known, status="withdrawn", why=reason.strip())


@dataclass(frozen=True)
class Repair:
    """What a repair entered: releases from their folders, and those that only the remembered head knows."""

    restored: tuple[str, ...]
    lost: tuple[str, ...]
    published: tuple[str, ...]
    releases: int


def repair(
    register: Register, folders: Sequence[Path], published: Callable[[Path], Mapping[str, Any]]
) -> Repair:
    """Enter what the folders of releases hold and the register lacks. What was seen before and is in no folder is
    entered as a release with everybody in it, so that nothing is forgotten. `published`: digests of a whole release."""
    try:
        seen = heads.read_head(register.head)
    except heads.OlderRegister:
        seen = None
    there = {entry["facts"]["id"]: (entry, folder) for folder in folders for entry in [entry_of(folder)]}
    with changing(register, repairing=True) as change:
        known = dict(change.state.releases)
        restored = [name for name in there if name not in known]
        for name in restored:
            entry, folder = there[name]
            _restore(change, entry["facts"], folder, published)
        lost = [name for name in (seen.releases if seen else ()) if name not in known and name not in there]
        for name in lost:
            change.append("restored", id=name, facts=asdict(Facts(id=name)), status="lost")
        late = [name for name in there if name in known and known[name].status == "intended"]
        for name in late:
            _published(change, name, there[name][0]["facts"], there[name][1], published)
        change.append("repaired", seen=None if seen is None else {"entries": seen.entries, "head": seen.head},
                      restored=len(restored), lost=len(lost))  # fmt: skip
    return Repair(tuple(restored), tuple(lost), tuple(late), len(known) + len(restored) + len(lost))


def entry_of(folder: Path) -> dict[str, Any]:
    """What the custody of a release says of its entry. BadInput where it says nothing."""
    file = folder / "custody" / FILE
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
        Facts(**found["facts"])
    except (OSError, ValueError, TypeError, KeyError):
        raise BadInput(f"{folder}: there is no entry of a register here (custody/{FILE}).") from None
    return found


def _restore(
    change: Change, facts: Mapping[str, Any], folder: Path, published: Callable[[Path], Mapping[str, Any]]
) -> None:
    sketch = folder / "custody" / SKETCH
    own = dict(facts)
    if own["sketch"] is not None and (
        not sketch.is_file() or sketches.digest_of(sketch.read_bytes()) != own["sketch"]
    ):
        own |= {"sketch": None, "patients": None}  # everybody
    elif own["sketch"] is not None:
        change.keep(sketches.from_bytes(sketch.read_bytes()))
    change.append("restored", id=own["id"], facts=own, status="intended")
    _published(change, own["id"], own, folder, published)


def _published(
    change: Change,
    name: str,
    facts: Mapping[str, Any],
    folder: Path,
    published: Callable[[Path], Mapping[str, Any]],
) -> None:
    more = {"id": name, "folder": str(folder.absolute()), "compared": list(facts["compared"])}
    change.append("released", **more, **published(folder))


def audit(register: Register, expected: str | None = None) -> tuple[list[Check], str]:
    """Whether the register agrees with itself and with what was seen before; and its last hash, to be kept elsewhere.
    `expected`: a hash that an earlier audit gave."""
    with reading(register.database, snapshot=True) as connection:
        count, head = journal.end_of(connection, tables.JOURNAL)
        entries = list(journal.entries(connection, tables.JOURNAL))
        _, fault = chain.follow(entries, count, head)
        known = list(replay(entries).values()) if fault is None else []
        own = {each.facts.sketch: each.facts for each in known if each.facts.sketch is not None}
        wrong = sum(_is_lost(connection, facts) for facts in own.values())
    seen = None
    try:
        seen = heads.read_head(register.head)
        heads.require_seen(register.database.place, seen, entries)
        older = None
    except heads.OlderRegister as error:
        older = str(error)
    everybody = sum(each.facts.sketch is None or each.facts.epoch != register.epoch for each in known)
    unpublished = sum(each.status == "intended" for each in known)
    counted = (
        f"{len(known)} releases, {unpublished} not known to be published, {everybody} that count as everybody"
    )
    checks = [
        Check("chain of hashes", fault is None, fault or f"{count} entries, each hash covers the one before"),
        Check(
            "last entry seen",
            older is None,
            older or f"entry {seen.entries if seen else 0} is in the register",
        ),
        Check("patients", not wrong, f"{len(own)} sets of patients, {wrong} lost or changed"),
        Check("releases", True, counted),
    ]
    if expected is not None:
        found = any(entry.hash == expected for entry in entries)
        checks.append(
            Check("hash of an earlier audit", found, "it is there" if found else "no entry has this hash")
        )
    return checks, head


def _is_lost(connection: sa.Connection, facts: Facts) -> bool:
    """Whether the patients of a release are gone or changed."""
    try:
        return sketches.digest_of(sketches.to_bytes(read_sketch(connection, facts))) != facts.sketch
    except heads.OlderRegister:
        return True
