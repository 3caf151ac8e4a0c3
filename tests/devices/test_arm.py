"""The virtual arm against the contract and against closed-form physics."""

import math

import numpy as np
import pytest

import devices
from haptics.clock import Clock
from haptics.elements import RigidAdmittance
from haptics.friction import Coulomb
from tests.contract import VirtualDeviceContract

MASS, PULSATION = 5.0, 2.0 * math.pi * 30.0
NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
PERFECT = {"force_noise": 0.0, "force_bias_x": 0.0, "force_bias_y": 0.0, "force_resolution": 0.0}


class TestVirtualArm(VirtualDeviceContract):
    name = "virtual-arm"


def arm(**changes):
    clock = Clock(1e-3)
    return devices.open_device("virtual-arm", {"hand": NO_HAND, **changes}, clock=clock), clock


def wait(device, clock, ticks):
    for _ in range(ticks):
        clock.wait(clock.tick + 1)
        device.read()


def pushed(x, y):
    return {"name": "scripted-force", "script": [[0.0, x, y]]}


def critically_damped_ramp(time, length, pulsation):
    """Response at `time` of a critically damped second-order system to a ramp from 0 to 1 of that `length`."""

    def integral(t):
        t = max(t, 0.0)
        return t - 2.0 / pulsation + (t + 2.0 / pulsation) * math.exp(-pulsation * t)

    return (integral(time) - integral(time - length)) / length


def test_step_response_is_that_of_a_second_order_system():
    device, clock = arm(velocity_reference=False)
    device.read()
    device.write(np.array((0.01, -0.02)))
    for tick in range(1, 101):
        clock.wait(tick)
        device.read()
        expected = critically_damped_ramp(tick * 1e-3, 1e-3, PULSATION)
        np.testing.assert_allclose(device.handle / (0.01, -0.02), expected, atol=0.01)
    np.testing.assert_allclose(device.handle, (0.01, -0.02), rtol=1e-5)


def test_weakly_damped_servo_overshoots_as_it_should():
    ratio = 0.3
    device, clock = arm(velocity_reference=False, damping_ratio=ratio, natural_frequency=10.0)
    device.write(np.array((0.01, 0.0)))
    peak = 0.0
    for _ in range(200):
        wait(device, clock, 1)
        peak = max(peak, device.handle[0])
    assert peak / 0.01 - 1.0 == pytest.approx(math.exp(-math.pi * ratio / math.sqrt(1.0 - ratio**2)), abs=0.01)


@pytest.mark.parametrize(("knows_velocity", "lag"), [(False, 2.0 / PULSATION * 0.1), (True, 0.0)])
def test_servo_lags_behind_a_moving_reference_unless_it_knows_its_velocity(knows_velocity, lag):
    device, clock = arm(velocity_reference=knows_velocity)
    for tick in range(300):
        clock.wait(tick)
        device.read()
        device.write(np.array((0.1 * (tick + 1) * 1e-3, 0.0)))
    wait(device, clock, 1)
    assert 0.1 * 0.3 - device.handle[0] == pytest.approx(lag, abs=1.5e-5)


def test_hand_deflects_the_arm_as_the_servo_is_stiff():
    device, clock = arm(hand=pushed(6.0, -3.0))
    wait(device, clock, 500)
    np.testing.assert_allclose(device.handle, np.array((6.0, -3.0)) / (MASS * PULSATION**2), rtol=1e-6)


def test_arm_cannot_be_sent_out_of_its_workspace():
    device, clock = arm()
    device.write(np.array((10.0, -10.0)))
    wait(device, clock, 500)
    np.testing.assert_allclose(device.handle, (0.2, -0.15), atol=1e-6)


def test_close_holds_the_last_reference():
    device, clock = arm()
    device.write(np.array((0.01, 0.02)))
    wait(device, clock, 500)
    before = device.handle
    device.close()
    np.testing.assert_array_equal(device.handle, before)


def test_sensor_shows_the_hand_with_bias_and_white_noise():
    device, clock = arm(hand=pushed(2.0, -1.0), force_resolution=0.0)
    forces = []
    for _ in range(6000):
        wait(device, clock, 1)
        forces.append(device.read().force.copy())
    error = np.array(forces) - (2.0 + 0.1, -1.0 - 0.05)
    count = len(error)
    assert np.abs(error.mean(axis=0)).max() < 5.0 * 0.05 / math.sqrt(count)
    np.testing.assert_allclose(error.std(axis=0), 0.05, rtol=0.05)
    normal = error / 0.05
    for lag in (1, 2, 10):
        assert np.abs((normal[lag:] * normal[:-lag]).mean(axis=0)).max() < 5.0 / math.sqrt(count)
    assert abs((normal[:, 0] * normal[:, 1]).mean()) < 5.0 / math.sqrt(count)


def test_perfect_sensor_shows_the_truth():
    device, clock = arm(hand={"name": "minimum-jerk"}, **PERFECT)
    wait(device, clock, 700)
    np.testing.assert_array_equal(device.read().force, device.hand_force)
    assert np.hypot(*device.hand_force) > 1.0


def test_sensor_has_a_resolution_and_a_range():
    device, clock = arm(hand=pushed(80.0, -80.0), force_resolution=0.5)
    wait(device, clock, 3)
    np.testing.assert_array_equal(device.read().force, (50.0, -50.0))
    device, clock = arm(hand=pushed(3.3, -7.8), force_resolution=0.5)
    for _ in range(50):
        wait(device, clock, 1)
        counts = device.read().force / 0.5
        np.testing.assert_array_equal(counts, np.round(counts))


def test_noise_depends_on_the_seed():
    forces = []
    for seed in (1, 1, 2):
        device, clock = arm(seed=seed)
        wait(device, clock, 5)
        forces.append(device.read().force.tolist())
    assert forces[0] == forces[1] != forces[2]


def test_noise_does_not_depend_on_what_is_commanded():
    still, clock = arm()
    moved, other = arm()
    for tick in range(1, 50):
        moved.write(np.array((1e-4 * tick, 0.0)))
        wait(still, clock, 1)
        wait(moved, other, 1)
        np.testing.assert_array_equal(still.read().force, moved.read().force)


def friction_loop(device, clock, seconds):
    """Render model A with 6 N and 2 kg; return (time, sticking, sensed force, position) per tick, (n, 5)."""
    model = RigidAdmittance(Coulomb(6.0), mass=2.0)
    reference = device.read().position.copy()
    rows = []
    for tick in range(round(seconds / 1e-3)):
        clock.wait(tick)
        state = device.read()
        rows.append((clock.time, model.sticking, np.hypot(*state.force), *state.position))
        reference += 1e-3 * model.step(state.force)
        device.write(reference)
    return np.array(rows)


def test_default_hand_makes_model_a_stick_and_slip():
    device, clock = arm(hand={"name": "minimum-jerk"}, seed=1)
    rows = friction_loop(device, clock, 4.0)
    time, sticking = rows[:, 0], rows[:, 1]
    assert 0.2 < sticking.mean() < 0.9
    assert rows[:, 2].max() > 6.0
    rest = next(phase for phase in device.hand.phases if phase.rest)
    relaxed = (time > rest.start + 0.3) & (time < rest.start + rest.duration - 0.3)
    assert sticking[relaxed].all()
    assert np.ptp(rows[relaxed, 2]) > 0.5
    # What is left is the deflection of the servo under the fluctuating force.
    assert np.ptp(rows[relaxed, 3:], axis=0).max() < 50e-6
