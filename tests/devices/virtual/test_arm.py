"""The virtual arm and its simulated force sensor."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import devices
from devices.arm.body import KINDS
from devices.arm.sensors.force_sensor import Mounting, SensorSettings, turn
from devices.virtual.noise import NOISE_FIELDS, normal_pair, random_bits
from devices.virtual.wrench import (
    WRENCH,
    WrenchSettings,
    fill_wrench,
    hand_force,
    measure_wrench,
    tare_wrench,
    true_wrench,
)
from haptics.clock import Clock
from haptics.elements.models import RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb
from haptics.jit import kernel
from tests.contract import VirtualDeviceContract

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
PERFECT = {"noise": 0.0, "drift": 0.0, "resolution": 0.0, "bias": [0.0] * 6}
FRICTIONLESS = {"kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0}
LAWS = {"pid": {}, "flatness": {}, "rigid": {}, "linearising": {"arm": {"encoder": "both"}}, "fractional": {}}


class TestVirtualArm(VirtualDeviceContract):
    name = "virtual-arm"


def arm(**changes):
    clock = Clock(1e-3)
    return devices.open_device("virtual-arm", {"hand": NO_HAND, **changes}, clock=clock), clock


def with_law(law, **changes):
    table = {**LAWS[law], **changes}
    return arm(servo={"law": law, **table.pop("servo", {})}, **table)


def wait(device, clock, ticks):
    for _ in range(ticks):
        clock.wait(clock.tick + 1)
        device.read()


def pushed(x, y):
    return {"name": "scripted-force", "script": [[0.0, x, y]]}


def follow(device, clock, path):
    """Send `path`, (n, 2), and return where the handle was a tick after each command: when it should be there."""
    places = np.empty_like(path)
    for k, target in enumerate(path):
        device.write(target)
        clock.wait(clock.tick + 1)
        device.read()
        places[k] = device.handle
    return places


def stroke(length, duration, angle=0.0):
    """Return a smooth way along a line from the origin and a rest at its end, (n, 2)."""
    u = np.clip(np.arange(round(1000.0 * (duration + 0.5))) * 1e-3 / duration, 0.0, 1.0)
    way = length * (10.0 * u**3 - 15.0 * u**4 + 6.0 * u**5)
    return np.outer(way, (math.cos(angle), math.sin(angle)))


# --- the servo ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "kind", "error"),
    [
        *(("pid", kind, 2e-3) for kind in KINDS),
        *(("pid", "", 6e-4), ("flatness", "", 1e-4), ("rigid", "", 6e-4), ("fractional", "", 1e-3)),
    ],
)
def test_every_law_and_kind_of_arm_follows_a_path(law, kind, error):
    device, clock = with_law(law, **({"arm": {"kind": kind}} if kind else {}))
    path = stroke(0.1, 0.8, 0.7)
    behind = np.hypot(*(follow(device, clock, path) - path).T)
    assert behind.max() < error
    assert behind[-1] < 5e-4


def test_commands_are_limited_to_the_workspace():
    device, clock = arm()
    device.write(np.array((10.0, -10.0)))
    wait(device, clock, 1500)
    np.testing.assert_allclose(device.handle, (0.2, -0.15), atol=1e-3)


def test_command_jump_is_limited_by_the_motors():
    device, clock = arm(servo={"bandwidth": 20.0})
    device.write(np.array((0.15, 0.1)))
    fastest = 0.0
    for _ in range(300):
        wait(device, clock, 1)
        fastest = max(fastest, float(np.hypot(*device.handle_velocity)))
    assert 0.5 < fastest < 10.0


def test_close_holds_the_last_reference():
    device, clock = arm()
    follow(device, clock, stroke(0.02, 0.3))
    before = device.handle
    device.close()
    np.testing.assert_array_equal(device.handle, before)


def test_spec_states_servo_frequency_and_damping():
    spec = devices.create_device("virtual-arm", {"servo": {"bandwidth": 15.0, "damping_ratio": 0.7}}).spec
    assert (spec.servo_frequency, spec.servo_damping_ratio) == (15.0, 0.7)
    gains = {"position_gain": 4e3, "velocity_gain": 80.0}
    device = devices.create_device("virtual-arm", {"servo": gains, "arm": {"rotor_inertia": 1e-2}})
    # Rotors of 100 kg m^2 at the joints: the links add one percent.
    assert device.spec.servo_frequency == pytest.approx(math.sqrt(4e3 / 100.0) / math.tau, rel=0.01)
    assert device.spec.servo_damping_ratio == pytest.approx(80.0 / (2.0 * math.sqrt(4e3 * 100.0)), rel=0.01)


# --- friction and elasticity ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_weak_hand_does_not_move_the_arm(law):
    device, clock = with_law(law, hand=pushed(4.0, -3.0))
    before = device.handle
    wait(device, clock, 1000)
    np.testing.assert_array_equal(device.handle, before)


def test_motor_encoders_do_not_measure_the_gear_twist():
    own = {"coupling": "spring", "lost_motion": 0.0, "stiffness": 1e4, "encoder_counts": 2**20, **FRICTIONLESS}
    device, clock = arm(arm=own, hand=pushed(6.0, -3.0))
    wait(device, clock, 3000)
    jacobian = device.body.linkage.jacobians([device.body.angles(*device.handle)])[0]
    expected = jacobian @ (jacobian.T @ (6.0, -3.0)) / 1e4
    np.testing.assert_allclose(device.handle, expected, atol=3e-7)
    assert np.abs(device.read().position).max() < 3e-7


def test_joint_encoders_measure_the_gear_twist():
    own = {"coupling": "spring", "lost_motion": 0.0, "stiffness": 1e4, "encoder": "joint", **FRICTIONLESS}
    device, clock = arm(arm=own, servo={"bandwidth": 0.5}, hand=pushed(6.0, -3.0))
    wait(device, clock, 50)
    np.testing.assert_allclose(device.read().position, device.handle, atol=4e-6)
    assert np.abs(device.handle).max() > 1e-4


def test_inclined_arm_is_held_and_its_handle_is_weighed():
    device, clock = arm(arm={"gravity": 9.0}, sensor=PERFECT)
    before = device.handle
    wait(device, clock, 500)
    np.testing.assert_allclose(device.handle, before, atol=1e-4)
    np.testing.assert_allclose(device.read().force, 0.0, atol=1e-3)
    shown = device._record["sensor"]["shown"][0, :3]
    assert np.linalg.norm(shown) == pytest.approx(0.3 * 9.80665, rel=1e-6)


# --- the sensor ---------------------------------------------------------------------------------------------------


def test_channels_show_joints_motors_and_the_raw_sensor():
    device, clock = arm(hand={"name": "minimum-jerk"})
    assert device.spec.channels == (
        ("joint_angles", "rad", 2),
        ("motor_torques", "N m", 2),
        ("raw_wrench", "N, N m", 6),
        ("sensor_gravity", "m/s^2", 3),
    )
    for ticks in (0, 1, 400):
        wait(device, clock, ticks)
        channels = device.read().channels
        record = device._record[0]
        shown = record["measured"], record["motor_torque"], record["sensor"]["shown"]
        np.testing.assert_array_equal(channels[:10], np.concatenate(shown))
        assert len(channels) == 13
    assert np.abs(channels[:10]).min() > 0.0
    assert channels[12] == pytest.approx(-9.80665)


def test_sensor_does_not_measure_the_motor_force():
    device, clock = arm(arm={"handle_mass": 1.0}, sensor=PERFECT)
    path = stroke(0.1, 0.4)
    felt = np.empty_like(path)
    for k, target in enumerate(path):
        felt[k] = device.read().force
        device.write(target)
        clock.wait(clock.tick + 1)
    acceleration = np.gradient(np.gradient(path[:, 0], 1e-3), 1e-3)
    middle = slice(40, 360)
    off = felt[middle, 0] + acceleration[middle]
    assert np.sqrt(np.mean(off**2)) < 0.3 * np.sqrt(np.mean(acceleration[middle] ** 2))


# --- friction on it -----------------------------------------------------------------------------------------------


def friction_loop(device, clock, seconds):
    """Render model A with 6 N and 2 kg.

    Return (time, sticking, sensed force, reference, handle) per tick, (n, 7), and those of the first rest.
    """
    model = RigidAdmittance(Coulomb(6.0), mass=2.0)
    reference = device.read().position.copy()
    rows = []
    for tick in range(round(seconds / 1e-3)):
        clock.wait(tick)
        state = device.read()
        rows.append((clock.time, model.sticking, np.hypot(*state.force), *reference, *device.handle))
        reference += 1e-3 * model.step(state.force)
        device.write(reference)
    rows = np.array(rows)
    rest = next(phase for phase in device.hand.phases if phase.rest)
    resting = (rows[:, 0] > rest.start + 0.6) & (rows[:, 0] < rest.start + rest.duration - 0.3)
    return rows, rows[resting]


@pytest.mark.parametrize("law", LAWS)
def test_default_hand_makes_model_a_stick_and_slip(law):
    device, clock = with_law(law, hand={"name": "minimum-jerk"}, seed=1)
    rows, relaxed = friction_loop(device, clock, 4.0)
    assert 0.2 < rows[:, 1].mean() < 0.9
    assert rows[:, 2].max() > 6.0
    assert relaxed[:, 1].all()
    assert np.ptp(relaxed[:, 2]) > 0.5
    np.testing.assert_array_equal(np.ptp(relaxed[:, 3:5], axis=0), 0.0)


@pytest.mark.parametrize("law", ["pid", "flatness", "rigid"])
def test_arm_does_not_creep_at_rest(law):
    device, clock = with_law(law, hand={"name": "minimum-jerk", "tremor": 0.5}, seed=1)
    _, relaxed = friction_loop(device, clock, 4.0)
    assert relaxed[:, 1].all()
    assert np.ptp(relaxed[:, 5:], axis=0).max() < 1e-7


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"half_width": 0.9}, r"device\.half_width|workspace"),
        ({"servo": {"law": "linearising"}}, "linearising.*both|both.*linearising|motor and link"),
        ({"servo": {"period": 2.5e-4}}, r"device\.servo\.period = 0\.00025 s: must be a multiple of device\.substep"),
        ({"servo": {"bandwidth": 500.0}}, r"servo\.bandwidth = 500\.0: unstable.*must be at most"),
        ({"servo": {"law": "lqr"}}, r"device\.servo\.law = 'lqr': must be one of pid, flatness"),
        ({"arm": 3}, r"device\.arm = 3: must be a table"),
        ({"arm": {"mass": 1.0}}, r"unknown setting 'device\.arm\.mass'"),
        ({"blocked_for": 1.0, "substep": 1e-3, "servo": {"period": 1e-3}}, "too light"),
        ({"substep": 1e-3, "servo": {"period": 1e-3}, "arm": {"handle_mass": 0.0, "outer_mass": 0.001}}, "too light"),
    ],
)
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("virtual-arm", {"hand": {"name": "minimum-jerk", "damping": 50.0}, **settings})


# --- something holds it -------------------------------------------------------------------------------------------


def test_blockade_bears_hand_and_motors():
    device, clock = arm(blocked_at=0.05, blocked_for=0.5, hand=pushed(20.0, -5.0), sensor=PERFECT)
    wait(device, clock, 50)
    place = device.handle
    device.write(place + np.array((0.004, 0.0)))
    wait(device, clock, 400)
    assert np.hypot(*(device.handle - place)) < 1.1e-3
    np.testing.assert_allclose(device.read().force, (20.0, -5.0), atol=0.2)  # turned as the gears are twisted
    channels = device.read().channels
    jacobian = device.body.linkage.jacobians(channels[None, :2])[0]
    strongest = np.linalg.solve(jacobian.T, channels[2:4] * device.body.reduction)
    friction = np.linalg.norm(np.linalg.inv(jacobian.T), 2) * 2**0.5 * device.body.static_friction * 1.05
    assert np.hypot(*(device.clamp_force + np.array((20.0, -5.0)) + strongest)) < friction
    wait(device, clock, 400)
    assert not device.clamp_force.any()
    assert device.handle[0] > place[0] + 0.003


# --- noise ------------------------------------------------------------------------------------------------------------


COUNT = 20_000


@kernel
def _fill_bits(record, out):
    for k in range(len(out)):
        out[k] = random_bits(record[0])


@kernel
def _fill_normal(record, out):
    for k in range(len(out)):
        out[k, 0], out[k, 1] = normal_pair(record[0])


def generator(seed):
    record = np.zeros(1, np.dtype(NOISE_FIELDS))
    record["noise_state"] = seed
    return record


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ],
)
def test_random_bits_match_splitmix64(seed, expected):
    out = np.zeros(3, np.uint64)
    _fill_bits(generator(seed), out)
    assert out.tolist() == expected


def test_normal_numbers_are_normal_and_independent():
    out = np.zeros((COUNT, 2))
    _fill_normal(generator(6), out)
    for column in out.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5.0 / np.sqrt(COUNT)
    assert abs(np.corrcoef(out.T)[0, 1]) < 5.0 / np.sqrt(COUNT)
    assert abs(np.corrcoef((out**2).T)[0, 1]) < 5.0 / np.sqrt(COUNT)


# --- force sensor -----------------------------------------------------------------------------------------------------


IDEAL = {"noise": 0.0, "torque_noise": 0.0, "drift": 0.0, "torque_drift": 0.0, "bias": (0.0,) * 6}
IDEAL |= {"resolution": 0.0, "torque_resolution": 0.0}

numbers = st.floats(-20.0, 20.0)
angles = st.floats(-math.pi, math.pi)
places = st.tuples(*[st.floats(-0.1, 0.1)] * 3)
turns = st.tuples(*[st.floats(-180.0, 180.0)] * 3)


@kernel
def _pass_through(records, angle, seen_angle, fx, fy, ax, ay, period, results):
    s = records[0]
    for k in range(len(results)):
        true_wrench(s, angle, fx, fy, ax, ay)
        measure_wrench(s, period)
        results[k, 0], results[k, 1] = hand_force(s, seen_angle)


def sensor(mass=0.0, tilt=0.0, seed=0, **settings):
    record = np.zeros(1, WRENCH)
    fill_wrench(record, WrenchSettings(**settings), mass, tilt, seed)
    return record


def seen(record, count=1, *, angle=0.3, force=(0.0, 0.0), acceleration=(0.0, 0.0), period=1e-3):
    results = np.zeros((count, 2))
    _pass_through(record, angle, angle, *force, *acceleration, period, results)
    return results


@given(numbers, numbers, angles, places, turns, st.floats(0.0, 2.0), st.floats(0.0, 9.8))
def test_ideal_sensor_shows_hand_force_minus_handle_inertia(x, y, angle, centre, turned, m, tilt):
    record = sensor(m, tilt, rotation=turned, handle_centre=centre, range=1e3, torque_range=1e3, **IDEAL)
    felt = seen(record, angle=angle, force=(x, y), acceleration=(y, -x))[0]
    np.testing.assert_allclose(felt, (x - m * y, y + m * x), atol=1e-12)


@given(numbers, numbers, angles, places, turns, st.floats(0.0, 2.0), st.floats(0.0, 9.8), st.integers(0, 99))
def test_hand_force_matches_the_mounting_of_a_real_sensor(x, y, angle, centre, turned, mass, tilt, seed):
    record = sensor(mass, tilt, seed, rotation=turned, handle_centre=centre)
    tare_wrench(record, 20, 1e-3, 0.0)
    ours = seen(record, angle=angle, force=(x, y))[0]
    down = -math.sqrt(9.80665**2 - tilt**2)
    settings = SensorSettings(rotation=turned, handle_mass=mass, handle_centre=centre, gravity=(0.0, -tilt, down))
    mounting = Mounting(settings)
    mounting.record["offset"] = record["offset"]
    theirs = mounting.hand(record["shown"][0], turn(2, angle))
    np.testing.assert_allclose(ours, theirs[:2], atol=1e-9)


@given(numbers, numbers, angles, places, turns)
def test_torque_is_the_force_at_the_handle(x, y, angle, centre, turned):
    record = sensor(rotation=turned, handle_centre=centre, range=1e3, **IDEAL)
    seen(record, angle=angle, force=(x, y))
    force, torque = record["truth"][0].reshape(2, 3)
    np.testing.assert_allclose(torque, np.cross(centre, force), atol=1e-12)
    assert np.linalg.norm(force) == pytest.approx(math.hypot(x, y), abs=1e-12)


def test_noise_is_white_around_the_bias():
    record = sensor(seed=3, resolution=0.0, drift=0.0)
    error = seen(record, 20_000, angle=0.0, force=(5.0, 3.0)) - (5.0, 3.0) - (2.0, -1.0)
    count = len(error)
    assert np.abs(error.mean(axis=0)).max() < 5.0 * 0.05 / math.sqrt(count)
    np.testing.assert_allclose(error.std(axis=0), 0.05, rtol=0.03)
    normal = error / 0.05
    for lag in (1, 2, 10):
        assert np.abs((normal[lag:] * normal[:-lag]).mean(axis=0)).max() < 5.0 / math.sqrt(count)
    assert abs((normal[:, 0] * normal[:, 1]).mean()) < 5.0 / math.sqrt(count)


def test_tare_removes_the_bias():
    quiet = IDEAL | {"bias": (2.0, -1.0, 3.0, 0.0, 0.0, 0.0)}
    record = sensor(0.4, 3.0, **quiet)
    np.testing.assert_allclose(seen(record, angle=math.pi / 2.0)[0], (1.0, 2.0), atol=1e-12)
    tare_wrench(record, 10, 1e-3, 0.0)
    np.testing.assert_allclose(seen(record, angle=2.0)[0], 0.0, atol=1e-12)


def test_tare_error_falls_with_the_number_of_samples():
    left = []
    for seed in range(200):
        record = sensor(seed=seed, drift=0.0, resolution=0.0)
        tare_wrench(record, 100, 1e-3, 0.0)
        left.append(record["offset"][0, :2] - (2.0, -1.0))
    np.testing.assert_allclose(np.std(left, axis=0), 0.05 / math.sqrt(100), rtol=0.2)


def test_drift_is_a_random_walk():
    walks = []
    for seed in range(200):
        record = sensor(seed=seed, **(IDEAL | {"drift": 0.1}))
        walks.append(seen(record, 40, period=0.1)[[9, 39]])
    walks = np.array(walks)
    np.testing.assert_allclose(walks[:, 0].std(axis=0), 0.1, rtol=0.2)
    np.testing.assert_allclose(walks[:, 1].std(axis=0), 0.2, rtol=0.2)


def test_sensor_quantises_and_saturates():
    record = sensor(**(IDEAL | {"resolution": 0.5}))
    np.testing.assert_array_equal(seen(record, angle=0.0, force=(80.0, -80.0))[0], (50.0, -50.0))
    np.testing.assert_array_equal(seen(record, angle=0.0, force=(3.3, -7.8))[0], (3.5, -8.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"range": 0.0}, r"device\.sensor\.range = 0\.0: must be .*greater than 0 N"),
        ({"bias": (1.0, 2.0)}, r"device\.sensor\.bias = \(1\.0, 2\.0\): must be 6 finite numbers"),
        ({"rotation": (1.0, 2.0, math.nan)}, r"device\.sensor\.rotation"),
        ({"handle_centre": 3.0}, r"device\.sensor\.handle_centre = 3\.0"),
    ],
)
def test_invalid_sensor_settings_are_rejected(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        WrenchSettings(**settings)
