"""Response of the handle to small pushes: motors, mass, friction and delay.

A push has one effect, a ramp up and down, and lasts a fifth of a second; the first ones are weak. Every push is a
motion (`haptics.rendering.programs`) without a controller that only applies a force, in levels, because the
scale to newtons is unknown at this stage. The rests between them are motions with zero force.

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

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.joystick.person import MIDDLE, CountReader, Person, in_words
from calibration.motions import Procedure
from calibration.motions.procedure import known_rows
from devices.joystick.parameters import Axes
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.rendering.programs import Motion, constant_reference, reference

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
    read_counts : callable
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
    read_counts: CountReader
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
        self.person.release_handle(self.read_counts)
        for effect in range(len(self.axes.usages)):
            level = yield from self._find_level(effect)
            for number in range(2 * PAIRS):
                push = yield from self._push(effect, level if number % 2 == 0 else -level)
                if number < 2 and not self.person.saw(push.moved):
                    raise ConfigurationError(
                        f"by its counts the handle moved {1e3 * push.distance:.0f} mm {in_words(push.moved)}, but it "
                        "did not. Begin again, and bring the handle to each place as it is called: x is to the right, "
                        "y away from you."
                    )
                self.pushes.append(push)
        response = identify(self.pushes)
        _require_sound(response)
        self.response = response

    def repeat(self, before: Sequence[Push]) -> Procedure:
        """Repeat the pushes of `before` with each effect in both directions, and identify the response."""
        yield rest(_STILL, self.period)
        self.person.release_handle(self.read_counts)
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
        """Push once, from near the middle and from rest; the person centres a handle that is far from the middle."""
        here = yield from self._drift()
        if np.hypot(*here) > NEAR * 0.5 * smaller_travel(self.axes):
            self.person.bring(MIDDLE, self.read_counts)
            self.person.release_handle(self.read_counts)
            yield from self._drift()
        whole = 2.0 * RAMP + HOLD
        self.person.watch(f"The handle gets a push of {abs(level):.1%} of full force for {2 * RAMP + HOLD:g} s.")
        count = math.ceil((_BEFORE + 2.0 * RAMP + HOLD + AFTER) / self.period)
        force = np.zeros((count, 2))
        for k in range(count):
            elapsed = k * self.period - _BEFORE
            force[k, effect] = level * max(0.0, min(1.0, elapsed / RAMP, (whole - elapsed) / RAMP))
        table = reference(np.zeros((count, 2)), force=force)
        label = f"push of effect {effect + 1} by {level:.3g}"
        rows = yield Motion(
            Causality.IMPEDANCE, table, abs(level), max_speed=_TOO_FAST, relative=True, period=self.period, label=label
        )
        rows = known_rows(rows)
        given = np.round(rows["command"][:, effect] * self.full_scale) / self.full_scale
        return Push(effect, rows["time"] + rows["period_error"], given, rows["position"] - rows["position"][0])

    def _drift(self) -> Generator[Motion, Rows, Array]:
        """Return the position of the handle once it is slow, or after a timeout."""
        for _ in range(math.ceil(_PATIENCE / _STILL)):
            places = known_rows((yield rest(_STILL, self.period)))["position"]
            if np.hypot(*(places[-1] - places[0])) < _SLOW * _STILL:
                break
        return np.array(places[-1])


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


# --- identification of the response -----------------------------------------------------------------------------------

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

    def best(delays: Array) -> Response:
        return min((_at_delay(pushes, float(delay)) for delay in delays), key=lambda response: response.misfit)

    coarse = best(np.arange(0.0, LONGEST_DELAY + 0.5 * _COARSE, _COARSE))
    return best(np.maximum(coarse.delay + _FINE * np.arange(-4, 5), 0.0))


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
