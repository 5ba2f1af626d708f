"""What a release is worth: `leeward show`, `verify`, `measure`, `estimate`, `dossier`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from leeward.cli.options import (
    as_released,
    commas,
    flag,
    json_option,
    print_json,
    print_lines,
    print_result,
    read_like,
    split_pairs,
    switch,
    with_source,
)
from leeward.cli.telling import check_line, label_lines, print_styled, section_lines, summary_lines
from leeward.errors import BadInput, VerificationFailed


@click.command()
@click.argument("out", metavar="OUT")
@json_option
def show(out: str, as_json: bool) -> None:
    """Show what the release folder OUT is safe against and what not, what it cost, and who may have it.

    \b
    Examples:
      leeward show release
      leeward show release/share --json
    """
    from leeward.release import Release
    from leeward.report.summary import headline
    from leeward.runs.reports import summary_of

    release = Release.open(out)
    measures = release.custody_json("measures.json") or {}
    summary = summary_of(release, measures if "source" in measures else None)
    verification = release.custody_json("verification.json")
    if as_json:
        return print_json(
            {
                "method": release.method,
                "records": release.records,
                "seeded": release.seeded,
                "files": list(release.names()),
                "verified": None if verification is None else verification["passed"],
                "summary": summary.to_json(),
            }
        )
    names = release.names()
    files = [name for name in names if name.removesuffix(".csv") + ".parquet" not in names]
    copied = " (each also as CSV)" if len(files) < len(names) else ""
    lines = [
        f"{headline(release)}.",
        *summary_lines(summary),
        *label_lines("Files", ", ".join(files) + copied),
    ]
    if release.seeded:
        lines += label_lines("Seeded", "for tests and studies only; do not share it.", "red")
    elif release.custody is None:
        lines += label_lines("Who", "this is only the share, as the recipient has it.")
    else:
        who = f"{release.share} is for the recipient; {release.custody} stays with you."
        lines += label_lines("Who", who)
    if verification is not None:
        word = "passed" if verification["passed"] else "FAILED"
        lines += label_lines("Verified", f"{word} when it was made; `leeward verify {out}` checks it again.")
    print_styled(lines)


@click.command()
@click.argument("out", metavar="OUT")
@flag("--source path", "COHORT",
      "The original, to check also that nothing is missing [default: the one that custody/spec.yaml "
      "names].")  # fmt: skip
@flag("--population", "COHORT",
      "The population of a k-map; read like --source [default: the one that custody/spec.yaml names].")  # fmt: skip
@flag("--index", "INDEX", "For a catalogue of itemsets: the index whose ledger paid for it.")
@flag("--ledger", "URL", "Database with the budget of --index [default: the ledger in INDEX].",
      envvar="LEEWARD_LEDGER")  # fmt: skip
@flag("--earlier", "MASTER",
      "An earlier version of OUT (`leeward refresh`): check also that no row of it changed or is gone.")  # fmt: skip
@switch("--all every", "Print every check, and what no check tells.")
@with_source
@json_option
def verify(
    out: str, source: Any, population: str | None, index: str | None, ledger: str | None, earlier: str | None,
    every: bool, as_json: bool,
) -> None:  # fmt: skip
    """Check the guarantee of the release OUT from its files alone, without trusting how it was made.

    \b
    Examples:
      leeward verify release
      leeward verify release/share --all
      leeward verify release --source events.csv --patient pid --code icd --json
      leeward verify catalogue --index INDEX
      leeward verify master-2/share --earlier master/share

    Exit status: 0 every check passed; 4 at least one failed.
    """
    from leeward.release import Release
    from leeward.runs.progress import watch
    from leeward.runs.protect import verify as check
    from leeward.runs.writing import refusal

    release = Release.open(out, compare=False)
    release.require_format()
    is_catalogue = release.method == "notes"
    if index is not None and not is_catalogue:
        raise BadInput(f"--index is for a catalogue of itemsets; {out} is a release of {release.method}.")
    source = as_released(release, source)
    everyone = read_like(source, population)
    if source is None and not is_catalogue and "versions" not in release.manifest:
        source, everyone = _find_sources(release, population)
    answers = None
    if index is not None:
        from leeward.runs.itemsets import read_stored_answers

        answers = read_stored_answers(index, ledger)
    with watch(None) as say:
        say("Reading the source")
        with _sources_to_verify(release, source, everyone) as (cohort, people):
            say("Checking")
            outcome = check(out, cohort, people, answers, earlier)
    print_result(as_json, outcome.to_json(), outcome_lines(outcome, every))
    if not outcome.passed:
        raise VerificationFailed(f"{out}: {refusal(outcome)} Do not share this release.")


NO_LEDGER = (
    "note    The ledger was not checked (--index INDEX), so it is unknown whether the counts contain noise, "
    "and whether they, epsilon and the thresholds are those that were paid for."
)


def outcome_lines(outcome: Any, every: bool) -> list[str]:
    """The outcome in one line, with warnings and failed checks; every check where asked for."""
    from leeward.arrays import count_noun

    lines = [*map(check_line, outcome.checks if every else outcome.failures)]
    lines += [f"note    {warning}" for warning in outcome.warnings]
    if every:
        return lines + [f"unchecked  {sentence}" for sentence in outcome.unchecked]
    is_catalogue = outcome.method == "notes"
    held = "the ledger's answers" if is_catalogue else "the source"
    compared = f"compared with {held}" if outcome.with_source else f"from the files alone, without {held}"
    if is_catalogue and not outcome.with_source:
        lines.append(NO_LEDGER)
    if outcome.passed:
        untold = f"{count_noun('thing', len(outcome.unchecked))} that no check can settle"
        lines.append(f"Passed: {len(outcome.checks)} checks, {compared}; {untold} (--all lists them).")
    return lines


def _find_sources(release: Any, path: str | None) -> tuple[Any, Any]:
    """Source and population (or the file `path`, read like it) that `custody/spec.yaml` names and that still exist;
    prints which source, or why there is none."""
    from leeward.runs.specs import read_custody_spec

    spec, file = read_custody_spec(release), f"{release.custody}/spec.yaml"
    source = None if spec is None else spec.source
    why = _why_missing(source, file)
    text = f"source {source.path}, as named in {file}." if source is not None else ""
    if why:
        text = f"{why}; checks that need the source are skipped (--source COHORT)."
    click.echo(f"leeward: {text}", err=True)
    people = None if spec is None else spec.population
    if path is not None:
        people = read_like(people, path)
    elif people is not None and _why_missing(people, file):
        people = None
    return None if why else source, people


@contextmanager
def _sources_to_verify(release: Any, source: Any, population: Any) -> Iterator[tuple[Any, Any]]:
    """The cohorts of a source and of a population, None for none; on the disk where memory is too little for them and
    the release's method goes by parts. BadInput where memory is too little and it does not."""
    from leeward.cohort.readers.copies import copies
    from leeward.runs.memory import require_memory_to_verify
    from leeward.runs.protect import method_of
    from leeward.runs.specs import read_custody_spec, read_source
    from leeward.runs.stored import can_go_by_parts, source_fits, sources_of, store_sources

    spec = None if source is None else read_custody_spec(release)
    with tempfile.TemporaryDirectory(prefix="leeward-verify-") as work, copies():
        stored = None
        if spec is not None:
            method: Any = method_of(spec.method)
            asked = replace(spec, source=source, population=population)
            if can_go_by_parts(asked, method) and not source_fits(method.name, sources_of(asked)):
                stored = store_sources(source, population, Path(work))
        if stored is None:
            require_memory_to_verify(release, source)
            stored = source and read_source(source), population and read_source(population)
        yield stored


def _why_missing(source: Any, file: str) -> str:
    """Why there is nothing to read; empty where there is something."""
    if source is None:
        return "no source"
    if source.path is None:
        return f"the source named in {file} was given in memory"
    there = "://" in source.path or Path(source.path).exists()
    return "" if there else f"the source named in {file} no longer exists"


REPORT_ONLY = ("At a glance", "In plain words")
"""Sections of the report that say nothing new beside the summary."""


@click.command()
@click.argument("out", metavar="OUT")
@flag("--source path", "COHORT", "The source, with the input flags below.", required=True)
@flag("--population", "COHORT", "The population of a k-map; read like --source.")
@with_source
@flag("--measure wanted", "are,mre", "[default: all that apply]", callback=commas)
@json_option
def measure(out: str, source: Any, population: str | None, wanted: tuple[str, ...], as_json: bool) -> None:
    """Measure what the release OUT lost, against its source COHORT. The figures are for the custodian only.

    \b
    Examples:
      leeward measure release --source events.csv --patient pid --code icd
      leeward measure release --source events.csv --patient pid --code icd --measure are --json
    """
    from leeward.release import Release
    from leeward.runs.measure import measure as figures_of
    from leeward.runs.profile import source_facts
    from leeward.runs.progress import watch
    from leeward.runs.reports import sections_of, summary_of
    from leeward.runs.specs import read_source

    release = Release.open(out)
    source = as_released(release, source)
    with watch(None) as say:
        say("Reading the source")
        cohort = read_source(source)
        everyone = None if population is None else read_source(read_like(source, population))
        say("Measuring")
        figures = figures_of(release, cohort, wanted, everyone)
    own = sections_of(release.method)
    if as_json or own is None:
        return print_json(figures)
    measures = {"source": source_facts(cohort), "notices": [], "method": {}, **figures}
    print_styled([*summary_lines(summary_of(release, measures)), ""])
    for section in own(release, measures, {"checks": [], "passed": True}):
        if section.title not in REPORT_ONLY:
            print_lines(*section_lines(section))


@click.command()
@click.argument("out", metavar="RELEASE")
@click.argument("sets", metavar="CODES…", nargs=-1, required=True)
@flag("--prior", None,
      "Disassociation: assumption on how often a code of an item chunk occurs in its cluster [default: occupancy].",
      type=click.Choice(["occupancy", "cubic", "graded", "uniform", "one"]))  # fmt: skip
@flag("--where wanted", "COLUMN=LABEL", "Only patients with these demographics, such as age=70-79. Repeatable.",
      multiple=True)  # fmt: skip
@json_option
def estimate(
    out: str, sets: tuple[str, ...], prior: str | None, wanted: tuple[str, ...], as_json: bool
) -> None:
    """Estimate how many patients have all of CODES (joined by commas) in RELEASE. A generalized label, such as
    (410,411), counts patients with any of its codes.

    The low and high bounds hold for the original data. The expected count of a disassociated release depends on
    the prior; for released records, it is the count that they show.

    \b
    Examples:
      leeward estimate release/share 250.00,401.9
      leeward estimate release/share 250.00 250.00,401.9 --json
      leeward estimate constrained/share '(250.00,250.01),401.9'
      leeward estimate by-age/share 250.00 --where age=70-79 --where sex=Female
    """
    from leeward.methods.disassociation.measures.estimates import DEFAULT
    from leeward.release import Release
    from leeward.runs.estimate import codes_of, estimates

    queries = [codes_of(text) for text in sets]
    where, release = _where(wanted), Release.open(out)
    if prior is None and release.method == "disassociation":
        prior = DEFAULT
    found = list(zip(queries, estimates(release, queries, prior, where), strict=True))
    asked: dict[str, Any] = {key: value for key, value in {"prior": prior, "where": where}.items() if value}
    asked["estimates"] = [
        {"codes": codes, "low": each.low, "expected": each.expected, "high": each.high}
        for codes, each in found
    ]
    lines = (
        f"{','.join(codes)}: {each.expected:.1f} ({each.low:,} to {each.high:,}) patients"
        for codes, each in found
    )
    print_result(as_json, asked, lines)


def _where(wanted: tuple[str, ...]) -> dict[str, str]:
    """`COLUMN=LABEL` as a mapping. BadInput for another form, or a column twice."""
    pairs = split_pairs(wanted, "=")
    if not all(map(all, pairs)):
        raise BadInput("--where: write COLUMN=LABEL, for example --where age=70-79.")
    if len(dict(pairs)) < len(pairs):
        raise BadInput("--where: a column is given twice; give each one label.")
    return dict(pairs)


NO_MATCH = 4


@click.command()
@click.argument("release", metavar="OUT")
@flag("-o --out", "DOSSIER", "The folder to write; must not exist yet.")
@flag("--plan", "PLAN.yaml", "The recipient's plan: its analyses are measured, its threshold stated.")
@flag("--context", "CONTEXT.yaml", "What people declare: purpose, controls, governance, conclusion.")
@flag("--explored", "FOLDER", "Folder of explore or compare, for the alternatives.")
@flag("--for audience", None, "The recipient's copy has no figures of the source.",
      type=click.Choice(["expert", "recipient"]), default="expert")  # fmt: skip
@flag("--sign private", "KEY.pem", "Sign with this private Ed25519 key; with --check, once it matches.")
@flag("--check checked", "DOSSIER", "Check a dossier against OUT instead of writing one.")
@flag("--key", "PUBLIC.pem", "With --check: the public key whose signature is expected.")
@json_option
def dossier(
    release: str, out: str | None, checked: str | None, private: str | None, key: str | None, as_json: bool,
    **flags: Any,
) -> int:  # fmt: skip
    """Write the technical evidence on the release OUT (measured, declared or open) for the expert who decides.

    A release that fails verification today gets no dossier (exit status 4). With --check: status 4 if a byte differs.

    \b
    Examples:
      leeward dossier release --plan plan.yaml --context context.yaml -o dossier
      leeward dossier release --check dossier --key expert.pem
    """
    from leeward.runs.dossier import check
    from leeward.runs.dossier import dossier as write

    if checked is not None:
        found = check(checked, release, key=key, private=private)
        state = "matches" if found.matches else "does not match"
        lines = [f"The dossier {state}; {found.figures} figures were looked up.", *found.faults]
        if found.signed is not None:
            lines.append(f"The signature does {'' if found.signed else 'not '}match the key.")
        print_result(as_json, {"matches": found.matches, **asdict(found)}, lines)
        return 0 if found.matches else NO_MATCH
    if out is None:
        raise click.UsageError("name the folder to write with -o, or a dossier to check with --check.")
    made = write(release, out, key=private, **flags)
    opened = f"Dossier: {made.folder / 'dossier.html'} ({len(made.open_items)} open items)"
    print_result(as_json, dict(made.content), [opened, *(f"  open: {each}" for each in made.open_items)])
    return 0
