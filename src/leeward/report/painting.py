"""Charts are drawn in a process of their own, so that one that aborts there takes no run with it.

The drawing library holds a JavaScript engine that reserves address space and ends its process where it gets none, or
where a text has a sign that it cannot write. A chart that could not be drawn is a sentence in its place.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from typing import Any

PROGRAM = """
import json, sys
import vl_convert
for line in sys.stdin:
    try:
        answer = ["svg", vl_convert.vegalite_to_svg(json.loads(line))]
    except Exception as error:
        answer = ["error", type(error).__name__]
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""

NOT_DRAWN = (
    "<p>This chart could not be drawn: the process that draws charts ended, as it does where little memory is left. "
    "Its figures are in measures.json.</p>"
)


class Painter:
    """The process that draws; started with the first chart, and once again for each that ended it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.lock = threading.Lock()

    def draw(self, chart: dict[str, Any]) -> str | None:
        """The chart as SVG; None where its process ended over it.

        Raises
        ------
        ValueError
            It is no chart.
        """
        with self.lock:
            try:
                answer = self._ask(json.dumps(chart))
            except OSError:  # it ended before it read everything
                answer = ""
            if not answer:
                self._end()
                return None
        kind, text = json.loads(answer)
        if kind == "error":
            raise ValueError(f"a chart was refused: {text}")
        return str(text)

    def close(self) -> None:
        """End the process."""
        with self.lock:
            self._end()

    def _ask(self, line: str) -> str:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", PROGRAM], text=True, encoding="utf-8",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            atexit.register(self.close)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                try:
                    if stream is not None:
                        stream.close()
                except OSError:  # it ended with some of our words unread
                    pass
            atexit.unregister(self.close)
            self.process = None


PAINTER = Painter()
"""The one of this process."""


def paint(chart: dict[str, Any]) -> str:
    """A chart of Vega-Lite as SVG, or a sentence in its place. ValueError where it is no chart."""
    return PAINTER.draw(chart) or NOT_DRAWN
