"""What lies where on the plane, as small pictures of numbers for the program that draws the ground. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.opengl.plane import Corners

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

LOOKS = ("plain", "ice", "wood", "rubber", "metal", "glass")
"""The looks of materials."""

CELL = 3
"""A number stands for so many pixels in either direction; in between the graphics card makes smooth what is smooth."""

REACH = 4.0
"""The distances to borders are told up to so many millimetres."""


@dataclass(frozen=True)
class Ground:
    """The plane in numbers from 0 to 255, the lowest row first.

    Attributes
    ----------
    looks : (rows, columns, 4) array
        Shares of ice, wood, rubber and metal.
    others : (rows, columns, 4) array
        Share of glass, level of friction, and the distances to the borders of regions and of walls: 0 is `REACH`
        inside, 255 as far outside.
    """

    looks: Bytes
    others: Bytes


def plain_ground(look: str = "plain") -> Ground:
    """Return a plane with one material, and nothing on it."""
    looks, others = np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2, 4), np.uint8)
    others[..., 2:] = 255
    share = np.zeros((2, 2, len(LOOKS)))
    share[..., LOOKS.index(look)] = 1.0
    looks[...] = _bytes(share[..., 1:5])
    others[..., 0] = _bytes(share[..., 5])
    return Ground(looks, others)


def grid(corners: Corners, size: tuple[float, float]) -> Floats:
    """Return the places of a picture's numbers on a plane between `corners` [m] that is so large [pixel].

    Returns
    -------
    (rows, columns, 2) float array
        The middles of the cells [m], the lowest row first.
    """
    (left, low), (right, high) = corners
    columns, rows = (max(round(length / CELL), 2) for length in size)
    x = left + (np.arange(columns) + 0.5) / columns * (right - left)
    y = low + (np.arange(rows) + 0.5) / rows * (high - low)
    return np.stack(np.meshgrid(x, y), axis=2)


def _bytes(shares: Floats) -> Bytes:
    return np.round(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
