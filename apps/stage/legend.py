"""The column at the right of the stage: positions of its lines, and signs of the legend. No pyglet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.stage.layout import Layout
from apps.stage.marks import Marks, Place
from haptics.device import Causality

Draw = Callable[[Marks, Place, float], None]
"""Draws a sign into marks at a position, with a unit of length [pixel]."""


@dataclass(frozen=True)
class Lines:
    """Heights of the lines in the column, and its left and right edge [pixel].

    Attributes
    ----------
    values : tuple of float
        Heights of the numbers, from top to bottom.
    legend : float
        Height of the first sign; the others follow below at intervals of `step`.
    """

    left: float
    right: float
    run: float
    hand: float
    state: float
    region: float
    law: float
    values: tuple[float, ...]
    legend: float
    step: float
    keys: float


def lines(layout: Layout) -> Lines:
    """Return the heights of the lines of the column."""
    unit, panel = layout.unit, layout.panel
    top = panel.y + panel.height
    return Lines(
        left=panel.x + 3.0 * unit,
        right=panel.x + panel.width - 3.0 * unit,
        run=top - 4.0 * unit,
        hand=top - 7.6 * unit,
        state=top - 14.4 * unit,
        region=top - 20.4 * unit,
        law=top - 23.8 * unit,
        values=tuple(top - (29.6 + 4.7 * row) * unit for row in range(4)),
        legend=top - 52.6 * unit,
        step=4.4 * unit,
        keys=panel.y + 3.2 * unit,
    )


@dataclass(frozen=True)
class Scales:
    """Drawing scales.

    Attributes
    ----------
    per_metre, per_newton : float
        Pixels per metre and per newton.
    factor : int
        Magnification of the elastic link.
    """

    per_metre: float
    per_newton: float
    factor: int


def force_words(info: RunInfo) -> str:
    """Return the name of the force arrow."""
    return "force on the hand" if info.causality == Causality.IMPEDANCE else "force of the hand"


def contact_words(info: RunInfo) -> str:
    """Return the name of the contact point at which friction acts."""
    return "proxy" if info.causality == Causality.IMPEDANCE else "contact"


def stretch_words(factor: int) -> str:
    """Return the legend of the elastic link, with its magnification."""
    return f"link, drawn {factor}× longer" if factor > 1 else "link, as long as it is"


def signs(info: RunInfo, theme: Theme, walls: bool) -> list[tuple[str, Draw]]:
    """Return texts and drawing functions of the signs in the legend, except for the link and the arrow."""
    contact = contact_words(info)
    found: list[tuple[str, Draw]] = [
        ("end effector", lambda marks, at, unit: handle(marks, at, unit, theme)),
        (f"{contact} that holds: stick", lambda marks, at, unit: contact_mark(marks, at, unit, theme, sticking=True)),
        (f"{contact} that slides: slip", lambda marks, at, unit: contact_mark(marks, at, unit, theme, sticking=False)),
        ("path, and where it rested", lambda marks, at, unit: _path(marks, at, unit, theme)),
    ]
    if walls:
        found.append(("wall", lambda marks, at, unit: marks.square(at, 1.3 * unit, theme.faint)))
    return found


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


def _path(marks: Marks, at: Place, unit: float, theme: Theme) -> None:
    marks.stroke((at[0] - 2.2 * unit, at[1]), (at[0] + 2.2 * unit, at[1]), 0.45 * unit, theme.motion)
    marks.square((at[0] - 0.9 * unit, at[1]), 0.7 * unit, theme.stick)
