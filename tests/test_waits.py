"""No test waits for ever: a wait has a deadline, after which it says what did not happen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ENDLESS = {"join", "wait", "communicate", "result"}
"""Methods of threads, processes and futures that wait for ever where no time is given."""
PROGRAMS = {"subprocess.run", "subprocess.check_call", "subprocess.check_output"}


def waits_without_a_deadline(code: str) -> list[int]:
    """The lines of endless waits: calls that take a time and are given none, and loops that sleep and read no clock."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.While):
            inside = ast.unparse(node)
            if "sleep(" in inside and "monotonic(" not in inside:
                found.append(node.lineno)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            timed = any(each.arg == "timeout" for each in node.keywords)
            endless = node.func.attr in ENDLESS and not node.args
            if (endless or ast.unparse(node.func) in PROGRAMS) and not timed:
                found.append(node.lineno)
            if node.func.attr == "waitpid" and ast.unparse(node.args[1]) != "os.WNOHANG":
                found.append(node.lineno)
    return sorted(found)


def test_every_wait_has_a_deadline() -> None:
    endless = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in waits_without_a_deadline(path.read_text(encoding="utf-8"))
    ]
    assert endless == [], "give these a deadline, or use tests.waiting.wait_until"


@pytest.mark.parametrize(
    "code",
    [
        "while not server.started:\n    time.sleep(0.02)",
        "while True:\n    if there():\n        break\n    sleep(1)",
        "thread.join()",
        "process.wait()",
        "process.communicate(input=b'')",
        "future.result()",
        "os.waitpid(child, 0)",
        "subprocess.run(['x'], check=True)",
    ],
)
def test_an_endless_wait_is_found(code: str) -> None:
    assert waits_without_a_deadline(code) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "while not there() and time.monotonic() < until:\n    time.sleep(0.02)",
        "thread.join(LONG)",
        "future.result(timeout=LONG)",
        "', '.join(names)",
        "os.waitpid(child, os.WNOHANG)",
        "subprocess.run(['x'], check=True, timeout=60)",
    ],
)
def test_a_wait_with_a_deadline_is_none(code: str) -> None:
    assert waits_without_a_deadline(code) == []
