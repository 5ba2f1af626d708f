"""The plan of `leeward recommend`: data, recipient, threshold, and what the recipient will do, line by line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from leeward.advise.thresholds import Threshold, k_of, threshold_of
from leeward.analysis.plan import models_of
from leeward.errors import BadInput
from leeward.fields import Declared, Parameter, build, check_keys, nearest, schema
from leeward.paths import text_of
from leeward.release.spec import PLAN_KEYS, PLANS, SourceSpec, content_of_yaml, resolve_source

WITHIN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%|percent|patients?|people)\s*")


USUAL_K = 5
"""k where the plan has no threshold: said, and never called enough."""


@dataclass(frozen=True)
class Within:
    """An error that the recipient accepts: a share of the true count, or a number of patients."""

    share: float | None = None
    patients: int | None = None

    def __str__(self) -> str:
        return f"{100 * self.share:g} %" if self.share is not None else f"{self.patients:,} patients"

    def of(self, count: float) -> float:
        """The accepted error of a true count."""
        return self.share * count if self.share is not None else float(self.patients or 0)


def within_of(text: str, where: str) -> Within:
    """`10 %` or `20 patients`. BadInput for anything else."""
    found = WITHIN.fullmatch(text)
    if found is None:
        raise BadInput(
            f"`{where}` is a share such as `10 %` or a number such as `20 patients`; got `{text}`."
        )
    number, unit = float(found[1]), found[2]
    if unit in ("%", "percent"):
        if not 0 < number <= 100:
            raise BadInput(f"`{where}`: a share is above 0 and at most 100 %.")
        return Within(share=number / 100)
    if number != int(number):
        raise BadInput(f"`{where}`: a number of patients is whole.")
    return Within(patients=int(number))


@dataclass(frozen=True, kw_only=True)
class Line(Declared):
    kind: ClassVar[str]

    @property
    def title(self) -> str:
        return self.kind


@dataclass(frozen=True, kw_only=True)
class Counted(Line):
    """Counts of patients, each with an accepted error."""

    within: Annotated[str, Parameter("Accepted error, `10 %` or `20 patients`.")] = "10 %"
    least: Annotated[int, Parameter("Smallest count that matters; a plan writes `from`.", ge=1)] = 50

    def rules(self) -> None:
        within_of(self.within, f"{self.kind}.within")

    @property
    def accepted(self) -> Within:
        return within_of(self.within, "within")


@dataclass(frozen=True, kw_only=True)
class Counts(Counted):
    """How many patients have a code, or one of a group of codes, or several codes together."""

    kind: ClassVar[str] = "counts"

    of: Annotated[
        str | tuple[str, ...],
        Parameter("`codes` (each code), `hierarchy:N` (groups of a level), or a list of codes."),
    ] = "codes"
    together: Annotated[
        int, Parameter("Number of codes that a patient has at once: 2 for pairs.", ge=1, le=4)
    ] = 1

    def rules(self) -> None:
        super().rules()
        if isinstance(self.of, tuple) and len(self.of) == 1 and (self.of[0] == "codes" or ":" in self.of[0]):
            object.__setattr__(self, "of", self.of[0])
        if isinstance(self.of, str) and not re.fullmatch(r"codes|hierarchy:[1-9]", self.of):
            object.__setattr__(self, "of", (self.of,))
        if self.together > 1 and self.of != "codes":
            raise BadInput(
                f"`{self.kind}.together` counts codes that a patient has at once; it needs `of: codes`."
            )

    @property
    def title(self) -> str:
        what = "codes" if self.of == "codes" else "code groups"
        if self.together > 1:
            what = f"sets of {self.together} codes"
        elif isinstance(self.of, tuple):
            what = f"{len(self.of)} codes"
        return f"{self.kind} of {what} from {self.least} patients, within {self.accepted}"


@dataclass(frozen=True, kw_only=True)
class Prevalence(Counts):
    """The share of patients with a code or a group of codes: a count over the number of patients, which is public."""

    kind: ClassVar[str] = "prevalence"


@dataclass(frozen=True, kw_only=True)
class Phewas(Line):
    kind: ClassVar[str] = "phewas"

    exposure: Annotated[str, Parameter("Column of the patients: a genotype as 0, 1, 2, or a number.")]
    covariates: Annotated[tuple[str, ...], Parameter("Columns of the patients to adjust for.")] = ()
    map: Annotated[str | None, Parameter("A phecode map's file.", default="the one that was added")] = None
    min_cases: Annotated[int, Parameter("Smallest number of cases that is tested.", ge=1)] = 25

    @property
    def title(self) -> str:
        return f"PheWAS of {self.exposure}"


@dataclass(frozen=True, kw_only=True)
class Regression(Line):
    """One of the models of a spec's plan, with its fields."""

    kind: ClassVar[str] = "regression"

    model: Annotated[Mapping[str, Any], Parameter("`{cox: {time, event, …}}`.")] = field(hash=False)

    @property
    def title(self) -> str:
        (made,) = models_of([self.model])
        return f"{made.title} on {', '.join(made.covariates)}"


@dataclass(frozen=True, kw_only=True)
class Sequences(Line):
    """How many patients have codes at given ages: sets of (code, age) that a share of the patients has."""

    kind: ClassVar[str] = "sequences"

    min_support: Annotated[float, Parameter("Smallest share of the patients.", gt=0, le=1)] = 0.01

    @property
    def title(self) -> str:
        return f"codes by age, sets of at least {100 * self.min_support:g} % of the patients"


@dataclass(frozen=True, kw_only=True)
class Query(Counted):
    """A number of counts that are asked one by one."""

    kind: ClassVar[str] = "query"

    questions: Annotated[int, Parameter("Number of counts.", ge=1)] = 20
    within: Annotated[str, Parameter("Accepted error, `20 patients` or `10 %` of `from`.")] = "20 patients"

    @property
    def title(self) -> str:
        return f"{self.questions} questions within {self.accepted}"


LINES: dict[str, type[Line]] = {each.kind: each for each in (Counts, Prevalence, Phewas, Sequences, Query)}
WORDS = {"from": "least"}
KNOWN = (*LINES, *PLANS)


@dataclass(frozen=True, kw_only=True)
class Knows(Declared):
    """What an attacker may know of a patient, for certain."""

    codes: Annotated[int | Literal["all"], Parameter("Number of codes, or `all` of them.", ge=1)] = 2
    visits: Annotated[int, Parameter("Number of visits known with all their codes.", ge=0)] = 0
    ages: Annotated[Literal["none", "year"], Parameter("Whether the age at a code is known.")] = "none"
    in_study: Annotated[bool, Parameter("Whether the attacker knows that the patient is in the data.")] = True
    columns: Annotated[
        tuple[str, ...], Parameter("For a table: columns that are known.", default="all columns")
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Recipient(Declared):
    """Who receives the data, under which controls, and what an attacker among or behind them knows."""

    who: Annotated[
        Literal["public", "named researchers", "contract", "enclave"], Parameter("Who receives the data.")
    ] = "named researchers"
    controls: Annotated[
        tuple[str, ...],
        Parameter("Controls in your words; the advice repeats them, but no number rests on them."),
    ] = ()
    knows: Annotated[Knows, Parameter("What an attacker knows of a patient.")] = field(default_factory=Knows)


@dataclass(frozen=True, kw_only=True)
class Plan(Declared):
    """A whole plan. `lines` are the parsed entries of `plan`."""

    source: Annotated[SourceSpec | None, Parameter("The cohort, as in a spec.")] = None
    population: Annotated[
        SourceSpec | None,
        Parameter("Population that the cohort was drawn from; methods for populations need it."),
    ] = None
    recipient: Annotated[Recipient, Parameter("Who receives the data.")] = field(default_factory=Recipient)
    sensitive: Annotated[tuple[str, ...], Parameter("Sensitive codes or ranges of codes.")] = ()
    threshold: Annotated[
        str | float | Mapping[str, Any] | None,
        Parameter(
            "A number such as `0.05`, or a profile such as `ipc-ontario/medium`. Without it, k is not derived."
        ),
    ] = None
    plan: Annotated[tuple[Any, ...], Parameter(f"Lines: {', '.join(KNOWN)}, each with its options.")]
    keep: Annotated[tuple[str, ...], Parameter("Columns of the patients that the recipient must have.")] = ()
    epsilon: Annotated[
        float, Parameter("Most epsilon that all differentially private counts may spend.", gt=0)
    ] = 3.0

    def rules(self) -> None:
        if not self.plan:
            raise BadInput(
                "`plan` has no line; say what the recipient will do, for example `- counts: {of: codes}`."
            )
        for number, entry in enumerate(self.plan, start=1):
            line_of(entry, number)
        threshold_of(self.threshold)

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line_of(entry, number) for number, entry in enumerate(self.plan, start=1))

    @property
    def limit(self) -> Threshold | None:
        return threshold_of(self.threshold)

    @property
    def k(self) -> int:
        """The k that the threshold asks for; `USUAL_K` without one."""
        return USUAL_K if self.limit is None or self.limit.maximum is None else k_of(self.limit.maximum)

    @property
    def models(self) -> list[Mapping[str, Any]]:
        return [each.model for each in self.lines if isinstance(each, Regression)]


def line_of(entry: Any, number: int) -> Line:
    """A line from its entry: a name, or one name with options. BadInput where it is none."""
    where = f"plan[{number}]"
    if isinstance(entry, Line):
        return entry
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise BadInput(
            f"`{where}`: one line with its options, for example `counts: {{of: codes, within: 10 %}}`."
        )
    kind, options = next(iter(entry.items()))
    if kind not in KNOWN:
        raise BadInput(f"`{where}`: unknown line `{kind}`{nearest(str(kind), KNOWN)}")
    if kind in PLANS:
        if isinstance(options, Mapping):
            check_keys(options, PLAN_KEYS, f"{where}.{kind}")
        try:
            models_of([{kind: options}])
        except BadInput as error:
            raise BadInput(str(error).replace("plan[1]", where)) from None
        return Regression(model={kind: options})
    line: Line = build(LINES[kind], {} if options is None else options, f"{where}.{kind}", aliases=WORDS)
    return line


def parse(text: str) -> Plan:
    """A plan from YAML text; paths stay as written."""
    content = content_of_yaml(text)
    if not isinstance(content, dict):
        raise BadInput(
            "a plan is a mapping with `source`, `recipient`, `plan` and more; see `leeward recommend --help`."
        )
    found: Plan = build(Plan, content, "")
    return found


def load(path: str | Path) -> Plan:
    """Read a plan's file; relative paths are beside it, or else in the working directory. Raises BadInput for a missing
    or unreadable file, bad YAML, unknown or missing keys, values that do not fit."""
    path = Path(path)
    text = text_of(path, "plan")
    try:
        found = parse(text)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    sources = {"source": found.source, "population": found.population}
    resolved: dict[str, Any] = {
        name: resolve_source(each, path.parent) for name, each in sources.items() if each is not None
    }
    return dataclasses.replace(found, **resolved)


def plan_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a plan; editors complete and check plans with it."""
    found = schema(Plan, title="A plan of leeward recommend")
    options = {kind: schema(cls) for kind, cls in LINES.items()}
    for each in options.values():
        if "least" in each["properties"]:
            each["properties"]["from"] = each["properties"].pop("least")
    columns = {key: {"type": ["string", "number", "array"]} for key in PLAN_KEYS}
    options |= {kind: _mapping_of(columns, "covariates") for kind in PLANS}
    lines = [_mapping_of({kind: each}, kind) for kind, each in options.items()]
    items = {"anyOf": [{"enum": list(LINES)}, *lines]}
    found["properties"]["plan"] = {"type": "array", "items": items, "minItems": 1}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _mapping_of(properties: Mapping[str, Any], required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": False,
    }
