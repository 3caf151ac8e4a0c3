"""Networks in another process, and their convergence to a rigid model."""

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.testing import assert_array_equal

from haptics import AmbiguousLawWarning, ClosedForm, Coulomb, Network, RigidAdmittance, simulate
from tests.haptics.references import rubber


def test_network_continues_in_another_process():
    """Sliding contacts call the compiled function of a custom law, which has another address there."""
    network = Network()
    base = network.base()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        network.contact(network.body(1.0), base, rubber(static=2.0, kinetic=1.0), 2e4, 100.0)
        network.contact(network.body(2.0), base, ClosedForm(rubber(static=3.0)), 2e4, 100.0)
    for _ in range(30):
        network.step([(5.0, 0.0)])
    sliding = {"base_velocity": [(5.0, 0.0)]}
    expected = network.simulate(50, **sliding)
    assert not expected.sticking.any()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(network.simulate, 50, **sliding).result()
    for name, values in vars(expected).items():
        assert_array_equal(getattr(found, name), values, name)


def test_stiff_network_contacts_converge_to_model_a():
    """Ten times the stiffness and a tenth of the period bring the motion closer to the rigid model A."""
    duration, errors = 0.6, []

    def push(time):
        return 4.0 * np.column_stack((np.sin(20.0 * time), 0.5 * np.cos(33.0 * time)))

    fine = RigidAdmittance(Coulomb(2.0), 1.0, period=1e-6)
    exact = simulate(fine, push(1e-6 * np.arange(1, 600_001))).velocity
    for period, stiffness in ((1e-3, 2e4), (1e-4, 2e5), (1e-5, 2e6)):
        steps = round(duration / period)
        network = Network(period)
        network.contact(network.body(1.0), network.wall, Coulomb(2.0), stiffness, np.sqrt(stiffness))
        run = network.simulate(steps, forces=push(period * np.arange(1, steps + 1))[:, None])
        every = round(period / 1e-6)
        errors.append(np.abs(run.body_velocity[:, 0] - exact[every - 1 :: every]).max())
    assert errors[1] < 0.4 * errors[0] and errors[2] < 0.4 * errors[1]
    assert errors[2] < 2e-3
