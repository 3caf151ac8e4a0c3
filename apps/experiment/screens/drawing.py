"""Contents of the participant's screen: layout, static parts, and moving parts of a `Show`."""

from __future__ import annotations

import math
from typing import Any

from apps.experiment.screens.forms import Target, draw_item
from apps.experiment.screens.messages import Pacing, Show
from apps.experiment.settings import on_the_cap
from apps.front_ends.messages import Key
from apps.opengl.drawing import Brush, badge, box, cross, disc, tick
from apps.opengl.plane import Area, Plane
from apps.shared.theme import Theme, blend

TITLE = 6.6
"""Letter height of titles, in hundredths of the window height."""

TEXT = 4.3
"""Letter height of text, in hundredths of the window height.

These are 13 mm on a screen of 300 mm, which is easily readable at 1 m.
"""

LEAST_TEXT = 2.4
"""Minimum letter height, in hundredths of the window height.

A text that needs smaller letters is too long.
"""


class Layout:
    """Areas of a window of the given size [pixel].

    `unit` is a hundredth of its height [pixel].
    """

    def __init__(self, width: int, height: int) -> None:
        self.unit = unit = height / 100
        margin = 5 * unit
        inside = width - 2 * margin
        side, bar = min(26 * unit, 0.2 * width), min(80 * unit, inside)

        def band(bottom: float, top: float) -> Area:
            return Area(margin, bottom * unit, inside, (top - bottom) * unit)

        rows = band(31, 79)
        self.window = Area(0, 0, width, height)
        self.title, self.lead, self.text = band(88, 98), band(80, 88), band(31, 87)
        self.heading, self.below = band(58, 72), band(31, 57)
        self.field = Area(margin + side, rows.y, inside - 2 * side, rows.height)
        self.left = Area(margin, rows.y, side, rows.height)
        self.right = Area(width - margin - side, rows.y, side, rows.height)
        self.hint, self.keys = band(23.5, 29.5), band(4.5, 22)
        self.question, self.answer = band(63, 86.5), band(31, 62)
        self.bar = Area(0.5 * (width - bar), 1.4 * unit, bar, 1.4 * unit)


def in_a_row(widths: list[float], gap: float, area: Area) -> list[float]:
    """Return the left edges of boxes with the given widths, in a row centred in an area."""
    edges = []
    x = area.middle[0] - 0.5 * (sum(widths) + gap * (len(widths) - 1))
    for width in widths:
        edges.append(x)
        x += width + gap
    return edges


_LEFT_ALIGNED = ("instructions", "practice")

_CENTRAL = ("pause", "end", "break")
"""Displays with little content, whose title and text are centred."""


class Scene:
    """Static scene of a `Show`.

    Attributes
    ----------
    small : bool
        Whether a text has letters that are too small to be readable at 1 m.
    targets : list of Target
        Areas of a form that can be clicked.
    """

    def __init__(self, show: Show, layout: Layout, theme: Theme, scale: float) -> None:
        self._show, self._layout, self._theme, self._scale = show, layout, theme, scale
        self.brush = Brush()
        self.small = False
        self.targets: list[Target] = []
        self._count: Any = None
        self._hint: tuple[Any, ...] = ()
        self._waiting: list[Any] = []
        if show.dark:
            return
        self._write()
        if show.item is not None:
            areas = {"question": layout.question, "answer": layout.answer, "hint": layout.hint, "page": layout.text}
            self.targets += draw_item(show.item, self.brush, self._paragraphs, areas, layout.unit, theme)
        self._draw_intervals()
        self._draw_middle()
        if show.keys:
            self._draw_keys()
        if show.hold:
            self._draw_hint()
        if show.share is not None:
            bar = layout.bar
            self.brush.bar(bar, blend(theme.faint, theme.ground, 0.35))
            done = Area(bar.x, bar.y, bar.width * min(max(show.share, 0.0), 1.0), bar.height)
            if done.width >= 1:
                self.brush.bar(done, theme.faint)

    def refresh(self, now: float, held: bool) -> bool:
        """Update the count-down and the hint.

        Return True if the picture has changed.
        """
        changed = False
        if self._count is not None and self._show.until is not None:
            seconds = max(math.ceil(self._show.until - now), 0)
            words = f"{seconds // 60}:{seconds % 60:02d}"
            changed = words != self._count.text
            if changed:
                self._count.text = words
            if now >= self._show.until:
                changed |= bool(self._waiting)
                for part in self._waiting:
                    part.visible = True
                self._waiting = []
        if self._hint:
            changed |= self._hint[0].visible == held
            loud, quiet, label = self._hint
            loud.visible, quiet.visible = not held, held
            label.color = (*bytes.fromhex((self._theme.text if held else self._theme.on_alarm)[1:]), 255)
        return changed

    def _paragraphs(
        self, words: str, area: Area, share: float, colour: str, left: bool = False, side: str = ""
    ) -> None:
        least, size = LEAST_TEXT * self._layout.unit, share * self._scale * self._layout.unit
        used = self.brush.paragraphs(words, area, (size, least), colour, left, side)
        self.small |= used < min(least, size)

    def _write(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        interval_alone = show.of and show.kind == "interval" and not show.field
        taken = show.field or show.feedback or show.entry is not None or show.until is not None or interval_alone
        head, below = layout.title, layout.lead if taken else layout.text
        if show.kind in _CENTRAL and not taken:
            head, below = layout.heading, layout.below
        if show.title:
            self._paragraphs(show.title, head, TITLE, theme.text)
        if show.text:
            self._paragraphs(show.text, below, TEXT, theme.text, left=show.kind in _LEFT_ALIGNED)
        if show.pages > 1:
            place = layout.window.width - 9 * layout.unit, layout.keys.y + 2.5 * layout.unit
            self.brush.text(f"{show.page} / {show.pages}", place, 2.8 * layout.unit, theme.faint)

    def _draw_intervals(self) -> None:
        """Draw the symbols of the intervals: filled and large if current, otherwise a small outline."""
        show, layout, theme = self._show, self._layout, self._theme
        for number in range(1, show.of + 1):
            side, rank, count = (layout.left, 0, 1) if number == 1 else (layout.right, number - 2, show.of - 1)
            x, y = side.middle[0], side.y + side.height * (1 - (rank + 0.5) / count)
            current = number == show.interval and show.kind == "interval"
            size = min(18 * layout.unit, 0.8 * side.width, 0.8 * side.height / count) * (1.0 if current else 0.55)
            cover = badge(number, round(size), 0.0 if current else max(0.03 * size, 2.0))
            self.brush.picture(cover, (x, y), theme.motion if current else theme.border)
            if number > 2:  # the centroid of a triangle is lower than the centre of its frame
                y -= 0.14 * size
            self.brush.text(str(number), (x, y), 0.45 * size, theme.panel if current else theme.faint, bold=True)

    def _draw_middle(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        middle = layout.field.middle
        if show.feedback:
            sign = tick if show.feedback == "right" else cross
            colour = theme.force if show.feedback == "right" else theme.stick
            self.brush.picture(sign(round(26 * layout.unit)), middle, colour)
        elif show.entry is not None:
            width, height = round(44 * layout.unit), round(16 * layout.unit)
            self.brush.picture(box(width, height, 0.4 * layout.unit, 2 * layout.unit), middle, theme.faint)
            self.brush.text(show.entry, middle, 9 * layout.unit, theme.text)
        elif show.until is not None:
            self._count = self.brush.text("0:00", middle, 16 * layout.unit, theme.text)

    def _draw_keys(self) -> None:
        layout, theme = self._layout, self._theme
        height, gap = 10 * layout.unit, 7 * layout.unit
        columns = []
        for choice in self._show.keys:
            cap = self.brush.text(
                choice.cap or on_the_cap(choice.key), (0, 0), 4.8 * layout.unit, theme.text, bold=True
            )
            columns.append((cap, self.brush.text(choice.words, (0, 0), 3.7 * layout.unit, theme.text)))
        caps = [max(cap.content_width + 5 * layout.unit, height) for cap, _ in columns]
        widths = [max(width, words.content_width) for width, (_, words) in zip(caps, columns, strict=True)]
        room = layout.keys.width - gap * (len(widths) - 1)
        if sum(widths) > room:
            self.small = True
        for choice, left, width, cap_width, (cap, words) in zip(
            self._show.keys, in_a_row(widths, gap, layout.keys), widths, caps, columns, strict=True
        ):
            x, y = left + 0.5 * width, layout.keys.y + layout.keys.height - 0.5 * height
            cap.position, words.position = (x, y, 0), (x, y - 0.5 * height - 3.4 * layout.unit, 0)
            frame = box(round(cap_width), round(height), 0.35 * layout.unit, 1.6 * layout.unit)
            ground = box(round(cap_width), round(height), 0.0, 1.6 * layout.unit)
            parts = [cap, words, self.brush.picture(ground, (x, y), theme.panel)]
            parts.append(self.brush.picture(frame, (x, y), theme.text, front=True))
            if self._count is not None:
                self._waiting += parts
            if self._show.item is not None:
                area = Area(x - 0.5 * cap_width, y - 0.5 * height, cap_width, height)
                self.targets.append(Target(area, lambda share, key=choice.key: Key(key, True)))  # type: ignore[misc]
        for part in self._waiting:
            part.visible = False

    def _draw_hint(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        label = self.brush.text(show.hold, layout.hint.middle, 3.2 * layout.unit, theme.text)
        width, height = round(label.content_width + 6 * layout.unit), round(layout.hint.height)
        loud = self.brush.picture(box(width, height, 0, 0.5 * height), layout.hint.middle, theme.notice)
        line = max(0.35 * layout.unit, 2.0)
        quiet = self.brush.picture(box(width, height, line, 0.5 * height), layout.hint.middle, theme.force)
        self._hint = loud, quiet, label
        self.refresh(0.0, held=False)


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
        self.brush = Brush()
        outline = plane.outline
        width, height = max(round(outline.width), 8), max(round(outline.height), 8)
        self.brush.picture(box(width, height), outline.middle, theme.panel)
        self.brush.picture(box(width, height, max(0.3 * unit, 1.5)), outline.middle, theme.faint)
        self._start: tuple[Any, Any] | None = None
        if show.start is not None:  # an outline, which is filled while the hand is inside
            place = plane.to_window(*show.start.centre)
            size = max(round(2 * show.start.reach * plane.scale), round(2.0 * unit), 8)
            frame = self.brush.picture(box(size, size, max(0.45 * unit, 2.0)), place, theme.stick)
            filled = self.brush.picture(box(size, size), place, theme.stick)
            filled.visible = False
            self._start = frame, filled
        self._target: Any = None
        if show.pacing is not None and show.pacing.shown:
            target = disc(round(1.9 * CURSOR * unit), max(0.5 * unit, 2.0))
            self._target = self.brush.picture(target, (0, 0), theme.motion)
        self._cursor = self.brush.picture(disc(round(CURSOR * unit)), (0, 0), theme.text, front=True)
        self._cursor.visible = False

    def refresh(self, position: tuple[float, float] | None, now: float) -> bool:
        """Move the cursor and the target.

        Return True if the picture has changed.
        """
        changed = self._move(self._cursor, position if self._show.cursor else None)
        if self._target is not None and self._show.pacing is not None:
            share = pacing_share(self._show.pacing, now)
            (x, y), (end_x, end_y) = self._show.pacing.ends
            changed |= self._move(self._target, (x + share * (end_x - x), y + share * (end_y - y)))
        box = self._show.start
        if self._start is not None and box is not None:
            outline, filled = self._start
            inside = position is not None and (
                max(abs(position[0] - box.centre[0]), abs(position[1] - box.centre[1])) <= box.reach
            )
            changed |= filled.visible != inside
            outline.visible, filled.visible = not inside, inside
        return changed

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
