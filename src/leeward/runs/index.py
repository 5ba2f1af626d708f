"""The story of indexing: read a cohort or a table of notes, index it beside the target, give it a budget, rename."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from leeward.cohort import Cohort
from leeward.cohort.readers import parquet
from leeward.cohort.readers.copies import copies, local
from leeward.cohort.readers.files import refuse_log
from leeward.engine import running
from leeward.errors import BadInput
from leeward.queries.index.build import Built, index_cohort, index_events, index_table
from leeward.queries.index.rows import NOTE_COLUMNS
from leeward.queries.language.vocabulary import AnyText, Vocabulary
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.privacy.accounting import Budget, micro
from leeward.randomness import Randomness
from leeward.release.aside import make_private, rename, work_beside
from leeward.release.spec import SourceSpec
from leeward.runs.data_sets import parent_of, place_of_budget, register, remember
from leeward.runs.memory import engine_name
from leeward.runs.progress import Tell, watch
from leeward.runs.specs import read_source
from leeward.runs.stored import is_table, source_fits, store_source
from leeward.runs.vocabularies import domains_of, domains_of_notes, lexicon_terms, vocabulary_of

SHARE_KNOWN = 0.5
"""The lexicon is a table's vocabulary when it has at least this share of the table's distinct terms."""
SHARE_UNKNOWN = 0.05
"""A larger share of codes or terms that the vocabulary lacks is refused: somebody named the wrong one."""
TABLES = ("notes.parquet", "table.parquet")
"""A folder of annotated notes holds its table under one of these names."""
FIT: dict[str, Callable[[pa.DataType], bool]] = {
    "patient": lambda kind: pa.types.is_integer(kind) or parquet.is_text(kind),
    "code": parquet.is_text,
    "date": pa.types.is_temporal,
}
"""Types of columns that Spark reads as the reader does."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Indexing:
    """How a cohort or a table of notes is indexed; every field but the last three is public.

    Attributes
    ----------
    terms : the public vocabulary: `icd9`, `icd10`, `lexicon`, or a file (`runs.vocabularies.vocabulary_of`)
    quasi_identifiers : columns that may be asked for; empty: all of a table of notes, none of a cohort
    domains : quasi-identifier -> its permissible values, or `{"low": …, "high": …}`
    row : what a row of a cohort is: `visit` or `patient`
    max_rows_per_patient : so many rows of a patient are kept, drawn at random
    about_patients : how many there are, stated publicly: noise as large as that is not sold without a second word
    accept_unknown : leave out what the vocabulary lacks; otherwise more than 5 % of the entries is refused
    parent : the index (a folder) or data set that these data descend from
    engine, seed : as in `protect`
    """

    terms: str | None = None
    quasi_identifiers: Sequence[str] = ()
    domains: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    row: str | None = None
    max_rows_per_patient: int | None = None
    about_patients: int | None = None
    accept_unknown: bool = False
    parent: str | None = None
    engine: Any = "local"
    seed: int | None = None


def index(
    source: str | Path | SourceSpec | Cohort | pl.DataFrame,
    out: str | Path,
    /,
    *,
    epsilon_total: float | str,
    unit: Literal["patient", "note"] = "patient",
    threshold: int | None = None,
    accounting: Literal["pure", "zcdp"] = "pure",
    delta: float | None = None,
    ledger: str | None = None,
    default_allotment: Literal["none", "all"] = "none",
    charge_projects_separately: bool = False,
    new_budget: str | None = None,
    tell: Tell | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Index notes or a cohort for differentially private counts, and set the budget of the data, once.

    Parameters
    ----------
    source : str, Path, SourceSpec, Cohort or polars.DataFrame
        The file of a cohort, the table of `annotate`, a cohort, or notes with the columns `patient` and `terms`.
    out : str or Path
        Folder to write; it must not exist.
    epsilon_total : float or str
        Privacy budget of all answers together, for each patient (or note).
    unit : {'patient', 'note'}, optional
        What the budget protects: a patient with all rows, or a single note.
    threshold : int, optional
        Noisy counts below it are hidden. It is public.
    accounting : {'pure', 'zcdp'}, optional
        How the costs of answers add up.
    delta : float, optional
        Delta of the budget, for `zcdp`.
    ledger : str, optional
        URL of the database that keeps the budget; by default, a ledger in the folder.
    default_allotment : {'none', 'all'}, optional
        What users without an allotment may spend. With `none`, whoever makes the index is allotted everything.
    charge_projects_separately : bool, optional
        Whether a project also pays for answers that another one has paid for.
    new_budget : str, optional
        Why data that share patients with indexed data get a budget of their own; the log keeps it. Without a reason
        they are refused, and the same data keep their budget.
    tell : callable, optional
        Called with the name of each stage.
    **options
        `terms`, `quasi_identifiers`, `domains`, `row`, `max_rows_per_patient`, `about_patients` (the number of
        patients, stated publicly), `accept_unknown`, `parent`, `engine`, `seed`.

    Returns
    -------
    dict
        What was indexed, as `leeward index --json` prints it. These are exact figures, for the custodian.

    Raises
    ------
    BadInput
        The source or a setting is wrong. Nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> terms = [["fever"], ["cough"], ["fever"], ["cough"]]
    >>> notes = pl.DataFrame({"patient": [1, 1, 2, 3], "terms": terms})
    >>> made = lw.index(notes, "counts", epsilon_total=5, about_patients=3)
    >>> made["rows"], made["remaining"]
    (4, 5.0)
    """
    budget = Budget(epsilon=micro(epsilon_total, "epsilon_total"), accounting=accounting, delta=delta)
    known = [each.name for each in dataclasses.fields(Indexing)]
    for name in options:
        if name not in known:
            raise BadInput(f"`index` has no option `{name}`; it has {', '.join(known)}.")
    wanted = Indexing(**options)
    target = Path(out).absolute()
    with beside(target) as folder, watch(tell) as say:
        built = build(source, folder, wanted, say)
        meta = built.index.meta
        place = place_of_budget(built.index, folder, ledger, wanted.parent, new_budget)
        data_set = DataSet(
            reason=new_budget,
            id=meta.id,
            budget=budget,
            parent=meta.parent,
            unit=unit,
            threshold=threshold,
            default_allotment=default_allotment,
            charge_projects_separately=charge_projects_separately,
        )
        remaining = register(data_set, place or folder, folder)
    remember(built.index, place or target)
    return {
        "index": str(out),
        "data_set": meta.id,
        "parent": meta.parent,
        "row": meta.row,
        "rows": built.index.rows,
        "patients": built.index.patients,
        "qids": [{"name": q.name, "kind": q.kind, "domain": q.domain} for q in meta.qids],
        "vocabulary": meta.vocabulary,
        "vocabulary_public": meta.vocabulary_public,
        "max_rows_per_patient": meta.max_rows_per_patient,
        "seeded": meta.seeded,
        "left_out": dict(built.left_out),
        "epsilon_total": float(epsilon_total),
        "remaining": remaining,
        "shared_with": str(place) if isinstance(place, Path) else None,
        "default_allotment": default_allotment,
        "charge_projects_separately": charge_projects_separately,
        "unit": unit,
        "threshold": threshold,
        "accounting": accounting,
        "delta": delta,
    }


@contextmanager
def beside(out: Path) -> Iterator[Path]:
    """The name of a folder beside `out` that becomes `out` when all is done, and is removed when not."""
    if out.exists() or out.is_symlink():
        raise BadInput(f"{out}: exists already; an index is never overwritten. Name another folder with -o.")
    with work_beside(out) as folder:
        inside = folder / out.name
        try:
            yield inside
            make_private(inside)
            rename(inside, out)
        except BadInput as error:
            raise BadInput(str(error).replace(str(inside), str(out))) from None


@copies()
def build(
    source: str | Path | SourceSpec | Cohort | pl.DataFrame, folder: Path, wanted: Indexing, say: Tell
) -> Built:
    """The index in `folder`, of a table of notes or of a cohort. BadInput where the vocabulary lacks much of it."""
    say("Reading")
    if isinstance(source, str | Path):
        source = SourceSpec(path=str(source))
    options: dict[str, Any] = {
        "domains": domains_of(wanted.domains),
        "max_rows_per_patient": wanted.max_rows_per_patient,
        "parent": parent_of(wanted.parent),
        "about_patients": wanted.about_patients,
        "randomness": Randomness.of(wanted.seed),
    }
    named, accept_unknown = wanted.terms, wanted.accept_unknown
    if isinstance(source, SourceSpec):
        named, accept_unknown = named or source.vocabulary, accept_unknown or source.accept_unknown
        source = dataclasses.replace(source, path=local(source.path))
        notes = table_of_notes(source)
        columns = (
            columns_of_parquet(source) if notes is None and engine_name(wanted.engine) == "spark" else None
        )
        if columns is not None and named is not None:
            say("Indexing through Spark")
            with running(wanted.engine) as spark:
                return index_events(
                    str(source.path), folder, spark, terms=vocabulary_of(named), columns=columns, row=wanted.row,
                    attributes=wanted.quasi_identifiers, **options,
                )  # fmt: skip
        source = _cohort_of(source, folder.parent / "source", wanted) if notes is None else notes
    if isinstance(source, pl.DataFrame):
        built, entries = _of_notes(source, folder, wanted, named, options, say)
    else:
        built, entries = _of_cohort(source, folder, wanted, named, options, say)
    for what, count in built.left_out.items():
        lacks = what.endswith("the vocabulary lacks") and count > SHARE_UNKNOWN * entries
        if lacks and not accept_unknown:
            kind = what.partition(" ")[0]
            raise BadInput(
                f"{count:,} of {entries:,} {kind} are not in the vocabulary {built.index.meta.vocabulary}; no "
                f"query could use them. Name another one (--terms), or leave them out (--accept-unknown)."
            )
    return built


def _cohort_of(source: SourceSpec, work: Path, wanted: Indexing) -> Cohort:
    """The cohort of a source; in files below `work` where it is a table of codes alone and memory is too little."""
    plain = engine_name(wanted.engine) == "local" and not wanted.quasi_identifiers and is_table(source)
    stored = store_source(source, work) if plain and not source_fits("", [source]) else None
    return read_source(with_attributes(source, wanted.quasi_identifiers)) if stored is None else stored


def _of_notes(
    table: pl.DataFrame,
    folder: Path,
    wanted: Indexing,
    named: str | None,
    options: dict[str, Any],
    say: Tell,
) -> tuple[Built, int]:
    """The index of a table of notes, and how many terms the table has."""
    asked = wanted.quasi_identifiers
    if wanted.row is not None:
        raise BadInput("--row is for cohorts; in a table of notes, a row is a note.")
    terms = vocabulary_of(named) if named else vocabulary_of_table(table)
    say(
        "Indexing"
        if wanted.engine == "local"
        else "Indexing without Spark, which has no work for a table of notes"
    )
    for name in asked:
        if name not in table.columns:
            raise BadInput(
                f"--quasi-identifiers: the table has no column {name!r}; it has {', '.join(table.columns)}."
            )
    own = {*asked, *NOTE_COLUMNS} if asked else table.columns
    left_out = [column for column in table.columns if column not in own]
    options["domains"] = {**domains_of_notes(table.columns, left_out), **options["domains"]}
    built = index_table(table, folder, terms=terms, leave_out=left_out, **options)
    return built, int(table["terms"].list.len().sum())


def _of_cohort(
    cohort: Cohort, folder: Path, wanted: Indexing, named: str | None, options: dict[str, Any], say: Tell
) -> tuple[Built, int]:
    # Both classifications at once, or codes below one root: terms are the codes as they are written.
    known = named or (None if cohort.vocabulary in ("icd", "icd-undotted", "flat") else cohort.vocabulary)
    terms = None if known is None else vocabulary_of(known)
    say("Indexing")
    people = cohort.patients
    attributes: list[str] = []
    if people is not None:  # some formats bring columns that nobody asked for
        attributes = [c for c in people.drop("patient").columns if c in wanted.quasi_identifiers]
        people = people.select("patient", *attributes)
        cohort = dataclasses.replace(cohort, patients=people)
    if engine_name(wanted.engine) == "local":
        return index_cohort(cohort, folder, terms=terms, row=wanted.row, **options), cohort.count_events()
    events = cohort.require_events()
    if people is not None:
        events = events.drop(attributes, strict=False).join(people, on="patient", how="left")
    with running(wanted.engine) as spark:
        built = index_events(
            events, folder, spark, terms=terms or AnyText(), attributes=attributes, row=wanted.row, **options
        )
    return built, events.height


def columns_of_parquet(source: SourceSpec) -> dict[str, str] | None:
    """Role -> column of a plain Parquet file of events, which Spark can read by itself; None for anything else."""
    path = Path(str(source.path))
    columns = {role: name for role, name in source.columns.items() if role != "patients"}
    if _needs_reader(source, columns) or path.suffix != ".parquet" or not path.is_file():
        return None
    types = {field.name: field.type for field in parquet.schema(path)}
    optional = columns if source.columns else types
    roles = ["patient", "code", *(role for role in ("visit", "date", "age") if role in optional)]
    found = {role: str(columns.get(role, role)) for role in roles}
    # Of another type the reader converts a column, or says why not.
    fit = all(fits(types[found[role]]) for role, fits in FIT.items() if found.get(role) in types)
    return found if fit else None


def _needs_reader(source: SourceSpec, columns: Mapping[str, Any]) -> bool:
    several = not all(isinstance(name, str) for name in columns.values())  # columns of codes
    converted = source.lines or source.missing or source.code_separator or "birth" in columns
    return bool(source.format not in (None, "events") or converted or several)


def table_of_notes(source: SourceSpec) -> pl.DataFrame | None:
    """The table of notes that a path names: Parquet with the columns patient and terms; None for anything else."""
    path = Path(str(source.path))
    if path.is_dir():
        path = next((path / sub / name for sub in ("", "custody", "custody/data", "data") for name in TABLES
                     if (path / sub / name).is_file()), path)  # fmt: skip
    if not path.is_file() or path.suffix != ".parquet":
        return None
    refuse_log(path)
    held = parquet.schema(path)
    if not {"patient", "terms"} <= set(held.names) or not pa.types.is_nested(held.field("terms").type):
        return None
    return parquet.frame(path)


def vocabulary_of_table(table: pl.DataFrame) -> Vocabulary | None:
    """The project's lexicon where it has most of a table's terms; else None: any text is a term."""
    distinct = table["terms"].explode(empty_as_null=False).drop_nulls().unique().to_list()
    terms = lexicon_terms()
    known = sum(terms.term_of(term) is not None for term in distinct)
    return terms if distinct and known >= SHARE_KNOWN * len(distinct) else None


def with_attributes(source: SourceSpec, columns: Sequence[str]) -> SourceSpec:
    if not columns:
        return source
    needed = {name: name for name in ("patient", "code")} if source.format in (None, "events") else {}
    return dataclasses.replace(source, columns={**needed, **source.columns, "patients": tuple(columns)})
