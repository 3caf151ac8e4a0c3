"""Custom laws that are no smooth curves: levels that jump at rest, jump up, jump down, or are nothing at all."""

from __future__ import annotations

import numpy as np
import pytest

from apps.settings.config import complete
from haptics import ClosedForm, Coulomb, CustomLaw, Elliptic, MasslessImpedance, simulate
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from tests.haptics.strategies import wandering

JUMPS_UP = "def f(speed, step=0.1):\n    return 3.0 if speed < step else 5.0"
JUMPS_DOWN = "def f(speed, step=1.0):\n    return 5.0 if speed < step else 3.0"
Z = 1.0 / 16.0


def law(source: str, **values: float) -> CustomLaw:
    return CustomLaw.from_table(source, values)


@pytest.mark.parametrize(
    "source",
    [
        "def f(speed, force=4.0):\n    return force * (speed > 0.0)",
        "def f(speed, force=4.0):\n    return 0.0 if speed == 0.0 else force",
        "def f(speed, force=4.0):\n    return force if not speed == 0.0 else 1.0",
    ],
)
def test_the_level_at_rest_is_that_of_the_slowest_motion(source: str) -> None:
    """What a function says at rest itself means nothing: the law only bounds the force there."""
    inputs = wandering("C")
    own = simulate(MasslessImpedance(law(source), 6000.0, 10.0), inputs)
    coulomb = simulate(MasslessImpedance(Coulomb(4.0), 6000.0, 10.0), inputs)
    assert law(source).breakaway_force == 4.0
    np.testing.assert_array_equal(own.sticking, coulomb.sticking)
    np.testing.assert_allclose(own.output, coulomb.output, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("mobility", [Z, 5e-4])
def test_where_the_level_jumps_up_the_force_is_what_is_left_over(mobility: float) -> None:
    """The speed stays at the jump while the force goes from the lower to the upper level: the exact pair of (16)."""
    step, low, high = 0.1, 3.0, 5.0
    x = np.linspace(step + mobility * low, step + mobility * high, 41)
    forces = law(JUMPS_UP).implicit(x[:, None], mobility)[:, 0]
    np.testing.assert_allclose(forces, (x - step) / mobility, rtol=0.0, atol=1e-12 / mobility)
    beyond = np.array([step + mobility * low - 1e-3, step + mobility * high + 1e-3])
    np.testing.assert_allclose(law(JUMPS_UP).implicit(beyond[:, None], mobility)[:, 0], [low, high], rtol=1e-14)


def test_over_a_jump_up_the_force_of_an_element_is_continuous() -> None:
    element = MasslessImpedance(law(JUMPS_UP), 6000.0, 10.0)
    ramp = np.column_stack([np.linspace(0.0, 0.5, 20000), np.zeros(20000)])
    force = simulate(element, ramp).output[:, 0]
    assert np.abs(np.diff(force)).max() < 0.05
    assert force[-1] == 5.0


@pytest.mark.parametrize("step", [1e-3, 0.05, 1.0, 50.0])
@pytest.mark.parametrize("mobility", [5e-4, Z])
def test_a_level_that_jumps_down_breaks_condition_15_at_every_mobility(step: float, mobility: float) -> None:
    assert law(JUMPS_DOWN, step=step).mobility_limit < 1e-6
    with pytest.warns(AmbiguousLawWarning):
        law(JUMPS_DOWN, step=step).implicit(0.1, mobility)


def test_a_session_refuses_a_level_that_jumps_down() -> None:
    custom = {"name": "custom", "source": JUMPS_DOWN}
    with pytest.raises(ConfigurationError, match="condition 15"):
        complete({"session": {"model": "A"}, "law": custom})


def test_a_constant_level_is_not_found_to_fall_by_its_rounding() -> None:
    wavy = law("def f(speed, force=4.0):\n    return force + 0.1 * (speed / 3.0 + 1.0) - 0.1 * speed / 3.0 - 0.1")
    assert np.ptp([float(wavy(s)) for s in np.linspace(0.1, 90.0, 500)]) > 0.0
    assert wavy.mobility_limit > 1e3


def test_a_dip_below_zero_that_no_grid_sees_gives_no_force_and_never_drives() -> None:
    dip = law("def f(speed):\n    return 5.0 - 7.0 * math.exp(-(((speed - 2.0025) / 5e-4) ** 2))")
    assert float(dip(2.0025)) == 0.0


def test_what_fails_inside_the_function_is_no_number() -> None:
    with pytest.raises(ConfigurationError, match=r"level at 0 m/s is (nan|inf) N"):
        law("def f(speed, p=0.0):\n    return 4.0 % p")


def test_an_element_survives_the_smallest_and_largest_inputs() -> None:
    for wrapped in (Elliptic(0.3, 0.2), ClosedForm(Elliptic(0.3, 0.2)), law(JUMPS_UP)):
        element = MasslessImpedance(wrapped, 6000.0, 10.0)
        for speed in (5e-324, 1e-310, 1e-200, 1e150, 1e200):
            assert np.isfinite(element.step((speed, -speed))).all()
            assert np.isfinite(element.step((0.1, 0.0))).all()
