"""The story of an exploration: read the cohort once, try every point, verify and measure each, keep the figures.

Every point is a release as `protect` makes it, written aside, verified, measured against the plan and thrown away. What
is known of a point is one file, so that an exploration that was stopped goes on where it was. Nothing of it is for a
recipient: the folder is the custodian's.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from leeward.advise.grid import Point, points_of
from leeward.advise.page import render
from leeward.advise.plan import Counts, Line, Plan, line_of
from leeward.advise.risk import maximum_in_words, measure_risk
from leeward.advise.thresholds import limits
from leeward.advise.utility.measure import Prepared, prepare, utility_of
from leeward.analysis.figures import plain
from leeward.cohort.cohort import Cohort
from leeward.engine import at_most, available_threads, make, pool
from leeward.errors import BadInput, GuaranteeUnreachable, LeewardError, VerificationFailed
from leeward.queries.state import write_whole
from leeward.randomness import Randomness
from leeward.release import Release, draft
from leeward.release.aside import alone_in, own_file
from leeward.release.manifest import to_json_text
from leeward.release.spec import Spec, load
from leeward.runs.progress import Tell, watch
from leeward.runs.protect import method_of, verify_or_raise
from leeward.runs.specs import plan_of, read_missing, read_source
from leeward.runs.writing import measure_release
from leeward.version import __version__

SAMPLE_SEED = 20261122
SETTINGS = "settings.json"
STATUS: dict[type[LeewardError], str] = {
    GuaranteeUnreachable: "cannot be met",
    VerificationFailed: "refuted",
    BadInput: "does not fit",
}
"""What became of a point that gave no release; the others are `verified`."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, PolarsError)
"""What reading the file of a point may raise that is not as it was stored."""

COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("method", "spec", "status", "message", "attacker", "model"), pl.String),
    **dict.fromkeys(("risk_in_words", "knows", "further_knows"), pl.String),
    **dict.fromkeys(("k", "m", "seed"), pl.Int64),
    **dict.fromkeys(("risk_maximum", "measured_maximum", "measured_mean", "further_maximum"), pl.Float64),
}
OF_LINE = {"line": pl.Float64, "floor": pl.Float64, "verdict": pl.String, "detail": pl.String}
"""Columns of a run, and of each line of the plan in it (`line_1`, …), which are null where there is no release."""


@dataclass(frozen=True)
class Exploration:
    """What was tried. `points`: one row a run; `page`: the offline page; `lines`: what the columns `line_1` … are."""

    folder: Path
    points: pl.DataFrame
    lines: tuple[str, ...]
    command: str = "explore"

    @property
    def page(self) -> Path:
        """The page: `explore.html` or `compare.html`."""
        return self.folder / f"{self.command}.html"

    @property
    def table(self) -> Path:
        """`points` as a file."""
        return self.folder / f"{self.command}.parquet"

    def __repr__(self) -> str:
        return f"Exploration({self.folder}: {self.points.height} points, {len(self.lines)} lines)"


def explore(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    vary: Mapping[str, Sequence[Any]],
    methods: Sequence[str] = (),
    plan: Plan | str | Path | None = None,
    cohort: Cohort | None = None,
    population: Cohort | None = None,
    repeat: int = 1,
    sample: int | None = None,
    keep: bool = False,
    threads: int | None = None,
    tell: Tell | None = None,
) -> Exploration:
    r"""Try a spec with varied parameters and other methods, and measure each release against a plan.

    Parameters
    ----------
    spec : Spec, str or Path
        Source and method, and the plan if `plan` is not given.
    out : str or Path
        Folder to write for the custodian. An unfinished exploration with the same settings is resumed.
    vary : mapping of str to sequence
        Values of each parameter to try.
    methods : sequence of str, optional
        Other methods to try.
    plan : Plan, str or Path, optional
        The analyses to measure, and the risk threshold.
    cohort, population : Cohort, optional
        Source and population; by default, those of the spec.
    repeat : int, optional
        Runs of each point, with the seeds 1, 2, …
    sample : int, optional
        Number of patients to draw. Methods with k lose more on a sample than on all data.
    keep : bool, optional
        Keep the releases. They are seeded: for tests, never to be shared.
    threads : int, optional
        Number of threads; all processors by default.
    tell : callable, optional
        Called with the name of each stage.

    Returns
    -------
    Exploration
        `points`, a table with one row for each run, and `page`.

    Raises
    ------
    BadInput
        Wrong settings, or `out` has another exploration.

    Examples
    --------
    >>> from pathlib import Path
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> text = "source: {path: events.csv}\nmethod: {name: disassociation, k: 5, m: 2}"
    >>> written = Path("spec.yaml").write_text(text)
    >>> found = lw.explore("spec.yaml", "explored", vary={"k": [5, 10]})
    >>> found.points["k"].to_list()
    [5, 10]
    """
    spec = spec if isinstance(spec, Spec) else load(spec)
    asked = None if plan is None else plan_of(plan)
    points = points_of(spec.method, vary, methods, repeat)
    with at_most(threads), watch(tell) as say, ExitStack() as held:
        say("Reading the source")
        cohort = read_source(spec.source) if cohort is None else cohort
        population = read_missing(population, spec.population)
        if sample is not None:
            cohort = sampled(cohort, sample)
        lines = lines_of(asked, spec, cohort)
        settings = {
            **settings_of(asked, cohort),
            "data": _digest(cohort),
            "population": None if population is None else _digest(population),
            "lines": [f"{line.title} {dataclasses.asdict(line)}" for line in lines],
            "points": [point.key for point in points],
            "keep": keep,
        }
        folder = held.enter_context(_folder(Path(out), settings))
        missing = [point for point in points if not _file(folder, point).is_file()]
        if missing:
            say("What the source says of the plan")
            thresholds = limits(settings["threshold"])
            job = _Job(folder, prepare(lines, cohort), population, spec, thresholds, keep)
            done = len(points) - len(missing)
            with pool(min(available_threads(), len(missing))) as workers:
                for place, point in enumerate(workers.map(job.run, missing), start=done + 1):
                    say(f"Tried {place} of {len(points)}: {point.name}")
        table = table_of([_stored(_file(folder, point), len(lines)) for point in points], len(lines))
        found = Exploration(folder, table, tuple(line.title for line in lines))
        table.write_parquet(own_file(found.table))
        say("Drawing the page")
        write_page(found, settings)
    return found


@dataclass(frozen=True)
class _Job:
    folder: Path
    prepared: Prepared
    population: Cohort | None
    spec: Spec
    thresholds: Sequence[float]
    keep: bool

    def run(self, point: Point) -> Point:
        """Try a point and write its file, at once or not at all."""

        # Points run side by side, each in one thread, where there are more threads than one.
        with at_most(1 if available_threads() > 1 else None):
            started = time.perf_counter()
            row = self.tried(point)
            took = time.perf_counter() - started
        own_file(self.folder / "seconds" / f"{point.key}.json").write_text(f'{{"seconds": {took:.3f}}}\n')
        write_whole(_file(self.folder, point), to_json_text(row).encode())
        return point

    def tried(self, point: Point) -> dict[str, Any]:
        """One row: the point, what became of it, its risk, and what it keeps of each line."""

        row: dict[str, Any] = {"method": point.name, "spec": point.spec, "seed": point.seed,
                               "k": point.method.get("k"), "m": point.method.get("m")}  # fmt: skip
        target, cohort = self.folder / "releases" / point.key, self.prepared.cohort
        shutil.rmtree(target, ignore_errors=True)
        try:
            release_aside(cohort, point, target, self.spec, self.population)
            release = Release.open(target)
            risk = risk_of(release, cohort, self.population, self.thresholds)
            lines = plain(utility_of(self.prepared, release))
            return {**row, "status": "verified", "message": "", **risk, "lines": lines}
        except LeewardError as error:
            status = next((text for kind, text in STATUS.items() if isinstance(error, kind)), "failed")
            return {**row, "status": status, "message": str(error)}
        finally:
            if not self.keep:
                shutil.rmtree(target, ignore_errors=True)


def risk_of(
    release: Release, cohort: Cohort, population: Cohort | None, thresholds: Sequence[float]
) -> dict[str, Any]:
    """The risk of a release for each attacker: as its guarantee states it, as it was measured, and in words."""
    found = measure_risk(release, cohort, population, thresholds)
    return {
        "attacker": release.guarantee["attacker"],
        "risk": release.guarantee.get("risk"),
        "risk_in_words": maximum_in_words(release, found),
        "measured_risk": found,
    }


def release_aside(cohort: Cohort, point: Point, target: Path, spec: Spec, population: Cohort | None) -> None:
    """The release of a point, made as `protect` does with its seed, verified, and measured where the spec asks for it.
    Raises BadInput, GuaranteeUnreachable or VerificationFailed; nothing is left at `target`."""
    method = method_of(point.method, spec.plan)
    with draft(target) as pending:
        made = method.protect(
            cohort, make("local"), randomness=Randomness.of(point.seed), population=population
        )
        pending.write(made)
        verification = verify_or_raise(pending.folder, cohort, population, method)
        pending.put_json("custody/verification.json", verification.to_json())
        if spec.measure:
            figures = measure_release(pending, cohort, spec.measure, made, population)
            pending.put_json("custody/measures.json", figures)


def lines_of(plan: Plan | None, spec: Spec, cohort: Cohort) -> tuple[Line, ...]:
    """The plan's lines; without a plan the spec's models, or for codes the counts of codes and of their groups."""
    if plan is not None:
        return plan.lines
    if spec.plan:
        return tuple(line_of(each, number) for number, each in enumerate(spec.plan, start=1))
    if cohort.events is None:
        raise BadInput(
            "a table needs the recipient's models: give a `plan` in the spec, or --plan PLAN.yaml."
        )
    groups = () if cohort.vocabulary in (None, "none") else (Counts(of="hierarchy:1"),)
    return (*groups, Counts(of="codes"), Counts(of="codes", together=2, within="20 %"))


def number_of_patients(cohort: Cohort) -> int:
    """How many patients a cohort has; of a table its rows."""
    if cohort.events is None and cohort.patients is not None:
        return cohort.patients.height
    return len(cohort.code_sets())


def sampled(cohort: Cohort, patients: int) -> Cohort:
    """Some patients of a cohort (of a table some rows), drawn evenly and always the same; all of a smaller one."""
    people = number_of_patients(cohort)
    if patients >= people:
        return cohort
    draws = np.random.Generator(np.random.Philox(SAMPLE_SEED))
    chosen = np.sort(draws.permutation(people)[:patients])
    if cohort.events is None and cohort.patients is not None:
        return dataclasses.replace(cohort, patients=cohort.patients[chosen])
    return cohort.restrict(cohort.require_events()["patient"].unique().sort().gather(chosen))


def write_page(found: Exploration, settings: Mapping[str, Any]) -> None:
    own_file(found.page).write_text(render(found.points.to_dicts(), found.lines, settings), encoding="utf-8")


def settings_of(plan: Plan | None, cohort: Cohort) -> dict[str, Any]:
    limit = None if plan is None or plan.limit is None else plan.limit.maximum
    patients = number_of_patients(cohort)
    return {"leeward": __version__, "source": cohort.name, "patients": patients, "threshold": limit}


def _digest(cohort: Cohort) -> str:
    """A fingerprint of the frames' content, for this machine only."""
    digest = hashlib.sha256()
    for frame in (cohort.events, cohort.patients):
        if frame is not None:
            digest.update(repr(frame.schema).encode() + frame.hash_rows(1, 2, 3, 4).to_numpy().tobytes())
    return digest.hexdigest()[:16]


@contextmanager
def _folder(out: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """The folder, made or gone on with by one process at a time. BadInput where it holds something else."""
    text = to_json_text(settings)
    known = out / SETTINGS
    # An empty folder may be what is left of a run that was killed before it wrote its settings.
    if out.exists() and not known.is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise BadInput(f"{out}: exists and is not an exploration; name another folder with -o.")
    if known.is_file() and not _same(known.read_bytes(), text.encode()):
        raise BadInput(
            f"{out}: has an exploration of other data, points or analyses; name another folder with -o, or remove it."
        )
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    out.chmod(0o700)
    with alone_in(out, wait=False) as alone:
        if not alone:
            raise BadInput(f"{out}: another leeward explore is using it; wait until it ends.")
        for name in ("points", "seconds", "releases"):
            (out / name).mkdir(exist_ok=True, mode=0o700)
        if not known.is_file():
            write_whole(known, text.encode())
        yield out


def _same(*settings: bytes) -> bool:
    """Whether settings say the same: versions differ in the order of their keys, and of those of a line of the plan."""
    try:
        read = [json.loads(each) for each in settings]
        lines = [[line.partition(" {") for line in each.pop("lines")] for each in read]
        values = [[(title, ast.literal_eval(f"{{{rest}")) for title, _, rest in each] for each in lines]
    except (SyntaxError, *DAMAGED):
        return False
    return read[0] == read[1] and values[0] == values[1]


def _file(folder: Path, point: Point) -> Path:
    return folder / "points" / f"{point.key}.json"


def _stored(file: Path, lines: int) -> dict[str, Any]:
    """What was found of a point. BadInput where its file was damaged since."""
    try:
        row: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        table_of([row], lines)
    except DAMAGED:
        raise BadInput(
            f"{file}: not what was stored of this point; remove the file, and run the exploration again."
        ) from None
    return row


def table_of(rows: Sequence[Mapping[str, Any]], lines: int) -> pl.DataFrame:
    of_lines = {f"{name}_{place + 1}": kind for place in range(lines) for name, kind in OF_LINE.items()}
    return pl.DataFrame([_flat(row, lines) for row in rows], schema=COLUMNS | of_lines)


def _flat(row: Mapping[str, Any], lines: int) -> dict[str, Any]:
    risk, found = row.get("risk") or {}, row.get("measured_risk") or {}
    further = found.get("further") or {}
    attacker = str(row.get("attacker") or "").removeprefix("Somebody who ").removeprefix("knows ").rstrip(".")
    flat = {key: row.get(key) for key in COLUMNS}
    flat |= {"model": risk.get("model"), "risk_maximum": risk.get("maximum"),
             "measured_maximum": found.get("maximum"), "measured_mean": found.get("mean"),
             "knows": found.get("knows") or attacker or None, "further_knows": further.get("knows"),
             "further_maximum": 1 / further["smallest"] if further else None}  # fmt: skip
    for place, line in zip(range(1, lines + 1), row.get("lines") or [{}] * lines, strict=True):
        detail = line.get("detail") or ({"reason": line["reason"]} if line.get("reason") else None)
        values = line.get("value"), line.get("floor"), line.get("verdict"), detail and json.dumps(detail)
        flat |= {f"{name}_{place}": value for name, value in zip(OF_LINE, values, strict=True)}
    return flat
