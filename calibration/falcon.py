"""Force scale of a Falcon from a known weight: the motor number that makes a torque.

The driver holds the handle in the vertical plane and moves it slowly up and down, first without and then with the
weight. Friction has opposite signs in the two directions, so that the mean force is the one that carries the load. The
difference of both means carries the weight alone: the handle's own weight cancels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import GRAVITY
from calibration.motions import Procedure
from calibration.motions.excitation import approach
from calibration.motions.procedure import known_rows
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.programs import Motion, constant_reference, reference

RELEASE, HANG, TAKE_OFF = "release", "hang", "take off"
"""Steps of the person: release the held handle, hang the weight on it, hold the handle and take the weight off."""

LIGHTEST, HEAVIEST = 0.05, 0.4
"""Range of weights [kg]."""

_MASS = 0.3  # assumed mass of handle and weight, to which the gains refer [kg]
_BANDWIDTH = 25.0
_MOST = 0.9  # maximum fraction of the largest force
_SPEED, _STROKE, _SETTLING = 0.01, 0.006, 1.5
_TOO_FAST = 0.4
_LARGEST_ANGLE = 15.0
_SMALLEST = 0.1  # smallest measured fraction of the expected force


@dataclass
class Weighing:
    """Motion that carries the handle, and then the handle with a weight.

    Parameters
    ----------
    ask : callable
        Asks the person for a step (`RELEASE`, `HANG`, `TAKE_OFF`), and returns when it is done.
    weight : float
        Mass of the weight [kg].
    strongest : float
        Largest force of the device [N].
    period : float
        Time between two ticks [s].

    Attributes
    ----------
    forces : list
        Mean commanded forces (2,) without and with the weight [N].

    Raises
    ------
    ConfigurationError
        If the weight is out of range.
    """

    ask: Callable[[str], None]
    weight: float
    strongest: float
    period: float
    forces: list[NDArray[np.float64]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not LIGHTEST <= self.weight <= HEAVIEST:
            raise ConfigurationError(f"--weight = {self.weight:g}: must be from {LIGHTEST:g} to {HEAVIEST:g} kg.")

    def carry(self) -> Procedure:
        """Hold the handle, and measure the mean force without and with the weight.

        Raises
        ------
        ConfigurationError
            If the motors cannot carry the weight, or the load does not pull downwards.
        """
        period = self.period
        hold = functools.partial(
            Motion,
            Causality.IMPEDANCE,
            bound=_MOST * self.strongest,
            max_speed=_TOO_FAST,
            stiffness=_MASS * _BANDWIDTH**2,
            damping=_MASS * 2.0 * _BANDWIDTH,
            integration=_MASS * 0.25 * _BANDWIDTH**3,
            period=period,
        )
        held = yield hold(constant_reference(0.2, period), label="hold")
        way = approach(known_rows(held)["position"][-1], np.zeros(2), period, _SPEED)
        if len(way[0]):
            yield hold(reference(*way), label="move to the middle")
        whole = 4.0 * _STROKE / _SPEED
        part = np.arange(round(1.25 * whole / period)) * period / whole  # the first quarter is not used
        height = _STROKE * (2.0 / math.pi) * np.arcsin(np.sin(2.0 * math.pi * part))
        strokes = np.column_stack((np.zeros(len(part)), height))
        for step in (RELEASE, HANG):
            self.ask(step)
            yield hold(constant_reference(_SETTLING, period), label=f"settle: {step}")
            rows = yield hold(reference(strokes, period=period), label=f"strokes: {step}")
            self.forces.append(self._mean_force(rows, round(0.8 * len(strokes))))
        self.ask(TAKE_OFF)

    def _mean_force(self, rows: Rows, count: int) -> NDArray[np.float64]:
        """Return the mean force in the last strokes (2,) [N]; raise `ConfigurationError` if it was limited."""
        commands = rows["command"][-count:]
        if (np.hypot(*commands.T) > 0.99 * _MOST * self.strongest).any():
            raise ConfigurationError("the motors are too weak for this weight: take a lighter one.")
        return np.array(commands.mean(axis=0))

    def motor_scale(self, present: float) -> float:
        """Return the motor number per torque [1/(N m)]; `present` is the one of the driver during the motion.

        Raises
        ------
        ConfigurationError
            If the weight did not pull downwards, or hardly at all.
        """
        x, y = self.forces[1] - self.forces[0]
        if y < _SMALLEST * self.weight * GRAVITY or abs(math.degrees(math.atan2(x, y))) > _LARGEST_ANGLE:
            raise ConfigurationError(
                f"the weight changed the force by ({x:.2f}, {y:.2f}) N, which is not upwards: the base must stand "
                "level, and only the weight may pull the handle."
            )
        return present * float(y) / (self.weight * GRAVITY)
