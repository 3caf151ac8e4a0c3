"""Where things are on the participant's screen, in pixels from the lower left corner. No pyglet."""

from __future__ import annotations

from dataclasses import dataclass

from apps.experiment.screens.messages import Corners

TITLE = 6.6
"""Height of the letters of a title, in hundredths of the window's height."""

TEXT = 4.3
"""That of ordinary text: 13 mm on a screen of 300 mm, which is read with ease at 1 m."""

LEAST_TEXT = 2.4
"""Text that needs smaller letters than these to fit is too long for a page."""


@dataclass(frozen=True)
class Area:
    """A rectangle: its lower left corner and its size [pixel]."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return self.x + 0.5 * self.width, self.y + 0.5 * self.height

    def holds(self, other: Area, slack: float = 0.5) -> bool:
        """Tell whether `other` lies inside, but for `slack` pixels."""
        return (
            other.x >= self.x - slack
            and other.y >= self.y - slack
            and other.x + other.width <= self.x + self.width + slack
            and other.y + other.height <= self.y + self.height + slack
        )


@dataclass(frozen=True)
class Layout:
    """The areas of a window; `unit` is a hundredth of its height [pixel]."""

    unit: float
    window: Area
    title: Area
    lead: Area
    text: Area
    heading: Area
    below: Area
    field: Area
    left: Area
    right: Area
    hint: Area
    keys: Area
    bar: Area


def arrange(width: int, height: int) -> Layout:
    """Divide a window of this size [pixel]."""
    unit = height / 100
    margin = 5 * unit
    inside = width - 2 * margin
    side = min(26 * unit, 0.2 * width)

    def band(bottom: float, top: float) -> Area:
        return Area(margin, bottom * unit, inside, (top - bottom) * unit)

    rows = band(31, 79)
    bar = min(80 * unit, inside)
    return Layout(
        unit=unit,
        window=Area(0, 0, width, height),
        title=band(88, 98),
        lead=band(80, 88),
        text=band(31, 87),
        heading=band(58, 72),
        below=band(31, 57),
        field=Area(margin + side, rows.y, inside - 2 * side, rows.height),
        left=Area(margin, rows.y, side, rows.height),
        right=Area(width - margin - side, rows.y, side, rows.height),
        hint=band(23.5, 29.5),
        keys=band(4.5, 22),
        bar=Area(0.5 * (width - bar), 1.4 * unit, bar, 1.4 * unit),
    )


@dataclass(frozen=True)
class Plane:
    """A workspace in an area, with equal scales: places on the plane [m] and on the window [pixel].

    It lies in the same place whatever else is shown, so that a hand that is moved by a mouse never jumps.
    """

    area: Area
    workspace: Corners

    @property
    def scale(self) -> float:
        """Pixels per metre."""
        (left, low), (right, high) = self.workspace
        return min(self.area.width / max(right - left, 1e-9), self.area.height / max(high - low, 1e-9))

    def to_window(self, x: float, y: float) -> tuple[float, float]:
        """Return where a place of the plane is on the window."""
        (left, low), (right, high) = self.workspace
        across, up = self.area.middle
        return across + self.scale * (x - 0.5 * (left + right)), up + self.scale * (y - 0.5 * (low + high))

    def to_plane(self, across: float, up: float) -> tuple[float, float]:
        """Return the place of the plane under a pixel, kept in the workspace."""
        (left, low), (right, high) = self.workspace
        middle_x, middle_y = self.area.middle
        x = 0.5 * (left + right) + (across - middle_x) / self.scale
        y = 0.5 * (low + high) + (up - middle_y) / self.scale
        return min(max(x, left), right), min(max(y, low), high)

    @property
    def outline(self) -> Area:
        """The workspace on the window."""
        x, y = self.to_window(*self.workspace[0])
        right, top = self.to_window(*self.workspace[1])
        return Area(x, y, right - x, top - y)


def in_a_row(widths: list[float], gap: float, area: Area) -> list[float]:
    """Return the left edges of boxes of these widths, side by side in the middle of an area."""
    edges = []
    x = area.middle[0] - 0.5 * (sum(widths) + gap * (len(widths) - 1))
    for width in widths:
        edges.append(x)
        x += width + gap
    return edges
