"""Identification of a handle from its response to pushes: motors, mass, friction and delay.

Near the middle the free handle is modelled as a mass m with viscous friction b, dry friction c and a spring k, pushed
by the two effects. With the level l of effect i, the force g_i of its full level, the direction e of the motion and the
delay d from a command to the corresponding count, m x'' + b x' + c e + k x = g_i l(t - d). After double integration
only the direction needs a derivative:

    x(t) = x0 + v0 t + (g_i/m) UU(t - d) - (b/m) X(t) - (c/m) EE(t) - (k/m) XX(t)

where UU and EE are double integrals of level and direction, X and XX the integral and double integral of the
displacement. All parameters except the delay are linear and found by least squares over all pushes; the delay is found
by grid search. A push that the operating system interrupted does not agree with the others and is excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONGEST_DELAY = 0.04
"""Maximum delay from a command to the corresponding count [s]."""
_COARSE, _FINE = 5e-3, 1e-3

_SHARED = 7
"""Number of unknowns that all pushes share."""
_WINDOW, _MOVING = 0.01, 0.1
"""Half width of the window for the direction [s]; minimum speed of motion relative to the largest."""

_OUTLIER = 2.0


@dataclass(frozen=True)
class Push:
    """Recording of a push by one effect.

    Attributes
    ----------
    effect : int
        Index of the effect, 0 or 1.
    time : array, (n,)
        Times of the samples [s].
    level : array, (n,)
        Level of the effect from each time on.
    displacement : array, (n, 2)
        Displacement of the handle from its initial position [m].
    """

    effect: int
    time: Array
    level: Array
    displacement: Array

    @property
    def peak(self) -> float:
        """Largest absolute level."""
        return float(np.abs(self.level).max())

    @property
    def moved(self) -> tuple[float, float]:
        """Final displacement [m]."""
        x, y = self.displacement[-1]
        return float(x), float(y)

    @property
    def distance(self) -> float:
        """Magnitude of the final displacement [m]."""
        return float(np.hypot(*self.moved))


@dataclass(frozen=True)
class Response:
    """Identified response of the handle.

    Attributes
    ----------
    acceleration : array, (2, 2)
        Column i: acceleration of the handle by the full level of effect i [m/s²].
    drag, rub, spring : float
        Viscous friction, dry friction and stiffness, each divided by the mass [1/s, m/s², 1/s²].
    delay : float
        Delay from a command to the corresponding count [s].
    misfit : float
        Root mean square of the residuals divided by the root mean square of the displacements.
    misfits : tuple of float
        Misfit of each push.
    """

    acceleration: Array
    drag: float
    rub: float
    spring: float
    delay: float
    misfit: float
    misfits: tuple[float, ...]


def identify(pushes: Sequence[Push]) -> Response:
    """Identify the response; each effect must have pushed at least once. A wheel has only the first."""
    found = _fit(pushes)
    usual = _OUTLIER * float(np.median(found.misfits))
    good = [push for push, misfit in zip(pushes, found.misfits, strict=True) if misfit <= usual]
    if len(good) == len(pushes) or {push.effect for push in good} != {push.effect for push in pushes}:
        return found
    return _fit(good)


def _fit(pushes: Sequence[Push]) -> Response:
    """Return the response with the best delay, to a millisecond."""
    coarse = _best(pushes, np.arange(0.0, LONGEST_DELAY + 0.5 * _COARSE, _COARSE))
    return _best(pushes, np.maximum(coarse.delay + _FINE * np.arange(-4, 5), 0.0))


def _best(pushes: Sequence[Push], delays: Array) -> Response:
    return min((_at_delay(pushes, float(delay)) for delay in delays), key=lambda response: response.misfit)


def _at_delay(pushes: Sequence[Push], delay: float) -> Response:
    """Return the response for a given delay.

    The unknowns are the four accelerations, drag, rub, spring, and the initial velocity and position of each push.
    """
    columns = _SHARED + 4 * len(pushes)
    design, target = [], []
    for number, push in enumerate(pushes):
        drive = _drive(push, delay)
        first = integral(push.time, push.displacement)
        second = integral(push.time, first)
        dry = integral(push.time, integral(push.time, _direction(push)))
        for axis in range(2):
            rows = np.zeros((len(push.time), columns))
            rows[:, 2 * axis + push.effect] = drive
            rows[:, 4], rows[:, 5], rows[:, 6] = -first[:, axis], -dry[:, axis], -second[:, axis]
            own = _SHARED + 4 * number + 2 * axis
            rows[:, own], rows[:, own + 1] = push.time - push.time[0], 1.0
            design.append(rows)
            target.append(push.displacement[:, axis])
    matrix, values = np.concatenate(design), np.concatenate(target)
    norms = np.linalg.norm(matrix, axis=0)
    scale = np.where(norms > 0.0, norms, np.inf)  # unused columns, such as the second effect of a wheel, get 0
    solution = np.linalg.lstsq(matrix / scale, values, rcond=None)[0] / scale
    left, ends = matrix @ solution - values, np.cumsum([2 * len(push.time) for push in pushes])[:-1]
    misfits = tuple(map(_relative, np.split(left, ends), np.split(values, ends)))
    drag, rub, spring = float(solution[4]), float(solution[5]), float(solution[6])
    moved = np.array([any(push.displacement[:, axis].any() for push in pushes) for axis in range(2)])
    return Response(
        solution[:4].reshape(2, 2) * moved[:, None], drag, rub, spring, delay, _relative(left, values), misfits
    )


def _relative(left: Array, size: Array) -> float:
    return float(np.linalg.norm(left) / max(float(np.linalg.norm(size)), 1e-300))


def _drive(push: Push, delay: float) -> Array:
    """Return the double integral of the level delayed by `delay` [s]; the level is held between its times."""
    elapsed = push.time - push.time[0]
    steps = np.diff(elapsed)
    once = np.concatenate(([0.0], np.cumsum(push.level[:-1] * steps)))
    twice = np.concatenate(([0.0], np.cumsum((once[:-1] + 0.5 * push.level[:-1] * steps) * steps)))
    then = elapsed - delay
    at = np.clip(np.searchsorted(elapsed, then, side="right") - 1, 0, len(elapsed) - 1)
    since = np.maximum(then - elapsed[at], 0.0)
    return np.where(then > 0.0, twice[at] + since * (once[at] + 0.5 * push.level[at] * since), 0.0)


def _direction(push: Push) -> Array:
    """Return the unit vector of the motion at each time, (n, 2); zero while the handle is nearly at rest."""
    after, before = (
        np.column_stack([np.interp(push.time + shift, push.time, axis) for axis in push.displacement.T])
        for shift in (_WINDOW, -_WINDOW)
    )
    way = after - before
    length = np.hypot(*way.T)
    moving = length > _MOVING * max(float(length.max()), 1e-300)
    return np.where(moving[:, None], way / np.maximum(length, 1e-300)[:, None], 0.0)


def integral(time: Array, values: Array) -> Array:
    """Return the cumulative integral, (n, m), by the trapezoidal rule."""
    pieces = 0.5 * (values[1:] + values[:-1]) * np.diff(time)[:, None]
    return np.concatenate((np.zeros_like(pieces[:1]), np.cumsum(pieces, axis=0)))
