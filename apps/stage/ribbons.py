"""Lines with a width, as triangle strips: the trail, and the spring to the hand. No pyglet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.stage.marks import colour_of

Floats = NDArray[np.float64]
Vertices = NDArray[np.void]

VERTEX = np.dtype([("place", "<f4", (2,)), ("across", "<f4"), ("half_width", "<f4"), ("colour", "<f4", (4,))])
"""A vertex of an edge: its position in the window, and its distance from the centre line [pixel]."""

LEAST_STEP = 2.0
"""Minimum distance of drawn points of a trail [pixel]; points accumulate where the contact rests."""

_TURNS = 5
_NONE = np.zeros(0, VERTEX)


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
    strip = np.zeros((len(points), 2), VERTEX)
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
    strip = np.zeros((len(along), 6), VERTEX)
    first, last = points[:-1] - end, points[1:] + end
    # The first and the last vertex are repeated: degenerate triangles connect consecutive rectangles.
    corners = (first + side, first + side, first - side, last + side, last - side, last - side)
    strip["place"] = np.stack(corners, axis=1)
    strip["across"] = (reach, reach, -reach, reach, -reach, -reach)
    strip["half_width"] = 0.5 * width
    strip["colour"] = (*colour_of(colour), share)
    return strip.reshape(-1)


def fading(count: int) -> Floats:
    """Return the opacity of the points of a trail, (count,), increasing to the newest point."""
    return np.linspace(0.06, 1.0, count)


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
