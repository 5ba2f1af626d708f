"""`njit`: Numba's, with a cache that also reads compiled kernels shipped with the package.

A kernel is looked for in the shipped folder (`_compiled/`, filled by scripts/build_kernels.py for wheels), then in the
user's cache, and is compiled where neither has it. Differences from Numba's own cache:

- Shipped code is made for a processor level (x86-64-v2), not for the processor that built it.
- The stamp of a kernel is made of its bytecode, its options and every global that it names: constants by value, other
  kernels by their own stamps. Machine code of a caller holds its callees and constants, also those of other files,
  which Numba's stamp (the text of the one file) does not see; and a change of a comment compiles nothing.
- Where no folder can be written (a read-only package without a home), a private temporary folder is used.

`LEEWARD_LEVEL=none` leaves the shipped code unread. See docs/decisions/0014-compiled-kernels.md.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numba.core.environment
import numpy
from llvmlite import binding
from numba.core import caching
from numba.core.runtime import rtsys

PACKAGE = Path(__file__).resolve().parent
SHIPPED = PACKAGE / "_compiled"

LEVELS = {"x86-64-v2": frozenset({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"})}
"""Processor levels that kernels are built for, best first, with the features that they need."""

FORMAT = 3
"""Of what is stored of a kernel: raised where it changes."""

SILENT_SECONDS = 1.0
"""Compiling is announced once it has taken so long."""


def njit(*args: Any, **options: Any) -> Any:
    """As `numba.njit`, cached as the module says; `cache` among the options is ignored, since every kernel is."""
    options.pop("cache", None)

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = Cache(function, options)
        return dispatcher

    return compiled(args[0]) if args else compiled


@lru_cache(maxsize=1)
def level() -> str:
    """The shipped level that this processor can run, `none` where there is none."""
    wanted = os.environ.get("LEEWARD_LEVEL")
    if wanted:
        return wanted
    has = {name for name, on in binding.get_host_cpu_features().items() if on}
    return next((name for name, needs in LEVELS.items() if needs <= has), "none")


def building() -> bool:
    """Whether kernels are being compiled for the package (scripts/build_kernels.py)."""
    return bool(os.environ.get("LEEWARD_BUILD_KERNELS"))


@lru_cache(maxsize=1)
def private_folder() -> str:
    """A cache folder of this process, removed at its end."""
    folder = tempfile.mkdtemp(prefix="leeward-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def stamp_of(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """A digest of all that a kernel's machine code depends on in Leeward."""
    digest = hashlib.sha256(repr((FORMAT, sorted(options.items()))).encode())
    for part in _parts(function, set()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _parts(function: Callable[..., Any], seen: set[CodeType]) -> Iterator[str]:
    """Bytecode, constants and named globals of a function, and of the kernels that it calls."""
    code = function.__code__
    if code in seen:
        return
    seen.add(code)
    names: list[str] = []
    yield function.__qualname__
    yield from _code(code, names)
    for name in sorted(set(names)):
        if name in function.__globals__:
            yield from _value(name, function.__globals__[name], names, seen)
    for cell in function.__closure__ or ():
        yield from _value("", cell.cell_contents, names, seen)


def _code(code: CodeType, names: list[str]) -> Iterator[str]:
    """The bytecode and constants of a function and of what is defined inside it; the names go into `names`."""
    yield code.co_code.hex()
    yield repr((code.co_argcount, code.co_varnames, code.co_freevars))
    names += code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield repr(constant)


def _value(name: str, value: Any, names: list[str], seen: set[CodeType]) -> Iterator[str]:
    """What a global is to a kernel: another kernel, a constant, or something of another library."""
    if isinstance(value, numba.core.dispatcher.Dispatcher):
        yield f"{name} calls {sorted(value.targetoptions.items())!r}"
        yield from _parts(value.py_func, seen)
    elif isinstance(value, ModuleType):
        yield f"{name} is {value.__name__}"
        if value.__name__.partition(".")[0] == PACKAGE.name:
            for each in sorted(set(names)):
                if each in vars(value):
                    yield from _value(f"{name}.{each}", vars(value)[each], names, seen)
    elif isinstance(value, numpy.ndarray):
        yield f"{name} = {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, type | numba.core.types.Type):
        yield f"{name} is {value!r} {getattr(value, '_fields', '')}"
    elif callable(value):
        yield f"{name} is {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    else:
        yield f"{name} = {value!r}"


class PrivateLocator(caching.InTreeCacheLocator):  # type: ignore[misc]  # numba has no types
    """The last resort: a folder of this process."""

    def get_cache_path(self) -> str:
        return private_folder()

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return cls(py_func, py_file)


class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's way to write and read a compiled function, without the annotated source.

    That text is a third of the size, is read by nobody and names the folder where the code was compiled.
    """

    _locator_classes = (
        caching.UserProvidedCacheLocator,
        caching.InTreeCacheLocator,
        caching.UserWideCacheLocator,
        PrivateLocator,
    )

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Without the line number, so that code which moves is found again."""
        fixed = fullname.replace("<", "").replace(">", "")
        return f"{fixed}.py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"

    def reduce(self, data: Any) -> tuple[Any, ...]:
        parts = list(super().reduce(data))
        parts[ANNOTATION] = ""
        parts[OWN] = _parts_of(parts[OWN])
        parts[REFERENCED] = [_parts_of(each) for each in parts[REFERENCED]]
        return tuple(parts)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        parts = list(payload)
        parts[OWN] = _environment_of(*parts[OWN])
        parts[REFERENCED] = [_environment_of(*each) for each in parts[REFERENCED]]
        return super().rebuild(target_context, tuple(parts))


OWN, ANNOTATION, REFERENCED = 2, 6, 8
"""Places of a compile result's environment, annotated source and other environments once it is reduced."""

Environment = numba.core.environment.Environment


def _parts_of(environment: Any) -> tuple[str, list[Any], str]:
    """The module, the constants and the name of a compiled function's environment."""
    return environment.globals["__name__"], environment.consts, environment.env_name


def _environment_of(module: str, constants: list[Any], name: str) -> Any:
    """The environment again. Numba imports its module for the globals, with all that compiling needs where it is one of
    its own; compiled code does not look at them."""
    found = numba.core.environment.lookup_environment(name)
    if found is None:
        loaded = sys.modules.get(module)
        found = Environment({"__name__": module} if loaded is None else vars(loaded))
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found
    return found


class IndexFile(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Numba's list of what is compiled of a function. It names the types of arguments before it says whether it is of
    this code; where one of them was moved or renamed since, the list is another version's and nothing of it is used."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


@lru_cache(maxsize=256)
def _shippable(file: str) -> str:
    """The module of a file of the package, empty for others."""
    path = Path(file).resolve()
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts) if path.is_relative_to(PACKAGE) else ""


class Cache(caching.FunctionCache):  # type: ignore[misc]
    """The shipped folder, which is only read but for a build, over Numba's cache of the user."""

    _impl_class = Implementation

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self._shipped: IndexFile | None = None
        self._opened = False

    def _open(self) -> None:
        """Find the folders and stamp both caches, when the kernel is first called: by then every global that it names
        is defined, and a command calls few of the kernels that it imports."""
        if self._opened:
            return
        super().__init__(self._function)
        stamp = stamp_of(self._function, self._options)
        self._cache_file = IndexFile(self._cache_path, self._impl.filename_base, stamp)
        module = _shippable(self._function.__code__.co_filename)
        if module and level() != "none":
            self._shipped = IndexFile(str(SHIPPED / level()), f"{module}.{self._impl.filename_base}", stamp)
        self._opened = True

    def _portable(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """The key without the processor's name and features, which the level stands for."""
        sig, magic, code = self._index_key(sig, codegen)
        return sig, (magic[0], level()), code

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, which readies its compiler before it looks: what is found needs its runtime alone, and where
        nothing is found the compiler readies itself."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        self._open()
        found = None
        if self._shipped is not None:
            found = self._shipped.load(self._portable(sig, target_context.codegen()))
        if found is not None:
            return self._impl.rebuild(target_context, found)
        return None if building() else super()._load_overload(sig, target_context)

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._open()
        if not building():
            super()._save_overload(sig, data)
        elif self._shipped is not None and self._impl.check_cachable(data):
            (SHIPPED / level()).mkdir(parents=True, exist_ok=True)
            self._shipped.save(self._portable(sig, data.codegen), self._impl.reduce(data))


class _Announcement(numba.core.event.Listener):  # type: ignore[misc]
    """Says once, to a person who watches, that kernels are being compiled; counts them."""

    def __init__(self) -> None:
        self.count = 0
        self.depth = 0
        self.seconds = 0.0
        self.since = 0.0
        self.said = False

    def on_start(self, event: Any) -> None:
        from time import monotonic

        self.count += 1
        self.depth += 1
        if self.depth == 1:
            self.since = monotonic()
        if self.seconds > SILENT_SECONDS and not self.said and sys.stderr.isatty():
            self.said = True
            print("leeward: compiling for this machine, once: about half a minute …", file=sys.stderr)  # noqa: T201

    def on_end(self, event: Any) -> None:
        from time import monotonic

        self.depth -= 1
        if self.depth == 0:
            self.seconds += monotonic() - self.since


compilations = _Announcement()
"""How many functions this process compiled (`compilations.count`), and whether it was said."""

numba.core.event.register("numba:compile", compilations)
