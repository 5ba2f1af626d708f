"""Runs what README and docs/ print: every `console` and Python block, in page order, one empty folder a page."""

from sybil import Sybil
from tests.console import (
    ConsoleParser,
    DatabaseParser,
    FileParser,
    InstallParser,
    PythonParser,
    enter,
    leave,
)

pytest_collect_file = Sybil(
    parsers=[PythonParser(), ConsoleParser(), FileParser(), InstallParser(), DatabaseParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
