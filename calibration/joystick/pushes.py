"""Small pushes: one effect at a time, gentle at first, ramped, over in a fifth of a second.

Every push is a motion (`haptics.rendering.motion`) that follows nothing and only gives its force, in levels: what a
newton is is not known yet. So is every rest between them, which gives none.
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
from calibration.motions.course import known_rows
from devices.joystick.parameters import Axes
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.motion import Motion, holding, reference

START = 0.02
"""Level of the first push."""
RAMP, HOLD, AFTER = 0.06, 0.06, 0.2
"""A push grows, stays and falls for so long; then the handle is watched [s]."""
ENOUGH = 0.25
"""A push is strong enough that moves the handle this far, in parts of half the smaller travel."""
PAIRS = 2
"""Then each effect pushes so often to either side."""
TOO_FAR = 0.6
"""No push goes on where the handle comes this far from the middle, in parts of half the smaller travel."""
NEAR = 0.3
"""From farther than this the handle is brought back to the middle before it is pushed."""

_BEFORE = 0.02
_STILL = 0.1
_PATIENCE = 1.5
_SLOW = 0.04
_LARGEST_MISFIT = 0.15
_LEAST_ANGLE = 0.5
_TOO_FAST = 2.0
_ALIKE = 0.3


def rest(duration: float, period: float) -> Motion:
    """Return a motion that gives no force for `duration` [s]."""
    return Motion(Causality.IMPEDANCE, holding(duration, period), 1e-9, relative=True, period=period, label="rest")


class NoAnswer(ConfigurationError):
    """The handle does not answer pushes as a free one does: of the motors, or of what holds it."""


@dataclass
class Pusher:
    """Pushes a stick and watches what comes of it.

    Parameters
    ----------
    axes : Axes
        The stick's axes.
    person : Person
        Who watches, too.
    most : float
        The greatest level that may be used, above 0 and at most 1.
    full_scale : int
        Number of steps of a level between 0 and 1.
    look : callable
        Tells the counts now, for the person.
    period : float
        Of a tick [s].

    Attributes
    ----------
    pushes : list of Push
        What came of them.
    response : Response or None
        How the handle answers, in the end.
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
        """Push with each effect, both ways, and find how the handle answers.

        Raises
        ------
        ConfigurationError
            If it does not move, moves elsewhere than the person sees, or not as a free handle does.
        """
        yield rest(_STILL, self.period)
        self.person.let_go(self.look)
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
        """Push with each effect once more, both ways, as strongly as `before`; find how the handle answers."""
        yield rest(_STILL, self.period)
        self.person.let_go(self.look)
        for effect in sorted({push.effect for push in before}):
            peak = next(push.peak for push in before if push.effect == effect)
            for level in (peak, -peak):
                self.pushes.append((yield from self._push(effect, level)))
        self.response = identify(self.pushes)

    @property
    def level(self) -> float:
        """The greatest level that was used."""
        return max(push.peak for push in self.pushes)

    def _find_level(self, effect: int) -> Generator[Motion, Rows, float]:
        """Return a level that moves the handle far enough; it is doubled until it does."""
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
        """Wait until the handle is slow; have it brought to the middle where it is not near that."""
        here = yield from self._drift()
        if np.hypot(*here) > NEAR * 0.5 * smaller_travel(self.axes):
            self.person.bring(MIDDLE, self.look)
            self.person.let_go(self.look)
            yield from self._drift()

    def _drift(self) -> Generator[Motion, Rows, NDArray[np.float64]]:
        """Return where the handle is once it has become slow, or patience has an end."""
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
    """Tell whether each effect accelerates the handle alike in both."""
    off = np.hypot(*(some.acceleration - others.acceleration))
    return bool(np.all(off < _ALIKE * np.hypot(*others.acceleration)))


def smaller_travel(axes: Axes) -> float:
    """Return the smaller one of the two travels [m]; of a wheel, which may have many turns, the width of its rim."""
    if axes.rim_radius_m:
        return min(2.0 * axes.rim_radius_m, axes.workspace_max_m[0] - axes.workspace_min_m[0])
    low, high = axes.workspace_min_m, axes.workspace_max_m
    return min(high[0] - low[0], high[1] - low[1])


def _shape(elapsed: float) -> float:
    """Return the level of a push, in parts of its peak, after so long [s]."""
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
