"""The shapes of a picture: at most `MOST`, each a rectangle in which a program draws smooth edges. No pyglet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 100
"""No picture has more shapes than this."""

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
"""A corner: where it is on the window and in the shape [pixel]; half the size of the shape; its kind, the radius of its
corners, the width of its line (0: filled) and of its halo; the colours of both."""

_CORNERS = np.array([(-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)], np.float64)


def colour_of(colour: str) -> Colour:
    """Return the parts, 0 to 1, of a colour like ``#e8eaed``."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255


class Marks:
    """Collects the shapes of a picture in an array that is made once.

    Parameters
    ----------
    halo : str
        Colour of the thin edge around each shape, which tells it from any ground.
    halo_width : float
        Its width [pixel].

    Attributes
    ----------
    count : int
        Shapes collected since `clear`.
    """

    def __init__(self, halo: str, halo_width: float) -> None:
        self._vertices: Vertices = np.zeros((MOST, 6), VERTEX)
        self._halo, self._halo_width = (*colour_of(halo), 1.0), halo_width
        self.count = 0

    @property
    def vertices(self) -> Vertices:
        """Corners of all shapes, six for each."""
        return self._vertices[: self.count].reshape(-1)

    def clear(self) -> None:
        """Forget all shapes."""
        self.count = 0

    def disc(self, place: Place, radius: float, colour: str, line: float = 0.0, share: float = 1.0) -> None:
        """Add a circle, or only its line [pixel]; `share` is how opaque it is."""
        self._add(place, (1.0, 0.0), (radius, radius), (BOX, radius, line), colour, share)

    def square(self, place: Place, half: float, colour: str, line: float = 0.0, share: float = 1.0) -> None:
        """Add a square by half its side [pixel]."""
        self._add(place, (1.0, 0.0), (half, half), (BOX, 0.25 * half, line), colour, share)

    def box(self, place: Place, half: Place, radius: float, colour: str, share: float = 1.0) -> None:
        """Add a rectangle by half its width and height, with round corners [pixel]."""
        self._add(place, (1.0, 0.0), half, (BOX, radius, 0.0), colour, share)

    def stroke(self, start: Place, end: Place, width: float, colour: str, share: float = 1.0) -> None:
        """Add a line with round ends."""
        middle, along, length = _between(start, end)
        half = 0.5 * width
        self._add(middle, along, (0.5 * length + half, half), (BOX, half, 0.0), colour, share)

    def arrow(self, start: Place, end: Place, width: float, colour: str) -> None:
        """Add an arrow: a line and a head, two shapes; the head is as long as four widths, or as the arrow."""
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
    """Return the middle between two places, the direction from one to the other, and their distance."""
    across, up = end[0] - start[0], end[1] - start[1]
    length = float(np.hypot(across, up))
    along = (across / length, up / length) if length > 0 else (1.0, 0.0)
    return (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1])), along, length
