"""`leeward dossier`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, print_json, print_lines

NO_MATCH = 4


@click.command()
@click.argument("release", metavar="OUT")
@click.option("-o", "--out", metavar="DOSSIER", help="The folder to write; must not exist yet.")
@click.option(
    "--plan", metavar="PLAN.yaml", help="The recipient's plan: its lines are measured, its threshold stated."
)
@click.option(
    "--context",
    metavar="CONTEXT.yaml",
    help="What people declare: purpose, controls, governance, conclusion.",
)
@click.option("--explored", metavar="FOLDER", help="A folder of explore or compare, for the alternatives.")
@click.option("--for", "audience", type=click.Choice(["expert", "recipient"]), default="expert", show_default=True,
              help="A recipient's copy has no figure of the original data.")  # fmt: skip
@click.option(
    "--sign",
    "private",
    metavar="KEY.pem",
    help="Sign with this private Ed25519 key; with --check, once it matches.",
)
@click.option(
    "--check", "checked", metavar="DOSSIER", help="Check a dossier against OUT instead of writing one."
)
@click.option("--key", metavar="PUBLIC.pem", help="With --check: the public key whose signature is expected.")
@json_option
def dossier(
    release: str,
    out: str | None,
    plan: str | None,
    context: str | None,
    explored: str | None,
    audience: str,
    private: str | None,
    checked: str | None,
    key: str | None,
    as_json: bool,
) -> int:
    """Technical evidence on the release OUT for the expert who decides: measured, declared, open. It decides nothing.

    A release that does not verify today gets none (exit status 4). With --check: status 4 where a byte differs.

    \b
    Examples:
      leeward dossier release --plan plan.yaml --context context.yaml -o dossier
      leeward dossier release --check dossier --key expert.pem
    """
    from leeward.runs.dossier import check
    from leeward.runs.dossier import dossier as write

    if checked is not None:
        found = check(checked, release, key=key, private=private)
        if as_json:
            print_json(
                {
                    "matches": found.matches,
                    "faults": list(found.faults),
                    "figures": found.figures,
                    "signed": found.signed,
                }
            )
        else:
            state = "matches" if found.matches else "does not match"
            print_lines(f"The dossier {state}; {found.figures} figures were looked up.", *found.faults)
            if found.signed is not None:
                print_lines(
                    "The signature is that of the key."
                    if found.signed
                    else "The signature is not that of the key."
                )
        return 0 if found.matches else NO_MATCH
    if out is None:
        raise click.UsageError("name the folder to write with -o, or a dossier to check with --check.")
    made = write(
        release,
        out,
        plan=plan,
        context=context,
        explored=explored,
        audience="recipient" if audience == "recipient" else "expert",
        key=private,
    )
    if as_json:
        print_json(dict(made.content))
    else:
        print_lines(
            f"Dossier: {made.folder / 'dossier.html'} ({len(made.open_items)} open items)",
            *(f"  open: {each}" for each in made.open_items),
        )
    return 0
