"""From the ticks of a motion to the numbers of the suite. All take rows of dtype `apps.conformance.kernels.ROW`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.conformance import motions
from apps.conformance.cells import FRICTION
from haptics.records import Rows

Array = NDArray[np.float64]

SLIP_DISTANCE = 2e-3
"""Who has moved that far has let go [m]: three times what a coupling of 6000 N/m stretches under 4 N."""

AVERAGING = 0.02
"""The force at break-away is a mean over this time [s], so that a chattering force counts as what it is on average."""

LOWEST_BUZZ = 10.0
"""The force is a buzz above this frequency [Hz]."""


def _norms(vectors: Array) -> Array:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def hold_drift(rows: Rows, rate: float) -> float:
    """Return the speed [m/s] of the straight line that fits the position best."""
    t = np.arange(len(rows)) / rate
    t -= t.mean()
    position = rows["position"] - rows["position"].mean(axis=0)
    slope = t @ position / (t @ t)
    return float(np.hypot(*slope))


def net_drift(before: Rows, after: Rows) -> float:
    """Return the distance [m] between the mean positions of two equal pieces of a periodic motion."""
    way = after["position"].mean(axis=0) - before["position"].mean(axis=0)
    return float(np.hypot(*way))


def breakaway_force(rows: Rows, rate: float) -> float:
    """Return the largest force [N] with which a growing push was met before the position had moved `SLIP_DISTANCE`.

    The force is the component against the push, as a mean over `AVERAGING`. A law that creeps is thus charged with the
    force at which its creep has covered that distance.
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
    """Return the angle [deg] between motion and opposite of the force that 95 % of the ticks do not exceed.

    A tick without force counts as 90 degrees.
    """
    v, f = rows["velocity"], -rows["force"]
    cross, dot = v[:, 0] * f[:, 1] - v[:, 1] * f[:, 0], np.sum(v * f, axis=1)
    angles = np.where(_norms(f) > 0.0, np.abs(np.arctan2(cross, dot)), 0.5 * np.pi)
    return float(np.degrees(np.percentile(angles, 95.0)))


def buzz(rows: Rows, rate: float) -> float:
    """Return the rms of the force on the hand above `LOWEST_BUZZ` (chatter, limit cycles), both components [N]."""
    return _above(rows["felt"] - rows["felt"].mean(axis=0), rate)


def sliding_buzz(rows: Rows, rate: float) -> float:
    """Return the same while the handle slides [N].

    The force of a motion that still settles ends elsewhere than it began; faded in and out by a Hann window, it does
    not leak into the buzz.
    """
    window = np.hanning(len(rows) + 2)[1:-1]
    faded = (rows["felt"] - rows["felt"].mean(axis=0)) * window[:, None]
    return _above(faded, rate) / float(np.sqrt(np.mean(window**2)))


def _above(force: Array, rate: float) -> float:
    """Return the root mean square of a force (n, 2) above `LOWEST_BUZZ`."""
    spectrum = np.fft.rfft(force, axis=0)
    spectrum[np.fft.rfftfreq(len(force), 1.0 / rate) <= LOWEST_BUZZ] = 0.0
    high = np.fft.irfft(spectrum, len(force), axis=0)
    return float(np.sqrt(np.mean(np.sum(high**2, axis=1))))


def relative(force: float) -> float:
    """Return the error of `force` [N] relative to the friction that was asked for."""
    return force / FRICTION - 1.0


def worst(numbers: Iterable[float]) -> float:
    """Return the one that is farthest from zero, with its sign."""
    return max(numbers, key=abs)


def spread(means: Sequence[float]) -> float | None:
    """Return the largest difference of `means` relative to their mean; None if that is no friction."""
    mean = sum(means) / len(means)
    return (max(means) - min(means)) / mean if mean > 0.0 else None


def largest(numbers: Sequence[float | None]) -> float | None:
    """Return the largest of `numbers`; None if one of them is missing."""
    present = [number for number in numbers if number is not None]
    return max(present) if len(present) == len(numbers) else None
