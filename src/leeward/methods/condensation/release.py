"""The release of a condensed table: files, and what stays in custody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.contracts.condensation import CONTRACT
from leeward.methods.condensation.cell import CellKernel
from leeward.methods.condensation.parameters import SMALL_K
from leeward.methods.condensation.prepare import Prepared
from leeward.methods.condensation.proposals import Proposal
from leeward.methods.condensation.relations import of_several_times
from leeward.methods.condensation.run import Condensed
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.methods.condensation.parameters import Condensation


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
    table, rows = condensed.frame.to_arrow(), condensed.frame.height
    words = CONTRACT.words(
        asked.public(),
        algorithm=chosen.algorithm,
        observed=_observed(prepared, kernel),
        broken=[(each.relation.text, 100 * each.broken / rows) for each in proposals if each.broken],
    )
    return Anonymized(
        method=asked.name,
        parameters=asked.public(),
        guarantee=Guarantee.of(CONTRACT, words, asked.public()),
        records=rows,
        tables=(ReleaseTable.of("table.parquet", table),),
        readme=words.readme,
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


def _observed(prepared: Prepared, kernel: CellKernel) -> bool:
    """Whether the least and the greatest value of a column may be real ones: no group's own, and no declared domain."""
    return kernel.marginals != "group" and any(
        not feature.column.declared and not feature.column.is_categorical for feature in prepared.features
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
