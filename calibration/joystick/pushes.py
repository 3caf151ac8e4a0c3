"""Small pushes by one effect at a time, initially weak, with ramps, lasting a fifth of a second.

Every push is a motion (`haptics.rendering.motion`) without a controller that only applies a force, in levels, because
the scale to newtons is unknown at this stage. The rests between them are motions with zero force.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import MIDDLE, Look, Person, in_words
from calibration.joystick.response import Push, Response, identify
from calibration.motions import Procedure
from calibration.motions.procedure_runner import known_rows
from devices.joystick.parameters import Axes
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.motion import Motion, constant_reference, reference

START = 0.02
"""Level of the first push."""
RAMP, HOLD, AFTER = 0.06, 0.06, 0.2
"""Durations of rise and fall, of the plateau, and of the observation after the push [s]."""
ENOUGH = 0.25
"""Displacement of a sufficiently strong push, as a fraction of half the smaller travel."""
PAIRS = 2
"""Number of pushes of each effect in each direction."""
TOO_FAR = 0.6
"""Maximum distance from the middle during a push, as a fraction of half the smaller travel."""
NEAR = 0.3
"""Distance from the middle above which the handle is centred before a push.

A fraction of half the smaller travel.
"""

_BEFORE = 0.02
_STILL = 0.1
_PATIENCE = 1.5
_SLOW = 0.04
_LARGEST_MISFIT = 0.15
_LEAST_ANGLE = 0.5
_TOO_FAST = 2.0
_ALIKE = 0.3


def rest(duration: float, period: float) -> Motion:
    """Return a motion without force for `duration` [s]."""
    return Motion(
        Causality.IMPEDANCE, constant_reference(duration, period), 1e-9, relative=True, period=period, label="rest"
    )


class NoAnswer(ConfigurationError):
    """The handle does not respond to pushes like a free one, because of the motors or an obstruction."""


@dataclass
class Pusher:
    """Generator of pushes that identifies the response of a stick.

    Parameters
    ----------
    axes : Axes
        Axes of the stick.
    person : Person
        Person who also observes the handle.
    most : float
        Maximum level, above 0 and at most 1.
    full_scale : int
        Number of steps of a level between 0 and 1.
    look : callable
        Returns the present counts, for the person.
    period : float
        Time between two ticks [s].

    Attributes
    ----------
    pushes : list of Push
        Recorded pushes.
    response : Response or None
        Identified response, None before the end.
    """

    axes: Axes
    person: Person
    most: float
    full_scale: int
    look: Look
    period: float
    pushes: list[Push] = field(default_factory=list)
    response: Response | None = None

    def explore(self) -> Procedure:
        """Push with each effect in both directions, and identify the response.

        Raises
        ------
        ConfigurationError
            If it does not move, moves in another direction than the person observes, or not as a free handle does.
        """
        yield rest(_STILL, self.period)
        self.person.release_handle(self.look)
        for effect in range(len(self.axes.usages)):
            level = yield from self._find_level(effect)
            for number in range(2 * PAIRS):
                push = yield from self._push(effect, level if number % 2 == 0 else -level)
                if number < 2:
                    self._require_seen(push)
                self.pushes.append(push)
        response = identify(self.pushes)
        _require_sound(response)
        self.response = response

    def repeat(self, before: Sequence[Push]) -> Procedure:
        """Repeat the pushes of `before` with each effect in both directions, and identify the response."""
        yield rest(_STILL, self.period)
        self.person.release_handle(self.look)
        for effect in sorted({push.effect for push in before}):
            peak = next(push.peak for push in before if push.effect == effect)
            for level in (peak, -peak):
                self.pushes.append((yield from self._push(effect, level)))
        self.response = identify(self.pushes)

    @property
    def level(self) -> float:
        """Largest level that was used."""
        return max(push.peak for push in self.pushes)

    def _find_level(self, effect: int) -> Generator[Motion, Rows, float]:
        """Return a level that moves the handle far enough, found by doubling."""
        enough, level, sign = ENOUGH * 0.5 * smaller_travel(self.axes), min(START, self.most), 1.0
        while True:
            push = yield from self._push(effect, sign * level)
            if push.distance >= 0.5 * enough:
                return min(level * min(max(enough / push.distance, 0.5), 2.0), self.most)
            if level >= self.most:
                break
            level, sign = min(2.0 * level, self.most), -sign
        raise NoAnswer(
            f"effect {effect + 1} does not move the handle: {1e3 * push.distance:.2f} mm at level {level:g}, the "
            "greatest that was allowed. Switch the motors on, leave the handle free, or allow more with --push-level."
        )

    def _push(self, effect: int, level: float) -> Generator[Motion, Rows, Push]:
        """Push once, from near the middle and from rest."""
        yield from self._come_to_rest()
        self.person.watch(f"The handle gets a push of {abs(level):.1%} of full force for {2 * RAMP + HOLD:g} s.")
        count = math.ceil((_BEFORE + 2.0 * RAMP + HOLD + AFTER) / self.period)
        force = np.zeros((count, 2))
        force[:, effect] = [level * _shape(k * self.period - _BEFORE) for k in range(count)]
        table = reference(np.zeros((count, 2)), force=force)
        label = f"push of effect {effect + 1} by {level:.3g}"
        rows = yield Motion(
            Causality.IMPEDANCE, table, abs(level), max_speed=_TOO_FAST, relative=True, period=self.period, label=label
        )
        rows = known_rows(rows)
        given = np.round(rows["command"][:, effect] * self.full_scale) / self.full_scale
        return Push(effect, rows["time"] + rows["period_error"], given, rows["position"] - rows["position"][0])

    def _come_to_rest(self) -> Generator[Motion, Rows, None]:
        """Wait until the handle is slow; if it is far from the middle, ask the person to centre it."""
        here = yield from self._drift()
        if np.hypot(*here) > NEAR * 0.5 * smaller_travel(self.axes):
            self.person.bring(MIDDLE, self.look)
            self.person.release_handle(self.look)
            yield from self._drift()

    def _drift(self) -> Generator[Motion, Rows, NDArray[np.float64]]:
        """Return the position of the handle once it is slow, or after a timeout."""
        for _ in range(math.ceil(_PATIENCE / _STILL)):
            places = known_rows((yield rest(_STILL, self.period)))["position"]
            if np.hypot(*(places[-1] - places[0])) < _SLOW * _STILL:
                break
        return np.array(places[-1])

    def _require_seen(self, push: Push) -> None:
        if not self.person.saw(push.moved):
            raise ConfigurationError(
                f"by its counts the handle moved {1e3 * push.distance:.0f} mm {in_words(push.moved)}, but it did not. "
                "Begin again, and bring the handle to each place as it is called: x is to the right, y away from you."
            )


def agree(some: Response, others: Response) -> bool:
    """Return True if each effect accelerates the handle similarly in both responses."""
    off = np.hypot(*(some.acceleration - others.acceleration))
    return bool(np.all(off < _ALIKE * np.hypot(*others.acceleration)))


def smaller_travel(axes: Axes) -> float:
    """Return the smaller travel [m]; for a wheel, which may have many turns, the width of its rim."""
    if axes.rim_radius_m:
        return min(2.0 * axes.rim_radius_m, axes.workspace_max_m[0] - axes.workspace_min_m[0])
    low, high = axes.workspace_min_m, axes.workspace_max_m
    return min(high[0] - low[0], high[1] - low[1])


def _shape(elapsed: float) -> float:
    """Return the level of a push as a fraction of its peak at the time `elapsed` [s]."""
    return max(0.0, min(1.0, elapsed / RAMP, (2.0 * RAMP + HOLD - elapsed) / RAMP))


def _require_sound(response: Response) -> None:
    if not response.misfit < _LARGEST_MISFIT:
        raise NoAnswer(
            f"the handle does not move like a free mass ({response.misfit:.0%} of its motion is left unexplained). "
            "Do not touch it, remove any springs, and begin again."
        )
    if not response.acceleration[1].any():  # a wheel
        return
    first, second = response.acceleration.T
    sine = abs(float(np.linalg.det(response.acceleration))) / math.prod((np.hypot(*first), np.hypot(*second)))
    if not sine > _LEAST_ANGLE:
        raise NoAnswer(
            "both effects push in almost the same direction: this stick cannot make forces in all directions."
        )
