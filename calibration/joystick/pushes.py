"""Small pushes: one effect at a time, gentle at first, ramped, over in a fifth of a second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import MIDDLE, Person, in_words
from calibration.joystick.response import Push, Response, identify
from calibration.joystick.stick import PAUSE, RawStick
from devices.joystick.parameters import Axes
from haptics.errors import ConfigurationError

START = 0.02
"""Level of the first push."""
RAMP, HOLD, AFTER = 0.06, 0.06, 0.2
"""A push grows, stays and falls for so long; then the handle is watched [s]."""
ENOUGH = 0.25
"""A push is strong enough that moves the handle this far, in parts of half the smaller travel."""
PAIRS = 2
"""Then each effect pushes so often to either side."""
TOO_FAR = 0.6
"""A push ends at once where the handle comes this far from the middle, in parts of half the travel."""
NEAR = 0.3
"""From farther than this the handle is brought back to the middle before it is pushed."""

_BEFORE = 0.02
_STILL = 0.1
_PATIENCE = 1.5
_SLOW = 0.04
_LARGEST_MISFIT = 0.15
_LEAST_ANGLE = 0.5

Metres = Callable[[tuple[int, int]], NDArray[np.float64]]


def metres(axes: Axes) -> Metres:
    """Return what turns counts into the place of the handle, (2,) [m]."""
    matrix, centre = np.array(axes.counts_to_m), np.array(axes.centre_counts)
    return lambda counts: matrix @ (np.array(counts) - centre)


@dataclass
class Pusher:
    """Pushes a stick and watches what comes of it.

    Parameters
    ----------
    stick : RawStick
        The open stick.
    axes : Axes
        Its axes.
    person : Person
        Who watches, too.
    most : float
        The greatest level that may be used, above 0 and at most 1.
    """

    stick: RawStick
    axes: Axes
    person: Person
    most: float
    pushes: list[Push] = field(default_factory=list)

    def explore(self) -> Response:
        """Push with either effect, both ways; return how the handle answers.

        Raises
        ------
        ConfigurationError
            If it does not move, moves elsewhere than the person sees, or not as a free handle does.
        """
        for effect in range(2):
            level = self._find_level(effect)
            for number in range(2 * PAIRS):
                push = self._push(effect, level if number % 2 == 0 else -level)
                if number < 2:
                    self._require_seen(push)
                self.pushes.append(push)
        response = identify(self.pushes)
        _require_sound(response)
        return response

    @property
    def level(self) -> float:
        """The greatest level that was used."""
        return max(push.peak for push in self.pushes)

    def _find_level(self, effect: int) -> float:
        """Return a level that moves the handle far enough; it is doubled until it does."""
        enough, level, sign = ENOUGH * 0.5 * self._smaller_travel, min(START, self.most), 1.0
        while True:
            push = self._push(effect, sign * level)
            if push.distance >= 0.5 * enough:
                return min(level * min(max(enough / push.distance, 0.5), 2.0), self.most)
            if level >= self.most:
                break
            level, sign = min(2.0 * level, self.most), -sign
        raise ConfigurationError(
            f"effect {effect + 1} does not move the handle: {1e3 * push.distance:.2f} mm at level {level:g}, the "
            "greatest that was allowed. Switch the motors on, leave the handle free, or allow more with --push-level."
        )

    @property
    def _smaller_travel(self) -> float:
        low, high = self.axes.workspace_min_m, self.axes.workspace_max_m
        return min(high[0] - low[0], high[1] - low[1])

    def _push(self, effect: int, level: float) -> Push:
        """Push once, from near the middle and from rest."""
        self._come_to_rest()
        self.person.watch(f"The handle gets a push of {abs(level):.1%} of full force for {2 * RAMP + HOLD:g} s.")
        place, stick = metres(self.axes), self.stick
        origin = place(stick.counts())
        reach = TOO_FAR * 0.5 * self._smaller_travel
        rows: list[tuple[float, float, float, float]] = []
        start, stopped = time.perf_counter(), False
        while (elapsed := time.perf_counter() - start) < _BEFORE + 2.0 * RAMP + HOLD + AFTER:
            here = place(stick.counts())
            stopped = stopped or bool(np.hypot(*here) > reach)
            wanted = 0.0 if stopped else level * _shape(elapsed - _BEFORE)
            applied = stick.push((wanted, 0.0) if effect == 0 else (0.0, wanted))[effect]
            x, y = here - origin
            rows.append((elapsed, applied, float(x), float(y)))
            time.sleep(PAUSE)
        stick.push((0.0, 0.0))
        table = np.array(rows)
        return Push(effect, table[:, 0], table[:, 1], table[:, 2:])

    def _come_to_rest(self) -> None:
        """Wait until the handle is slow; have it brought to the middle where it is not near that."""
        place = metres(self.axes)
        if np.hypot(*self._drift(place)) > NEAR * 0.5 * self._smaller_travel:
            self.person.bring(MIDDLE, self.stick.counts)
            self.person.let_go(self.stick.counts)
            self._drift(place)

    def _drift(self, place: Metres) -> NDArray[np.float64]:
        """Return where the handle is once it has become slow, or patience has an end."""
        end = time.perf_counter() + _PATIENCE
        while True:
            before = place(self.stick.counts())
            time.sleep(_STILL)
            here = place(self.stick.counts())
            if np.hypot(*(here - before)) < _SLOW * _STILL or time.perf_counter() > end:
                return here

    def _require_seen(self, push: Push) -> None:
        if not self.person.saw(push.moved):
            raise ConfigurationError(
                f"by its counts the handle moved {1e3 * push.distance:.0f} mm {in_words(push.moved)}, but it did not. "
                "Begin again, and bring the handle to each place as it is called: x is to the right, y away from you."
            )


def _shape(elapsed: float) -> float:
    """Return the level of a push, in parts of its peak, after so long [s]."""
    return max(0.0, min(1.0, elapsed / RAMP, (2.0 * RAMP + HOLD - elapsed) / RAMP))


def _require_sound(response: Response) -> None:
    if not response.misfit < _LARGEST_MISFIT:
        raise ConfigurationError(
            f"the handle does not move as a free one that is pushed ({response.misfit:.0%} of its motion is left "
            "unexplained). Leave it quite free, take off what springs there are, and begin again."
        )
    first, second = response.acceleration.T
    sine = abs(float(np.linalg.det(response.acceleration))) / math.prod((np.hypot(*first), np.hypot(*second)))
    if not sine > _LEAST_ANGLE:
        raise ConfigurationError(
            "both effects push in almost the same direction: such a stick gives no force in the plane."
        )
