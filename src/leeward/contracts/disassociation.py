"""What a release of disassociated chunks may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import of_codes

TEXT = texts_of("disassociation")


def counted_from(parameters: Mapping[str, Any]) -> int:
    """The least number of patients who share a code that is counted, or the codes of a chunk. Where the attacker knows
    it, it is k + 1: a code that is only listed may then have k patients in its cluster."""
    k: int = parameters["k"]
    return k + (parameters.get("attacker") in ("counts", "rules"))


def words(parameters: Mapping[str, Any]) -> Words:
    k, m = parameters["k"], parameters["m"]
    if parameters.get("attacker") == "algorithm":
        return Words(
            TEXT.of_the_algorithm,
            TEXT.knows_algorithm.format(m=m),
            (
                TEXT.some_data_set_of_the_algorithm.format(k=k),
                TEXT.beyond_m.format(m=m),
                TEXT.pooled,
                TEXT.agreed,
            ),
            TEXT.readme_of_counts,
            stated_facts("up to m codes", "data sets"),
        )
    names, ells = classes.names_of(parameters), classes.ells_of(parameters)
    payload = parameters.get("payload") or ()
    known, some_data_set = KNOWN.get(str(parameters.get("attacker")), ("", TEXT.some_data_set))
    rules = parameters.get("attacker") == "rules"
    attacker = TEXT.classed_attacker if names else TEXT.attacker
    more = {"diversity": ells} if ells else {}
    left_open = [
        some_data_set.format(k=k),
        TEXT.covers + (TEXT.no_covers if parameters["safe"] else ""),
        TEXT.beyond_m.format(m=m),
        TEXT.pooled,
        TEXT.agreed,
        *([TEXT.sensitive] if parameters.get("sensitive") else []),
        *classes.limits(parameters),
        *([TEXT.payload_unknown.format(names=classes.in_words(payload))] if payload else []),
        *([TEXT.columns_unknown.format(names=classes.in_words(list(ells)))] if ells else []),
    ]
    return Words(
        TEXT.classed_name if names else TEXT.name,
        (attacker + known).format(names=classes.in_words(names), m=m, least=k + 1),
        tuple(left_open),
        reading(parameters) + (TEXT.readme_of_rules if rules else TEXT.readme),
        stated_facts("up to m codes", "data sets", payload, **classes.facts(parameters), **more),
    )


KNOWN = {
    "counts": (TEXT.knows_counts, TEXT.some_data_set_of_counts),
    "rules": (TEXT.knows_rules, TEXT.some_data_set_of_rules),
}
"""What the attacker knows beside codes, and what is promised then."""


def reading(parameters: Mapping[str, Any]) -> str:
    """How classes, payload and sensitive columns are read; nothing without classes."""
    if not classes.names_of(parameters):
        return ""
    ells = ", ".join(f"{name} L = {ell}" for name, ell in classes.ells_of(parameters).items())
    text: str = classes.readme(parameters) + TEXT.classes
    text += TEXT.payload if parameters.get("payload") else ""
    return text + (TEXT.sensitive_columns.format(ells=ells) if ells else "") + "\n"


NODES = {"node": "int64", "parent": "int64", "kind": "string", "records": "int64"}


def node_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of `nodes.parquet`: with classes, one more."""
    return {**NODES, **({"class": "int64"} if classes.names_of(parameters) else {})}


ALONE = {"nested": True, "safe": True}
"""What chunks of one code each make of parameters."""

RANKED = {"partitioning": "ranked", **ALONE, "reconstructions": 0}
"""What `attacker: algorithm` makes of parameters."""


def complete(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {name: value for name, value in parameters.items() if value is not None}
    k, chosen = given.get("k", 5), given.get("partitioning")
    if not isinstance(k, int):
        return given
    if given.get("attacker") == "algorithm":
        return {"max_cluster": 20 * k, **given, **RANKED}
    least = counted_from({"attacker": "counts", **given, "k": k})
    if chosen not in ("fitted", "recut", "paper"):
        chosen = "fitted" if least >= 3 else "recut"
    times = min(least, 10) if chosen == "fitted" else 2
    alone = ALONE if given.get("attacker") == "rules" else {}
    return {"max_cluster": times * least, **given, "partitioning": chosen, **alone}


def undecided(asked: Mapping[str, Any], stated: Mapping[str, Any]) -> set[str]:
    """`max_cluster`, where a spec leaves it open and no run decides it so: it follows from the partitioning, but that
    few patients may be fitted in small clusters (`methods.disassociation.trial`)."""
    if asked.get("max_cluster") or not isinstance(stated.get("k"), int):
        return set()
    sizes = [complete({**stated, "max_cluster": None})["max_cluster"]]
    if asked.get("partitioning", "auto") == "auto" and stated.get("partitioning") == "fitted":
        sizes.append(2 * counted_from(stated))
    return set() if stated.get("max_cluster") in sizes else {"max_cluster"}


def reconstructions(parameters: Mapping[str, Any]) -> Iterator[str]:
    return (f"reconstructions/{number:02d}.parquet" for number in range(1, parameters["reconstructions"] + 1))


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table("nodes.parquet", NODES, nullable=frozenset({"parent"}), made=node_columns, order=("node",)),
        Table(
            "chunks.parquet",
            {"node": "int64", "chunk": "int64", "kind": "string", "subrecord": "int64", "codes": LISTS},
            nullable=frozenset({"subrecord"}),
            order=("node", "chunk", "subrecord"),
        ),
        Table(
            lambda parameters: ["payload.parquet"] if parameters.get("payload") else [],
            {"node": "int64", "column": "string", "value": "string"},
            nullable=frozenset({"value"}),
        ),
        Table(
            lambda parameters: ["sensitive.parquet"] if classes.ells_of(parameters) else [],
            {"class": "int64", "column": "string", "value": "string", "records": "int64"},
            nullable=frozenset({"value"}),
        ),
        Table(reconstructions, {"record": "int64", "codes": LISTS}, order=("record",)),
        CODES,
    ),
    parameters=declared("disassociation"),
    completed=complete,
    undecided=undecided,
    words=words,
    numbers=("k", "m"),
    meanings=TEXT.meanings,
    counting=of_codes(TEXT.pandas, TEXT.r),
)
