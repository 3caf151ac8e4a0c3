"""Kalman filter of position and velocity under a random acceleration, with time-varying gain.

The measurement has the variance of rounding to a count, q^2/12. The acceleration is white with the intensity
``a^2 tau``: of size ``a`` for a time ``tau`` (`VelocitySettings`). Both coordinates share one covariance, which does
not depend on the measurements. The velocity is a separate estimate, not the increment of the estimated position.
"""

from __future__ import annotations

from typing import Any

from devices.common.velocity.tracker import begin_tracker
from haptics.jit import merged_kernel

_UNKNOWN = 1.0
"""Initial standard deviation of the velocity [m/s]."""

KALMAN_FIELDS: list[tuple[Any, ...]] = [("covariance", "<f8", (2, 2))]
"""Covariance of position and velocity; the estimates are in the fields of the tracker."""


@merged_kernel
def begin_kalman(s: Any, x: float, y: float) -> None:
    """Initialise with a position uncertainty of one count and an unknown velocity."""
    begin_tracker(s, x, y)
    s.covariance[0, 0], s.covariance[1, 1] = s.resolution**2 / 12.0, _UNKNOWN**2
    s.covariance[0, 1] = s.covariance[1, 0] = 0.0


@merged_kernel
def kalman(s: Any, x: float, y: float) -> None:
    """Predict to the present time, correct with the position (x, y) [m], and update ``s.velocity``."""
    P, T = s.covariance, s.elapsed
    S = s.acceleration**2 * s.memory
    P[0, 0] += 2.0 * T * P[0, 1] + T * T * P[1, 1] + S * T**3 / 3.0
    P[0, 1] += T * P[1, 1] + S * T * T / 2.0
    P[1, 1] += S * T
    total = P[0, 0] + s.resolution**2 / 12.0
    gain, velocity_gain = P[0, 0] / total, P[0, 1] / total
    for i in range(2):
        miss = (x if i == 0 else y) - s.tracked_position[i] - T * s.tracked_velocity[i]
        s.tracked_position[i] += T * s.tracked_velocity[i] + gain * miss
        s.tracked_velocity[i] += velocity_gain * miss
        s.velocity[i] = s.tracked_velocity[i]
    P[1, 1] -= velocity_gain * P[0, 1]
    P[0, 1] *= 1.0 - gain
    P[0, 0] *= 1.0 - gain
    P[1, 0] = P[0, 1]
