"""Feed-forward and feedback control of one elastic joint, by its differential flatness."""

import dataclasses
import math
from decimal import Decimal, localcontext
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.flatness.joint import (
    Circumstances,
    ElasticJoint,
    FeedForwardServo,
    LinearisingServo,
    feed_forward,
    point_to_point,
    simulate_joint,
)
from devices.arm.flatness.laws import (
    AsymmetricFriction,
    LostMotion,
    RampBacklash,
    SmoothBacklash,
    SmoothCoulomb,
)
from haptics.errors import ConfigurationError

# --- 60-digit arithmetic ----------------------------------------------------------------------------------------------


DIGITS = 60
_STEP = Decimal(10) ** -18


def exact(value):
    return Decimal(float(value))


def tanh(x):
    decay = (-2 * abs(x)).exp()
    return ((1 - decay) / (1 + decay)).copy_sign(x)


def derivatives(function, at):
    """Return value, first and second derivative by central differences, with an error of about 1e-24 of the scale."""
    low, middle, high = function(at - _STEP), function(at), function(at + _STEP)
    return middle, (high - low) / (2 * _STEP), (high - 2 * middle + low) / _STEP**2


def motor(motion, inertia, load, friction, twist, ratio, rotor):
    """Motor angle, velocity and torque for a motion given by its derivatives at one instant; eqs (2), (23), (1)."""
    with localcontext() as context:
        context.prec = DIGITS
        series = [exact(value) / factorial(order) for order, value in enumerate(motion)]
        loads = [exact(value) / factorial(order) for order, value in enumerate(load)]
        M, u, J = exact(inertia), exact(ratio), exact(rotor)

        def polynomial(coefficients, time):
            value = Decimal(0)
            for coefficient in reversed(coefficients):
                value = value * time + coefficient
            return value

        def link(time, order):
            falling = [series[k] * (factorial(k) // factorial(k - order)) for k in range(order, len(series))]
            return polynomial(falling, time)

        def torque(time):
            return M * link(time, 2) + polynomial(loads, time) + friction(link(time, 1))

        def angle(time):
            return u * (link(time, 0) + twist(torque(time)))

        value, first, second = derivatives(angle, Decimal(0))
        return float(value), float(first), float(J * second + torque(Decimal(0)) / u)


# --- friction and stiffness laws --------------------------------------------------------------------------------------


C, PHI = 8.4225e6, 0.3e-3
BROKEN = LostMotion(C, C / 10.0, 0.5 * PHI, 0.5 * PHI)
LAWS = {
    "knee": SmoothBacklash(C, PHI, 0.02),
    "steep knee": SmoothBacklash(4.5778e6, 3e-5, 1000.0),
    "linear": SmoothBacklash(C, 0.0),
    "ramp": RampBacklash(C, PHI),
    "ramp with slack": RampBacklash(C, PHI, 3e5),
    "little slack": RampBacklash(C, PHI, 1e-3),
    "broken": BROKEN,
}


def test_friction_derivatives_keep_their_precision_at_high_speed():
    """1 - tanh^2 would be 0 or noise here."""
    _value, slope, curvature = SmoothCoulomb(1.0, 0.0, 2.0).derivatives(30.0)
    assert slope == pytest.approx(4.0 * math.exp(-60.0), rel=1e-12, abs=0.0)
    assert curvature == pytest.approx(-8.0 * math.exp(-60.0), rel=1e-12, abs=0.0)
    assert np.isfinite(SmoothCoulomb(1e6, 0.0, 1e6).derivatives([-1e3, 1e3])).all()


@pytest.mark.parametrize("name", LAWS)
@settings(deadline=None, max_examples=25, derandomize=True)
@given(size=st.floats(-6.0, 4.5), sign=st.sampled_from([-1.0, 1.0]))
def test_stiffness_laws_twist_inverts_torque(name, size, sign):
    law, torque = LAWS[name], sign * 10.0**size
    twist, slope, curvature = law.twist_derivatives(torque)
    back, stiffness, bend = law.torque_derivatives(twist)
    assert back == pytest.approx(torque, rel=1e-9, abs=1e-12)  # of the digits of a twist full of backlash
    assert twist * torque > 0.0
    if stiffness > 0.0:
        assert slope * stiffness == pytest.approx(1.0, rel=1e-6)
        assert curvature == pytest.approx(-bend * slope**3, rel=1e-5, abs=1e-9 * abs(slope / torque))


@pytest.mark.parametrize("name", ["knee", "steep knee", "linear", "ramp with slack"])
def test_stiffness_laws_inverse_is_exact_to_rounding(name):
    law, rng = LAWS[name], np.random.default_rng(1)
    sizes = np.concatenate([10.0 ** rng.uniform(-300.0, 4.5, 5000), rng.uniform(0.0, 600.0, 5000)])
    torques = np.concatenate([sizes, -sizes, 2.0 ** np.arange(-1070.0, 15.0), [0.0]])
    twists = law.twist(torques)
    digits = np.spacing(abs(twists)) * law.torque_derivatives(twists)[:, 1] + np.spacing(abs(torques))
    assert np.max(abs(law.torque(twists) - torques) / digits) <= 4.0


def test_ramp_law_solves_its_differential_equation():
    """(30) for three equal lags: y + 3 T y' + 3 T^2 y'' + T^3 y''' = c x, with T = phi/3 and from rest."""
    x, step, T = np.linspace(0.0, 3.0 * PHI, 3001), PHI / 1000.0, PHI / 3.0
    y, y1, y2 = LAWS["ramp"].torque_derivatives(x).T
    y3 = np.gradient(y2, step)
    residual = (y + 3.0 * T * y1 + 3.0 * T**2 * y2 + T**3 * y3 - C * x)[2:-2]
    assert abs(residual).max() < 1e-5 * C * PHI
    np.testing.assert_array_equal([y[0], y1[0], y2[0]], 0.0)
    assert y[-1] == pytest.approx(C * (3.0 * PHI - PHI), rel=0.01)
    assert LAWS["ramp"].torque(PHI) == pytest.approx(0.224 * C * PHI, rel=2e-3)


def test_ramp_law_keeps_its_precision_near_zero_twist():
    """The closed form loses them all: the torque is c phi/72 z^4 there, z = 3 x/phi."""
    for share in (1e-6, 1e-4, 1e-2):
        z = 3.0 * share
        series = C * PHI / 3.0 * z**4 * (1 / 24 - z / 40 + z * z / 120 - z**3 / 504 + z**4 / 2688)
        assert LAWS["ramp"].torque(share * PHI) == pytest.approx(series, rel=1e-9, abs=0.0)


def test_lost_motion_law_is_continuous():
    for edge in (0.5 * PHI, PHI):
        below, above = BROKEN.torque([edge * (1 - 1e-12), edge * (1 + 1e-12)])
        assert above == pytest.approx(below, abs=1e-6)
    lost = BROKEN.lost_motion_stiffness * BROKEN.lost_motion
    below, above = BROKEN.twist([lost * (1 - 1e-12), lost * (1 + 1e-12)])
    assert above == pytest.approx(below, rel=1e-9)
    assert BROKEN.torque(0.49 * PHI) == BROKEN.twist(0.0) == 0.0


def test_laws_are_odd_functions():
    arguments = np.geomspace(1e-7, 1e-2, 50)
    for law in LAWS.values():
        np.testing.assert_array_equal(law.torque(-arguments), -law.torque(arguments))
    np.testing.assert_array_equal(COULOMB(-arguments), -COULOMB(arguments))


# --- reference motions ------------------------------------------------------------------------------------------------


def integrated(motion, time):
    """Return each column but the last, from its first value and the integral of the next one."""
    steps = np.diff(time)[:, None]
    rates = motion[:, 1:]
    areas = steps * (rates[1:] + rates[:-1]) / 2.0
    return motion[0, :-1] + np.vstack((np.zeros(4), np.cumsum(areas, axis=0)))


@given(start=st.floats(-5, 5), end=st.floats(-5, 5), duration=st.floats(0.1, 10), begin=st.floats(-3, 3))
def test_point_to_point_columns_are_successive_derivatives(start, end, duration, begin):
    time = np.linspace(begin, begin + duration, 20001)
    motion = point_to_point(time, start, end, duration, begin)
    scale = 100.0 * abs(end - start) / duration ** np.arange(4)
    assert (abs(integrated(motion, time) - motion[:, :-1]) <= 1e-6 * scale + 1e-12).all()


def test_point_to_point_rests_before_and_after():
    motion = point_to_point([-1.0, 0.999, 1.0, 3.0, 3.001, 9.0], 0.2, 0.7, 2.0, 1.0)
    np.testing.assert_allclose(motion[:, 0], [0.2, 0.2, 0.2, 0.7, 0.7, 0.7], atol=1e-12)
    assert not motion[[0, 1, 4, 5], 1:].any()
    np.testing.assert_allclose(motion[[2, 3], 1:4], 0.0, atol=1e-9)
    assert motion[2, 4] == pytest.approx(840.0 * 0.5 / 2.0**4)
    assert motion[3, 4] == pytest.approx(-840.0 * 0.5 / 2.0**4)


# --- feed-forward -----------------------------------------------------------------------------------------------------


JOINT_1 = ElasticJoint(SmoothCoulomb(200.0, 800.0, 500.0), SmoothBacklash(8.4225e6, 0.3e-3, 0.02), 1798 / 7, 0.0138)
KNEE = JOINT_1.stiffness
COULOMB = JOINT_1.friction
ASYMMETRIC = AsymmetricFriction(29.9, 2024.4, 10.0, -200.5, 264.6, 31572.0)


def smooth_coulomb(w):
    return 800 * w + 400 / (1 + (-500 * w).exp()) - 200


def asymmetric(w):
    return exact(-200.5) + exact(2024.4) * w + exact(29.9) * tanh(10 * w) + exact(264.6) * tanh(31572 * w)


def knee(tau):
    return tau / exact(8.4225e6) + 2 * exact(0.3e-3) / (1 + (exact(-0.02) * tau).exp()) - exact(0.3e-3)


FRICTIONS = {
    "the paper's": (COULOMB, smooth_coulomb),
    "asymmetric": (ASYMMETRIC, asymmetric),
}


def slow(scale):
    """Numbers of either sign, small ones too."""
    return st.floats(-1.0, 1.0).map(lambda x: scale * x**3)


@pytest.mark.parametrize(("friction", "friction_60"), FRICTIONS.values(), ids=FRICTIONS)
@settings(deadline=None, max_examples=5, derandomize=True)
@given(
    motion=st.tuples(slow(1.0), slow(0.6), slow(1.0), slow(2.5), slow(6.0)),
    load=st.tuples(slow(600.0), slow(900.0), slow(3000.0)),
)
def test_feed_forward_matches_60_digit_arithmetic(friction, friction_60, motion, load):
    joint = ElasticJoint(friction, KNEE, 1798 / 7, 0.0138)
    ours = feed_forward(joint, [motion], 2500.0, load[0], load_rate=load[1], load_acceleration=load[2])
    angle, velocity, torque = motor(list(motion), 2500.0, list(load), friction_60, knee, 1798 / 7, 0.0138)
    u, J = 1798 / 7, 0.0138
    assert ours.angle[0] == pytest.approx(angle, rel=1e-12, abs=1e-12 * u)
    assert ours.velocity[0] == pytest.approx(velocity, rel=1e-9, abs=1e-9)
    # The torque in the gearbox is known to 1e-16 of its largest part; the steepest law here multiplies that.
    assert ours.torque[0] == pytest.approx(torque, rel=1e-9, abs=1e-9 + J * u * 1e-16 * abs(ours.acceleration[0]))


def test_feed_forward_of_a_stiff_gearbox_equals_rigid_feed_forward():
    motion = point_to_point(np.linspace(0.0, 2.0, 101), 0.0, 0.35, 2.0)
    stiff = dataclasses.replace(JOINT_1, stiffness=SmoothBacklash(1e14, 0.0))
    elastic, rigid = feed_forward(stiff, motion, 2500.0), feed_forward(stiff, motion, 2500.0, rigid=True)
    np.testing.assert_allclose(elastic.torque, rigid.torque, atol=1e-4)
    whole = (2500.0 + 0.0138 * stiff.gear_ratio**2) * motion[:, 2] + stiff.friction(motion[:, 1])
    np.testing.assert_allclose(rigid.torque, whole / stiff.gear_ratio, rtol=1e-12)


def test_feed_forward_changes_sign_with_the_gear_ratio():
    motion = point_to_point(np.linspace(0.0, 2.0, 101), 0.0, 0.35, 2.0)
    against = dataclasses.replace(JOINT_1, gear_ratio=-JOINT_1.gear_ratio)
    same, opposite = feed_forward(JOINT_1, motion, 2500.0), feed_forward(against, motion, 2500.0)
    np.testing.assert_array_equal(opposite.torque, -same.torque)
    np.testing.assert_array_equal(opposite.angle, -same.angle)


# --- recording of a real robot ----------------------------------------------------------------------------------------


RECORDING = Path(__file__).resolve().parents[4] / "shared" / "data" / "kuka_kr300" / "run_a.npz"
ORDERS = ("angle", "velocity", "acceleration", "jerk", "snap")


@pytest.fixture(scope="module")
def recording():
    if not RECORDING.is_file():
        pytest.skip(f"the recorded robot is not here ({RECORDING.name})")
    with np.load(RECORDING) as file:
        return dict(file)


def reference(recording, axis):
    """Return the motor reference of one joint from the parameters of the authors."""

    def parameters(*names):
        return [recording[name][axis] for name in names]

    names = ("coulomb", "viscous", "smoothness", "asymmetry", "a", "b")
    friction = AsymmetricFriction(*parameters(*(f"friction_{name}" for name in names)))
    stiffness = SmoothBacklash(*parameters("stiffness", "backlash_half_width", "stiffness_smoothness"))
    joint = ElasticJoint(friction, stiffness, *parameters("gear_ratio", "motor_inertia"))
    motion = np.stack([recording[f"link_{order}_ref"][:, axis] for order in ORDERS], axis=1)
    load = sum(recording[name][:, axis] for name in ("acceleration_torque", "coriolis_torque", "gravity_torque"))
    return feed_forward(joint, motion, recording["link_inertia"][:, axis], load)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_motor_motion_of_a_real_robot_agrees_up_to_the_home_angle(recording, axis):
    own = reference(recording, axis)
    assert np.ptp(own.angle - recording["motor_angle_ref"][:, axis]) < 1e-11
    assert abs(own.velocity - recording["motor_velocity_ref"][:, axis]).max() < 1e-11


@pytest.mark.parametrize("axis", range(6))
def test_motor_torque_of_a_real_robot_agrees_but_for_rounding_and_rate_limit(recording, axis):
    ours = reference(recording, axis).torque - recording["motor_torque_ff_home"][axis]
    off = abs(ours - recording["motor_torque_ff"][:, axis])
    assert np.median(off) < 3e-5  # four digits were kept: 2.5e-5 at the median
    if axis < 3:
        assert (off < 6e-5).mean() > 0.85  # the rest is where they limited its rate


# --- servo laws -------------------------------------------------------------------------------------------------------


INERTIA, PERIOD = 2500.0, 2e-5
HELD = Circumstances(hold=round(0.8e-3 / PERIOD))
BROKEN_JOINT = dataclasses.replace(JOINT_1, stiffness=BROKEN)
RAMP_JOINT = dataclasses.replace(JOINT_1, stiffness=LAWS["ramp"])
ALONE, RIGID = FeedForwardServo("elastic", "none"), FeedForwardServo("rigid", "none")


def run(law, joint=JOINT_1, circumstances=None, model=None, degrees=20.0, load=0.0):
    """Simulate a turn of the link in 2 s, and half a second of rest after it."""
    motion = point_to_point(np.arange(0.0, 2.5 + PERIOD / 4, PERIOD / 2), 0.0, math.radians(degrees), 2.0)
    return simulate_joint(joint, law, motion, INERTIA, PERIOD, load, model=model, circumstances=circumstances)


def worst(result):
    """Return the largest error [deg]."""
    return math.degrees(abs(result.error).max())


def oscillation(result):
    """Return the torque in the gearbox minus its reference, peak to peak [N m]."""
    return np.ptp(result.gear_torque - result.reference_gear_torque)


def test_elastic_feed_forward_follows_exactly_and_does_not_excite_the_gearbox():
    result = run(ALONE)
    assert worst(result) < 2e-6
    assert oscillation(result) < 0.3


def test_elastic_feed_forward_error_is_rounding_only_for_a_smooth_reference():
    """There and back again without a rest between: the fourth derivative does not jump where they meet."""
    time = np.arange(0.0, 2.0 + PERIOD / 2, PERIOD)
    there = point_to_point(time, 0.0, 0.35, 2.0)
    back = point_to_point(time, 0.35, 0.0, 2.0)
    result = simulate_joint(JOINT_1, ALONE, np.vstack((there, back[1:])), INERTIA, 2 * PERIOD)
    assert abs(result.error).max() < 1e-12


def test_rigid_feed_forward_has_an_error_and_excites_the_gearbox():
    result = run(RIGID)
    assert 0.03 < worst(result) < 0.3
    assert 1000.0 < oscillation(result) < 2500.0


@pytest.mark.parametrize("ratio", [0.9, 1.1])
@pytest.mark.parametrize("law", [ALONE, RIGID])
def test_wrong_inertia_affects_both_feed_forwards_alike(law, ratio):
    assert 1.0 < worst(run(law, circumstances=Circumstances(inertia_ratio=ratio))) < 2.0


def test_elastic_feed_forward_needs_the_stiffness_law_of_the_joint():
    joint = dataclasses.replace(JOINT_1, stiffness=RampBacklash(8.4225e6, 0.3e-3, 3e5))
    assert worst(run(ALONE, joint)) < 2e-6
    assert worst(run(ALONE, joint, model=JOINT_1)) > 1e-3  # (11) is not the inverse of (9)


def test_model_based_feedback_preserves_the_feed_forward_and_conventional_does_not():
    alone, model_based = run(ALONE, circumstances=HELD), run(FeedForwardServo(), circumstances=HELD)
    conventional = run(FeedForwardServo(feedback="conventional"), circumstances=HELD)
    rigid = run(FeedForwardServo("rigid", "conventional"), circumstances=HELD)
    assert worst(alone) < 0.02
    assert worst(model_based) < 1.5 * worst(alone)
    assert 1.5 * worst(alone) < worst(conventional) < worst(rigid) < 0.06


def test_feedback_bounds_the_static_error_of_a_disturbance():
    """Static error of a proportional law: D/(u^2 K_P K_V), and the twist that the model does not foresee."""
    disturbed = Circumstances(disturbance=-200.0)
    result = run(FeedForwardServo(position_gain=200.0), circumstances=disturbed, degrees=0.0, load=500.0)
    expected = 200.0 / (JOINT_1.gear_ratio**2 * 200.0 * 0.015)
    assert 10.0 * math.degrees(expected) == pytest.approx(0.58, abs=0.005)
    assert result.error[-1] == pytest.approx(expected, rel=0.1)


def test_exact_linearisation_error_decays_with_its_four_poles():
    motion = np.zeros((20001, 5))
    motion[1:, 0] = 0.01  # the joint begins at 0
    result = simulate_joint(JOINT_1, LinearisingServo(20.0), motion, INERTIA, 1e-4, 900.0)
    bt = 20.0 * result.time
    expected = 0.01 * np.exp(-bt) * (1.0 + bt + bt**2 / 2.0 + bt**3 / 6.0)
    np.testing.assert_allclose(result.error[1:], expected[1:], atol=2e-6)


def test_joint_stays_at_rest_under_a_constant_load():
    result = run(ALONE, degrees=0.0, load=1500.0)
    np.testing.assert_allclose(result.position, 0.0, atol=1e-14)
    np.testing.assert_allclose(result.motor_torque, 1500.0 / JOINT_1.gear_ratio, rtol=1e-12)


def test_conventional_feedback_needs_no_smooth_stiffness():
    for fed in ("none", "rigid"):
        assert np.isfinite(run(FeedForwardServo(fed, "conventional"), BROKEN_JOINT).error).all()


# --- invalid settings -------------------------------------------------------------------------------------------------


REST = np.zeros((3, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SmoothCoulomb(1.0, 1.0, 0.0), r"friction\.smoothness = 0\.0: .*greater than 0 s/rad"),
        (lambda: RampBacklash(C, 0.0), r"stiffness\.backlash = 0\.0: .*greater than 0 rad"),
        (lambda: SmoothCoulomb(1.0, 1.0, 1.0)(math.nan), r"velocity = nan: must be finite"),
        (lambda: KNEE.twist("much"), "torque = 'much': must be finite numbers"),
        (lambda: point_to_point([0.0], 0.0, 1.0, 0.0), r"duration = 0\.0: must be greater than 0 s"),
        (lambda: point_to_point([0.0], 0.0, math.nan, 1.0), "finite"),
        (lambda: feed_forward(JOINT_1, np.zeros((3, 4)), 1.0), r"motion of shape \(3, 4\): must be \(n, 5\)"),
        (lambda: feed_forward(JOINT_1, REST * math.nan, 1.0), r"motion of shape \(3, 5\): must be finite"),
        (lambda: feed_forward(JOINT_1, REST, 0.0), r"inertia = 0\.0: must be greater than 0"),
        (lambda: feed_forward(JOINT_1, REST, 1.0, [1.0, 2.0]), r"load of shape \(2,\): must be a number or \(3,\)"),
        (lambda: feed_forward(BROKEN_JOINT, REST, 2500.0), r"joint\.stiffness = .*no motor can follow it"),
        (lambda: feed_forward(RAMP_JOINT, REST, 2500.0), r"joint\.stiffness = .*no motor can follow it"),
        (lambda: ElasticJoint(COULOMB, KNEE, 0.0, 0.01), r"joint\.gear_ratio = 0\.0: must not be 0"),
        (lambda: ElasticJoint(COULOMB, KNEE, 100.0, 0.0), r"joint\.motor_inertia = 0\.0: .*greater than 0 kg m\^2"),
        (lambda: FeedForwardServo("flat"), r"servo\.feed_forward = 'flat': must be one of elastic, none|none, el"),
        (lambda: FeedForwardServo("rigid"), r"feedback = 'model-based': with feed_forward = 'rigid' must"),
        (lambda: LinearisingServo(0.0), r"servo\.bandwidth = 0\.0: .*greater than 0 rad/s"),
        (lambda: FeedForwardServo("none", "model-based").record(BROKEN_JOINT), "no motor can follow it"),
        (lambda: LinearisingServo().record(BROKEN_JOINT), "no motor can follow it"),
        (lambda: simulate_joint(JOINT_1, ALONE, np.zeros((4, 5)), 1.0, 1e-3), "motion has 4 rows: must be odd"),
        (lambda: simulate_joint(JOINT_1, ALONE, REST, 1.0, 0.0), r"period = 0\.0: must be greater than 0 s"),
        (lambda: Circumstances(inertia_ratio=0.0), r"circumstances\.inertia_ratio = 0\.0"),
    ],
)
def test_invalid_settings_are_rejected(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
