"""Layout of the stage, in pixels from the lower left corner. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

from apps.opengl.plane import Area

_LEAST = 600.0
"""Window height below which letters and signs do not shrink further [pixel]."""


@dataclass(frozen=True)
class Layout:
    """Areas of a window.

    Attributes
    ----------
    unit : float
        One hundredth of the window's height, with a minimum for legibility [pixel]. Sizes are multiples of it.
    window, plane, panel : Area
        The whole window, the area of the workspace, and the column with numbers and legend (zero width if hidden).
    """

    unit: float
    window: Area
    plane: Area
    panel: Area

    @property
    def text(self) -> float:
        """Height of ordinary text [pixel]."""
        return 2.15 * self.unit


def arrange(width: int, height: int, panel: bool = True) -> Layout:
    """Divide a window of the given size [pixel], with or without the column at the right."""
    unit = max(height, _LEAST) / 100
    margin = 2.0 * unit
    column = min(41.0 * unit, 0.42 * width) if panel else 0.0
    return Layout(
        unit=unit,
        window=Area(0, 0, width, height),
        plane=Area(margin, margin, max(width - column - 2 * margin, 1.0), max(height - 2 * margin, 1.0)),
        panel=Area(width - column, 0, column, height),
    )


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
