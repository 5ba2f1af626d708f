"""`leeward verify`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import json_option, print_json, print_lines, with_source


@click.command()
@click.argument("out", metavar="OUT")
@click.option(
    "--source",
    "path",
    metavar="COHORT",
    help="The original, to check also that nothing is missing [default: the one that custody/spec.yaml names].",
)
@click.option(
    "--population",
    metavar="COHORT",
    help="The population of a k-map; read like --source [default: the one that custody/spec.yaml names].",
)
@click.option(
    "--index", metavar="INDEX", help="For a catalogue of itemsets: the index whose ledger paid for it."
)
@click.option(
    "--ledger",
    "url",
    metavar="URL",
    envvar="LEEWARD_LEDGER",
    help="Database with the budget of --index [default: the ledger in INDEX].",
)
@click.option("--all", "every", is_flag=True, help="Print every check, and what no check tells.")
@with_source
@json_option
def verify(
    out: str,
    source: Any,
    population: str | None,
    index: str | None,
    url: str | None,
    every: bool,
    as_json: bool,
) -> None:
    """Check the guarantee of the release OUT from its files alone, without trusting how it was made.

    \b
    Examples:
      leeward verify release
      leeward verify release/share --all
      leeward verify release --source events.csv --patient pid --code icd --json
      leeward verify catalogue --index INDEX

    Exit status: 0 every check passed; 4 at least one failed.
    """
    from dataclasses import replace

    from leeward.cli.options import as_released
    from leeward.errors import BadInput, VerificationFailed
    from leeward.release import Release
    from leeward.runs.memory import require_memory_to_verify
    from leeward.runs.protect import read_source, refusal, watch
    from leeward.runs.protect import verify as check

    release = Release.open(out, compare=False)
    release.require_format()
    source = as_released(release, source)
    everyone = None if source is None or population is None else replace(source, path=population)
    if index is not None and release.method != "notes":
        raise BadInput(f"--index is for a catalogue of itemsets; {out} is a release of {release.method}.")
    if source is None and release.method != "notes":
        source = _find_source(release)
        everyone = _find_population(release, population)
    require_memory_to_verify(release, source)
    with watch(None) as say:
        say("Reading the source")
        cohort = None if source is None else read_source(source)
        say("Checking")
        outcome = check(
            out, cohort, None if everyone is None else read_source(everyone), _read_stored_answers(index, url)
        )
    if as_json:
        print_json(outcome.to_json())
    else:
        print_lines(*outcome_lines(outcome, every))
    if not outcome.passed:
        raise VerificationFailed(f"{out}: {refusal(outcome)} Do not share this release.")


def _read_stored_answers(index: str | None, url: str | None) -> list[tuple[str, str]] | None:
    """What the ledger of an index keeps; None where no index is named."""
    if index is None:
        return None
    from leeward.runs.itemsets import read_stored_answers

    return read_stored_answers(index, url)


NO_LEDGER = (
    "note    The ledger was not seen (--index INDEX): nothing here tells whether the counts hold noise, or whether "
    "they, epsilon and the thresholds are those that were paid for."
)


def outcome_lines(outcome: Any, every: bool) -> list[str]:
    """The outcome in one line, with warnings and failed checks; every check where asked for."""
    marks = {True: "passed", False: "FAILED"}
    shown = outcome.checks if every else outcome.failures
    lines = [f"{marks[each.passed]}  {each.name}: {each.detail}" for each in shown]
    lines += [f"note    {warning}" for warning in outcome.warnings]
    if every:
        return lines + [f"unchecked  {sentence}" for sentence in outcome.unchecked]
    held = "the ledger's answers" if outcome.method == "notes" else "the source"
    compared = f"compared with {held}" if outcome.with_source else f"from the files alone, without {held}"
    if outcome.method == "notes" and not outcome.with_source:
        lines.append(NO_LEDGER)
    if outcome.passed:
        n = len(outcome.unchecked)
        untold = f"{n} things that no check tells" if n > 1 else "1 thing that no check tells"
        lines.append(f"Passed: {len(outcome.checks)} checks, {compared}; {untold} (--all lists them).")
    return lines


def _find_source(release: Any) -> Any:
    """The source that `custody/spec.yaml` names, if it still exists; prints which one, or why there is none."""
    from pathlib import Path

    from leeward.release.spec import load

    spec_file = None if release.custody is None else release.custody / "spec.yaml"
    if spec_file is None or not spec_file.is_file():
        click.echo(
            "leeward: no source; checks that need the original are left out (--source COHORT).", err=True
        )
        return None
    source = load(spec_file).source
    gone = "was given in memory" if source.path is None else "no longer exists"
    if source.path is None or ("://" not in source.path and not Path(source.path).exists()):
        click.echo(
            f"leeward: the source named in {spec_file} {gone}; checks that need the original are left out "
            "(--source COHORT).",
            err=True,
        )
        return None
    click.echo(f"leeward: source {source.path}, as named in {spec_file}.", err=True)
    return source


def _find_population(release: Any, path: str | None) -> Any:
    """The population that `custody/spec.yaml` names, or the file `path` read in its way."""
    from dataclasses import replace
    from pathlib import Path

    from leeward.release.spec import load

    spec_file = None if release.custody is None else release.custody / "spec.yaml"
    named = load(spec_file).population if spec_file is not None and spec_file.is_file() else None
    if named is None or path is not None:
        return named if named is None or path is None else replace(named, path=path)
    return named if named.path is not None and Path(named.path).exists() else None
