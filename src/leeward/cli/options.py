"""Flags that commands share."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leeward.errors import BadInput
from leeward.paths import is_file
from leeward.texts import for_terminal

Option = Callable[[Any], Any]
"""Gives a command a flag, or several."""

OF_PATIENTS = ("demographics", "payload", "sensitive_columns")
"""Parameters that name columns of the patients."""

DATE_FORMAT = "How dates are written, such as %m/%d/%Y [default: 2010-04-03, 20100403 or 03.04.2010]."


def commas(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """`a,b,c` as a tuple."""
    parts = tuple(part.strip() for part in (value or "").split(","))
    if value and not all(parts):
        raise click.BadParameter("a name between the commas is empty.", context, parameter)
    return parts if value else ()


def stack(*options: Option) -> Option:
    return lambda function: functools.reduce(lambda made, option: option(made), reversed(options), function)


def flag(names: str, metavar: str | None, text: str = "", /, **more: Any) -> Option:
    """An option of click; `names` are its flags and, where it differs, its name. A default is shown."""
    more.setdefault("show_default", more.get("default") is not None)
    return click.option(*names.split(), metavar=metavar, help=text or None, **more)


def switch(names: str, text: str, /, **more: Any) -> Option:
    return flag(names, None, text, is_flag=True, **more)


table_option = flag(
    "--table", "NAME",
    "Sheet of a workbook, file in a .zip or table of a database, if there are several."
)  # fmt: skip

INPUT: dict[str, Option] = {
    "patient": flag("--patient", "COL", "Column of the patient's identifier [default: patient]."),
    "code": flag("--code", "COL[,COL…]", "Column of the code; several columns for wide form [default: code].",
                 callback=commas),
    "age": flag("--age", "COL", "Column of the age at the event, in years."),
    "birth": flag("--birth", "COL", "Column of the date of birth; with --date, gives the age."),
    "visit": flag("--visit", "COL", "Column of the visit."),
    "date": flag("--date", "COL", "Column of the date."),
    "vocabulary": flag("--vocabulary", "icd9|icd10|icd|none|FILE.csv",
                       "Vocabulary of the codes: icd means both; a file is a hierarchy with the columns "
                       "node,parent [default: ICD codes are recognised]."),
    "vocabulary_column": flag("--vocabulary-column", "COL", "Column with the vocabulary of each row's code."),
    "accept_unknown": switch("--accept-unknown",
                             "Keep codes that are not in the vocabulary, even above 5 % of the entries."),
    "code_separator": flag("--code-separator", "TEXT",
                           "Separator between several codes in one cell, such as ','."),
    "missing": flag("--missing", "TEXT", "Text that means 'no code', such as '?'. Repeatable.", multiple=True),
    "date_format": flag("--date-format", "FORMAT", DATE_FORMAT),
    "lines": switch("--lines", "One record per line, codes separated by blanks or commas."),
    "source_format": flag("--source-format", "omop|fhir|synthea|i2b2|…",
                          "Format of a folder or database [default: recognised by the names of its files or tables]."),
    "query": flag("--query", "SQL", "For a database: SELECT … or the name of a table."),
    "table": table_option,
    "events": flag("--events", "KIND[,KIND…]",
                   "Events to read from OMOP (condition, drug, procedure, observation, measurement), Synthea "
                   "(condition, drug, procedure, allergy) or i2b2 (prefixes of concepts) [default: diagnoses].",
                   callback=commas),
    "concepts": switch("--concepts", "OMOP: use the codes of CONCEPT and their vocabulary, not concept ids."),
    "attributes": flag("--attributes", "COL[,COL…]", "Columns with attributes of the patients, such as sex.",
                       callback=commas),
}  # fmt: skip
"""The flags that say how to read a cohort, by the name under which they reach a command."""

LEDGER = "Database with the budget [default: the ledger in INDEX]."
FORMATS = "parquet: Parquet alone; csv: CSV beside it, of any size [default: CSV of up to 10 MB in all]."
json_option = switch("--json as_json", "Print the figures as JSON on stdout.")
out_option = flag("-o --out", "OUT", "The release folder to write; must not exist yet.", required=True)
new_option = flag("-o --out", "FOLDER", "For the custodian; must not exist yet.", required=True)
ledger_option = flag("--ledger", "URL", LEDGER, envvar="LEEWARD_LEDGER")
user_option = flag("--user", "NAME", "Who asks [default: the login name].", envvar="LEEWARD_USER")
engine_config_option = flag(
    "--engine-config", "FILE",
    "Settings of the engine, as under `engine` in a spec: `{spark: {master: …}}`.",
    callback=lambda context, parameter, value: value and content_of(value, "engine", dict),
)  # fmt: skip


def engine_option(function: Callable[..., Any]) -> Any:
    """`--engine` and `--engine-config` as one argument, `engine`, as a spec has it."""

    @functools.wraps(function)
    def wrapper(*args: Any, engine: str | None, engine_config: Any, **kwargs: Any) -> Any:
        if engine and engine_config and [engine] != list(engine_config):
            raise BadInput(
                f"--engine-config has settings of another engine than --engine {engine}; leave one out."
            )
        return function(*args, engine=engine_config or engine or "local", **kwargs)

    names = flag(
        "--engine", None, "Where the work runs [default: local].", type=click.Choice(["local", "spark"])
    )
    return stack(names, engine_config_option)(wrapper)


formats_option = flag("--format formats", "parquet|csv", FORMATS, callback=commas)
memory_option = switch("--allow-memory", "Run even if less memory is free than needed.")

NATIVE_POOLS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where compiled libraries read how many threads they may start; they do so when they are imported."""


def _limit_threads(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Let `--threads` bound the libraries below as well."""
    if value is not None:
        before = {name: os.environ[name] for name in NATIVE_POOLS if name in os.environ}
        os.environ.update(dict.fromkeys(NATIVE_POOLS, str(value)))

        def restore() -> None:
            for name in NATIVE_POOLS:
                os.environ.pop(name, None)
            os.environ.update(before)

        context.call_on_close(restore)
    return value


threads_option = flag(
    "--threads", "N", "Maximum number of threads [default: one per processor].", type=click.IntRange(min=1),
    callback=_limit_threads,
)  # fmt: skip


def schema_option(what: str, module: str, function: str) -> Option:
    """`--schema`: print what a module's function returns and leave, before any argument is asked for."""

    def show(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            print_json(getattr(importlib.import_module(module), function)())
            context.exit()

    text = f"Print the JSON Schema of a {what}, for editors, and exit."
    return switch("--schema", text, is_eager=True, expose_value=False, callback=show)


register_option = flag(
    "--register",
    "FILE|URL",
    "Register of releases, where the house file names none.",
    envvar="LEEWARD_REGISTER",
)
reason_option = flag(
    "--reason",
    "TEXT",
    "Why it may be out beside earlier releases of the same patients, where no proof covers both.",
)
handing_options = stack(
    flag("--recipient", "NAME", "Who receives the release, for the register of releases."),
    flag("--purpose", "TEXT", "What it is for."),
    reason_option,
    register_option,
)
"""To whom a release goes, and what counts it: `--recipient`, `--purpose`, `--reason`, `--register`."""


def handover_of(flags: dict[str, Any]) -> dict[str, str]:
    """`recipient`, `line` and `purpose`, taken from the flags; a method's command has `--lines` and no `--line`."""
    found = {name: flags.pop(name, None) for name in ("recipient", "line", "purpose")}
    return {name: text for name, text in found.items() if text is not None}


run_options = stack(
    out_option, engine_option, threads_option,
    flag("--seed", "N", "For tests and studies only: the release is then marked as seeded and must not be shared.",
         type=int),
    formats_option,
    flag("--measure", "are,mre", "What to measure [default: all that apply].", callback=commas),
    memory_option, handing_options, json_option,
)  # fmt: skip
"""How to run: `-o`, `--engine`, its settings, `--threads`, `--seed`, `--format`, `--measure`, `--allow-memory`,
`--json`."""


def split_pairs(texts: Iterable[str], sign: str) -> list[tuple[str, str]]:
    """`NAME=VALUE` as name and value."""
    return [(name.strip(), value.strip()) for name, _, value in (text.partition(sign) for text in texts)]


def domains_of(texts: Sequence[str]) -> dict[str, Any]:
    """`sex=F,M`, `age=0..99` and YAML files as permissible values by column, as in a spec's `source.domains`.

    Raises
    ------
    BadInput
        Neither a file nor NAME=…; no name or value; a column twice; a file that is no mapping.
    """
    found: dict[str, Any] = {}
    for text in texts:
        given = _domain_of(text)
        for twice in found.keys() & given.keys():
            raise BadInput(f"--domains: {twice!r} is given twice.")
        found |= given
    return found


def _domain_of(text: str) -> dict[str, Any]:
    ((name, value),) = split_pairs([text], "=")
    if "=" not in text or is_file(Path(text)):
        given: dict[str, Any] = content_of(text, "domains", dict)
        return given
    values = [part.strip() for part in (value.split("..", 1) if ".." in value else value.split(","))]
    if not name or not all(values):
        raise BadInput("--domains: a name or value is empty; write NAME=FIRST..LAST or NAME=VALUE,VALUE.")
    # A text that would be written in another way as a number (007) stays a text.
    numbers = [number if str(number := number_of(each)) == each else each for each in values]
    return {name: {"low": numbers[0], "high": numbers[1]} if ".." in value else numbers}


def content_of(path: str, key: str, kind: type) -> Any:
    """The YAML file's content, or what is under `key` in it.

    Raises
    ------
    BadInput
        No such file, no YAML, or another kind of content.
    """
    from leeward.release.spec import content_of_yaml

    file = Path(path)
    if not is_file(file):
        raise BadInput(f"{path}: there is no such file.")
    try:
        content = content_of_yaml(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; save it as UTF-8.") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    if isinstance(content, dict) and key in content:
        content = content[key]
    if not isinstance(content, kind):
        raise BadInput(
            f"{path}: must be a {'list' if kind is list else 'mapping'}, under `{key}:` or by itself."
        )
    return content


def number_of(text: str) -> Any:
    """The whole or decimal number that a text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


domains_option = flag(
    "--domains", "NAME=FIRST..LAST|NAME=VALUE,VALUE|FILE.yaml",
    "Permissible values of a column, public; a file has them as in a spec's `source.domains`. Repeatable.",
    multiple=True, callback=lambda context, parameter, value: domains_of(value),
)  # fmt: skip

table_options = stack(
    flag("--patient", "COL", "Column of the patient's identifier, never released."),
    flag("--drop", "COL[,COL…]", "Columns to leave out.", callback=commas),
    domains_option,
    flag("--missing absent", "TEXT", "Text that means 'missing'. Repeatable.", multiple=True),
    table_option,
    flag("--date-format", "FORMAT", DATE_FORMAT),
)
"""How to read a table with one row per patient."""


with_input = stack(*INPUT.values())


def with_source(function: Callable[..., Any], *, also: tuple[str, ...] = ()) -> Any:
    """Give a command one argument, `source`, made of its input flags (and of `path`, the cohort's file).

    `also` names input flags that reach the command too, and need no source.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, path: str | None, **kwargs: Any) -> Any:
        flags: dict[str, Any] = {name: kwargs.pop(name) for name in INPUT}
        own = {name: flags[name] for name in also}
        if path is None:
            flags |= dict.fromkeys(also)
        return function(*args, source=source_of(path, flags), **own, **kwargs)

    return with_input(wrapper)


def with_table(function: Callable[..., Any]) -> Any:
    """Give a command one argument, `source`, made of the flags of a table with one row per patient."""

    @functools.wraps(function)
    def wrapper(*args: Any, path: str, patient: str | None, absent: tuple[str, ...], **kwargs: Any) -> Any:
        from leeward.release.spec import SourceSpec

        flags: Any = {name: kwargs.pop(name) or None for name in ("domains", "table", "date_format")}
        columns = {} if patient is None else {"patient": patient}
        source = SourceSpec(
            path=path, format="table", columns=columns, missing=absent, drop=kwargs.pop("drop"), **flags
        )
        return function(*args, source=source, **kwargs)

    return table_options(wrapper)


def with_patients(source: Any, wanted: tuple[str, ...], usual: tuple[str, ...]) -> Any:
    """The source with columns of the patients. A map names all its columns: the usual ones where none were named.

    A folder, and a format whose columns are fixed, takes only the patients' columns as an option.
    """
    fixed = source.format not in (None, "events", "sql") or (
        not source.columns and Path(source.path).is_dir()
    )
    named = ("patient", "code") if set(source.columns) - {"patients"} else usual
    columns = {} if fixed else {**{name: name for name in named}, **source.columns}
    known = tuple(source.columns.get("patients", ()))
    return replace(source, columns={**columns, "patients": list(dict.fromkeys((*known, *wanted)))})


def read_like(source: Any, path: str | None) -> Any:
    """The source of another file, read like this one; None without either."""
    return None if source is None or path is None else replace(source, path=path)


def as_released(release: Any, source: Any) -> Any:
    """A source given by flags, read as the release's own source was where that is a table (`drop`, `domains`), with
    the columns of the patients that the release has."""
    from leeward.methods import METHODS
    from leeward.runs.specs import read_custody_spec

    if source is None:
        return None
    stated = release.parameters
    if stated.get("demographics"):
        # Of any type: a damaged manifest is the verifier's to refute.
        lists = (stated[key] for key in OF_PATIENTS if isinstance(stated.get(key), list | dict))
        usual = METHODS[release.method].columns_of(stated) if release.method in METHODS else ()
        source = with_patients(source, tuple(str(name) for names in lists for name in names), usual)
    known = read_custody_spec(release)
    if known is None or known.source.format != "table":
        return source
    return replace(known.source, path=source.path)


def source_of(path: str | None, flags: Mapping[str, Any]) -> Any:
    """The `source:` of a spec from the flags of `INPUT`; None without a path.

    Raises
    ------
    BadInput
        Flags that contradict each other.
    """
    from leeward.release.spec import SourceSpec

    if path is None:
        if any(flags.values()):
            raise BadInput(
                "flags of the input (--patient, --code, …) need the cohort's file: give --source FILE."
            )
        return None
    columns = columns_of(flags)
    if flags["lines"] and columns:
        raise BadInput(
            "--lines reads files without columns; leave out --patient, --code and the other columns."
        )
    same = ("vocabulary", "query", "table", "concepts", "accept_unknown", "code_separator", "date_format",
            "missing", "lines")  # fmt: skip
    return SourceSpec(
        path=path,
        format=flags["source_format"],
        columns=columns,
        domains=flags["events"] or None,
        **{name: flags[name] for name in same},
    )


def columns_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The column map of `--patient`, `--code`, `--age`, `--birth`, `--visit`, `--date`, `--vocabulary-column`,
    `--attributes`."""
    code = flags["code"]
    named = {name: flags[name] for name in ("patient", "age", "birth", "visit", "date")} | {
        "vocabulary": flags["vocabulary_column"],
        "patients": list(flags["attributes"]),
        "code": code[0] if len(code) == 1 else list(code),
    }
    return {name: column for name, column in named.items() if column}


def print_result(as_json: bool, content: Mapping[str, Any], lines: Iterable[str]) -> None:
    if as_json:
        print_json(content)
    else:
        print_lines(*lines)


def print_json(content: Mapping[str, Any]) -> None:
    from leeward.release.manifest import to_json_text

    click.echo(to_json_text(content), nl=False)


def print_lines(*lines: str) -> None:
    click.echo(for_terminal("\n".join(lines)))
