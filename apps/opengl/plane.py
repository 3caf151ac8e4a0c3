"""Rectangles of a window, in pixels from the lower left corner, and the plane in one of them. No pyglet."""

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
        """Its centre."""
        return self.x + 0.5 * self.width, self.y + 0.5 * self.height

    def holds(self, other: Area, slack: float = 0.5) -> bool:
        """Tell whether `other` lies inside, but for `slack` pixels."""
        return (
            other.x >= self.x - slack
            and other.y >= self.y - slack
            and other.x + other.width <= self.x + self.width + slack
            and other.y + other.height <= self.y + self.height + slack
        )


@dataclass(frozen=True)
class Plane:
    """A workspace in an area, with equal scales: places on the plane [m] and on the window [pixel].

    It lies in the same place whatever else is shown, so that a hand that is moved by a mouse never jumps.
    """

    area: Area
    workspace: Corners

    @property
    def scale(self) -> float:
        """Pixels per metre."""
        (left, low), (right, high) = self.workspace
        return min(self.area.width / max(right - left, 1e-9), self.area.height / max(high - low, 1e-9))

    def to_window(self, x: float, y: float) -> tuple[float, float]:
        """Return where a place of the plane is on the window."""
        (left, low), (right, high) = self.workspace
        across, up = self.area.middle
        return across + self.scale * (x - 0.5 * (left + right)), up + self.scale * (y - 0.5 * (low + high))

    def to_plane(self, across: float, up: float) -> tuple[float, float]:
        """Return the place of the plane under a pixel, kept in the workspace."""
        (left, low), (right, high) = self.workspace
        middle_x, middle_y = self.area.middle
        x = 0.5 * (left + right) + (across - middle_x) / self.scale
        y = 0.5 * (low + high) + (up - middle_y) / self.scale
        return min(max(x, left), right), min(max(y, low), high)

    @property
    def outline(self) -> Area:
        """The workspace on the window."""
        x, y = self.to_window(*self.workspace[0])
        right, top = self.to_window(*self.workspace[1])
        return Area(x, y, right - x, top - y)
