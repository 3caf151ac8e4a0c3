"""Overlays of the stage: a message at the top, and the help on keys."""

from __future__ import annotations

from apps.opengl.paint import Brush, fit
from apps.opengl.plane import Area
from apps.shared.theme import Theme
from apps.stage.drawing.actors import Painter
from apps.stage.layout import Layout
from apps.stage.marks import Marks


def keys(space_holds: bool, mouse: bool, pointers: tuple[str, ...] = ()) -> tuple[tuple[str, str], ...]:
    """Return the keys and their functions. If the space bar must be held during the run, Esc stops it.

    Parameters
    ----------
    space_holds, mouse : bool
        Whether the space bar must be held, and whether the mouse acts as the hand.
    pointers : tuple of str
        Descriptions of the other pointing devices that can act as the hand.
    """
    stop = (("space bar", "hold it: without it there is no force"), ("Esc", "stop the run"))
    usual = (("space bar", "stop the run"), ("Esc", "leave the full screen"))
    others = tuple(("", words) for words in pointers)
    hand = (("mouse", "over the plane it is your hand; its buttons are the device's"), *others) if mouse else ()
    return (
        *(stop if space_holds else usual),
        *hand,
        ("Enter", "after the end: start again"),
        ("F1", "these keys, or not"),
        ("F2", "freeze the picture, or let it go on; the run goes on"),
        ("F7", "dark or light"),
        ("F8", "numbers and legend, or the plane alone"),
        ("F11", "full screen, or a window"),
    )


class Banner:
    """A message at the top of the plane; an important one has a filled background."""

    def __init__(self, painter: Painter, layout: Layout, theme: Theme, words: str, loud: bool) -> None:
        self._painter = painter
        unit, plane = layout.unit, layout.plane
        size = 1.1 * layout.text
        self._brush = Brush()
        room = Area(plane.x + 3 * unit, plane.y + plane.height - 16 * unit, plane.width - 6 * unit, 12 * unit)
        self._brush.paragraphs(words, room, (size, 0.8 * size), theme.on_alarm if loud else theme.text, left=False)
        label = self._brush.labels[-1]
        self._marks = Marks(theme.panel, 0.0 if loud else max(0.3 * unit, 2.0))
        high = 0.5 * label.content_height + 1.2 * unit
        x, y = room.middle
        wide = max(0.5 * label.content_width + 2.5 * unit - high, 0.0)
        ground = theme.notice if loud else theme.panel
        self._marks.stroke((x - wide, y), (x + wide, y), 2 * high, ground, share=0.96 if loud else 0.9)

    @property
    def shapes(self) -> int:
        """Number of shapes drawn."""
        return self._brush.shapes + self._marks.count

    def draw(self) -> None:
        """Draw the message."""
        self._painter.marks(self._marks)
        self._brush.draw()


class Help:
    """Help on the keys, in the middle of the window."""

    def __init__(self, painter: Painter, layout: Layout, theme: Theme, entries: tuple[tuple[str, str], ...]) -> None:
        self._painter = painter
        unit, text, window = layout.unit, layout.text, layout.window
        step = 5.0 * unit
        high = step * (len(entries) + 2)
        wide = min(88.0 * unit, 0.96 * window.width)
        left, top = window.middle[0] - 0.5 * wide, window.middle[1] + 0.5 * high
        self._marks = Marks(theme.border, max(0.3 * unit, 2.0))
        self._marks.box(window.middle, (0.5 * wide, 0.5 * high), 2.0 * unit, theme.panel)
        self._brush = Brush()
        self._brush.text("Keys", (left + 4 * unit, top - step), 1.5 * text, theme.text, True, "left")
        for row, (key, words) in enumerate(entries):
            y = top - (row + 2) * step
            self._brush.text(key, (left + 4 * unit, y), text, theme.motion, True, "left")
            meaning = self._brush.text(words, (left + 20 * unit, y), text, theme.text, anchor="left")
            fit(meaning, text, wide - 24 * unit)

    @property
    def shapes(self) -> int:
        """Number of shapes drawn."""
        return self._brush.shapes + self._marks.count

    def draw(self) -> None:
        """Draw the help."""
        self._painter.marks(self._marks)
        self._brush.draw()
