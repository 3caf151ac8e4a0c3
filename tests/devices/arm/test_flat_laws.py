"""Smooth friction and stiffness laws: what the paper says of them, where its print is wrong, and exact inverses."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.flatness.friction import AsymmetricFriction, SmoothCoulomb, SmoothStribeck
from devices.arm.flatness.stiffness import LostMotion, RampBacklash, SmoothBacklash
from haptics.errors import ConfigurationError

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


def test_friction_is_the_printed_one():
    velocities = np.linspace(-0.2, 0.2, 41)
    law = SmoothCoulomb(200.0, 800.0, 500.0)
    printed = 800.0 * velocities + 2.0 * 200.0 / (1.0 + np.exp(-500.0 * velocities)) - 200.0
    np.testing.assert_allclose(law(velocities), printed, atol=1e-11)
    twin = AsymmetricFriction(200.0, 800.0, 250.0)
    np.testing.assert_array_equal(law.derivatives(velocities), twin.derivatives(velocities))
    assert law(0.0) == 0.0


def test_derivatives_keep_their_digits_far_out():
    """1 - tanh^2 would be 0 or noise here."""
    _value, slope, curvature = SmoothCoulomb(1.0, 0.0, 2.0).derivatives(30.0)
    assert slope == pytest.approx(4.0 * math.exp(-60.0), rel=1e-12, abs=0.0)
    assert curvature == pytest.approx(-8.0 * math.exp(-60.0), rel=1e-12, abs=0.0)
    assert np.isfinite(SmoothCoulomb(1e6, 0.0, 1e6).derivatives([-1e3, 1e3])).all()


def test_smooth_stribeck_falls_from_static_to_kinetic():
    law = SmoothStribeck(kinetic=4.0, static=5.0, stribeck_velocity=0.1, steepness=1e4, viscosity=2.0)
    assert law(1e-3) == pytest.approx(5.0, abs=0.003)
    assert law(1.0) == pytest.approx(6.0)
    assert law(-1.0) == pytest.approx(-6.0)


@pytest.mark.parametrize("name", LAWS)
@settings(deadline=None, max_examples=25, derandomize=True)
@given(size=st.floats(-6.0, 4.5), sign=st.sampled_from([-1.0, 1.0]))
def test_twist_and_torque_are_inverse_to_each_other(name, size, sign):
    law, torque = LAWS[name], sign * 10.0**size
    twist, slope, curvature = law.twist_derivatives(torque)
    back, stiffness, bend = law.torque_derivatives(twist)
    assert back == pytest.approx(torque, rel=1e-9, abs=1e-12)  # of the digits of a twist full of backlash
    assert twist * torque > 0.0
    if stiffness > 0.0:
        assert slope * stiffness == pytest.approx(1.0, rel=1e-6)
        assert curvature == pytest.approx(-bend * slope**3, rel=1e-5, abs=1e-9 * abs(slope / torque))


@pytest.mark.parametrize("name", ["knee", "steep knee", "linear", "ramp with slack"])
def test_inverse_is_solved_to_the_last_digits(name):
    law, rng = LAWS[name], np.random.default_rng(1)
    sizes = np.concatenate([10.0 ** rng.uniform(-300.0, 4.5, 5000), rng.uniform(0.0, 600.0, 5000)])
    torques = np.concatenate([sizes, -sizes, 2.0 ** np.arange(-1070.0, 15.0), [0.0]])
    twists = law.twist(torques)
    digits = np.spacing(abs(twists)) * law.torque_derivatives(twists)[:, 1] + np.spacing(abs(torques))
    assert np.max(abs(law.torque(twists) - torques) / digits) <= 4.0


def test_all_laws_have_the_stiffness_of_full_contact():
    for name, law in LAWS.items():
        extra = getattr(law, "slack_stiffness", 0.0)
        assert law.torque_derivatives(0.01)[1] == pytest.approx(
            C + extra if name != "steep knee" else 4.5778e6, rel=1e-6
        )


def test_ramp_law_solves_its_equation():
    """(30) for three equal lags: y + 3 T y' + 3 T^2 y'' + T^3 y''' = c x, with T = phi/3 and from rest."""
    x, step, T = np.linspace(0.0, 3.0 * PHI, 3001), PHI / 1000.0, PHI / 3.0
    y, y1, y2 = LAWS["ramp"].torque_derivatives(x).T
    y3 = np.gradient(y2, step)
    residual = (y + 3.0 * T * y1 + 3.0 * T**2 * y2 + T**3 * y3 - C * x)[2:-2]
    assert abs(residual).max() < 1e-5 * C * PHI
    np.testing.assert_array_equal([y[0], y1[0], y2[0]], 0.0)
    assert y[-1] == pytest.approx(C * (3.0 * PHI - PHI), rel=0.01)
    assert LAWS["ramp"].torque(PHI) == pytest.approx(0.224 * C * PHI, rel=2e-3)


def test_ramp_law_is_the_printed_one_where_its_slope_factor_is_large_enough():
    """(9) with s_E1 = 1e4, the "much larger" of the text, has nothing left at a tenth of the backlash."""

    def printed(x, slope):
        t = math.tanh(slope * x)
        r = x * t
        decay = math.exp(-3.0 * r / PHI)
        return t * C * (r - PHI + decay * (PHI + 2.0 * r + 1.5 * r * r / PHI))

    for share in (-2.0, -0.1, 0.1, 0.5, 1.0, 3.0):
        assert printed(share * PHI, 1e6) == pytest.approx(LAWS["ramp"].torque(share * PHI), rel=1e-9)
    assert printed(0.1 * PHI, 1e4) < 0.05 * LAWS["ramp"].torque(0.1 * PHI)


def test_ramp_law_keeps_its_digits_in_the_middle_of_the_play():
    """The closed form loses them all: the torque is c phi/72 z^4 there, z = 3 x/phi."""
    for share in (1e-6, 1e-4, 1e-2):
        z = 3.0 * share
        series = C * PHI / 3.0 * z**4 * (1 / 24 - z / 40 + z * z / 120 - z**3 / 504 + z**4 / 2688)
        assert LAWS["ramp"].torque(share * PHI) == pytest.approx(series, rel=1e-9, abs=0.0)


def test_pieces_of_the_broken_law_meet():
    for edge in (0.5 * PHI, PHI):
        below, above = BROKEN.torque([edge * (1 - 1e-12), edge * (1 + 1e-12)])
        assert above == pytest.approx(below, abs=1e-6)
    lost = BROKEN.lost_motion_stiffness * BROKEN.lost_motion
    below, above = BROKEN.twist([lost * (1 - 1e-12), lost * (1 + 1e-12)])
    assert above == pytest.approx(below, rel=1e-9)
    assert BROKEN.torque(0.49 * PHI) == BROKEN.twist(0.0) == 0.0


def test_paper_s_two_laws_are_not_inverse_to_each_other():
    """They are up to 0.36 phi apart, and the knee is stiff where the ramp gives way."""
    torques = np.concatenate(([0.0], np.geomspace(1e-3, 1e4, 400)))
    apart = abs(LAWS["ramp"].twist(torques) - LAWS["knee"].twist(torques)).max()
    assert apart == pytest.approx(0.36 * PHI, rel=0.02)
    assert LAWS["ramp"].torque_derivatives(0.0)[1] == 0.0
    assert LAWS["knee"].torque_derivatives(0.0)[1] == pytest.approx(3.2e5, rel=0.02)


def test_impossible_laws_are_named():
    with pytest.raises(ConfigurationError, match=r"friction\.smoothness = 0\.0: .*greater than 0 s/rad"):
        SmoothCoulomb(1.0, 1.0, 0.0)
    with pytest.raises(ConfigurationError, match=r"stiffness\.backlash = 0\.0: .*greater than 0 rad"):
        RampBacklash(C, 0.0)
    with pytest.raises(ConfigurationError, match=r"velocity = nan: must be finite"):
        SmoothCoulomb(1.0, 1.0, 1.0)(math.nan)
    with pytest.raises(ConfigurationError, match="torque = 'much': must be finite numbers"):
        LAWS["knee"].twist("much")


def test_laws_are_odd():
    arguments = np.geomspace(1e-7, 1e-2, 50)
    for law in LAWS.values():
        np.testing.assert_array_equal(law.torque(-arguments), -law.torque(arguments))
    fallen = dataclasses.replace(SmoothStribeck(4.0, 5.0, 0.1, 60.0))
    np.testing.assert_array_equal(fallen(-arguments), -fallen(arguments))
