"""Duration and scale of forces: the time-out of a force that is not renewed, and a known weight that the stick carries.

The time-out is the last safety net if the host dies. Here the host sends one force, starts it once, and then sends
nothing more. The handle accelerates until the force ends, and coasts from then on. The time of the end is found by
least squares, with the response identified from pushes (`calibration.joystick.pushes`):

    x(t) = x0 + v0 t + g UU(t; t0, t1) - d X(t) - c EE(t) - s XX(t)

where UU is the double integral of a force from t0 to t1, and d, c and s are viscous friction, dry friction and
stiffness divided by the mass. All parameters except t0 and t1 are linear; these two are found by grid search.

The weight pulls the handle towards the person. The stick lifts it slowly and moves it up and down, at the same speed in
both directions, so that over a whole number of strokes its friction cancels. All of these are motions
(`haptics.rendering.programs`), with forces in newtons for a handle of `UNIT_MASS`, because its response to pushes is
already known.
"""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import MIDDLE, CountReader, Person
from calibration.joystick.pushes import LONGEST_DELAY, TOO_FAR, Response, integral, rest, smaller_travel
from calibration.joystick.stick import PAUSE, RawStick
from calibration.motions import Procedure
from calibration.motions.excitation import approach
from calibration.motions.procedure import known_rows
from devices.joystick.parameters import Axes
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.programs import Motion, constant_reference, reference

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

    def position() -> Array:
        place: Array = np.array(axes.counts_to_m) @ (np.array(stick.counts()) - axes.centre_counts)
        return place

    def settle() -> None:
        """Wait until the handle is nearly at rest, or a timeout."""
        end, before = time.perf_counter() + _PATIENCE, position()
        while time.perf_counter() < end:
            time.sleep(_LOOK)
            now = position()
            if np.hypot(*(now - before)) < _SLOW * _LOOK:
                return
            before = now

    settle()
    stick.start_once(level)
    begin, seen = time.perf_counter(), []
    while (now := time.perf_counter() - begin) < duration:
        place = position()
        seen.append((now, *place))
        if np.hypot(*(place - seen[0][1:])) > farthest:
            break
        time.sleep(PAUSE)
    stick.start_once(0.0)
    settle()
    table = np.array(seen)
    return table[:, 0], table[:, 1:] - table[0, 1:]


def _fit(clock: Array, way: Array, response: Response) -> tuple[float, float]:
    """Return the start and the end of the force [s], by grid search."""
    # the displacement plus the contributions that friction and spring removed, (n,) [m]
    once = integral(clock, way[:, None])
    speed = np.gradient(way, clock)
    sense = np.where(np.abs(speed) > _MOVING * np.abs(speed).max(), np.sign(speed), 0.0)
    dry = integral(clock, integral(clock, sense[:, None]))
    taken: Array = way + response.drag * once[:, 0] + response.rub * dry[:, 0]
    known = taken + response.spring * integral(clock, once)[:, 0]

    def misfit(pair: tuple[float, float]) -> float:
        begin, end = pair
        pushed = 0.5 * (np.maximum(clock - begin, 0.0) ** 2 - np.maximum(clock - end, 0.0) ** 2)
        design = np.column_stack((pushed, clock, np.ones(len(clock))))
        left = known - design @ np.linalg.solve(design.T @ design + 1e-18 * np.eye(3), design.T @ known)
        return float(left @ left)

    begins = np.arange(0.0, LONGEST_DELAY, _COARSE)
    ends = np.arange(_COARSE, float(clock[-1]) + _COARSE, _COARSE)
    begin, end = min(((b, e) for b in begins for e in ends if e > b), key=misfit)
    near = _FINE * np.arange(-4, 5)
    begin, end = min(((max(begin + i, 0.0), end + k) for i in near for k in near), key=misfit)
    return float(begin), float(end)


# --- weight -----------------------------------------------------------------------------------------------------------

GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""

UNIT_MASS = 1.0
"""Moving mass that the forces refer to [kg]."""

MOST = 0.9
"""Maximum fraction of the stick's force that may be used."""
TOO_FAST = 0.4
"""Speed above which the handle is released [m/s]."""

_BANDWIDTH = 10.0
_RISE, _STROKE_SPEED, _STROKE = 0.05, 0.01, 0.006
_SETTLING = 1.5
_SATURATED = 1.0
_REST = 0.1
_LARGEST_ANGLE = 20.0


@dataclass
class Balance:
    """Motion that carries a weight and measures the required force.

    The gains define a PID controller for a handle of `UNIT_MASS`. A weight on the handle lowers them all by the same
    factor. They are chosen so that the loop is stable down to an eighth.

    Parameters
    ----------
    person : Person
        Person who attaches and removes the weight.
    weight : float
        Mass of the weight [kg].
    strongest : float
        Maximum force for a handle of `UNIT_MASS` [N].
    read_counts : callable
        Returns the present counts, for the person.
    period : float
        Time between two ticks [s].

    Attributes
    ----------
    force : (2,) float array
        Force that carries the weight, for a handle of `UNIT_MASS` [N]; initially zero.
    """

    person: Person
    weight: float
    strongest: float
    read_counts: CountReader
    period: float
    force: Array = field(default_factory=lambda: np.zeros(2))

    def carry(self) -> Procedure:
        """Lift the weight, move it up and down, and lower it.

        Raises
        ------
        ConfigurationError
            If the stick cannot carry it, or the load does not pull towards the person.
        """
        period = self.period
        hold = functools.partial(
            Motion,
            Causality.IMPEDANCE,
            bound=MOST * self.strongest,
            max_speed=TOO_FAST,
            stiffness=UNIT_MASS * _BANDWIDTH**2,
            damping=UNIT_MASS * 2.0 * _BANDWIDTH,
            integration=UNIT_MASS * 0.25 * _BANDWIDTH**3,
            period=period,
        )
        yield rest(_REST, period)
        self.person.hang(self.weight, self.read_counts)
        lying = yield rest(_REST, period)
        way = approach(known_rows(lying)["position"][-1], np.zeros(2), period, _RISE)
        if len(way[0]):
            self._require_strong((yield hold(reference(*way), label="take it up")))
        self._require_strong((yield hold(constant_reference(_SETTLING, period), label="settle")))
        # 1.25 strokes, whose first quarter is not used
        whole = 4.0 * _STROKE / _STROKE_SPEED
        part = np.arange(round(1.25 * whole / period)) * period / whole
        height = _STROKE * (2.0 / math.pi) * np.arcsin(np.sin(2.0 * math.pi * part))
        strokes = np.column_stack((np.zeros(len(part)), height))
        rows = yield hold(reference(strokes, period=period), label="strokes")
        self._require_strong(rows)
        end = int(np.argmax(rows["sticking"])) + 1
        force = np.array(rows["command"][end - round(0.8 * len(strokes)) : end].mean(axis=0))
        # The carrying force must point away from the person, opposite to the weight.
        angle = abs(math.degrees(math.atan2(force[0], force[1])))
        if angle > _LARGEST_ANGLE:
            raise ConfigurationError(
                f"the stick pulls {angle:.0f} degrees off the direction straight away from you: make sure that only "
                "the weight pulls the handle, and straight towards you."
            )
        self.force = force
        yield rest(_REST, period)
        self.person.take_off(self.weight, self.read_counts)

    def _require_strong(self, rows: Rows) -> None:
        """Raise `ConfigurationError` if the force was saturated for too long."""
        limited = np.hypot(*rows["command"].T) > 0.999 * MOST * self.strongest
        edges = np.flatnonzero(np.diff(limited.astype(int), prepend=0, append=0))  # alternating begins and ends
        if np.any(np.diff(edges)[::2] * self.period > _SATURATED):
            raise ConfigurationError("the stick is too weak to carry this weight: take a lighter one.")
