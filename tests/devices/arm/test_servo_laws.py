"""Servo of the joints: references, laws, gains, rest, limits, and proxy-based sliding mode."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.flatness.joint import MOTION, feed_forward
from devices.arm.flatness.laws import AsymmetricFriction, SmoothBacklash, SmoothCoulomb
from devices.arm.servo import kernels
from devices.arm.servo.kernels import CHAIN_FIELDS, fill_chain, part_address, refer_part, start_servos
from devices.arm.servo.servo import TwoMasses, gains, growth, new_references, new_servo, require_stable
from devices.arm.servo.settings import ServoSettings
from haptics import Stribeck
from haptics.errors import ConfigurationError
from haptics.jit import run_part
from tests.devices.arm.servo_rig import JOINT, LINKS, RATIO, ROTOR, START, TICK, ServoRig, refer, step_servo, strokes

# Set-valued friction like a harmonic drive; the model of the servo is smooth.
DRY = Stribeck(10.0, 11.0, 0.03, 3.0)

# More than any torque [N m].
ENOUGH = 1e6

STEPS = {"motor_step": 7.7e-6, "joint_step": 6e-6}
LAWS = ("pid", "flatness", "rigid", "linearising", "fractional", "sliding-mode")
HANGING = dataclasses.replace(LINKS, gravity=9.81)


@pytest.mark.parametrize(
    ("law", "encoders"), [(law, "both") for law in LAWS] + [("pid", "motor"), ("sliding-mode", "motor")]
)
def test_servo_neither_hunts_at_rest_nor_moves_under_a_tremor(law, encoders):
    """Dry friction that falls with speed, an integrator and a coarse encoder: left alone they would never rest."""
    rig = ServoRig(ServoSettings(law=law), friction=DRY, encoders=encoders, torque_limit=1.9, **STEPS)
    rig.run(strokes(1.5))
    rig.hold(2.0)
    rows = rig.hold(1.0)
    assert np.ptp(rows["angle"], axis=0).max() == 0.0
    assert np.ptp(rows["torque"], axis=0).max() == 0.0
    assert np.ptp(rows["rotor"], axis=0).max() < 1e-6
    tremor = 4.5 * (1.0 + 0.3 * np.sin(2.0 * np.pi * 9.0 * TICK * np.arange(2000)))  # the force of a hand [N]
    rows = rig.run(np.tile(START, (2000, 1)), np.outer(tremor, (0.6, 0.8)))
    assert np.ptp(rows["angle"], axis=0).max() == 0.0


@pytest.mark.parametrize("always", [True, False])
def test_integrator_hunts_without_the_rest_bands(always):
    """Stick, wind up, break away, overshoot: with an encoder on the joint, and friction that falls far."""
    believed = dataclasses.replace(JOINT, friction=AsymmetricFriction(20.0, 3.0, 300.0, 0.0, -10.0, 0.8 / 0.03))
    rig = ServoRig(ServoSettings(), friction=Stribeck(10.0, 20.0, 0.03, 3.0), joint=believed, encoders="both")
    if always:
        rig.servo["axis"]["rest_band"] = rig.servo["axis"]["yield_band"] = -1.0
    rig.run(strokes(1.5))
    rig.hold(1.0)
    moved = np.ptp(rig.hold(3.0)["angle"], axis=0).max()
    assert moved > 1e-5 if always else moved == 0.0


def test_servo_holds_a_load_beyond_friction():
    """30 N m at the joint: it gives way, insists, and then stays where it is."""
    rig = ServoRig(ServoSettings(), friction=DRY, encoders="both")
    rig.hold(3.0, (0.0, 60.0))
    rows = rig.hold(1.0, (0.0, 60.0))
    assert np.ptp(rows["angle"], axis=0).max() == 0.0
    assert (abs(rows["angle"][-1] - START) <= rig.servo["axis"]["rest_band"][0]).all()


@pytest.mark.parametrize("law", LAWS)
def test_servo_holds_the_weight_from_the_start(law):
    rig = ServoRig(ServoSettings(law=law), links=HANGING, encoders="both")
    rows = rig.hold(0.4)
    assert abs(rows["angle"] - START).max() < 1e-3
    weight = HANGING.terms(START)["gravity"][0]
    np.testing.assert_allclose(100.0 * rows["torque"][-1], weight, rtol=0.05)


def test_torque_limit_causes_no_windup():
    """A command out of the motors' power; back within it the integrator has not wound up."""
    rig = ServoRig(ServoSettings(), torque_limit=0.3)
    jump = np.tile(np.add(START, (0.3, -0.2)), (400, 1))
    rows = rig.run(jump)
    assert abs(rows["torque"]).max() == 0.3
    assert (rows["angle"][-1] - START)[0] < 0.45
    rows = rig.hold(0.6)
    assert abs(rows["angle"][-1] - jump[0]).max() < 2e-3


def test_fractional_law_of_order_one_is_a_pd_law():
    """D^1 with one past sample is the difference of two samples."""
    law = ServoSettings(
        law="fractional", order=1.0, terms=1, position_gain=600.0, proportional=9e4, speed_filter=1e5, period=1e-4
    )
    pd = ServoSettings(position_gain=9e4, velocity_gain=600.0, speed_filter=1e5, period=1e-4)
    commands = strokes(1.0, amplitude=0.05)
    velocity = np.gradient(commands, 1e-3, axis=0)
    mine, other = ServoRig(law).run(commands), ServoRig(pd).run(commands)
    assert np.ptp(velocity) > 0.1
    np.testing.assert_allclose(mine["angle"], other["angle"], atol=2e-6)


# --- smooth reference -------------------------------------------------------------------------------------------------


def told(law, commands, hand=(0.0, 0.0), joint=JOINT, links=HANGING, period=TICK, **settings):
    """Return motion of the references (n, 2, 5), and angles, speeds, torques, each (n, 2), for `commands`, (n, 2)."""
    references = new_references(ServoSettings(law=law, **settings), links, (joint, joint), period)
    start_servos(references, np.array(commands[0]))
    motion, answers = [], []
    for command, force in zip(commands, np.broadcast_to(hand, np.shape(commands)), strict=True):
        answers.append(refer(references, command, force))
        rows = references["axis"]["wanted"][0]
        motion.append(np.stack([rows[name] for name in MOTION], axis=1))
    return np.array(motion), *np.array(answers).swapaxes(0, 1)


def follow(commands, period, frequency=100.0):
    """Return the motion of both smooth references, (n, 2, 5), for `commands`, (n, 2), from rest."""
    return told("pid", commands, period=period, reference="smooth", reference_frequency=frequency)[0]


def line(count, period, rate=(1.0, -0.5), bend=0.0):
    """Return commands (n, 2) [rad] that move at a steady rate [rad/s], or with a steady acceleration [rad/s^2]."""
    time = period * np.arange(count)[:, None]
    return np.array([0.3, 1.2]) + time * np.array(rate) + 0.5 * bend * time**2


@pytest.mark.parametrize(("period", "bend"), [(1e-3, 0.0), (1e-3, 4.0), (1e-4, 4.0)])
def test_reference_does_not_lag_behind_a_steady_acceleration(period, bend):
    commands = line(600, period, bend=bend)
    motion = follow(commands, period)
    np.testing.assert_allclose(motion[-1, :, 0], commands[-1], atol=1e-10)
    np.testing.assert_allclose(motion[-1, :, 1], [1.0 + bend * 599 * period, -0.5 + bend * 599 * period], rtol=1e-9)
    np.testing.assert_allclose(motion[-1, :, 2], bend, rtol=1e-6, atol=1e-6)


def test_reference_poles_are_at_the_frequency():
    record = np.zeros(1, CHAIN_FIELDS)
    fill_chain(record, 20.0, 1e-3, 1e-3)
    poles = np.log(np.linalg.eigvals(record["transition"][0]).astype(complex)) / 1e-3
    np.testing.assert_allclose(poles, -2.0 * np.pi * 20.0, rtol=0.02)  # a fourfold root is found to the fourth root


def test_reference_rejects_too_many_periods_per_tick():
    with pytest.raises(ConfigurationError, match=r"servo.period = 2e-05: must be at least 0.0001 s"):
        fill_chain(np.zeros(1, CHAIN_FIELDS), 100.0, 2e-5, 1e-2)


def test_reference_columns_are_successive_derivatives():
    period = 1e-5
    commands = np.concatenate((line(2000, period), line(2000, period, (3.0, 2.0))))
    motion = follow(commands, period)[2:1999]
    for order in range(3):
        rise = np.diff(motion[..., order], axis=0) / period
        middle = 0.5 * (motion[1:, :, order + 1] + motion[:-1, :, order + 1])
        np.testing.assert_allclose(rise, middle, atol=1e-3 * abs(middle).max())


@given(st.floats(20.0, 1000.0), st.sampled_from([2e-4, 2e-3]), st.floats(-3.0, 3.0))
def test_reference_is_bounded_after_a_jump_and_comes_to_rest(frequency, period, jump):
    """A jump of the command is a fast straight line of one period: the reference overshoots it, but not for ever."""
    commands = np.tile([0.1 + jump, 0.2], (int(12.0 / (frequency * period)) + 20, 1))
    commands[0, 0] = 0.1
    motion = follow(commands, period, frequency)
    assert (abs(motion[:, 0, 0] - 0.1) <= 2.5 * abs(jump) + 1e-12).all()
    np.testing.assert_array_equal(motion[-1], [[0.1 + jump, 0.0, 0.0, 0.0, 0.0], [0.2, 0.0, 0.0, 0.0, 0.0]])


# --- references of the motors -----------------------------------------------------------------------------------------


STROKE = strokes(1.0)


def needed(motion):
    """Return the torque of the links for a motion, (n, 2) [N m], without friction: H q'' + C q' + G."""
    terms = HANGING.terms(motion[..., 0], motion[..., 1])
    inert = np.einsum("nij,nj->ni", terms["inertia"], motion[..., 2])
    return inert + np.einsum("nij,nj->ni", terms["coriolis"], motion[..., 1]) + terms["gravity"]


def test_rigid_torques_are_the_inverse_dynamics():
    motion, angles, speeds, torques = told("rigid", STROKE)
    rotor = JOINT.motor_inertia * JOINT.gear_ratio**2
    expected = needed(motion) + JOINT.friction(motion[..., 1]) + rotor * motion[..., 2]
    np.testing.assert_allclose(torques, expected, atol=1e-10)
    np.testing.assert_allclose(angles, motion[..., 0], rtol=1e-15)
    np.testing.assert_allclose(speeds, motion[..., 1], rtol=1e-15)


def test_flatness_angles_include_the_twist_of_the_gears():
    motion, angles, _speeds, _torques = told("flatness", STROKE)
    gear = needed(motion) + JOINT.friction(motion[..., 1])
    np.testing.assert_allclose(angles - motion[..., 0], JOINT.stiffness.twist(gear), atol=1e-12)


def test_flatness_speeds_are_the_rates_of_the_angles():
    """Of friction less steep at rest, or ticks would be too far apart to tell; the weight is held for constant."""
    joint = dataclasses.replace(JOINT, friction=SmoothCoulomb(10.0, 3.0, 5.0))
    _motion, angles, speeds, _torques = told("flatness", STROKE, joint=joint)
    np.testing.assert_allclose(np.gradient(angles, TICK, axis=0)[5:-5], speeds[5:-5], atol=0.01 * abs(speeds).max())


def test_flatness_torque_is_the_feed_forward_of_each_joint():
    motion, _angles, _speeds, torques = told("flatness", STROKE)
    terms = HANGING.terms(motion[..., 0], motion[..., 1])
    inertia = terms["inertia"]
    for i in range(2):
        own, other = motion[:, i], motion[:, 1 - i]
        load = needed(motion)[:, i] - inertia[:, i, i] * own[:, 2]
        rates = {"load_rate": inertia[:, 0, 1] * other[:, 3], "load_acceleration": inertia[:, 0, 1] * other[:, 4]}
        wanted = feed_forward(JOINT, own, inertia[:, i, i], load, **rates)
        np.testing.assert_allclose(torques[:, i], wanted.torque * JOINT.gear_ratio, rtol=1e-9, atol=1e-9)


def test_pid_torque_holds_the_weight_if_enabled():
    motion, angles, _speeds, torques = told("pid", STROKE)
    np.testing.assert_allclose(torques, HANGING.terms(motion[..., 0])["gravity"], rtol=1e-12)
    np.testing.assert_allclose(angles, STROKE, rtol=1e-15)
    assert not told("pid", STROKE, holds_weight=False)[3].any()


def test_unfiltered_reference_speeds_are_command_differences():
    commands = np.array(((0.5, 1.0), (0.501, 1.0), (0.503, 0.999), (0.503, 0.999)))
    speeds = told("pid", commands)[2]
    np.testing.assert_allclose(speeds, ((0.0, 0.0), (1.0, 0.0), (2.0, -1.0), (0.0, 0.0)), atol=1e-9)


@pytest.mark.parametrize("filtered", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("law", ["pid", "rigid"])
def test_known_hand_force_reduces_the_torque_without_overshoot(law, filtered):
    hand = np.array((2.0, -3.0))
    torques = told(law, np.tile(START, (3000, 1)), hand, links=LINKS, knows_hand=True, hand_filter=filtered)[3]
    known = -torques / hand
    assert (np.diff(known, axis=0) >= -1e-12).all()
    np.testing.assert_allclose(known[-1], 1.0, rtol=1e-6)
    half = np.argmax(known[:, 0] > 0.5) * 1e-3
    assert half <= 1.68 / (2.0 * np.pi * filtered) + 2e-3, "two equal poles"


def test_changing_hand_force_turns_the_motors_with_the_gear_twist():
    """The links are at rest and carry the hand alone: the motors turn as the gears twist."""
    stiffness, rotor = 3e4, JOINT.motor_inertia * JOINT.gear_ratio**2
    joint = dataclasses.replace(JOINT, stiffness=SmoothBacklash(stiffness, 0.0), friction=SmoothCoulomb(0.0, 0.0, 1.0))
    phase = 2.0 * np.pi * 5.0 * TICK * np.arange(200)
    hands = np.column_stack((2.0 * np.sin(phase), -3.0 * np.sin(2.0 * phase)))
    rest = np.tile(START, (200, 1))
    _motion, angles, speeds, torques = told("flatness", rest, hands, joint=joint, links=LINKS, knows_hand=True)
    moved = np.vstack((np.zeros((2, 2)), angles - START))
    rates = np.diff(moved, axis=0) / TICK
    assert abs(speeds).max() > 1e-3
    np.testing.assert_allclose(speeds, rates[1:], atol=1e-11)
    np.testing.assert_allclose(torques, stiffness * moved[2:] + rotor * np.diff(rates, axis=0) / TICK, atol=1e-7)


@pytest.mark.parametrize("law", ["linearising", "fractional", "sliding-mode"])
def test_motor_references_reject_torque_laws(law):
    with pytest.raises(ConfigurationError, match=f"servo.law = '{law}': must be one of pid, flatness, rigid"):
        new_references(ServoSettings(law=law), LINKS, (JOINT, JOINT), TICK)


# --- gains and stability ----------------------------------------------------------------------------------------------


STRAIGHT = SmoothBacklash(3e4, 0.0)
LINEAR = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 0.0, 1.0), stiffness=STRAIGHT)

INERTIA = 0.35
# Two links that do not act on each other.
ALIKE = dataclasses.replace(
    LINKS, mass_1=0.0, mass_2=0.0, inertia_1=INERTIA, inertia_2=INERTIA, centre_1=0.0, centre_2=0.0, absolute=True
)


@given(st.floats(1.0, 200.0), st.floats(0.2, 5.0), st.floats(0.0, 1.0), st.floats(0.01, 100.0))
def test_gains_place_the_poles_at_the_bandwidth(bandwidth, damping, integral, inertia):
    own = gains(ServoSettings(bandwidth=bandwidth, damping_ratio=damping, integral=integral), inertia)
    b = 2.0 * math.pi * bandwidth
    found = np.array([inertia, own.velocity, own.position, own.integral])
    poles = np.polymul([1.0, 2.0 * damping * b, b * b], [1.0, integral * b])
    np.testing.assert_allclose(found, inertia * poles, atol=1e-300)


def swing(settings, encoders, monkeypatch, periods):
    """Return the growth rate per servo period of the oscillation of an arm without friction, long after a push."""
    monkeypatch.setattr("devices.arm.servo.servo.require_stable", lambda *_: None)
    reduced = 1.0 / (1.0 / INERTIA + 1.0 / (ROTOR * RATIO**2))
    damping = 2.0 * 0.02 * math.sqrt(STRAIGHT.stiffness * reduced)
    arm = {"links": ALIKE, "gear": STRAIGHT, "damping": damping, "friction": None}
    rig = ServoRig(settings, joint=LINEAR, encoders=encoders, substep=1e-5, torque_limit=math.inf, **arm)
    for name in ("rest_band", "yield_band"):
        rig.servo["axis"][name] = -1.0  # the rest behaviour is not linear
    rig.hold(0.02, (1e-6, 1e-6))
    seconds = periods * settings.period
    rig.hold(4.0 * seconds)
    before = abs(rig.hold(seconds)["rotor"] - START).max()
    after = abs(rig.hold(seconds)["rotor"] - START).max()
    return math.log(after / before) / periods


@pytest.mark.parametrize(
    ("law", "encoders"), [("pid", "motor"), ("pid", "both"), ("linearising", "both"), ("fractional", "joint")]
)
def test_predicted_stability_matches_the_simulation(law, encoders, monkeypatch):
    masses = TwoMasses.of(LINEAR, INERTIA, 2e-4, torque=0.0, drag=0.0)

    def settings(bandwidth):
        return ServoSettings(law=law, bandwidth=bandwidth)

    def foretold(bandwidth):
        return math.log(growth(settings(bandwidth), masses, encoders))

    bandwidths = np.geomspace(0.5, 500.0, 200)
    bound = max(b for b in bandwidths if foretold(b) < 0.0)
    assert swing(settings(0.8 * bound), encoders, monkeypatch, 1000) < 0.0
    growing = foretold(1.5 * bound)
    periods = 5 * math.ceil(min(3.0 / growing, 3000.0) / 5)
    assert swing(settings(1.5 * bound), encoders, monkeypatch, periods) == pytest.approx(growing, rel=0.3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ServoSettings(bandwidth=450.0), r"servo.bandwidth = 450.0: unstable at joint 1 .* must be at most [\d.]+ Hz"),
        (ServoSettings(period=2e-3), r"0.002 s period.*must be at most [\d.]+ Hz"),
        (ServoSettings(law="linearising", bandwidth=5.0), r"must be at least [\d.]+ Hz"),
        (ServoSettings(position_gain=1e6, velocity_gain=10.0), "servo.position_gain = 1000000.0: unstable at joint 1"),
        (ServoSettings(law="fractional", order=-0.5), "no other would be stable"),
    ],
)
def test_servo_rejects_unstable_gains(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        new_servo(settings, LINKS, (JOINT, JOINT), START, encoders="both")


def test_servo_accepts_the_bandwidth_named_in_the_message():
    with pytest.raises(ConfigurationError) as refused:
        new_servo(ServoSettings(bandwidth=450.0), LINKS, (JOINT, JOINT), START)
    bound = float(str(refused.value).split("at most ")[1].split(" Hz")[0])
    new_servo(ServoSettings(bandwidth=bound), LINKS, (JOINT, JOINT), START)


@pytest.mark.parametrize(("per_period", "rigid"), [(3.1, False), (3.2, True)])
def test_gearbox_above_the_sampling_frequency_counts_as_rigid(per_period, rigid):
    """Half a turn of its ringing in a period is the bound."""
    reduced = 1.0 / (1.0 / INERTIA + 1.0 / (ROTOR * RATIO**2))
    joint = dataclasses.replace(JOINT, stiffness=SmoothBacklash(reduced * (per_period / 1e-3) ** 2, 0.0))
    masses = TwoMasses.of(joint, INERTIA, 1e-3, torque=0.0, drag=0.0)
    assert (masses.stiffness == math.inf) == rigid


@pytest.mark.parametrize(
    ("settings", "eased"),
    [
        (ServoSettings(law="linearising", bandwidth=5.0), {"friction": SmoothCoulomb(0.0, 0.0, 1.0)}),
        (ServoSettings(bandwidth=243.0), {"stiffness": STRAIGHT}),
    ],
    ids=["near rest", "in the play"],
)
def test_stability_is_required_near_rest_and_in_the_play(settings, eased):
    require_stable(settings, dataclasses.replace(JOINT, **eased), 0.05, "both", 1)
    with pytest.raises(ConfigurationError, match="unstable at joint 1"):
        require_stable(settings, JOINT, 0.05, "both", 1)


def test_linearising_law_needs_both_encoders():
    with pytest.raises(ConfigurationError, match="needs the angles of motor and link"):
        new_servo(ServoSettings(law="linearising"), LINKS, (JOINT, JOINT), START)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"law": "pd"}, "servo.law = 'pd': must be one of pid, flatness, rigid, linearising, fractional"),
        ({"law": "flatness", "reference": "none"}, "needs the derivatives of the reference"),
        ({"velocity_gain": 3.0}, "servo.position_gain = 0.0: must be greater than 0"),
        ({"position_gain": 3.0}, "servo.velocity_gain = 0.0: must be greater than 0"),
        ({"terms": 2.5}, "servo.terms = 2.5: must be a whole number at least 0 and at most 63"),
        ({"period": 0.0}, "servo.period = 0.0: must be"),
        ({"torque_bound": 0.0}, r"device\.servo\.torque_bound = 0\.0: must be .* greater than 0 N m"),
        ({"resume_time": 0.0}, r"device\.servo\.resume_time = 0\.0: must be .* at least 0\.001 s"),
    ],
)
def test_invalid_settings_are_rejected(table, message):
    with pytest.raises(ConfigurationError, match=message):
        ServoSettings(**table)


# --- rest and start ---------------------------------------------------------------------------------------------------


def test_rest_bands_follow_from_encoder_step_and_friction():
    """10 N m of dry friction against the stiffness of the servo, and the twist of the gearbox under them."""
    bands = {}
    for step in (0.0, 1e-4):
        axis = new_servo(ServoSettings(), LINKS, (JOINT, JOINT), START, resolution=(step, 2.0 * step))["axis"][0]
        bands[step] = axis["rest_band"].copy()
        np.testing.assert_allclose(axis["yield_band"] - bands[step], JOINT.stiffness.twist(10.0), rtol=1e-6)
        gain = axis["control"]["position_gain"] * axis["control"]["velocity_gain"] * RATIO**2
    np.testing.assert_allclose(bands[0.0], 2.0 * 10.0 / gain, rtol=1e-6)
    np.testing.assert_allclose(bands[1e-4] - bands[0.0], (2e-4, 4e-4), rtol=1e-9)


@pytest.mark.parametrize("law", ["pid", "flatness", "fractional"])
def test_start_resets_the_complete_servo_state(law):
    fresh, used = (ServoRig(ServoSettings(law=law), torque_limit=1.9) for _ in range(2))
    used.run(strokes(0.2, amplitude=0.6, frequency=5.0), (30.0, -20.0))
    used.hold(0.1, (40.0, 10.0))
    used.plant[:] = fresh.plant
    used.drives[:] = fresh.drives
    used.commanded = fresh.commanded
    for name in ("insists", "offset", "integral", "trim", "link_rate", "motor_rate", "calm_torque"):
        used.servo["axis"][name] = 1
    kernels.start_servos(used.servo, np.array(START))
    path = np.concatenate((np.tile(START, (20, 1)), strokes(0.1)))
    again, first = used.run(path), fresh.run(path)
    assert first["torque"].any()
    for name in ("torque", "angle", "reference"):
        np.testing.assert_array_equal(again[name], first[name])


# --- model ------------------------------------------------------------------------------------------------------------


def ramp(count, period):
    """Return commands (n, 2) [rad] that swing, one each period."""
    phase = 2.0 * np.pi * 3.0 * period * np.arange(count)
    return np.asarray(START + 0.1 * np.column_stack((1.0 - np.cos(phase), np.sin(phase) ** 2)))


def loads(joint, period):
    """Return load, rate and acceleration of both joints for exact linearisation, (n, 3, 2)."""
    settings = ServoSettings(law="linearising", period=period)
    record = new_servo(settings, LINKS, (joint, joint), START, encoders="both", tick=period)
    rows = []
    for command in ramp(1000, period):
        record["command"] = command
        run_part(part_address(record, refer_part), record.ctypes.data, 0.0, 0.0)
        wanted = record["axis"]["wanted"][0]
        rows.append([wanted[name].copy() for name in ("load", "load_rate", "load_acceleration")])
    return np.array(rows)


def test_linearising_law_differentiates_friction_along_the_reference():
    period, smooth = 2e-4, SmoothCoulomb(10.0, 3.0, 5.0)
    free = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 0.0, 1.0))
    friction = loads(dataclasses.replace(JOINT, friction=smooth), period) - loads(free, period)
    for order in range(2):
        rise = np.gradient(friction[:, order], period, axis=0)[100:-1]
        np.testing.assert_allclose(friction[100:-1, order + 1], rise, atol=2e-3 * abs(rise).max())


@pytest.mark.parametrize("feedback", ["model-based", "conventional"])
def test_modelled_twist_replaces_a_missing_encoder(feedback, monkeypatch):
    """With the joint's encoder alone the motor is taken to be where joint and twist put it."""
    monkeypatch.setattr("devices.arm.servo.servo.require_stable", lambda *_: None)
    settings = ServoSettings(law="flatness", feedback=feedback)
    one, both = (new_servo(settings, LINKS, (JOINT, JOINT), START, encoders=e) for e in ("joint", "both"))
    torques = []
    for command in ramp(200, settings.period):
        link = 0.999 * command
        for record in (one, both):
            record["command"], record["link"] = command, link
        step_servo(one)
        wanted = one["axis"]["wanted"][0]
        both["motor"] = link + wanted["motor_angle"] / JOINT.gear_ratio - wanted["position"]
        step_servo(both)
        torques.append((one["torque"][0].copy(), both["torque"][0].copy()))
    found, expected = np.array(torques).swapaxes(0, 1)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_fractional_law_initialises_its_past_with_the_first_error():
    """The torque of a steady error is the same from the first period on."""
    record = new_servo(ServoSettings(law="fractional"), LINKS, (JOINT, JOINT), START)
    record["axis"]["rest_band"] = record["axis"]["yield_band"] = -1.0
    error = 1e-3
    record["motor"] = np.subtract(START, error)
    axis, gain = record["axis"][0], record["weights"][0].sum()
    for _ in range(5):
        step_servo(record)
        expected = (axis["fractional_gain"] * gain + axis["proportional"]) * error / JOINT.gear_ratio
        np.testing.assert_allclose(record["torque"][0], expected, rtol=1e-9)


# --- proxy-based sliding mode control ---------------------------------------------------------------------------------


PERIOD = 2e-4


def driven(servo, motors):
    """Show the servo, whose reference rests, the motors at `motors`, (n, 2) [rad] off it.

    Returns the torque on the joints [N m], how far the proxy is ahead of the reference [rad], and the load [N m].
    """
    record = new_servo(servo, LINKS, (JOINT, JOINT), START, torque_limit=(ENOUGH, ENOUGH))
    record["axis"]["rest_band"] = record["axis"]["yield_band"] = -1.0  # disable the rest behaviour
    rows = []
    for motor in motors:
        record["motor"] = START + motor
        step_servo(record)
        axis = record["axis"][0]
        rows.append((RATIO * record["torque"][0], axis["ahead"].copy(), axis["wanted"]["load"].copy()))
    torque, ahead, load = (np.array(each) for each in zip(*rows, strict=True))
    return torque, ahead, load


@given(
    st.integers(0, 2**32 - 1),
    st.floats(1.0, 300.0),
    st.floats(1e-3, 10.0),
    st.sampled_from([1e-5, 1e-3, 0.1]),
    st.sampled_from([0.0, 0.2, 1.0]),
)
def test_torque_satisfies_the_inclusion_and_the_pid_law(seed, bound, resume, size, integral):
    """Both relations are independent of the implementation: the relay at the end of the step, and the PID control."""
    bounds = {"torque_bound": bound, "resume_time": resume}
    servo = ServoSettings(law="sliding-mode", period=PERIOD, integral=integral, **bounds)
    motors = size * np.cumsum(np.random.default_rng(seed).normal(0.0, 0.2, (400, 2)), axis=0)
    torque, ahead, load = driven(servo, motors)
    before = np.vstack((np.zeros(2), ahead[:-1]))
    s = -ahead - resume / PERIOD * (ahead - before)
    tiny = 1e-9 * (1.0 + resume / PERIOD) * abs(ahead).max() + 1e-15
    assert (abs(torque) <= bound * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(torque[s > tiny], bound, rtol=1e-9)
    np.testing.assert_allclose(torque[s < -tiny], -bound, rtol=1e-9)
    np.testing.assert_allclose(torque, pid(servo, ahead - motors) + load, atol=1e-7 * bound + 1e-9 * ENOUGH * size)


def pid(servo, error):
    """Return the torque of a PID control with the same gains for `error`, (n, 2) [rad] [N m]."""
    record = new_servo(servo, LINKS, (JOINT, JOINT), START)
    control, share = record["axis"]["control"][0], float(record["filter"][0])
    damping = control["velocity_gain"] * RATIO**2
    rate = np.zeros_like(error)
    for k in range(1, len(error)):
        rate[k] = rate[k - 1] + share * ((error[k] - error[k - 1]) / PERIOD - rate[k - 1])
    total = PERIOD * np.cumsum(error, axis=0)
    result = control["position_gain"] * damping * error + damping * rate
    return result + record["axis"]["integral_gain"][0] * total


def test_torque_bound_is_limited_by_the_motor():
    rig = ServoRig(ServoSettings(law="sliding-mode", torque_bound=ENOUGH), torque_limit=0.3)
    assert abs(rig.run(np.tile(np.add(START, (0.3, -0.2)), (300, 1)))["torque"]).max() <= 0.3
