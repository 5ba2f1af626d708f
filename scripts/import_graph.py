"""The import graph of leeward: circles, arrows back up between rooms, lines per room.

    python scripts/import_graph.py

Every import counts: at the top of a file, inside a function, and for types only. What METHODS and the command line look
up by name while running is no import.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "leeward"
DOORS = ("cli", "runs", "__init__")
"""Above all rooms: they import the rooms, no room imports them."""

Graph = Mapping[str, Iterable[str]]


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Module -> its file."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """Module -> the modules of leeward that it imports anywhere in its text."""
    known = modules(source)
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {_module(alias.name, known) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {_module(f"{node.module}.{alias.name}", known) for alias in node.names}
        found[module] = {name for name in names if name and name != module}
    return found


def _module(name: str, known: Iterable[str]) -> str:
    """The longest start of a dotted name that is a module; empty where none is."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """The sets of modules that import each other around a circle (strongly connected components), sorted."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in number:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], number[target])
        if low[node] == number[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                found.append(tuple(sorted(members)))

    for node in graph:
        if node not in number:
            visit(node)
    return sorted(found)


def room_of(module: str) -> str:
    """`cohort` of `leeward.cohort.readers.fhir`; `__init__` of leeward itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def arrows(graph: Graph) -> dict[str, set[str]]:
    """Room -> the rooms that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph.items():
        found[room_of(module)] |= {room_of(target) for target in targets} - {room_of(module)}
    return dict(found)


def arrows_up(graph: Graph) -> list[str]:
    """Imports of a door by a room, and rooms that import each other: `verify -> cli`."""
    between = arrows(graph)
    up = {
        f"{room} -> {target}"
        for room, targets in between.items()
        for target in targets
        if room not in DOORS and target in DOORS
    }
    for members in circles(between):
        if not set(members) <= set(DOORS):
            up.add(" <-> ".join(members))
    return sorted(up)


def lines_of_rooms(source: Path = SOURCE) -> dict[str, int]:
    """Room -> lines of its files, most first."""
    found: dict[str, int] = defaultdict(int)
    for module, path in modules(source).items():
        found[room_of(module)] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def main() -> None:
    """Print the counts."""
    graph = imports()
    print(f"{len(graph)} modules, {sum(len(targets) for targets in graph.values())} imports between them")
    print(f"{len(circles(graph))} circles")
    for members in circles(graph):
        print(f"  {', '.join(name.removeprefix('leeward.') for name in members)}")
    up = arrows_up(graph)
    print(f"{len(up)} arrows back up")
    for arrow in up:
        print(f"  {arrow}")
    lines = lines_of_rooms()
    print(f"{sum(lines.values()):,} lines")
    for room, count in lines.items():
        print(f"  {room:<12} {count:>7,}")


if __name__ == "__main__":
    main()
