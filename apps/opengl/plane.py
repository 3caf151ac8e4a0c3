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

    def holds(self, other: Area, slack: float = 0.5) -> bool:
        """Return True if `other` is inside this area, with a tolerance of `slack` pixels."""
        return (
            other.x >= self.x - slack
            and other.y >= self.y - slack
            and other.x + other.width <= self.x + self.width + slack
            and other.y + other.height <= self.y + self.height + slack
        )


@dataclass(frozen=True)
class Plane:
    """Mapping between a workspace [m] and an area of the window [pixel], with equal scales.

    The mapping depends on area and workspace only, so that a hand moved by the mouse never jumps.
    """

    area: Area
    workspace: Corners

    @property
    def scale(self) -> float:
        """Pixels per metre."""
        (left, low), (right, high) = self.workspace
        return min(self.area.width / max(right - left, 1e-9), self.area.height / max(high - low, 1e-9))

    def to_window(self, x: float, y: float) -> tuple[float, float]:
        """Return the position in the window of a point of the plane."""
        (left, low), (right, high) = self.workspace
        across, up = self.area.middle
        return across + self.scale * (x - 0.5 * (left + right)), up + self.scale * (y - 0.5 * (low + high))

    def to_plane(self, across: float, up: float) -> tuple[float, float]:
        """Return the point of the plane under a pixel, clipped to the workspace."""
        (left, low), (right, high) = self.workspace
        middle_x, middle_y = self.area.middle
        x = 0.5 * (left + right) + (across - middle_x) / self.scale
        y = 0.5 * (low + high) + (up - middle_y) / self.scale
        return min(max(x, left), right), min(max(y, low), high)

    @property
    def outline(self) -> Area:
        """The workspace in the window."""
        x, y = self.to_window(*self.workspace[0])
        right, top = self.to_window(*self.workspace[1])
        return Area(x, y, right - x, top - y)
