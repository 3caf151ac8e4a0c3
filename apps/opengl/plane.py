"""Rectangles of a window, in pixels from the lower left corner, and the plane. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

Corners = tuple[tuple[float, float], tuple[float, float]]
"""Lower and upper corner of a workspace [m]."""


@dataclass(frozen=True)
class Area:
    """A rectangle: its lower left corner and its size [pixel]."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """The centre."""
        return self.x + 0.5 * self.width, self.y + 0.5 * self.height

    def holds(self, other: Area) -> bool:
        """Return True if `other` is inside this area, with a tolerance of half a pixel."""
        return (
            other.x >= self.x - 0.5
            and other.y >= self.y - 0.5
            and other.x + other.width <= self.x + self.width + 0.5
            and other.y + other.height <= self.y + self.height + 0.5
        )


class Plane:
    """Mapping between a workspace [m] and an area of the window [pixel], with equal scales.

    The mapping depends on area and workspace only, so that a hand moved by the mouse never jumps.

    Attributes
    ----------
    scale : float
        Pixels per metre.
    outline : Area
        The workspace in the window.
    """

    def __init__(self, area: Area, workspace: Corners) -> None:
        self.area, self.workspace = area, workspace
        (left, low), (right, high) = workspace
        self.scale = min(area.width / max(right - left, 1e-9), area.height / max(high - low, 1e-9))
        (x, y), (end, top) = self.to_window(left, low), self.to_window(right, high)
        self.outline = Area(x, y, end - x, top - y)

    def to_window(self, x: float, y: float) -> tuple[float, float]:
        """Return the position in the window of a point of the plane."""
        (left, low), (right, high) = self.workspace
        across, up = self.area.middle
        return across + self.scale * (x - 0.5 * (left + right)), up + self.scale * (y - 0.5 * (low + high))

    def to_plane(self, across: float, up: float) -> tuple[float, float]:
        """Return the point of the plane under a pixel, clipped to the workspace."""
        (left, low), (right, high) = self.workspace
        middle, scale = self.area.middle, self.scale
        x = 0.5 * (left + right) + (across - middle[0]) / scale
        y = 0.5 * (low + high) + (up - middle[1]) / scale
        return min(max(x, left), right), min(max(y, low), high)
