"""Static parts of the participant's screen: title, texts, intervals, keys and bars of a `Show`."""

from __future__ import annotations

import math
from typing import Any

from apps.experiment.design.texts import on_the_cap
from apps.experiment.screens.messages import Choice, Show
from apps.experiment.screens.participant.layout import LEAST_TEXT, TEXT, TITLE, Layout, in_a_row
from apps.opengl import pictures
from apps.opengl.paint import Brush
from apps.opengl.plane import Area
from apps.shared.theme import Theme, blend

_LEFT_ALIGNED = ("instructions", "practice")

_CENTRAL = ("pause", "end", "break")
"""Displays with little content, whose title and text are centred."""


def clock(seconds: float) -> str:
    """Return a remaining time as minutes and seconds, ``1:05``, rounded up."""
    whole = max(math.ceil(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


class Scene:
    """Static scene of a `Show`.

    Attributes
    ----------
    small : bool
        Whether a text has letters that are too small to be readable at 1 m.
    """

    def __init__(self, show: Show, layout: Layout, theme: Theme, scale: float) -> None:
        self._show, self._layout, self._theme, self._scale = show, layout, theme, scale
        self.brush = Brush()
        self.small = False
        self._count: Any = None
        self._hint: tuple[Any, ...] = ()
        self._waiting: list[Any] = []
        if show.dark:
            return
        self._write()
        self._draw_intervals()
        self._draw_middle()
        self._draw_keys()
        self._draw_hint()
        self._draw_share()

    def draw(self) -> None:
        """Draw the scene."""
        self.brush.draw()

    def refresh(self, now: float, held: bool) -> bool:
        """Update the count-down and the hint.

        Return True if the picture has changed.
        """
        changed = False
        if self._count is not None and self._show.until is not None:
            words = clock(self._show.until - now)
            changed = words != self._count.text
            if changed:
                self._count.text = words
            if now >= self._show.until:
                changed |= bool(self._waiting)
                self._let_keys_appear()
        if self._hint:
            changed |= self._hint[0].visible == held
            loud, quiet, label = self._hint
            loud.visible, quiet.visible = not held, held
            label.color = (*bytes.fromhex((self._theme.text if held else self._theme.on_alarm)[1:]), 255)
        return changed

    def _let_keys_appear(self) -> None:
        for part in self._waiting:
            part.visible = True
        self._waiting = []

    def _size(self, share: float) -> float:
        return share * self._scale * self._layout.unit

    def _paragraphs(self, words: str, area: Area, share: float, colour: str, left: bool = False) -> None:
        least = LEAST_TEXT * self._layout.unit
        used = self.brush.paragraphs(words, area, (self._size(share), least), colour, left)
        self.small |= used < min(least, self._size(share))

    def _write(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        below = layout.lead if self._middle_is_taken else layout.text
        head = layout.title
        if show.kind in _CENTRAL and not self._middle_is_taken:
            head, below = layout.heading, layout.below
        if show.title:
            self._paragraphs(show.title, head, TITLE, theme.text)
        if show.text:
            self._paragraphs(show.text, below, TEXT, theme.text, left=show.kind in _LEFT_ALIGNED)
        if show.pages > 1:
            place = layout.window.width - 9 * layout.unit, layout.keys.y + 2.5 * layout.unit
            self.brush.text(f"{show.page} / {show.pages}", place, 2.8 * layout.unit, theme.faint)

    @property
    def _middle_is_taken(self) -> bool:
        """Whether the middle is needed for other content than text."""
        show = self._show
        return bool(show.field or show.feedback or show.entry is not None or show.until is not None or self._alone)

    @property
    def _alone(self) -> bool:
        """Whether the middle shows only the interval."""
        return bool(self._show.of and self._show.kind == "interval" and not self._show.field)

    def _draw_intervals(self) -> None:
        show, layout = self._show, self._layout
        for number in range(1, show.of + 1):
            side, rank, count = (layout.left, 0, 1) if number == 1 else (layout.right, number - 2, show.of - 1)
            place = side.middle[0], side.y + side.height * (1 - (rank + 0.5) / count)
            self._draw_badge(number, place, min(18 * layout.unit, 0.8 * side.width, 0.8 * side.height / count))

    def _draw_badge(self, number: int, place: tuple[float, float], size: float) -> None:
        """Draw the symbol of an interval: filled and large if it is current, otherwise a small outline."""
        theme = self._theme
        present = number == self._show.interval and self._show.kind == "interval"
        size = size if present else 0.55 * size
        cover = pictures.badge(number, round(size), 0.0 if present else max(0.03 * size, 2.0))
        self.brush.picture(cover, place, theme.motion if present else theme.border)
        lower = 0.14 * size if number > 2 else 0.0  # the centroid of a triangle is lower than the centre of its frame
        ink = theme.panel if present else theme.faint
        self.brush.text(str(number), (place[0], place[1] - lower), 0.45 * size, ink, bold=True)

    def _draw_middle(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        middle = layout.field.middle
        if show.feedback:
            sign = pictures.tick if show.feedback == "right" else pictures.cross
            colour = theme.force if show.feedback == "right" else theme.stick
            self.brush.picture(sign(round(26 * layout.unit)), middle, colour)
        elif show.entry is not None:
            width, height = round(44 * layout.unit), round(16 * layout.unit)
            self.brush.picture(pictures.box(width, height, 0.4 * layout.unit, 2 * layout.unit), middle, theme.faint)
            self.brush.text(show.entry, middle, 9 * layout.unit, theme.text)
        elif show.until is not None:
            self._count = self.brush.text("0:00", middle, 16 * layout.unit, theme.text)

    def _draw_keys(self) -> None:
        choices, layout = self._show.keys, self._layout
        if not choices:
            return
        height = 10 * layout.unit
        cap_size, size, gap = 4.8 * layout.unit, 3.7 * layout.unit, 7 * layout.unit
        columns = [self._key_labels(choice, cap_size, size) for choice in choices]
        caps = [max(cap.content_width + 5 * layout.unit, height) for cap, _ in columns]
        widths = [max(width, words.content_width) for width, (_, words) in zip(caps, columns, strict=True)]
        room = layout.keys.width - gap * (len(widths) - 1)
        if sum(widths) > room:
            self.small = True
        for left, width, cap_width, (cap, words) in zip(
            in_a_row(widths, gap, layout.keys), widths, caps, columns, strict=True
        ):
            x, y = left + 0.5 * width, layout.keys.y + layout.keys.height - 0.5 * height
            cap.position, words.position = (x, y, 0), (x, y - 0.5 * height - 3.4 * layout.unit, 0)
            frame = pictures.box(round(cap_width), round(height), 0.35 * layout.unit, 1.6 * layout.unit)
            ground = pictures.box(round(cap_width), round(height), 0.0, 1.6 * layout.unit)
            parts = [cap, words, self.brush.picture(ground, (x, y), self._theme.panel)]
            parts.append(self.brush.picture(frame, (x, y), self._theme.text, front=True))
            if self._count is not None:
                self._waiting += parts
        for part in self._waiting:
            part.visible = False

    def _key_labels(self, choice: Choice, cap_size: float, size: float) -> tuple[Any, Any]:
        theme = self._theme
        cap = self.brush.text(choice.cap or on_the_cap(choice.key), (0, 0), cap_size, theme.text, bold=True)
        return cap, self.brush.text(choice.words, (0, 0), size, theme.text)

    def _draw_hint(self) -> None:
        show, layout, theme = self._show, self._layout, self._theme
        if not show.hold:
            return
        label = self.brush.text(show.hold, layout.hint.middle, 3.2 * layout.unit, theme.text)
        width, height = round(label.content_width + 6 * layout.unit), round(layout.hint.height)
        loud = self.brush.picture(pictures.box(width, height, 0, 0.5 * height), layout.hint.middle, theme.notice)
        line = max(0.35 * layout.unit, 2.0)
        quiet = self.brush.picture(pictures.box(width, height, line, 0.5 * height), layout.hint.middle, theme.force)
        self._hint = loud, quiet, label
        self.refresh(0.0, held=False)

    def _draw_share(self) -> None:
        share, bar, theme = self._show.share, self._layout.bar, self._theme
        if share is None:
            return
        self.brush.bar(bar, blend(theme.faint, theme.ground, 0.35))
        done = Area(bar.x, bar.y, bar.width * min(max(share, 0.0), 1.0), bar.height)
        if done.width >= 1:
            self.brush.bar(done, theme.faint)
