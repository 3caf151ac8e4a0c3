"""Shapes in the plane with signed distances: circles, polygons, half-planes.

A signed distance is negative inside and 0 on the outline. It changes by at most the distance moved.
"""

from __future__ import annotations

import functools
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.files import read_header, read_small
from haptics.friction.laws import Law
from haptics.settings import Checked, bounded, choice, documented

Floats = NDArray[np.float64]
Point = tuple[float, float]
Indices = NDArray[np.intp]

Box = tuple[Point, Point]
"""Lowest and highest corner [m]."""

MAX_COORDINATE = 100.0
"""Maximum absolute coordinate of a point of a shape [m]."""

_MAX_POINTS = 256  # maximum number of corners of a polygon; each takes some nanoseconds per tick

_ROUND = 96  # number of points of the outline of a circle


def as_points(points: ArrayLike) -> Floats:
    """Return points as an (n, 2) float array [m].

    Raises
    ------
    ConfigurationError
        If they have another shape.
    """
    try:
        array = np.array(points, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ConfigurationError(f"points of shape {array.shape}: must be (n, 2) numbers.")
    return array


@dataclass(frozen=True)
class Circle:
    """A disc.

    Attributes
    ----------
    center : (2,) floats
        Centre [m].
    radius : float
        Radius [m], greater than 0.
    """

    center: Point
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", point(self.center, "circle.center"))
        object.__setattr__(self, "radius", number(self.radius, "circle.radius", above=0.0))

    def distance(self, points: ArrayLike) -> Floats:
        """Return the signed distance [m] of points, (n, 2) [m]: an (n,) array, negative inside."""
        rows = as_points(points)
        return np.asarray(np.hypot(rows[:, 0] - self.center[0], rows[:, 1] - self.center[1]) - self.radius)

    def outline(self, box: Box) -> Floats:
        """Return the corners of the outline, (n, 2) [m]; an unbounded shape is clipped to the `box` [m]."""
        angles = np.linspace(0.0, 2.0 * math.pi, _ROUND, endpoint=False)
        return np.array(self.center) + self.radius * np.stack((np.cos(angles), np.sin(angles)), axis=1)

    @property
    def bounds(self) -> Box:
        """Bounding box [m]; infinite for an unbounded shape."""
        (x, y), r = self.center, self.radius
        return (x - r, y - r), (x + r, y + r)


@dataclass(frozen=True)
class HalfPlane:
    """All points on one side of a line.

    Attributes
    ----------
    point : (2,) floats
        A point of the line [m].
    normal : (2,) floats
        Outward normal of the half-plane, of any length.
    """

    point: Point
    normal: Point

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", point(self.point, "half_plane.point"))
        x, y = point(self.normal, "half_plane.normal")
        length = math.hypot(x, y)
        if length < 1e-9:
            raise ConfigurationError(f"half_plane.normal = {self.normal!r}: must not be zero.")
        if abs(length - 1.0) > 1e-15:  # keep a written normal unchanged when it is read
            x, y = x / length, y / length
        object.__setattr__(self, "normal", (x, y))

    def distance(self, points: ArrayLike) -> Floats:
        """Return the signed distance [m] of `points` (n, 2) [m] from the edge, negative inside, (n,)."""
        rows, (x, y), (nx, ny) = as_points(points), self.point, self.normal
        return np.asarray((rows[:, 0] - x) * nx + (rows[:, 1] - y) * ny)

    def outline(self, box: Box) -> Floats:
        """Return the corners of the part inside `box`, (n, 2) [m]."""
        (left, low), (right, high) = box
        corners = np.array([(left, low), (right, low), (right, high), (left, high)], dtype=np.float64)
        depths, kept = self.distance(corners), []
        for k in range(4):
            following = (k + 1) % 4
            if depths[k] <= 0.0:
                kept.append(corners[k])
            if (depths[k] <= 0.0) != (depths[following] <= 0.0):
                share = depths[k] / (depths[k] - depths[following])
                kept.append(corners[k] + share * (corners[following] - corners[k]))
        return np.array(kept).reshape(-1, 2)

    @property
    def bounds(self) -> Box:
        """Lower left and upper right corner of the bounding box [m], which is infinite."""
        return (-math.inf, -math.inf), (math.inf, math.inf)


@dataclass(frozen=True)
class Polygon:
    """Polygon whose edges meet only in its corners.

    Attributes
    ----------
    points : tuple of (2,) floats
        Corners [m] in order, in either orientation; the last is connected to the first.
    """

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.points, list | tuple | np.ndarray) or not 3 <= len(self.points) <= _MAX_POINTS:
            count = len(self.points) if hasattr(self.points, "__len__") else 0
            raise ConfigurationError(f"polygon.points: has {count} corners; must have 3 to {_MAX_POINTS}.")
        corners = tuple(point(one, f"polygon.points[{k}]") for k, one in enumerate(self.points))
        object.__setattr__(self, "points", corners)
        meeting = _first_meeting(np.array(corners))
        if meeting is not None:
            one, other = meeting
            raise ConfigurationError(
                f"polygon.points: the edges from corner {one} and from corner {other} (counted from 0) meet; the "
                "edges of a polygon must not meet but in its corners."
            )

    def distance(self, points: ArrayLike) -> Floats:
        """Return the signed distance [m] of `points` (n, 2) [m] from the edge, negative inside, (n,)."""
        rows = as_points(points)
        x, y = rows[:, 0], rows[:, 1]
        nearest, inside = np.full(len(rows), np.inf), np.zeros(len(rows), bool)
        for (ax, ay), (bx, by) in zip(self.points, (*self.points[1:], self.points[0]), strict=True):
            ex, ey = bx - ax, by - ay
            along = np.clip(((x - ax) * ex + (y - ay) * ey) / (ex * ex + ey * ey), 0.0, 1.0)
            nearest = np.minimum(nearest, (x - ax - along * ex) ** 2 + (y - ay - along * ey) ** 2)
            if ay != by:
                inside ^= ((ay > y) != (by > y)) & (x < ax + (y - ay) * ex / ey)
        return np.asarray(np.where(inside, -1.0, 1.0) * np.sqrt(nearest))

    def outline(self, box: Box) -> Floats:
        """Return the corners, (n, 2) [m]."""
        return np.array(self.points)

    @property
    def bounds(self) -> Box:
        """Lower left and upper right corner of the bounding box [m]."""
        xs, ys = zip(*self.points, strict=True)
        return (min(xs), min(ys)), (max(xs), max(ys))


Shape = Circle | HalfPlane | Polygon
"""Area of the plane, with a signed distance, an outline and a bounding box."""


def _first_meeting(corners: Floats) -> tuple[int, int] | None:
    """Return the first two edges that meet outside of common corners, as indices of their first corners."""
    count = len(corners)
    ends = np.roll(corners, -1, axis=0)
    for k in range(count):
        a, b = corners[k], ends[k]
        if (a == b).all():
            return k, (k + 1) % count
        c = ends[(k + 1) % count]
        if _cross(b - a, c - b) == 0.0 and np.dot(b - a, c - b) < 0.0:  # the edge folds back
            return k, (k + 1) % count
        others = np.array([j for j in range(k + 2, count) if (j + 1) % count != k], dtype=int)
        if len(others):
            c, d = corners[others], ends[others]
            across_c, across_d = np.sign(_cross(b - a, c - a)), np.sign(_cross(b - a, d - a))
            across_a, across_b = np.sign(_cross(d - c, a - c)), np.sign(_cross(d - c, b - c))
            apart = ((np.maximum(c, d) < np.minimum(a, b)) | (np.minimum(c, d) > np.maximum(a, b))).any(axis=1)
            meets = (across_c * across_d <= 0.0) & (across_a * across_b <= 0.0) & ~apart
            if meets.any():
                return k, int(others[np.argmax(meets)])
    return None


def _cross(u: Floats, v: Floats) -> Floats:
    crossed: Floats = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    return crossed


def number(value: Any, label: str, *, above: float = -math.inf) -> float:
    """Return a coordinate or length [m]; raise `ConfigurationError` unless it is finite and within bounds."""
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not plain or not abs(value) <= MAX_COORDINATE or not value > above:
        least = f" greater than {above:g} and" if above > -math.inf else ""
        raise ConfigurationError(f"{label} = {value!r:.80}: must be a number{least} of at most {MAX_COORDINATE:g} m.")
    return float(value)


def point(value: Any, label: str) -> Point:
    """Return a point [m]; raise `ConfigurationError` unless it is two finite numbers within `MAX_COORDINATE`."""
    if not isinstance(value, list | tuple | np.ndarray) or len(value) != 2:
        raise ConfigurationError(f"{label} = {value!r:.80}: must be two numbers, [x, y].")
    return number(value[0], f"{label}[0]"), number(value[1], f"{label}[1]")


# --- textures ---------------------------------------------------------------------------------------------------------
#
# Textures: spatial modulation of the friction level, by a grating or by noise.
#
# The forces of a law are multiplied by ``1 + amplitude * g`` with a pattern ``g`` between -1 and 1; its other numbers
# do not change. A grating is a sine. Noise is a tile of `CELLS` by `CELLS` random values, one per wavelength, with
# smooth transitions, repeated over the plane. The same seed gives the same noise on every machine.

PATTERNS = ("grating", "noise")

CELLS = 32
"""Number of values along each side of a tile of noise."""

_WORD = (1 << 64) - 1


@documented
@dataclass(frozen=True)
class Texture(Checked, section="texture"):
    """Spatial modulation of the friction level."""

    pattern: str = choice("grating", PATTERNS, doc="pattern of the modulation")
    amplitude: float = bounded(0.3, minimum=0.0, maximum=0.9, doc="largest change of the level, as a share of it")
    wavelength: float = bounded(
        0.002, minimum=2e-4, maximum=1.0, unit="m", doc="length of a period, or of a cell of noise"
    )
    angle: float = bounded(0.0, minimum=-6.3, maximum=6.3, unit="rad", doc="direction in which a grating changes")
    seed: int = bounded(1, minimum=0, maximum=2**31, doc="seed of noise")

    @property
    def wave(self) -> tuple[float, float]:
        """Unit vector of the pattern's axis divided by the wavelength [1/m]."""
        return math.cos(self.angle) / self.wavelength, math.sin(self.angle) / self.wavelength

    def pattern_at(self, points: ArrayLike) -> Floats:
        """Return the pattern at points (n, 2) [m]: an (n,) array of numbers between -1 and 1."""
        rows, (kx, ky) = as_points(points), self.wave
        if self.pattern == "grating":
            return np.asarray(np.sin(2.0 * math.pi * (kx * rows[:, 0] + ky * rows[:, 1])))
        x, y = kx * rows[:, 0] + ky * rows[:, 1], kx * rows[:, 1] - ky * rows[:, 0]
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        u, v = x - column, y - row
        u, v = u * u * (3.0 - 2.0 * u), v * v * (3.0 - 2.0 * v)
        j, i, tile = column % CELLS, row % CELLS, noise_tile(self.seed)
        return _interpolate(tile, (i, (i + 1) % CELLS), (j, (j + 1) % CELLS), v, u)


def _interpolate(
    table: Floats, rows: tuple[Indices, Indices], columns: tuple[Indices, Indices], down: Floats, right: Floats
) -> Floats:
    """Interpolate a table linearly between pairs of rows and columns, at shares `down` and `right` of the way."""
    (i, below), (j, beside) = rows, columns
    first = table[i, j] + right * (table[i, beside] - table[i, j])
    second = table[below, j] + right * (table[below, beside] - table[below, j])
    return np.asarray(first + down * (second - first))


@functools.lru_cache(maxsize=64)
def noise_tile(seed: int) -> NDArray[np.float64]:
    """Return the values of the noise, (`CELLS`, `CELLS`), row by row from a SplitMix64 generator.

    See Steele et al. 2014.
    """
    values, state = [], seed & _WORD
    for _ in range(CELLS * CELLS):
        state = (state + 0x9E3779B97F4A7C15) & _WORD
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        values.append(((mixed ^ (mixed >> 31)) >> 11) * 2.0**-52 - 1.0)
    tile = np.array(values).reshape(CELLS, CELLS)
    tile.flags.writeable = False
    return tile


# --- image maps -------------------------------------------------------------------------------------------------------
#
# Image maps: laws whose numbers follow the grey levels of an image.
#
# The map defines the scale: grey level 0 has the numbers of the law ``lower``, and 255 the numbers of ``upper``, with
# linear interpolation between. The image is interpolated bilinearly between the centres of its pixels and extended by
# its edge beyond them. An edge in an image is treated like any other border: the image is smoothed over a square, so
# that it never changes faster than the borders of its scene.
#
# Image files are read by Pillow, which bounds nothing by itself: the size is checked before anything is decoded.

_WHITE = 255  # highest grey level

MAX_PIXELS = 65536
"""Maximum number of pixels of an image: 256 by 256. Every recording contains the whole image."""

# Ratio between the side of a square and its width along the diagonal, for edges at 45 degrees.
_SLANTED = math.sqrt(2.0)


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
        array = np.asarray(self.levels)
        if array.ndim != 2 or array.dtype.kind not in "iu" or not 1 <= array.size <= MAX_PIXELS:
            raise ConfigurationError(
                f"image: {array.dtype} of shape {array.shape}; must be whole numbers, rows by columns, at most "
                f"{MAX_PIXELS} pixels."
            )
        if array.min() < 0 or array.max() > _WHITE:
            raise ConfigurationError(
                f"image: has grey levels from {array.min()} to {array.max()}; must be 0 to {_WHITE}."
            )
        levels = array.astype(np.uint8)
        levels.flags.writeable = False
        object.__setattr__(self, "levels", levels)
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
        shares: Floats = self.levels / _WHITE
        for axis, pitch in ((1, self.pitch[0]), (0, self.pitch[1])):
            count = max(math.ceil(_SLANTED * border / pitch - 1e-9), 1)
            before = (count - 1) // 2
            width = [(0, 0), (0, 0)]
            width[axis] = (before + 1, count - 1 - before)
            padded = np.pad(shares, width, mode="edge")
            sums = np.cumsum(padded, axis=axis)
            length = shares.shape[axis]
            upper, lower = (np.take(sums, range(start, start + length), axis=axis) for start in (count, 0))
            shares = np.asarray(np.clip((upper - lower) / count, 0.0, 1.0))
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
        below, beside = np.minimum(i + 1, rows - 1), np.minimum(j + 1, columns - 1)
        return _interpolate(shares, (i, below), (j, beside), v, u)


def read_levels(path: str | Path) -> NDArray[np.uint8]:
    """Return the grey levels of an image file, (rows, columns).

    Colours become their luminance (ITU-R 601), 16-bit levels their upper eight bits. The image is turned as its EXIF
    orientation states, and its first row is the uppermost.

    Parameters
    ----------
    path : str or Path
        PNG, JPEG, TIFF, BMP or Netpbm file, or a ``.npy`` file of unsigned bytes.

    Raises
    ------
    ConfigurationError
        If the file is not such an image, is transparent, has several images or more than `MAX_PIXELS` pixels.
    """
    data = read_small(path)
    try:
        if str(path).lower().endswith(".npy"):
            file = io.BytesIO(data)
            header = read_header(file)
            if header.descr not in ("|u1", "<u1", "u1") or header.fortran_order or len(header.shape) != 2:
                raise ValueError("must hold unsigned bytes, rows by columns")
            rows, columns = header.shape
            _check_size(columns, rows)
            levels = np.frombuffer(data, np.uint8, offset=file.tell())
            if levels.size != rows * columns:
                raise ValueError(f"has {levels.size} grey levels for {columns} x {rows} pixels")
            return levels.reshape(rows, columns)
        return _picture_levels(data)
    except ValueError as error:
        raise ConfigurationError(f"{path}: cannot be read as an image ({error}).") from error


def _picture_levels(data: bytes) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps, UnidentifiedImageError  # only scenes with images need it

    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None  # the stricter check below gives the size; nothing is decoded before it
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF", "BMP", "PPM"))
    except UnidentifiedImageError:
        raise ValueError("it is not a PNG, JPEG, TIFF, BMP, PGM or .npy file") from None
    except Exception as error:  # the decoders raise errors of many classes for damaged files
        raise ValueError(f"damaged: {error}") from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    _check_size(*image.size)
    if getattr(image, "n_frames", 1) != 1:
        raise ValueError(f"it has {getattr(image, 'n_frames', 1)} images; must have one")
    try:
        image = ImageOps.exif_transpose(image)
    except Exception as error:
        raise ValueError(f"damaged: {error}") from error
    if image.mode == "F":
        raise ValueError("its levels are floating-point numbers; must be 8 or 16 bits")
    if image.has_transparency_data and np.asarray(image.convert("RGBA"))[:, :, 3].min() < _WHITE:
        raise ValueError("it is transparent in places; save it without transparency")
    if image.mode.startswith("I"):
        return np.asarray(np.clip(np.asarray(image), 0, 65535) >> 8, np.uint8)
    return np.asarray(image.convert("L"))


def _check_size(columns: int, rows: int) -> None:
    if not 1 <= rows * columns <= MAX_PIXELS:
        raise ValueError(f"{columns} x {rows} pixels; at most {MAX_PIXELS} in all, such as 256 x 256")
