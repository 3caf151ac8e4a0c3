"""Workspace of an end effector: a rectangle in the coordinates of its device."""

from __future__ import annotations

from typing import NamedTuple

Point = tuple[float, float]
"""x and y [m]."""


class Workspace(NamedTuple):
    """Workspace rectangle of a device, by its lower left and upper right corner [m]."""

    lower: Point
    upper: Point

    @property
    def centre(self) -> Point:
        """Centre of the rectangle [m]."""
        return (self.lower[0] + self.upper[0]) / 2.0, (self.lower[1] + self.upper[1]) / 2.0

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Corners of the rectangle [m]."""
        (left, low), (right, high) = self.lower, self.upper
        return (left, low), (left, high), (right, low), (right, high)

    def contains(self, x: float, y: float) -> bool:
        """Return True if (x, y) [m] is inside or on the edge; False for nan."""
        return self.lower[0] <= x <= self.upper[0] and self.lower[1] <= y <= self.upper[1]

    def __str__(self) -> str:
        return f"{self.lower[0]:g} to {self.upper[0]:g} m by {self.lower[1]:g} to {self.upper[1]:g} m"
