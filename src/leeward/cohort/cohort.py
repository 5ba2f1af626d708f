"""The cohort: what a custodian holds, in up to three frames.

Column names are fixed here; the readers map the user's names onto them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from leeward.cohort.notices import Notice, row_text
from leeward.errors import BadInput, one_line

if TYPE_CHECKING:
    from leeward.cohort.lenses.code_sets import CodeCounts, CodeSets, Supports
    from leeward.cohort.lenses.table import Table
    from leeward.cohort.lenses.trajectories import Trajectories
    from leeward.cohort.lenses.visits import Visits

Lens = TypeVar("Lens")


@dataclass(frozen=True)
class CodeName:
    """A code's name and vocabulary. `patients`: how many have the code under this name; None for a public table's."""

    name: str
    vocabulary: str = ""
    patients: int | None = None

    def may_be_shown(self, k: int) -> bool:
        return self.patients is None or self.patients >= k


@dataclass(frozen=True)
class Cohort:
    """Patient data in up to three Polars tables. `read` makes one.

    Parameters
    ----------
    events : polars.DataFrame, optional
        One row for each recorded code: `patient`, `code` (categories sorted), `row` (number in the source, from 1)
        and, where known, `vocabulary`, `visit`, `date` and `age` (years).
    patients : polars.DataFrame, optional
        One row for each patient: `patient`, attributes and payload columns.
    notes : polars.DataFrame, optional
        One row for each note: `note`, `patient`, `date`, `text`.
    notices : tuple of Notice, optional
        What the reader repaired, left out or found unusual.
    name : str, optional
        Name of the source in messages: a file name without its folder.
    vocabulary : str, optional
        Vocabulary of the codes, for example `icd9`.
    domains : mapping, optional
        Permissible values of the columns of `patients`.
    names : mapping, optional
        Names of codes from the source's own tables.
    files : tuple of Path, optional
        In the place of `events`, where these are larger than memory: Parquet files of the same columns, each with all
        events of some patients, in the order of the source. Patients ascend from file to file.
    identified : bool, optional
        Whether `patient` has identifiers of the source, not the numbers of its lines.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> cohort
    Cohort(events.csv: events 1,632; 1 notices)
    >>> cohort.events.columns
    ['patient', 'code', 'row']
    """

    events: pl.DataFrame | None = None
    patients: pl.DataFrame | None = None
    notes: pl.DataFrame | None = None
    notices: tuple[Notice, ...] = ()
    name: str = "cohort"
    vocabulary: str | None = None
    domains: Mapping[str, Any] = field(default_factory=dict, compare=False)
    names: Mapping[str, CodeName] = field(default_factory=dict, compare=False, repr=False)
    files: tuple[Path, ...] = ()
    identified: bool = True
    _lenses: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        frames = {role: getattr(self, role) for role in ("events", "patients", "notes")}
        for name, value, kind in (
            *((role, frame, pl.DataFrame) for role, frame in frames.items() if frame is not None),
            ("name", self.name, str),
            ("notices", self.notices, tuple),
            ("domains", self.domains, Mapping),
            ("names", self.names, Mapping),
        ):
            if not isinstance(value, kind):
                raise BadInput(
                    f"`{name}` of a Cohort must be a {kind.__name__}; got {type(value).__name__}. `lw.read` makes a "
                    f"Cohort of files and of frames."
                )
        if self.events is not None and not {"patient", "code"} <= set(self.events.columns):
            raise BadInput(
                "`events` of a Cohort have the columns patient and code; `lw.read` names columns so."
            )
        object.__setattr__(self, "name", one_line(self.name))

    def require_events(self) -> pl.DataFrame:
        """The events, or an error that says what is missing; those of `files` are read, all of them."""
        if self.files:
            return pl.read_parquet(list(self.files))
        if self.events is None or self.events.height == 0:
            raise BadInput(
                f"{self.name}: no events with a patient and a code; give a file that has both columns."
            )
        return self.events

    def parts(self) -> Iterator[pl.DataFrame]:
        """The events, one part of the patients after the other."""
        if not self.files:
            yield self.require_events()
        for file in self.files:
            yield pl.read_parquet(file)

    def columns_of_events(self) -> list[str]:
        return list(pl.read_parquet_schema(self.files[0]) if self.files else self.require_events().columns)

    def count_events(self) -> int:
        if self.files:
            rows = pl.scan_parquet(list(self.files)).select(pl.len())
            return self._lens("events", lambda: int(rows.collect().item()))
        return self.require_events().height

    def supports(self) -> Supports:
        """How many patients have each code (computed once)."""
        from leeward.cohort.lenses.code_sets import Supports, code_sets_of

        sets = (code_sets_of(part) for part in self.parts()) if self.files else (self.code_sets(),)
        return self._lens("supports", lambda: Supports.of(sets))

    def code_sets(self) -> CodeSets:
        """Each patient's set of distinct codes as flat arrays (computed once)."""
        from leeward.cohort.lenses.code_sets import code_sets_of

        return self._lens("code_sets", lambda: self._join_parts(code_sets_of))

    def code_counts(self) -> CodeCounts:
        """Each patient's codes with their repeats as flat arrays; a code counts once a visit (computed once)."""
        from leeward.cohort.lenses.code_sets import code_counts_of

        return self._lens("code_counts", lambda: self._join_parts(code_counts_of))

    def visits(self, *, merged: bool = False) -> Visits:
        """Each patient's visits as sets of codes in flat arrays, or one set per patient (computed once)."""
        from leeward.cohort.lenses.visits import visits_of

        return self._lens(
            f"visits, merged: {merged}",
            lambda: self._join_parts(lambda events: visits_of(events, self.name, merged=merged)),
        )

    def trajectories(self, first: int = 0, last: int = 127, dated: bool = False) -> Trajectories:
        """Each patient's (code, age) pairs in order as flat arrays; ages from `first` to `last`, where `dated` months
        of a calendar (computed once)."""
        from leeward.cohort.lenses.trajectories import trajectories_of

        lens: Trajectories = self._lens(
            f"trajectories {first}-{last} {dated}",
            lambda: self._join_parts(lambda events: trajectories_of(events, first, last, self.name, dated)),
        )
        if not len(lens):
            span = f"{first // 12} to {last // 12}" if dated else f"{first} to {last} years"
            raise BadInput(f"{self.name}: no event has {'a date' if dated else 'an age'} from {span}.")
        return lens

    def table(self) -> Table:
        """The patients' frame as columns of numbers with their permissible values (computed once)."""
        from leeward.cohort.lenses.table import table_of

        self.require_one_row_each()
        return self._lens("table", lambda: table_of(self.patients, self.domains, self.name))

    def let_go(self) -> None:
        """Of what was computed once: it is computed again when it is asked for."""
        self._lenses.clear()

    def _join_parts(self, lens_of: Callable[[pl.DataFrame], Lens]) -> Lens:
        """The lens of all patients, made a part at a time."""
        from leeward.cohort.lenses.joined import join

        return join([lens_of(part) for part in self.parts()])

    def _lens(self, key: str, make: Callable[[], Lens]) -> Lens:
        if key not in self._lenses:
            self._lenses[key] = make()
        found: Lens = self._lenses[key]
        return found

    def payload(
        self, names: Sequence[str], patients: pl.Series, taken: tuple[str, ...] = ()
    ) -> pl.DataFrame | None:
        """Columns of the patients' frame in the order of `patients`, or None where none are wanted; BadInput for a
        column that is missing or has a name that is `taken`, and for a patient with two rows."""
        if not names:
            return None
        columns = [] if self.patients is None else self.patients.columns
        for name in names:
            if name not in columns or name in ("patient", *taken):
                listed = ", ".join(column for column in columns if column != "patient") or "none"
                raise BadInput(
                    f"{self.name}: no payload column '{name}' among the patients' columns: {listed}."
                )
        assert self.patients is not None  # for the types: its columns were just listed
        self.require_one_row_each()
        wanted = patients.alias("patient").to_frame()
        return wanted.join(
            self.patients.select("patient", *names), on="patient", how="left", maintain_order="left"
        ).drop("patient")

    def require_one_row_each(self) -> None:
        if self.patients is None or "patient" not in self.patients.columns:
            return
        doubled = self.patients["patient"].is_duplicated()
        if not doubled.any():
            return
        raise BadInput(
            f"{self.name}: the patients' table holds {self.patients['patient'].filter(doubled).n_unique():,} patients "
            f"more than once ({row_text(doubled.arg_true() + 1)}); keep one row for each."
        )

    def restrict(self, patients: pl.Series) -> Cohort:
        """The cohort of some of its patients; codes that none of them has are gone."""
        chosen = pl.col("patient").is_in(patients.implode())
        events = self.require_events().filter(chosen)
        codes = events["code"].unique().cast(pl.String).sort()
        return Cohort(
            events=events.with_columns(pl.col("code").cast(pl.Enum(codes))),
            patients=None if self.patients is None else self.patients.filter(chosen),
            name=self.name,
            vocabulary=self.vocabulary,
            names=self.names,
            identified=self.identified,
        )

    def identifiers(self) -> pl.Series | None:
        """The distinct identifiers of the patients whose records are released; None where the source has none."""
        if not self.identified:
            return None
        if self.files:
            lazy = pl.scan_parquet(list(self.files)).select("patient").unique()
            return lazy.collect(engine="streaming")["patient"]
        frame = self.patients if self.events is None else self.events
        return None if frame is None or "patient" not in frame.columns else frame["patient"].unique()

    def with_notices(self, *notices: Notice) -> Cohort:
        return replace(self, notices=self.notices + notices)

    def __repr__(self) -> str:
        parts = [f"{label} {rows:,}" for label, rows in self._rows().items()]
        return f"Cohort({self.name}: {', '.join(parts) or 'empty'}; {len(self.notices)} notices)"

    def _repr_html_(self) -> str:
        """A card for notebooks: rows of each frame, vocabulary, notices; nothing of a single patient."""
        lines = {label: f"{rows:,}" for label, rows in self._rows().items()}
        lines |= {"vocabulary": self.vocabulary} if self.vocabulary else {}
        lines |= {"notices": " ".join(f"{each.message}." for each in self.notices)} if self.notices else {}
        left = "style='text-align:left'"
        cells = "".join(
            f"<tr><th {left}>{escape(label)}</th><td {left}>{escape(text)}</td></tr>"
            for label, text in lines.items()
        )
        return f"<table><caption {left}><b>{escape(self.name)}</b></caption><tbody>{cells}</tbody></table>"

    def _rows(self) -> dict[str, int]:
        frames = {"events": self.events, "patients": self.patients, "notes": self.notes}
        return {label: frame.height for label, frame in frames.items() if frame is not None}
