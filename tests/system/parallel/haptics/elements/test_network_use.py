"""Long computations for the topic of tests/haptics/elements/test_network_use.py."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

from numpy.testing import assert_array_equal

from haptics import (
    AmbiguousLawWarning,
    ClosedForm,
)
from haptics.elements.network.network import Network
from haptics.elements.network.parts import NetworkResult
from tests.haptics.networks import both
from tests.haptics.references import rubber


def _rubbing() -> Network:
    """Two bodies on a base, each on a contact with a law of its own."""
    network = Network()
    base = network.base()
    network.contact(network.body(1.0), base, rubber(static=2.0, kinetic=1.0), 2e4, 100.0)
    network.contact(network.body(2.0), base, ClosedForm(rubber(static=3.0)), 2e4, 100.0)
    return network


def _slide(network: Network, steps: int) -> NetworkResult:
    return network.simulate(steps, base_velocity=[(5.0, 0.0)])


def test_a_network_goes_on_in_another_process() -> None:
    """Sliding contacts call the compiled function of a custom law, which lies at another address there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        network = _rubbing()
    for _ in range(30):
        network.step([(5.0, 0.0)])
    expected = _slide(network, 50)
    assert not expected.sticking.any()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        both(pool.submit(_slide, network, 50).result(), expected, assert_array_equal)
