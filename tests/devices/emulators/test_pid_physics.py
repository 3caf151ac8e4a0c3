"""The emulated sticks as physics: forces move the handle, time ends them, and the counts say where it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.emulators.pid_host import (
    CONTINUE,
    DAMPER,
    DISABLE,
    ENABLE,
    FRICTION,
    NO_HAND,
    PAUSE,
    PROFILES,
    RESET,
    SINE,
    SPRING,
    STOP,
    STOP_ALL,
    Host,
    force_of_level,
    push,
)

every_profile = pytest.mark.parametrize("profile", PROFILES)
levels = st.tuples(*2 * [st.floats(-1.0, 1.0, allow_subnormal=False)])


def expected_travel(host, force, duration):
    """Velocity and travel of a free handle, after `duration` [s] under a constant force."""
    mass, damping = (host.stick.truths["handle"][key] for key in ("moving_mass_kg", "damping_ns_per_m"))
    decay = 1.0 - math.exp(-damping * duration / mass)
    return force / damping * decay, force / damping * (duration - mass / damping * decay)


@every_profile
def test_constant_force_moves_the_handle_as_its_mass_says(profile):
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
def test_two_effects_are_two_axes_of_force(profile, level):
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


def test_direction_is_a_persons_where_the_firmware_knows_its_motors():
    # 270 degrees: from the left, so to the right; 0: from away, so towards the person. The motors are turned by 2.
    for degrees, towards in ((270.0, (1.0, 0.0)), (0.0, (0.0, -1.0)), (90.0, (-1.0, 0.0)), (180.0, (0.0, 1.0))):
        host = Host("openffboard")
        host.constant(degrees, 1.0)
        host.settle()
        assert np.dot(host.stick.force, towards) > 0.99 * np.hypot(*host.stick.force)


@every_profile
def test_largest_force_can_be_had_in_every_direction(profile):
    host = Host(profile)
    level_of_force = np.array(host.stick.truths["force"]["newton_to_level"])
    largest = host.stick.truths["force"]["max_force_n"]
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    needed = level_of_force @ (largest * np.array((np.cos(angles), np.sin(angles))))
    assert np.abs(needed).max() == pytest.approx(1.0, abs=1e-3)


@every_profile
def test_effects_add_up_to_full_scale_of_each_motor_and_no_more(profile):
    host = Host(profile)
    for _ in range(3):
        host.constant(270.0, 0.7)
    host.settle()
    level = np.array(host.stick.truths["force"]["newton_to_level"]) @ host.stick.force
    assert abs(level[0]) == pytest.approx(1.0, abs=1e-6)


# --- time ends them


@every_profile
@settings(max_examples=5, deadline=None)
@given(duration=st.integers(20, 300), loops=st.integers(0, 4))
def test_force_ends_with_its_duration_to_the_frame(profile, duration, loops):
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
def test_dead_host_leaves_no_force_after_the_duration(profile):
    host = Host(profile)
    block = host.constant(270.0, 0.8, duration=200)
    for _ in range(8):  # a host that lives restarts it
        host.stick.wait(0.05)
        host.play(block)
        assert np.hypot(*host.stick.force) > 1.0
    host.stick.wait(0.25)  # and then is dead
    np.testing.assert_array_equal(host.stick.force, 0.0)


@every_profile
def test_handle_only_loses_speed_once_the_force_is_over(profile):
    host = Host(profile)
    host.constant(270.0, 0.2, duration=30)
    host.stick.wait(0.04)
    speeds = []
    for _ in range(20):
        host.stick.wait(1e-3)
        speeds.append(np.hypot(*host.stick.handle_velocity))
    assert speeds[0] > 0.0
    assert np.all(np.diff(speeds) < 0.0)


@every_profile
def test_endless_effect_goes_on(profile):
    host = Host(profile)
    host.constant(270.0, 0.5)
    machine = host.stick.firmware.machine
    for _ in range(70_000):  # longer than a duration can be told; the handle need not come along
        level = machine.push((0.0, 0.0), (0.0, 0.0))
    assert abs(level[0]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("profile", ["openffboard", "sidewinder-ff2"])
def test_start_delay_puts_the_force_off(profile):
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
def test_force_ends_in_every_way_there_is(profile, way):
    host = Host(profile)
    block = host.constant(270.0, 0.5)
    host.settle()
    assert np.hypot(*host.stick.force) > 1.0
    {
        "stop": lambda: host.play(block, STOP),
        "stop-all": lambda: host.control(STOP_ALL),
        "free": lambda: host.out(11, block),
        "reset": lambda: (host.control(RESET), host.control(STOP_ALL)),  # a centring spring is back after a reset
        "pause": lambda: host.control(PAUSE),
        "gain": lambda: host.out(13, 0),
        "zero": lambda: host.magnitude(block, 0.0),
        "unplug": host.stick.unplug,
    }[way]()
    host.settle()
    np.testing.assert_array_equal(host.stick.force, 0.0)


@pytest.mark.parametrize(("profile", "obeys"), [("openffboard", True), ("sidewinder-ff2", True), ("arduino", False)])
def test_disabled_actuators_rest_where_the_firmware_looks_at_that(profile, obeys):
    host = Host(profile)
    host.constant(270.0, 0.5)
    host.control(DISABLE)
    host.settle()
    assert (np.hypot(*host.stick.force) == 0.0) == obeys
    host.control(ENABLE)
    host.settle()
    assert np.hypot(*host.stick.force) > 1.0


@every_profile
def test_time_of_an_effect_stands_still_in_a_pause(profile):
    host = Host(profile)
    host.constant(270.0, 0.5, duration=200)
    host.control(PAUSE)
    host.stick.wait(1.0)
    host.control(CONTINUE)
    host.settle()
    assert np.hypot(*host.stick.force) > 1.0
    host.stick.wait(0.2)
    np.testing.assert_array_equal(host.stick.force, 0.0)


# --- the counts say where it is


@every_profile
@settings(max_examples=5, deadline=None)
@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_counts_and_truths_give_the_place_of_the_handle(profile, fx, fy):
    host = Host(profile, hand=push(fx, fy))
    host.control(STOP_ALL)
    axes = host.stick.truths["axes"]
    to_metres = np.array(axes["counts_to_m"])
    step = 0.5 * axes["count_quantum"] * np.abs(to_metres).sum(axis=1)
    for _ in range(10):
        host.stick.wait(0.02)
        host.counts()  # what had been waiting in the device
        found = to_metres @ (host.counts() - axes["centre_counts"])
        moved = 2e-3 * np.abs(host.stick.handle_velocity)
        assert np.all(np.abs(found - host.stick.handle) <= step + moved + 1e-9)


@every_profile
def test_all_of_the_travel_can_be_counted(profile):
    limit = {"openffboard": 32767, "sidewinder-ff2": 511, "arduino": 32767}[profile]
    axes = Host(profile).stick.truths["axes"]
    for x in (axes["workspace_min_m"][0], axes["workspace_max_m"][0]):
        for y in (axes["workspace_min_m"][1], axes["workspace_max_m"][1]):
            counts = np.linalg.solve(np.array(axes["counts_to_m"]), (x, y)) + axes["centre_counts"]
            assert 0.8 * limit < np.abs(counts).max() < limit


def test_firm_grip_presses_the_first_button():
    grip = {"name": "minimum-jerk", "points": [[0.0, 0.0], [0.0, 0.0]], "rest_grip": 1.0}
    for hand, pressed in ((grip, 1), (NO_HAND, 0)):
        host = Host("arduino", hand=hand)
        host.read()
        assert host.read()[1] == pressed


# --- effects that the device plays by itself


def test_sidewinder_centres_itself_until_it_is_told_not_to():
    host = Host("sidewinder-ff2", hand=push(2.0, 0.0), start=False)
    host.stick.wait(3.0)
    held = host.stick.handle[0]
    assert 0.0 < held < 0.5 * host.stick.truths["axes"]["workspace_max_m"][0]
    np.testing.assert_allclose(host.stick.force, (-2.0, 0.0), atol=0.05)
    host.play(1, STOP)
    host.stick.wait(1.0)
    np.testing.assert_array_equal(host.stick.force, 0.0)
    assert host.stick.handle[0] > 2.0 * held


def condition(host, block, place, coefficient, saturation=1.0):
    full = {"openffboard": (32767, 32767), "sidewinder-ff2": (127, 255), "arduino": (10000, 10000)}[host.name]
    strength, most = round(coefficient * full[0]), round(saturation * full[1])
    size, order = (1, "little") if host.name == "sidewinder-ff2" else (2, "little")
    numbers = (0, strength, strength, most, most, 0)
    host.output.write(bytes([3, block, place]) + b"".join(number.to_bytes(size, order) for number in numbers))


@every_profile
@pytest.mark.parametrize("kind", [DAMPER, FRICTION])
def test_resistance_takes_energy_and_nothing_else(profile, kind):
    """Whatever the sign of the motors: a firmware that leaves it to others would drive the handle on."""
    host = Host(
        profile, hand={"name": "scripted-force", "script": [[0.0, 1.0, 0.5], [0.1, 1.0, 0.5], [0.11, 0.0, 0.0]]}
    )
    block = host.create(kind)
    host.set_effect(block, kind)
    for place in (0, 1):
        condition(host, block, place, 0.3)
    host.play(block)
    host.stick.wait(0.15)
    for _ in range(20):
        host.stick.wait(1e-3)
        power = float(host.stick.force @ host.stick.handle_velocity)
        assert power <= 1e-9


@every_profile
def test_saturated_spring_holds_with_its_saturation(profile):
    host = Host(profile, hand=push(0.4, 0.3))
    block = host.create(SPRING)
    host.set_effect(block, SPRING)
    for place in (0, 1):
        condition(host, block, place, 1.0, saturation=0.05)
    host.stick.wait(1.0)
    host.play(block)
    host.settle()
    level = np.array(host.stick.truths["force"]["newton_to_level"]) @ host.stick.force
    np.testing.assert_allclose(np.abs(level), 0.05, atol=0.002)
    assert host.stick.force @ host.stick.handle < 0.0


@every_profile
def test_sine_has_no_mean(profile):
    host = Host(profile)
    block = host.create(SINE)
    host.set_effect(block, SINE, 270.0)
    if profile == "sidewinder-ff2":
        host.out(4, block, 128, 0, 0, 50, 0)
    else:
        full = {"openffboard": 32767, "arduino": 10000}[profile]
        host.output.write(bytes([4, block]) + (full // 2).to_bytes(2, "little") + bytes(4) + (50).to_bytes(4, "little"))
    host.play(block)
    forces = []
    for _ in range(50):
        host.stick.wait(1e-3)
        forces.append(host.stick.force)
    level = np.array(forces) @ np.array(host.stick.truths["force"]["newton_to_level"]).T
    assert np.abs(level[:, 0]).max() == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(level.mean(axis=0), 0.0, atol=1e-3)
