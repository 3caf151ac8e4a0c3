"""Shapes and wide lines of the stage as vertices for shaders. No pyglet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Place = tuple[float, float]
Colour = tuple[float, float, float]
Floats = NDArray[np.float64]
Vertices = NDArray[np.void]

MOST = 100
"""Maximum number of shapes in a picture."""

BOX, TRIANGLE = 0.0, 1.0

MARK_VERTEX = np.dtype(
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

RIBBON_VERTEX = np.dtype([("place", "<f4", (2,)), ("across", "<f4"), ("half_width", "<f4"), ("colour", "<f4", (4,))])
"""Vertex of an edge: its position in the window, and its distance from the centre line [pixel]."""

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
        self._vertices: Vertices = np.zeros((MOST, 6), MARK_VERTEX)
        self._halo, self._halo_width = (*colour_of(halo), 1.0), halo_width
        self.count = 0

    @property
    def vertices(self) -> Vertices:
        """Vertices of all shapes, six per shape."""
        return self._vertices[: self.count].reshape(-1)

    def clear(self) -> None:
        """Remove all shapes."""
        self.count = 0

    def disc(self, place: Place, radius: float, colour: str, line: float = 0.0) -> None:
        """Add a circle, or its outline with a line width [pixel]."""
        self._add(place, (1.0, 0.0), (radius, radius), (BOX, radius, line), colour, 1.0)

    def square(self, place: Place, half: float, colour: str, share: float = 1.0) -> None:
        """Add a square by half its side length [pixel]; `share` is its opacity."""
        self._add(place, (1.0, 0.0), (half, half), (BOX, 0.25 * half, 0.0), colour, share)

    def box(self, place: Place, half: Place, radius: float, colour: str) -> None:
        """Add a rectangle with round corners by half its width and height [pixel]."""
        self._add(place, (1.0, 0.0), half, (BOX, radius, 0.0), colour, 1.0)

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


LEAST_STEP = 2.0
"""Minimum distance of drawn points of a trail [pixel]; points accumulate where the contact rests."""

_TURNS = 5
_NONE = np.zeros(0, RIBBON_VERTEX)


def thinned(points: Floats, step: float = LEAST_STEP) -> NDArray[np.intp]:
    """Return indices of points, (n, 2), about `step` apart along their line, with both ends."""
    if len(points) < 2:
        return np.arange(len(points))
    way = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    chosen = np.flatnonzero(np.diff(np.floor(way / step), prepend=-1.0))
    return chosen if chosen[-1] == len(points) - 1 else np.append(chosen, len(points) - 1)


def ribbon(points: Floats, width: float, colour: str, shares: Floats) -> Vertices:
    """Return the strip along `points`, (n, 2) [pixel], in one colour.

    `shares`, (n,), is the opacity. The strip of a single point is empty.
    """
    if len(points) < 2:
        return _NONE
    along = np.gradient(points, axis=0)
    length = np.hypot(along[:, 0], along[:, 1])
    along /= np.maximum(length, 1e-9)[:, None]
    reach = 0.5 * width + 1.0  # margin for the smooth edge
    side = reach * np.column_stack((-along[:, 1], along[:, 0]))
    strip = np.zeros((len(points), 2), RIBBON_VERTEX)
    strip["place"][:, 0], strip["place"][:, 1] = points + side, points - side
    strip["across"] = (reach, -reach)
    strip["half_width"] = 0.5 * width
    strip["colour"][..., :3] = colour_of(colour)
    strip["colour"][..., 3] = shares[:, None]
    return strip.reshape(-1)


def zigzag(points: Floats, width: float, colour: str, share: float = 1.0) -> Vertices:
    """Return the strip along a line with sharp corners, (n, 2) [pixel]: one rectangle per segment.

    The rectangles extend beyond the ends of the segments to fill the corners.
    """
    if len(points) < 2:
        return _NONE
    along = np.diff(points, axis=0)
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)[:, None]
    reach = 0.5 * width + 1.0
    side, end = reach * np.column_stack((-along[:, 1], along[:, 0])), 0.45 * width * along
    strip = np.zeros((len(along), 6), RIBBON_VERTEX)
    first, last = points[:-1] - end, points[1:] + end
    # The first and the last vertex are repeated: degenerate triangles connect consecutive rectangles.
    corners = (first + side, first + side, first - side, last + side, last - side, last - side)
    strip["place"] = np.stack(corners, axis=1)
    strip["across"] = (reach, reach, -reach, reach, -reach, -reach)
    strip["half_width"] = 0.5 * width
    strip["colour"] = (*colour_of(colour), share)
    return strip.reshape(-1)


def spring(start: Floats, end: Floats, amplitude: float) -> Floats:
    """Return the points of a coil from `start` to `end`, (2,) each.

    The coil becomes narrower when stretched.

    Parameters
    ----------
    amplitude : float
        Half the width of the coil at its natural length, which is `amplitude` times twice its number of turns [pixel].
    """
    along = end - start
    length = float(np.hypot(*along))
    if length < 1e-6:
        return np.stack((start, end))
    along = along / length
    side = np.array((-along[1], along[0]))
    natural = 2.0 * _TURNS * amplitude
    high = amplitude * float(np.clip(1.4 - 0.4 * length / natural, 0.35, 1.0)) * min(1.0, length / (4 * amplitude))
    # Straight ends, and a corner at every half turn.
    places = np.concatenate(([0.0], np.linspace(0.14, 0.86, 2 * _TURNS + 1), [1.0]))
    heights = np.zeros(len(places))
    heights[2:-2] = high * np.where(np.arange(2 * _TURNS - 1) % 2, -1.0, 1.0)
    points: Floats = start + np.outer(places * length, along) + np.outer(heights, side)
    return points
