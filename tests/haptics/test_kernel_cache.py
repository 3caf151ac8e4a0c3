"""Compiled kernels are kept on disk under a fingerprint of their sources."""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError

from haptics import kernel_cache
from haptics.friction import custom_law as law_source
from haptics.jit import LEVEL_ARGUMENTS, compile_callback, compile_level, kernel
from haptics.kernel_cache import KernelCache, fingerprint

ROOT = Path(__file__).resolve().parents[2]
CALLED = """
\"\"\"Words.\"\"\"
import enum
import numpy as np
from haptics.jit import kernel

GAIN = 2.0
TABLE = np.array([1.0, 2.0])
ROW = np.dtype([("a", np.float64)])

class Flag(enum.IntEnum):
    ON = 1

@kernel
def called(x):
    \"\"\"Say something.\"\"\"
    return GAIN * x + TABLE[Flag.ON]
"""
CALLER = """
from haptics.jit import kernel
import CALLED_MODULE
from CALLED_MODULE import ROW, called

@kernel
def caller(x):
    return called(x) + CALLED_MODULE.GAIN

def _made(inner):
    @kernel
    def made(x):
        return inner(x)

    return made

made = _made(called)
"""


class Pair:
    """Two modules on disk: a kernel that calls another one, to be edited."""

    def __init__(self, folder):
        self.folder, self.edition = folder, 0

    def fingerprint(self, *edits):
        """Write both modules with the `edits`, and return the fingerprint of the caller."""
        return fingerprint(self.load(*edits).py_func)

    def load(self, *edits):
        text = CALLED
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        self.edition += 1
        folder = self.folder / str(self.edition)
        folder.mkdir()
        (folder / "kernel_cache_called.py").write_text(text)
        (folder / "kernel_cache_caller.py").write_text(CALLER.replace("CALLED_MODULE", "kernel_cache_called"))
        for name in ("kernel_cache_called", "kernel_cache_caller"):
            sys.modules.pop(name, None)
        sys.path.insert(0, str(folder))
        try:
            importlib.invalidate_caches()
            return importlib.import_module("kernel_cache_caller").caller
        finally:
            sys.path.remove(str(folder))


@pytest.fixture
def pair(tmp_path):
    yield Pair(tmp_path)
    for name in ("kernel_cache_called", "kernel_cache_caller"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "edit",
    [
        ("GAIN = 2.0", "GAIN = 2.5"),
        ("[1.0, 2.0]", "[1.0, 3.0]"),
        ("ON = 1", "ON = 2"),
        ("+ TABLE", "- TABLE"),
        ("TABLE[Flag.ON]", "TABLE[0]"),
        ("def called(x)", "def called(x, y=1.0)"),
        ("@kernel\n", "from haptics.jit import inlined_kernel\n@inlined_kernel\n"),
    ],
)
def test_fingerprint_covers_called_kernels(pair, edit):
    assert pair.fingerprint() != pair.fingerprint(edit)


@pytest.mark.parametrize(
    "edit",
    [
        ('"""Words."""', '"""Other words."""\n# and a comment'),
        ('"""Say something."""', '"""Say something else,\n\n    at length."""'),
        ('("a", np.float64)', '("b", np.float64)'),
        ("import enum", "import enum\n\nUNUSED = 3"),
    ],
)
def test_fingerprint_ignores_docstrings_and_unused_names(pair, edit):
    assert pair.fingerprint() == pair.fingerprint(edit)


def test_fingerprint_covers_which_closure_is_used_where():
    def scaled(gain):
        return kernel(lambda x: gain * x)

    def summed(first, second):
        return kernel(lambda x: first(x) + second(first(x)))

    one, two = scaled(1.0), scaled(2.0)
    uses = [(one, two), (two, one), (one, one)]
    made = [summed(summed(*pair), summed(two, one)).py_func for pair in uses]
    assert len({fingerprint(function) for function in made}) == len(uses)


def test_unsupported_global_is_refused(pair):
    with pytest.raises(TypeError, match="list"):
        pair.fingerprint(("np.array([1.0, 2.0])", "[1.0, 2.0]"))


def test_every_kernel_of_the_project_is_cached():
    kernels = 0
    for package in ("haptics", "devices", "calibration", "apps"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if module.ispkg or "haptics.jit import" not in (ROOT / (module.name.replace(".", "/") + ".py")).read_text():
                continue
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Dispatcher):
                    assert isinstance(value._cache, KernelCache)
                    assert fingerprint(value.py_func)
                    kernels += 1
    assert kernels > 100


def test_cached_kernel_is_loaded_and_a_damaged_file_is_recompiled(pair, tmp_path, monkeypatch):
    monkeypatch.setattr("haptics.jit._FOLDER", tmp_path)
    first, second, third = pair.load(), pair.load(), pair.load()
    assert first(1.0) == second(1.0) == 6.0
    assert sum(first.stats.cache_misses.values()) == 1
    assert sum(second.stats.cache_hits.values()) == 1
    for path in tmp_path.glob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:20])
    assert third(1.0) == 6.0
    assert not third.stats.cache_hits


def test_kernel_made_from_another_one_is_cached(pair, tmp_path, monkeypatch):
    monkeypatch.setattr("haptics.jit._FOLDER", tmp_path)
    for found in (0, 1):
        pair.load()
        made = sys.modules["kernel_cache_caller"].made
        assert made(1.0) == 4.0
        assert sum(made.stats.cache_hits.values()) == found
    pair.load(("GAIN = 2.0", "GAIN = 3.0"))
    assert sys.modules["kernel_cache_caller"].made(1.0) == 5.0


FACTORY = """
import sys
import numpy as np
from haptics.jit import kernel
from haptics.jit import address_of_part, run_part

ROW = np.dtype([("value", "<f8")])

def make(change):
    # Too long to be inlined: the part contains a call.
    names = {}
    exec("def inner(s):" + f"\\n    s.value += {change}" * 500, names)
    inner = kernel(names["inner"])

    @kernel
    def part(s, _x, _y):
        inner(s)

    return part

row = np.zeros(1, ROW)
for change in sys.argv[1:]:
    row["value"] = 0.0
    run_part(address_of_part(make(float(change)), ROW), row.ctypes.data, 0.0, 0.0)
    print(row["value"][0])
"""


def test_closures_compiled_by_different_processes_are_not_confused(tmp_path):
    (tmp_path / "factory.py").write_text(FACTORY)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    for changes, values in [(["1"], ["500.0"]), (["2"], ["1000.0"]), (["1", "2"], ["500.0", "1000.0"])]:
        command = [sys.executable, str(tmp_path / "factory.py"), *changes]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert answer.stdout.split() == values


SHARED = """
from haptics.jit import kernel
names = {"__name__": "__main__"}
exec("def long(x):" + "\\n    x = x / 3.0 + 1.0" * 300 + "\\n    return x", names)
long = kernel(names["long"])
long(1.0)
print(sum(long.stats.cache_misses.values()), sum(long.stats.cache_hits.values()))
"""


def test_kernel_that_two_processes_need_is_compiled_by_one(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SHARED]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(process.communicate()[0].split() for process in both) == [["0", "1"], ["1", "0"]]


LOCK_ALL = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


@pytest.mark.parametrize("compile_kernel", [lambda outer: outer(1), compile_callback], ids=["kernel", "callback"])
def test_failed_compilation_leaves_no_lock(tmp_path, monkeypatch, compile_kernel):
    """Otherwise other processes would wait for a compilation that has ended."""
    monkeypatch.setattr("haptics.jit._FOLDER", tmp_path)

    @kernel
    def inner(x):
        return x.missing

    @kernel
    def outer(x):
        return inner(x)

    with pytest.raises(TypingError, match="missing"):
        compile_kernel(outer)
    subprocess.run([sys.executable, "-c", LOCK_ALL, str(tmp_path / "lock")], check=True)


LAWS = [f"def level(speed, force=2.0):\n    return force / ({term})" for term in ("1 + speed", "1 + speed * speed")]


def test_law_is_cached_by_its_source(tmp_path, monkeypatch):
    monkeypatch.setattr("haptics.jit._FOLDER", tmp_path)
    level = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * LEVEL_ARGUMENTS)
    callback: Any
    for found in (0, 1):
        for source, expected in zip(LAWS, (2.0 / 4.0, 2.0 / 10.0), strict=True):
            address, callback = compile_level(law_source.build(source, math), 1)
            assert level(address)(3.0, 2.0, *[math.nan] * (LEVEL_ARGUMENTS - 2)) == expected
            assert callback.cache_hits == found


def test_oldest_files_are_removed_from_a_full_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "_MAX_BYTES", 300)
    for age in range(5):
        path = tmp_path / f"{age}.nbc"
        path.write_bytes(bytes(100))
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "other.txt").write_bytes(bytes(1000))
    kernel_cache.prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.nbc", "1.nbc", "2.nbc", "other.txt"]


def test_numba_may_be_imported_first(tmp_path):
    program = (
        "import numba, haptics.jit as j, haptics.friction.kernels as k;"
        "print(type(k.sliding_level._cache).__name__, j._FOLDER)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == ["KernelCache", str(tmp_path / "haptics" / "kernels")]
