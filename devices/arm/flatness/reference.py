"""Reference motions for an elastic joint: four times differentiable, with exact derivatives.

A motion is an array (n, 5): the angle or coordinate and its first four derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from devices.arm.flatness.values import Values, finite
from haptics.errors import ConfigurationError

_RAMP = np.polynomial.Polynomial([0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0])
"""Polynomial from 0 to 1 on [0, 1]; velocity, acceleration and jerk are zero at both ends."""

_RAMPS = tuple(_RAMP.deriv(order) if order else _RAMP for order in range(5))


def point_to_point(time: ArrayLike, start: float, end: float, duration: float, begin: float = 0.0) -> Values:
    """Return a polynomial of seventh order from `start` to `end`, at rest before and after.

    Velocity, acceleration and jerk are zero at both ends. The fourth derivative is discontinuous there. At the end
    points themselves it has its inner value, so that a motion may begin, end or reverse there without a jump.

    Parameters
    ----------
    time : (n,) array
        Times [s].
    start, end : float
        Initial and final position [rad] or [m].
    duration : float
        Duration [s], greater than 0.
    begin : float
        Start time [s].

    Returns
    -------
    (n, 5) float array
        Position and its first four derivatives.

    Raises
    ------
    ConfigurationError
        If a number is not finite or the duration is not greater than 0.
    """
    times = finite(time, "time").reshape(-1)
    first, last, length, origin = (float(finite(value, "motion")) for value in (start, end, duration, begin))
    if not length > 0.0:
        raise ConfigurationError(f"duration = {duration!r}: must be greater than 0 s.")
    share = np.clip((times - origin) / length, 0.0, 1.0)
    moving = (times >= origin) & (times <= origin + length)
    motion = np.empty((len(times), 5))
    motion[:, 0] = first + (last - first) * _RAMPS[0](share)
    for order in range(1, 5):
        motion[:, order] = np.where(moving, (last - first) / length**order * _RAMPS[order](share), 0.0)
    return motion


def lemniscate(phase: ArrayLike, width: float, height: float) -> tuple[Values, Values]:
    """Return the figure of eight (a cos(phi), b sin(phi) cos(phi)) along `phase` (Weigand et al., (28)).

    Parameters
    ----------
    phase : (n, 5) array
        phi [rad] and its first four derivatives, as from `point_to_point`.
    width, height : float
        a and b [m].

    Returns
    -------
    x, y : (n, 5) float array
        Both coordinates and their first four derivatives.

    Raises
    ------
    ConfigurationError
        If an argument has a wrong shape or is not finite.
    """
    phases = finite(phase, "phase")
    if phases.ndim != 2 or phases.shape[1] != 5:
        raise ConfigurationError(f"phase of shape {phases.shape}: must be (n, 5), phi and four derivatives.")
    a, b = float(finite(width, "width")), float(finite(height, "height"))
    x = _composed(phases, lambda order: a * np.cos(phases[:, 0] + 0.5 * math.pi * order))
    y = _composed(phases, lambda order: 0.5 * b * 2.0**order * np.sin(2.0 * phases[:, 0] + 0.5 * math.pi * order))
    return x, y


def _composed(inner: Values, outer: Callable[[int], Values]) -> Values:
    """Return f(phi(t)) and its derivatives by Faa di Bruno's formula; `outer(k)` is f's k-th derivative."""
    _p, p1, p2, p3, p4 = inner.T
    f, f1, f2, f3, f4 = (outer(order) for order in range(5))
    return np.stack(
        (
            f,
            f1 * p1,
            f2 * p1**2 + f1 * p2,
            f3 * p1**3 + 3.0 * f2 * p1 * p2 + f1 * p3,
            f4 * p1**4 + 6.0 * f3 * p1**2 * p2 + f2 * (3.0 * p2**2 + 4.0 * p1 * p3) + f1 * p4,
        ),
        axis=1,
    )
