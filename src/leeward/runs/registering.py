"""Entering a release before it is made, deciding again when it is written, and saying that it is published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leeward.arrays import AnyArray
from leeward.errors import BadInput, LeewardError
from leeward.release import Release
from leeward.release.aside import own_file
from leeward.release.canonical import content_digest
from leeward.release.folder import Draft, check_out
from leeward.release.manifest import NAME, sha256_of
from leeward.release.spec import Handover
from leeward.runs.house import RegisterOfHouse, house_register
from leeward.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from leeward.cohort.cohort import Cohort
    from leeward.composition import Bound
    from leeward.register.entering import Entered
    from leeward.register.policy import Pair
    from leeward.register.store import Register

KEY_FILE: Final = "register.secret"
"""In the folder of the account's keys; no recipient's key has such a name."""

NOBODY_COUNTS: Final = (
    "no register counts what this release and earlier ones of the same patients give away together; name one with "
    "--register, or in a house file"
)


FIRST_COUNTED: Final = (
    "the register does not have the version before as published, and counts this one as the first of its line"
)


@dataclass(frozen=True)
class Handing:
    """How a release is handed over: to whom, with which reason, and the register where the house names none."""

    handover: Handover = field(default_factory=Handover)
    reason: str | None = None
    register: str | Path | None = None


@dataclass
class Registration:
    """The entry of a run in the register; None where no register counts it."""

    entered: Entered | None = None
    notices: tuple[str, ...] = ()
    content: str | None = None

    def settle(self, pending: Draft, source: Cohort | None = None) -> None:
        """Decide again when the release is written with its spec and not yet published, and keep the entry in custody,
        for the report. `source`: where it is in memory. BadInput or GuaranteeUnreachable where what was written stands
        against it."""
        if self.entered is None:
            return
        from leeward.register import entering
        from leeward.register.sketch import to_bytes

        self.content = content_digest(Release.open(pending.folder))
        measure = partial(measure_pair, source=source)
        self.entered = entering.settle(self.entered, pending.folder, self.content, measure)
        pending.put_json(f"custody/{entering.FILE}", self.entered.to_json())
        if self.entered.sketch is not None:
            own_file(pending.custody / entering.SKETCH).write_bytes(to_bytes(self.entered.sketch))


def measure_pair(pair: Pair, source: Cohort | None = None) -> Bound | None:
    """What both releases of a pair give away together (`measure_folders`); None, too, where the earlier one is no
    longer where it was published."""
    from leeward.runs.composing import measure_folders

    earlier = Path(pair.old.folder or "")
    manifest = earlier / "share" / NAME
    here = manifest.is_file() and sha256_of(manifest) == pair.old.share and (earlier / "custody").is_dir()
    return measure_folders(earlier, pair.folder, source) if here and pair.folder is not None else None


@contextmanager
def registered(
    out: str | Path, handing: Handing | None, patients: Any, after: Path | None = None, **facts: Any
) -> Iterator[Registration]:
    """Enter a release before the block makes it, and say that it is published after. `patients`: function of their
    identifiers; `after`: the version before it; `facts`: of the method (`register.store.Facts`). Nothing is entered
    without `handing`: in a worker of a run that no register counts.

    Where the block fails, nothing was published and the entry counts no longer, unless the release has its place
    nevertheless. A run that is killed leaves an entry that counts.
    """
    if handing is None or not is_counted(handing):
        yield Registration()
        return
    from leeward.queries.answer.api import login_name
    from leeward.register import entering
    from leeward.register.store import Facts

    register, by = require_register(handing.register, may_create=True), login_name()
    check_out(Path(out))
    follows = None if after is None else _published_as(register, after)
    given = {**vars(handing.handover), "reason": handing.reason, "by": by, "leeward": __version__, **facts}
    entered = entering.enter(register, Facts(**given, follows=follows), sketch_of(patients(), register))
    run = Registration(entered, (FIRST_COUNTED,) if after is not None and follows is None else ())
    try:
        yield run
    except BaseException as error:
        if not Path(out).exists():
            with suppress(LeewardError):
                why = f"nothing was published ({type(error).__name__})"
                entering.withdraw(register, entered.facts.id, why, by)
        raise
    try:
        entering.publish(run.entered or entered, Path(out).absolute(), **digests_of(Path(out), run.content))
    except LeewardError as error:
        raise BadInput(
            f"{out}: the release is there, and the register still has it as intended: {error} `leeward releases repair "
            f"{out}` says that it is published."
        ) from None


def _published_as(register: Register, folder: Path) -> str | None:
    """The identifier of the release in a folder; None where the register does not have it as published."""
    from leeward.register.store import read_state

    entry = Release.open(folder).custody_json("register.json")
    known = None if entry is None else read_state(register).releases.get(entry["facts"]["id"])
    here = known is not None and known.share == sha256_of(folder / "share" / NAME)
    return known.facts.id if known is not None and here else None


def sketch_of(identifiers: pl.Series | None, register: Register) -> AnyArray | None:
    from leeward.register.sketch import sketch_of as make

    return None if identifiers is None else make(identifiers, register.key)


def method_facts(method: Any) -> dict[str, Any]:
    """What the register keeps of a method with its parameters."""
    from leeward.runs.specs import parameters_of

    text = json.dumps(parameters_of(method), sort_keys=True, default=str)
    return {
        "method": method.name,
        "parameters": hashlib.sha256(text.encode()).hexdigest(),
        "k": getattr(method, "k", None),
        "m": getattr(method, "m", None),
        "payload": bool(getattr(method, "payload", ())),
    }


def digests_of(folder: Path, content: str | None = None) -> dict[str, Any]:
    """Digests of a whole release: of its manifest, of what it says (`content`, where that is known), and of the list of
    its source's files."""
    release = Release.open(folder)
    source = folder / "custody" / "source_files.json"
    return {
        "share": sha256_of(release.share / NAME),
        "content": content or content_digest(release),
        "source": sha256_of(source) if source.is_file() else None,
    }


def is_counted(handing: Handing) -> bool:
    """Whether a register counts the release. BadInput for a reason that none would keep."""
    counted = handing.register is not None or house_register() is not None
    if handing.reason is not None and not counted:
        raise BadInput("a reason is kept by a register of releases; name one with --register.")
    return counted


def refuse_counted(handing: Handing) -> None:
    """BadInput where a register counts a run whose rows stay with workers: the key of its patients' hashes would have
    to go there, and what the release gives away beside earlier ones would have to be measured here."""
    if is_counted(handing):
        raise BadInput(
            "a register counts the patients of this release, and its rows stay with the workers (`shared: true`), "
            "where the register's key does not go. Nothing was released. Leave `shared` out of the engine."
        )


def require_register(
    named: str | Path | None, *, may_create: bool = False, repairing: bool = False
) -> Register:
    """The house's register, else the one that is named. BadInput for neither, and where both are named: what the house
    counts is counted in one place."""
    house = house_register()
    if house is not None and named is not None:
        raise BadInput("the house file names the register; leave --register out.")
    if house is None:
        if named is None:
            raise BadInput("there is no register of releases: name it in a house file, or with --register.")
        house = RegisterOfHouse(url=str(named))
    from leeward.notes.identities import keys
    from leeward.queries.state import account_folder
    from leeward.register.store import open_register

    own = None if house.key is not None else account_folder("keys")
    if house.key is None and own is None:
        raise BadInput("there is no folder for the register's key; name it in a house file (`register.key`).")
    key_file = Path(house.key or f"{own}/{KEY_FILE}")
    key = keys.read_or_make(key_file, use="register")
    found = open_register(house.url, key, key_file, may_create=may_create, repairing=repairing)
    return replace(found, policy=house.policy, pools=house.pools)
