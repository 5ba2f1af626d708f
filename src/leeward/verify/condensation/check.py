"""The attacker of condensed and k-anonymous tables, from the files (docs/methods/condensation.md#guarantee).

The shared folder alone shows whether the table can be laid out, whether it has the rows stated, and for `k-anonymity`
whether every combination of quasi-identifiers has k rows. With the custodian's folder beside it, k is derived again
from the groups; with the source, strata, permissible values, the groups' own marginals, and verbatim copies are
compared. Nothing of the method is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from leeward.contracts.condensation import ALGORITHMS, COLUMN, columns_of
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.condensation.own_values import (
    is_number,
    nearer_than_chance,
    order_inside,
    times_apart,
    values_of_groups,
)
from leeward.verify.manifest import README, Share

TABLE = "table.parquet"
COPIES_ALLOWED = 4.0
"""Standard deviations above chance that verbatim copies may reach."""
COPIES_MARGIN = 0.1
"""Share above chance that is still taken for likeness of synthetic rows: small tables of few levels copy themselves."""
COPIES_FACTOR, COPIES_FEW = 5.0, 10
"""Copies may be so many times what chance repeats, and a few more: where chance repeats next to nothing, next to
nothing may be copied, whatever the size of the table."""

STRATIFYING = ("balanced", "improved")
"""Algorithms whose groups lie inside strata."""

SHUFFLES, SHUFFLED_ROWS = 20, 20_000
"""Shuffles of the source that say what chance repeats, and the rows in all of them: a large table needs one."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    checks, table = layout(share)
    if table is None:
        return checks
    original = None if source is None or source.patients is None else plain(source.patients, table)
    tables = [table] if original is None else [table, original]
    checks += check_relations(share.manifest["parameters"].get("relations", ()), tables)
    groups = groups_of(share)
    if groups is not None:
        checks += check_groups(share, table, *groups)
        if original is not None:
            checks += against_groups(share, table, original, *groups)
    if original is not None:
        checks += against_source(share, table, original, groups)
    return checks


def layout(share: Share) -> tuple[list[Check], pl.DataFrame | None]:
    """The table is there, has columns and the rows that the manifest states."""
    try:
        table = share.table(TABLE)
    except (OSError, pl.exceptions.PolarsError):
        return [Check("layout", False, f"{TABLE} is missing or cannot be read.")], None
    k = share.guarantee("k")
    stated = int(share.manifest["records"])
    checks = [
        Check("layout", table.width > 0, f"{TABLE} has {table.width} columns."),
        Check(
            "rows",
            table.height == stated and table.height >= k,
            f"{table.height:,} rows; the manifest states {stated:,}, and at least k = {k:,} are needed.",
            {"rows": table.height, "stated": stated},
        ),
    ]
    return checks, table


def plain(patients: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The source without its identifier, numbers as the release has them."""
    if "patient" in patients.columns and "patient" not in table.columns:
        patients = patients.drop("patient")
    casts = [
        pl.col(name).cast(pl.String)
        for name, kind in patients.schema.items()
        if isinstance(kind, pl.Enum | pl.Categorical)
    ]
    return patients.with_columns(casts)


def groups_of(share: Share) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """The custodian's source rows and released rows with their groups; None where the folder is not at hand."""
    source, released = share.kept("source_rows.parquet"), share.kept("released_rows.parquet")
    if source is None or released is None:
        return None
    return pl.read_parquet(source), pl.read_parquet(released)


def check_groups(
    share: Share, table: pl.DataFrame, source: pl.DataFrame, released: pl.DataFrame
) -> list[Check]:
    """k again, from the custody file: every group has k source rows or more, and as many released ones."""
    k = share.guarantee("k")
    sizes = source.group_by("group").agg(pl.len().alias("rows"), pl.col("row").n_unique().alias("distinct"))
    made = released.group_by("group").agg(pl.len().alias("made"))
    both = sizes.join(made, on="group", how="full", coalesce=True).fill_null(0)
    small = int((both["distinct"] < k).sum())
    uneven = int((both["rows"] != both["made"]).sum())
    repeated = source.height - source["row"].n_unique()
    numbered = np.array_equal(np.sort(released["record"].to_numpy()), np.arange(table.height))
    return [
        of_count(
            "groups_of_k",
            small,
            f"Every group has at least {k:,} source rows.",
            f"groups have fewer than {k:,} source rows.",
            {"groups": both.height, "least": int(both["distinct"].to_numpy().min(initial=table.height))},
        ),
        of_count(
            "groups_disjoint",
            repeated,
            "Every source row is in one group.",
            "source rows are in a group more than once.",
        ),
        of_count(
            "groups_whole",
            uneven + (not numbered),
            "Every group has as many released rows as source rows, and every released row has a group.",
            "groups differ in their numbers of source rows and released rows.",
        ),
    ]


def against_groups(
    share: Share, table: pl.DataFrame, original: pl.DataFrame, source: pl.DataFrame, released: pl.DataFrame
) -> list[Check]:
    """The groups, row by row: a released row has the stratum, and together they have the levels, of the source rows."""
    parameters = share.manifest["parameters"]
    strata = [name for name in strata_of(parameters) if name in table.columns]
    algorithm = parameters.get("algorithm")
    own_levels = share.method == "condensation" and algorithm == "balanced"
    stratified = bool(strata) and algorithm in STRATIFYING
    if not (stratified or own_levels):
        return []
    if highest(source["row"]) > original.height or highest(released["record"]) >= table.height:
        detail = "The custody files name rows that source or release do not have."
        return [Check("strata_of_groups", False, detail)]
    before = original[source["row"].to_numpy() - 1].with_columns(source["group"])
    after = table[released["record"].to_numpy()].with_columns(released["group"])
    checks = []
    if own_levels:
        k = share.guarantee("k")
        checks.append(levels_of_groups(parameters, before, after, k))
        checks.append(values_of_groups(parameters, before, after, times_of(parameters), strata, k))
    if stratified:
        theirs, ours = (each.select(*strata, "group").unique() for each in (before, after))
        mixed = theirs.height - theirs["group"].n_unique()
        strange = ours.join(theirs, on=[*strata, "group"], how="anti").height
        checks.append(
            of_count(
                "strata_of_groups",
                mixed + strange,
                "No group mixes strata, and its released rows are of its stratum.",
                "groups mix strata, or have released rows of another stratum.",
            )
        )
    return checks


def levels_of_groups(parameters: Any, before: pl.DataFrame, after: pl.DataFrame, k: int) -> Check:
    """A group's released rows have each level of k source rows or more at least as often; more often is possible, since
    withheld or imputed values take a level of their group. Columns that a relation names are left out: they may follow
    from others."""
    left_out = {"group", *columns_of(parameters.get("relations", ()))}
    short = 0
    for name, kind in before.schema.items():
        if name not in after.columns or is_number(kind) or name in left_out:
            continue
        held, shown = (each.select("group", level=pl.col(name).cast(pl.String)) for each in (before, after))
        common = held.drop_nulls().group_by("level").len().filter(pl.col("len") >= k)
        own = held.join(common, on="level", how="semi").group_by("group", "level").len()
        both = own.join(shown.group_by("group", "level").len(), on=["group", "level"], how="left")
        short += both.filter(pl.col("len_right").fill_null(0) < pl.col("len")).height
    return of_count(
        "levels_of_groups",
        short,
        "Every group shows the levels of its source rows.",
        "levels are in fewer released rows of a group than in its source rows.",
    )


def strata_of(parameters: Any) -> list[str]:
    """The stratum columns that the parameters name: given ones and the plan's events."""
    return _columns_for(parameters, "strata", "event")


def times_of(parameters: Any) -> list[str]:
    return _columns_for(parameters, "time", "time")


def _columns_for(parameters: Any, name: str, part: str) -> list[str]:
    """The columns of a parameter, and those that the plan's models have in a part."""
    models = [model for entry in parameters.get("plan", ()) for model in entry.values()]
    return list(dict.fromkeys([*parameters.get(name, ()), *filter(None, (m.get(part) for m in models))]))


def against_source(
    share: Share,
    table: pl.DataFrame,
    original: pl.DataFrame,
    groups: tuple[pl.DataFrame, pl.DataFrame] | None = None,
) -> list[Check]:
    """Columns, types, strata counts, times, permissible values, verbatim copies."""
    there = {name: table.schema.get(name) for name in original.columns}
    kinds = [{original.schema[name], kind} for name, kind in there.items()]
    wrong = sum(len(each) > 1 and not each <= {pl.String, pl.Null} for each in kinds)
    wrong += len(set(table.columns) - set(there))
    checks = [
        of_count(
            "columns_and_types",
            wrong or int(table.columns != original.columns),
            "The table has the source's columns and types, in the source's order.",
            "columns differ from the source's in name or type, or are in another order.",
        )
    ]
    if wrong:
        return checks
    checks.append(permissible(share, table, original))
    checks += strata_counts(share, table, original)
    if share.method != "condensation":
        return checks
    known = None if groups is None or highest(groups[0]["row"]) > original.height else groups[0]
    checks.append(copies(share, table, original, known))
    return checks if known is None else checks + likeness(share, table, original, known)


def ties(parameters: Any, names: Sequence[str]) -> set[str]:
    """Columns that stated relations tie to an earlier one: shuffled by themselves they would part, as no release does,
    so that they say nothing of chance."""
    together: list[set[str]] = []
    for text in parameters.get("relations", ()):
        named = columns_of(re.split("(?<!<)=>", str(text))[-1:]) & set(names)
        met = [each for each in together if each & named]
        together = [each for each in together if each not in met] + [named.union(*met)]
    return {name for each in together for name in sorted(each, key=list(names).index)[1:]}


def likeness(share: Share, table: pl.DataFrame, original: pl.DataFrame, groups: pl.DataFrame) -> list[Check]:
    """Near twins and times beside known ones, against rows shuffled inside the groups."""
    parameters, k = share.manifest["parameters"], share.guarantee("k")
    leave, chance = [*strata_of(parameters), *times_of(parameters)], shuffle(original, groups, 0)
    leave += ties(parameters, original.columns)
    checks = nearer_than_chance(table, original, chance, leave, k)
    times, strata = (
        [name for name in names if name in table.columns]
        for names in (times_of(parameters), strata_of(parameters))
    )
    if len(times) > 1 and not parameters.get("coarsen_time"):
        checks += times_apart(table, original, chance, times, strata, k)
    return checks


def permissible(share: Share, table: pl.DataFrame, original: pl.DataFrame) -> Check:
    """Levels are the source's, numbers lie inside its range, no value is missing in a column without missing ones."""
    wrong = 0
    for name, kind in original.schema.items():
        before, after = original[name], table[name]
        if not before.null_count():
            wrong += after.null_count()
        known, held = after.drop_nulls(), before.drop_nulls()
        if not is_number(kind):
            wrong += int((~known.is_in(held.unique().implode())).sum())
        elif not len(held):
            wrong += len(known)
        else:
            wrong += int(((known < held.min()) | (known > held.max())).sum())
        if kind.is_float():
            wrong += int((known.is_nan() | known.is_infinite()).any())
    return of_count(
        "permissible_values",
        wrong,
        "Every value is permissible in its column.",
        "values are not permissible in their column.",
    )


def strata_counts(share: Share, table: pl.DataFrame, original: pl.DataFrame) -> list[Check]:
    """Each stratum has its number of rows, or none where it has fewer than k; and its times where they are exact."""
    parameters, k = share.manifest["parameters"], share.guarantee("k")
    if parameters.get("algorithm") not in STRATIFYING:
        return []
    names, times = (
        [name for name in columns if name in original.columns]
        for columns in (strata_of(parameters), times_of(parameters))
    )
    whole, strata = original, 1
    both = pl.DataFrame({"len": [original.height, table.height]})
    if names:
        kept = original.group_by(names).len().filter(pl.col("len") >= k)
        both = pl.concat([kept, table.group_by(names).len()], how="vertical_relaxed")
        whole, strata = original.join(kept, on=names, how="semi", nulls_equal=True), kept.height
    checks = [
        of_count(
            "strata_counts",
            int((~both.is_duplicated()).sum()),
            f"Each of the {strata:,} strata of at least k rows has its number of rows; others are withheld.",
            "strata have a different number of rows than in the source.",
        )
    ]
    if not times or parameters.get("coarsen_time"):
        return checks
    theirs, ours = ([each.select(*names, t).sort(*names, t) for t in times] for each in (whole, table))
    changed = sum(not one.equals(other) for one, other in zip(theirs, ours, strict=True))
    good, bad = "Each stratum has its times.", "time columns differ from the source's strata."
    return [*checks, of_count("times", changed, good, bad)]


def copies(
    share: Share, table: pl.DataFrame, original: pl.DataFrame, groups: pl.DataFrame | None = None
) -> Check:
    """Rows of the source that are in the release unchanged, against chance.

    Only source rows that fewer than k rows share count, without columns that relations tie to others. Chance is the
    larger of two shares of those rows: what the
    source does to itself (another row equals it, as a new draw from the population would), and, with the custodian's
    groups, what comes back when each column of each group is shuffled by itself: the mean of several shuffles, since
    one of a small table says little of chance.
    """
    k, drop = share.guarantee("k"), ties(share.manifest["parameters"], original.columns)
    table, original = table.drop(drop), original.drop(drop)
    rare = hash_rows(original).group_by("row").len().filter(pl.col("len") < k)
    total = int(rare["len"].sum())
    if not total:
        return Check("no_verbatim_copies", True, "Every row of the source is shared by k rows or more.")
    copied = standing(rare, table.select(original.columns).cast(original.schema))
    chance = float(rare.filter(pl.col("len") > 1)["len"].sum() or 0) / total
    if groups is not None:
        repeats = max(1, min(SHUFFLES, SHUFFLED_ROWS // original.height))
        again = [standing(rare, shuffle(original, groups, each)) for each in range(1, repeats + 1)]
        chance = max(chance, float(np.mean(again)) / total)
    allowed = chance + max(COPIES_MARGIN, COPIES_ALLOWED * float(np.sqrt(chance * (1 - chance) / total)))
    near = COPIES_FACTOR * chance + COPIES_ALLOWED * float(np.sqrt(chance / total)) + COPIES_FEW / total
    found = copied / total
    return Check(
        "no_verbatim_copies",
        found <= min(allowed, near) or copied <= 1,
        f"{copied:,} of {total:,} rows that fewer than k share are in the release unchanged "
        f"({100 * found:.1f} %); chance alone would repeat about {100 * chance:.1f} %.",
        {"copied": copied, "rows": total, "chance": chance},
    )


def hash_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Rows by 64-bit hashes, in a column `row`: equal rows are equal, others differ but for chance of no account."""
    return table.hash_rows(seed=1).alias("row").to_frame()


def standing(rare: pl.DataFrame, table: pl.DataFrame) -> int:
    """How many of the rows counted in `rare` (columns `row` and `len`) are in `table`."""
    return int(rare.join(hash_rows(table).unique(), on="row", how="semi")["len"].sum())


def shuffle(original: pl.DataFrame, groups: pl.DataFrame, number: int) -> pl.DataFrame:
    """The source's rows, each column shuffled inside the groups, in the fixed way `number`: a yardstick, no
    protection."""
    rows = groups.sort("group", "row")
    order, group = rows["row"].to_numpy() - 1, rows["group"].to_numpy()
    generator = np.random.Generator(np.random.Philox(key=number))
    taken = original[order]
    # Groups are whole numbers: adding a number below 1 shuffles inside them.
    return pl.DataFrame(
        [taken[name][order_inside(group, group + generator.random(len(order)))] for name in taken.columns]
    )


def highest(numbers: pl.Series) -> int:
    """The greatest number; 0 where there is none."""
    return int(numbers.to_numpy().max(initial=0))


BROKEN = re.compile(r"^- `([^`\n]+)`: broken in (\d+\.\d) % of the rows$", re.MULTILINE)


def facts_of(share: Share) -> list[dict[str, Any]]:
    """Every algorithm that `auto` can have chosen. Only the source tells whether columns lack a declared domain and
    which relations it keeps; the README names those that are broken."""
    parameters = share.manifest["parameters"]
    try:
        text = (share.folder / README).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    broken = [(relation, float(percent)) for relation, percent in BROKEN.findall(text)]
    chosen = parameters["algorithm"]
    return [
        {"algorithm": algorithm, "observed": observed, "broken": broken}
        for algorithm in (ALGORITHMS if chosen == "auto" else [chosen])
        for observed in ([False] if algorithm == "balanced" else [True, False])
    ]


def check_relations(relations: Sequence[str], tables: Sequence[pl.DataFrame]) -> list[Check]:
    """One check of all stated relations: the rows that break one, of the release and of the source where it is at hand,
    and relations that cannot be read."""
    if not relations:
        return []
    count = 0
    for table in tables:
        rules = [_broken(str(text), table) for text in relations]
        known = [rule.fill_null(False) for rule in rules if rule is not None]
        count += len(rules) - len(known)
        count += int(table.select(pl.any_horizontal(known).sum()).item()) if known else 0
    return [
        of_count(
            "relations",
            count,
            f"Every row keeps the {len(relations):,} stated relations.",
            "rows break a stated relation, or relations cannot be read.",
        )
    ]


def _broken(text: str, table: pl.DataFrame) -> pl.Expr | None:
    """True where a row breaks the relation; None where it cannot be read or names no column."""
    condition, _, rest = text.partition("=>") if "<=>" not in text else ("", "", text)
    if not rest:
        condition, rest = "", condition
    inside = _holds(table, condition) if condition else pl.lit(True)
    for form, rule in FORMS.items():
        found = _parts(form, rest)
        if found is not None and inside is not None:
            return rule(table, inside, *found)
    return None


def _holds(table: pl.DataFrame, condition: str) -> pl.Expr | None:
    found = _parts(rf"\s*{COLUMN} = {COLUMN}\s*", condition)
    if found is None or found[0] not in table.columns:
        return None
    if table.schema[found[0]].is_numeric():
        return pl.col(found[0]) == pl.lit(_number(found[1]))
    return pl.col(found[0]).cast(pl.String) == pl.lit(found[1])


def _zero_together(table: pl.DataFrame, inside: pl.Expr, one: str, other: str) -> pl.Expr | None:
    both = {one, other} <= set(table.columns)
    return (pl.col(one) == 0) != (pl.col(other) == 0) if both else None


def _determined(table: pl.DataFrame, inside: pl.Expr, one: str, other: str) -> pl.Expr | None:
    both = {one, other} <= set(table.columns)
    return pl.col(one).is_not_null() & (pl.col(other).drop_nulls().n_unique().over(one) > 1) if both else None


def _compared(table: pl.DataFrame, inside: pl.Expr, one: str, sign: str, other: str) -> pl.Expr | None:
    number = _number(other)
    if one not in table.columns or (other not in table.columns and number is None):
        return None
    left, right = pl.col(one), pl.col(other) if other in table.columns else pl.lit(number)
    return inside & {"<=": left > right, ">=": left < right, "=": left != right}[sign]


FORMS: dict[str, Callable[..., pl.Expr | None]] = {
    rf"\s*{COLUMN} = 0 <=> {COLUMN} = 0\s*": _zero_together,
    rf"\s*{COLUMN} -> {COLUMN}\s*": _determined,
    rf"\s*{COLUMN} (<=|>=|=) {COLUMN}\s*": _compared,
}
"""The form of a relation -> where a row breaks it, of the rows inside its condition."""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parts(form: str, text: str) -> list[str] | None:
    found = re.fullmatch(form, text)
    return None if found is None else [each for each in found.groups() if each is not None]
