"""Uncertainty of a joint's friction: errors of its parameters, and change since they were identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.parameters.parameters import Found, JointParameters

Array = NDArray[np.float64]

NORMAL_95 = 1.959963984540054
"""A normal error is smaller than this many standard deviations in 95 of 100 cases."""

CHANGE = 0.2
"""Part of itself by which a parameter of the friction may have changed since it was measured (standard deviation)."""


def friction_spread(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return what `identify_motor` asks for: how the friction moves with one standard deviation of each parameter.

    Parameters
    ----------
    joint : JointParameters
        With a friction and its intervals.
    velocity : (n,) float array
        [rad/s] or [m/s].
    """
    intervals = joint.known_friction().intervals
    sizes = {name: (interval[1] - interval[0]) / (2.0 * NORMAL_95) for name, interval in intervals.items()}
    return _moved(joint, velocity, sizes)


def friction_change(joint: JointParameters, velocity: Array) -> tuple[Array, ...]:
    """Return what `identify_motor` asks for: how the friction may have changed since it was measured.

    Each level, viscosity and Stribeck velocity may by now be another by 20 % (one standard deviation): that of a gear
    that has gone warm is.

    Parameters
    ----------
    joint : JointParameters
        With a friction.
    velocity : (n,) float array
        [rad/s] or [m/s].
    """
    values = joint.known_friction().values
    return _moved(joint, velocity, {name: CHANGE * abs(value) for name, value in values.items() if name != "offset"})


def _moved(joint: JointParameters, velocity: Array, sizes: Mapping[str, float]) -> tuple[Array, ...]:
    """Return by how much the friction moves with each of its parameters."""
    found, here = joint.known_friction(), joint.friction_at(velocity)
    moved = [
        Found(found.model, {**found.values, name: found.values[name] + size})
        for name, size in sizes.items()
        if name in found.values and name != "inertia" and size > 0.0
    ]
    return tuple(replace(joint, friction=one).friction_at(velocity) - here for one in moved)
