"""Moving objects of the stage: trail, contact, link, end effector, and force."""

from __future__ import annotations

import numpy as np
from pyglet import gl

from apps.stage import marks as shapes
from apps.stage import ribbons
from apps.stage.drawing import shaders
from apps.stage.drawing.gl import Mesh
from apps.stage.legend import contact_mark, handle
from apps.stage.marks import Marks
from apps.stage.motion import Motion
from apps.stage.ribbons import Floats, Vertices
from apps.stage.scenery import Scenery
from haptics.device import Causality

_HANDLE = 2.1
"""Distance between the centre of the end effector and the near end of an arrow, in layout units."""

_LEAST_LINK = 0.8
"""Minimum length of a drawn link, in layout units: shorter ones are hidden by the signs at the ends."""


class Painter:
    """Draws marks and ribbons on a window of a given size [pixel]."""

    def __init__(self) -> None:
        self._marks = Mesh(shaders.MARK_VERTEX, shaders.MARK_FRAGMENT, shapes.VERTEX, gl.GL_TRIANGLES)
        self._ribbons = Mesh(shaders.RIBBON_VERTEX, shaders.RIBBON_FRAGMENT, ribbons.VERTEX, gl.GL_TRIANGLE_STRIP)
        self.size = (1.0, 1.0)

    def marks(self, marks: Marks) -> None:
        """Draw the collected shapes."""
        self._marks.draw(marks.vertices, self.size)

    def ribbon(self, strip: Vertices) -> None:
        """Draw a strip."""
        self._ribbons.draw(strip, self.size)


class Actors:
    """Draws the moving objects of one scenery.

    Attributes
    ----------
    shapes : int
        Number of shapes in the last picture.
    """

    def __init__(self, painter: Painter, scenery: Scenery) -> None:
        self._painter, self._scenery = painter, scenery
        self._halo = max(0.28 * scenery.layout.unit, 1.5)
        self._marks = Marks(scenery.theme.panel, self._halo)
        self.shapes = 0

    def draw(self, motion: Motion) -> None:
        """Draw all objects at their present positions."""
        contact = np.array(self._scenery.plane.to_window(*motion.contact))
        stretch = motion.displacement * self._scenery.scales.per_metre * self._scenery.scales.factor
        self.shapes = 0
        self._draw_trail(motion)
        self._draw_sticks(motion)
        self._draw_link(contact, contact + stretch)
        self._draw_ends(motion, contact, contact + stretch)

    def _on_window(self, places: Floats) -> Floats:
        """Return the positions in the window [pixel] of points of the plane, (n, 2) [m]."""
        plane = self._scenery.plane
        return plane.scale * places + plane.to_window(0.0, 0.0)

    def _draw_trail(self, motion: Motion) -> None:
        points = self._on_window(motion.trail)
        chosen = ribbons.thinned(points)
        points, shares = points[chosen], ribbons.fading(len(motion.trail))[chosen]
        width = 0.6 * self._scenery.layout.unit
        edge = ribbons.ribbon(points, width + 2 * self._halo, self._scenery.theme.panel, 0.7 * shares)
        self._painter.ribbon(edge)
        self._painter.ribbon(ribbons.ribbon(points, width, self._scenery.theme.motion, shares))
        self.shapes += 2

    def _draw_sticks(self, motion: Motion) -> None:
        """Draw a square at each place of rest; its size increases with the duration of the rest."""
        places, seconds = motion.sticks()
        unit, marks = self._scenery.layout.unit, self._marks
        marks.clear()
        for (x, y), time in zip(self._on_window(places).tolist(), seconds.tolist(), strict=True):
            half = unit * min(0.45 + 0.75 * time**0.5, 1.15)
            marks.square((x, y), half, self._scenery.theme.stick, share=0.8)
        self._flush()

    def _draw_link(self, contact: Floats, hand: Floats) -> None:
        unit, theme = self._scenery.layout.unit, self._scenery.theme
        if np.hypot(*(hand - contact)) <= _LEAST_LINK * unit:
            return
        coil, width = ribbons.spring(contact, hand, 1.2 * unit), max(0.42 * unit, 2.0)
        self._painter.ribbon(ribbons.zigzag(coil, width + 2 * self._halo, theme.panel, 0.8))
        self._painter.ribbon(ribbons.zigzag(coil, width, theme.friction))
        self.shapes += 2

    def _draw_ends(self, motion: Motion, contact: Floats, hand: Floats) -> None:
        scenery, marks = self._scenery, self._marks
        unit, theme = scenery.layout.unit, scenery.theme
        marks.clear()
        contact_mark(marks, _place(contact), unit, theme, sticking=motion.sticking)
        force = motion.force * scenery.scales.per_newton
        if np.hypot(*force) > 0.5 * unit:
            # The device's force pushes the hand, so the tip of its arrow is at the hand. The hand's force starts there.
            pushes = scenery.info.causality == Causality.IMPEDANCE
            edge = _HANDLE * unit * force / np.hypot(*force)
            start, end = (hand - edge - force, hand - edge) if pushes else (hand + edge, hand + edge + force)
            marks.arrow(_place(start), _place(end), 0.85 * unit, theme.force)
        handle(marks, _place(hand), unit, theme)
        self._flush()

    def _flush(self) -> None:
        self._painter.marks(self._marks)
        self.shapes += self._marks.count


def _place(point: Floats) -> tuple[float, float]:
    return float(point[0]), float(point[1])
