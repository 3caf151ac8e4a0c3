"""The scale of the forces: the levels at which the stick carries a weight of known mass.

The weight pulls the handle towards the person. The stick takes it up, slowly, and moves it up and down a little, at the
same speed both ways: over a whole number of such strokes its own friction cancels.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.pushes import metres
from calibration.joystick.response import Response
from calibration.joystick.stick import PAUSE, RawStick
from devices.joystick.parameters import Axes
from haptics.errors import ConfigurationError

GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""

MOST = 0.9
"""The greatest level the stick may need."""
TOO_FAST = 0.4
"""The handle is let go if it moves faster [m/s]."""

_BANDWIDTH = 10.0
_RISE, _STROKE_SPEED, _STROKE = 0.05, 0.01, 0.006
_SETTLE = 1.5
_SATURATED = 1.0
_SMOOTHING = 0.02
_LARGEST_ANGLE = 20.0

Vector = NDArray[np.float64]


@dataclass
class Carrier:
    """Holds the handle at a place that moves slowly: a regulator with an integral part.

    Its gains are in accelerations, which the response turns into levels. A weight on the handle lowers them all by the
    same factor; they are chosen so that the loop is stable down to an eighth.
    """

    stick: RawStick
    axes: Axes
    response: Response

    def __post_init__(self) -> None:
        self._to_level = np.linalg.inv(self.response.acceleration)
        self._place = metres(self.axes)
        self._last = self._place(self.stick.counts())
        self._now = time.perf_counter()
        self._velocity, self._memory = np.zeros(2), np.zeros(2)
        self._limited = 0.0

    @property
    def place(self) -> Vector:
        """Where the handle was at the last step, (2,) [m]."""
        return self._last

    def step(self, wanted: Vector) -> tuple[float, Vector]:
        """Regulate once; return the time since the step before [s] and the levels, (2,).

        Raises
        ------
        ConfigurationError
            If the stick is too weak, or the handle runs away.
        """
        time.sleep(PAUSE)
        now = time.perf_counter()
        elapsed, self._now = now - self._now, now
        here = self._place(self.stick.counts())
        rate = (here - self._last) / elapsed
        self._velocity += elapsed / (elapsed + _SMOOTHING) * (rate - self._velocity)
        self._last = here
        if np.hypot(*self._velocity) > TOO_FAST:
            raise ConfigurationError("the handle ran away while the stick took up the weight: do not touch it then.")
        off = wanted - here
        self._memory += 0.25 * _BANDWIDTH**3 * elapsed * off
        level = self._to_level @ (_BANDWIDTH**2 * off - 2.0 * _BANDWIDTH * self._velocity + self._memory)
        most = float(np.abs(level).max())
        self._watch_limit(most, elapsed)
        return elapsed, np.array(self.stick.push(tuple(level * min(1.0, MOST / max(most, MOST)))))

    def _watch_limit(self, most: float, elapsed: float) -> None:
        self._limited = self._limited + elapsed if most > MOST else 0.0
        if self._limited > _SATURATED:
            raise ConfigurationError("the stick is too weak to carry this weight: take a lighter one.")


def balance(stick: RawStick, axes: Axes, response: Response) -> Vector:
    """Return the levels of the two effects at which the weight is carried, (2,).

    Raises
    ------
    ConfigurationError
        If the stick cannot carry it, or what it carries does not pull towards the person.
    """
    carrier = Carrier(stick, axes, response)
    begin = carrier.place.copy()
    try:
        _go(carrier, begin, np.zeros(2), _RISE)
        _go(carrier, np.zeros(2), np.zeros(2), _STROKE_SPEED, _SETTLE)
        level = _strokes(carrier)
    finally:
        stick.push((0.0, 0.0))
    _require_direction(response.acceleration @ level)
    return level


def _go(carrier: Carrier, begin: Vector, end: Vector, speed: float, least: float = 0.0) -> None:
    duration, start = max(float(np.hypot(*(end - begin))) / speed, least), time.perf_counter()
    while (part := (time.perf_counter() - start) / max(duration, PAUSE)) < 1.0:
        carrier.step(begin + part * (end - begin))


def _strokes(carrier: Carrier) -> Vector:
    """Return the mean levels over a whole stroke up and down, once the handle has followed one."""
    period = 4.0 * _STROKE / _STROKE_SPEED
    total, duration, start = np.zeros(2), 0.0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < 1.25 * period:
        part = elapsed / period
        height = _STROKE * (2.0 / math.pi) * math.asin(math.sin(2.0 * math.pi * part))
        seconds, level = carrier.step(np.array((0.0, height)))
        if part >= 0.25:
            total, duration = total + seconds * level, duration + seconds
    return total / duration


def _require_direction(pull: Vector) -> None:
    """Make sure that what the stick carries with pulls away from the person, as the weight pulls towards them."""
    angle = math.degrees(math.atan2(pull[0], pull[1]))
    if abs(angle) > _LARGEST_ANGLE:
        raise ConfigurationError(
            f"the stick pulls {abs(angle):.0f} degrees off the direction straight away from you: see to it that the "
            "weight pulls the handle straight towards you, and nothing else does."
        )
