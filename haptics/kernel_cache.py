"""Disk cache of compiled kernels, keyed by a fingerprint of all code and data that they depend on.

Numba's own file cache checks only the source file of the cached function. If a kernel of another module changes, its
callers are loaded from a stale cache, which would silently produce wrong physics here. A fingerprint covers everything
that a kernel uses (called kernels, constants, record types, flags), so that an edit recompiles only the affected
kernels. Changes of docstrings, comments and other files cause no recompilation.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import functools
import hashlib
import importlib.metadata
import itertools
import os
import secrets
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.extending import _Intrinsic

_MAX_BYTES = 500_000_000  # maximum size of the folder [bytes]; beyond it, the least recently used kernels are removed

VARIABLE = "NUMBA_CACHE_DIR"
"""Environment variable that overrides the folder; child processes inherit it."""


def find_folder() -> Path | None:
    """Return the folder of compiled kernels and create it if necessary; None if it is not writable."""
    try:
        own = os.environ.get(VARIABLE)
        base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base if own else base / "haptics" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.environ[VARIABLE] = str(folder)
            return folder
    except (OSError, RuntimeError):  # not writable, or the user has no home directory
        return None


_FORMAT = 2  # version of the cached code; kernels of older versions are not loaded


def _number_uniquely() -> None:
    """Make numba number the functions of this process from a random start.

    Numba counts from 1. Only this number distinguishes the symbols of closures of one factory, or of one kernel that
    was compiled for records of different types. Two kernels that were cached by different processes could so have the
    same symbol, and a process that loads both would run the code of one in place of the other.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_number_uniquely()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_uniquely)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a hash of everything that determines the compiled code of `function`.

    The argument types and the processor are not included.

    Raises
    ------
    TypeError
        If the function uses a global of a type without a comparable value; such a kernel must not be cached.
    """
    digest = hashlib.sha256()
    words = [f"format {_FORMAT} numba {numba.__version__} numpy {np.__version__} python {sys.version_info[:2]}"]
    reached: list[Any] = [function]
    for current in reached:  # grows while it is traversed
        words += [f"{current.__module__}.{current.__qualname__}", repr((current.__defaults__, current.__kwdefaults__))]
        words += _code(current.__code__, current.__doc__)
        words += [f"{name}={_value(value, reached)}" for name, value in _used(current)]
    for word in words:
        digest.update(word.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _code(code: types.CodeType, doc: str | None) -> Iterator[str]:
    """Yield descriptions of bytecode, without its docstring, file and line numbers."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags))
    for position, constant in enumerate(code.co_consts):
        if isinstance(constant, types.CodeType):
            yield from _code(constant, None)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        elif not (position == 0 and constant == doc and doc is not None):
            yield repr(constant)


def _names(code: types.CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _used(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the globals and closure variables that `function` uses.

    Modules of the project are expanded to the used names inside them.
    """
    names = _names(function.__code__)
    known = function.__globals__
    for name in sorted(names & known.keys()):
        value = known[name]
        if isinstance(value, types.ModuleType):
            yield name, f"module {value.__name__} {_version(value)}"
            if not _version(value):
                yield from ((f"{name}.{each}", vars(value)[each]) for each in sorted(names & vars(value).keys()))
        else:
            yield name, value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


@functools.cache  # the version of a package is read from a file
def _version(module: types.ModuleType) -> str:
    """Return a package version, a constant for the standard library, or '' for modules of the project."""
    package = module.__name__.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "of Python"
    return importlib.metadata.version(package) if package in {"numpy", "numba", "llvmlite"} else ""


def _number(function: Any, reached: list[Any]) -> int:
    """Return the index of `function` in `reached`, to which a new function is appended.

    The index distinguishes which of several closures of one factory a kernel uses.
    """
    if function not in reached:
        reached.append(function)
    return reached.index(function)


def _value(value: Any, reached: list[Any]) -> str:
    """Describe a value that a kernel uses; append functions to `reached`."""
    if isinstance(value, Dispatcher):
        options = sorted(map(repr, value.targetoptions.items()))
        return f"kernel {_number(value.py_func, reached)} {value.py_func.__qualname__} {options}"
    if isinstance(value, _Intrinsic):
        return f"intrinsic {_number(value._defn, reached)}"
    if isinstance(value, types.FunctionType):
        return f"function {_number(value, reached)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype!r} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, tuple):
        return f"({', '.join(_value(item, reached) for item in value)})"
    if isinstance(value, bool | int | float | complex | str | None | np.generic | np.dtype | numba.types.Type):
        return repr(value)
    if isinstance(value, type):
        members = [(member.name, member.value) for member in value] if issubclass(value, enum.Enum) else []
        return f"class {value.__module__}.{value.__qualname__} {members} {getattr(value, '_fields', ())}"
    if isinstance(value, types.ModuleType) and _version(value):  # a library that a module of the project imports
        return f"module {value.__name__} {_version(value)}"
    if isinstance(value, types.BuiltinFunctionType | np.ufunc):
        return f"built in {value.__name__}"
    raise TypeError(f"a kernel uses a global of the kind {type(value).__name__}, which its cache cannot follow")


# --- progress ---------------------------------------------------------------------------------------------------------


class Compilation:
    """Counter of the kernels that this process compiles, for progress displays.

    Attributes
    ----------
    watcher : callable or None
        Called when the compilation of a kernel starts, with its number and the expected total. The total is the number
        of kernels reachable from the compiled ones.
    """

    def __init__(self) -> None:
        self.watcher: Callable[[int, int], None] | None = None
        self._begun = 0
        self._expected: set[int] = set()

    def begin(self, function: Callable[..., Any]) -> None:
        """Record that the compilation of `function` starts."""
        if self.watcher is None:
            return
        self._begun += 1
        self._expected.add(id(function))
        seen, waiting = set[int](), [function]
        while waiting:  # the separately compiled kernels that are reachable from `function`
            current = waiting.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            for _, value in _used(current):
                if isinstance(value, Dispatcher):
                    waiting.append(value.py_func)
                    if value.targetoptions.get("inline") != "always":
                        self._expected.add(id(value.py_func))
        self.watcher(self._begun, max(self._begun, len(self._expected)))


COMPILATION = Compilation()
"""Counter of this process."""


# --- one compilation for all processes --------------------------------------------------------------------------------

# If several processes need a kernel at the same time, one of them locks one byte of a common file and compiles it.
# The system releases the locks of a process that ends. A kernel is locked after those that call it, so processes cannot
# wait for each other in a circle.

_LOCK_TIMEOUT = 120.0  # time after which a process compiles a kernel that another one has locked [s]


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open the file of the locks; closing it would release all locks of this process."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(folder: Path, offset: int) -> None:
    """Lock a byte, waiting for other processes; do nothing if the file system has no locks."""
    deadline = time.monotonic() + _LOCK_TIMEOUT
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            try:
                fcntl.lockf(_lock_file(folder), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
                return
            except BlockingIOError:
                time.sleep(0.01)


def _unlock(folder: Path, offset: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.lockf(_lock_file(folder), fcntl.LOCK_UN, 1, offset)


# --- adapter to numba's cache -----------------------------------------------------------------------------------------


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Location of a cached kernel: one folder for all, with the fingerprint in the file name."""

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._folder = folder
        self._py_file = function.__code__.co_filename  # appears in numba's warnings
        self._fingerprint = fingerprint(function)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._fingerprint

    def get_disambiguator(self) -> str:
        return self._fingerprint[:24]


def _numba_cache(folder: Path, function: Callable[..., Any]) -> Any:
    class Locator(_Locator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> _Locator:
            return cls(folder, py_func)

    class Implementation(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Locator,)

    class Kept(FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            """Return signature and processor; numba would add the closure, which differs in every process."""
            return sig, codegen.magic_tuple()

    return Kept(function)


class KernelCache(NullCache):  # type: ignore[misc]
    """Cache of one kernel.

    The fingerprint is computed at the first call, when all globals of the kernel exist.
    """

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._folder, self._function = folder, function
        self._cache: Any = None
        self._offset = 0  # of the lock

    def attach(self, compiled: Any) -> None:
        """Use this cache for `compiled`, a dispatcher or C function of numba."""
        compile_function = compiled._compiler.compile

        def compile_or_unlock(*arguments: Any) -> Any:
            try:
                return compile_function(*arguments)
            except BaseException:  # numba will not call save_overload
                _unlock(self._folder, self._offset)
                raise

        compiled._cache, compiled._compiler.compile = self, compile_or_unlock

    @property
    def cache_path(self) -> str:
        """Folder of the cache."""
        return str(self._folder)

    def _open(self) -> Any:
        if self._cache is None:
            self._cache = _numba_cache(self._folder, self._function)
            self._offset = int(self._cache._impl.locator.get_source_stamp()[:8], 16)
        return self._cache

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for the signature `sig`; None if it is not cached or cannot be read."""
        found = self._load(sig, target_context)
        if found is None:
            _lock(self._folder, self._offset)
            found = self._load(sig, target_context)  # another process may have compiled it in the meantime
            if found is None:
                COMPILATION.begin(self._function)
                return None
            _unlock(self._folder, self._offset)
        with contextlib.suppress(OSError):
            os.utime(self._open()._cache_file._index_path)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        cache = self._open()
        try:
            rtsys.initialize(target_context)  # sufficient for compiled code; numba would also load its compiler
            return cache._load_overload(sig, target_context)
        except Exception:  # truncated, damaged or of another version: compile again
            with contextlib.suppress(OSError):
                Path(cache._cache_file._index_path).unlink()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled code for the signature `sig`, ignoring a full disk."""
        try:
            with contextlib.suppress(OSError):
                self._open().save_overload(sig, data)
                prune(self._folder)
        finally:
            _unlock(self._folder, self._offset)


def prune(folder: Path) -> None:
    """Remove the least recently used files until `folder` holds at most `_MAX_BYTES`."""
    files = []
    for path in folder.rglob("*.nb[ic]"):
        with contextlib.suppress(OSError):
            about = path.stat()
            files.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= _MAX_BYTES:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
