"""A compiled kernel as what is stored, and back, without what only compiling needs: .7 s of a small command.

Numba readies its compiler before it loads (a hundred modules, half a second), and imports the module of every function
that a kernel calls, for globals that compiled code does not look at (a quarter of a second). This rests on the order of
what Numba reduces a function to, and on its table of environments; nothing of Numba is replaced.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core import compiler
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import rtsys

OWN, ANNOTATION, REFERENCED = 2, 6, 8
"""Places of a function's environment, of its annotated source and of other environments once it is reduced."""


def reduced(result: Any) -> tuple[Any, ...]:
    """What can be stored of a compiled function, without the annotated source: a third, and nobody reads it."""
    parts = list(result._reduce())
    parts[ANNOTATION] = ""
    parts[OWN] = _parts_of(parts[OWN])
    parts[REFERENCED] = [_parts_of(each) for each in parts[REFERENCED]]
    return tuple(parts)


def rebuilt(target_context: Any, stored: tuple[Any, ...]) -> Any:
    rtsys.initialize(target_context)
    parts = list(stored)
    parts[OWN] = _environment_of(*parts[OWN])
    parts[REFERENCED] = [_environment_of(*each) for each in parts[REFERENCED]]
    return compiler.CompileResult._rebuild(target_context, *parts)


def _parts_of(environment: Any) -> tuple[str, list[Any], str]:
    return environment.globals["__name__"], environment.consts, environment.env_name


def _environment_of(module: str, constants: list[Any], name: str) -> Any:
    """The environment again, with the globals of its module where that is imported anyway."""
    found = lookup_environment(name)
    if found is None:
        loaded = sys.modules.get(module)
        found = Environment({"__name__": module} if loaded is None else vars(loaded))
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found
    return found
