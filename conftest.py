"""Runs what README and docs/ print: every `console` and Python block, in page order, one empty folder a page."""

from doctest import ELLIPSIS

from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser
from tests.console import ConsoleParser, FileParser, enter, leave

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), ConsoleParser(), FileParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
