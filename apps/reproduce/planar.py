"""Planar vectors for the reproductions: inputs, norms, signed angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def along_x(values: ArrayLike) -> Array:
    """Return planar vectors (n, 2) with `values` (n,) as their first component."""
    first = np.asarray(values, dtype=np.float64)
    return np.column_stack((first, np.zeros(len(first))))


def norms(vectors: ArrayLike) -> Array:
    """Return the norm of each row of `vectors` (n, 2)."""
    array = np.asarray(vectors, dtype=np.float64)
    return np.asarray(np.hypot(array[:, 0], array[:, 1]))


def angles(first: Array, second: Array) -> Array:
    """Return the angle from each row of `first` to the row of `second` [deg], anticlockwise positive.

    Both arrays are (n, 2).
    """
    cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    return np.asarray(np.degrees(np.arctan2(cross, np.sum(first * second, axis=1))))


def circling(radius: float, angular_velocity: float, period: float, turns: float) -> Array:
    """Return the velocities (n, 2) [m/s] of a motion on a circle.

    The circle has the `radius` [m], the motion the `angular_velocity` [rad/s].
    """
    count = round(turns * 2.0 * np.pi / (angular_velocity * period))
    angle = angular_velocity * period * np.arange(1, count + 1)
    return radius * angular_velocity * np.column_stack((-np.sin(angle), np.cos(angle)))
