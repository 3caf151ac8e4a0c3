"""A person's own smooth laws: derivatives that nobody wrote down, and what is refused."""

import math
import pickle

import numpy as np
import pytest

from devices.arm.flatness.friction import SmoothCoulomb, SmoothStribeck
from devices.arm.flatness.own_law import OwnFriction, own_friction, own_torque, own_twist
from devices.arm.flatness.stiffness import SmoothBacklash
from haptics.errors import ConfigurationError

VELOCITIES = np.concatenate((-np.geomspace(1e-6, 3.0, 60)[::-1], [0.0], np.geomspace(1e-6, 3.0, 60)))


@own_friction
def printed(velocity, coulomb=200.0, viscosity=800.0, smoothness=500.0):
    """Weigand et al. 2020, (4), as printed."""
    return viscosity * velocity + 2 * coulomb / (1 + math.exp(-smoothness * velocity)) - coulomb


@own_friction
def falling(velocity, kinetic=4.0, static=5.0, width=0.1, steepness=60.0):
    level = kinetic
    level += (static - kinetic) * math.exp(-((velocity / width) ** 2))
    return level * math.tanh(steepness * velocity)


@own_twist
def knee(torque, stiffness=8.4e6, backlash=3e-4, smoothness=0.02):
    return torque / stiffness + backlash * math.tanh(0.5 * smoothness * torque)


@own_torque
def hardening(twist, soft=3e5, hard=8e6, width=3e-4):
    return soft * twist + hard * (math.sqrt(twist * twist + width**2) - width) * twist / math.sqrt(twist**2 + width**2)


def test_derivatives_are_those_of_the_law_that_has_them_by_hand():
    for own, built in (
        (printed(), SmoothCoulomb(200.0, 800.0, 500.0)),
        (falling(), SmoothStribeck(4.0, 5.0, 0.1, 60.0)),
    ):
        found, known = own.derivatives(VELOCITIES), built.derivatives(VELOCITIES)
        np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-12 * abs(known).max(axis=0).max())
    torques = 1e3 * VELOCITIES
    known = SmoothBacklash(8.4e6, 3e-4, 0.02).twist_derivatives(torques)
    np.testing.assert_allclose(knee().twist_derivatives(torques), known, rtol=1e-12, atol=1e-22)


def test_every_function_that_is_allowed_has_its_derivatives():
    @own_friction
    def everything(v, a=0.3):
        x = math.sin(v) * math.cos(a * v) + math.tan(0.01 * v) + math.atan(v) / (2 + math.sinh(0.01 * v))
        x += math.cosh(0.01 * v) ** 2 + math.erf(v) - math.log(3 + math.tanh(v)) + math.log1p(math.exp(-v * v))
        y = math.hypot(v, 1) + math.fabs(v) ** 3 + math.expm1(-v * v) + math.pow(2 + v * v, a * math.tanh(v))
        y -= min(v * v + 1, 1e9, 2e9) * max(a, 0.1) + math.copysign(v**4, v) + abs(math.pi) - -math.e
        return x + y if v > 0 or not v > -1000 else +(x + y)

    law = everything(a=0.4)
    step = 1e-4
    for velocity in (-2.0, -0.7, 0.3, 1.9):
        around = law(velocity + step * np.arange(-3, 4))
        first = around @ np.array((-1, 9, -45, 0, 45, -9, 1)) / (60.0 * step)
        second = around @ np.array((2, -27, 270, -490, 270, -27, 2)) / (180.0 * step**2)
        _value, slope, curvature = law.derivatives(velocity)
        assert slope == pytest.approx(first, rel=1e-9)
        assert curvature == pytest.approx(second, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("law", [knee(), hardening()], ids=["twist", "torque"])
def test_both_directions_are_inverse_to_each_other_with_their_derivatives(law):
    torques = np.concatenate((-np.geomspace(1e-3, 5e3, 40), np.geomspace(1e-3, 5e3, 40)))
    twists = law.twist_derivatives(torques)
    back = law.torque_derivatives(twists[:, 0])
    np.testing.assert_allclose(back[:, 0], torques, rtol=1e-13)
    np.testing.assert_allclose(back[:, 1] * twists[:, 1], 1.0, rtol=1e-11)
    np.testing.assert_allclose(back[:, 2], -twists[:, 2] / twists[:, 1] ** 3, rtol=1e-8, atol=1e-3)


def test_pieces_may_meet_smoothly():
    @own_torque
    def cubic(twist, stiffness=1e6, width=1e-3):
        share = twist / width
        if abs(share) < 1 and not share > 1:
            return stiffness * width * (share**3 / 3 + 0.01 * share)
        outside = abs(share) - 1
        return math.copysign(stiffness * width * (1 / 3 + outside + outside**2 + 0.01 * abs(share)), twist)

    law = cubic()
    inside, outside = law.torque_derivatives([1e-3 - 1e-15, 1e-3 + 1e-15])
    np.testing.assert_allclose(inside, outside, rtol=1e-9)


def test_law_travels_as_text():
    twin = pickle.loads(pickle.dumps(printed(coulomb=3.0)))
    np.testing.assert_array_equal(twin.derivatives(VELOCITIES), printed(coulomb=3.0).derivatives(VELOCITIES))
    assert twin == printed(coulomb=3.0) != printed()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(v):\n    return v % 2.0", "remainder has no derivative"),
        ("def f(v):\n    return math.erfc(v)", r"math\.erfc.*|erfc has no derivative"),
        ("def f(v):\n    return math.inf * v", r"math\.inf has no derivative"),
        ("def f(v):\n    return v if v else 0.0", "not a comparison"),
        ("def f(v):\n    return open(v)", "comes from outside"),
        ("def f(v):\n    return 1.0 / v", "must be finite, but not so at 0"),
        ("def f(v):\n    return abs(v)", "slope must not jump, but not so at"),
        ("def f(v):\n    return v if v < 0.7 else 0.1 + v", "value must not jump, but not so at 0.7"),
    ],
)
def test_what_cannot_be_a_law_is_refused(text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        OwnFriction.from_table(text, {})


def test_stiffness_that_does_not_rise_is_refused():
    with pytest.raises(ConfigurationError, match="must rise everywhere, but not so at 0"):

        @own_torque
        def flat(twist, stiffness=1e6):
            return stiffness * twist**3


def test_unknown_parameter_is_named():
    with pytest.raises(ConfigurationError, match=r"law\.coulom.*Did you mean 'law\.coulomb'"):
        printed(coulom=3.0)
