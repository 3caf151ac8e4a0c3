"""Fixtures of the benchmark tests: short measurements, which check the meaning of the figures."""

import shutil

import pytest

from apps.bench import network, simulators, workload
from apps.bench.workload import Reference
from haptics.jit import numba


@pytest.fixture(scope="session")
def reference():
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler here")
    return Reference()


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def compiled_kernels():
    if numba.config.DISABLE_JIT:
        pytest.skip("the kernels are not compiled")


@pytest.fixture
def few_rounds(compiled_kernels, monkeypatch):
    monkeypatch.setattr(workload, "ROUNDS", 2)
    monkeypatch.setattr(simulators, "_ROUNDS", 2)
    monkeypatch.setattr(simulators, "_REPEATS", 1)
    monkeypatch.setattr(network, "_FIRST", 20)
    monkeypatch.setattr(network, "_MOST", 30)
