"""`njit`: Numba's, with a cache that all checkouts of a user share, and one that ships with the package.

A kernel is looked for in the shipped folder (`_compiled/`, filled by scripts/build_kernels.py for wheels), then in the
user's cache, and is compiled where neither has it. One file holds one kernel for one choice of arguments' types:

- Its name has a stamp, made of the kernel's bytecode, its options and every global that it names: constants by value,
  other kernels by their own stamps. Machine code of a caller holds its callees and constants, also those of other
  files, which Numba's stamp (the text of the one file) does not see; and a change of a comment compiles nothing.
- Shipped code is made for a processor level (x86-64-v2), not for the processor that built it.
- Where no folder can be written, each process compiles for itself.

`LEEWARD_LEVEL=none` leaves the shipped code unread. See docs/decisions/0014-compiled-kernels.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy
from llvmlite import binding
from numba.core import caching, dispatcher, serialize, types
from numba.core.types.misc import unliteral

from leeward.compiling import compilations
from leeward.loading import rebuilt, reduced

PACKAGE = Path(__file__).resolve().parent
SHIPPED = PACKAGE / "_compiled"

LEVELS = {"x86-64-v2": frozenset({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"})}
"""Processor levels that kernels are built for, best first, with the features that they need."""

FORMAT = 5
"""Of what is stored of a kernel: raised where it changes."""

UNUSED_SECONDS = 90 * 24 * 3600
"""Compiled kernels that were not read for so long are removed: of earlier versions, as a rule."""


def njit(*args: Any, inner: bool = False, **options: Any) -> Any:
    """As `numba.njit`, with the cache of this module and without the interpreter's lock.

    An `inner` kernel is called by kernels alone and has no wrapper for Python, where it is run as plain Python. Kernels
    pass whole numbers to each other as int64: Numba would compile a callee again for a literal 0 and for what an int32
    array holds.
    """
    options = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return numpy.errstate(all="ignore")(function)  # machine code wraps without a word
        kernel = numba.njit(**options)(function)
        kernel._cache = Cache(function, options)
        compilations.known += 1
        template = kernel.get_call_template
        kernel.get_call_template = lambda given, named: template(
            tuple(map(_widened, given)), {name: _widened(kind) for name, kind in named.items()}
        )
        if inner:  # or a call from Python would jump to a wrapper that is not there
            kernel.add_overload = lambda result: kernel.overloads.update(
                {tuple(result.signature.args): result}
            )
            kernel._compile_for_args = lambda *_, **__: function
        return kernel

    return compiled(args[0]) if args else compiled


def _widened(kind: Any) -> Any:
    kind = unliteral(kind)
    return types.int64 if kind in types.signed_domain else kind


@lru_cache(maxsize=1)
def level() -> str:
    """The shipped level that this processor can run, `none` where there is none."""
    wanted = os.environ.get("LEEWARD_LEVEL")
    if wanted:
        return wanted
    has = {name for name, on in binding.get_host_cpu_features().items() if on}
    return next((name for name, needs in LEVELS.items() if needs <= has), "none")


def building() -> bool:
    return bool(os.environ.get("LEEWARD_BUILD_KERNELS"))


def cache_folder() -> Path:
    """Where the user's compiled kernels are: `leeward-kernels` in `NUMBA_CACHE_DIR`, or in the user's cache."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(chosen or Path.home() / ".cache").absolute() / "leeward-kernels"
    except RuntimeError:  # an account without a home
        return Path(os.devnull)


def stamp_of(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """A digest of all that a kernel's machine code depends on but for the types of arguments and the processor."""
    versions = FORMAT, numba.__version__, sys.version_info[:2]
    digest = hashlib.sha256(repr((versions, sorted(options.items()))).encode())
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
    if isinstance(value, dispatcher.Dispatcher):
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
    elif isinstance(value, type | types.Type):
        yield f"{name} is {value!r} {getattr(value, '_fields', '')}"
    elif callable(value):
        yield f"{name} is {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    else:
        yield f"{name} = {value!r}"


class Cache(caching.NullCache):  # type: ignore[misc]  # numba has no types
    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options

    @cached_property
    def _stamp(self) -> str:
        """Made when the kernel is first called: by then every global that it names is defined."""
        return stamp_of(self._function, self._options)

    def _file(self, folder: Path, kinds: Any, processor: Any) -> Path:
        parts = repr((self._stamp, [_description(each) for each in kinds], processor))
        name = f"{self._function.__module__}.{self._function.__qualname__}".replace("<", "").replace(">", "")
        return folder / f"{name}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}.nbc"

    def _shipped(self, kinds: Any) -> Path:
        return self._file(SHIPPED / level(), kinds, level())

    def _own(self, kinds: Any, context: Any) -> Path:
        return self._file(cache_folder(), kinds, context.codegen().magic_tuple())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for these types of arguments, or None."""
        found = None if level() == "none" else _read(self._shipped(sig))
        if found is None and not building():
            found = _read(self._own(sig, target_context))
        if found is None:
            compilations.begin()
            return None
        return rebuilt(target_context, found)

    def save_overload(self, sig: Any, cres: Any) -> None:
        compilations.end()
        if not cres.lifted and not cres.library.has_dynamic_globals:
            _write(self._shipped(sig) if building() else self._own(sig, cres.target_context), reduced(cres))


def _description(kind: Any) -> str:
    """A type of an argument, with the class and the order of the fields of every named tuple in it."""
    named = getattr(kind, "instance_class", None)
    fields = "" if named is None else f"{named.__module__}.{named.__qualname__}{named._fields}"
    return f"{kind!r} {fields} {[_description(each) for each in getattr(kind, 'types', ())]}"


def _read(file: Path) -> Any:
    """What is stored in a file; None where there is none, or one that was cut off."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # of a package that cannot be written
        os.utime(file)
    digest, stored = content[:32], content[32:]
    return pickle.loads(stored) if hashlib.sha256(stored).digest() == digest else None


def _write(file: Path, parts: Any) -> None:
    """Store it, all or nothing, and remove what was not read for long."""
    stored = serialize.dumps(parts)
    aside = file.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # nowhere to write: the next process compiles again
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.write_bytes(hashlib.sha256(stored).digest() + stored)
        aside.replace(file)
        _sweep(file.parent)


@lru_cache(maxsize=1)
def _sweep(folder: Path) -> None:
    """Remove what was not read for long; once a process."""
    for each in folder.iterdir():
        if time.time() - each.stat().st_mtime > UNUSED_SECONDS:
            each.unlink(missing_ok=True)
