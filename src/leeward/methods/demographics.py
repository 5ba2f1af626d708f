"""What methods share that release demographics beside codes: parameters, classes, their tables and words
(docs/methods/whole-patient.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import pyarrow as pa

from leeward.errors import BadInput
from leeward.fields import OMIT, BadParameter, Parameter
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    import polars as pl

    from leeward.analysis.demographics import Classes
    from leeward.cohort.cohort import Cohort

WORDS_OF_LEVELS = ("exact", "all")


def _with_demographics(name: str) -> Any:
    """Shown in a manifest that has demographics, and in no other."""
    return lambda parameters: getattr(parameters, name) if parameters.demographics else OMIT


def _kinds(parameters: Any) -> Any:
    """The hierarchies as a manifest shows them: a file without its path."""
    kinds = ("intervals", "prefix", "exact")
    named = parameters.hierarchies
    return {c: h if h in kinds else "file" for c, h in sorted(named.items())} if named else OMIT


Demographics = Annotated[
    tuple[str, ...],
    Parameter(
        "Columns of the patients that an attacker knows exactly: released generalized, in classes of at least k "
        "patients who share all of them.",
        metavar="COL[,COL…]",
    ),
]

Keep = Annotated[
    Mapping[str, int | str] | None,
    Parameter(
        "How finely to release a column: years of an interval (1, 5, 10, 20, 40), characters of a prefix, steps below "
        "the root of a file's hierarchy; or exact, or all (not at all).",
        default="as the search finds",
        metavar="COL:LEVEL[,…]",
        shown=lambda p: dict(p.keep) if p.keep else OMIT,
    ),
]

Small = Annotated[
    Literal["merge", "suppress", "drop"],
    Parameter(
        "Classes of fewer than k patients. merge: joined with the nearest class; suppress: their demographics are not "
        "released; drop: these patients are left out.",
        shown=_with_demographics("small"),
    ),
]

Hierarchies = Annotated[
    Mapping[str, str] | None,
    Parameter(
        "The hierarchy of a column: intervals, prefix, exact, or a CSV file with the columns node,parent.",
        default="intervals for ages and years, prefix for post codes, else exact",
        metavar="COL:HIERARCHY[,…]",
        shown=_kinds,
    ),
]


class WithDemographics(Protocol):
    """The parameters of a method that can release demographics."""

    @property
    def k(self) -> int: ...
    @property
    def demographics(self) -> tuple[str, ...]: ...
    @property
    def keep(self) -> Mapping[str, int | str] | None: ...
    @property
    def small(self) -> str: ...
    @property
    def hierarchies(self) -> Mapping[str, str] | None: ...


def check(parameters: WithDemographics, payload: tuple[str, ...] = ()) -> None:
    """The rules between the fields of demographics. BadInput where one is broken."""
    names = parameters.demographics
    if len(set(names)) < len(names):
        raise BadParameter("demographics", "names a column twice; name each once.")
    for field, given in (("keep", parameters.keep), ("hierarchies", parameters.hierarchies)):
        for name in given or {}:
            if name not in names:
                raise BadParameter(field, f"names `{name}`, which is not in `demographics`; add it there.")
    for name, level in (parameters.keep or {}).items():
        if isinstance(level, str) and level not in WORDS_OF_LEVELS:
            raise BadParameter(f"keep.{name}", "must be a whole number, `exact` or `all`; got text.")
        if isinstance(level, int) and level < 1:
            raise BadParameter(f"keep.{name}", f"must be at least 1; got {level}.")
    both = sorted(set(names) & set(payload))
    if both:
        raise BadInput(
            f"`{both[0]}` is in `demographics` and in `payload`: an attacker knows it, or does not. Keep one."
        )


def find_classes(
    parameters: WithDemographics, cohort: Cohort, patients: pl.Series, randomness: Randomness
) -> Classes:
    """The classes of the patients of a lens, in its order (docs/methods/whole-patient.md#classes).

    Raises
    ------
    BadInput
        A column that is missing or cannot be released so.
    GuaranteeUnreachable
        Fewer than k patients.
    """
    from leeward.analysis.demographics import classes_of, columns_of

    keep = dict(parameters.keep or {})
    columns = columns_of(
        cohort.patients, patients, parameters.demographics, parameters.hierarchies or {}, keep, cohort.name
    )
    return classes_of(columns, keep, parameters.k, parameters.small, randomness, frozenset(keep))


def class_table(classes: Classes) -> pa.Table:
    """`classes.parquet`: one row a class with its labels and its number of records."""
    labels = list(zip(*classes.labels, strict=True))
    columns: dict[str, pa.Array] = {"class": pa.array(range(len(classes)), pa.int64())}
    for name, values in zip(classes.columns.names, labels, strict=True):
        columns[name] = pa.array(values, pa.string())
    return pa.table({**columns, "records": pa.array(classes.sizes.tolist(), pa.int64())})


def tables_of(classes: Classes) -> tuple[ReleaseTable, ...]:
    """`classes.parquet`, and for each column the hierarchy of its published labels."""
    found = [ReleaseTable.of("classes.parquet", class_table(classes))]
    for i, column in enumerate(classes.columns.columns):
        tree = column.tree
        shown = {int(node) for node in classes.vectors[:, i]}
        shown |= {above for node in tuple(shown) for above in tree.ancestors(node)}
        nodes = sorted(shown)
        pairs = pa.table(
            {
                "node": pa.array([tree.labels[node] for node in nodes], pa.string()),
                "parent": pa.array(
                    [tree.labels[int(tree.parent[node])] if node else "" for node in nodes], pa.string()
                ),
            }
        )
        found.append(ReleaseTable.of(f"hierarchies/{column.name}.csv", pairs))
    return tuple(found)


def custody_tables_of(classes: Classes) -> tuple[ReleaseTable, ...]:
    """The whole hierarchy of each column that a file brought, for verification beside the source."""
    found = []
    for column in classes.columns.columns:
        if column.kind == "file":
            nodes, parents = zip(*column.tree.to_pairs(), strict=True)
            pairs = pa.table({"node": pa.array(nodes, pa.string()), "parent": pa.array(parents, pa.string())})
            found.append(ReleaseTable.of(f"hierarchies/{column.name}.parquet", pairs))
    return tuple(found)


def facts_of(classes: Classes) -> dict[str, Any]:
    """What the custodian is told of the classes."""
    return {
        "classes": len(classes),
        "smallest_class": int(classes.sizes.min()),
        "patients_in_small_classes": classes.small,
        "patients_taken_into_small_classes": classes.taken,
        "patients_left_out": classes.left_out,
        "demographics_loss": classes.losses(),
        "missing_demographics": {c.name: c.missing for c in classes.columns.columns},
    }


def notices_of(classes: Classes, small: str) -> tuple[str, ...]:
    """What a person should know: missing values, small classes."""
    found = [
        f"{c.missing:,} of {classes.columns.records:,} patients have no value of `{c.name}`: a category of their own, "
        "(missing)."
        for c in classes.columns.columns
        if c.missing
    ]
    if classes.small:
        done = {
            "merge": f"were joined with others ({classes.taken:,} of larger classes with them)",
            "suppress": "are released without their demographics",
            "drop": "are left out of the release",
        }[small]
        found.append(f"{classes.small:,} patients in classes of fewer than k {done}.")
    return tuple(found)
