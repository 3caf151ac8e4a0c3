"""Long computations for the topic of tests/haptics/test_kernel_cache.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.haptics.test_kernel_cache import (
    ROOT,
    Pair,
    pair,  # noqa: F401
)

WITHOUT_A_COMPILER = """
import sys
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


def test_whoever_finds_kernels_kept_does_without_the_compiler_until_there_is_something_to_compile(
    pair: Pair, tmp_path: Path
) -> None:
    pair.load()
    program = WITHOUT_A_COMPILER.format(folder=str(tmp_path / "1"))
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    answers = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert answers[0].stdout.split() == ["6.0", "0", "True", "7.0", "True"]
    assert answers[1].stdout.split() == ["6.0", "1", "False", "7.0", "True"]
