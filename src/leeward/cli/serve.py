"""`leeward serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leeward.cli.options import flag, print_lines, switch


@click.command()
@flag("--folder", "FOLDER", "The portal's own folder, with portal.toml; made where it is missing.",
      type=click.Path(file_okay=False), default="portal")  # fmt: skip
@switch("--demo", "Five people and made-up data, in a folder that is new.")
@flag("--host", None, "Address to listen on.", default="127.0.0.1")
@flag("--port", None, type=click.IntRange(1, 65535), default=8000)
@flag("--workers", None, "Processes that answer: one for each processor that the portal may use.",
      type=click.IntRange(1, 64), default=1)  # fmt: skip
@flag("--public-url", "URL", "The address that people enter in their browser [default: this address].")
@flag("--database", "URL", "Database of accounts and projects [default: SQLite in FOLDER].",
      envvar="LEEWARD_PORTAL_DATABASE")  # fmt: skip
@flag("--add-account", "LOGIN=ROLE[,ROLE]",
      "Make a local account with roles of the house (custodian, approver, auditor, admin), print the link with which "
      "its owner sets a password, and end.")  # fmt: skip
@flag("--reset-password", "LOGIN", "Print a new link for a local account, remove its second factor, and end.")
@flag("--backup", "OUT", "Copy the portal's database and the ledgers to the new folder OUT, and end.",
      type=click.Path())  # fmt: skip
@switch("--upgrade", "Bring the database of an earlier version up to this one, and end; back it up before.")
def serve(folder: str, demo: bool, host: str, port: int, workers: int, public_url: str | None,
          database: str | None, add_account: str | None, reset_password: str | None,
          backup: str | None, upgrade: bool) -> None:  # fmt: skip
    """Serve the portal: researchers ask, custodians decide, and a budget pays each answer.

    docs/how-to/set-up.md leads from an empty server to https, with backup and upgrade.

    \b
    Examples:
      leeward serve --demo
      leeward serve --folder /srv/leeward --add-account ida=admin
      leeward serve --folder /srv/leeward --reset-password ida
      leeward serve --folder /srv/leeward --public-url https://portal.hospital.example
      leeward serve --folder /srv/leeward --upgrade

    Exit status: 0 ended; 2 a setting is wrong.
    """
    import logging

    from leeward.runs import portal

    where = Path(folder)
    given: dict[str, Any] = {"public_url": public_url, "database": database}
    if backup is not None:
        copied, servers = portal.back_up(where, Path(backup), **given)
        return print_lines(*(f"copied {name}" for name in copied), *servers)
    if upgrade:
        return portal.upgrade(where, print_lines, **given)
    if add_account is not None:
        login, _, roles = add_account.partition("=")
        wanted = [*filter(None, roles.split(","))]
        return print_lines(portal.make_local_account(where, login, wanted, **given))
    if reset_password is not None:
        return print_lines(portal.reset_password(where, reset_password, **given))
    own = None if (where / "portal.toml").is_file() else f"http://{host}:{port}"
    given["public_url"] = public_url or own
    if demo:
        made = portal.make_demo(where, say=print_lines, **given)
        given["local_accounts"] = True
        people = (f"  {login:<5} {made.passwords[login]}   {name}" for login, name, _ in portal.DEMO_PEOPLE)
        print_lines("", *people, "", "The passwords are shown this once. All data are made up.")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("leeward.portal").setLevel(logging.WARNING if demo else logging.INFO)
    portal.serve(where, host, port, print_lines, workers, **given)
