"""Flags that commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from leeward.errors import BadInput
from leeward.texts import for_terminal

F = TypeVar("F", bound=Callable[..., Any])

OF_PATIENTS = ("demographics", "payload", "sensitive_columns")
"""Parameters that name columns of the patients."""

INPUT = (
    "patient",
    "code",
    "age",
    "birth",
    "visit",
    "date",
    "vocabulary",
    "vocabulary_column",
    "accept_unknown",
    "code_separator",
    "missing",
    "date_format",
    "lines",
    "source_format",
    "query",
    "table",
    "events",
    "concepts",
    "attributes",
)
"""Names of the input flags, as they reach a command."""

OTHERS = (
    "vocabulary", "accept_unknown", "code_separator", "date_format", "source_format", "query", "table", "events",
    "concepts",
)  # fmt: skip
"""Those among them that do not name a column."""


DATE_FORMAT = "How dates are written, such as %m/%d/%Y [default: 2010-04-03, 20100403 or 03.04.2010]."


def commas(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """`a,b,c` as a tuple."""
    parts = tuple(part.strip() for part in (value or "").split(","))
    if value and not all(parts):
        raise click.BadParameter("a name between the commas is empty.", context, parameter)
    return parts if value else ()


def _stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


table_option: Callable[[F], F] = click.option(
    "--table",
    metavar="NAME",
    help="The sheet of a workbook, the file in a .zip or the table of a database, where there are several.",
)

input_options: Callable[[F], F] = _stack(
    click.option("--patient", metavar="COL", help="Column of the patient's identifier [default: patient]."),
    click.option(
        "--code",
        metavar="COL[,COL…]",
        callback=commas,
        help="Column of the code; several columns for wide form [default: code].",
    ),
    click.option("--age", metavar="COL", help="Column of the age at the event, in years."),
    click.option("--birth", metavar="COL", help="Column of the date of birth: with --date it gives the age."),
    click.option("--visit", metavar="COL", help="Column of the visit."),
    click.option("--date", metavar="COL", help="Column of the date."),
    click.option(
        "--vocabulary",
        metavar="icd9|icd10|icd|none|FILE.csv",
        help="What the codes are: icd is both, code by code; a file is a hierarchy with the columns node,parent "
        "[default: ICD codes are recognised].",
    ),
    click.option("--vocabulary-column", metavar="COL", help="Column with the vocabulary of each row's code."),
    click.option(
        "--accept-unknown",
        is_flag=True,
        help="Keep codes that are not of the vocabulary as written, even above 5 % of the entries.",
    ),
    click.option(
        "--code-separator",
        metavar="TEXT",
        help="What stands between the codes where a cell holds several, such as ','.",
    ),
    click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="A text that means 'no code', such as '?'. Repeatable.",
    ),
    click.option("--date-format", metavar="FORMAT", help=DATE_FORMAT),
    click.option("--lines", is_flag=True, help="One record per line, codes separated by blanks or commas."),
    click.option(
        "--source-format",
        metavar="omop|fhir|synthea|i2b2|…",
        help="Format of a folder or database [default: recognised by the names of its files or tables].",
    ),
    click.option("--query", metavar="SQL", help="Of a database: SELECT … or the name of a table."),
    table_option,
    click.option(
        "--events",
        metavar="KIND[,KIND…]",
        callback=commas,
        help="Events to read from OMOP (condition, drug, procedure, observation, measurement), Synthea (condition, "
        "drug, procedure, allergy) or i2b2 (prefixes of concepts) [default: diagnoses].",
    ),
    click.option(
        "--concepts", is_flag=True, help="OMOP: codes of CONCEPT, with their vocabulary, not concept ids."
    ),
    click.option(
        "--attributes",
        metavar="COL[,COL…]",
        callback=commas,
        help="Columns with attributes of the patients, such as sex.",
    ),
)
"""How to read a cohort, as the keyword arguments named in `INPUT`."""

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout."
)

out_option: Callable[[F], F] = click.option(
    "-o", "--out", required=True, metavar="OUT", help="The release folder to write; must not exist yet."
)

NATIVE_POOLS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where compiled libraries read how many threads they may start; they do so when they are imported."""


def _limit_threads(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Let `--threads` bound the libraries below as well."""
    if value is not None:
        before = {name: os.environ.get(name) for name in NATIVE_POOLS}
        os.environ.update(dict.fromkeys(NATIVE_POOLS, str(value)))

        def restore() -> None:
            for name, text in before.items():
                if text is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = text

        context.call_on_close(restore)
    return value


threads_option: Callable[[F], F] = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    callback=_limit_threads,
    help="Maximum number of threads [default: one per processor].",
)


def schema_option(what: str, schema: Callable[[], Mapping[str, Any]]) -> Callable[[F], F]:
    """`--schema`: print what `schema` returns and leave, before any argument is asked for."""

    def show(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            print_json(schema())
            context.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help=f"Print the JSON Schema of a {what}, for editors, and exit.",
    )


memory_option: Callable[[F], F] = click.option(
    "--allow-memory", is_flag=True, help="Run even where less memory is free than such a run needs."
)

run_options: Callable[[F], F] = _stack(
    out_option,
    click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True),
    threads_option,
    click.option(
        "--seed",
        type=int,
        metavar="N",
        help="For tests and studies only: the release is then marked as seeded and must not be shared.",
    ),
    click.option(
        "--format",
        "formats",
        metavar="parquet,csv",
        callback=commas,
        help="Parquet is always written; csv adds a copy.",
    ),
    click.option(
        "--measure", metavar="are,mre", callback=commas, help="What to measure [default: all that apply]."
    ),
    memory_option,
    json_option,
)
"""How to run: `-o`, `--engine`, `--threads`, `--seed`, `--format`, `--measure`, `--allow-memory`, `--json`."""


def _domains(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    from leeward.cli.flags import domains_of

    return domains_of(value)


domains_option: Callable[[F], F] = click.option(
    "--domains",
    multiple=True,
    metavar="NAME=FIRST..LAST|NAME=VALUE,VALUE|FILE.yaml",
    callback=_domains,
    help="Permissible values of a column, public; a file has them as in a spec's `source.domains`. Repeatable.",
)

table_options: Callable[[F], F] = _stack(
    click.option("--patient", metavar="COL", help="Column of the patient's identifier, never released."),
    click.option("--drop", metavar="COL[,COL…]", callback=commas, help="Columns to leave out."),
    domains_option,
    click.option(
        "--missing", "absent", metavar="TEXT", multiple=True, help="A text that means 'missing'. Repeatable."
    ),
    table_option,
    click.option("--date-format", metavar="FORMAT", help=DATE_FORMAT),
)
"""How to read a table with one row per patient."""


def with_source(function: F, *, also: tuple[str, ...] = ()) -> F:
    """Give a command one argument, `source`, made of its input flags (and of `path`, the cohort's file).

    `also` names input flags that reach the command too, and need no source.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, path: str | None, **kwargs: Any) -> Any:
        flags = {name: kwargs.pop(name) for name in INPUT}
        own = {name: flags[name] for name in also}
        if path is None:
            flags |= dict.fromkeys(also)
        return function(*args, source=source_of(path, **flags), **own, **kwargs)

    return input_options(wrapper)  # type: ignore[return-value]  # click hands the command back as a callable


def with_table(function: F) -> F:
    """Give a command one argument, `source`, made of the flags of a table with one row per patient."""

    @functools.wraps(function)
    def wrapper(
        *args: Any,
        path: str,
        patient: str | None,
        drop: tuple[str, ...],
        domains: dict[str, Any],
        absent: tuple[str, ...],
        table: str | None,
        date_format: str | None,
        **kwargs: Any,
    ) -> Any:
        from leeward.release.spec import SourceSpec

        source = SourceSpec(
            path=path,
            format="table",
            columns={} if patient is None else {"patient": patient},
            missing=absent,
            drop=drop,
            domains=domains or None,
            table=table,
            date_format=date_format,
        )
        return function(*args, source=source, **kwargs)

    return table_options(wrapper)  # type: ignore[return-value]  # click hands the command back as a callable


def with_patients(source: Any, wanted: tuple[str, ...], usual: tuple[str, ...]) -> Any:
    """The source with columns of the patients. A map names all its columns: the usual ones where none were named.

    A folder, and a format whose columns are fixed, takes only the patients' columns as an option.
    """
    from dataclasses import replace

    fixed = source.format not in (None, "events", "sql") or (
        not source.columns and Path(source.path).is_dir()
    )
    named = ("patient", "code") if set(source.columns) - {"patients"} else usual
    columns = {} if fixed else {**{name: name for name in named}, **source.columns}
    known = tuple(source.columns.get("patients", ()))
    return replace(source, columns={**columns, "patients": list(dict.fromkeys((*known, *wanted)))})


def as_released(release: Any, source: Any) -> Any:
    """A source given by flags, read as the release's own source was where that is a table (`drop`, `domains`), with
    the columns of the patients that the release has."""
    from dataclasses import replace

    from leeward.release.spec import load

    stated = release.parameters
    if source is not None and stated.get("demographics"):
        from leeward.methods import METHODS

        given = [
            stated.get(key) for key in OF_PATIENTS
        ]  # of any type: a damaged manifest is the verifier's to refute
        wanted = tuple(str(name) for names in given if isinstance(names, list | dict) for name in names)
        usual = METHODS[release.method].columns if release.method in METHODS else ()
        source = with_patients(source, wanted, usual)
    spec_file = None if release.custody is None else release.custody / "spec.yaml"
    if source is None or spec_file is None or not spec_file.is_file():
        return source
    known = load(spec_file).source
    return source if known.format != "table" else replace(known, path=source.path)


def source_of(path: str | None, *, missing: tuple[str, ...], lines: bool, **flags: Any) -> Any:
    """The `source:` of a spec from the input flags; None without a path.

    Raises
    ------
    BadInput
        Flags that contradict each other.
    """
    from leeward.release.spec import SourceSpec

    columns = columns_of(flags)
    if path is None:
        if columns or lines or missing or any(flags.get(name) for name in OTHERS):
            raise BadInput(
                "flags of the input (--patient, --code, …) need the cohort's file: give --source FILE."
            )
        return None
    if lines and columns:
        raise BadInput(
            "--lines reads files without columns; leave out --patient, --code and the other columns."
        )
    return SourceSpec(
        path=path,
        format=flags["source_format"],
        columns=columns,
        vocabulary=flags["vocabulary"],
        query=flags["query"],
        table=flags["table"],
        domains=flags["events"] or None,
        concepts=flags["concepts"],
        accept_unknown=flags["accept_unknown"],
        code_separator=flags["code_separator"],
        date_format=flags["date_format"],
        missing=missing,
        lines=lines,
    )


def columns_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The column map of `--patient`, `--code`, `--age`, `--birth`, `--visit`, `--date`, `--vocabulary-column`,
    `--attributes`."""
    named = {name: flags[name] for name in ("patient", "age", "birth", "visit", "date") if flags.get(name)}
    if flags.get("vocabulary_column"):
        named["vocabulary"] = flags["vocabulary_column"]
    code = flags.get("code") or ()
    if code:
        named["code"] = code[0] if len(code) == 1 else list(code)
    if flags.get("attributes"):
        named["patients"] = list(flags["attributes"])
    return named


def print_json(content: Mapping[str, Any]) -> None:
    """Figures on stdout, for programs."""
    from leeward.release.manifest import to_json_text

    click.echo(to_json_text(content), nl=False)


def print_lines(*lines: str) -> None:
    """Text on stdout, for people."""
    click.echo(for_terminal("\n".join(lines)))
