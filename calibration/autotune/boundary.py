"""The stable boundary, measured: the device's own force pushes the handle against a spring and damper and lets go.

A trial renders a contact that sticks (`haptics.rendering.motion.Motion.contact`). A force draws the handle off slowly,
is taken away at once, and the handle rings. Stiffnesses rise from far below what the identified handle should stand;
the first one that swings up ends the rise, and halving the distance (bisection) ends the search. Whatever goes farther
than a ring of a stable contact can, lets go of the contact within that tick and is caught by soft gains.
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
from calibration.motions.course import usable_rows
from haptics.design import Coupling, Handle, stiffness_limit, stuck_matrix
from haptics.records import Rows
from haptics.rendering.motion import Motion, reference

Array = NDArray[np.float64]

BEGIN = 0.3
"""The first stiffness, in parts of what the identified handle should stand."""
BEYOND = 3.0
"""No stiffness above so many times that is tried."""
TRIP = 1.7
"""How far a ring may go, in parts of the displacement that it was released from."""

_STRENGTH = 0.35
_FARTHEST, _FASTEST = 5e-3, 0.15
_STOPPING = 8e-3
_SLEW = 0.4
"""Largest push: by force and slew rate in parts of the device's, displacement [m], speed [m/s], way to stop [m]."""
_CLEARLY, _COUNTS = 2.0, 5.0
"""A push must be stronger than dry friction by this factor, and displace by so many counts."""
_CAUGHT = 0.25
"""Time for the brake [s]."""
_RAMP, _HOLD, _RINGS = 4.0, 3.0, 24.0
"""Lengths of the push coming, staying, and of the ring, in periods."""
_SHORTEST, _LONGEST = 0.06, 1.5
"""The ring is watched for so long [s]."""


@dataclass(frozen=True)
class Trial:
    """One stiffness, and what became of it."""

    stiffness: float
    stable: bool
    rate: float
    tripped: bool


@dataclass(frozen=True)
class Boundary:
    """The boundary of an axis at a damping.

    Attributes
    ----------
    axis : str
        Which one.
    damping : float
        Of the contact [N s/m].
    stiffness : float or None
        The boundary [N/m]; None where it was not found.
    stable, unstable : float
        The stiffest contact that held and the softest that did not [N/m]; 0 and infinity for none.
    expected : float
        What the identified handle should stand [N/m].
    doubt : str
        Why it was not found, in words; empty where it was.
    trials : list of Trial
        All of them in order.
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
    """Measure the boundary of an axis at a damping of the contact [N s/m]."""
    gains = Gains.of(plant, handle.resolution, pusher.spec, pusher.period)
    search = _Search(pusher, plant, handle, axis, damping, gains)
    while (stiffness := search.next()) is not None:
        yield from pusher.centre(gains, AXES.index(axis), before)
        motion, release = search.trial(stiffness)
        before = yield motion
        search.take(stiffness, before, release, len(motion.table))
    yield from pusher.centre(gains, AXES.index(axis), before)
    return search.result()


class _Search:
    """Rises and then halves the distance."""

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
        """Return the stiffness to try next, None at the end."""
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
        """Return the frequency of the slowest-dying swing [rad/s]."""
        period = self._pusher.period
        values = np.linalg.eigvals(stuck_matrix(Coupling(stiffness, self._damping, period), self._handle))
        swings = values[np.abs(np.angle(values)) > 1e-3]
        if not len(swings):
            return math.sqrt(stiffness / self._plant.mass)
        return float(abs(np.angle(swings[np.argmax(np.abs(swings))])) / period)

    def _push(self, stiffness: float) -> float:
        """Return the force to be released from [N]."""
        spec, mass = self._pusher.spec, self._plant.mass
        fastest = min(_FASTEST, _STOPPING * self._gains.brake / (TRIP * mass))
        return min(
            _STRENGTH * spec.max_force,
            _FARTHEST * stiffness,
            fastest * math.sqrt(stiffness * mass),
            _SLEW * spec.max_force_rate / self._swing(stiffness),
        )

    def _unseen(self, stiffness: float) -> str:
        """Say why nothing would be seen at a stiffness; empty if it would."""
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
        """Return the motion of a trial, and the row at which it is released."""
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

    def take(self, stiffness: float, rows: Rows, release: int, length: int) -> None:
        """Judge a trial by its rows."""
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
        """Return what was found."""
        low, high = self._stable, self._unstable
        found = None if self._doubt or math.isinf(high) or low == 0.0 else self._between(low, high)
        return Boundary(self._axis, self._damping, found, low, high, self._expected, self._doubt, list(self._trials))

    def _between(self, low: float, high: float) -> float:
        """Return where the rate crosses 0 between two stiffnesses, or their geometric mean where it is not known."""
        rates = {one.stiffness: one.rate for one in self._trials}
        below, above = rates[low], rates[high]
        if math.isfinite(below) and math.isfinite(above) and below < 0.0 < above:
            return low + (high - low) * -below / (above - below)
        return math.sqrt(low * high)
