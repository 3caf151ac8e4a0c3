"""Response of the handle to small pushes, time-out of a force that is not renewed, and a weight that the stick carries.

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

The time-out is the last safety net if the host dies. Here the host sends one force, starts it once, and then sends
nothing more. The handle accelerates until the force ends, and coasts from then on. The time of the end is found by
least squares, with the response identified from pushes:

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
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import integral
from calibration.joystick.person import MIDDLE, CountReader, Person, in_words
from calibration.joystick.stick import PAUSE, RawStick
from calibration.motions import Procedure
from calibration.motions.excitation import approach
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
        if not response.misfit < _LARGEST_MISFIT:
            raise NoAnswer(
                f"the handle does not move like a free mass ({response.misfit:.0%} of its motion is left unexplained). "
                "Do not touch it, remove any springs, and begin again."
            )
        if response.acceleration[1].any():  # no wheel
            first, second = response.acceleration.T
            sine = abs(float(np.linalg.det(response.acceleration))) / math.prod((np.hypot(*first), np.hypot(*second)))
            if not sine > _LEAST_ANGLE:
                raise NoAnswer(
                    "both effects push in almost the same direction: this stick cannot make forces in all directions."
                )
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
        elapsed, force = np.arange(count) * self.period - _BEFORE, np.zeros((count, 2))
        force[:, effect] = level * np.clip(np.minimum(elapsed / RAMP, (whole - elapsed) / RAMP), 0.0, 1.0)
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


# --- time-out ---------------------------------------------------------------------------------------------------------

WAY = 0.15
"""Intended displacement during the push, as a fraction of half the smaller travel."""

WATCHED = 2.5
"""Duration of the observation, as a multiple of the nominal duration of the force."""

LONGEST = 1.5
"""Accepted duration of a force as a multiple of the nominal one, plus `ROUNDING`."""
ROUNDING = 0.03
"""Accepted additional duration [s]."""

_END_COARSE, _END_FINE = 4e-3, 1e-3
_WAIT, _LOOK, _RESTING = 3.0, 0.1, 2e-3


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
    begin, end = _fit_ends(clock, way, response)
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
        return np.asarray(np.array(axes.counts_to_m) @ (np.array(stick.counts()) - axes.centre_counts))

    def settle() -> None:
        """Wait until the handle is nearly at rest, or a timeout."""
        end, before, moved = time.perf_counter() + _WAIT, position(), math.inf
        while time.perf_counter() < end and moved >= _RESTING * _LOOK:
            time.sleep(_LOOK)
            now = position()
            before, moved = now, float(np.hypot(*(now - before)))

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


def _fit_ends(clock: Array, way: Array, response: Response) -> tuple[float, float]:
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

    begins = np.arange(0.0, LONGEST_DELAY, _END_COARSE)
    ends = np.arange(_END_COARSE, float(clock[-1]) + _END_COARSE, _END_COARSE)
    begin, end = min(((b, e) for b in begins for e in ends if e > b), key=misfit)
    near = _END_FINE * np.arange(-4, 5)
    begin, end = min(((max(begin + i, 0.0), end + k) for i in near for k in near), key=misfit)
    return float(begin), float(end)


# --- weight -----------------------------------------------------------------------------------------------------------

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
