"""Scale of the forces from a known weight: levels at which the stick carries it.

The weight pulls the handle towards the person. The stick lifts it slowly and moves it up and down, at the same speed in
both directions, so that over a whole number of strokes its friction cancels. All of these are motions
(`haptics.rendering.motion`), with forces in newtons for a handle of `UNIT_MASS`, because its response to pushes is
already known.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import Look, Person
from calibration.joystick.pushes import rest
from calibration.motions import Procedure
from calibration.motions.excitation import approach
from calibration.motions.procedure_runner import known_rows
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.motion import Motion, constant_reference, reference

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
_SETTLE = 1.5
_SATURATED = 1.0
_LOOK = 0.1
_LARGEST_ANGLE = 20.0

Vector = NDArray[np.float64]


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
    look : callable
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
    look: Look
    period: float
    force: Vector = field(default_factory=lambda: np.zeros(2))

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
        yield rest(_LOOK, period)
        self.person.hang(self.weight, self.look)
        lying = yield rest(_LOOK, period)
        way = approach(known_rows(lying)["position"][-1], np.zeros(2), period, _RISE)
        if len(way[0]):
            self._require_strong((yield hold(reference(*way), label="take it up")))
        self._require_strong((yield hold(constant_reference(_SETTLE, period), label="settle")))
        strokes = _strokes(period)
        rows = yield hold(reference(strokes, period=period), label="strokes")
        self._require_strong(rows)
        end = int(np.argmax(rows["sticking"])) + 1
        force = np.array(rows["command"][end - round(0.8 * len(strokes)) : end].mean(axis=0))
        _require_direction(force)
        self.force = force
        yield rest(_LOOK, period)
        self.person.take_off(self.weight, self.look)

    def _require_strong(self, rows: Rows) -> None:
        """Raise `ConfigurationError` if the force was saturated for too long."""
        limited = np.hypot(*rows["command"].T) > 0.999 * MOST * self.strongest
        edges = np.flatnonzero(np.diff(limited.astype(int), prepend=0, append=0))  # alternating begins and ends
        if np.any(np.diff(edges)[::2] * self.period > _SATURATED):
            raise ConfigurationError("the stick is too weak to carry this weight: take a lighter one.")


def _strokes(period: float) -> Vector:
    """Return the set-points of the handle, (n, 2) [m], for 1.25 strokes; the first quarter is not used."""
    whole = 4.0 * _STROKE / _STROKE_SPEED
    part = np.arange(round(1.25 * whole / period)) * period / whole
    height = _STROKE * (2.0 / math.pi) * np.arcsin(np.sin(2.0 * math.pi * part))
    return np.column_stack((np.zeros(len(part)), height))


def _require_direction(pull: Vector) -> None:
    """Validate that the carrying force points away from the person, opposite to the weight."""
    angle = math.degrees(math.atan2(pull[0], pull[1]))
    if abs(angle) > _LARGEST_ANGLE:
        raise ConfigurationError(
            f"the stick pulls {abs(angle):.0f} degrees off the direction straight away from you: make sure that only "
            "the weight pulls the handle, and straight towards you."
        )
