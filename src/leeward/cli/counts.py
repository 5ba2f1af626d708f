"""Counts with noise: `leeward index`, `itemsets`, `budget`, `audit`; `query` has a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leeward.cli.options import (
    commas,
    domains_option,
    engine_option,
    flag,
    formats_option,
    json_option,
    ledger_option,
    print_json,
    print_lines,
    print_result,
    switch,
    user_option,
    with_source,
)
from leeward.cli.telling import check_line
from leeward.errors import BadInput, VerificationFailed


@click.command()
@click.argument("path", metavar="COHORT|TABLE")
@with_source
@flag("--epsilon-total", "E", "Budget of all answers together.", required=True)
@flag("-o --out", "INDEX", "The index folder to write; must not exist.", required=True)
@flag("--terms", "icd9|icd10|lexicon|FILE",
      "Public vocabulary; a file is a hierarchy (CSV node,parent) or a list of terms (.txt) [default: "
      "--vocabulary, or the one recognised].")  # fmt: skip
@flag("--quasi-identifiers", "COL[,COL…]",
      "Columns that queries may use [default: all of a table of notes; none of a cohort].",
      callback=commas)  # fmt: skip
@domains_option
@flag("--row", None,
      "What a row of a cohort is; a query's terms must all be in one row [default: a visit if visits or dates are "
      "known, else the patient].", type=click.Choice(["visit", "patient"]))  # fmt: skip
@flag("--max-rows-per-patient", "N", "Keep N notes or visits of a patient, drawn at random: needed to count notes.",
      type=click.IntRange(min=1))  # fmt: skip
@flag("--about-patients", "N", "Approximate number of patients; public. Answers with noise that large need --yes.",
      type=click.IntRange(min=1))  # fmt: skip
@flag("--parent", "INDEX|ID", "Index (or data set) that these data come from.")
@flag("--ledger", "URL", "Database that keeps the budget [default: a ledger in INDEX].",
      envvar="LEEWARD_LEDGER")  # fmt: skip
@flag("--default-allotment", None,
      "What users without an allotment may spend. none: whoever makes the index is allotted everything.",
      type=click.Choice(["none", "all"]), default="none")  # fmt: skip
@switch("--charge-projects-separately",
        "Charge a project even for answers that another project paid for, so that no price or balance "
        "reveals them.")  # fmt: skip
@flag("--new-budget", "REASON",
      "Why data that share patients with an earlier index get their own budget; the log keeps it.")  # fmt: skip
@flag("--unit", None, "What the budget protects.", type=click.Choice(["patient", "note"]), default="patient")
@flag("--threshold", "N", "Noisy counts below N are hidden; public.", type=click.IntRange(min=1))
@flag("--accounting", None, "How costs add up: as a sum, or by zero-concentrated privacy (zCDP).",
      type=click.Choice(["pure", "zcdp"]), default="pure")  # fmt: skip
@flag("--delta", "D", "With --accounting zcdp, for example 1e-6.", type=float)
@engine_option
@flag("--seed", "N", "For tests and studies only: draws the rows kept of a patient.", type=int)
@json_option
def index(source: Any, out: str, as_json: bool, **flags: Any) -> None:
    """Index the notes in TABLE (by `leeward notes annotate`) or the codes of COHORT, for differentially private counts.

    The index contains the exact data and stays with the custodian. `leeward query` answers recipients and pays
    each answer from the budget that is set here, once. Indexing the same data again
    with the same ledger keeps their budget.

    \b
    Examples:
      leeward index notes/custody/table.parquet --terms lexicon --epsilon-total 5 -o INDEX
      leeward index events.csv --patient pid --code icd --date day --epsilon-total 5 -o INDEX
      leeward index claims.csv --code diag_1,diag_2,diag_3 --vocabulary icd9 --quasi-identifiers age,sex \\
          --domains sex=F,M --epsilon-total 5 -o INDEX

    Exit status: 0 done; 2 bad input (nothing is written).
    """
    from leeward.runs.index import index as run

    done = run(source, out, **flags)
    print_result(as_json, done, lines_of(done))


def _left(done: dict[str, Any]) -> str:
    """What is left of a budget that the ledger knew already."""
    shared = "" if done["shared_with"] is None else f", shared with {done['shared_with']}"
    left = f"{done['remaining']:g} left" if shared or done["remaining"] < done["epsilon_total"] else ""
    return "; ".join(part for part in (shared, left) if part)


def lines_of(done: dict[str, Any]) -> list[str]:
    kinds = ", ".join(f"{q['name']} ({q['kind']})" for q in done["qids"]) or "none"
    lines = [
        f"{done['rows']:,} rows ({done['row']}s) of {done['patients']:,} patients indexed in {done['index']}.",
        f"Quasi-identifiers: {kinds}",
        f"Vocabulary: {done['vocabulary']}",
        f"Budget: epsilon {done['epsilon_total']:g} for each {done['unit']}, all answers together{_left(done)}.",
    ]
    if not done["vocabulary_public"]:
        lines.append(
            "Note: without a public vocabulary, queries may use any text; a text that nobody has counts 0 "
            "plus noise. Name one with --terms."
        )
    if done["max_rows_per_patient"] not in (None, 1):
        lines.append(f"At most {done['max_rows_per_patient']:,} rows of a patient are kept, drawn at random.")
    lines += [f"Left out: {count:,} {why}" for why, count in done["left_out"].items()]
    if done["seeded"]:
        lines.append("Note: the rows kept were drawn with a chosen seed. For tests and studies only.")
    return [*lines, "The index contains exact data and stays with the custodian."]


SHOWN = 20


@click.command()
@click.argument("path", metavar="INDEX")
@flag("--epsilon", "E", "Privacy cost (epsilon) of the whole catalogue.", required=True)
@flag("-o --out", "OUT", "The release folder to write [default: print the catalogue].")
@flag("--max-size", "N", "Largest number of items of an itemset; the sizes share epsilon.",
      type=click.IntRange(min=1), default=2)  # fmt: skip
@flag("--contributions", "N", "A patient is counted in at most N itemsets of each size.", type=click.IntRange(min=1),
      default=10)  # fmt: skip
@flag("--threshold", "N", "Noisy counts below N are not listed; public [default: noise alone is rarely listed].",
      type=click.IntRange(min=1))  # fmt: skip
@flag("--quasi-identifiers", "NAME[,NAME…]",
      "Quasi-identifiers whose values take part; their domains must be public.", callback=commas)  # fmt: skip
@user_option
@ledger_option
@formats_option
@switch("--dry-run", "Print the price and the first threshold; nothing is charged.")
@switch("--yes", "Pay even if hardly any count can reach the threshold, or nothing public tells.")
@json_option
def itemsets(path: str, out: str | None, as_json: bool, **flags: Any) -> None:
    """List which health terms of INDEX are frequent, alone and together, with noise that protects each patient.

    The public vocabulary and noisy counts, never exact ones, decide what is listed; the whole catalogue is paid
    once. Its cost, and the smallest noisy count of a listed term, are printed first. The same catalogue again
    is free.

    \b
    Examples:
      leeward itemsets INDEX --epsilon 1 -o catalogue
      leeward itemsets INDEX --epsilon 1 --max-size 3 --quasi-identifiers sex --threshold 50 -o catalogue

    Exit status: 0 done; 2 bad input; 3 the budget does not suffice; 4 verification failed (nothing is shared).
    """
    from leeward.runs.itemsets import itemsets as run

    found = run(path, out, tell=lambda text: click.echo(f"leeward: {text}", err=True), **flags)
    if as_json:
        print_json(found)
        return
    if flags["dry_run"]:
        print_lines("dry run: nothing was charged.")
        return
    listed = found["itemsets"]
    lines = [
        f"{len(listed):,} itemsets (epsilon {found['epsilon']:g} for each patient; {found['remaining']:g} left)."
    ]
    lines += [f"  {each['count']:>10,}  {' & '.join(each['items'])}" for each in listed[:SHOWN]]
    if len(listed) > SHOWN:
        lines.append("  … (--json prints all)")
    if out is not None:
        lines += [
            f"For the recipient: {Path(out) / 'share'}",
            f"Report:            {Path(out) / 'custody' / 'report.html'}",
        ]
    print_lines(*lines)


@click.command()
@click.argument("index", metavar="INDEX")
@flag("--allot", "NAME=E", "Let a user spend at most E, within the cap for all. Repeatable.", multiple=True)
@flag("--allot-project", "NAME=E", "Let a project spend at most E, whoever asks. Repeatable.",
      multiple=True)  # fmt: skip
@flag("--accept-restored", "REASON",
      "Continue with an older copy of the ledger because the newest is lost. What is known to be spent "
      "stays spent; the log keeps REASON.")  # fmt: skip
@flag("--move-to", "URL", "Move the budget, with everything that was spent, from INDEX to a database.")
@ledger_option
@json_option
def budget(index: str, as_json: bool, **flags: Any) -> None:
    """Show the budget of INDEX and what was spent; change allotments; move to another ledger.

    A budget never refills. Allotments can be changed, but not below what was spent. Users without one spend nothing,
    unless the index was made with --default-allotment all.

    \b
    Examples:
      leeward budget INDEX
      leeward budget INDEX --allot ann=1 --allot bob=0.5
      leeward budget INDEX --move-to postgresql://leeward@host/ledger
    """
    from leeward.queries.answer.api import budget as run

    flags |= {name: dict(_pair(text) for text in flags[name]) for name in ("allot", "allot_project")}
    found = run(index, **flags)
    at = "" if found["delta"] is None else f" (zCDP, at delta {found['delta']:g})"
    spent = f"epsilon {found['spent']:g} of {found['total']:g} spent{at}, for each {found['unit']}"
    lines = [found["ledger"], f"  {spent}; one more answer may cost {found['remaining']:g}"]
    for each in found["allotments"]:
        name = each.get("user") or f"project {each['project']}"
        lines.append(f"  {name}: {each['left']:g} left of {each['most']:g}")
    print_result(as_json, found, lines)


def _pair(text: str) -> tuple[str, str]:
    user, equals, epsilon = text.rpartition("=")
    if not equals:
        raise BadInput(f"--allot takes NAME=E, for example ann=0.5; got {text}.")
    return user, epsilon


@click.command()
@click.argument("index", metavar="INDEX")
@ledger_option
@flag("--expect", "HASH", "The `head` that an earlier audit printed; the log must contain it.")
@json_option
def audit(index: str, ledger: str | None, expect: str | None, as_json: bool) -> None:
    """Check the ledger of INDEX: its log's chain of hashes, its accounts, its caps, its stored answers.

    Keep the printed head out of reach of everybody who can write to the ledger: a rewritten log lacks it.

    \b
    Examples:
      leeward audit INDEX
      leeward audit INDEX --expect 5f2b…
      leeward audit INDEX --ledger postgresql://leeward@host/ledger --json

    Exit status: 0 everything agrees; 4 something does not.
    """
    from leeward.queries.answer.api import audit as run

    outcome = run(index, expect=expect, ledger=ledger)
    lines = [check_line(each) for each in outcome.checks]
    lines += [f"spent   epsilon {outcome.spent:g} of {outcome.total:g}", f"head    {outcome.head}"]
    print_result(as_json, outcome.to_json(), lines)
    if not outcome.passed:
        raise VerificationFailed("the ledger is inconsistent; stop querying this index.")
