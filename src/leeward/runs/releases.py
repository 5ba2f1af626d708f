"""What the register tells of all releases: `lw.releases` and `leeward releases`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from leeward.errors import BadInput
from leeward.release.spec import Handover, Spec, load
from leeward.runs.registering import digests_of, measure_pair, method_facts, require_register, sketch_of

if TYPE_CHECKING:
    from leeward.register.policy import Decision
    from leeward.register.store import Register

__all__ = ["audit", "list", "overlap", "repair", "show", "withdraw"]


def show(release: str, *, register: str | Path | None = None) -> dict[str, Any]:
    """Show what the register knows of a release.

    Parameters
    ----------
    release : str
        Identifier of the release, or its beginning.
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    dict
        Its facts, its status, and for each earlier release the rule that allowed both.

    Raises
    ------
    BadInput
        There is no such register or release, or the register is older than it was.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> id = lw.releases.list(register="register.db")["id"][0]
    >>> lw.releases.show(id, register="register.db")["status"]
    'released'
    """
    from leeward.register.store import read_state

    return read_state(require_register(register)).find(release).to_json()


def overlap(
    release: str | Path, *, measure: bool = False, register: str | Path | None = None
) -> pl.DataFrame:
    """Compare a release with all earlier ones: patients in both, and the rule that allows or refuses it.

    Parameters
    ----------
    release : str or Path
        Identifier of a release of the register, or a spec that nothing was made of yet.
    measure : bool, optional
        Of a release: measure what both give away together, where their folders are there.
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    polars.DataFrame
        One row for each release that it is compared with.

    Raises
    ------
    BadInput
        There is no such register, release or spec.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> id = lw.releases.list(register="register.db")["id"][0]
    >>> lw.releases.overlap(id, register="register.db").height
    0
    """
    opened = require_register(register)
    if not Path(release).is_file():
        decisions = _decisions_of_release(str(release), opened, measure)
    elif measure:
        raise BadInput("--measure is for a release: nothing is made of a spec yet. Give the release's ID.")
    else:
        decisions = _decisions_of_spec(load(release), opened)
    found = [each.to_json() for each in decisions]
    rows = [{**each, **(each["bound"] or {})} for each in found]
    return pl.DataFrame([{name: row.get(name) for name in OVERLAP} for row in rows], schema=OVERLAP)


OVERLAP: Final = {
    "id": pl.String, "recipient": pl.String, "line": pl.String, "version": pl.Int64, "method": pl.String,
    "common": pl.Int64, "only_here": pl.Int64, "only_there": pl.Int64, "rule": pl.String, "outcome": pl.String,
    "fewest": pl.Int64, "below": pl.Int64, "sentence": pl.String,
}  # fmt: skip
"""Columns of `overlap`."""


def _decisions_of_spec(spec: Spec, register: Register) -> Sequence[Decision]:
    from leeward.cohort.readers.copies import copies
    from leeward.register.entering import compare, with_sketch
    from leeward.register.store import Facts
    from leeward.runs.protect import method_of
    from leeward.runs.specs import read_source

    with copies():
        sketch = sketch_of(read_source(spec.source).identifiers(), register)
    method = method_of(spec.method, spec.plan)
    facts = Facts(**vars(spec.release or Handover()), **method_facts(method))
    return compare(register, with_sketch(facts, register, sketch), sketch)


def _decisions_of_release(text: str, register: Register, measure: bool) -> Sequence[Decision]:
    from leeward.register.entering import compare
    from leeward.register.policy import decide
    from leeward.register.store import read_state

    known = read_state(register).find(text)
    folder = Path(known.folder or "")
    if measure and not (known.folder and folder.is_dir()):
        raise BadInput(
            f"release {known.facts.id}: its folder is not where it was published ({known.folder})."
        )
    decisions = []
    for each in compare(register, known.facts):
        pair = replace(each.pair, folder=folder, same_content=each.pair.old.content == known.content)
        pair = replace(pair, bound=measure_pair(pair) if measure else None)
        decisions.append(decide(pair, register.policy))
    return decisions


def withdraw(release: str, reason: str, *, register: str | Path | None = None) -> dict[str, Any]:
    """Say that a release is in nobody's hands, so that later ones are not compared with it.

    Parameters
    ----------
    release : str
        Identifier of the release, or its beginning.
    reason : str
        Why nobody has it; the register keeps it.
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    dict
        What the register knows of it now, as `show` returns it.

    Raises
    ------
    BadInput
        There is no such register or release, or it is withdrawn already.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> id = lw.releases.list(register="register.db")["id"][0]
    >>> lw.releases.withdraw(id, "It was never sent.", register="register.db")["status"]
    'withdrawn'
    """
    from leeward.queries.answer.api import login_name
    from leeward.register import entering

    entering.withdraw(require_register(register), release, reason, login_name())
    return show(release, register=register)


def repair(folders: Sequence[str | Path] = (), *, register: str | Path | None = None) -> dict[str, Any]:
    """Go on with an older copy of the register: enter the releases in these folders that it lacks.

    A release that was seen before and is in no folder is entered as one with every patient in it.

    Parameters
    ----------
    folders : sequence of str or Path, optional
        Folders of releases, with their custody.
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    dict
        Identifiers that were `restored` from folders, `lost`, or said to be `published`, and the number of `releases`.

    Raises
    ------
    BadInput
        There is no such register, or a folder has no entry of one.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> lw.releases.repair(["release"], register="register.db")["releases"]
    1
    """
    from leeward.register import entering

    opened = require_register(register, repairing=True)
    return entering.repair(opened, [Path(each) for each in folders], digests_of)


def audit(*, expect: str | None = None, register: str | Path | None = None) -> dict[str, Any]:
    """Check a register: its chain of hashes, the last entry that was seen, the patients of each release.

    Parameters
    ----------
    expect : str, optional
        The `head` that an earlier audit returned; the register must have it.
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    dict
        `passed`, the `checks`, and `head`, the hash of the last entry: keep it elsewhere.

    Raises
    ------
    BadInput
        There is no such register.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> lw.releases.audit(register="register.db")["passed"]
    True
    """
    from leeward.register import entering

    checks, head = entering.audit(require_register(register), expect)
    return {
        "passed": all(each.passed for each in checks),
        "checks": [vars(each) for each in checks],
        "head": head,
    }


def list(*, register: str | Path | None = None) -> pl.DataFrame:  # noqa: A001  # `lw.releases.list`, as the command is called
    """List the releases of the register, oldest first.

    Parameters
    ----------
    register : str or Path, optional
        File or URL of the register; by default the one of the house file.

    Returns
    -------
    polars.DataFrame
        One row for each release.

    Raises
    ------
    BadInput
        There is no such register, or it is older than it was.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> method = lw.Disassociation(k=5, m=2)
    >>> result = lw.protect(lw.read("events.csv"), method, "release", register="register.db")
    >>> lw.releases.list(register="register.db").select("status", "method", "k", "patients").row(0)
    ('released', 'disassociation', 5, 300)
    """
    from leeward.register.store import read_state

    known = read_state(require_register(register)).releases.values()
    rows = ({name: each.to_json()[name] for name in LISTED} for each in known)
    return pl.DataFrame(rows, schema=LISTED)


LISTED: Final = {
    "id": pl.String, "status": pl.String, "time": pl.String, "line": pl.String, "version": pl.Int64,
    "method": pl.String, "k": pl.Int64, "m": pl.Int64, "recipient": pl.String, "patients": pl.Int64,
}  # fmt: skip
"""Columns of `list`."""
