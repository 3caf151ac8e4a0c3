"""Texts, rectangles, and small anti-aliased pictures in one pyglet batch.

A picture is the covered share of each pixel, which does not depend on colour. Anti-aliasing by OpenGL would take a
processor core where OpenGL is rendered in software.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyglet
from numpy.typing import NDArray

from apps.opengl.plane import Area

Floats = NDArray[np.float64]
Cover = NDArray[np.float64]
"""Covered share of each pixel, 0 to 1; row 0 is the lowest."""

Colour = tuple[int, int, int, int]
Point = tuple[float, float]

_FONTS = ("DejaVu Sans", "Noto Sans", "Segoe UI", "Helvetica", "Arial")
"""Fonts in order of preference; all contain the arrow characters."""

_PIXELS = 72
"""Resolution at which a point is a pixel [dots per inch]."""


# --- pictures ---------------------------------------------------------------------------------------------------------


def _grid(width: int, height: int) -> tuple[Floats, Floats]:
    """Return the x and y coordinates of the centre of each pixel, relative to the centre of the picture."""
    x, y = (np.arange(length) + 0.5 - 0.5 * length for length in (width, height))
    across, up = np.meshgrid(x, y)
    return across, up


def _cover(distance: Floats, line: float) -> Cover:
    """Return the coverage for a signed distance to the border (negative inside).

    `line` is the line width [pixel]; 0 fills the shape.
    """
    if line:
        distance = np.abs(distance + 0.5 * line) - 0.5 * line
    return np.clip(0.5 - distance, 0.0, 1.0)


def disc(size: int, line: float = 0.0) -> Cover:
    """Return a circle that touches the edges of the picture; with `line` [pixel], only its outline."""
    x, y = _grid(size, size)
    return _cover(np.hypot(x, y) - 0.5 * size + 0.5, line)


def box(width: int, height: int, line: float = 0.0, corner: float = 0.0) -> Cover:
    """Return a rectangle with corners rounded by `corner` [pixel]; with `line` [pixel], only its outline."""
    x, y = _grid(width, height)
    over_x = np.abs(x) - 0.5 * width + 0.5 + corner
    over_y = np.abs(y) - 0.5 * height + 0.5 + corner
    outside = np.hypot(np.maximum(over_x, 0), np.maximum(over_y, 0))
    return _cover(outside + np.minimum(np.maximum(over_x, over_y), 0) - corner, line)


def badge(number: int, size: int, line: float = 0.0) -> Cover:
    """Return the sign of an interval: a circle for the first, a square for the second, else a triangle.

    With `line` [pixel], only the outline is covered.
    """
    if number == 1:
        return disc(size, line)
    if number == 2:
        return box(size, size, line, 0.06 * size)
    x, y = _grid(size, size)
    half = 0.5 * size - 0.5
    return _cover(np.maximum((2 * np.abs(x) + y - half) / np.hypot(2.0, 1.0), -half - y), line)


def tick(size: int) -> Cover:
    """Return a tick mark, for a correct answer."""
    return _strokes(size, ((-0.75, 0.0), (-0.25, -0.55)), ((-0.25, -0.55), (0.75, 0.6)))


def cross(size: int) -> Cover:
    """Return a cross, for a wrong answer."""
    return _strokes(size, ((-0.6, -0.6), (0.6, 0.6)), ((-0.6, 0.6), (0.6, -0.6)))


def _strokes(size: int, *segments: tuple[Point, Point]) -> Cover:
    """Return line segments of constant width, between points in a picture from -1 to 1."""
    x, y = (2 / size * part for part in _grid(size, size))
    distances = []
    for start, end in segments:
        along = np.array(end) - np.array(start)
        share = np.clip(((x - start[0]) * along[0] + (y - start[1]) * along[1]) / (along @ along), 0.0, 1.0)
        distances.append(np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1]))
    nearest: Floats = np.minimum.reduce(distances)
    return np.clip(0.5 - 0.5 * size * (nearest - 0.12), 0.0, 1.0)


# --- batches ----------------------------------------------------------------------------------------------------------


def rgba(colour: str) -> Colour:
    """Return the components of a colour such as ``#e8eaed``."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue, 255


def fit(label: Any, size: float, room: float) -> None:
    """Set the font size of a line of text [pixel], reduced where the text would be wider than `room`."""
    label.font_size = size
    if label.content_width > room:
        label.font_size = size * room / label.content_width


class Brush:
    """Draws texts and pictures in one batch and keeps a list of the texts.

    Attributes
    ----------
    labels : list
        All texts.
    draw : callable
        Draws the batch.
    """

    def __init__(self) -> None:
        self._batch = pyglet.graphics.Batch()
        self.draw = self._batch.draw
        self._back = pyglet.graphics.Group(0)
        self._front = pyglet.graphics.Group(1)
        self._sprites: list[Any] = []
        self.labels: list[Any] = []

    @property
    def shapes(self) -> int:
        """Number of texts and pictures."""
        return len(self.labels) + len(self._sprites)

    def text(
        self, line: str, place: Point, size: float, colour: str, bold: bool = False, anchor: str = "center", **more: Any
    ) -> Any:
        """Add a text with its middle, or its ``left`` or ``right`` end, at a position.

        The font size is `size` pixels, and the position is at half the height of the text. It is rounded to whole
        pixels to avoid blurred letters. `more` are further options of pyglet's label.
        """
        label = pyglet.text.Label(
            line,
            x=round(place[0]),
            y=round(place[1]),
            font_name=_FONTS,
            font_size=size,
            color=rgba(colour),
            weight="bold" if bold else "normal",
            anchor_x=anchor,
            anchor_y="center",
            dpi=_PIXELS,
            batch=self._batch,
            group=self._front,
            **more,
        )
        self.labels.append(label)
        return label

    def paragraphs(
        self, words: str, area: Area, sizes: tuple[float, float], colour: str, left: bool, side: str = ""
    ) -> float:
        """Add wrapped text centred in an area, with the largest font size that fits.

        Parameters
        ----------
        sizes : (float, float)
            Largest and smallest font size [pixel].
        left : bool
            Whether the lines are left-aligned, as for longer texts, or centred.
        side : str
            ``left`` or ``right``: align the lines with this side of the area.

        Returns
        -------
        float
            Font size [pixel]; below the smallest size if the text did not fit.
        """
        size, least = sizes
        width = min(area.width, 34 * size)
        place = area.middle[0] - 0.5 * width, area.middle[1]
        align = side or ("left" if left else "center")
        label = self.text(words, place, size, colour, anchor="left", width=width, multiline=True, align=align)
        while (label.content_height > area.height or label.content_width > width) and size > 0.3 * least:
            size *= 0.94
            label.begin_update()
            label.font_size = size
            label.width = width = min(area.width, 40 * size) if size > least else area.width
            label.end_update()
        label.x = round(area.middle[0] - 0.5 * (label.content_width if left else width))
        if side:
            label.x = round(area.x if side == "left" else area.x + area.width - width)
        return size

    def picture(self, cover: Cover, place: Point, colour: str, front: bool = False) -> Any:
        """Add a one-colour picture centred at a position. Return it so that it can be moved."""
        height, width = cover.shape
        pixels = np.full((height, width, 4), 255, np.uint8)
        pixels[..., 3] = np.round(255 * cover)
        image = pyglet.image.ImageData(width, height, "RGBA", pixels.tobytes(), pitch=4 * width)
        image.anchor_x, image.anchor_y = width // 2, height // 2
        sprite = pyglet.sprite.Sprite(
            image, round(place[0]), round(place[1]), batch=self._batch, group=self._front if front else self._back
        )
        sprite.color = rgba(colour)
        self._sprites.append(sprite)
        return sprite

    def bar(self, area: Area, colour: str) -> None:
        """Fill an area."""
        shape = pyglet.shapes.Rectangle(
            area.x, area.y, area.width, area.height, color=rgba(colour), batch=self._batch, group=self._back
        )
        self._sprites.append(shape)
