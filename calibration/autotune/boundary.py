"""Measurement of the stability limit: the device deflects its handle and releases it.

A trial renders a contact that sticks (`haptics.rendering.programs.Motion.contact`). A force deflects the handle slowly
and is then removed at once, and the handle rings. The stiffness is raised from far below the predicted limit until a
contact is unstable, and then bisected. If the handle moves farther than the ringing of a stable contact can reach, the
contact is released within the same tick, and soft gains stop the handle.

Growth or decay rate of the ringing (`ring_of`):

The oscillation is demodulated at its frequency in consecutive windows. Dry friction reduces the amplitude by
:math:`4 c / (m w^2)` per period, independent of the amplitude; the remaining change is the rate of the linear loop.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibration.autotune.plant import Plant
from calibration.autotune.pushing import AXES, EASED, Gains, Pusher
from calibration.motions.procedure import usable_rows
from haptics.design import Coupling, Handle, stiffness_limit, stuck_matrix
from haptics.records import Rows
from haptics.rendering.programs import Motion, reference

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
        self._number, self._caught = AXES.index(axis), max(round(_CAUGHT / pusher.period), 4)
        expected = stiffness_limit(handle, damping, pusher.period)
        self._found = Boundary(axis, damping, None, 0.0, math.inf, expected)

    def next(self) -> float | None:
        """Return the next stiffness to try, None at the end of the search."""
        found, settings, doubt = self._found, self._pusher.settings, ""
        low, high, expected = found.stable, found.unstable, found.expected
        if not expected > 0.0:
            self._found = replace(found, doubt=f"no stiffness should hold this axis at {found.damping:.4g} N s/m")
            return None
        if math.isinf(high):
            stiffness = low * settings.rise if low else BEGIN * expected
            if stiffness > BEYOND * expected:
                doubt = f"it was still stable at {low:.4g} N/m, {BEYOND:g} times what was expected"
        elif low == 0.0:
            stiffness = 0.5 * high
            if stiffness < 0.02 * expected:
                doubt = f"it swung at all stiffnesses down to {high:.4g} N/m"
        else:
            stiffness = math.sqrt(low * high)
            if high / low < 1.0 + settings.bracket:
                return None
        push, step, friction = self._push(stiffness), self._handle.resolution, self._plant.friction
        pushed = f"at {stiffness:.4g} N/m a push of {push:.2g} N"
        if not doubt and push < _CLEARLY * friction:
            doubt = f"{pushed} is too weak against {friction:.2g} N of dry friction"
        elif not doubt and push / stiffness < _COUNTS * step:
            counts = f"{push / stiffness / step:.1f} counts of the encoder"
            doubt = f"{pushed} moves the handle by {counts}: too few to see it ring"
        self._found = replace(found, doubt=doubt)
        return None if doubt else stiffness

    def _frequency(self, stiffness: float) -> float:
        """Return the frequency of the least damped oscillation [rad/s]."""
        period = self._pusher.period
        values = np.linalg.eigvals(stuck_matrix(Coupling(stiffness, self._found.damping, period), self._handle))
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
            _SLEW * spec.max_force_rate / self._frequency(stiffness),
        )

    def trial(self, stiffness: float) -> tuple[Motion, int]:
        """Return the motion of a trial, and the index of the release in its table."""
        period, force = self._pusher.period, self._push(stiffness)
        turn = 2.0 * math.pi / self._frequency(stiffness)
        times = (EASED, max(_RAMP * turn, 0.05), max(_HOLD * turn, 0.03), min(max(_RINGS * turn, _SHORTEST), _LONGEST))
        rest, ramp, hold, ring = (max(round(time / period), 4) for time in times)
        rising = 0.5 - 0.5 * np.cos(np.pi * np.arange(ramp) / ramp)
        pieces = (np.zeros(rest), rising, np.ones(hold), np.zeros(ring + self._caught))
        along = np.zeros((sum(map(len, pieces)), 2))
        along[:, self._number] = force * np.concatenate(pieces)
        motion = self._pusher.move(
            reference(np.zeros_like(along), force=along),
            relative=True,
            contact=True,
            stiffness=stiffness,
            damping=self._found.damping,
            trip=TRIP * force / stiffness + 2.0 * self._handle.resolution,
            rest=self._caught * period,
            rest_stiffness=self._gains.stiffness,
            rest_damping=self._gains.brake,
            label=f"contact {self._found.axis} {stiffness:.6g}",
        )
        return motion, rest + ramp + hold

    def evaluate(self, stiffness: float, rows: Rows, release: int, length: int) -> None:
        """Evaluate a trial from its recorded rows."""
        since = rows["tick"] - rows["tick"][0]
        first = int(since[np.argmax(rows["sticking"] != 0)])
        ended = first >= length - 2
        seen = usable_rows(rows[(since > release) & (since < first - self._caught)])
        loss = 4.0 * self._plant.friction / self._plant.mass
        displacement, frequency = seen["displacement"][:, self._number], self._frequency(stiffness)
        ring = ring_of(displacement, self._pusher.period, frequency, loss, self._handle.resolution)
        found, stable = self._found, ended and not ring.rate > 0.0
        trials = [*found.trials, Trial(stiffness, stable, ring.rate, not ended)]
        if stable:
            self._found = replace(found, stable=max(found.stable, stiffness), trials=trials)
        else:
            self._found = replace(found, unstable=min(found.unstable, stiffness), trials=trials)

    def result(self) -> Boundary:
        """Return the limit: the stiffness of zero growth rate, or the geometric mean if the rates are unknown."""
        found, low, high = self._found, self._found.stable, self._found.unstable
        if found.doubt or math.isinf(high) or low == 0.0:
            return found
        rates = {one.stiffness: one.rate for one in found.trials}
        below, above = rates[low], rates[high]
        limit = math.sqrt(low * high)
        if math.isfinite(below) and math.isfinite(above) and below < 0.0 < above:
            limit = low + (high - low) * -below / (above - below)
        return replace(found, stiffness=limit)


# --- growth rate ------------------------------------------------------------------------------------------------------

FEW_COUNTS = 2.0
"""Minimum amplitude of a usable oscillation, in encoder counts."""

_PERIODS, _FEWEST_TICKS = 2.0, 8
"""Length of a window in periods of the oscillation, and its minimum in ticks."""

_NYQUIST = 0.1
"""Minimum distance of the oscillation from the Nyquist frequency [rad per tick]."""


@dataclass(frozen=True)
class Ring:
    """Observed oscillation.

    Attributes
    ----------
    rate : float
        Growth rate [1/s]; negative for decay, nan if too little was observed.
    frequency : float
        Frequency of the oscillation [rad/s].
    windows : int
        Number of windows used.
    """

    rate: float
    frequency: float
    windows: int


def ring_of(displacement: Array, period: float, frequency: float, loss: float, step: float) -> Ring:
    """Return the growth rate of an oscillation.

    Parameters
    ----------
    displacement : (n,) float array
        Displacement at each tick after the release [m].
    period : float
        Time between two ticks [s].
    frequency : float
        Expected frequency [rad/s].
    loss : float
        Amplitude loss by dry friction times the square of the frequency, 4 c/m [m/s^2 per period].
    step : float
        Step of the encoder [m].
    """
    if len(displacement) < 2 * _FEWEST_TICKS:
        return Ring(math.nan, frequency, 0)
    # the frequency of the largest spectral line within a factor of 2 of the expected one
    size = 8 * max(len(displacement), 16)
    early = displacement[: max(len(displacement) // 2, 16)]
    spectrum = np.abs(np.fft.rfft((early - early.mean()) * np.hanning(len(early)), size))
    frequencies = 2.0 * np.pi * np.fft.rfftfreq(size, period)
    near = (frequencies > 0.5 * frequency) & (frequencies < min(2.0 * frequency, math.pi / period * 1.0001))
    w = float(frequencies[near][np.argmax(spectrum[near])]) if near.any() else frequency
    apart = min(w * period, max(math.pi - w * period, _NYQUIST))  # also from the image about Nyquist
    length = max(math.ceil(_PERIODS * 2.0 * math.pi / apart), _FEWEST_TICKS)
    hop = max(length // 2, 1)
    if len(displacement) < 2 * length:
        return Ring(math.nan, w, 0)
    shape = np.hanning(length + 2)[1:-1]
    wave = shape * np.exp(-1j * w * period * np.arange(length)) * 2.0 / shape.sum()
    starts = np.arange(0, len(displacement) - length + 1, hop)
    swing = np.abs([np.sum(wave * displacement[at : at + length]) for at in starts])
    bad = np.flatnonzero(~(swing > FEW_COUNTS * max(step, 1e-9)))
    good = int(bad[0]) if len(bad) else len(swing)
    if good < 3:
        return Ring(math.nan, w, good)
    swing = swing[:good]
    taken = loss / w**2 * hop * period * w / (2.0 * math.pi)
    before, after = swing[:-1], swing[1:] + taken
    ratio = float(before @ after) / float(before @ before)
    return Ring(math.log(max(ratio, 1e-9)) / (hop * period), w, good)
