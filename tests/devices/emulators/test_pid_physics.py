"""Physics of the emulated sticks: motion by forces, durations of effects, counts of the handle position."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.emulators import pid_host as pid
from tests.devices.emulators.pid_host import NO_HAND, PROFILES, Host, force_of_level, push

every_profile = pytest.mark.parametrize("profile", PROFILES)
levels = st.tuples(*2 * [st.floats(-1.0, 1.0, allow_subnormal=False)])


def expected_travel(host, force, duration):
    """Velocity and travel of a free handle, after `duration` [s] under a constant force."""
    mass, damping = (host.stick.truths["handle"][key] for key in ("moving_mass_kg", "damping_ns_per_m"))
    decay = 1.0 - math.exp(-damping * duration / mass)
    return force / damping * decay, force / damping * (duration - mass / damping * decay)


@every_profile
def test_constant_force_accelerates_the_handle_by_its_mass(profile):
    host = Host(profile)
    host.constant(270.0, 0.5)
    begin = host.stick.firmware.frame
    host.stick.wait(0.05)
    velocity, travel = expected_travel(host, host.stick.force, (host.stick.firmware.frame - begin) * 1e-3)
    np.testing.assert_allclose(host.stick.handle_velocity, velocity, rtol=2e-3)
    within = 2e-4 * np.hypot(*velocity)  # the plant's method is of first order in the position
    assert np.hypot(*(host.stick.handle - travel)) < within


@every_profile
@settings(max_examples=5, deadline=None)
@given(levels)
def test_two_effects_give_two_force_axes(profile, level):
    host = Host(profile)
    for degrees, part in zip((270.0, 0.0), level, strict=True):
        host.constant(degrees, part)
    host.settle()
    # Eight bits of direction put 0.6 % of one axis into the other; a level is rounded to 1/255 at worst.
    np.testing.assert_allclose(host.stick.force, force_of_level(host.stick) @ level, atol=0.012 * 10.0)


@every_profile
@given(st.floats(0.0, 359.0), st.floats(0.1, 1.0))
@settings(max_examples=5, deadline=None)
def test_force_comes_from_its_direction(profile, degrees, level):
    host = Host(profile)
    host.constant(degrees, level)
    host.settle()
    angle = math.radians(degrees)
    device_axes = force_of_level(host.stick) @ (-level * math.sin(angle), level * math.cos(angle))
    np.testing.assert_allclose(host.stick.force, device_axes, atol=0.02 * 10.0)


def test_openffboard_direction_is_in_user_axes():
    # 270 degrees: from the left, so to the right; 0: from away, so towards the user. Motors are rotated by 2 degrees.
    for degrees, towards in ((270.0, (1.0, 0.0)), (0.0, (0.0, -1.0)), (90.0, (-1.0, 0.0)), (180.0, (0.0, 1.0))):
        host = Host("openffboard")
        host.constant(degrees, 1.0)
        host.settle()
        assert np.dot(host.stick.force, towards) > 0.99 * np.hypot(*host.stick.force)


@every_profile
def test_sum_of_effects_saturates_at_full_scale(profile):
    host = Host(profile)
    for _ in range(3):
        host.constant(270.0, 0.7)
    host.settle()
    level = np.array(host.stick.truths["force"]["newton_to_level"]) @ host.stick.force
    assert abs(level[0]) == pytest.approx(1.0, abs=1e-6)


# --- durations


@every_profile
@settings(max_examples=5, deadline=None)
@given(duration=st.integers(20, 300), loops=st.integers(0, 4))
def test_force_ends_with_its_duration(profile, duration, loops):
    host = Host(profile)
    block = host.constant(270.0, 0.5, duration=duration)
    host.play(block, loops=loops)
    begin = host.stick.firmware.frame
    length = duration * max(loops, 1)
    host.stick.wait((length - (host.stick.firmware.frame - begin)) * 1e-3)
    assert np.hypot(*host.stick.force) > 1.0
    host.stick.wait(1e-3)
    np.testing.assert_array_equal(host.stick.force, 0.0)


@every_profile
def test_force_ends_when_the_host_dies(profile):
    host = Host(profile)
    block = host.constant(270.0, 0.8, duration=200)
    for _ in range(8):  # a running host restarts the effect
        host.stick.wait(0.05)
        host.play(block)
        assert np.hypot(*host.stick.force) > 1.0
    host.stick.wait(0.25)  # the host has ended
    np.testing.assert_array_equal(host.stick.force, 0.0)


@every_profile
def test_endless_effect_continues(profile):
    host = Host(profile)
    host.constant(270.0, 0.5)
    machine = host.stick.firmware.machine
    for _ in range(70_000):  # longer than the largest finite duration, without the handle
        level = machine.push((0.0, 0.0))
    assert abs(level[0]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("profile", ["openffboard", "sidewinder-ff2"])
def test_start_delay_delays_the_force(profile):
    host = Host(profile)
    host.constant(270.0, 0.5, delay=50, duration=100)
    host.stick.wait(0.04)
    np.testing.assert_array_equal(host.stick.force, 0.0)
    host.stick.wait(0.02)
    assert np.hypot(*host.stick.force) > 1.0
    host.stick.wait(0.1)
    np.testing.assert_array_equal(host.stick.force, 0.0)


@every_profile
@pytest.mark.parametrize("way", ["stop", "stop-all", "free", "reset", "pause", "gain", "zero", "unplug"])
def test_every_command_that_ends_a_force(profile, way):
    host = Host(profile)
    block = host.constant(270.0, 0.5)
    host.settle()
    assert np.hypot(*host.stick.force) > 1.0
    {
        "stop": lambda: host.play(block, pid.STOP),
        "stop-all": lambda: host.control(pid.STOP_ALL),
        "free": lambda: host.out(11, block),
        "reset": lambda: (
            host.control(pid.RESET),
            host.control(pid.STOP_ALL),
        ),  # a reset restores the centring spring
        "pause": lambda: host.control(pid.PAUSE),
        "gain": lambda: host.out(13, 0),
        "zero": lambda: host.magnitude(block, 0.0),
        "unplug": host.stick.unplug,
    }[way]()
    host.settle()
    np.testing.assert_array_equal(host.stick.force, 0.0)


@pytest.mark.parametrize(("profile", "obeys"), [("openffboard", True), ("sidewinder-ff2", True), ("arduino", False)])
def test_disabled_actuators_have_no_force_except_on_arduino(profile, obeys):
    host = Host(profile)
    host.constant(270.0, 0.5)
    host.control(pid.DISABLE)
    host.settle()
    assert (np.hypot(*host.stick.force) == 0.0) == obeys
    host.control(pid.ENABLE)
    host.settle()
    assert np.hypot(*host.stick.force) > 1.0


# --- counts


@every_profile
@settings(max_examples=5, deadline=None)
@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_counts_give_the_handle_position(profile, fx, fy):
    host = Host(profile, hand=push(fx, fy))
    host.control(pid.STOP_ALL)
    axes = host.stick.truths["axes"]
    to_metres = np.array(axes["counts_to_m"])
    step = 0.5 * axes["count_quantum"] * np.abs(to_metres).sum(axis=1)
    for _ in range(10):
        host.stick.wait(0.02)
        host.counts()  # a report that was pending in the device
        found = to_metres @ (host.counts() - axes["centre_counts"])
        moved = 2e-3 * np.abs(host.stick.handle_velocity)
        assert np.all(np.abs(found - host.stick.handle) <= step + moved + 1e-9)


def test_firm_grip_presses_the_first_button():
    grip = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.0, 0.0]], "rest_grip": 1.0}
    for hand, pressed in ((grip, 1), (NO_HAND, 0)):
        host = Host("arduino", hand=hand)
        host.read()
        assert host.read()[1] == pressed


# --- centring spring


def test_sidewinder_centring_spring_can_be_stopped():
    host = Host("sidewinder-ff2", hand=push(2.0, 0.0), start=False)
    host.stick.wait(3.0)
    held = host.stick.handle[0]
    assert 0.0 < held < 0.5 * host.stick.truths["axes"]["workspace_max_m"][0]
    np.testing.assert_allclose(host.stick.force, (-2.0, 0.0), atol=0.05)
    host.play(1, pid.STOP)
    host.stick.wait(1.0)
    np.testing.assert_array_equal(host.stick.force, 0.0)
    assert host.stick.handle[0] > 2.0 * held
