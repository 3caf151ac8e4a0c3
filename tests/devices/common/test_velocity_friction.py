"""The estimators in the loop: model C on the virtual joystick with a hand, on an encoder, with the motors' delay."""

import math

import numpy as np
import pytest

import devices
from devices.common.velocity import ESTIMATORS
from haptics.clock import Clock
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb

LETS_GO = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
STIFFNESS, MASS = 6000.0, 0.2


def holds_still(damping):
    """A hand that does nothing but damp."""
    rest = {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    return {"name": "minimum-jerk", "points": [[0, 0], [0, 0]], "stiffness": 0.0, "damping": damping, **rest}


HANDS = {"none": LETS_GO, "light": holds_still(2.0), "firm": holds_still(8.0)}


def rendered(device, clock, element, ticks):
    """Render `element` and return the true position and the force, (ticks, 2) each."""
    positions, forces = np.zeros((2, ticks, 2))
    for tick in range(ticks):
        force = element.step(device.read().velocity)
        device.write(-force)
        positions[tick], forces[tick] = device.handle, force
        clock.wait(clock.tick + 1)
    return positions, forces


def after_a_kick(damping, hand, rate=1000.0, ticks=1500, **settings):
    """Return how far the handle still goes forth and back at the end [m], having swung through 0.1 mm or so."""
    clock = Clock(1.0 / rate)
    device = devices.open_device("virtual-joystick", {"hand": hand, **settings}, clock=clock)
    device._record["handle_velocity"][0] = 0.02, 0.01
    element = MasslessImpedance(Coulomb(4.0), STIFFNESS, damping, 1.0 / rate)
    positions, _ = rendered(device, clock, element, ticks)
    return np.ptp(positions[-300:], axis=0).max()


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("damping", [10.0, 2.0 * math.sqrt(STIFFNESS * MASS)])
@pytest.mark.parametrize("rate", [500.0, 1000.0, 2000.0])
def test_the_default_joystick_settles_with_every_hand(hand, damping, rate):
    """With the usual coupling and with one that is critically damped, to a few counts of 10 um; at 1 kHz to one."""
    counts = 6.0 if rate == 500.0 else 1.3
    assert after_a_kick(damping, HANDS[hand], rate, mass=MASS) < counts * 10e-6


def test_it_settles_with_less_damping_than_a_difference_needs():
    """From 5.5 N s/m on for the difference, from 3 for the tracker, by the eigenvalues of the loop while it sticks."""
    chosen = {"velocity_estimator": "difference"}
    assert after_a_kick(4.0, LETS_GO, **chosen) > 300e-6
    assert after_a_kick(6.5, LETS_GO, **chosen) < 100e-6
    assert after_a_kick(4.0, LETS_GO) < 100e-6
    assert after_a_kick(2.0, LETS_GO) > 300e-6


@pytest.mark.parametrize("damping", [100.0, 160.0])
def test_it_settles_with_much_damping(damping):
    assert after_a_kick(damping, LETS_GO) < 30e-6


def held(name, damping, resolution):
    """Push with 2 N for 5 s; return drift [m/s], buzz [N rms] and the mean force [N] of the last 4."""
    clock = Clock(1e-3)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 1.47, 1.29], [9.0, 1.47, 1.29]]}
    own = {"mass": 0.25, "damping": 1.0 + damping, "resolution": resolution, "velocity_estimator": name}
    device = devices.open_device("virtual-joystick", {"hand": hand, **own}, clock=clock)
    element = MasslessImpedance(Coulomb(4.0), STIFFNESS, 10.0)
    positions, forces = (rows[1000:] for rows in rendered(device, clock, element, 5000))
    drift = np.hypot(*np.polyfit(1e-3 * np.arange(4000), positions, 1)[0])
    spectrum = np.fft.rfft(forces, axis=0)
    spectrum[np.fft.rfftfreq(4000, 1e-3) < 10.0] = 0.0
    buzz = math.sqrt(np.mean(np.sum(np.fft.irfft(spectrum, 4000, axis=0) ** 2, axis=1)))
    return drift, buzz, forces.mean(axis=0)


@pytest.mark.parametrize("damping", [2.0, 8.0])
@pytest.mark.parametrize("resolution", [5e-6, 20e-6])
def test_a_held_handle_neither_creeps_nor_buzzes(damping, resolution):
    drift, buzz, force = held("tracker", damping, resolution)
    assert drift < 1e-6
    assert buzz < 2500.0 * resolution  # 0.05 N at 20 um
    np.testing.assert_allclose(force, (1.47, 1.29), atol=2e-3)


def test_a_difference_buzzes_and_a_window_that_adapts_lets_go():
    _, buzz, force = held("difference", 2.0, 20e-6)
    assert buzz > 0.1
    np.testing.assert_allclose(force, (1.47, 1.29), atol=2e-3)
    drift, *_ = held("best-fit", 2.0, 20e-6)
    assert drift > 1e-4


@pytest.mark.parametrize("device_name", ["virtual-joystick", "virtual-arm"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_can_be_chosen_on_a_device(device_name, name):
    clock = Clock(1e-3)
    fine = {"resolution": 1e-6} if device_name == "virtual-joystick" else {"arm": {"encoder_counts": 2**15}}
    own = {"hand": {"name": "minimum-jerk"}, "velocity_estimator": name, **fine}
    device = devices.open_device(device_name, own, clock=clock)
    start, errors = np.array(device.hand.start), []
    for tick in range(600):
        velocity = device.read().velocity.copy()
        device.write((0.5 + 0.5 * np.cos(np.pi * tick / 600)) * start)  # next to no force, or a way for the arm to go
        errors.append(velocity - device.handle_velocity)
        clock.wait(tick + 1)
    assert np.abs(errors[20:]).max() < 0.03
