"""Moving parts of the participant's screen: hand position, start box and target."""

from __future__ import annotations

from typing import Any

from apps.experiment.screens.messages import Pacing, Show
from apps.opengl import pictures
from apps.opengl.paint import Brush
from apps.opengl.plane import Plane
from apps.shared.theme import Theme

CURSOR = 3.4
"""Diameter of the cursor, in hundredths of the window height."""


def pacing_share(pacing: Pacing, now: float) -> float:
    """Return the position of the target between its ends, from 0 to 1.

    It is 0 until the motion starts.
    """
    strokes = max(now - pacing.since, 0.0) / pacing.stroke
    within = strokes % 2.0
    return within if within <= 1.0 else 2.0 - within


def turns(pacing: Pacing, now: float) -> int:
    """Return the number of strokes started by the target.

    A tone is played at each.
    """
    return int((now - pacing.since) // pacing.stroke) + 1 if now >= pacing.since else 0


class Field:
    """Workspace of a `Show` with its moving parts."""

    def __init__(self, show: Show, plane: Plane, unit: float, theme: Theme) -> None:
        self._show, self._plane, self._theme = show, plane, theme
        self._brush = Brush()
        self._draw_ground(unit)
        self._start = self._draw_start(unit)
        self._target = self._draw_target(unit)
        size = round(CURSOR * unit)
        self._cursor = self._brush.picture(pictures.disc(size), (0, 0), theme.text, front=True)
        self._cursor.visible = False

    def draw(self) -> None:
        """Draw the field."""
        self._brush.draw()

    def refresh(self, position: tuple[float, float] | None, now: float) -> bool:
        """Move the cursor and the target.

        Return True if the picture has changed.
        """
        changed = self._move(self._cursor, position if self._show.cursor else None)
        if self._target is not None and self._show.pacing is not None:
            share = pacing_share(self._show.pacing, now)
            (x, y), (end_x, end_y) = self._show.pacing.ends
            changed |= self._move(self._target, (x + share * (end_x - x), y + share * (end_y - y)))
        if self._start is not None:
            outline, filled = self._start
            inside = position is not None and self._rests(position)
            changed |= filled.visible != inside
            outline.visible, filled.visible = not inside, inside
        return changed

    def _rests(self, position: tuple[float, float]) -> bool:
        """Return True if the hand is in the start box."""
        box = self._show.start
        if box is None:
            return False
        return max(abs(position[0] - box.centre[0]), abs(position[1] - box.centre[1])) <= box.reach

    def _move(self, sprite: Any, place: tuple[float, float] | None) -> bool:
        """Show a sprite at a position in the workspace, or hide it.

        Return True if it moved by at least a pixel.
        """
        before = (sprite.visible, sprite.x, sprite.y)
        if place is None:
            after = (False, before[1], before[2])
        else:
            x, y = self._plane.to_window(*place)
            after = (True, round(x), round(y))
        if after == before:
            return False
        sprite.visible = after[0]
        sprite.position = (after[1], after[2], 0)
        return True

    def _draw_ground(self, unit: float) -> None:
        outline = self._plane.outline
        line = max(0.3 * unit, 1.5)
        width, height = max(round(outline.width), 8), max(round(outline.height), 8)
        self._brush.picture(pictures.box(width, height), outline.middle, self._theme.panel)
        self._brush.picture(pictures.box(width, height, line), outline.middle, self._theme.faint)

    def _draw_start(self, unit: float) -> tuple[Any, Any] | None:
        """Draw the start box: an outline, which is filled while the hand is inside."""
        if self._show.start is None:
            return None
        place = self._plane.to_window(*self._show.start.centre)
        size = max(round(2 * self._show.start.reach * self._plane.scale), round(2.0 * unit), 8)
        outline = self._brush.picture(pictures.box(size, size, max(0.45 * unit, 2.0)), place, self._theme.stick)
        filled = self._brush.picture(pictures.box(size, size), place, self._theme.stick)
        filled.visible = False
        return outline, filled

    def _draw_target(self, unit: float) -> Any:
        if self._show.pacing is None or not self._show.pacing.shown:
            return None
        size = round(1.9 * CURSOR * unit)
        return self._brush.picture(pictures.disc(size, max(0.5 * unit, 2.0)), (0, 0), self._theme.motion)
