"""The estimators behind one kernel and one class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.velocity.adaptive import best_fit, end_fit
from devices.velocity.crossing import CROSSING_FIELDS, begin_crossing, crossing
from devices.velocity.difference import HISTORY_FIELDS, difference, remember
from devices.velocity.kalman import KALMAN_FIELDS, begin_kalman, kalman
from devices.velocity.settings import ESTIMATORS, VelocitySettings
from devices.velocity.tracker import TRACKER_FIELDS, begin_tracker, tracker
from haptics._jit import kernel
from haptics.device import Vector
from haptics.errors import ConfigurationError

VELOCITY_FIELDS: list[tuple[Any, ...]] = [
    ("velocity_kind", "<i8"),
    ("velocity_resolution", "<f8"),
    ("velocity_period", "<f8"),
    ("velocity_memory", "<f8"),
    ("velocity_acceleration", "<f8"),
    ("velocity_rest_gain", "<f8"),
    ("velocity_samples", "<i8"),
    ("velocity_time", "<f8"),
    *HISTORY_FIELDS,
    *TRACKER_FIELDS,
    *KALMAN_FIELDS,
    *CROSSING_FIELDS,
    ("velocity", "<f8", (2,)),
]
"""Fields a kernel's record needs for `update_velocity`; `fill_velocity` fills them, the result is in ``velocity``."""

_DIFFERENCE, _END_FIT, _BEST_FIT, _KALMAN, _CROSSING, _TRACKER = range(len(ESTIMATORS))


@kernel
def _begin(s: Any, time: float, x: float, y: float) -> None:
    """Take the first sample."""
    s.velocity[0] = s.velocity[1] = 0.0
    begin_tracker(s, x, y)
    begin_kalman(s)
    begin_crossing(s, time, x, y)


@kernel
def _estimate(s: Any, time: float, x: float, y: float) -> None:
    """Take a sample that is not the first."""
    if s.velocity_kind == _DIFFERENCE:
        difference(s)
    elif s.velocity_kind == _END_FIT:
        end_fit(s)
    elif s.velocity_kind == _BEST_FIT:
        best_fit(s)
    elif s.velocity_kind == _KALMAN:
        kalman(s, time - s.velocity_time, x, y)
    elif s.velocity_kind == _CROSSING:
        crossing(s, time, x, y)
    elif s.velocity_kind == _TRACKER:
        tracker(s, time - s.velocity_time, x, y)


@kernel
def update_velocity(s: Any, time: float, x: float, y: float) -> None:
    """Take the sample (x, y) [m] at `time` [s] and update ``s.velocity`` [m/s].

    A sample whose time does not advance, or that is no number, is ignored.
    """
    if not math.isfinite(time + x + y) or (s.velocity_samples > 0 and time <= s.velocity_time):
        return
    remember(s, time, x, y)
    if s.velocity_samples == 0:
        _begin(s, time, x, y)
    else:
        _estimate(s, time, x, y)
    s.velocity_time = time
    s.velocity_samples += 1


@kernel
def _update(record: Any, time: float, x: float, y: float) -> None:
    update_velocity(record[0], time, x, y)


def fill_velocity(record: NDArray[Any], settings: VelocitySettings, resolution: float, period: float) -> None:
    """Make a kernel's record ready for `update_velocity`.

    Parameters
    ----------
    record : (1,) structured array
        With the fields of `VELOCITY_FIELDS`; whatever it had estimated is forgotten.
    settings : VelocitySettings
        Which estimator, and its numbers.
    resolution : float
        Smallest step of the positions [m]; 0 if they are perfect.
    period : float
        Nominal time between two samples [s].

    Raises
    ------
    ConfigurationError
        If the estimator needs an encoder and there is none.
    """
    name = settings.velocity_estimator
    if name == "level-crossing" and not resolution > 0.0:
        raise ConfigurationError(
            f"velocity_estimator = {name!r}: needs an encoder, that is a resolution greater than 0 m."
        )
    record["velocity_kind"] = ESTIMATORS.index(name)
    record["velocity_resolution"], record["velocity_period"] = resolution, period
    for field in ("velocity_window", "velocity_memory", "velocity_acceleration", "velocity_rest_gain"):
        record[field] = getattr(settings, field)
    record["velocity_samples"], record["velocity"] = 0, 0.0


class VelocityEstimator:
    """An estimator for drivers written in Python.

    Parameters
    ----------
    resolution : float
        Smallest step of the positions [m]; 0 if they are perfect.
    period : float
        Nominal time between two samples [s].
    settings : VelocitySettings, optional
        Which estimator, and its numbers.

    Attributes
    ----------
    velocity : (2,) float array
        Latest velocity [m/s]; zeros before the second sample. The same array each time.

    Raises
    ------
    ConfigurationError
        If the estimator needs an encoder and there is none.
    """

    def __init__(self, resolution: float, period: float, settings: VelocitySettings | None = None) -> None:
        self._record = np.zeros(1, np.dtype(VELOCITY_FIELDS))
        fill_velocity(self._record, settings or VelocitySettings(), resolution, period)
        self.velocity: Vector = self._record["velocity"][0]

    def reset(self) -> None:
        """Forget every sample."""
        self._record["velocity_samples"] = 0
        self.velocity[:] = 0.0

    def update(self, time: float, x: float, y: float) -> Vector:
        """Take a position (x, y) [m] measured at `time` [s] and return the velocity, (2,) [m/s]."""
        _update(self._record, time, x, y)
        return self.velocity
