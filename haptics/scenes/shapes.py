"""Shapes in the plane: circles, polygons, half-planes, each with its signed distance.

A signed distance is negative inside, changes by at most the way that one goes, and is 0 on the outline.
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
"""No point of a shape may be farther than this from the origin along an axis [m]."""

MOST_POINTS = 256
"""Corners that a polygon may have: each takes the tick some nanoseconds."""

_ROUND = 96
"""Points of a circle's outline."""


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
    """A part of the plane."""

    @abstractmethod
    def distance(self, points: ArrayLike) -> Floats:
        """Return the signed distance [m] of points, (n, 2) [m]: an (n,) array, negative inside."""

    @abstractmethod
    def outline(self, box: Box) -> Floats:
        """Return the corners of the shape's outline, (n, 2) [m].

        Parameters
        ----------
        box : (2, 2) floats
            What is looked at: lowest and highest corner [m]. A shape without an end is cut off there.
        """

    @property
    @abstractmethod
    def bounds(self) -> Box:
        """The box that the shape lies in [m]; infinite where it has no end."""


@dataclass(frozen=True)
class Circle(Shape):
    """A disc.

    Attributes
    ----------
    center : (2,) floats
        Its centre [m].
    radius : float
        Its radius [m], greater than 0.
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
    """Everything on one side of a line.

    Attributes
    ----------
    point : (2,) floats
        A point of the line [m].
    normal : (2,) floats
        Points out of the half-plane, at right angles to the line; its length does not matter.
    """

    point: Point
    normal: Point

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", point(self.point, "half_plane.point"))
        x, y = point(self.normal, "half_plane.normal")
        length = math.hypot(x, y)
        if length < 1e-9:
            raise ConfigurationError(f"half_plane.normal = {self.normal!r}: must not be zero.")
        if abs(length - 1.0) > 1e-15:  # so that what was written down is read as it was
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
    """A polygon whose edges do not meet but in its corners.

    Attributes
    ----------
    points : tuple of (2,) floats
        Its corners [m], one after the other, in either sense; the last is joined to the first.
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
    """Return the first two edges, by the numbers of their first corners, that meet where they must not."""
    count = len(corners)
    ends = np.roll(corners, -1, axis=0)
    for k in range(count):
        a, b = corners[k], ends[k]
        if (a == b).all():
            return k, (k + 1) % count
        c = ends[(k + 1) % count]
        if _cross(b - a, c - b) == 0.0 and np.dot(b - a, c - b) < 0.0:  # it goes back on itself
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
    """Tell which of the edges from `c` to `d`, (n, 2) each, have a point in common with the one from `a` to `b`."""
    across_c, across_d = np.sign(_cross(b - a, c - a)), np.sign(_cross(b - a, d - a))
    across_a, across_b = np.sign(_cross(d - c, a - c)), np.sign(_cross(d - c, b - c))
    low, high = np.minimum(a, b), np.maximum(a, b)
    apart = ((np.maximum(c, d) < low) | (np.minimum(c, d) > high)).any(axis=1)
    return np.asarray((across_c * across_d <= 0.0) & (across_a * across_b <= 0.0) & ~apart)


def number(value: Any, what: str, *, above: float = -math.inf) -> float:
    """Return a coordinate or a length [m]; raise `ConfigurationError` unless it is finite, bounded and `above` that."""
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
