"""The column at the right of the stage: where its lines stand, and the signs of the legend. No pyglet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apps.front_ends.run import RunInfo
from apps.shared.theme import Theme
from apps.stage.layout import Layout
from apps.stage.marks import Marks, Place
from haptics.device import Causality

Draw = Callable[[Marks, Place, float], None]
"""Draws a sign into marks, at a place, for a unit of length [pixel]."""


@dataclass(frozen=True)
class Lines:
    """Heights [pixel] at which the lines of the column stand, and its left and right edge.

    Attributes
    ----------
    values : tuple of float
        Of the numbers, from above.
    legend : float
        Of the first sign; the others follow, `step` below each other.
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
    """Return where the lines of the column stand."""
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
    """How long things are drawn.

    Attributes
    ----------
    per_metre, per_newton : float
        Pixels.
    factor : int
        How many times longer than it is the link is drawn.
    """

    per_metre: float
    per_newton: float
    factor: int


def force_words(info: RunInfo) -> str:
    """Return what the arrow is."""
    return "force on the hand" if info.causality == Causality.IMPEDANCE else "force of the hand"


def contact_words(info: RunInfo) -> str:
    """Return what the place is called at which friction holds on to the ground."""
    return "proxy" if info.causality == Causality.IMPEDANCE else "contact"


def stretch_words(factor: int) -> str:
    """Say how the link is drawn."""
    return f"link, drawn {factor}× longer" if factor > 1 else "link, as long as it is"


def signs(info: RunInfo, theme: Theme, walls: bool) -> list[tuple[str, Draw]]:
    """Return what the legend explains, with what draws each sign but those of the link and the arrow."""
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
    """Draw the end effector: a disc with a ring around it."""
    marks.disc(at, 1.75 * unit, theme.text, line=max(0.34 * unit, 1.5))
    marks.disc(at, 0.85 * unit, theme.text)


def contact_mark(marks: Marks, at: Place, unit: float, theme: Theme, *, sticking: bool) -> None:
    """Draw the contact: a filled square that holds, or an open ring that slides."""
    if sticking:
        marks.square(at, 1.25 * unit, theme.stick)
    else:
        marks.disc(at, 1.25 * unit, theme.motion, line=max(0.42 * unit, 2.0))


def _path(marks: Marks, at: Place, unit: float, theme: Theme) -> None:
    marks.stroke((at[0] - 2.2 * unit, at[1]), (at[0] + 2.2 * unit, at[1]), 0.45 * unit, theme.motion)
    marks.square((at[0] - 0.9 * unit, at[1]), 0.7 * unit, theme.stick)
