"""From places of the handle to metres per count, however the axes lie."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.joystick.axes import fit_axes
from calibration.joystick.person import GATES, Place, in_words
from haptics.errors import ConfigurationError

TRAVEL = (0.16, 0.12)
RANGE = ((-32768, 32767), (-32768, 32767))
CORNERS = GATES["square"]


def counts_of(places: Sequence[Place], matrix: np.ndarray, centre: Sequence[float]) -> np.ndarray:
    half = 0.5 * np.array(TRAVEL)
    points = np.array([(place.x, place.y) for place in places]) * half
    return np.asarray(points @ matrix.T + centre)


def turned(degrees: float, x: float, y: float) -> np.ndarray:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.diag((x, y)) @ np.array(((c, -s), (s, c)))


@given(
    degrees=st.floats(-180.0, 180.0),
    x=st.sampled_from((-1.0, 1.0)),
    y=st.floats(0.5, 1.5),
    centre=st.tuples(st.floats(-500.0, 500.0), st.floats(-500.0, 500.0)),
    gate=st.sampled_from(sorted(GATES)),
)
def test_turned_mirrored_and_shifted_axes_are_found(
    degrees: float, x: float, y: float, centre: tuple[float, float], gate: str
) -> None:
    places = GATES[gate]
    matrix = turned(degrees, 150e3 * x, 150e3 * y)
    axes, misfit = fit_axes(places, np.round(counts_of(places, matrix, centre)), TRAVEL, RANGE)
    np.testing.assert_allclose(np.array(axes.counts_to_m) @ matrix, np.eye(2), atol=2e-3)
    np.testing.assert_allclose(axes.centre_counts, centre, atol=1.0)
    assert misfit < 2.0 / 75e3
    assert axes.workspace_max_m == (0.08, 0.06)


def test_a_place_that_was_missed_a_little_is_averaged_one_missed_by_far_is_named() -> None:
    counts = counts_of(CORNERS, np.diag((200e3, 200e3)), (0.0, 0.0))
    counts[1] += (400.0, 0.0)
    _, misfit = fit_axes(CORNERS, counts, TRAVEL, RANGE)
    assert 0.0 < misfit < 2e-3
    with pytest.raises(ConfigurationError, match=r"do not fit together: at the .* corner the handle was .* mm from"):
        counts[1] += (9000.0, 0.0)
        fit_axes(CORNERS, counts, TRAVEL, RANGE)


def test_two_corners_in_the_wrong_order_are_noticed() -> None:
    counts = counts_of(CORNERS, np.diag((200e3, 200e3)), (0.0, 0.0))
    with pytest.raises(ConfigurationError, match=r"do not fit together|not independent"):
        fit_axes(CORNERS, counts[[0, 1, 3, 2]], TRAVEL, RANGE)


def test_a_handle_that_nobody_moved_is_noticed() -> None:
    with pytest.raises(
        ConfigurationError, match=r"the counts at the far left corner are those at the far right corner"
    ):
        fit_axes(CORNERS, np.full((4, 2), 17.0), TRAVEL, RANGE)


def test_an_axis_at_the_end_of_its_range_is_noticed() -> None:
    counts = np.clip(counts_of(CORNERS, np.diag((600e3, 200e3)), (0.0, 0.0)), -32768, 32767)
    with pytest.raises(ConfigurationError, match=r"axis X is at the end of its range, 32767"):
        fit_axes(CORNERS, counts, TRAVEL, RANGE)


def test_axes_that_say_the_same_are_noticed() -> None:
    matrix = np.array(((200e3, 190e3), (200e3, 200e3)))
    with pytest.raises(ConfigurationError, match="not independent"):
        fit_axes(CORNERS, counts_of(CORNERS, matrix * 0.5, (0.0, 0.0)), TRAVEL, RANGE)


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        ((1.0, 0.1), "to the right"),
        ((-1.0, 0.0), "to the left"),
        ((-1.0, -1e-9), "to the left"),
        ((0.1, -1.0), "towards you"),
        ((0.7, 0.7), "to the right and away from you"),
        ((-0.7, -0.7), "to the left and towards you"),
    ],
)
def test_directions_in_words(motion: tuple[float, float], words: str) -> None:
    assert in_words(motion) == words
