"""The release of a condensed table: guarantee in words, files, and what stays in custody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.contracts.words import stated_facts
from leeward.methods.condensation.cell import CellKernel
from leeward.methods.condensation.parameters import SMALL_K
from leeward.methods.condensation.prepare import Prepared
from leeward.methods.condensation.proposals import Proposal
from leeward.methods.condensation.relations import of_several_times
from leeward.methods.condensation.run import Condensed
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.methods.condensation.parameters import Condensation

ATTACKER = (
    "Somebody who knows everything about a patient but the outcome times below, and how the table was made. Each "
    "released row was made from the mean of a group of at least k patients and from the covariance of that group or of "
    "neighbouring ones (and, where `marginals` is `group`, from the group's values column by column). Every patient of "
    "a group counts alike: whoever finds the patient's group has found at least k people."
)

NO_K_ANONYMITY = (
    "Released rows are synthetic and mostly different from each other: this is k-indistinguishability of groups, not "
    "k-anonymity of the released rows, and not differential privacy. A released row may by chance equal an original "
    "one."
)
ATTRIBUTES = (
    "What a whole group of patients shares (for example the same stage) can be read from the release: attributes are "
    "not hidden where a group agrees on them. So can about where a group's outcome times lie."
)
MEMBERSHIP = (
    "Membership: whether somebody is in the table can be told better than by chance, the better the smaller k is. A "
    "larger k is the remedy."
)
POOLED = (
    "People who pool what they know: somebody who knows the values of all patients of a group but one can take them "
    "away from what the group's rows show, and is left with about the last patient's (with the very time, where times "
    "are exact)."
)
COARSE_TIMES = (
    "Coarse times: a pair of stratum and time mostly names one group of patients{groups}, whose values can then be "
    "read column by column, the less so the more groups share a time."
)
EXACT_TIMES = (
    "Exact survival times: the published pairs of stratum ({strata}) and time ({times}) are the original ones. "
    "Somebody who knows a patient's exact time finds it in the release; medians of groups (`coarsen_time`) "
    "would prevent this."
)
SEVERAL_TIMES = (
    "Several exact times: somebody who knows one of a patient's times finds it in the release and reads the others "
    "beside it. Only {first} is matched to the other columns; {further} {are} given at random among at least k "
    "patients of a stratum, so that a time read in this way is the patient's in at most one of k cases, or more often "
    "where times tie. Somebody who also knows which times cannot go together (a recurrence after death) can rule rows "
    "out."
)
OWN_VALUES = (
    "Unusual single values: each column keeps its values group by group (levels exactly, numbers to at most half the "
    "gap to a neighbour), so an extreme number that one patient has can show, apart from the rest of that patient's "
    "row."
)
RARE_KEPT = "Rare levels: levels that fewer than k patients have are published (`rare: keep`)."
OBSERVED = (
    "The least and the greatest value of columns without a declared domain are real ones; declare `domains` to hide "
    "them."
)


NOT_TOGETHER = (
    " Only {first} is given in that order; {further} {are} given at random among at least k patients of a stratum. "
    "Analyse each time by itself: which time of a row comes first, and how long it is from one to the other, says "
    "nothing about patients."
)
"""For the recipient."""


def release_of(
    asked: Condensation,
    chosen: Condensation,
    prepared: Prepared,
    kernel: CellKernel,
    condensed: Condensed,
    further: Sequence[pl.DataFrame],
    pilot: Mapping[str, Any],
    proposals: Sequence[Proposal],
    seeded: bool,
) -> Anonymized:
    """What the release writer needs."""
    table = condensed.frame.to_arrow()
    return Anonymized(
        method=asked.name,
        parameters=asked.public(),
        guarantee=guarantee_of(chosen, prepared, kernel),
        records=condensed.frame.height,
        tables=(ReleaseTable.of("table.parquet", table),),
        readme=readme_of(chosen, prepared, kernel) + not_kept(condensed.frame.height, proposals),
        custody_tables=(*custody_tables(prepared, condensed), *_repetitions(further)),
        custody={
            **custody_of(chosen, prepared, kernel, condensed, pilot),
            "relations": {
                "confirmed": list(chosen.relations),
                "proposed": [{"relation": each.relation.text, "broken": each.broken} for each in proposals],
            },
        },
        notices=(
            *notices_of(prepared, condensed, kernel),
            *lost_coefficients(chosen, prepared),
            *proposed([each for each in proposals if not of_several_times(each.relation, prepared.exact)]),
        ),
        seeded=seeded,
    )


def guarantee_of(method: Condensation, prepared: Prepared, kernel: CellKernel) -> Guarantee:
    """The guarantee, exactly, and what it leaves open."""
    roles = prepared.roles
    open_ends = [NO_K_ANONYMITY, ATTRIBUTES, MEMBERSHIP, POOLED]
    exact = prepared.exact
    if exact:
        strata = ", ".join(roles.strata) or "none"
        open_ends.insert(0, EXACT_TIMES.format(strata=strata, times=", ".join(exact)))
        if len(exact) > 1:
            open_ends.insert(1, SEVERAL_TIMES.format(**_several(exact)))
    elif kernel.match_times and roles.times:
        shared = f" ({method.coarsen_groups} neighbouring ones)" if method.coarsen_groups else ""
        open_ends.insert(0, COARSE_TIMES.format(groups=shared))
    if kernel.marginals == "group":
        open_ends.append(OWN_VALUES)
    if method.rare == "keep":
        open_ends.append(RARE_KEPT)
    if kernel.marginals != "group" and any(
        not f.column.declared and not f.column.is_categorical for f in prepared.features
    ):
        open_ends.append(OBSERVED)
    return Guarantee(
        name="k-indistinguishability (condensation)",
        k=method.k,
        attacker=ATTACKER,
        not_protected=tuple(open_ends),
        facts=stated_facts("all columns but the times", "group", **({"exact": list(exact)} if exact else {})),
    )


def _several(exact: Sequence[str]) -> dict[str, str]:
    """The names of several exact times, for sentences."""
    return {"first": exact[0], "further": ", ".join(exact[1:]), "are": "are" if exact[2:] else "is"}


def readme_of(method: Condensation, prepared: Prepared, kernel: CellKernel) -> str:
    """How a recipient analyses the table."""
    times = ""
    if kernel.match_times and prepared.roles.times:
        times = f"\nTimes ({', '.join(prepared.roles.times)}) are " + (
            "medians of groups of patients: survival curves have steps."
            if method.coarsen_time
            else "the original times, given to synthetic patients of the same stratum in the order of their "
            "synthetic times."
        )
    if len(prepared.exact) > 1:
        times += NOT_TOGETHER.format(**_several(prepared.exact))
    plan = ""
    if method.plan:
        plan = "\n\nIt was shaped to keep these models:\n" + "\n".join(
            f"- {model.title} on {', '.join(model.covariates)}" for model in method.models
        )
    kept = ""
    if method.relations:
        kept = "\n\nEvery row keeps:\n" + "\n".join(f"- `{each}`" for each in method.relations)
    return (
        "`table.parquet` has the columns, types and permissible values of the original table, one row a synthetic "
        "patient. Fit models as you would on the original; means, frequencies, correlations and regression "
        "coefficients are close to the original's, and standard errors need no correction of their own. Single rows "
        f"are nobody's record.{times}{plan}{kept}"
    )


def lost_coefficients(method: Condensation, prepared: Prepared) -> tuple[str, ...]:
    """For the custodian: what withheld levels take from the recipient's models."""
    found = []
    for model in method.models:
        gone = {
            name: prepared.withheld_levels[name]
            for name in model.covariates
            if name in prepared.withheld_levels
        }
        if gone:
            all_of_them = sum(
                len(column.levels) - 1 if column.is_categorical else 1
                for column in (prepared.table.column(name) for name in model.covariates)
            )
            listed = ", ".join(f"{count:,} of '{name}'" for name, count in gone.items())
            found.append(
                f"{model.title}: withheld levels ({listed}) take {sum(gone.values()):,} of {all_of_them:,} "
                "coefficients out of this model. Group rare levels in the source, or keep them (`rare` keep, which "
                "publishes them)."
            )
    return tuple(found)


def not_kept(rows: int, proposals: Sequence[Proposal]) -> str:
    """For the recipient: relations of the source that released rows break, with their share."""
    lost = [each for each in proposals if each.broken]
    if not lost:
        return ""
    listed = "\n".join(
        f"- `{each.relation.text}`: broken in {100 * each.broken / rows:.1f} % of the rows" for each in lost
    )
    return f"\n\nThese relations hold in every row of the original, but not of this table:\n{listed}"


def proposed(proposals: Sequence[Proposal]) -> tuple[str, ...]:
    """For the custodian: what may be confirmed."""
    lost = [each for each in proposals if each.broken]
    if not lost:
        return ()
    listed = "; ".join(f"`{each.relation.text}` ({each.broken:,} rows)" for each in lost)
    text = (
        f"{len(lost):,} relations hold in every row of the source and are broken in the release: {listed}. Confirm "
        "those that always hold as `relations`, and they are kept."
    )
    return (text,)


def custody_tables(prepared: Prepared, condensed: Condensed) -> tuple[ReleaseTable, ...]:
    """The groups, from which k can be derived again: which source rows, which released rows."""
    count = len(condensed.group_stratum)
    groups = pa.table(
        {
            "group": np.arange(count),
            "stratum": condensed.group_stratum,
            "rows": np.bincount(condensed.source_group, minlength=count),
        }
    )
    by_row = np.argsort(condensed.source_row, kind="stable")
    source = pa.table({"row": condensed.source_row[by_row] + 1, "group": condensed.source_group[by_row]})
    released = pa.table({"record": np.arange(len(condensed.group)), "group": condensed.group})
    return (
        ReleaseTable.of("groups.parquet", groups),
        ReleaseTable.of("source_rows.parquet", source),
        ReleaseTable.of("released_rows.parquet", released),
    )


def _repetitions(further: Sequence[pl.DataFrame]) -> tuple[ReleaseTable, ...]:
    return tuple(
        ReleaseTable.of(f"repetitions/{number:03d}.parquet", frame.to_arrow())
        for number, frame in enumerate(further, start=1)
    )


def custody_of(
    method: Condensation,
    prepared: Prepared,
    kernel: CellKernel,
    condensed: Condensed,
    pilot: Mapping[str, Any],
) -> dict[str, Any]:
    """Facts for the custodian."""
    sizes = np.bincount(condensed.source_group)
    facts = condensed.facts
    found: dict[str, Any] = {
        "algorithm": method.algorithm,
        "grouping": kernel.how,
        "marginals": kernel.marginals,
        "weight": method.weight,
        "strata_columns": list(prepared.roles.strata),
        "times": list(prepared.roles.times),
        "responses": list(prepared.roles.responses),
        "groups": len(sizes),
        "strata": len(prepared.strata),
        "parts": prepared.parts,
        "cells": condensed.cells,
        "least": int(sizes.min()),
        "median": float(np.median(sizes)),
        "most": int(sizes.max()),
        "sum_of_squares": {"before_moving": facts["before"], "after_moving": facts["after"]},
        "rows_moved": int(facts["moved"]),
        "withheld_rows": prepared.withheld_rows,
        "withheld_levels": dict(prepared.withheld_levels),
        "imputed": dict(prepared.imputed),
        "missing": method.missing,
        "fell_back_to_sampled": int(facts["fell_back"]),
        "identical_groups": int(facts["identical"]),
    }
    if pilot:
        found["pilot"] = dict(pilot)
    return found


def notices_of(prepared: Prepared, condensed: Condensed, kernel: CellKernel) -> tuple[str, ...]:
    """What a custodian should know of this run."""
    found = list(prepared.notices)
    if kernel.k < SMALL_K:
        found.append(
            f"k = {kernel.k} is below {SMALL_K}: so small groups tell about where their patients' times lie, and "
            "whether somebody is in the table at all can often be told; the report has the figures."
        )
    if prepared.empty:
        found.append(f"{len(prepared.empty):,} columns have no value and are released empty.")
    if condensed.facts["identical"]:
        found.append(
            f"{int(condensed.facts['identical']):,} groups consist of rows that are all alike; such rows are released "
            "as they are (at least k patients share each)."
        )
    if condensed.facts["fell_back"]:
        found.append(
            f"{int(condensed.facts['fell_back']):,} groups were too small for exact moments and were sampled."
        )
    undeclared = [
        feature.column.name
        for feature in prepared.features
        if not feature.column.declared and not feature.column.is_categorical and feature.role == "other"
    ]
    if undeclared and kernel.marginals != "group":
        found.append(
            f"{len(undeclared):,} columns have no declared domain: values are kept between the least and the greatest "
            "observed one, which are real values. Declare `domains` in the source."
        )
    return tuple(found)
