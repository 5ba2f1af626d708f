"""The release of a condensed table: files, and what stays in custody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.contracts.condensation import CONTRACT
from leeward.methods.condensation.cell import CellKernel
from leeward.methods.condensation.condense import Condensed
from leeward.methods.condensation.parameters import SMALL_K
from leeward.methods.condensation.prepare import Prepared
from leeward.methods.condensation.proposals import Proposal
from leeward.methods.condensation.relations import of_several_times
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
    table, rows = condensed.frame.to_arrow(), condensed.frame.height
    proposed = [{"relation": each.relation.text, "broken": each.broken} for each in proposals]
    kept = tuple(each.text for each in kernel.relations)
    found, shown = kept[len(set(chosen.stated)) :], asked.public(relations=kept)
    words = CONTRACT.words(
        shown,
        algorithm=chosen.algorithm,
        observed=_observed(prepared, kernel),
        broken=[(each.relation.text, 100 * each.broken / rows) for each in proposals if each.broken],
    )
    return Anonymized(
        method=asked.name,
        parameters=shown,
        guarantee=Guarantee.of(CONTRACT, words, shown),
        records=rows,
        tables=(ReleaseTable.of("table.parquet", table),),
        readme=words.readme,
        custody_tables=custody_tables(condensed, further),
        custody={
            **custody_of(chosen, prepared, kernel, condensed),
            **({"pilot": dict(pilot)} if pilot else {}),
            "relations": {"confirmed": list(chosen.stated), "kept": found, "proposed": proposed},
        },
        notices=(
            *notices_of(prepared, condensed, kernel),
            *lost_coefficients(chosen, prepared),
            *broken_proposals(proposals, prepared.exact),
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
    found, withheld = [], _counts(prepared, "withheld_levels")
    for model in [each for each in method.models if each.kind != "forest"]:
        columns = [prepared.table.column(name) for name in model.covariates]
        gone = {name: n for name, n in withheld.items() if name in model.covariates}
        if gone:
            coefficients = sum(len(each.levels) - 1 if each.is_categorical else 1 for each in columns)
            listed = ", ".join(f"{count:,} of '{name}'" for name, count in gone.items())
            found.append(
                f"{model.title}: withheld levels ({listed}) take {sum(gone.values()):,} of {coefficients:,} "
                "coefficients out of this model. Group rare levels in the source, or keep them (`rare` keep, which "
                "publishes them)."
            )
    return tuple(found)


def _counts(prepared: Prepared, what: Literal["withheld_levels", "imputed"]) -> dict[str, int]:
    return {each.name: count for each in prepared.columns if (count := getattr(each, what))}


def broken_proposals(proposals: Sequence[Proposal], exact: Sequence[str]) -> tuple[str, ...]:
    """For the custodian: what may be confirmed."""
    lost = [each for each in proposals if each.broken and not of_several_times(each.relation, exact)]
    if not lost:
        return ()
    listed = "; ".join(f"`{each.relation.text}` ({each.broken:,} rows)" for each in lost)
    text = (
        f"{len(lost):,} relations hold in every row of the source and are broken in the release: {listed}. Confirm "
        "those that always hold as `relations`, and they are kept."
    )
    return (text,)


def custody_tables(condensed: Condensed, further: Sequence[pl.DataFrame]) -> tuple[ReleaseTable, ...]:
    """The groups, from which k can be derived again (which source rows, which released rows); further made tables."""
    count = len(condensed.group_stratum)
    sizes = np.bincount(condensed.source_group, minlength=count)
    source = condensed.source_row
    by_row = np.argsort(source, kind="stable")
    tables = {
        "groups": pa.table({"group": np.arange(count), "stratum": condensed.group_stratum, "rows": sizes}),
        "source_rows": pa.table({"row": source[by_row] + 1, "group": condensed.source_group[by_row]}),
        "released_rows": pa.table({"record": np.arange(len(condensed.group)), "group": condensed.group}),
        **{f"repetitions/{n:03d}": frame.to_arrow() for n, frame in enumerate(further, start=1)},
    }
    return tuple(ReleaseTable.of(f"{name}.parquet", table) for name, table in tables.items())


def custody_of(
    method: Condensation, prepared: Prepared, kernel: CellKernel, condensed: Condensed
) -> dict[str, Any]:
    sizes = np.bincount(condensed.source_group)
    facts = condensed.facts
    return {
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
        "withheld_rows": int((prepared.stratum < 0).sum()),
        "withheld_levels": _counts(prepared, "withheld_levels"),
        "imputed": _counts(prepared, "imputed"),
        "missing": method.missing,
        "fell_back_to_sampled": int(facts["fell_back"]),
        "identical_groups": int(facts["identical"]),
    }


def notices_of(prepared: Prepared, condensed: Condensed, kernel: CellKernel) -> tuple[str, ...]:
    k, withheld = kernel.k, int((prepared.stratum < 0).sum())
    levels, imputed = _counts(prepared, "withheld_levels"), _counts(prepared, "imputed")
    empty = len(prepared.columns) - len(prepared.features)
    identical, fell_back = (int(condensed.facts[name]) for name in ("identical", "fell_back"))
    undeclared = [
        feature.column.name
        for feature in prepared.features
        if not feature.column.declared and not feature.column.is_categorical and feature.role == "other"
    ]
    notices = {
        f"{withheld:,} rows in strata of fewer than {k:,} rows were withheld: they are not in the release.": withheld,
        f"{sum(levels.values()):,} levels of {len(levels):,} columns, each in fewer than {k:,} rows, were withheld: "
        "their rows have a level of their group instead.": levels,
        f"{sum(imputed.values()):,} values of {len(imputed):,} columns were missing or withheld and are imputed inside "
        "their groups.": imputed,
        f"k = {k} is below {SMALL_K}: so small groups tell about where their patients' times lie, and whether somebody "
        "is in the table at all can often be told; the report has the figures.": k < SMALL_K,
        f"{empty:,} columns have no value and are released empty.": empty,
        f"{identical:,} groups consist of rows that are all alike; such rows are released as they are (at least k "
        "patients share each).": identical,
        f"{fell_back:,} groups were too small for exact moments and were sampled.": fell_back,
        f"{len(undeclared):,} columns have no declared domain: values are kept between the least and the greatest "
        "observed one, which are real values. Declare `domains` in the source.": (
            undeclared and kernel.marginals != "group"
        ),
    }
    return tuple(notice for notice, holds in notices.items() if holds)
