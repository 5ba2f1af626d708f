"""Commands on data: `leeward demo`, `profile`, `split`, `vocabulary`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leeward.cli.options import flag, json_option, print_lines, print_result, with_source
from leeward.cli.telling import format_notice, tell
from leeward.errors import BadInput

PATIENTS = 300
INTERPRETED = 1_000
"""Up to so many patients kernels run as plain Python: compiling them would take longer."""

COHORT_SEED = 1
"""Seed of the made-up cohort; the release itself is not seeded."""

NEXT = """
Kernels ran as plain Python. The first run of `leeward demo --patients 5000` or on data of your own compiles about
a hundred of them, once for all runs: one to two minutes."""


@click.command()
@flag("-o --out", None, "The release folder to write.", default="leeward-demo")
@flag("--patients", "N", "Number of made-up patients.", type=click.IntRange(min=100), default=PATIENTS)
@json_option
def demo(out: str, patients: int, as_json: bool) -> None:
    """Release a made-up cohort by disassociation, and print where its report is.

    Up to 1,000 patients are released within seconds, without compiling anything.

    \b
    Examples:
      leeward demo
      leeward demo --patients 5000 -o somewhere
    """
    from tempfile import TemporaryDirectory

    from leeward.cohort.readers import read
    from leeward.release.folder import check_out
    from leeward.runs.protect import method_of, protect
    from leeward.synthetic import write_codes

    check_out(Path(out))
    interpreted = patients <= INTERPRETED and sys.argv[1:2] == ["demo"] and "numba" not in sys.modules
    if interpreted:  # the process is this command's alone; Numba looks when it is imported
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    with TemporaryDirectory() as folder:
        events = Path(folder) / "made-up-cohort.csv"
        write_codes(events, patients, seed=COHORT_SEED)
        cohort = read(events)
    method = method_of(
        {
            "name": "disassociation", "k": 5, "m": 2, "utility": {"policy": "hierarchy", "level": 1},
            "partitioning": "fitted",  # a trial of all takes plain Python as long as the rest
        }
    )  # fmt: skip
    tell(protect(cohort, method, out), as_json)
    if interpreted and not as_json:
        click.echo(NEXT)


CODES_SHOWN = 10


@click.command()
@click.argument("path", metavar="COHORT")
@with_source
@flag(
    "--k",
    None,
    "Patients are at risk if fewer than k share their codes.",
    type=click.IntRange(min=2),
    default=5,
)
@json_option
def profile(source: Any, k: int, as_json: bool) -> None:
    """Describe COHORT: its content, its oddities (with row numbers), and the risk of releasing it unchanged.

    \b
    Examples:
      leeward profile events.csv --patient pid --code icd
      leeward profile claims.csv --code diag_1,diag_2,diag_3 --missing '?' --json
    """
    from leeward.runs.profile import profile as figures_of
    from leeward.runs.profile import refusals
    from leeward.runs.progress import watch
    from leeward.runs.specs import read_source

    with watch(None) as say:
        say("Reading")
        cohort = read_source(replace(source, accept_unknown=True))  # a profile lists them
        say("Counting patients who share codes")
        figures = figures_of(cohort, k=k)
        figures["refused"] = [] if source.accept_unknown else refusals(cohort)
    print_result(as_json, figures, profile_lines(figures))


def profile_lines(figures: Mapping[str, Any]) -> list[str]:
    from leeward.arrays import count_noun

    source, codes, k = figures["source"], figures["codes"], figures["k"]
    vocabulary = f" ({source['vocabulary']})" if source["vocabulary"] else ""
    counts = (count_noun(noun, source[f"{noun}s"]) for noun in ("patient", "event"))
    lines = [
        f"{source['name']}: {', '.join(counts)}, {count_noun('distinct code', source['codes'])}{vocabulary}",
        f"Codes per patient: mean {codes['mean']:.2f}, median {codes['median']:g}, most {codes['most']:,}",
        "",
        "Notices" if figures["notices"] else "Notices: none",
        *(f"  {format_notice(notice)}" for notice in figures["notices"]),
        *(f"  Commands that release this file will refuse it. {why}" for why in figures["refused"]),
        "",
        f"Most frequent codes (of {source['codes']:,}; {codes['below_k']:,} occur in fewer than {k} patients)",
    ]
    lines += [
        f"  {row['code']:<12} {row['patients']:>10,}  {row['share']:6.1%}  {row['name']}".rstrip()
        for row in codes["frequent"][:CODES_SHOWN]
    ]
    if figures["sensitive"] is not None:
        none = "" if figures["sensitive"] else ": none"
        lines += ["", f"Commonly sensitive codes (`--sensitive standard` keeps them apart){none}"]
    lines += [
        f"  {row['topic']:<32} {row['patients']:>10,} patients  {count_noun('code', row['codes'])}"
        for row in figures["sensitive"] or ()
    ]
    lines += ["", f"Risk if released unchanged: patients whom up to m known codes find among fewer than {k}"]
    for row in figures["risk"]["by_m"]:
        about = "     " if row["patients_exact"] else "about"
        unique = f"{row['unique']:,} ({row['unique_share']:.1%})"
        few = f"{row['below_k']:>10,}  {row['below_k_share']:6.1%}"
        lines.append(f"  m = {row['m']} {about} {few}   unique: {unique}")
    return lines


@click.command()
@click.argument("source", metavar="TABLE")
@flag("-o --out", "FOLDER", "The folder to write; must not exist yet.", required=True)
@flag("--parts", None, "Number of parts.", required=True, type=click.IntRange(min=2))
@flag("--patient", "COL", "The column of patients [default: one row is one patient].")
def split(source: str, out: str, parts: int, patient: str | None) -> None:
    """Cut TABLE (CSV or Parquet) into parts by patient, for a table that is larger than memory.

    All rows of a patient are in one part, drawn at random. Release each part separately: no patient is in two parts, so
    the guarantee of the releases holds for all of them together. The parts are patient data: remove them when done.
    Files of a folder must have compatible column types.

    \b
    Examples:
      leeward split events.csv --patient pid --parts 4 -o parts
      leeward disassociate parts/part-001.parquet --patient pid --code icd --k 5 --m 2 -o release-1
    """
    from leeward.runs.split import split as cut

    rows = cut(source, out, parts, patient)
    print_lines(f"{sum(rows):,} rows in {parts} parts of {min(rows):,} to {max(rows):,} rows in {out}.")


@click.group()
def vocabulary() -> None:
    """Manage your own vocabularies, in your data directory.

    \b
    Examples:
      leeward vocabulary add phecode phecode_map.csv
      leeward vocabulary list
    """


@vocabulary.command()
@click.argument("words", metavar="[KIND] FILE|FOLDER", nargs=-1, required=True)
def add(words: tuple[str, ...]) -> None:
    """Check FILE and keep a copy as the vocabulary of its KIND, replacing the last one.

    \b
    phecode    a phecode map (CSV, gz too): a column of codes, `phecode`, and where present phenotype, category
               and exclusion range
    hierarchy  CSV `node,parent`, or lines `leaf;parent;…;*`; then --vocabulary hierarchy
    omop       CONCEPT_ANCESTOR of an OMOP vocabulary (or a folder with it); OMOP sources use it automatically
    snomed     a folder with an RF2 snapshot of SNOMED CT: its is-a as a tree, and its names; then --vocabulary snomed,
               and FHIR and Synthea sources use it automatically

    A folder needs no KIND. LEEWARD_HOME names another data directory.

    \b
    Examples:
      leeward vocabulary add phecode phecode_map.csv
      leeward vocabulary add hierarchy codes.csv
      leeward vocabulary add SnomedCT_InternationalRF2
    """
    from leeward.vocabulary import registry, rf2

    if len(words) > 2:
        raise click.UsageError("give one KIND and one FILE or FOLDER.")
    kind, file = words if len(words) == 2 else (None, words[0])
    folder = Path(file)
    if kind is None and folder.is_dir():
        kind = "snomed" if rf2.is_release(folder) else "omop"
    elif kind is None:
        raise BadInput(f"{file}: say which KIND it is: {', '.join(registry.KINDS)}.")
    if kind == "omop":
        file = _ancestors_in(folder)
    what, there = ("folder", folder.is_dir()) if kind == "snomed" else ("file", Path(file).is_file())
    if not there:
        raise BadInput(f"{file}: there is no such {what}.")
    click.echo(f"Kept as {registry.add(kind, file)}.")


def _ancestors_in(folder: Path) -> str:
    """CONCEPT_ANCESTOR in the folder; a file is that file."""
    if not folder.is_dir():
        return str(folder)
    for each in sorted(folder.iterdir()):
        if each.name.lower().startswith("concept_ancestor.csv"):
            return str(each)
    raise BadInput(f"{folder}: holds neither OMOP's CONCEPT_ANCESTOR.csv nor SNOMED's sct2_Concept_*.txt.")


@vocabulary.command("list")
def list_() -> None:
    """List the vocabularies that were added, and the built-in ones.

    \b
    Example:
      leeward vocabulary list
    """
    from leeward.vocabulary import VOCABULARIES, registry

    for name in VOCABULARIES:
        click.echo(f"{name:<14} built in")
    for kind, path in registry.list_all().items():
        click.echo(f"{kind:<14} {path}")


@vocabulary.command()
@click.argument("kind", metavar="KIND")
def remove(kind: str) -> None:
    """Delete the added vocabulary of a KIND.

    \b
    Example:
      leeward vocabulary remove phecode
    """
    from leeward.vocabulary import registry

    click.echo(f"Removed {registry.remove(kind)}.")
