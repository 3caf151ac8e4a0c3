"""Measurement of the time after which a stick ends a force that is not renewed.

This time-out is the last safety net if the host dies. Here the host sends one force, starts it once, and then sends
nothing more. The handle accelerates until the force ends, and coasts from then on. The time of the end is found by
least squares, with the response identified from pushes (`calibration.joystick.response`):

    x(t) = x0 + v0 t + g UU(t; t0, t1) - d X(t) - c EE(t) - s XX(t)

where UU is the double integral of a force from t0 to t1, and d, c and s are viscous friction, dry friction and
stiffness divided by the mass. All parameters except t0 and t1 are linear; these two are found by grid search.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import MIDDLE, Person
from calibration.joystick.pushes import TOO_FAR, smaller_travel
from calibration.joystick.response import LONGEST_DELAY, Response, integral
from calibration.joystick.stick import PAUSE, RawStick
from devices.joystick.parameters import Axes
from haptics.errors import ConfigurationError

WAY = 0.15
"""Intended displacement during the push, as a fraction of half the smaller travel."""

WATCHED = 2.5
"""Duration of the observation, as a multiple of the nominal duration of the force."""

LONGEST = 1.5
"""Accepted duration of a force as a multiple of the nominal one, plus `ROUNDING`."""
ROUNDING = 0.03
"""Accepted additional duration [s]."""

_MOVING = 0.1
"""Minimum speed of motion as a fraction of the largest."""
_COARSE, _FINE = 4e-3, 1e-3
_PATIENCE, _LOOK, _SLOW = 3.0, 0.1, 2e-3

Array = NDArray[np.float64]


def time_release(stick: RawStick, axes: Axes, response: Response, person: Person, most: float) -> float:
    """Return the time from the start of a force to its end by the stick [s].

    Parameters
    ----------
    stick : RawStick
        Open stick, which does not renew forces.
    axes : Axes
        Axes of the stick.
    response : Response
        Response of its handle.
    person : Person
        Person who releases the handle.
    most : float
        Maximum level.

    Raises
    ------
    ConfigurationError
        If the force does not end.
    """
    duration = stick.settings.force_duration
    person.bring(MIDDLE, stick.counts)
    person.release_handle(stick.counts)
    person.watch(f"The handle gets one push that the stick must end by itself, after {duration:g} s.")
    half = 0.5 * smaller_travel(axes)
    pull = float(np.hypot(*response.acceleration[:, 0]))
    level = min((2.0 * WAY * half / duration**2 + max(response.rub, 0.0)) / pull, most)
    clock, positions = _watch(stick, axes, level, WATCHED * duration, TOO_FAR * half)
    way = positions @ (response.acceleration[:, 0] / pull)
    begin, end = _fit(clock, way, response)
    lasted = end - begin
    if lasted > LONGEST * duration + ROUNDING:
        raise ConfigurationError(
            f"the stick does not end a force by itself: it pushed for {lasted:.2f} s or longer after the program fell "
            f"silent, though the force was to last for {duration:g} s. If a program died, the force would stay: such a "
            "stick is not supported."
        )
    return lasted


def _watch(stick: RawStick, axes: Axes, level: float, duration: float, farthest: float) -> tuple[Array, Array]:
    """Start a force once and return times and positions of the handle, (n,) [s] and (n, 2) [m].

    The force is ended if the handle moves farther than `farthest`.
    """
    _settle(stick, axes)
    stick.start_once(level)
    begin, seen = time.perf_counter(), []
    while (now := time.perf_counter() - begin) < duration:
        position = _position(stick, axes)
        seen.append((now, *position))
        if np.hypot(*(position - seen[0][1:])) > farthest:
            break
        time.sleep(PAUSE)
    stick.start_once(0.0)
    _settle(stick, axes)
    table = np.array(seen)
    return table[:, 0], table[:, 1:] - table[0, 1:]


def _position(stick: RawStick, axes: Axes) -> Array:
    position: Array = np.array(axes.counts_to_m) @ (np.array(stick.counts()) - axes.centre_counts)
    return position


def _settle(stick: RawStick, axes: Axes) -> None:
    """Wait until the handle is nearly at rest, or a timeout."""
    end, before = time.perf_counter() + _PATIENCE, _position(stick, axes)
    while time.perf_counter() < end:
        time.sleep(_LOOK)
        now = _position(stick, axes)
        if np.hypot(*(now - before)) < _SLOW * _LOOK:
            return
        before = now


def _fit(clock: Array, way: Array, response: Response) -> tuple[float, float]:
    """Return the start and the end of the force [s]."""
    last = float(clock[-1])
    begins = np.arange(0.0, LONGEST_DELAY, _COARSE)
    ends = np.arange(_COARSE, last + _COARSE, _COARSE)
    known = _corrected_displacement(clock, way, response)
    begin, end = min(((b, e) for b in begins for e in ends if e > b), key=lambda pair: _misfit(clock, known, *pair))
    near = _FINE * np.arange(-4, 5)
    pairs = ((max(begin + i, 0.0), end + k) for i in near for k in near)
    found = min(pairs, key=lambda pair: _misfit(clock, known, *pair))
    return float(found[0]), float(found[1])


def _corrected_displacement(clock: Array, way: Array, response: Response) -> Array:
    """Return the displacement plus the contributions that friction and spring removed, (n,) [m]."""
    once = integral(clock, way[:, None])
    speed = np.gradient(way, clock)
    sense = np.where(np.abs(speed) > _MOVING * np.abs(speed).max(), np.sign(speed), 0.0)
    dry = integral(clock, integral(clock, sense[:, None]))
    taken: Array = way + response.drag * once[:, 0] + response.rub * dry[:, 0]
    return taken + response.spring * integral(clock, once)[:, 0]


def _misfit(clock: Array, known: Array, begin: float, end: float) -> float:
    """Return the sum of squared residuals for a force from `begin` to `end` [s]."""
    pushed = 0.5 * (np.maximum(clock - begin, 0.0) ** 2 - np.maximum(clock - end, 0.0) ** 2)
    design = np.column_stack((pushed, clock, np.ones(len(clock))))
    left = known - design @ np.linalg.solve(design.T @ design + 1e-18 * np.eye(3), design.T @ known)
    return float(left @ left)
