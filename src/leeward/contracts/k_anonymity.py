"""What a release of a k-anonymous table may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.classes import ells_of, in_words
from leeward.contracts.condensation import COUNTING, distinct, is_model
from leeward.contracts.contract import Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README

TEXT = texts_of("k-anonymity")


def words(parameters: Mapping[str, Any], *, columns: Sequence[str]) -> Words:
    """The wording of k-anonymity over the quasi-identifiers named; `columns` of the table."""
    names = parameters["quasi_identifiers"]
    rest = [name for name in columns if name not in names]
    ells, most = ells_of(parameters), parameters.get("closeness") or {}
    sensitive = distinct(ells, most)
    others = [name for name in rest if name not in sensitive]
    parts = {"k-anonymity": True, "l-diversity": ells, "t-closeness": most}
    bounds = [TEXT.rare.format(column=name, ell=ell) for name, ell in ells.items()]
    bounds += [TEXT.near.format(column=name, t=t) for name, t in most.items()]
    return Words(
        in_words([part for part, there in parts.items() if there]),
        "".join([TEXT.attacker, *bounds]),
        (
            *(each.format(columns=", ".join(sensitive)) for each in TEXT.sensitive if sensitive),
            *([TEXT.others.format(columns=", ".join(others))] if others else []),
            *([] if sensitive else [TEXT.shared]),
            README.knows_algorithm.format(what=TEXT.fitting),
            TEXT.pooled,
        ),
        TEXT.readme.format(columns=", ".join(names)),
        stated_facts("quasi-identifiers", "release", rest),
    )


def together(parameters: Mapping[str, Any]) -> bool:
    """Whether there are quasi-identifiers, none of them sensitive, and the plan is one."""
    names = parameters["quasi_identifiers"]
    hidden = distinct(ells_of(parameters), parameters.get("closeness"))
    return bool(names) and not {*names} & {*hidden} and all(map(is_model, parameters.get("plan", [])))


CONTRACT = Contract(
    tables=(Table("table.parquet", None),),
    parameters=declared("k-anonymity"),
    rules=together,
    words=words,
    records=("table.parquet",),
    owners={"released_rows.parquet": "group"},
    counting=COUNTING,
)
