"""What a method hands to the release writer: the guarantee, the tables, and what stays in custody."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from leeward.contracts.contract import Contract, Words
from leeward.release.manifest import FileEntry
from leeward.version import RELEASE_FORMAT, __version__


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee: what holds, against whom, and what not. `to_json` writes only the keys that apply."""

    name: str
    attacker: str
    not_protected: tuple[str, ...]
    k: int | None = None
    m: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    unit: str = "patient"
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What programs need to know of the guarantee (see `contracts.contract.stated_facts`): plain JSON, no sentences."""
    model: Literal["prosecutor", "journalist"] = "prosecutor"
    """Whom the attacker looks for: a person known to be in the data, or somebody of a population who may not be."""

    @staticmethod
    def of(contract: Contract, words: Words, numbers: Mapping[str, Any]) -> Guarantee:
        """The guarantee with these words; of the numbers (k, m, …) those that the contract names."""
        given: dict[str, Any] = {name: numbers.get(name) for name in contract.numbers}
        return Guarantee(
            words.name,
            words.attacker,
            words.not_protected,
            unit=words.unit,
            facts=words.facts,
            model=contract.model,
            **given,
        )

    @property
    def risk(self) -> dict[str, Any] | None:
        """The greatest chance that the attacker is right, as the guarantee alone bounds it; None where it does not.

        With k: 1/k, for the attacker named in `attacker`. With epsilon (and no delta): what a prior of one half may
        become, e^epsilon / (1 + e^epsilon), for anybody.
        """
        if self.k is not None:
            return {"model": self.model, "maximum": 1 / self.k}
        if self.epsilon is not None and not self.delta:
            return {"model": "anybody", "prior": 0.5, "maximum": 1 / (1 + math.exp(-self.epsilon))}
        return None

    def to_json(self) -> dict[str, Any]:
        fields = {
            "name": self.name,
            "k": self.k,
            "m": self.m,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "attacker": self.attacker,
            "not_protected": list(self.not_protected),
            "facts": dict(self.facts) or None,
            "risk": self.risk,
        }
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True)
class ReleaseTable:
    """One data file, as a stream of Arrow batches so that a large release never sits in memory twice. `path` is
    relative to `data/` (for example `reconstructions/01.parquet`); the ending decides the format."""

    path: str
    schema: pa.Schema
    batches: Callable[[], Iterable[pa.RecordBatch]]

    @staticmethod
    def of(path: str, table: pa.Table) -> ReleaseTable:
        return ReleaseTable(path, table.schema, lambda: table.to_batches(max_chunksize=1 << 20))


@dataclass(frozen=True)
class Anonymized:
    """A method's result, before it is written.

    method : the manifest's `method`
    parameters : the manifest's `parameters`: public, JSON-able, never the seed
    records : number of released records
    tables : the data files of `share/data`
    readme : Markdown: how a recipient reads and analyses these files (goes into `share/README.md`)
    custody_tables : files for `custody/data` (for example the utility policy applied)
    custody : JSON-able facts for the custodian only (goes into `custody/measures.json` under `method`)
    seeded : True when a seed was chosen: the manifest has `seeded: true` and `verify` warns
    versions, returning : of a release that grows, what the manifest states of its batches (`release.versions`)
    """

    method: str
    parameters: Mapping[str, Any]
    guarantee: Guarantee
    records: int
    tables: tuple[ReleaseTable, ...]
    readme: str
    custody_tables: tuple[ReleaseTable, ...] = ()
    custody: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    seeded: bool = False
    versions: tuple[Mapping[str, Any], ...] = ()
    returning: str = ""


def manifest_of(anonymized: Anonymized, files: Sequence[FileEntry]) -> dict[str, Any]:
    """The manifest of a release. A seed is never named, only that there was one."""
    manifest: dict[str, Any] = {
        "leeward": __version__,
        "format": RELEASE_FORMAT,
        "method": anonymized.method,
        "parameters": dict(anonymized.parameters),
        "guarantee": anonymized.guarantee.to_json(),
        "records": anonymized.records,
        "files": [{"path": f.path, "rows": f.rows, "sha256": f.sha256} for f in files],
    }
    if anonymized.versions:
        manifest |= {"versions": list(anonymized.versions), "returning": anonymized.returning}
    if anonymized.seeded:
        manifest["seeded"] = True
    return manifest
