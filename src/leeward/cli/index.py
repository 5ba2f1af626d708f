"""`leeward index`: the count index of notes or of a cohort, and the budget of its answers."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, domains_option, json_option, print_json, print_lines, with_source


@click.command()
@click.argument("path", metavar="COHORT|TABLE")
@with_source
@click.option("--epsilon-total", required=True, metavar="E", help="Budget of all answers together.")
@click.option(
    "-o", "--out", required=True, metavar="INDEX", help="The index folder to write; must not exist."
)
@click.option("--terms", metavar="icd9|icd10|lexicon|FILE",
              help="The public vocabulary; a file is a hierarchy (CSV node,parent) or a list of terms (.txt) "
              "[default: --vocabulary, or the one recognised].")  # fmt: skip
@click.option("--quasi-identifiers", metavar="COL[,COL…]", callback=commas,
              help="Columns that may be asked for [default: all of a table of notes; none of a cohort].")  # fmt: skip
@domains_option
@click.option("--row", type=click.Choice(["visit", "patient"]),
              help="What a row of a cohort is, in which all terms of a query must be [default: a visit where "
              "visits or dates are known, else the patient].")  # fmt: skip
@click.option("--max-rows-per-patient", type=click.IntRange(min=1), metavar="N",
              help="Keep N notes or visits of a patient, drawn at random: needed to count notes.")  # fmt: skip
@click.option("--about-patients", type=click.IntRange(min=1), metavar="N",
              help="How many patients there are, about; public. Noise as large as that needs --yes.")  # fmt: skip
@click.option("--parent", metavar="INDEX|ID", help="The index (or data set) that these data descend from.")
@click.option("--ledger", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database that keeps the budget [default: a ledger in INDEX].")  # fmt: skip
@click.option("--default-allotment", type=click.Choice(["none", "all"]), default="none", show_default=True,
              help="What a user without an allotment may spend; none: whoever indexes is allotted it.")  # fmt: skip
@click.option("--charge-projects-separately", is_flag=True,
              help="A project pays also for what another one paid before, so that no price or balance tells of "
              "it.")  # fmt: skip
@click.option("--new-budget", metavar="REASON",
              help="Why data that share patients with an earlier index get a budget of their own; kept in the log.",
              )  # fmt: skip
@click.option("--unit", type=click.Choice(["patient", "note"]), default="patient", show_default=True,
              help="What the budget protects.")  # fmt: skip
@click.option(
    "--threshold", type=click.IntRange(min=1), metavar="N", help="Noisy counts below N are hidden; public."
)
@click.option("--accounting", type=click.Choice(["pure", "zcdp"]), default="pure", show_default=True,
              help="How answers add up: by their sum, or by zero-concentrated privacy.")  # fmt: skip
@click.option("--delta", type=float, metavar="D", help="With --accounting zcdp, for example 1e-6.")
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True)
@click.option(
    "--seed", type=int, metavar="N", help="For tests and studies only: draws the rows kept of a patient."
)
@json_option
def index(source: Any, epsilon_total: str, out: str, as_json: bool, **flags: Any) -> None:
    """Index the notes in TABLE (by `leeward notes annotate`) or the codes of COHORT, for differentially private counts.

    The index is the exact data in another form: it stays with the custodian. Recipients ask `leeward query`, and every
    answer is paid from the budget that is given here, once. The same data indexed again keep their budget in a ledger
    that knows them.

    \b
    Examples:
      leeward index notes/table.parquet --terms lexicon --epsilon-total 5 -o INDEX
      leeward index events.csv --patient pid --code icd --date day --epsilon-total 5 -o INDEX
      leeward index diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 --missing '?' \\
          --vocabulary icd9 --quasi-identifiers race,gender --domains gender=male,female \\
          --epsilon-total 5 -o INDEX

    Exit status: 0 done; 2 bad input (nothing is written).
    """
    from leeward.runs.index import index as run

    done = run(source, out, epsilon_total=epsilon_total, **flags)
    if as_json:
        print_json(done)
    else:
        print_lines(*lines_of(done))


def _left(done: dict[str, Any]) -> str:
    """What is left of a budget that the ledger knew already."""
    shared = "" if done["shared_with"] is None else f", shared with {done['shared_with']}"
    left = f"{done['remaining']:g} left" if shared or done["remaining"] < done["epsilon_total"] else ""
    return "; ".join(part for part in (shared, left) if part)


def lines_of(done: dict[str, Any]) -> list[str]:
    """The facts for a person."""
    kinds = ", ".join(f"{q['name']} ({q['kind']})" for q in done["qids"]) or "none"
    lines = [
        f"{done['rows']:,} rows ({done['row']}s) of {done['patients']:,} patients indexed in {done['index']}.",
        f"Quasi-identifiers: {kinds}",
        f"Vocabulary: {done['vocabulary']}",
        f"Budget: epsilon {done['epsilon_total']:g} for each {done['unit']}, all answers together{_left(done)}.",
    ]
    if not done["vocabulary_public"]:
        lines.append(
            "Note: no public vocabulary was named, so any text may be asked for, and what nobody has counts 0 plus "
            "noise; --terms names one."
        )
    if done["max_rows_per_patient"] not in (None, 1):
        lines.append(f"At most {done['max_rows_per_patient']:,} rows of a patient are kept, drawn at random.")
    lines += [f"Left out: {count:,} {why}" for why, count in done["left_out"].items()]
    if done["seeded"]:
        lines.append("Note: the rows kept were drawn with a chosen seed: for tests and studies only.")
    return [*lines, "The index holds exact data and stays with the custodian."]
