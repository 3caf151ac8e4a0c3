"""Motions whose derivatives belong together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.arm.flatness.reference import lemniscate, point_to_point
from haptics.errors import ConfigurationError


def integrated(motion, time):
    """Return each column but the last, from its first value and the integral of the next one."""
    steps = np.diff(time)[:, None]
    rates = motion[:, 1:]
    areas = steps * (rates[1:] + rates[:-1]) / 2.0
    return motion[0, :-1] + np.vstack((np.zeros(4), np.cumsum(areas, axis=0)))


@given(start=st.floats(-5, 5), end=st.floats(-5, 5), duration=st.floats(0.1, 10), begin=st.floats(-3, 3))
def test_every_column_is_the_derivative_of_the_one_before(start, end, duration, begin):
    time = np.linspace(begin, begin + duration, 20001)
    motion = point_to_point(time, start, end, duration, begin)
    scale = 100.0 * abs(end - start) / duration ** np.arange(4)
    assert (abs(integrated(motion, time) - motion[:, :-1]) <= 1e-6 * scale + 1e-12).all()


def test_motion_is_at_rest_before_and_after():
    motion = point_to_point([-1.0, 0.999, 1.0, 3.0, 3.001, 9.0], 0.2, 0.7, 2.0, 1.0)
    np.testing.assert_allclose(motion[:, 0], [0.2, 0.2, 0.2, 0.7, 0.7, 0.7], atol=1e-12)
    assert not motion[[0, 1, 4, 5], 1:].any()
    np.testing.assert_allclose(motion[[2, 3], 1:4], 0.0, atol=1e-9)
    assert motion[2, 4] == pytest.approx(840.0 * 0.5 / 2.0**4)
    assert motion[3, 4] == pytest.approx(-840.0 * 0.5 / 2.0**4)


def test_half_way_is_half_way_at_35_sixteenths_of_the_mean_speed():
    middle = point_to_point([1.0], 0.0, 1.0, 2.0)[0]
    np.testing.assert_allclose(middle[[0, 2]], [0.5, 0.0], atol=1e-15)
    assert middle[1] == pytest.approx(35.0 / 16.0 / 2.0)


def test_lemniscate_lies_on_its_curve_and_its_derivatives_belong_together():
    time = np.linspace(0.0, 7.5, 40001)
    phase = point_to_point(time, 0.0, 2.0 * math.pi, 7.5)
    x, y = lemniscate(phase, 0.4, 0.3)
    curve = (x[:, 0] / 0.4) ** 2 * (1.0 - (x[:, 0] / 0.4) ** 2)
    np.testing.assert_allclose((y[:, 0] / 0.3) ** 2, curve, atol=1e-14)
    for coordinate in (x, y):
        off = abs(integrated(coordinate, time) - coordinate[:, :-1]).max(axis=0)
        assert (off < 1e-6 * abs(coordinate[:, :-1]).max(axis=0)).all()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(([0.0], 0.0, 1.0, 0.0), r"duration = 0\.0: must be greater than 0 s"), (([0.0], 0.0, math.nan, 1.0), "finite")],
)
def test_wrong_motion_is_named(arguments, reason):
    with pytest.raises(ConfigurationError, match=reason):
        point_to_point(*arguments)


def test_wrong_phase_is_named():
    with pytest.raises(ConfigurationError, match=r"phase of shape \(3,\): must be \(n, 5\)"):
        lemniscate([0.0, 1.0, 2.0], 1.0, 1.0)
