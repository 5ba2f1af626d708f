"""Methods: each a folder with frozen parameters, the code that runs them, and what is measured and reported of them.

METHODS is the only list of their names. From it follow the public names of `leeward`, the commands, the spec and its
schema, the measures and the report's sections; verifiers are found by the same names in `leeward.verify`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple


class Memory(NamedTuple):
    """What a run needs of memory, fitted to whole commands (benchmarks/memory.py): their peak was nowhere above it.

    Attributes
    ----------
    megabytes : float
        What every run needs.
    a_patient, a_row : float
        Bytes for each patient and for each row of events; of a table, for each row and for each cell.
    """

    megabytes: float = 600
    a_patient: float = 1000
    a_row: float = 250

    def bytes(self, patients: int, rows: int) -> int:
        return int(self.megabytes * 1e6 + self.a_patient * patients + self.a_row * rows)


ANY_METHOD = Memory()
"""Of a method that was not measured."""


@dataclass(frozen=True)
class Method:
    """A row of METHODS.

    Attributes
    ----------
    parameters : str
        "module:class" of the parameters; the module `method` beside it has `protect(parameters, cohort, …)`.
    command : str
        The command of the command line.
    line : str
        What it does, for `leeward --help`.
    source : `events` or `table`
        What is released: codes of patients, or a table with one row per patient.
    columns : tuple of str
        The columns that are read when only payload columns were named.
    measures : str, optional
        Module with `DEFAULTS` (as in a spec) and `measure(release, cohort, wanted, …)`; left out: `measures` beside
        the parameters.
    sections : str, optional
        Module with `sections(release, measures, verification)`; left out: `report` beside the parameters.
    memory : Memory
        What a run needs.
    in_parts : Memory, optional
        What a run needs whose source is on the disk (`runs.stored`); None for a method that needs its source in memory.
    """

    parameters: str
    command: str
    line: str
    source: Literal["events", "table"] = "events"
    columns: tuple[str, ...] = ("patient", "code")
    measures: str | None = None
    sections: str | None = None
    memory: Memory = ANY_METHOD
    in_parts: Memory | None = None

    @property
    def class_name(self) -> str:
        """The public name of the parameters, as in `leeward.Censoring`."""
        return self.parameters.partition(":")[2]

    def columns_of(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """`columns`, with the date in the place of the age where pairs have that."""
        dated = parameters.get("time", "age") != "age"
        return tuple("date" if dated and name == "age" else name for name in self.columns)

    @property
    def folder(self) -> str:
        return self.parameters.partition(":")[0].rpartition(".")[0]

    def parameters_class(self) -> Any:
        return getattr(importlib.import_module(self.parameters.partition(":")[0]), self.class_name)

    def measures_module(self) -> ModuleType | None:
        """The module of the measures; None for a method that has none."""
        return _module(self.measures or f"{self.folder}.measures")

    def reidentification(self) -> ModuleType | None:
        """The module of what an attacker finds after release (`reidentification` beside the parameters), None without:
        `count_candidates(release, cohort, population)`, where it tries something `attack`, of the same, and where the
        guarantee's risk is not the whole `scope(release)`."""
        return _module(f"{self.folder}.reidentification")

    def report(self) -> ModuleType | None:
        """The module of the report's own `sections`, and of `costs`, what a release cost; None for a method without."""
        return _module(self.sections or f"{self.folder}.report")


METHODS: dict[str, Method] = {
    "condensation": Method(
        "leeward.methods.condensation.parameters:Condensation",
        "condense",
        "Release a table of patients as synthetic rows for planned models.",
        source="table",
        memory=Memory(440, 170, 190),
    ),
    "k-anonymity": Method(
        "leeward.methods.k_anonymity.parameters:KAnonymity",
        "k-anonymize",
        "Release a table of patients, k-anonymous in its quasi-identifiers.",
        source="table",
        measures="leeward.methods.condensation.measures",
        sections="leeward.methods.condensation.report",
        memory=Memory(450, 3700, 75),
    ),
    "constraints": Method(
        "leeward.methods.constraints.parameters:Constraints",
        "constrain",
        "Release diagnosis codes, generalized and suppressed.",
        memory=Memory(425, 300, 250),
        in_parts=Memory(500, 100, 50),
    ),
    "censoring": Method(
        "leeward.methods.censoring.parameters:Censoring",
        "censor",
        "Release repeated codes as a k-map of a population.",
        memory=Memory(365, 700, 465),
        in_parts=Memory(400, 500, 100),
    ),
    "visits": Method(
        "leeward.methods.visits.parameters:Visits",
        "visits",
        "Release a population's visits, each shared by k patients.",
        columns=("patient", "code", "visit"),
        memory=Memory(400, 1050, 340),
        in_parts=Memory(660, 150, 40),
    ),
    "disassociation": Method(
        "leeward.methods.disassociation.parameters:Disassociation",
        "disassociate",
        "Release diagnosis codes by disassociation.",
        memory=Memory(1000, 0, 130),
        in_parts=Memory(830, 100, 10),
    ),
    "linked": Method(
        "leeward.methods.linked.parameters:Linked",
        "link",
        "Release patients, visits and codes as linked tables.",
    ),
    "trajectories": Method(
        "leeward.methods.trajectories.parameters:Trajectories",
        "trajectories",
        "Release codes in order with age, k-anonymous.",
        columns=("patient", "code", "age"),
        memory=Memory(400, 0, 950),
        in_parts=Memory(570, 0, 170),
    ),
}
"""Each method by its name in a spec. A new method adds a row."""


def _module(name: str) -> ModuleType | None:
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None
