"""Velocity estimators from encoder positions, for friction rendering.

======================  ====================================================================================
``velocity_estimator``  method
======================  ====================================================================================
``difference``          backward difference, or over a window of samples (`devices.common.velocity.difference`)
``end-fit``             longest fitting line through the end points (`devices.common.velocity.adaptive`)
``best-fit``            longest fitting line by least squares (`devices.common.velocity.adaptive`)
``kalman``              Kalman filter with random acceleration (`devices.common.velocity.kalman`)
``level-crossing``      times of encoder count changes (`devices.common.velocity.crossing`)
``tracker``             increments of a tracked position, the default of drivers (`devices.common.velocity.tracker`)
======================  ====================================================================================

A device derives its settings from `VelocitySettings` and uses `VelocityEstimator`. A kernel contains a field of dtype
`VELOCITY` in its record, initialises it with `fill_velocity`, compiles the estimator with `prepare_velocity` before
real-time operation, and calls `update_velocity`. ``docs/velocity.md`` compares the estimators.
"""

from devices.common.velocity.estimator import (
    VELOCITY,
    VelocityEstimator,
    fill_velocity,
    prepare_velocity,
    update_velocity,
)
from devices.common.velocity.settings import ESTIMATORS, LONGEST_WINDOW, VelocitySettings, check_velocity, velocity_lag

__all__ = [
    "ESTIMATORS",
    "LONGEST_WINDOW",
    "VELOCITY",
    "VelocityEstimator",
    "VelocitySettings",
    "check_velocity",
    "fill_velocity",
    "prepare_velocity",
    "update_velocity",
    "velocity_lag",
]
