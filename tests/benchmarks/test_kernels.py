"""Micro-benchmarks for work on kernels.

The published figures come from ``haptics bench``.

By default they run a few short rounds. To compare two states of the code::

    pytest tests/benchmarks --benchmark-enable --benchmark-save=before
    pytest tests/benchmarks --benchmark-enable --benchmark-compare
"""

import pytest

from apps.bench.network import friction_forces, network_tick
from apps.bench.workload import elements, empty_results, own_loop
from haptics.jit import numba

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the kernels are not compiled")


@pytest.mark.parametrize("element", elements(), ids=lambda element: f"{element.model}-{element.law.name}")
def test_run(element, benchmark):
    results = empty_results()
    benchmark.pedantic(own_loop(element, results), rounds=20, warmup_rounds=1)
    assert results["friction_force"].any()


def test_step_from_python(benchmark):
    element = elements()[0]
    output = benchmark.pedantic(element.step, args=((5.0, 0.0),), rounds=20, iterations=50, warmup_rounds=1)
    assert output[0] > 0.0


def test_tick_of_a_network(benchmark):
    benchmark.pedantic(network_tick(friction_forces(100)), rounds=20, warmup_rounds=1)
