"""Velocity from an encoder, good enough to render friction with: several estimators behind one interface.

======================  ====================================================================================
``velocity_estimator``
======================  ====================================================================================
``difference``          backward difference, or over a window of samples (`devices.common.velocity.difference`)
``end-fit``             the longest line that fits, through its ends (`devices.common.velocity.adaptive`)
``best-fit``            the longest line that fits, by least squares (`devices.common.velocity.adaptive`)
``kalman``              a random acceleration, tracked (`devices.common.velocity.kalman`)
``level-crossing``      from the times at which the encoder counts (`devices.common.velocity.crossing`)
``tracker``             increments of a tracked position, the default of drivers (`devices.common.velocity.tracker`)
======================  ====================================================================================

A device derives its settings from `VelocitySettings` and calls `VelocityEstimator`, or, if it is a kernel, puts a field
of dtype `VELOCITY` into its record, fills it with `fill_velocity`, compiles what was chosen with `prepare_velocity`
before anything depends on its speed, and calls `update_velocity`. How the estimators
compare is in ``docs/velocity.md``.
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
