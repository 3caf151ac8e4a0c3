"""Numbers and certificates as displayed: formats, scales of sliders and axes, and texts. No Qt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

# --- formats ----------------------------------------------------------------------------------------------------------


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


# --- scales -----------------------------------------------------------------------------------------------------------

STEPS = 1000
"""Number of steps of the slider of a real number."""

_NICE = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


class SliderScale:
    """Maps the positions 0..`steps` of a slider to a range of values and back.

    Parameters
    ----------
    minimum, maximum : float
        Ends of the range.
    logarithmic : bool
        Whether equal steps are equal ratios. Needs ``minimum > 0``; otherwise the scale is linear.
    whole : bool
        Whether each step is 1, on a linear scale whose ends are integers.

    Attributes
    ----------
    steps : int
        Number of steps of the slider.
    decimals : int
        Number of decimals that resolve a step of the slider.
    """

    def __init__(self, minimum: float, maximum: float, logarithmic: bool = False, whole: bool = False) -> None:
        self.minimum, self.maximum = minimum, maximum
        self.steps = max(round(maximum - minimum), 1) if whole else STEPS
        self._by_ratio = logarithmic and not whole and 0 < minimum < maximum
        if whole:
            digits = 0
        elif self._by_ratio:
            digits = 1 - math.floor(math.log10(minimum))
        else:
            digits = round(-math.log10((maximum - minimum) / STEPS)) if maximum > minimum else 2
        self.decimals = min(max(digits, 0), 6)

    def value(self, position: int) -> float:
        """Return the value at a slider position."""
        share = min(max(position / self.steps, 0.0), 1.0)
        if self._by_ratio:
            return float(self.minimum * (self.maximum / self.minimum) ** share)
        return self.minimum + share * (self.maximum - self.minimum)

    def position(self, value: float) -> int:
        """Return the slider position nearest to a value."""
        if self.maximum <= self.minimum:
            return 0
        if self._by_ratio:
            share = math.log(max(value, self.minimum) / self.minimum) / math.log(self.maximum / self.minimum)
        else:
            share = (value - self.minimum) / (self.maximum - self.minimum)
        return round(self.steps * min(max(share, 0.0), 1.0))


def nice_ceiling(value: float) -> float:
    """Return the smallest "nice" number that is at least `value`.

    Nice numbers are 1, 1.5, 2, 2.5, 3, 4, 5, 6 and 8 times a power of ten.
    """
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _NICE if step * power >= value * (1 - 1e-9)), 10 * power)


PATIENCE = 90
"""Number of consecutive frames after which the smaller upper end of an axis is adopted."""


class AxisTop:
    """Upper end of an axis that grows immediately and shrinks after a delay, to keep the display steady.

    Parameters
    ----------
    least : float
        Lower bound of the upper end.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._waited = 0
        self.top = nice_ceiling(least)

    def follow(self, largest: float) -> bool:
        """Update the axis with the largest value of a frame; return True if `top` has changed."""
        target = nice_ceiling(max(1.08 * largest, self._least))
        self._waited = self._waited + 1 if target < self.top else 0
        if target > self.top or self._waited > PATIENCE:
            self.top, self._waited = target, 0
            return True
        return False


# --- certificate of a run ---------------------------------------------------------------------------------------------

QUANTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
"""Quantiles of a certificate and their display names."""

START_DELAY, COMPUTATION = "start delay", "computation time"

_DURATIONS = {
    "period_error_us": START_DELAY,
    "tick_us": COMPUTATION,
    "write_us": "time to command",
    "sample_age_us": "sample age",
}
_SCHEDULING = {"fifo": "real-time (FIFO)", "other": "not real-time"}


class Verdict(NamedTuple):
    """Fitness of a run by the limits it was started with: one word, and the reasons if it is unfit."""

    fit: bool
    word: str
    reasons: tuple[str, ...]


def verdict(summary: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict in `summary`; None if it has none, as for a run that was not closed."""
    if "fit" not in summary:
        return None
    fit = bool(summary["fit"])
    return Verdict(fit, "fit" if fit else "UNFIT", tuple(str(reason) for reason in summary.get("unfit_because", ())))


def certificate(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the certificate, each with its name. Missing and uninformative entries are omitted.

    Parameters
    ----------
    summary : mapping
        The JSON object that the command prints, or the certificate in a ``recording.json``.
    """
    lines = []
    if "ticks" in summary:
        rate = f" at {float(summary['rate_hz']):g} Hz" if "rate_hz" in summary else ""
        lines.append(("ticks", grouped(int(summary["ticks"])) + rate))
    names = (("skipped", "skipped"), ("late", "overruns"), ("lost", "lost_ticks"))
    parts = [f"{grouped(int(summary[key]))} {name}" for name, key in names if key in summary]
    if summary.get("unusable_ticks"):
        parts.append(f"{grouped(int(summary['unusable_ticks']))} unusable samples")
    if parts:
        lines.append(("deadlines", ", ".join(parts)))
    if summary.get("longest_gap_us"):
        lines.append(("longest gap", f"{microseconds(float(summary['longest_gap_us']))} between two ticks"))
    granted = summary.get("realtime", summary.get("scheduling"))
    if summary.get("real_time_factor"):
        lines.append(("clock", f"off: {grouped(round(float(summary['real_time_factor'])))} times real time"))
    elif granted is not None:
        processors = str(summary.get("processors", "unknown"))
        pinned = f", CPUs {processors}" if "," in processors else f", pinned to CPU {processors}"
        words = _SCHEDULING.get(str(granted), str(granted))
        lines.append(("scheduling", words + (pinned if processors != "unknown" else "")))
    disturbances = []
    if summary.get("stolen_s"):
        disturbances.append(f"CPU steal {float(summary['stolen_s']):.3g}\u00a0s")
    for key, name in (("involuntary_switches", "preemption"), ("major_faults", "major page fault")):
        if count := int(summary.get(key) or 0):
            disturbances.append(f"{grouped(count)} {name}{'s' if count != 1 else ''}")
    if disturbances:
        lines.append(("disturbed by", ", ".join(disturbances)))
    force = summary.get("force_n")
    if isinstance(force, Mapping) and force:
        lines.append(("force", ", ".join(f"{key} {force[key]:.2f}\u00a0N" for key in ("mean", "max") if key in force)))
    if summary.get("stick_fraction") is not None:
        lines.append(("sticking", f"{100 * float(summary['stick_fraction']):.0f} % of the time"))
    return lines


def durations(summary: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the quantiles [us] of every duration in the certificate, by display name.

    Durations that are always zero are omitted, such as the sample age of a device whose samples are always new.
    """
    found = {name: summary.get(key) for key, name in _DURATIONS.items()}
    return {
        name: {word: float(values[key]) for key, word in QUANTILES.items() if key in values}
        for name, values in found.items()
        if isinstance(values, Mapping) and any(values.values())
    }
