"""What a run does now: a bar on a terminal, a dated line per stage where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from leeward.compiling import compilations

Tell = Callable[[str], None]
"""Called with what the run does now, in a few words."""

STAGES: Mapping[str, float] = {
    "Reading": 0.2,
    "Protecting": 0.4,
    "Writing the release": 0.05,
    "Verifying": 0.3,
    "Writing the report": 0.05,
}
"""The stages of a release, by how their text begins, and the share of the time that each takes as a rule."""

SILENT_SECONDS = 2.0
"""Without a terminal nothing is said of a run that takes no longer."""

BETWEEN_SECONDS = 10.0
"""… and news inside a stage at most so often."""


@dataclass
class Stages:
    """Where a run is: which stage, since when, and how long the rest takes if stages take their usual shares."""

    usual: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic
    place: int = -1
    text: str = ""
    detail: str = ""
    entered: float = 0.0
    began: float = field(init=False)
    compiled: float = field(init=False)

    def __post_init__(self) -> None:
        self.began, self.compiled = self.clock(), compilations.seconds

    def say(self, text: str) -> bool:
        """Take what the run says; True where a new stage begins, otherwise it is a detail of the present one."""
        names = list(self.usual)
        for place in range(max(self.place, 0), len(names)):
            if text.startswith(names[place]) and (place > self.place or not self.text):
                self.place, self.text, self.detail, self.entered = place, text, "", self.worked
                return True
        if not self.usual or not self.text:
            self.text = text
        elif text != self.text:
            self.detail = text
        return False

    @property
    def done(self) -> float:
        """Share of the usual time before this stage."""
        return sum(list(self.usual.values())[: max(self.place, 0)])

    @property
    def elapsed(self) -> float:
        return self.clock() - self.began

    @property
    def worked(self) -> float:
        """Seconds since the beginning but for those of compiling, which later runs do not have."""
        return self.elapsed - (compilations.seconds - self.compiled)

    @property
    def left(self) -> float | None:
        """Seconds that the rest may take; None before the first stage is over."""
        if self.done <= 0 or self.entered <= 0:
            return None
        return max(0.0, self.entered * (1 - self.done) / self.done - (self.worked - self.entered))

    @property
    def line(self) -> str:
        """`2 of 5: Protecting a.csv (k^m by hand)`."""
        where = f"{self.place + 1} of {len(self.usual)}: " if self.usual and self.place >= 0 else ""
        return f"{where}{self.text}{f' ({self.detail})' if self.detail else ''}"


@contextmanager
def watch(tell: Tell | None, stages: Mapping[str, float] | None = None) -> Iterator[Tell]:
    """`tell`; without it a bar on a terminal, or dated lines on stderr where there is no terminal."""
    if tell is not None:
        yield tell
        return
    state = Stages(stages or {})
    with (on_terminal if sys.stderr.isatty() else in_lines)(state) as say:
        yield say


@contextmanager
def on_terminal(state: Stages) -> Iterator[Tell]:
    """A spinner, the stage, a bar over all stages, time elapsed and about how much is left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = state.left
            rest = compilations.line or ("" if left is None else f"about {duration(left)} left")
            return Text(", ".join(filter(None, (duration(state.elapsed), rest))), style="dim")

    bar = (BarColumn(bar_width=16),) if state.usual else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar, Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Starting", total=1.0)

        def say(text: str) -> None:
            state.say(text)
            progress.update(task, description=state.line, completed=state.done)

        yield say


@contextmanager
def in_lines(state: Stages) -> Iterator[Tell]:
    """A dated line per stage, once the run has taken a while."""
    said = state.began

    def say(text: str) -> None:
        nonlocal said
        new = state.say(text)
        now = state.clock()
        if now - state.began >= SILENT_SECONDS and (new or now - said >= BETWEEN_SECONDS):
            said = now
            stamp = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
            sys.stderr.write(f"{stamp} leeward: {state.line}\n")
            sys.stderr.flush()

    yield say


def duration(seconds: float) -> str:
    """`8 s`, `3 min 05 s`, `1 h 02 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
