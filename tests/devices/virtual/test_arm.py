"""The virtual arm against the contract, and whether it does what its parts say together."""

import math

import numpy as np
import pytest

import devices
from devices.arm.body import KINDS
from haptics.clock import Clock
from haptics.elements.models import RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb
from tests.contract import VirtualDeviceContract

NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
PERFECT = {"noise": 0.0, "drift": 0.0, "resolution": 0.0, "bias": [0.0] * 6}
WEIGHTLESS = {"handle_mass": 0.0}
FRICTIONLESS = {"kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0}
LAWS = {
    "pid": {},
    "flatness": {},
    "rigid": {},
    "linearising": {"arm": {"encoder": "both"}},
    "fractional": {},
}


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


# --- the servo: it goes where it is told --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_arm_goes_where_it_is_told(kind):
    device, clock = arm(arm={"kind": kind})
    path = stroke(0.1, 0.8, 0.7)
    places = follow(device, clock, path)
    assert np.abs(places - path).max() < 2e-3
    assert np.hypot(*(places[-1] - path[-1])) < 5e-4


@pytest.mark.parametrize(("law", "error"), [("pid", 6e-4), ("flatness", 1e-4), ("rigid", 6e-4), ("fractional", 1e-3)])
def test_every_law_follows(law, error):
    device, clock = with_law(law)
    path = stroke(0.1, 0.8, 0.7)
    behind = np.hypot(*(follow(device, clock, path) - path).T)
    assert behind.max() < error


def test_linearisation_follows_where_there_is_little_friction_that_it_cannot_foresee():
    little = {"kinetic_friction": 1.0, "static_friction": 1.0, "encoder": "both"}
    device, clock = with_law("linearising", arm=little)
    path = stroke(0.1, 0.8, 0.7)
    assert np.hypot(*(follow(device, clock, path) - path).T).max() < 1e-3


def test_a_feed_forward_that_is_told_wrong_follows_worse():
    errors = []
    for part in (1.0, 0.5):
        device, clock = with_law("flatness", arm={"model_friction": part})
        path = stroke(0.1, 0.8)
        errors.append(np.hypot(*(follow(device, clock, path) - path).T).max())
    assert errors[1] > 2.0 * errors[0]


def test_the_tracking_error_is_that_of_the_handle_where_the_gears_are_stiff():
    device, clock = arm(arm={"coupling": "rigid"})
    path = stroke(0.1, 0.4)[:200]
    places = follow(device, clock, path)
    behind = path[-1] - places[-1]
    np.testing.assert_allclose(device.tracking_error, behind, atol=0.2 * np.abs(behind).max())


def test_arm_cannot_be_sent_out_of_its_workspace():
    device, clock = arm()
    device.write(np.array((10.0, -10.0)))
    wait(device, clock, 1500)
    np.testing.assert_allclose(device.handle, (0.2, -0.15), atol=1e-3)


def test_a_jump_of_the_command_is_made_no_faster_than_the_motors_can():
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


def test_the_data_sheet_knows_the_servo_by_its_bandwidth_or_its_gains():
    spec = devices.create_device("virtual-arm", {"servo": {"bandwidth": 15.0, "damping_ratio": 0.7}}).spec
    assert (spec.servo_frequency, spec.servo_damping_ratio) == (15.0, 0.7)
    gains = {"position_gain": 4e3, "velocity_gain": 80.0}
    device = devices.create_device("virtual-arm", {"servo": gains, "arm": {"rotor_inertia": 1e-2}})
    # Rotors of 100 kg m^2 at the joints: what the links add is a percent.
    assert device.spec.servo_frequency == pytest.approx(math.sqrt(4e3 / 100.0) / math.tau, rel=0.01)
    assert device.spec.servo_damping_ratio == pytest.approx(80.0 / (2.0 * math.sqrt(4e3 * 100.0)), rel=0.01)


# --- friction and elasticity: what a hand meets -------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_a_weak_hand_does_not_move_the_arm_at_all(law):
    device, clock = with_law(law, hand=pushed(4.0, -3.0))
    before = device.handle
    wait(device, clock, 1000)
    np.testing.assert_array_equal(device.handle, before)


def test_gears_yield_under_a_hand_as_stiff_as_they_are_and_the_encoders_on_the_motors_do_not_see_it():
    own = {"coupling": "spring", "lost_motion": 0.0, "stiffness": 1e4, "encoder_counts": 2**20, **FRICTIONLESS}
    device, clock = arm(arm=own, hand=pushed(6.0, -3.0))
    wait(device, clock, 3000)
    jacobian = device.body.linkage.jacobians([device.body.angles(*device.handle)])[0]
    expected = jacobian @ (jacobian.T @ (6.0, -3.0)) / 1e4
    np.testing.assert_allclose(device.handle, expected, atol=3e-7)
    assert np.abs(device.read().position).max() < 3e-7


def test_an_encoder_on_the_joint_sees_the_gears_yield():
    own = {"coupling": "spring", "lost_motion": 0.0, "stiffness": 1e4, "encoder": "joint", **FRICTIONLESS}
    device, clock = arm(arm=own, servo={"bandwidth": 0.5}, hand=pushed(6.0, -3.0))
    wait(device, clock, 50)
    np.testing.assert_allclose(device.read().position, device.handle, atol=4e-6)
    assert np.abs(device.handle).max() > 1e-4


def test_an_arm_in_an_inclined_plane_is_held_and_its_handle_is_weighed():
    device, clock = arm(arm={"gravity": 9.0}, sensor=PERFECT)
    before = device.handle
    wait(device, clock, 500)
    np.testing.assert_allclose(device.handle, before, atol=1e-4)
    np.testing.assert_allclose(device.read().force, 0.0, atol=1e-3)
    shown = device._record["sensor"]["shown"][0, :3]
    assert np.linalg.norm(shown) == pytest.approx(0.3 * 9.80665, rel=1e-6)


# --- the sensor ---------------------------------------------------------------------------------------------------


def test_sensor_shows_the_hand_with_white_noise_and_what_the_tare_left():
    device, clock = arm(hand=pushed(2.0, -1.0), sensor={"resolution": 0.0, "drift": 0.0})
    forces = []
    for _ in range(4000):
        wait(device, clock, 1)
        forces.append(device.read().force.copy())
    error = np.array(forces)[10:] - (2.0, -1.0)
    assert np.abs(error.mean(axis=0)).max() < 5.0 * 0.05 / math.sqrt(200)
    np.testing.assert_allclose(error.std(axis=0), 0.05, rtol=0.1)


def test_without_a_tare_the_bias_is_seen_turned_like_the_outer_link():
    device, _ = arm(sensor={**PERFECT, "bias": [2.0, 0.0, 0.0, 0.0, 0.0, 0.0], "tare": False})
    force, link = device.read().force, device.body.linkage.home[1]
    np.testing.assert_allclose(force, (2.0 * math.cos(link), 2.0 * math.sin(link)), atol=1e-4)


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
        shown = (device.joint_angles, device.motor_torques, device.raw_wrench, device.sensor_gravity)
        np.testing.assert_array_equal(channels, np.concatenate(shown))
    assert np.abs(channels[:10]).min() > 0.0
    assert channels[12] == pytest.approx(-9.80665)


def test_perfect_sensor_under_a_weightless_handle_shows_the_truth():
    device, clock = arm(hand={"name": "minimum-jerk"}, arm=WEIGHTLESS, sensor=PERFECT)
    wait(device, clock, 700)
    np.testing.assert_allclose(device.read().force, device.hand_force, atol=0.01)
    assert np.hypot(*device.hand_force) > 1.0
    np.testing.assert_array_equal(device.read().hand_force, device.hand_force)


def test_sensor_does_not_see_what_moves_the_handle():
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


def test_noise_depends_on_the_seed():
    forces = []
    for seed in (1, 1, 2):
        device, clock = arm(seed=seed)
        wait(device, clock, 5)
        forces.append(device.read().force.tolist())
    assert forces[0] == forces[1] != forces[2]


# --- friction on it -----------------------------------------------------------------------------------------------


def friction_loop(device, clock, seconds):
    """Render model A with 6 N and 2 kg; return (time, sticking, sensed force, reference, handle) per tick, (n, 7)."""
    model = RigidAdmittance(Coulomb(6.0), mass=2.0)
    reference = device.read().position.copy()
    rows = []
    for tick in range(round(seconds / 1e-3)):
        clock.wait(tick)
        state = device.read()
        rows.append((clock.time, model.sticking, np.hypot(*state.force), *reference, *device.handle))
        reference += 1e-3 * model.step(state.force)
        device.write(reference)
    return np.array(rows)


@pytest.mark.parametrize("law", LAWS)
def test_default_hand_makes_model_a_stick_and_slip(law):
    device, clock = with_law(law, hand={"name": "minimum-jerk"}, seed=1)
    rows = friction_loop(device, clock, 4.0)
    time, sticking = rows[:, 0], rows[:, 1]
    assert 0.2 < sticking.mean() < 0.9
    assert rows[:, 2].max() > 6.0
    rest = next(phase for phase in device.hand.phases if phase.rest)
    relaxed = (time > rest.start + 0.6) & (time < rest.start + rest.duration - 0.3)
    assert sticking[relaxed].all()
    assert np.ptp(rows[relaxed, 2]) > 0.5
    np.testing.assert_array_equal(np.ptp(rows[relaxed, 3:5], axis=0), 0.0)


@pytest.mark.parametrize("law", ["pid", "flatness", "rigid"])
def test_nothing_creeps_at_rest(law):
    device, clock = with_law(law, hand={"name": "minimum-jerk", "tremor": 0.5}, seed=1)
    rows = friction_loop(device, clock, 4.0)
    time = rows[:, 0]
    rest = next(phase for phase in device.hand.phases if phase.rest)
    relaxed = (time > rest.start + 0.6) & (time < rest.start + rest.duration - 0.3)
    assert rows[relaxed, 1].all()
    assert np.ptp(rows[relaxed, 5:], axis=0).max() < 1e-7


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"half_width": 0.9}, r"device\.half_width|workspace"),
        ({"servo": {"law": "linearising"}}, "linearising.*both|both.*linearising|motor and link"),
        ({"servo": {"period": 2.5e-4}}, r"device\.servo\.period = 0\.00025 s: must be a multiple of device\.substep"),
        ({"servo": {"bandwidth": 500.0}}, r"servo\.bandwidth = 500\.0: unstable.*must be at most"),
        ({"servo": {"law": "lqr"}}, r"device\.servo\.law = 'lqr': must be one of pid, flatness"),
        ({"arm": {"mass": 1.0}}, r"unknown setting 'device\.arm\.mass'"),
        ({"arm": 3}, r"device\.arm = 3: must be a table"),
        ({"substep": 1e-3, "servo": {"period": 1e-3}, "arm": {"handle_mass": 0.0, "outer_mass": 0.001}}, "too light"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        devices.create_device("virtual-arm", {"hand": {"name": "minimum-jerk", "damping": 50.0}, **settings})


# --- something holds it -------------------------------------------------------------------------------------------


def test_what_blocks_the_arm_bears_the_hand_and_the_motors_and_the_sensor_feels_the_hand_alone():
    device, clock = arm(blocked_at=0.05, blocked_for=0.5, hand=pushed(20.0, -5.0), sensor=PERFECT)
    wait(device, clock, 50)
    place = device.handle
    device.write(place + np.array((0.004, 0.0)))
    wait(device, clock, 400)
    assert np.hypot(*(device.handle - place)) < 1.1e-3
    np.testing.assert_allclose(device.read().force, (20.0, -5.0), atol=0.2)  # turned as the gears are twisted
    jacobian = device.body.linkage.jacobians(device.joint_angles[None])[0]
    strongest = np.linalg.solve(jacobian.T, device.motor_torques * device.body.reduction)
    friction = np.linalg.norm(np.linalg.inv(jacobian.T), 2) * 2**0.5 * device.body.static_friction * 1.05
    assert np.hypot(*(device.clamp_force + np.array((20.0, -5.0)) + strongest)) < friction
    wait(device, clock, 400)
    assert not device.clamp_force.any()
    assert device.handle[0] > place[0] + 0.003


def test_a_substep_too_long_for_what_blocks_the_arm_is_refused():
    with pytest.raises(ConfigurationError, match=r"substep"):
        arm(blocked_for=1.0, substep=1e-3, servo={"period": 1e-3})
