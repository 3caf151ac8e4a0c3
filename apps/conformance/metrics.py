"""Metrics computed from the ticks of a motion.

All take rows of dtype `apps.conformance.kernels.ROW`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.conformance import motions
from apps.conformance.cells import FRICTION
from haptics.records import Rows

Array = NDArray[np.float64]

SLIP_DISTANCE = 2e-3
"""Displacement that counts as break-away [m]: three times the elongation of a coupling of 6000 N/m under 4 N."""

AVERAGING = 0.02
"""Averaging time of the break-away force [s], so that a chattering force counts with its mean."""

LOWEST_BUZZ = 10.0
"""Lower cutoff frequency of the buzz [Hz]."""


def _norms(vectors: Array) -> Array:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def hold_drift(rows: Rows, rate: float) -> float:
    """Return the speed [m/s] of the linear fit to the position."""
    t = np.arange(len(rows)) / rate
    t -= t.mean()
    position = rows["position"] - rows["position"].mean(axis=0)
    slope = t @ position / (t @ t)
    return float(np.hypot(*slope))


def net_drift(before: Rows, after: Rows) -> float:
    """Return the distance [m] between the mean positions in two equal sections of a periodic motion."""
    way = after["position"].mean(axis=0) - before["position"].mean(axis=0)
    return float(np.hypot(*way))


def breakaway_force(rows: Rows, rate: float) -> float:
    """Return the maximum force [N] against a growing push, up to a motion of `SLIP_DISTANCE`.

    The force is the component against the push, averaged over `AVERAGING`. For a law that creeps, the result is the
    force at which the creep has covered this distance.
    """
    moved = np.flatnonzero(_norms(rows["position"] - rows["position"][0]) > SLIP_DISTANCE)
    end = moved[0] + 1 if len(moved) else len(rows)
    against = -rows["force"][:end] @ motions.PUSH_DIRECTION
    width = min(max(round(AVERAGING * rate), 1), len(against))
    total = np.concatenate(([0.0], np.cumsum(against)))
    return float((total[width:] - total[:-width]).max() / width)


def opposing(rows: Rows, direction: float) -> Array:
    """Return the component of the force against a motion in `direction` [rad], (n,) [N]."""
    return np.asarray(-rows["force"] @ np.array((np.cos(direction), np.sin(direction))))


def direction_error_p95(rows: Rows) -> float:
    """Return the 95th percentile of the angle [deg] between the motion and the opposite of the force.

    A tick without force counts as 90 degrees.
    """
    v, f = rows["velocity"], -rows["force"]
    cross, dot = v[:, 0] * f[:, 1] - v[:, 1] * f[:, 0], np.sum(v * f, axis=1)
    angles = np.where(_norms(f) > 0.0, np.abs(np.arctan2(cross, dot)), 0.5 * np.pi)
    return float(np.degrees(np.percentile(angles, 95.0)))


def buzz(rows: Rows, rate: float) -> float:
    """Return the rms of the force on the hand above `LOWEST_BUZZ`, both components [N].

    It contains chatter and limit cycles.
    """
    return _above(rows["felt"] - rows["felt"].mean(axis=0), rate)


def sliding_buzz(rows: Rows, rate: float) -> float:
    """Return the buzz while the handle slides [N].

    The force of a motion that still settles has different values at both ends. A Hann window prevents leakage of this
    difference into the buzz.
    """
    window = np.hanning(len(rows) + 2)[1:-1]
    faded = (rows["felt"] - rows["felt"].mean(axis=0)) * window[:, None]
    return _above(faded, rate) / float(np.sqrt(np.mean(window**2)))


def _above(force: Array, rate: float) -> float:
    """Return the rms of a force (n, 2) above `LOWEST_BUZZ`."""
    spectrum = np.fft.rfft(force, axis=0)
    spectrum[np.fft.rfftfreq(len(force), 1.0 / rate) <= LOWEST_BUZZ] = 0.0
    high = np.fft.irfft(spectrum, len(force), axis=0)
    return float(np.sqrt(np.mean(np.sum(high**2, axis=1))))


def relative(force: float) -> float:
    """Return the relative error of `force` [N] with respect to the nominal friction."""
    return force / FRICTION - 1.0


def worst(numbers: Iterable[float]) -> float:
    """Return the number with the largest magnitude, with its sign."""
    return max(numbers, key=abs)


def spread(means: Sequence[float]) -> float | None:
    """Return the range of `means` relative to their mean; None if the mean is not positive."""
    mean = sum(means) / len(means)
    return (max(means) - min(means)) / mean if mean > 0.0 else None


def largest(numbers: Sequence[float | None]) -> float | None:
    """Return the largest of `numbers`; None if any is missing."""
    present = [number for number in numbers if number is not None]
    return max(present) if len(present) == len(numbers) else None
