"""Shapes in the plane with signed distances: circles, polygons, half-planes.

A signed distance is negative inside and 0 on the outline. It changes by at most the distance moved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError

Floats = NDArray[np.float64]
Point = tuple[float, float]
Box = tuple[Point, Point]
"""Lowest and highest corner [m]."""

FARTHEST = 100.0
"""Maximum absolute coordinate of a point of a shape [m]."""

MOST_POINTS = 256
"""Maximum number of corners of a polygon; each takes some nanoseconds per tick."""

_ROUND = 96
"""Number of points of the outline of a circle."""


def as_points(points: ArrayLike) -> Floats:
    """Return points as an (n, 2) float array [m].

    Raises
    ------
    ConfigurationError
        If they have another shape.
    """
    try:
        array = np.array(points, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ConfigurationError(f"points of shape {array.shape}: must be (n, 2) numbers.")
    return array


class Shape(ABC):
    """Area of the plane."""

    @abstractmethod
    def distance(self, points: ArrayLike) -> Floats:
        """Return the signed distance [m] of points, (n, 2) [m]: an (n,) array, negative inside."""

    @abstractmethod
    def outline(self, box: Box) -> Floats:
        """Return the corners of the outline of the shape, (n, 2) [m].

        Parameters
        ----------
        box : (2, 2) floats
            Lowest and highest corner of the visible area [m]. An unbounded shape is clipped to it.
        """

    @property
    @abstractmethod
    def bounds(self) -> Box:
        """Bounding box [m]; infinite for an unbounded shape."""


@dataclass(frozen=True)
class Circle(Shape):
    """A disc.

    Attributes
    ----------
    center : (2,) floats
        Centre [m].
    radius : float
        Radius [m], greater than 0.
    """

    center: Point
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", point(self.center, "circle.center"))
        object.__setattr__(self, "radius", number(self.radius, "circle.radius", above=0.0))

    def distance(self, points: ArrayLike) -> Floats:  # noqa: D102 (inherited)
        rows = as_points(points)
        return np.asarray(np.hypot(rows[:, 0] - self.center[0], rows[:, 1] - self.center[1]) - self.radius)

    def outline(self, box: Box) -> Floats:  # noqa: D102 (inherited)
        angles = np.linspace(0.0, 2.0 * math.pi, _ROUND, endpoint=False)
        return np.array(self.center) + self.radius * np.stack((np.cos(angles), np.sin(angles)), axis=1)

    @property
    def bounds(self) -> Box:  # noqa: D102 (inherited)
        (x, y), r = self.center, self.radius
        return (x - r, y - r), (x + r, y + r)


@dataclass(frozen=True)
class HalfPlane(Shape):
    """All points on one side of a line.

    Attributes
    ----------
    point : (2,) floats
        A point of the line [m].
    normal : (2,) floats
        Outward normal of the half-plane, of any length.
    """

    point: Point
    normal: Point

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", point(self.point, "half_plane.point"))
        x, y = point(self.normal, "half_plane.normal")
        length = math.hypot(x, y)
        if length < 1e-9:
            raise ConfigurationError(f"half_plane.normal = {self.normal!r}: must not be zero.")
        if abs(length - 1.0) > 1e-15:  # keep a written normal unchanged when it is read
            x, y = x / length, y / length
        object.__setattr__(self, "normal", (x, y))

    def distance(self, points: ArrayLike) -> Floats:  # noqa: D102 (inherited)
        rows, (x, y), (nx, ny) = as_points(points), self.point, self.normal
        return np.asarray((rows[:, 0] - x) * nx + (rows[:, 1] - y) * ny)

    def outline(self, box: Box) -> Floats:  # noqa: D102 (inherited)
        (left, low), (right, high) = box
        corners = np.array([(left, low), (right, low), (right, high), (left, high)], dtype=np.float64)
        depths, kept = self.distance(corners), []
        for k in range(4):
            following = (k + 1) % 4
            if depths[k] <= 0.0:
                kept.append(corners[k])
            if (depths[k] <= 0.0) != (depths[following] <= 0.0):
                share = depths[k] / (depths[k] - depths[following])
                kept.append(corners[k] + share * (corners[following] - corners[k]))
        return np.array(kept).reshape(-1, 2)

    @property
    def bounds(self) -> Box:  # noqa: D102 (inherited)
        return (-math.inf, -math.inf), (math.inf, math.inf)


@dataclass(frozen=True)
class Polygon(Shape):
    """Polygon whose edges meet only in its corners.

    Attributes
    ----------
    points : tuple of (2,) floats
        Corners [m] in order, in either orientation; the last is connected to the first.
    """

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.points, list | tuple | np.ndarray) or not 3 <= len(self.points) <= MOST_POINTS:
            count = len(self.points) if hasattr(self.points, "__len__") else 0
            raise ConfigurationError(f"polygon.points: has {count} corners; must have 3 to {MOST_POINTS}.")
        corners = tuple(point(one, f"polygon.points[{k}]") for k, one in enumerate(self.points))
        object.__setattr__(self, "points", corners)
        meeting = _first_meeting(np.array(corners))
        if meeting is not None:
            one, other = meeting
            raise ConfigurationError(
                f"polygon.points: the edges from corner {one} and from corner {other} (counted from 0) meet; the "
                "edges of a polygon must not meet but in its corners."
            )

    def distance(self, points: ArrayLike) -> Floats:  # noqa: D102 (inherited)
        rows = as_points(points)
        x, y = rows[:, 0], rows[:, 1]
        nearest, inside = np.full(len(rows), np.inf), np.zeros(len(rows), bool)
        for (ax, ay), (bx, by) in zip(self.points, (*self.points[1:], self.points[0]), strict=True):
            ex, ey = bx - ax, by - ay
            along = np.clip(((x - ax) * ex + (y - ay) * ey) / (ex * ex + ey * ey), 0.0, 1.0)
            nearest = np.minimum(nearest, (x - ax - along * ex) ** 2 + (y - ay - along * ey) ** 2)
            if ay != by:
                inside ^= ((ay > y) != (by > y)) & (x < ax + (y - ay) * ex / ey)
        return np.asarray(np.where(inside, -1.0, 1.0) * np.sqrt(nearest))

    def outline(self, box: Box) -> Floats:  # noqa: D102 (inherited)
        return np.array(self.points)

    @property
    def bounds(self) -> Box:  # noqa: D102 (inherited)
        xs, ys = zip(*self.points, strict=True)
        return (min(xs), min(ys)), (max(xs), max(ys))


def _first_meeting(corners: Floats) -> tuple[int, int] | None:
    """Return the first two edges that meet outside of common corners, as indices of their first corners."""
    count = len(corners)
    ends = np.roll(corners, -1, axis=0)
    for k in range(count):
        a, b = corners[k], ends[k]
        if (a == b).all():
            return k, (k + 1) % count
        c = ends[(k + 1) % count]
        if _cross(b - a, c - b) == 0.0 and np.dot(b - a, c - b) < 0.0:  # the edge folds back
            return k, (k + 1) % count
        others = np.array([j for j in range(k + 2, count) if (j + 1) % count != k], dtype=int)
        if len(others):
            meets = _edges_meet(a, b, corners[others], ends[others])
            if meets.any():
                return k, int(others[np.argmax(meets)])
    return None


def _cross(u: Floats, v: Floats) -> Floats:
    crossed: Floats = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    return crossed


def _edges_meet(a: Floats, b: Floats, c: Floats, d: Floats) -> NDArray[np.bool_]:
    """Return a mask of the edges from `c` to `d`, (n, 2) each, that intersect the edge from `a` to `b`."""
    across_c, across_d = np.sign(_cross(b - a, c - a)), np.sign(_cross(b - a, d - a))
    across_a, across_b = np.sign(_cross(d - c, a - c)), np.sign(_cross(d - c, b - c))
    low, high = np.minimum(a, b), np.maximum(a, b)
    apart = ((np.maximum(c, d) < low) | (np.minimum(c, d) > high)).any(axis=1)
    return np.asarray((across_c * across_d <= 0.0) & (across_a * across_b <= 0.0) & ~apart)


def number(value: Any, what: str, *, above: float = -math.inf) -> float:
    """Return a coordinate or length [m]; raise `ConfigurationError` unless it is finite and within bounds."""
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not plain or not abs(value) <= FARTHEST or not value > above:
        least = f" greater than {above:g} and" if above > -math.inf else ""
        raise ConfigurationError(f"{what} = {value!r:.80}: must be a number{least} of at most {FARTHEST:g} m.")
    return float(value)


def point(value: Any, what: str) -> Point:
    """Return a point [m]; raise `ConfigurationError` unless it is two finite numbers within `FARTHEST`."""
    if not isinstance(value, list | tuple | np.ndarray) or len(value) != 2:
        raise ConfigurationError(f"{what} = {value!r:.80}: must be two numbers, [x, y].")
    return number(value[0], f"{what}[0]"), number(value[1], f"{what}[1]")
