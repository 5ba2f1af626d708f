"""`leeward releases`: the register of releases."""

from __future__ import annotations

from typing import Any

import click

import leeward as lw
from leeward.cli.main import LazyGroup
from leeward.cli.options import (
    flag,
    json_option,
    print_json,
    print_lines,
    print_result,
    register_option,
    switch,
)
from leeward.errors import VerificationFailed

ACTIONS = {
    "list": ("register", "List all releases, oldest first."),
    "show": ("register", "Show what the register knows of a release."),
    "overlap": ("register", "Compare a release, or a spec before it is run, with all others."),
    "withdraw": ("register", "Say that a release is in nobody's hands."),
    "repair": ("register", "Go on with an older copy of the register."),
    "audit": ("register", "Check the register against itself and what was seen of it."),
}


@click.group(cls=LazyGroup, table=ACTIONS)
def releases() -> None:
    """List and compare the releases that the register of the house counts.

    A release is entered before it is made and counts from then on. The house file names the register, or --register
    does: a file of SQLite, or the URL of a database.

    \b
    Examples:
      leeward releases list
      leeward releases overlap spec.yaml
      leeward releases repair 2025/q1 2025/q2

    The register, its key and the file beside the key stay in custody: back up all three, apart from each other.
    """


@click.command("list")
@register_option
@json_option
def list_releases(register: str | None, as_json: bool) -> None:
    """List all releases that were entered, oldest first.

    A release is `intended` from when it is entered, `released` when it has its place, `withdrawn` when nobody has it.
    An intended one counts as released.

    \b
    Example:
      leeward releases list --register register.db
    """
    found = lw.releases.list(register=register)
    rows = found.to_dicts()
    lines = [
        f"{row['id']}  {row['time'][:10]}  {row['status']:<9}  {_name(row)}  "
        f"{_count(row['patients'])} patients{_promise(row)}"
        for row in rows
    ]
    print_result(as_json, {"releases": rows}, lines or ["The register has no releases."])


@click.command()
@click.argument("release", metavar="ID")
@register_option
@json_option
def show(release: str, register: str | None, as_json: bool) -> None:
    """Show what the register knows of the release ID (its beginning is enough).

    \b
    Example:
      leeward releases show 3f9a
    """
    known = lw.releases.show(release, register=register)
    if as_json:
        return print_json(known)
    shown = {
        name: value for name, value in known.items() if name != "compared" and value not in (None, False)
    }
    print_lines(*(f"{name:<10}  {value}" for name, value in shown.items()))
    print_lines(*(f"beside {each['id']}: {each['rule']}, {_count(each['common'])} patients in both"
                  for each in known["compared"]))  # fmt: skip


@click.command()
@click.argument("release", metavar="SPEC-or-ID")
@switch("--measure", "Of a release: measure what both give away together, where their folders are there.")
@register_option
@json_option
def overlap(release: str, measure: bool, register: str | None, as_json: bool) -> None:
    """Compare a release of the register, or a spec before it is run, with all releases that count.

    For each one: patients in both, and the first rule that fits. Nothing is entered.

    \b
    Examples:
      leeward releases overlap spec.yaml
      leeward releases overlap 3f9a --measure --json
    """
    rows = lw.releases.overlap(release, measure=measure, register=register).to_dicts()
    lines = []
    for row in rows:
        lines.append(
            f"{row['id']}  {_name(row)}: {_count(row['common'])} patients in both, {_count(row['only_here'])} only "
            f"here, {_count(row['only_there'])} only there"
        )
        measured = "" if row["fewest"] is None else f" Fewest candidates: {row['fewest']:,}."
        lines.append(f"  {OUTCOMES[row['outcome']]} ({row['rule']}). {row['sentence']}{measured}")
    print_result(as_json, {"compared": rows}, lines or ["There is no other release that counts."])


@click.command()
@click.argument("release", metavar="ID")
@flag("--reason", "TEXT", "Why nobody has it; the register keeps it.", required=True)
@register_option
def withdraw(release: str, reason: str, register: str | None) -> None:
    """Say that the release ID is in nobody's hands, so that it no longer counts.

    \b
    Example:
      leeward releases withdraw 3f9a --reason "The run was killed; its folder was removed."
    """
    lw.releases.withdraw(release, reason, register=register)


@click.command()
@click.argument("folders", metavar="FOLDER…", nargs=-1)
@register_option
@json_option
def repair(folders: tuple[str, ...], register: str | None, as_json: bool) -> None:
    """Go on with an older copy of the register: enter the releases in these folders that it lacks.

    Name the folders of all releases since the copy was made. A release that was seen before and is in no folder is
    entered as one with every patient in it.

    \b
    Examples:
      leeward releases repair 2025/q1 2025/q2
      leeward releases repair 2025/q2 --register register.db
    """
    found = lw.releases.repair(folders, register=register)
    lines = [f"The register has {found['releases']:,} releases."]
    lines += [f"  {name}: entered again from its folder" for name in found["restored"]]
    lines += [f"  {name}: published, as its folder shows" for name in found["published"]]
    lines += [f"  {name}: in no folder; it counts as a release with every patient" for name in found["lost"]]
    print_result(as_json, found, lines)


@click.command()
@flag("--expect", "HASH", "The `head` that an earlier audit printed; the register must have it.")
@register_option
@json_option
def audit(expect: str | None, register: str | None, as_json: bool) -> None:
    """Check the register: its chain of hashes, the last entry that was seen, the patients of each release.

    Keep the printed head out of reach of everybody who can write to the register.

    \b
    Examples:
      leeward releases audit
      leeward releases audit --expect 5f2b…

    Exit status: 0 everything agrees; 4 something does not.
    """
    found = lw.releases.audit(expect=expect, register=register)
    lines = [
        f"{'passed' if each['passed'] else 'FAILED'}  {each['name']}: {each['detail']}"
        for each in found["checks"]
    ]
    print_result(as_json, found, [*lines, f"head    {found['head']}"])
    if not found["passed"]:
        raise VerificationFailed("the register is inconsistent; release nothing until it is repaired.")


list = list_releases  # noqa: A001  # the command's name
OUTCOMES = {"allow": "allowed", "reason": "needs a reason", "refuse": "refused"}


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _name(row: dict[str, Any]) -> str:
    """Line and version, method and recipient, as far as they are known."""
    line = None if row["line"] is None else f"{row['line']} {row['version']}"
    whose = None if row["recipient"] is None else f"for {row['recipient']}"
    return ", ".join(each for each in (line, row["method"] or None, whose) if each) or "unknown"


def _promise(row: dict[str, Any]) -> str:
    shown = [f"{name} = {row[name]}" for name in ("k", "m") if row[name] is not None]
    return f", {', '.join(shown)}" if shown else ""
