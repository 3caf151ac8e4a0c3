"""Fit of metres per count to known positions of the handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import Pair, Place
from devices.joystick.parameters import Axes
from haptics.errors import ConfigurationError

LEAST_TRAVEL = 20
"""Minimum number of distinct counts over the whole travel."""

LARGEST_MISFIT = 0.06
"""Maximum misfit of the positions as a fraction of the smaller travel."""

_STEEPEST = 0.5
"""Minimum sine of the angle between the two axes."""

Ranges = tuple[tuple[int, int], ...]


def counts_of(axes: Axes, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts at positions, (2,) or (n, 2) [m]; the second count of a wheel is constant."""
    matrix = np.array(axes.counts_to_m)
    if axes.rim_radius_m:
        per_metre = np.array(((1.0 / matrix[0, 0], 0.0), (0.0, 0.0)))
        return np.asarray(positions @ per_metre.T + axes.centre_counts)
    return np.asarray(np.linalg.solve(matrix, positions.T).T + axes.centre_counts)


def fit_rim(
    places: Sequence[Place], counts: NDArray[np.float64], radius: float, turn: float, ranges: Ranges
) -> tuple[Axes, float]:
    """Fit the axis of a wheel along its rim; return the axes and the misfit of the positions.

    Parameters
    ----------
    places : sequence of Place
        Positions of the wheel as fractions of `turn`.
    counts : array, (n,)
        Counts at these positions.
    radius : float
        Radius of the rim [m].
    turn : float
        Angle of the wheel at a position of 1 [rad].
    ranges : tuple of (int, int)
        Minimum and maximum count of the axis.

    Raises
    ------
    ConfigurationError
        As `fit_axes`.
    """
    low, high = ranges[0]
    way = radius * turn * np.array([place.x for place in places])
    table = np.column_stack((counts, np.zeros(len(counts))))
    _require_motion(places, table)
    _require_range(places, counts[:, None], ranges)
    per_metre, centre = np.polyfit(way, counts, 1)
    off = np.abs((counts - centre) / per_metre - way)
    _require_fit(places, off, 2.0 * radius * turn)
    reach = float(min(high - centre, centre - low) / abs(per_metre))
    axes = Axes(
        centre_counts=(float(centre), 0.0),
        counts_to_m=((float(1.0 / per_metre), 0.0), (0.0, 0.0)),
        workspace_min_m=(-reach, -radius),
        workspace_max_m=(reach, radius),
        rim_radius_m=radius,
    )
    return axes, float(off.max())


def fit_axes(places: Sequence[Place], counts: NDArray[np.float64], travel: Pair, ranges: Ranges) -> tuple[Axes, float]:
    """Fit the axes of a stick; return the axes and the misfit of the positions.

    Counts are modelled as a linear function of the position of the handle, fitted by least squares.

    Parameters
    ----------
    places : sequence of Place
        Positions of the handle.
    counts : array, (n, 2)
        Counts at these positions.
    travel : (float, float)
        Total travel along x and y [m].
    ranges : tuple of (int, int)
        Minimum and maximum count of each axis.

    Returns
    -------
    (Axes, float)
        Axes, and the largest distance between a position and its prediction [m].

    Raises
    ------
    ConfigurationError
        If the handle was not moved or was moved to wrong positions, or an axis has too small a range.
    """
    half = 0.5 * np.array(travel)
    points = np.array([(place.x, place.y) for place in places]) * half
    _require_motion(places, counts)
    _require_range(places, counts, ranges)
    design = np.column_stack((points, np.ones(len(points))))
    solution: NDArray[Any] = np.linalg.lstsq(design, counts, rcond=None)[0]
    per_metre, centre = solution[:2].T, solution[2]
    _require_plane(per_metre)
    to_metres = np.linalg.inv(per_metre)
    off = np.hypot(*(to_metres @ (counts - centre).T - points.T))
    _require_fit(places, off, min(travel))
    a, b = to_metres.tolist()
    axes = Axes(
        centre_counts=(float(centre[0]), float(centre[1])),
        counts_to_m=((a[0], a[1]), (b[0], b[1])),
        workspace_min_m=(-float(half[0]), -float(half[1])),
        workspace_max_m=(float(half[0]), float(half[1])),
    )
    return axes, float(off.max())


def _require_fit(places: Sequence[Place], off: NDArray[np.float64], travel: float) -> None:
    worst = int(np.argmax(off))
    if off[worst] > LARGEST_MISFIT * travel:
        raise ConfigurationError(
            f"the places do not fit together: at {places[worst].words} the handle was {1e3 * off[worst]:.1f} mm from "
            "where the others put it. Begin again, bring the handle to each place as it is called, and hold it there, "
            "that of a stick against the stops."
        )


def _require_motion(places: Sequence[Place], counts: NDArray[np.float64]) -> None:
    for i, place in enumerate(places):
        for j in range(i):
            if np.abs(counts[i] - counts[j]).max() < LEAST_TRAVEL:
                raise ConfigurationError(
                    f"the counts at {place.words} are those at {places[j].words}: {_whole(counts[i])} and "
                    f"{_whole(counts[j])}. Move the handle, and make sure that it is this stick's."
                )


def _require_range(places: Sequence[Place], counts: NDArray[np.float64], ranges: Ranges) -> None:
    """Validate that no converter saturates, because motion beyond its range is not detected."""
    for place, pair in zip(places, counts, strict=True):
        for axis, count, (low, high) in zip("XY"[: len(ranges)], pair, ranges, strict=True):
            if low < high and not low < count < high:
                raise ConfigurationError(
                    f"at {place.words} axis {axis} is at the end of its range, {count:g}, but the handle moves on. "
                    "Set the range of the axis to the whole travel with its maker's tool, then begin again."
                )


def _require_plane(per_metre: NDArray[np.float64]) -> None:
    first, second = per_metre.T
    sine = abs(np.linalg.det(per_metre)) / max(float(np.hypot(*first) * np.hypot(*second)), 1e-300)
    if not sine > _STEEPEST:
        raise ConfigurationError(
            "the two axes are not independent: the counts change almost alike along x and along y. Begin again, and "
            "bring the handle to each place as it is called."
        )


def _whole(counts: NDArray[np.float64]) -> str:
    return f"({counts[0]:.0f}, {counts[1]:.0f})"
