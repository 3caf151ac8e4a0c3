"""Shapes of a picture, each a rectangle in which a shader draws smooth edges. No pyglet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 100
"""Maximum number of shapes in a picture."""

Place = tuple[float, float]
Colour = tuple[float, float, float]
Vertices = NDArray[np.void]

BOX, TRIANGLE = 0.0, 1.0

VERTEX = np.dtype(
    [
        ("place", "<f4", (2,)),
        ("local", "<f4", (2,)),
        ("half_size", "<f4", (2,)),
        ("style", "<f4", (4,)),
        ("colour", "<f4", (4,)),
        ("halo", "<f4", (4,)),
    ]
)
"""Vertex: position in window and shape, half size of the shape [pixel], style, and colours.

The style holds the kind of the shape, the radius of its corners, its line width (0: filled), and the width of its halo.
"""

_CORNERS = np.array([(-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)], np.float64)


def colour_of(colour: str) -> Colour:
    """Return the components, 0 to 1, of a colour such as ``#e8eaed``."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255


class Marks:
    """Collects the shapes of a picture in a preallocated array.

    Parameters
    ----------
    halo : str
        Colour of the thin edge around each shape, which separates it from any background.
    halo_width : float
        Width of that edge [pixel].

    Attributes
    ----------
    count : int
        Number of shapes added since `clear`.
    """

    def __init__(self, halo: str, halo_width: float) -> None:
        self._vertices: Vertices = np.zeros((MOST, 6), VERTEX)
        self._halo, self._halo_width = (*colour_of(halo), 1.0), halo_width
        self.count = 0

    @property
    def vertices(self) -> Vertices:
        """Vertices of all shapes, six per shape."""
        return self._vertices[: self.count].reshape(-1)

    def clear(self) -> None:
        """Remove all shapes."""
        self.count = 0

    def disc(self, place: Place, radius: float, colour: str, line: float = 0.0, share: float = 1.0) -> None:
        """Add a circle, or its outline with a line width [pixel]; `share` is its opacity."""
        self._add(place, (1.0, 0.0), (radius, radius), (BOX, radius, line), colour, share)

    def square(self, place: Place, half: float, colour: str, line: float = 0.0, share: float = 1.0) -> None:
        """Add a square by half its side length [pixel]."""
        self._add(place, (1.0, 0.0), (half, half), (BOX, 0.25 * half, line), colour, share)

    def box(self, place: Place, half: Place, radius: float, colour: str, share: float = 1.0) -> None:
        """Add a rectangle with round corners by half its width and height [pixel]."""
        self._add(place, (1.0, 0.0), half, (BOX, radius, 0.0), colour, share)

    def stroke(self, start: Place, end: Place, width: float, colour: str, share: float = 1.0) -> None:
        """Add a line with round ends."""
        middle, along, length = _between(start, end)
        half = 0.5 * width
        self._add(middle, along, (0.5 * length + half, half), (BOX, half, 0.0), colour, share)

    def arrow(self, start: Place, end: Place, width: float, colour: str) -> None:
        """Add an arrow of two shapes, a line and a head.

        The head is four line widths long, or as long as the arrow if that is shorter.
        """
        _, along, length = _between(start, end)
        head = min(4.0 * width, length)
        if head <= 0.0:
            return
        foot = end[0] - head * along[0], end[1] - head * along[1]
        self.stroke(start, foot, width * min(1.0, length / (4.0 * width)), colour)
        middle = 0.5 * (foot[0] + end[0]), 0.5 * (foot[1] + end[1])
        self._add(middle, along, (0.5 * head, 0.42 * head), (TRIANGLE, 0.0, 0.0), colour, 1.0)

    def _add(
        self, place: Place, along: Place, half: Place, style: tuple[float, float, float], colour: str, share: float
    ) -> None:
        if self.count == MOST:
            return
        margin = self._halo_width + 1.5
        local = _CORNERS * (half[0] + margin, half[1] + margin)
        corners = self._vertices[self.count]
        corners["local"] = local
        corners["place"][:, 0] = place[0] + local[:, 0] * along[0] - local[:, 1] * along[1]
        corners["place"][:, 1] = place[1] + local[:, 0] * along[1] + local[:, 1] * along[0]
        corners["half_size"] = half
        corners["style"] = (*style, self._halo_width)
        corners["colour"] = (*colour_of(colour), share)
        corners["halo"] = (*self._halo[:3], share * self._halo[3])
        self.count += 1


def _between(start: Place, end: Place) -> tuple[Place, Place, float]:
    """Return the midpoint between two points, the direction from first to second, and their distance."""
    across, up = end[0] - start[0], end[1] - start[1]
    length = float(np.hypot(across, up))
    along = (across / length, up / length) if length > 0 else (1.0, 0.0)
    return (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1])), along, length
