"""Markdown pages followed as a reader follows them: sessions are run and compared with what the page prints.

    ```console
    $ leeward synth codes --patients 2000 --seed 1 -o events.csv
    events.csv: 2,000 patients, 9,991 rows
    ```

Each page has one empty folder, an empty home and one Python, which is that on the reader's PATH. `...` in a line stands
for anything in it, and alone on a line for any lines: for paths, seconds and noise only. A last line `[exit 2]` is the
exit status. A block under "`plan.yaml`:" is that file. After `pip install 'leeward[models]' pandas`, PATH has an
environment with that and nothing else (tests/environments.py); before it, the environment of the tests.
In a page that says `$DATABASE`, that is the URL of a PostgreSQL server of the page's own.

    python -m tests.console PAGE...     prints into the pages what their commands print now
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sybil import Document, Example, Lexeme, Region
from sybil.parsers.myst import CodeBlockParser
from tests.environments import environment
from tests.postgres_fixture import running_postgres

FILE = re.compile(r"`(?P<name>[\w-]+\.\w+)`[^`\n]*:\n\n```\w+\n(?P<text>(?s:.*?))^```$", re.MULTILINE)
INSTALL = re.compile(r"(?:`|^ {4})pip install (?P<needs>[^`#\n]+)", re.MULTILINE)
STAGE = re.compile(r"\d{4}-\d\d-\d\d \S+ leeward: \d of \d: ")
"""Progress, which only runs that take a while tell."""
SECONDS = 300
"""Longest that a command of a page may take."""

PYTHON = """
import doctest, json, sys
names = {}
for line in sys.stdin:
    test = doctest.DocTestParser().get_doctest(json.loads(line), names, "the page", None, 0)
    test.globs, wrong = names, []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=wrong.append, clear_globs=False)
    print(json.dumps("".join(wrong)), flush=True)
"""
"""The session of a page's Python: it reads a block a line, and writes what differs from what the block says."""


def enter(namespace: dict[str, Any]) -> None:
    """The page's empty folder, and state of its own."""
    namespace["closing"] = closing = ExitStack()
    folder = Path(closing.enter_context(tempfile.TemporaryDirectory())).resolve()
    closing.callback(os.chdir, Path.cwd())
    closing.callback(os.environ.update, dict(os.environ))
    closing.callback(os.environ.clear)
    home = folder / "home"
    home.mkdir()
    # Kernels are compiled once for all pages.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path.home() / ".cache"))
    os.environ |= {
        "COLUMNS": "88", "HOME": str(home), "LEEWARD_HOME": str(home), "LEEWARD_STATE": str(home), "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb",
    }  # fmt: skip
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    (folder / "work").mkdir()
    os.chdir(folder / "work")


def leave(namespace: dict[str, Any]) -> None:
    if "python" in namespace:
        namespace["python"].communicate(timeout=SECONDS)
    namespace["closing"].close()


def start_database(namespace: dict[str, Any]) -> None:
    os.environ["DATABASE"] = namespace["closing"].enter_context(running_postgres(connections=20))


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a block, with what the block says that it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        while command.endswith("\\"):
            more, _, printed = printed.partition("\n")
            command += "\n" + more
        yield command, printed


def run(command: str) -> str:
    """What a command prints; where it fails, its errors too, and its exit status. Progress is left out."""
    done = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if not STAGE.match(line)]
        lines += [*said, f"[exit {done.returncode}]"]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def differences(command: str, expected: str, actual: str) -> str:
    """A diff where a command prints something else than its page says; empty where not."""
    flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    checker = doctest.OutputChecker()
    if checker.check_output(expected, actual, flags):
        return ""
    shown = checker.output_difference(doctest.Example(command, expected), actual, flags)
    return f"$ {command}\n{shown}"


class ConsoleParser(CodeBlockParser):
    language = "console"

    def evaluate(self, example: Example) -> str | None:
        wrong = (differences(command, said, run(command)) for command, said in sessions(example.parsed))
        return next(filter(None, wrong), None)


class PythonParser(CodeBlockParser):
    language = "python"

    def evaluate(self, example: Example) -> str:
        if not example.parsed.startswith(">>> "):
            return "Python of a page starts with >>>, as it is typed."
        if "python" not in example.namespace:
            example.namespace["python"] = subprocess.Popen(
                ["python", "-c", PYTHON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        session = example.namespace["python"]
        session.stdin.write(json.dumps(example.parsed) + "\n")
        session.stdin.flush()
        return str(json.loads(session.stdout.readline()))


class InstallParser:
    """Puts an environment with what a page has said so far to install first on PATH."""

    def __call__(self, document: Document) -> Iterator[Region]:
        for match in INSTALL.finditer(document.text):
            yield Region(match.start(), match.end(), shlex.split(match["needs"]), self.evaluate)

    def evaluate(self, example: Example) -> None:
        needs = example.namespace.setdefault("needs", [])
        needs += [re.sub(r"^\.", "leeward", each) for each in example.parsed]
        os.environ["PATH"] = f"{environment(*needs)}{os.pathsep}{os.environ['PATH']}"


class FileParser:
    """Writes the files that a page shows."""

    def __call__(self, document: Document) -> Iterator[Region]:
        for match in FILE.finditer(document.text):
            lexeme = Lexeme(match["text"], 0, 0)
            yield Region(match.start(), match.start(), match["name"], self.evaluate, lexemes={"text": lexeme})

    def evaluate(self, example: Example) -> None:
        Path(example.parsed).write_text(example.region.lexemes["text"], encoding="utf-8")


class DatabaseParser:
    """Starts a server before a page's first example."""

    def __call__(self, document: Document) -> Iterator[Region]:
        if "$DATABASE" in document.text:
            yield Region(0, 0, None, lambda example: start_database(example.namespace))


def rewritten(page: str) -> str:
    """The page with what its commands print now, where that is something else."""

    def block(match: re.Match[str]) -> str:
        if match["name"]:
            Path(match["name"]).write_text(match["text"], encoding="utf-8")
            return match.group()
        out = ""
        for command, said in sessions(match["session"]):
            actual = run(command)
            if not differences(command, said, actual):
                actual = said
            open_lines = [
                line for line in said.splitlines(keepends=True) if "..." in line and line.strip() != "..."
            ]
            lines = actual.splitlines(keepends=True)
            kept = [
                next((old for old in open_lines if not differences("", old, line)), line) for line in lines
            ]
            out += f"$ {command}\n" + "".join(kept)
        return f"```console\n{out}```"

    pattern = rf"{FILE.pattern}|^```console\n(?P<session>(?s:.*?))^```$"
    return re.sub(pattern, block, page, flags=re.MULTILINE)


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        page = each.resolve()
        namespace: dict[str, Any] = {}
        enter(namespace)
        text = page.read_text(encoding="utf-8")
        if "$DATABASE" in text:
            start_database(namespace)
        text = rewritten(text)
        leave(namespace)
        page.write_text(text, encoding="utf-8")
