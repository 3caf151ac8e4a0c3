"""Image maps: laws whose numbers follow the grey levels of an image.

The map defines the scale: grey level 0 has the numbers of the law ``lower``, and 255 the numbers of ``upper``, with
linear interpolation between. The image is interpolated bilinearly between the centres of its pixels and extended by its
edge beyond them. An edge in an image is treated like any other border: the image is smoothed over a square, so that it
never changes faster than the borders of its scene.

Images are ``.npy`` files of unsigned bytes, or grey ``.pgm`` files; both are read without an image library.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.reading import read_header, read_small
from haptics.scenes.shapes import Floats, Point, as_points, number, point

WHITE = 255
"""Highest grey level."""

MOST_PIXELS = 65536
"""Maximum number of pixels of an image: 256 by 256. Every recording contains the whole image."""

_SLANTED = math.sqrt(2.0)
"""Ratio between the side of a square and its width along the diagonal, for edges at 45 degrees."""


@dataclass(frozen=True, eq=False)
class ImageMap:
    """Numbers of a law that follow an image.

    Attributes
    ----------
    levels : (rows, columns) uint8 array
        Grey levels; the first row is the uppermost.
    lower, upper : Law
        Laws of grey levels 0 and 255, of one class.
    corner : (2,) floats
        Lower left corner of the image [m].
    size : (2,) floats
        Width and height of the image [m].
    """

    levels: NDArray[np.uint8]
    lower: Law
    upper: Law
    corner: Point
    size: Point

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _checked_levels(self.levels))
        if not isinstance(self.lower, Law) or type(self.lower) is not type(self.upper):
            raise ConfigurationError("image.lower and image.upper: must be two laws of one class.")
        object.__setattr__(self, "corner", point(self.corner, "image.corner"))
        width, height = point(self.size, "image.size")
        number(width, "image.size[0]", above=0.0)
        number(height, "image.size[1]", above=0.0)
        object.__setattr__(self, "size", (width, height))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageMap):
            return NotImplemented
        mine, theirs = ((m.lower, m.upper, m.corner, m.size) for m in (self, other))
        return mine == theirs and np.array_equal(self.levels, other.levels)

    def __hash__(self) -> int:
        return hash((self.levels.tobytes(), self.lower, self.upper, self.corner, self.size))

    @property
    def pitch(self) -> Point:
        """Distance between the centres of two pixels, along both axes [m]."""
        rows, columns = self.levels.shape
        return self.size[0] / columns, self.size[1] / rows

    def smoothed(self, border: float) -> Floats:
        """Return the image as fractions 0 to 1, (rows, columns), with no edge narrower than `border` [m].

        The mean over m pixels changes by at most 1/m from one pixel to the next. Along the diagonal the changes along
        both axes add up, which requires the factor sqrt(2).
        """
        shares: Floats = self.levels / WHITE
        for axis, pitch in ((1, self.pitch[0]), (0, self.pitch[1])):
            shares = _running_mean(shares, max(math.ceil(_SLANTED * border / pitch - 1e-9), 1), axis)
        return shares

    def share_at(self, points: ArrayLike, border: float) -> Floats:
        """Return the mixing fraction of ``upper``, 0 to 1, at points (n, 2) [m]: an (n,) array."""
        at, shares = as_points(points), self.smoothed(border)
        rows, columns = shares.shape
        (x0, y0), (dx, dy) = self.corner, self.pitch
        x = np.clip((at[:, 0] - x0) / dx - 0.5, 0.0, columns - 1.0)
        y = np.clip(rows - 0.5 - (at[:, 1] - y0) / dy, 0.0, rows - 1.0)
        j, i = np.minimum(x.astype(np.int64), max(columns - 2, 0)), np.minimum(y.astype(np.int64), max(rows - 2, 0))
        u, v = x - j, y - i
        right, below = np.minimum(j + 1, columns - 1), np.minimum(i + 1, rows - 1)
        above = shares[i, j] + u * (shares[i, right] - shares[i, j])
        under = shares[below, j] + u * (shares[below, right] - shares[below, j])
        return np.asarray(above + v * (under - above))


def _running_mean(shares: Floats, count: int, axis: int) -> Floats:
    """Return the running mean over `count` neighbours along an axis, extended by the edge values."""
    before = (count - 1) // 2
    width = [(0, 0), (0, 0)]
    width[axis] = (before + 1, count - 1 - before)
    padded = np.pad(shares, width, mode="edge")
    sums = np.cumsum(padded, axis=axis)
    length = shares.shape[axis]
    upper, lower = (np.take(sums, range(start, start + length), axis=axis) for start in (count, 0))
    return np.asarray(np.clip((upper - lower) / count, 0.0, 1.0))


def _checked_levels(levels: Any) -> NDArray[np.uint8]:
    """Return grey levels as a read-only array; raise `ConfigurationError` if they are invalid."""
    array = np.asarray(levels)
    if array.ndim != 2 or array.dtype.kind not in "iu" or not 1 <= array.size <= MOST_PIXELS:
        raise ConfigurationError(
            f"image: {array.dtype} of shape {array.shape}; must be whole numbers, rows by columns, at most "
            f"{MOST_PIXELS} pixels."
        )
    if array.min() < 0 or array.max() > WHITE:
        raise ConfigurationError(f"image: has grey levels from {array.min()} to {array.max()}; must be 0 to {WHITE}.")
    kept = array.astype(np.uint8)
    kept.flags.writeable = False
    return kept


def read_levels(path: str | Path) -> NDArray[np.uint8]:
    """Return the grey levels in a ``.npy`` or ``.pgm`` file, (rows, columns).

    Raises
    ------
    ConfigurationError
        If the file is not such an image, or is larger than `MOST_PIXELS`.
    """
    data = read_small(path)
    try:
        if str(path).lower().endswith(".npy"):
            return _npy(data)
        if data[:1] == b"P":
            return _pgm(data)
        raise ValueError("it is neither a .npy nor a .pgm file; convert it, for instance with: convert map.png map.pgm")
    except ValueError as error:
        raise ConfigurationError(f"{path}: cannot be read as an image ({error}).") from error


def _npy(data: bytes) -> NDArray[np.uint8]:
    file = io.BytesIO(data)
    header = read_header(file)
    if header.descr not in ("|u1", "<u1", "u1") or header.fortran_order or len(header.shape) != 2:
        raise ValueError("must hold unsigned bytes, rows by columns")
    return _shaped(data[file.tell() :], header.shape[0], header.shape[1])


def _pgm(data: bytes) -> NDArray[np.uint8]:
    """Return the levels of a binary (P5) or plain (P2) grey map of the Netpbm formats."""
    head = re.match(rb"(P[25])(?:\s+(?:#[^\n]*\n\s*)*)(\d{1,6})\s+(?:#[^\n]*\n\s*)*(\d{1,6})\s+(\d{1,6})\s", data)
    if head is None:
        raise ValueError("its head is not that of a grey map, P5 or P2")
    columns, rows, most = (int(found) for found in head.groups()[1:])
    if most != WHITE:
        raise ValueError(f"its white is {most}; must be {WHITE}")
    body = data[head.end() :]
    if head.group(1) == b"P5":
        return _shaped(body, rows, columns)
    if rows * columns > MOST_PIXELS:
        raise ValueError(f"{columns} by {rows} pixels; at most {MOST_PIXELS}")
    words = body.split()
    if len(words) != rows * columns or not all(word.isdigit() and int(word[:4]) <= WHITE for word in words):
        raise ValueError("has not as many grey levels as its head says, or others than 0 to 255")
    return _shaped(bytes(int(word) for word in words), rows, columns)


def _shaped(data: bytes, rows: int, columns: int) -> NDArray[np.uint8]:
    if not 1 <= rows * columns <= MOST_PIXELS:
        raise ValueError(f"{columns} by {rows} pixels; must have 1 to {MOST_PIXELS}")
    if len(data) != rows * columns:
        raise ValueError(f"has {len(data)} grey levels for {columns} by {rows} pixels")
    return np.frombuffer(data, np.uint8).reshape(rows, columns)
