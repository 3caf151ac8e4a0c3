"""Uncertainty of a joint's friction: errors of its parameters, and change since they were identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.parameters.parameters import Found, JointParameters

Array = NDArray[np.float64]

NORMAL_95 = 1.959963984540054
"""Half width of the central 95 % interval of the normal distribution, in standard deviations."""

CHANGE = 0.2
"""Relative change of a friction parameter since its identification (standard deviation)."""


def friction_spread(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the change of the friction for one standard deviation of each parameter.

    The result is an argument of `identify_motor`.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction and its intervals.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    intervals = joint.known_friction().intervals
    sizes = {name: (interval[1] - interval[0]) / (2.0 * NORMAL_95) for name, interval in intervals.items()}
    return _moved(joint, velocity, sizes)


def friction_change(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return the possible change of the friction since its identification, for `identify_motor`.

    Each level, viscosity and Stribeck velocity may have changed by 20 % (one standard deviation), as in a warm gear.

    Parameters
    ----------
    joint : JointParameters
        Joint with a friction.
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    """
    values = joint.known_friction().values
    return _moved(joint, velocity, {name: CHANGE * abs(value) for name, value in values.items() if name != "offset"})


def _moved(joint: JointParameters, velocity: Array, sizes: Mapping[str, float]) -> tuple[Array, ...]:
    """Return the change of the friction for a step of each of its parameters."""
    found, here = joint.known_friction(), joint.friction_at(velocity)
    moved = [
        Found(found.model, {**found.values, name: found.values[name] + size})
        for name, size in sizes.items()
        if name in found.values and name != "inertia" and size > 0.0
    ]
    return tuple(replace(joint, friction=one).friction_at(velocity) - here for one in moved)
