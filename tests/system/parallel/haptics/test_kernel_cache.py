"""Compiled kernels in new processes, and progress while they are compiled."""

import subprocess
import sys

import numba

from haptics import kernel_cache
from haptics.jit import kernel
from haptics.kernel_cache import Compilation, KernelCache
from tests.haptics.test_kernel_cache import ROOT, pair  # noqa: F401

WITHOUT_A_COMPILER = """
import sys

import numba

from haptics import kernel_cache
from haptics.jit import kernel
from haptics.kernel_cache import Compilation, KernelCache
import numpy as np
sys.path.insert(0, {folder!r})
from kernel_cache_caller import caller
print(caller(1.0), sum(caller.stats.cache_hits.values()), "numba.np.arraymath" in sys.modules)
from haptics.jit import kernel
@kernel
def another(x):
    return np.array([caller(x), 1.0]).sum()
print(another(1.0), "numba.np.arraymath" in sys.modules)
"""


def test_cached_kernels_need_no_compiler(pair, tmp_path):
    pair.load()
    program = WITHOUT_A_COMPILER.format(folder=str(tmp_path / "1"))
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    answers = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert answers[0].stdout.split() == ["6.0", "0", "True", "7.0", "True"]
    assert answers[1].stdout.split() == ["6.0", "1", "False", "7.0", "True"]


@kernel
def _inner(x):
    return 2.0 * x


@kernel
def _outer(x):
    return _inner(x) + 1.0


def test_kernels_that_are_not_in_the_cache_are_counted_with_an_estimated_total(monkeypatch, tmp_path):
    counted: list[tuple[int, int]] = []
    compilation = Compilation()
    compilation.begin(_outer.py_func)
    compilation.watcher = lambda number, about: counted.append((number, about))
    monkeypatch.setattr(kernel_cache, "COMPILATION", compilation)
    compilation.begin(_outer.py_func)
    assert KernelCache(tmp_path, _inner.py_func).load_overload((numba.float64,), _inner.targetctx) is None
    assert counted == [(1, 2), (2, 2)]
