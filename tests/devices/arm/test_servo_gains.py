"""Gains from a bandwidth, and which of them a sampled joint can bear: what is said of it is what the servo does."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.flatness.friction import SmoothCoulomb
from devices.arm.flatness.stiffness import SmoothBacklash
from devices.arm.servo import servo
from devices.arm.servo.gains import TwoMasses, gains, growth, require_stable
from devices.arm.servo.settings import ServoSettings
from haptics.errors import ConfigurationError
from tests.devices.arm.servo_rig import JOINT, LINKS, RATIO, ROTOR, START, ServoRig

STRAIGHT = SmoothBacklash(3e4, 0.0)
LINEAR = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 0.0, 1.0), stiffness=STRAIGHT)

INERTIA = 0.35
ALIKE = dataclasses.replace(
    LINKS, mass_1=0.0, mass_2=0.0, inertia_1=INERTIA, inertia_2=INERTIA, centre_1=0.0, centre_2=0.0, absolute=True
)
"""Two links that do not act on each other."""

inertias = st.floats(0.05, 5.0)
stiffnesses = st.one_of(st.floats(1e2, 1e5), st.just(math.inf))
drags = st.floats(0.0, 1e3)


@given(st.floats(1.0, 200.0), st.floats(0.2, 5.0), st.floats(0.0, 1.0), st.floats(0.01, 100.0))
def test_poles_lie_at_the_bandwidth(bandwidth, damping, integral, inertia):
    own = gains(ServoSettings(bandwidth=bandwidth, damping_ratio=damping, integral=integral), inertia)
    b = 2.0 * math.pi * bandwidth
    found = np.array([inertia, own.velocity, own.position, own.integral])
    poles = np.polymul([1.0, 2.0 * damping * b, b * b], [1.0, integral * b])
    np.testing.assert_allclose(found, inertia * poles, atol=1e-300)


@given(inertias, inertias, stiffnesses, st.floats(1e-5, 2e-3))
def test_a_torque_changes_the_momentum_of_the_two_masses_by_its_impulse(link, rotor, stiffness, period):
    moved, pushed = TwoMasses(link, rotor, stiffness, 0.0).sampled(period)
    momentum = np.array([0.0, link, 0.0, rotor])
    np.testing.assert_allclose(momentum @ moved, momentum, atol=1e-9 * (link + rotor))
    assert momentum @ pushed == pytest.approx(period, rel=1e-9)


@given(inertias, inertias, stiffnesses, drags)
def test_two_periods_are_one_twice_as_long(link, rotor, stiffness, drag):
    masses = TwoMasses(link, rotor, stiffness, drag)
    moved, pushed = masses.sampled(1e-4)
    twice, pushed_twice = masses.sampled(2e-4)
    np.testing.assert_allclose(moved @ moved, twice, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(moved @ pushed + pushed, pushed_twice, rtol=1e-9, atol=1e-15)


def swing(settings, encoders, monkeypatch, periods):
    """Return by what the swing of an arm without friction grows per period of the servo, long after a push."""
    monkeypatch.setattr(servo, "require_stable", lambda *_: None)
    reduced = 1.0 / (1.0 / INERTIA + 1.0 / (ROTOR * RATIO**2))
    damping = 2.0 * 0.02 * math.sqrt(STRAIGHT.stiffness * reduced)
    arm = {"links": ALIKE, "gear": STRAIGHT, "damping": damping, "friction": None}
    rig = ServoRig(settings, joint=LINEAR, encoders=encoders, substep=1e-5, torque_limit=math.inf, **arm)
    for name in ("rest_band", "yield_band"):
        rig.servo["axis"][name] = -1.0  # what it does at rest is not linear
    rig.hold(0.02, (1e-6, 1e-6))
    seconds = periods * settings.period
    rig.hold(4.0 * seconds)
    before = abs(rig.hold(seconds)["rotor"] - START).max()
    after = abs(rig.hold(seconds)["rotor"] - START).max()
    return math.log(after / before) / periods


@pytest.mark.parametrize(
    ("law", "encoders"),
    [("pid", "motor"), ("pid", "both"), ("linearising", "both"), ("fractional", "joint")],
)
def test_whatever_is_said_to_be_unstable_is_and_whatever_is_not_settles(law, encoders, monkeypatch):
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
def test_gains_that_a_joint_cannot_bear_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        servo.new_servo(settings, LINKS, (JOINT, JOINT), START, encoders="both")


def test_the_bound_that_is_named_is_one():
    with pytest.raises(ConfigurationError) as refused:
        servo.new_servo(ServoSettings(bandwidth=450.0), LINKS, (JOINT, JOINT), START)
    bound = float(str(refused.value).split("at most ")[1].split(" Hz")[0])
    servo.new_servo(ServoSettings(bandwidth=bound), LINKS, (JOINT, JOINT), START)


@pytest.mark.parametrize(("per_period", "rigid"), [(3.1, False), (3.2, True)])
def test_a_gearbox_that_rings_faster_than_the_servo_samples_counts_as_rigid(per_period, rigid):
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
def test_a_joint_must_be_stable_near_rest_and_in_the_play_of_its_gearbox(settings, eased):
    require_stable(settings, dataclasses.replace(JOINT, **eased), 0.05, "both", 1)
    with pytest.raises(ConfigurationError, match="unstable at joint 1"):
        require_stable(settings, JOINT, 0.05, "both", 1)


def test_exact_linearisation_needs_both_angles():
    with pytest.raises(ConfigurationError, match="needs the angles of motor and link"):
        servo.new_servo(ServoSettings(law="linearising"), LINKS, (JOINT, JOINT), START)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"law": "pd"}, "servo.law = 'pd': must be one of pid, flatness, rigid, linearising, fractional"),
        ({"law": "flatness", "reference": "none"}, "needs the derivatives of the reference"),
        ({"velocity_gain": 3.0}, "servo.position_gain = 0.0: must be greater than 0"),
        ({"position_gain": 3.0}, "servo.velocity_gain = 0.0: must be greater than 0"),
        ({"terms": 2.5}, "servo.terms = 2.5: must be a whole number at least 0 and at most 63"),
        ({"period": 0.0}, "servo.period = 0.0: must be"),
    ],
)
def test_wrong_settings_are_named(table, message):
    with pytest.raises(ConfigurationError, match=message):
        ServoSettings(**table)
