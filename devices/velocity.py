"""Velocity from an encoder: the difference over a window of samples, shared by every device that has none better.

Over ``n`` periods of ``T`` an encoder of resolution ``q`` gives velocities in steps of ``q / (n T)`` and delays them by
``n T / 2``. The backward difference (n = 1) is what the friction elements expect: with it, the sum of velocity times
period is exactly the encoder's displacement, so that quantisation cannot make an element drift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics._jit import kernel
from haptics.device import Vector
from haptics.errors import ConfigurationError

LONGEST_WINDOW = 64
"""Largest number of periods a velocity can be averaged over."""

_LENGTH = LONGEST_WINDOW + 1

VELOCITY_FIELDS: list[tuple[Any, ...]] = [
    ("velocity_window", "<i8"),
    ("velocity_samples", "<i8"),
    ("velocity_times", "<f8", (_LENGTH,)),
    ("velocity_positions", "<f8", (_LENGTH, 2)),
    ("velocity", "<f8", (2,)),
]
"""Fields a kernel's record needs for `push_position`; the result is in ``velocity`` [m/s]."""


@kernel
def push_position(s: Any, time: float, x: float, y: float) -> None:
    """Take the sample (x, y) [m] at `time` [s] and update ``s.velocity``; a time that does not advance is ignored."""
    count = s.velocity_samples
    if count > 0 and time <= s.velocity_times[(count - 1) % _LENGTH]:
        return
    new = count % _LENGTH
    s.velocity_times[new] = time
    s.velocity_positions[new, 0], s.velocity_positions[new, 1] = x, y
    s.velocity_samples = count + 1
    if count > 0:
        old = (count - min(s.velocity_window, count)) % _LENGTH
        elapsed = time - s.velocity_times[old]
        s.velocity[0] = (x - s.velocity_positions[old, 0]) / elapsed
        s.velocity[1] = (y - s.velocity_positions[old, 1]) / elapsed


@kernel
def _push(record: Any, time: float, x: float, y: float) -> None:
    push_position(record[0], time, x, y)


def check_window(window: int, where: str) -> None:
    """Raise `ConfigurationError` unless `window` is a whole number of periods the estimator has room for."""
    if not isinstance(window, int) or isinstance(window, bool) or not 1 <= window <= LONGEST_WINDOW:
        raise ConfigurationError(f"{where} = {window!r}: must be a whole number of periods, 1 to {LONGEST_WINDOW}.")


class VelocityEstimator:
    """The windowed difference for drivers written in Python.

    Parameters
    ----------
    window : int
        Number of sample periods to average over; 1 is the backward difference. While fewer samples are known, those
        that are.

    Attributes
    ----------
    velocity : (2,) float array
        Latest velocity [m/s]; zeros before the second sample. The same array each time.

    Raises
    ------
    ConfigurationError
        If the window is not a whole number from 1 to `LONGEST_WINDOW`.
    """

    def __init__(self, window: int = 1) -> None:
        check_window(window, "velocity_window")
        self._record = np.zeros(1, np.dtype(VELOCITY_FIELDS))
        self._record["velocity_window"] = window
        self.velocity: Vector = self._record["velocity"][0]

    def reset(self) -> None:
        """Forget every sample."""
        self._record["velocity_samples"] = 0
        self.velocity[:] = 0.0

    def update(self, time: float, x: float, y: float) -> Vector:
        """Take a position (x, y) [m] measured at `time` [s] and return the velocity, (2,) [m/s]."""
        _push(self._record, time, x, y)
        return self.velocity
