"""Layout of the stage: areas, lines of the column, inputs of a picture, and signs of the legend. No pyglet.

Lengths are in pixels from the lower left corner of the window.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.front_ends.run import RunInfo
from apps.opengl.plane import Area, Plane
from apps.shared.theme import Theme
from apps.stage.ground import Ground
from apps.stage.shapes import Marks, Place
from haptics.device import Causality

LONGEST_LINK = 14.5
"""Approximate maximum length of the drawn link, in units of the layout."""

_LEAST = 600.0
"""Window height below which letters and signs do not shrink further [pixel]."""


class Layout:
    """Areas of a window, and the lines in its column.

    Parameters
    ----------
    width, height : int
        Size of the window [pixel].
    panel : bool
        Whether the column at the right is shown.

    Attributes
    ----------
    unit : float
        One hundredth of the window's height, with a minimum for legibility [pixel]. Sizes are multiples of it.
    text : float
        Height of ordinary text [pixel].
    window, plane, panel : Area
        The whole window, the area of the workspace, and the column with numbers and legend (zero width if hidden).
    left, right : float
        Left and right edge of the lines in the column [pixel].
    run, hand, state, region, law, keys : float
        Heights of the lines in the column [pixel].
    values : tuple of float
        Heights of the numbers, from top to bottom [pixel].
    legend, step : float
        Height of the first sign; the others follow below at intervals of `step` [pixel].
    """

    def __init__(self, width: int, height: int, panel: bool = True) -> None:
        self.unit = unit = max(height, _LEAST) / 100
        self.text = 2.15 * unit
        margin, column = 2.0 * unit, min(41.0 * unit, 0.42 * width) if panel else 0.0
        self.window, self.panel = Area(0, 0, width, height), Area(width - column, 0, column, height)
        room = max(width - column - 2 * margin, 1.0), max(height - 2 * margin, 1.0)
        self.plane = Area(margin, margin, *room)
        self.left, self.right = self.panel.x + 3.0 * unit, self.panel.x + column - 3.0 * unit
        self.run, self.hand, self.state, self.region, self.law, self.legend = (
            height - lines * unit for lines in (4.0, 7.6, 14.4, 20.4, 23.8, 52.6)
        )
        self.values = tuple(height - (29.6 + 4.7 * row) * unit for row in range(4))
        self.step, self.keys = 4.4 * unit, self.panel.y + 3.2 * unit


def nice_length(room: float) -> float:
    """Return the largest of 1, 2 or 5 times a power of ten that is at most `room`."""
    if not room > 0:
        return 1.0
    power = 1.0
    while power > room:
        power /= 10
    while 10 * power <= room:
        power *= 10
    return next(step * power for step in (5, 2, 1) if step * power <= room)


@dataclass(frozen=True)
class Scenery:
    """Inputs of a picture other than the rows: a run, its ground, and its layout.

    Attributes
    ----------
    per_newton : float
        Pixels per newton of the arrows.
    factor : int
        Magnification of the elastic link.
    """

    layout: Layout
    plane: Plane
    info: RunInfo
    theme: Theme
    ground: Ground
    per_newton: float
    factor: int

    @property
    def room(self) -> float:
        """Maximum length of the drawn link, in metres of the plane [m]."""
        return LONGEST_LINK * self.layout.unit / self.plane.scale


# --- signs ------------------------------------------------------------------------------------------------------------


def force_words(info: RunInfo) -> str:
    """Return the name of the force arrow."""
    return "force on the hand" if info.causality == Causality.IMPEDANCE else "force of the hand"


def handle(marks: Marks, at: Place, unit: float, theme: Theme) -> None:
    """Draw the end effector: a disc with a ring."""
    marks.disc(at, 1.75 * unit, theme.text, line=max(0.34 * unit, 1.5))
    marks.disc(at, 0.85 * unit, theme.text)


def contact_mark(marks: Marks, at: Place, unit: float, theme: Theme, *, sticking: bool) -> None:
    """Draw the contact: a filled square while sticking, a ring while sliding."""
    if sticking:
        marks.square(at, 1.25 * unit, theme.stick)
    else:
        marks.disc(at, 1.25 * unit, theme.motion, line=max(0.42 * unit, 2.0))
