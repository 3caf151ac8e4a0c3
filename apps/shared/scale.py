"""Slider scales, axis limits, and formatting of numbers. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass

STEPS = 1000
"""Number of steps of the slider of a real number."""


@dataclass(frozen=True)
class SliderScale:
    """Maps the positions 0..`steps` of a slider to a range of values and back.

    Attributes
    ----------
    minimum, maximum : float
        Ends of the range.
    logarithmic : bool
        Whether equal steps are equal ratios. Needs ``minimum > 0``; otherwise the scale is linear.
    whole : bool
        Whether each step is 1, on a linear scale whose ends are integers.
    """

    minimum: float
    maximum: float
    logarithmic: bool = False
    whole: bool = False

    @property
    def steps(self) -> int:
        """Number of steps of the slider."""
        return max(round(self.maximum - self.minimum), 1) if self.whole else STEPS

    @property
    def by_ratio(self) -> bool:
        """Whether the scale is in fact logarithmic."""
        return self.logarithmic and not self.whole and 0 < self.minimum < self.maximum

    @property
    def decimals(self) -> int:
        """Number of decimals that resolve a step of the slider."""
        if self.whole:
            digits = 0
        elif self.by_ratio:
            digits = 1 - math.floor(math.log10(self.minimum))
        else:
            digits = round(-math.log10((self.maximum - self.minimum) / STEPS)) if self.maximum > self.minimum else 2
        return min(max(digits, 0), 6)

    def value(self, position: int) -> float:
        """Return the value at a slider position."""
        share = min(max(position / self.steps, 0.0), 1.0)
        if self.by_ratio:
            return float(self.minimum * (self.maximum / self.minimum) ** share)
        return self.minimum + share * (self.maximum - self.minimum)

    def position(self, value: float) -> int:
        """Return the slider position nearest to a value."""
        if self.maximum <= self.minimum:
            return 0
        if self.by_ratio:
            share = math.log(max(value, self.minimum) / self.minimum) / math.log(self.maximum / self.minimum)
        else:
            share = (value - self.minimum) / (self.maximum - self.minimum)
        return round(self.steps * min(max(share, 0.0), 1.0))


_STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


def nice_ceiling(value: float) -> float:
    """Return the smallest "nice" number that is at least `value`.

    Nice numbers are 1, 1.5, 2, 2.5, 3, 4, 5, 6 and 8 times a power of ten.
    """
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * (1 - 1e-9)), 10 * power)


class AxisTop:
    """Upper end of an axis that grows immediately and shrinks after a delay, to keep the display steady.

    Parameters
    ----------
    least : float
        Lower bound of the upper end.
    patience : int
        Number of consecutive frames after which a smaller upper end is adopted.
    """

    def __init__(self, least: float, patience: int = 90) -> None:
        self._least = least
        self._patience = patience
        self._waited = 0
        self.top = nice_ceiling(least)

    def follow(self, largest: float) -> bool:
        """Update the axis with the largest value of a frame; return True if `top` has changed."""
        wanted = nice_ceiling(max(1.08 * largest, self._least))
        self._waited = self._waited + 1 if wanted < self.top else 0
        if wanted > self.top or self._waited > self._patience:
            self.top, self._waited = wanted, 0
            return True
        return False


def microseconds(value: float) -> str:
    """Format a time given in microseconds: ``0.034 µs``, ``21 µs``, ``1.38 ms``."""
    if abs(value) < 10:
        return f"{value:.2g} µs"
    return f"{value:.0f} µs" if abs(value) < 1000 else f"{value / 1000:.3g} ms"


def millijoules(energy: float, limit: float | None = None) -> str:
    """Format an energy [J] in millijoules, to a thousandth of `limit` [J] if given: ``0.8``, ``100``."""
    value = 1e3 * energy
    if limit is None:
        return f"{value:.3g}"
    return f"{value:.{min(max(-math.floor(math.log10(limit)), 0), 6)}f}"


def clock(seconds: float) -> str:
    """Format a duration [s] as ``0:12.3``, from one hour on as ``1:02:03.4``."""
    tenths = int(10 * max(seconds, 0.0) + 0.5)
    minutes, rest = tenths // 600, f"{tenths // 10 % 60:02d}.{tenths % 10}"
    return f"{minutes}:{rest}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest}"


def grouped(count: int) -> str:
    """Format a count with thin spaces between groups of three digits."""
    return f"{count:,}".replace(",", "\u2009")
