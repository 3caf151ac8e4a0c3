"""The metrics on rows of which the answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from apps.conformance import metrics, motions
from apps.conformance.kernels import ROW
from haptics.records import Rows

RATE = 1000.0


def rows_of(count: int) -> tuple[Rows, NDArray[np.float64]]:
    return np.zeros(count, ROW), np.arange(count) / RATE


@given(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3))
def test_hold_drift_is_the_speed_of_a_steady_creep(vx: float, vy: float) -> None:
    rows, t = rows_of(8000)
    rows["position"] = np.outer(t, (vx, vy)) + np.array((3.0, -5.0))
    assert metrics.hold_drift(rows, RATE) == pytest.approx(math.hypot(vx, vy), abs=1e-12)


def test_a_vibration_is_no_drift() -> None:
    rows, t = rows_of(8000)
    rows["position"][:, 0] = 1e-4 * np.sin(2.0 * np.pi * 50.0 * t)
    assert metrics.hold_drift(rows, RATE) < 1e-7


def test_net_drift_is_the_way_between_two_cycles() -> None:
    rows, t = rows_of(10000)
    rows["position"][:, 0] = 1e-3 * np.sin(2.0 * np.pi * 10.0 * t) + 2e-3 * t
    assert metrics.net_drift(rows[:100], rows[-100:]) == pytest.approx(2e-3 * 9.9)


@pytest.mark.parametrize(("frequency", "heard"), [(2.0, 0.0), (9.0, 0.0), (11.0, 1.0), (200.0, 1.0), (490.0, 1.0)])
def test_buzz_is_the_rms_above_ten_hertz(frequency: float, heard: float) -> None:
    rows, t = rows_of(8000)
    wave = np.sin(2.0 * np.pi * frequency * t)
    rows["felt"] = np.stack((3.0 * wave, 4.0 * wave), axis=1) + np.array((2.0, 1.0))
    assert metrics.buzz(rows, RATE) == pytest.approx(heard * 5.0 / math.sqrt(2.0), rel=1e-2, abs=1e-9)


@pytest.mark.parametrize(("frequency", "heard"), [(2.0, 0.0), (7.3, 0.0), (14.7, 1.0), (200.0, 1.0), (490.0, 1.0)])
def test_buzz_while_sliding_is_the_rms_above_ten_hertz_whatever_the_mean_does(frequency: float, heard: float) -> None:
    rows, t = rows_of(1000)
    wave = np.sin(2.0 * np.pi * frequency * t)
    rows["felt"] = np.stack((3.0 * wave + 5.0 * t, 4.0 * wave - np.exp(-t)), axis=1)
    found = metrics.sliding_buzz(rows, RATE)
    assert found == pytest.approx(heard * 5.0 / math.sqrt(2.0), rel=1e-2, abs=2e-2)
    assert heard or metrics.buzz(rows, RATE) > 0.2  # what leaks where nothing is faded


@given(st.floats(-3.1, 3.1), st.floats(0.01, 100.0))
def test_direction_error_is_the_angle_between_motion_and_opposite_of_the_force(angle: float, size: float) -> None:
    rows, t = rows_of(500)
    rows["velocity"] = np.stack((np.cos(t), np.sin(t)), axis=1)
    rows["force"] = -size * np.stack((np.cos(t + angle), np.sin(t + angle)), axis=1)
    assert metrics.direction_error_p95(rows) == pytest.approx(math.degrees(abs(angle)), abs=1e-9)


def test_no_force_points_nowhere() -> None:
    rows, _ = rows_of(100)
    rows["velocity"] = rows["force"] = (1.0, 0.0)
    rows["force"] *= -1.0
    rows["force"][:10] = 0.0
    assert metrics.direction_error_p95(rows) == pytest.approx(90.0)


def ramp(breakaway: float, kinetic: float) -> Rows:
    """A law that holds up to `breakaway` and then slides under `kinetic`."""
    rows, t = rows_of(12000)
    push = motions.RAMP_RATE * t
    slipping = push > breakaway
    rows["force"] = np.outer(np.where(slipping, kinetic, push), -motions.PUSH_DIRECTION)
    rows["position"] = np.outer(np.cumsum(np.where(slipping, 1e-4, 0.0)), motions.PUSH_DIRECTION)
    return rows


@pytest.mark.parametrize("breakaway", [1.0, 4.0, 5.5])
def test_break_away_is_the_peak_before_the_slip(breakaway: float) -> None:
    found = metrics.breakaway_force(ramp(breakaway, 0.5 * breakaway), RATE)
    assert found == pytest.approx(breakaway, abs=motions.RAMP_RATE * metrics.AVERAGING)


def test_what_the_force_does_after_the_slip_does_not_count() -> None:
    rows = ramp(3.0, 3.0)
    rows["force"][-1000:] *= 3.0
    assert metrics.breakaway_force(rows, RATE) == pytest.approx(3.0, abs=0.01)


def test_a_creeping_law_is_charged_with_the_force_at_the_slip_distance() -> None:
    """A viscous law creeps at push/c: it has gone 2 mm when r t^2/(2 c) = 2 mm."""
    rows, t = rows_of(12000)
    damping = 200.0
    push = motions.RAMP_RATE * t
    rows["force"] = np.outer(push, -motions.PUSH_DIRECTION)
    rows["position"] = np.outer(motions.RAMP_RATE * t**2 / (2.0 * damping), motions.PUSH_DIRECTION)
    expected = motions.RAMP_RATE * math.sqrt(2.0 * damping * metrics.SLIP_DISTANCE / motions.RAMP_RATE)
    assert metrics.breakaway_force(rows, RATE) == pytest.approx(expected, rel=0.01)


def test_chatter_counts_as_its_mean() -> None:
    rows, _ = rows_of(12000)
    rows["force"] = np.outer(np.where(np.arange(12000) % 2, 9.0, -1.0), -motions.PUSH_DIRECTION)
    assert metrics.breakaway_force(rows, RATE) == pytest.approx(4.0)


def test_spread_is_relative_to_the_mean_and_needs_a_friction() -> None:
    assert metrics.spread([3.9, 4.0, 4.1]) == pytest.approx(0.05)
    assert metrics.spread([0.0, 0.0]) is None
    assert metrics.spread([-4.0, -4.1]) is None


def test_the_directions_cover_a_quadrant_evenly() -> None:
    folded = sorted(round(math.degrees(direction)) % 90 for direction in motions.DIRECTIONS)
    assert folded == list(range(0, 90, 10))


@pytest.mark.parametrize("motion", [motions.CIRCLE, *motions.SLIDES.values()], ids=lambda m: m.name)
def test_the_velocity_of_a_path_is_its_derivative(motion: motions.Motion) -> None:
    t = np.linspace(0.0, motion.settling + motion.duration, 20001)
    position, velocity = motion.shape(t)
    numeric = np.gradient(np.asarray(position), t, axis=0)
    np.testing.assert_allclose(numeric[1:-1], np.asarray(velocity)[1:-1], atol=1e-6)
    steady = np.hypot(*np.asarray(velocity)[t >= motion.settling].T)
    assert np.ptp(steady) < 1e-12
