"""Velocity estimators as separately compiled parts, with one kernel and one class as interface."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.velocity.adaptive import best_fit, end_fit
from devices.common.velocity.crossing import CROSSING_FIELDS, begin_crossing, crossing
from devices.common.velocity.difference import HISTORY_FIELDS, difference, remember
from devices.common.velocity.kalman import KALMAN_FIELDS, begin_kalman, kalman
from devices.common.velocity.settings import ESTIMATORS, VelocitySettings
from devices.common.velocity.tracker import TRACKER_FIELDS, begin_tracker, tracker
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.jit import kernel, merged_kernel
from haptics.parts import address_of_part, call_part

VELOCITY = np.dtype(
    [
        ("kind", "<i8"),
        ("step", "<i8"),
        ("resolution", "<f8"),
        ("period", "<f8"),
        ("memory", "<f8"),
        ("acceleration", "<f8"),
        ("rest_gain", "<f8"),
        ("samples", "<i8"),
        ("time", "<f8"),
        ("elapsed", "<f8"),
        *HISTORY_FIELDS,
        *TRACKER_FIELDS,
        *KALMAN_FIELDS,
        *CROSSING_FIELDS,
        ("velocity", "<f8", (2,)),
    ]
)
"""Record of an estimator, as a field of a device record.

It contains the kind and the address of the part, the parameters, the number of samples, the time of the newest sample
and since the one before [s], the state, and the result [m/s].
"""

_STEPS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "difference": (remember, difference),
    "end-fit": (remember, end_fit),
    "best-fit": (remember, best_fit),
    "kalman": (begin_kalman, kalman),
    "level-crossing": (begin_crossing, crossing),
    "tracker": (begin_tracker, tracker),
}
"""Kernels ``(record, x, y)`` of each estimator, for the first sample and for later samples."""


@functools.cache
def _part(name: str) -> Callable[..., None]:
    begin, estimate = _STEPS[name]

    @kernel
    def step(s: Any, x: float, y: float) -> None:
        if s.samples == 0:
            s.velocity[0], s.velocity[1] = 0.0, 0.0
            begin(s, x, y)
        else:
            estimate(s, x, y)

    return step


@merged_kernel
def update_velocity(s: Any, time: float, x: float, y: float) -> None:
    """Update ``s.velocity`` [m/s] with the sample (x, y) [m] at `time` [s]; `s` has dtype `VELOCITY`.

    Samples are ignored if they are not finite or their time does not increase. The velocity is nan if the record was
    not prepared.
    """
    if s.step == 0:
        s.velocity[0] = s.velocity[1] = math.nan
        return
    if not math.isfinite(time + x + y) or (s.samples > 0 and time <= s.time):
        return
    s.elapsed = time - s.time
    s.time = time
    call_part(s.step, s, x, y)
    s.samples += 1


@kernel
def _update(record: Any, time: float, x: float, y: float) -> None:
    update_velocity(record[0], time, x, y)


def fill_velocity(record: NDArray[Any], settings: VelocitySettings, resolution: float, period: float) -> None:
    """Write an estimator to a record; call `prepare_velocity` before `update_velocity`.

    Parameters
    ----------
    record : (1,) structured array
        Record of dtype `VELOCITY`; its state is reset.
    settings : VelocitySettings
        Estimator and its parameters.
    resolution : float
        Smallest step of the positions [m]; 0 if they are exact.
    period : float
        Nominal time between two samples [s].

    Raises
    ------
    ConfigurationError
        If the estimator requires a resolution greater than 0.
    """
    name = settings.velocity_estimator
    if name == "level-crossing" and not resolution > 0.0:
        raise ConfigurationError(
            f"velocity_estimator = {name!r}: needs an encoder, that is a resolution greater than 0 m."
        )
    record["kind"] = ESTIMATORS.index(name)
    record["resolution"], record["period"] = resolution, period
    for field in ("window", "memory", "acceleration", "rest_gain"):
        record[field] = getattr(settings, f"velocity_{field}")
    record["samples"], record["velocity"] = 0, 0.0


def prepare_velocity(record: NDArray[Any]) -> None:
    """Compile the estimator selected by `fill_velocity`, and store its address in the record."""
    record["step"] = address_of_part(_part(ESTIMATORS[int(record["kind"][0])]), VELOCITY)


class VelocityEstimator:
    """Velocity estimator for drivers written in Python.

    Parameters
    ----------
    resolution : float
        Smallest step of the positions [m]; 0 if they are exact.
    period : float
        Nominal time between two samples [s].
    settings : VelocitySettings, optional
        Estimator and its parameters.

    Attributes
    ----------
    velocity : (2,) float array
        Newest velocity [m/s]; zero before the second sample. The array is reused.

    Raises
    ------
    ConfigurationError
        If the estimator requires a resolution greater than 0.
    """

    def __init__(self, resolution: float, period: float, settings: VelocitySettings | None = None) -> None:
        self._record = np.zeros(1, VELOCITY)
        fill_velocity(self._record, settings or VelocitySettings(), resolution, period)
        self.velocity: Vector = self._record["velocity"][0]

    def reset(self) -> None:
        """Clear the sample buffer."""
        self._record["samples"] = 0
        self.velocity[:] = 0.0

    def update(self, time: float, x: float, y: float) -> Vector:
        """Update the estimate with a position (x, y) [m] at `time` [s] and return the velocity, (2,) [m/s]."""
        if not self._record["step"][0]:
            prepare_velocity(self._record)
        _update(self._record, time, x, y)
        return self.velocity
