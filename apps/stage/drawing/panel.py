"""Numeric display of the newest tick, with units."""

from __future__ import annotations

import math
from typing import Any

from apps.opengl.paint import Brush, fit, rgba
from apps.stage.drawing.actors import Painter
from apps.stage.legend import contact_mark, force_words, lines
from apps.stage.marks import Marks
from apps.stage.motion import Motion
from apps.stage.scenery import Scenery

EVERY = 0.15
"""Update interval of the numbers [s], slow enough for reading."""

_NAME, _SMALL = 1.2, 0.92
"""Font sizes for the name of a region and for secondary text, relative to ordinary text."""


class Numbers:
    """The changing texts in the column.

    Attributes
    ----------
    shapes : int
        Number of texts and signs drawn.
    """

    def __init__(self, painter: Painter, scenery: Scenery) -> None:
        self._painter, self._scenery = painter, scenery
        self._marks = Marks(scenery.theme.panel, 0.0)
        self._brush = Brush()
        self._values: list[Any] = []
        self._due = 0.0
        at, text = lines(scenery.layout), scenery.layout.text
        theme, unit = scenery.theme, scenery.layout.unit
        self._sign = at.left + 2.0 * unit, at.state
        self._state = self._brush.text("", (at.left + 6.0 * unit, at.state), 2.4 * text, theme.text, True, "left")
        self._region = self._brush.text("", (at.left, at.region), _NAME * text, theme.text, True, "left")
        self._law = self._brush.text("", (at.left, at.law), _SMALL * text, theme.faint, anchor="left")
        names = [force_words(scenery.info), "speed", "elongation", "normal force"][: 4 if scenery.ground.walls else 3]
        for name, y in zip(names, at.values, strict=False):
            self._brush.text(name, (at.left, y), _SMALL * text, theme.faint, anchor="left")
            self._values.append(self._brush.text("", (at.right, y), 1.35 * text, theme.text, True, "right"))

    @property
    def shapes(self) -> int:
        """Number of texts and signs drawn."""
        return self._brush.shapes + self._marks.count

    def refresh(self, motion: Motion, now: float, region: tuple[str, str]) -> bool:
        """Update the texts if an update is due. Return True if they were updated.

        `region` is the name of the region and a description of its law.
        """
        if now < self._due:
            return False
        self._due = now + EVERY
        self._show_state(motion)
        at, text = lines(self._scenery.layout), self._scenery.layout.text
        for label, said, size in zip((self._region, self._law), region, (_NAME * text, _SMALL * text), strict=True):
            if _say(label, said):
                fit(label, size, at.right - at.left)
        force, stretch = math.hypot(*motion.force), math.hypot(*motion.displacement)
        words = (newtons(force), f"{1e3 * motion.speed:.0f} mm/s", millimetres(stretch), newtons(motion.normal_force))
        for label, value in zip(self._values, words, strict=False):
            _say(label, value)
        return True

    def draw(self) -> None:
        """Draw the texts."""
        self._painter.marks(self._marks)
        self._brush.draw()

    def _show_state(self, motion: Motion) -> None:
        theme, unit = self._scenery.theme, self._scenery.layout.unit
        self._marks.clear()
        if not motion.ticks:
            _say(self._state, "")
            return
        contact_mark(self._marks, self._sign, 1.45 * unit, theme, sticking=motion.sticking)
        _say(self._state, "STICK" if motion.sticking else "SLIP")
        self._state.color = rgba(theme.stick if motion.sticking else theme.motion)


def _say(label: Any, words: str) -> bool:
    """Set a text if it has changed: layout of a text takes as long as drawing a hundred shapes."""
    changed = bool(label.text != words)
    if changed:
        label.text = words
    return changed


def newtons(force: float) -> str:
    """Format a force; a normal force that is not finite means that there is no wall."""
    return f"{force:.2f} N" if math.isfinite(force) else "no wall"


def millimetres(length: float) -> str:
    """Format a displacement, in micrometres if it is small."""
    return f"{1e3 * length:.2f} mm" if length >= 1e-4 else f"{1e6 * length:.0f} µm"
