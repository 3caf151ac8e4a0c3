"""Static parts of the stage: the ground, names, scale bar, and legend, drawn only when they change."""

from __future__ import annotations

import numpy as np
from pyglet import gl

from apps.opengl.paint import Brush, fit
from apps.stage.drawing import shaders
from apps.stage.drawing.actors import Painter
from apps.stage.drawing.gl import Canvas, Mesh, NumberPicture
from apps.stage.ground import REACH
from apps.stage.layout import nice_length
from apps.stage.legend import Lines, force_words, lines, signs, stretch_words
from apps.stage.marks import Marks, colour_of
from apps.stage.ribbons import spring, zigzag
from apps.stage.scenery import Scenery

_CORNER = np.dtype([("place", "<f4", (2,)), ("millimetres", "<f4", (2,)), ("share", "<f4", (2,))])
_RISE = 0.18
"""Vertical offset of text beside a sign, in layout units, which centres its letters on the sign."""

_VEIL_SHARE = {"dark": 0.42, "light": 0.30}
"""Opacity of the window background blended over the materials, so that moving objects stand out."""


class Backdrop:
    """Canvas with all static parts.

    Parameters
    ----------
    painter : Painter
        Draws marks and ribbons.

    Attributes
    ----------
    shapes : int
        Number of shapes on the canvas.
    """

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._canvas = Canvas()
        self._ground = Mesh(shaders.GROUND_VERTEX, shaders.GROUND_FRAGMENT, _CORNER, gl.GL_TRIANGLE_STRIP)
        self._looks, self._others = NumberPicture(0), NumberPicture(1)
        self._coil = np.zeros((0, 2))
        self.shapes = 0

    def show(self) -> None:
        """Copy the canvas to the window."""
        self._canvas.show()

    def draw(self, scenery: Scenery, size: tuple[int, int]) -> None:
        """Redraw the canvas in the given size [pixel of the screen]."""
        self._canvas.begin(size)
        gl.glClearColor(*colour_of(scenery.theme.ground), 1.0)
        gl.glClear(gl.GL_COLOR_BUFFER_BIT)
        self._draw_ground(scenery)
        self._coil = np.zeros((0, 2))
        brush = Brush()
        marks = Marks(scenery.theme.panel, max(0.25 * scenery.layout.unit, 1.5))
        self._name_regions(scenery, marks, brush)
        self._draw_scale(scenery, marks, brush)
        if scenery.layout.panel.width:
            self._write_panel(scenery, marks, brush)
        self._painter.marks(marks)
        if len(self._coil):
            width = max(0.42 * scenery.layout.unit, 2.0)
            self._painter.ribbon(zigzag(self._coil, width, scenery.theme.friction))
        brush.draw()
        self._canvas.end()
        self.shapes = 1 + marks.count + brush.shapes

    def _draw_ground(self, scenery: Scenery) -> None:
        plane, theme = scenery.plane, scenery.theme
        self._looks.put(scenery.ground.looks)
        self._others.put(scenery.ground.others)
        self._looks.use()
        self._others.use()
        self._ground.set_uniforms(
            {
                "looks": 0,
                "others": 1,
                "plain_tone": colour_of(theme.panel),
                "strong_tone": colour_of(theme.faint),
                "line_tone": colour_of(theme.text),
                "solid_tone": colour_of(theme.border),
                "veil": colour_of(theme.ground),
                "veil_share": _VEIL_SHARE[theme.name],
                "raster": 1e3 * nice_length(0.25 * _width(scenery)),
                "pixel": 1e3 / plane.scale,
                "reach": REACH,
                "level_share": 0.5,
            }
        )
        (left, low), (right, high) = plane.workspace
        outline = plane.outline
        corners = np.zeros(4, _CORNER)
        shares = np.array([(0, 0), (1, 0), (0, 1), (1, 1)], float)
        corners["share"] = shares
        corners["place"] = (outline.x, outline.y) + shares * (outline.width, outline.height)
        corners["millimetres"] = 1e3 * ((left, low) + shares * (right - left, high - low))
        self._ground.draw(corners, _size(scenery))
        gl.glActiveTexture(gl.GL_TEXTURE0)

    def _name_regions(self, scenery: Scenery, marks: Marks, brush: Brush) -> None:
        size = 1.05 * scenery.layout.text
        for label in scenery.ground.labels:
            at = scenery.plane.to_window(*label.place)
            text = brush.text(label.words, at, size, scenery.theme.text, bold=True)
            fit(text, size, 2.0 * _to_the_side(scenery, at[0]))
            half = 0.5 * text.content_width
            marks.stroke((at[0] - half, at[1]), (at[0] + half, at[1]), 1.7 * size, scenery.theme.panel, share=0.72)

    def _draw_scale(self, scenery: Scenery, marks: Marks, brush: Brush) -> None:
        """Draw a scale bar of a round length in the lower left corner of the plane."""
        unit, theme, outline = scenery.layout.unit, scenery.theme, scenery.plane.outline
        length = nice_length(0.25 * _width(scenery))
        start = outline.x + 2.6 * unit, outline.y + 2.6 * unit
        end = start[0] + length * scenery.plane.scale, start[1]
        marks.stroke(start, end, 0.55 * unit, theme.text)
        for at in (start, end):
            marks.stroke((at[0], at[1] - 0.8 * unit), (at[0], at[1] + 0.8 * unit), 0.4 * unit, theme.text)
        middle = 0.5 * (start[0] + end[0]), start[1] + 2.6 * unit
        text = brush.text(_length_words(length), middle, scenery.layout.text, theme.text, bold=True)
        half = 0.5 * text.content_width
        pill = 1.6 * scenery.layout.text
        marks.stroke((middle[0] - half, middle[1]), (middle[0] + half, middle[1]), pill, theme.panel, share=0.72)

    def _write_panel(self, scenery: Scenery, marks: Marks, brush: Brush) -> None:
        info, theme, layout = scenery.info, scenery.theme, scenery.layout
        marks.box(layout.panel.middle, (0.5 * layout.panel.width, 0.5 * layout.panel.height), 0.0, theme.panel)
        at = lines(layout)
        small = 0.92 * layout.text
        hand = f"hand: {info.hand}" if info.hand else f"{info.rate:g} Hz"
        entries = ((info.title, at.run, theme.text), (hand, at.hand, theme.faint), ("F1: keys", at.keys, theme.faint))
        for words, y, colour in entries:
            _write(brush, at, words, y, small, colour)
        self._explain(scenery, marks, brush, at, small)

    def _explain(self, scenery: Scenery, marks: Marks, brush: Brush, at: Lines, size: float) -> None:
        """Write the legend: one sign and its meaning per line."""
        info, theme, unit, scales = scenery.info, scenery.theme, scenery.layout.unit, scenery.scales
        left, words_at = at.left + 2.2 * unit, at.left + 6.4 * unit
        entries = signs(info, theme, scenery.ground.walls)
        for row, (words, sign) in enumerate(entries):
            y = at.legend - row * at.step
            sign(marks, (left, y), unit)
            brush.text(words, (words_at, y + _RISE * unit), size, theme.text, anchor="left")
        y = at.legend - len(entries) * at.step
        self._coil = spring(np.array((left - 2.4 * unit, y)), np.array((left + 2.4 * unit, y)), 1.0 * unit)
        brush.text(stretch_words(scales.factor), (words_at, y + _RISE * unit), size, theme.text, anchor="left")
        y -= at.step
        marks.arrow((left - 2.2 * unit, y), (left + 2.2 * unit, y), 0.6 * unit, theme.force)
        brush.text(force_words(info), (words_at, y + _RISE * unit), size, theme.text, anchor="left")
        y -= at.step
        self._measure_force(scenery, marks, brush, (at.left, y), size)

    def _measure_force(
        self, scenery: Scenery, marks: Marks, brush: Brush, at: tuple[float, float], size: float
    ) -> None:
        """Draw an arrow of a round force at the scale of the plane."""
        room = scenery.layout.panel.width - 20.0 * scenery.layout.unit
        force = nice_length(room / scenery.scales.per_newton)
        end = at[0] + force * scenery.scales.per_newton, at[1]
        marks.arrow(at, end, 0.6 * scenery.layout.unit, scenery.theme.force)
        place = end[0] + 1.6 * scenery.layout.unit, at[1] + _RISE * scenery.layout.unit
        brush.text(f"= {force:g} N", place, size, scenery.theme.text, anchor="left")


def _write(brush: Brush, at: Lines, words: str, y: float, size: float, colour: str) -> None:
    """Write a line at the left of the column, in smaller letters if it is too long."""
    label = brush.text(words, (at.left, y), size, colour, anchor="left")
    fit(label, size, at.right - at.left)


def _to_the_side(scenery: Scenery, x: float) -> float:
    """Return the distance from a position on the plane to the nearer side [pixel]."""
    outline = scenery.plane.outline
    return min(x - outline.x, outline.x + outline.width - x)


def _width(scenery: Scenery) -> float:
    (left, _), (right, _) = scenery.plane.workspace
    return right - left


def _size(scenery: Scenery) -> tuple[float, float]:
    return scenery.layout.window.width, scenery.layout.window.height


def _length_words(length: float) -> str:
    return f"{1e3 * length:g} mm" if length < 1 else f"{length:g} m"
