"""The spec: a YAML file that says what to protect, how, and what to measure (docs/reference/spec.md).

Unknown keys are errors at every level, and name the nearest known key.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from leeward.errors import BadInput
from leeward.fields import Declared, Parameter, build, check_keys, nearest
from leeward.paths import exists, text_of
from leeward.version import __version__

ENGINES = ("local", "spark")

COLUMNS = ("patient", "code", "vocabulary", "visit", "date", "age", "birth", "patients", "note", "text")
"""What `columns:` maps from: the cohort's own column names, and `patients` for attributes and payload."""

PLANS = ("linear", "logistic", "cox", "poisson", "forest")
PLAN_KEYS = ("response", "time", "event", "event_value", "covariates")

PASSWORD = re.compile(r"^([^:/?#]+://[^:/@]*):.*@")
PASSWORD_OPTION = re.compile(r"(?<=[?&])(password|passwd|pwd)=[^&#]*&?", re.IGNORECASE)

SECRET = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
"""Names of settings whose values Spark itself does not show (`spark.redaction.regex`)."""

VERSIONED = ("leeward", "python", "numpy", "polars", "pyarrow", "numba", "pyspark")


@dataclass(frozen=True, kw_only=True)
class SourceSpec(Declared):
    """Where a cohort comes from and how its columns are called. `path`: beside the spec, else in the working folder."""

    path: Annotated[
        str | None,
        Parameter(
            "File, folder or glob, next to the spec or else in the working directory; its address in a store, "
            "`s3://bucket/path`; or the URL of a database, `postgresql://user@host/db#schema.table`. Put its password "
            "into PGPASSWORD."
        ),
    ] = None
    format: Annotated[
        str | None,
        Parameter(
            "Layout of the source: events (one row per code), table (one row per patient), lines, omop, fhir, synthea, "
            "i2b2 or sql.",
            default="recognised by the names of files and tables",
        ),
    ] = None
    columns: Annotated[
        Mapping[str, str | tuple[str, ...]],
        Parameter(
            f"Source columns of {', '.join(COLUMNS)}. A list of codes: wide form. Date and birth give the age."
        ),
    ] = field(default_factory=dict)
    vocabulary: Annotated[
        str | None,
        Parameter(
            "icd9, icd10, icd (both, distinguished code by code), none (as written) or a hierarchy file (CSV with the "
            "columns node,parent).",
            default="ICD codes are recognised",
        ),
    ] = None
    missing: Annotated[tuple[str, ...], Parameter('Texts that mean "no code".')] = ()
    date_format: Annotated[str | None, Parameter("How dates are written, as in strptime.")] = None
    lines: Annotated[bool, Parameter("One record per line, codes separated by blanks or commas.")] = False
    drop: Annotated[tuple[str, ...], Parameter("Columns of a table to leave out.")] = ()
    domains: Annotated[
        Mapping[str, Any] | tuple[str, ...] | None,
        Parameter(
            "Events to read instead of diagnoses (OMOP: condition, drug, procedure, observation, measurement; Synthea: "
            "condition, drug, procedure, allergy; i2b2: prefixes of concepts), or permissible values by column (table)."
        ),
    ] = None
    query: Annotated[str | None, Parameter("For a database: SELECT … or the name of a table.")] = None
    table: Annotated[
        str | None,
        Parameter("Sheet of a workbook, file in a .zip or table of a database, if there are several."),
    ] = None
    concepts: Annotated[
        bool, Parameter("OMOP: use the codes of CONCEPT and their vocabulary, not concept ids.")
    ] = False
    accept_unknown: Annotated[
        bool,
        Parameter("Keep codes that are not in the vocabulary, even above 5 % of the entries."),
    ] = False
    code_separator: Annotated[str | None, Parameter("Separator between several codes in one cell.")] = None
    name: Annotated[str | None, Parameter("Name of a cohort given in memory; it cannot be read again.")] = (
        None
    )

    def rules(self) -> None:
        if self.path is None and self.format != "memory":
            raise BadInput("`source`: `path` is missing; name the file or folder to read.")
        if self.format != "table":
            check_keys(self.columns, COLUMNS, "source.columns")


@dataclass(frozen=True, kw_only=True)
class Handover(Declared):
    """To whom a release goes, for the register of releases."""

    recipient: Annotated[str | None, Parameter("Who receives it.")] = None
    line: Annotated[
        str | None,
        Parameter("Name of the line of versions that it begins; `leeward refresh` makes the next."),
    ] = None
    purpose: Annotated[str | None, Parameter("What it is for.")] = None


@dataclass(frozen=True, kw_only=True)
class Refresh(Declared):
    """The version that is followed by what is new in the source."""

    master: Annotated[str, Parameter("Folder of the last version, with its custody.")]
    wait: Annotated[
        int,
        Parameter("Visits: for how many batches one is held back whose codes nearly k patients share.", ge=0),
    ] = 0
    records: Annotated[
        Literal["kept", "apart"] | None,
        Parameter("Whether returning patients keep their record.", default="kept for visits, else apart"),
    ] = None
    withdrawn: Annotated[
        str | None,
        Parameter("File of patients who withdrew, one identifier a line: nothing new is released."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Spec(Declared):
    """A whole run. `method` keeps its mapping: the method's own parameter class checks it."""

    source: Annotated[SourceSpec, Parameter("The cohort to read.")]
    method: Annotated[Mapping[str, Any], Parameter("`name` and the method's parameters.")]
    population: Annotated[
        SourceSpec | None, Parameter("Like source, for methods that need a population.")
    ] = None
    measure: Annotated[
        tuple[Any, ...],
        Parameter(
            "What to measure: names, or one name with its options.", default="all that the report shows"
        ),
    ] = ()
    engine: Annotated[
        str | Mapping[str, Any], Parameter("local, spark, or one name with options: `{spark: {master: …}}`.")
    ] = "local"
    formats: Annotated[
        tuple[Literal["parquet", "csv"], ...],
        Parameter(
            "parquet: Parquet alone; csv: CSV beside it, of any size.",
            default="CSV of up to 10 MB in all",
        ),
    ] = ()
    seed: Annotated[
        int | None,
        Parameter("For tests and studies only: the release is then marked as seeded and must not be shared."),
    ] = None
    plan: Annotated[
        tuple[Any, ...], Parameter(f"The recipient's models: {', '.join(PLANS)}, with their columns.")
    ] = ()
    release: Annotated[Handover | None, Parameter("To whom it goes, for the register of releases.")] = None
    refresh: Annotated[
        Refresh | None, Parameter("Release the next version of a release, as `leeward refresh` does.")
    ] = None
    versions: Annotated[
        Mapping[str, Any] | None, Parameter("Written into custody/spec.yaml; ignored when read.")
    ] = None

    def rules(self) -> None:
        if not isinstance(self.method.get("name"), str):
            raise BadInput(
                "`method`: `name` is missing; for example `method: {name: disassociation, k: 5, m: 2}`."
            )
        _check_engine(self.engine)
        for entry in self.measure:
            measure_of(entry)
        _check_plan(self.plan)


def load(path: str | Path) -> Spec:
    """Read a spec file and resolve its relative paths. Raises BadInput for a missing or unreadable file, bad YAML,
    unknown or missing keys, and values of the wrong type."""
    path = Path(path)
    text = text_of(path, "spec")
    try:
        return resolve_paths(parse(text), path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse(text: str) -> Spec:
    """A spec from YAML text; paths stay as written."""
    content = content_of_yaml(text)
    if not isinstance(content, dict):
        raise BadInput("a spec is a mapping with `source`, `method` and more; see `leeward protect --help`.")
    spec: Spec = build(Spec, content, "")
    return spec


def content_of_yaml(text: str) -> Any:
    """The content of a YAML text. BadInput for bad YAML, a key given twice, a value not of its tag's type, and endless
    nesting."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise BadInput(f"not valid YAML{place}: {problem}.") from None
    except RecursionError:
        raise BadInput("not valid YAML: lists and mappings are nested too deeply.") from None
    except (ValueError, TypeError, OverflowError, AttributeError, LookupError):
        raise BadInput("not valid YAML: a value does not fit its tag or form (a date, a number).") from None


def to_yaml(spec: Spec) -> str:
    """The spec as run, with versions, for `custody/spec.yaml`; `load` reads it back."""
    content = {f.name: plain_of(getattr(spec, f.name)) for f in dataclasses.fields(spec)}
    content["engine"] = without_secrets(content["engine"])
    content = {key: value for key, value in content.items() if value not in (None, [], {})}
    content["versions"] = versions()
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def versions() -> dict[str, str]:
    import platform

    found = {"leeward": __version__, "python": platform.python_version()}
    for name in VERSIONED[2:]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def measure_of(entry: Any) -> tuple[str, dict[str, Any]]:
    """(name, options) of one entry of `measure:`, written `are` or `{are: {workload: frequent}}`."""
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, Mapping) and len(entry) == 1:
        (name, options), *_ = entry.items()
        if isinstance(name, str) and (options is None or isinstance(options, Mapping)):
            return name, dict(options or {})
    raise BadInput(
        "`measure`: each entry is a name or one name with options, for example `{are: {workload: frequent}}`."
    )


def _check_engine(engine: Any) -> None:
    if isinstance(engine, Mapping) and len(engine) == 1:
        name, options = next(iter(engine.items()))
        if options is not None and not isinstance(options, Mapping):
            raise BadInput(f"`engine.{name}` takes a mapping of options; got {type(options).__name__}.")
    elif isinstance(engine, str):
        name = engine
    else:
        raise BadInput(
            "`engine` is `local`, `spark` or one name with options, for example `{spark: {master: …}}`."
        )
    if name not in ENGINES:
        raise BadInput(f"`engine`: unknown `{name}`{nearest(str(name), ENGINES)}")


def _check_plan(plan: tuple[Any, ...]) -> None:
    for number, entry in enumerate(plan, start=1):
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise BadInput(
                f"`plan[{number}]`: one model with its columns, for example `{{cox: {{time: …, event: …}}}}`."
            )
        kind, model = next(iter(entry.items()))
        check_keys(entry, PLANS, f"plan[{number}]")
        if not isinstance(model, Mapping):
            raise BadInput(f"`plan[{number}].{kind}` takes a mapping with {', '.join(PLAN_KEYS)}.")
        check_keys(model, PLAN_KEYS, f"plan[{number}].{kind}")


def resolve_paths(spec: Spec, folder: Path) -> Spec:
    """The spec with absolute paths: each beside `folder`, or else in the working directory."""
    population = None if spec.population is None else resolve_source(spec.population, folder)
    method = {key: _policy_at(value, folder) for key, value in spec.method.items()}
    refresh = spec.refresh
    if refresh is not None:
        gone = refresh.withdrawn
        refresh = dataclasses.replace(
            refresh,
            master=_path_at(refresh.master, folder),
            withdrawn=None if gone is None else _path_at(gone, folder),
        )
    source = resolve_source(spec.source, folder)
    return dataclasses.replace(spec, source=source, population=population, method=method, refresh=refresh)


def resolve_source(source: SourceSpec, folder: Path) -> SourceSpec:
    if source.path is None or "://" in source.path:
        return source
    return dataclasses.replace(source, path=_path_at(source.path, folder))


def _policy_at(value: Any, folder: Path) -> Any:
    """A parameter; the file of a utility policy (`file:PATH` or a mapping) gets an absolute path."""
    if isinstance(value, Mapping) and value.get("policy") == "file" and isinstance(value.get("path"), str):
        return {**value, "path": _path_at(value["path"], folder)}
    if isinstance(value, str) and value.startswith("file:"):
        return f"file:{_path_at(value.removeprefix('file:'), folder)}"
    return value


def _path_at(path: str, folder: Path) -> str:
    beside, here = _joined(folder, path), _joined(Path.cwd(), path)
    return str(here if not exists(beside) and exists(here) else beside)


def _joined(folder: Path, path: str) -> Path:
    """The path below the folder. Steps up (`../x`) are taken from where a linked folder is, so that none is left."""
    parts = Path(path).parts
    steps = next((place for place, part in enumerate(parts) if part != ".."), len(parts))
    if not steps:
        return folder.absolute() / path
    real = folder.resolve()
    return ([real, *real.parents][min(steps, len(real.parents))]).joinpath(*parts[steps:])


def plain_of(value: Any) -> Any:
    """Plain YAML values; a source's defaults are left out."""
    if isinstance(value, SourceSpec):
        shown = {f.name: plain_of(getattr(value, f.name)) for f in dataclasses.fields(value)}
        shown["path"] = None if value.path is None else without_password(value.path)
        return {key: item for key, item in shown.items() if item not in (None, [], {}, False)}
    if isinstance(value, Handover | Refresh):
        return {key: item for key, item in vars(value).items() if item is not None}
    if isinstance(value, Mapping):
        return {str(key): plain_of(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain_of(item) for item in value]
    return value


def without_password(path: str) -> str:
    """The URL of a database without its password; other paths as they are."""
    if "://" not in path:
        return path
    return PASSWORD_OPTION.sub("", PASSWORD.sub(r"\1@", path))


def without_secrets(engine: Any) -> Any:
    """An engine without settings that Spark does not show, and without what follows a server's address: its token."""
    settings = engine.get("spark") if isinstance(engine, Mapping) else None
    if not settings:
        return engine
    shown = {key: value for key, value in settings.items() if key != "config"}
    if "remote" in shown:
        shown["remote"] = str(shown["remote"]).partition(";")[0]
    config = {key: value for key, value in settings.get("config", {}).items() if not SECRET.search(key)}
    return {"spark": shown | ({"config": config} if config else {})}


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice: the last one would win silently, be it `k`."""


def _mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key `{key.value}` is given twice", key.start_mark
            )
        seen.add(key.value)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
