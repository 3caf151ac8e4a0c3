"""Measurement of the stability limit: the device deflects its handle and releases it.

A trial renders a contact that sticks (`haptics.rendering.motion.Motion.contact`). A force deflects the handle slowly
and is then removed at once, and the handle rings. The stiffness is raised from far below the predicted limit until a
contact is unstable, and then bisected. If the handle moves farther than the ringing of a stable contact can reach, the
contact is released within the same tick, and soft gains stop the handle.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.answers import Plant
from calibration.autotune.pushing import EASED, Gains, Pusher
from calibration.autotune.ringing import Ring, ring_of
from calibration.autotune.settings import AXES
from calibration.motions.procedure_runner import usable_rows
from haptics.design import Coupling, Handle, stiffness_limit, stuck_matrix
from haptics.records import Rows
from haptics.rendering.motion import Motion, reference

Array = NDArray[np.float64]

BEGIN = 0.3
"""Initial stiffness as a fraction of the predicted limit."""
BEYOND = 3.0
"""Maximum stiffness as a multiple of the predicted limit."""
TRIP = 1.7
"""Maximum displacement of the ringing as a multiple of the initial deflection."""

_STRENGTH = 0.35
_FARTHEST, _FASTEST = 5e-3, 0.15
_STOPPING = 8e-3
_SLEW = 0.4
"""Limits of the push.

Force and slew rate as fractions of the device's limits, deflection [m], speed [m/s], stopping distance [m].
"""
_CLEARLY, _COUNTS = 2.0, 5.0
"""Minimum ratio of push to dry friction, and minimum deflection in encoder counts."""
_CAUGHT = 0.25
"""Duration of the braking [s]."""
_RAMP, _HOLD, _RINGS = 4.0, 3.0, 24.0
"""Durations of the rise and the plateau of the push and of the ringing, in periods."""
_SHORTEST, _LONGEST = 0.06, 1.5
"""Minimum and maximum duration of the observed ringing [s]."""


@dataclass(frozen=True)
class Trial:
    """Trial with one stiffness, and its result."""

    stiffness: float
    stable: bool
    rate: float
    tripped: bool


@dataclass(frozen=True)
class Boundary:
    """Stability limit of an axis at a given damping.

    Attributes
    ----------
    axis : str
        Name of the axis.
    damping : float
        Damping of the contact [N s/m].
    stiffness : float or None
        Stability limit [N/m]; None if it was not found.
    stable, unstable : float
        Highest stable and lowest unstable stiffness [N/m]; 0 and infinity if none.
    expected : float
        Limit predicted for the identified handle [N/m].
    doubt : str
        Reason why it was not found; empty if it was.
    trials : list of Trial
        All trials in order.
    """

    axis: str
    damping: float
    stiffness: float | None
    stable: float
    unstable: float
    expected: float
    doubt: str = ""
    trials: list[Trial] = field(default_factory=list)


def find_boundary(
    pusher: Pusher, plant: Plant, handle: Handle, axis: str, damping: float, before: Rows
) -> Generator[Motion, Rows, Boundary]:
    """Measure the stability limit of an axis at a damping of the contact [N s/m]."""
    gains = Gains.of(plant, handle.resolution, pusher.spec, pusher.period)
    search = _Search(pusher, plant, handle, axis, damping, gains)
    while (stiffness := search.next()) is not None:
        yield from pusher.centre(gains, AXES.index(axis), before)
        motion, release = search.trial(stiffness)
        before = yield motion
        search.evaluate(stiffness, before, release, len(motion.table))
    yield from pusher.centre(gains, AXES.index(axis), before)
    return search.result()


class _Search:
    """Search for the stability limit: geometric rise, then bisection."""

    def __init__(self, pusher: Pusher, plant: Plant, handle: Handle, axis: str, damping: float, gains: Gains) -> None:
        self._pusher, self._plant, self._handle, self._gains = pusher, plant, handle, gains
        self._axis, self._damping = axis, damping
        self._number = AXES.index(axis)
        self._expected = stiffness_limit(handle, damping, pusher.period)
        self._trials: list[Trial] = []
        self._doubt = ""

    @property
    def _stable(self) -> float:
        return max((one.stiffness for one in self._trials if one.stable), default=0.0)

    @property
    def _unstable(self) -> float:
        return min((one.stiffness for one in self._trials if not one.stable), default=math.inf)

    def next(self) -> float | None:
        """Return the next stiffness to try, None at the end of the search."""
        low, high, wish = self._stable, self._unstable, self._pusher.wish
        if not self._expected > 0.0:
            self._doubt = f"no stiffness should hold this axis at {self._damping:.4g} N s/m"
        if self._doubt:
            return None
        if math.isinf(high):
            stiffness = low * wish.rise if low else BEGIN * self._expected
            if stiffness > BEYOND * self._expected:
                self._doubt = f"it was still stable at {low:.4g} N/m, {BEYOND:g} times what was expected"
        elif low == 0.0:
            stiffness = 0.5 * high
            if stiffness < 0.02 * self._expected:
                self._doubt = f"it swung at all stiffnesses down to {high:.4g} N/m"
        else:
            stiffness = math.sqrt(low * high)
            if high / low < 1.0 + wish.bracket:
                return None
        if not self._doubt:
            self._doubt = self._unseen(stiffness)
        return None if self._doubt else stiffness

    def _swing(self, stiffness: float) -> float:
        """Return the frequency of the least damped oscillation [rad/s]."""
        period = self._pusher.period
        values = np.linalg.eigvals(stuck_matrix(Coupling(stiffness, self._damping, period), self._handle))
        swings = values[np.abs(np.angle(values)) > 1e-3]
        if not len(swings):
            return math.sqrt(stiffness / self._plant.mass)
        return float(abs(np.angle(swings[np.argmax(np.abs(swings))])) / period)

    def _push(self, stiffness: float) -> float:
        """Return the force that deflects the handle before the release [N]."""
        spec, mass = self._pusher.spec, self._plant.mass
        fastest = min(_FASTEST, _STOPPING * self._gains.brake / (TRIP * mass))
        return min(
            _STRENGTH * spec.max_force,
            _FARTHEST * stiffness,
            fastest * math.sqrt(stiffness * mass),
            _SLEW * spec.max_force_rate / self._swing(stiffness),
        )

    def _unseen(self, stiffness: float) -> str:
        """Return the reason why ringing would be unobservable at a stiffness; empty if it is observable."""
        push, step = self._push(stiffness), self._handle.resolution
        if push < _CLEARLY * self._plant.friction:
            friction = self._plant.friction
            return f"at {stiffness:.4g} N/m a push of {push:.2g} N is too weak against {friction:.2g} N of dry friction"
        if push / stiffness < _COUNTS * step:
            counts = push / stiffness / step
            return (
                f"at {stiffness:.4g} N/m a push of {push:.2g} N moves the handle by {counts:.1f} counts of the "
                "encoder: too few to see it ring"
            )
        return ""

    def trial(self, stiffness: float) -> tuple[Motion, int]:
        """Return the motion of a trial, and the index of the release in its table."""
        period, force = self._pusher.period, self._push(stiffness)
        turn = 2.0 * math.pi / self._swing(stiffness)
        times = (EASED, max(_RAMP * turn, 0.05), max(_HOLD * turn, 0.03), min(max(_RINGS * turn, _SHORTEST), _LONGEST))
        rest, ramp, hold, ring = (max(round(time / period), 4) for time in times)
        caught = max(round(_CAUGHT / period), 4)
        rising = 0.5 - 0.5 * np.cos(np.pi * np.arange(ramp) / ramp)
        along = np.zeros((rest + ramp + hold + ring + caught, 2))
        along[:, self._number] = force * np.concatenate(
            (np.zeros(rest), rising, np.ones(hold), np.zeros(ring + caught))
        )
        motion = self._pusher.move(
            reference(np.zeros_like(along), force=along),
            relative=True,
            contact=True,
            stiffness=stiffness,
            damping=self._damping,
            trip=TRIP * force / stiffness + 2.0 * self._handle.resolution,
            rest=caught * period,
            rest_stiffness=self._gains.stiffness,
            rest_damping=self._gains.brake,
            label=f"contact {self._axis} {stiffness:.6g}",
        )
        return motion, rest + ramp + hold

    def evaluate(self, stiffness: float, rows: Rows, release: int, length: int) -> None:
        """Evaluate a trial from its recorded rows."""
        since = rows["tick"] - rows["tick"][0]
        first = int(since[np.argmax(rows["sticking"] != 0)])
        caught = max(round(_CAUGHT / self._pusher.period), 4)
        ended = first >= length - 2
        seen = usable_rows(rows[(since > release) & (since < first - caught)])
        ring = self._ring(seen["displacement"][:, self._number], stiffness)
        self._trials.append(Trial(stiffness, ended and not ring.rate > 0.0, ring.rate, not ended))

    def _ring(self, displacement: Array, stiffness: float) -> Ring:
        loss = 4.0 * self._plant.friction / self._plant.mass
        return ring_of(displacement, self._pusher.period, self._swing(stiffness), loss, self._handle.resolution)

    def result(self) -> Boundary:
        """Return the result of the search."""
        low, high = self._stable, self._unstable
        found = None if self._doubt or math.isinf(high) or low == 0.0 else self._between(low, high)
        return Boundary(self._axis, self._damping, found, low, high, self._expected, self._doubt, list(self._trials))

    def _between(self, low: float, high: float) -> float:
        """Return the stiffness of zero growth rate between two others, or their geometric mean if unknown."""
        rates = {one.stiffness: one.rate for one in self._trials}
        below, above = rates[low], rates[high]
        if math.isfinite(below) and math.isfinite(above) and below < 0.0 < above:
            return low + (high - low) * -below / (above - below)
        return math.sqrt(low * high)
