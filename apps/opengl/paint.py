"""Texts, pictures, and rectangles in one pyglet batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyglet

from apps.opengl.pictures import Cover
from apps.opengl.plane import Area

Colour = tuple[int, int, int, int]

_FONTS = ("DejaVu Sans", "Noto Sans", "Segoe UI", "Helvetica", "Arial")
"""Fonts in order of preference; all contain the arrow characters."""

_PIXELS = 72
"""Resolution at which a point is a pixel [dots per inch]."""


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
    """

    def __init__(self) -> None:
        self._batch = pyglet.graphics.Batch()
        self._back = pyglet.graphics.Group(0)
        self._front = pyglet.graphics.Group(1)
        self._sprites: list[Any] = []
        self.labels: list[Any] = []

    @property
    def shapes(self) -> int:
        """Number of texts and pictures."""
        return len(self.labels) + len(self._sprites)

    def draw(self) -> None:
        """Draw the batch."""
        self._batch.draw()

    def text(
        self,
        words: str,
        place: tuple[float, float],
        size: float,
        colour: str,
        bold: bool = False,
        anchor: str = "center",
    ) -> Any:
        """Add one line of text with its middle, or its ``left`` or ``right`` end, at a position.

        The font size is `size` pixels, and the position is at half the height of the line. It is rounded to whole
        pixels to avoid blurred letters.
        """
        label = pyglet.text.Label(
            words,
            x=round(place[0]),
            y=round(place[1]),
            font_name=_FONTS,
            font_size=size,
            weight="bold" if bold else "normal",
            color=rgba(colour),
            anchor_x=anchor,
            anchor_y="center",
            dpi=_PIXELS,
            batch=self._batch,
            group=self._front,
        )
        self.labels.append(label)
        return label

    def paragraphs(self, words: str, area: Area, sizes: tuple[float, float], colour: str, left: bool) -> float:
        """Add wrapped text centred in an area, with the largest font size that fits.

        Parameters
        ----------
        sizes : (float, float)
            Largest and smallest font size [pixel].
        left : bool
            Whether the lines are left-aligned, as for longer texts, or centred.

        Returns
        -------
        float
            Font size [pixel]; below the smallest size if the text did not fit.
        """
        size, least = sizes
        width = min(area.width, 34 * size)
        label = self._wrapped(words, area, size, width, colour, left)
        while (label.content_height > area.height or label.content_width > width) and size > 0.3 * least:
            size *= 0.94
            label.begin_update()
            label.font_size = size
            label.width = width = min(area.width, 40 * size) if size > least else area.width
            label.end_update()
        label.x = round(area.middle[0] - 0.5 * (label.content_width if left else width))
        self.labels.append(label)
        return size

    def _wrapped(self, words: str, area: Area, size: float, width: float, colour: str, left: bool) -> Any:
        return pyglet.text.Label(
            words,
            x=round(area.middle[0] - 0.5 * width),
            y=round(area.middle[1]),
            width=width,
            multiline=True,
            align="left" if left else "center",
            font_name=_FONTS,
            font_size=size,
            color=rgba(colour),
            anchor_x="left",
            anchor_y="center",
            dpi=_PIXELS,
            batch=self._batch,
            group=self._front,
        )

    def picture(self, cover: Cover, place: tuple[float, float], colour: str, front: bool = False) -> Any:
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
