"""Velocity estimators from encoder positions, for friction rendering.

======================  ====================================================================================
``velocity_estimator``  method
======================  ====================================================================================
``difference``          backward difference, or over a window of samples (`devices.common.velocity`)
``end-fit``             longest fitting line through the end points (`devices.common.velocity`)
``best-fit``            longest fitting line by least squares (`devices.common.velocity`)
``kalman``              Kalman filter with random acceleration (`devices.common.velocity`)
``level-crossing``      times of encoder count changes (`devices.common.velocity`)
``tracker``             increments of a tracked position, the default of drivers (`devices.common.velocity`)
======================  ====================================================================================

A device derives its settings from `VelocitySettings` and uses `VelocityEstimator`. A kernel contains a field of dtype
`VELOCITY` in its record, initialises it with `fill_velocity`, compiles the estimator with `prepare_velocity` before
real-time operation, and calls `update_velocity`. ``docs/velocity.md`` compares the estimators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.settings import ESTIMATORS, LONGEST_FIT, LONGEST_WINDOW, VelocitySettings
from haptics.device import Vector
from haptics.errors import ConfigurationError
from haptics.jit import address_of_part, call_part, kernel, merged_kernel
from haptics.records import fields

# --- difference quotient over a window --------------------------------------------------------------------------------
#
# Difference quotient over a window of samples.
#
# Over ``n`` periods of ``T`` an encoder of resolution ``q`` gives velocities in steps of ``q / (n T)`` with a lag of
# ``n T / 2``. With the backward difference (n = 1) the sum of velocity times period is exactly the displacement of the
# encoder, so that quantisation cannot cause drift of an element, but one count is a velocity of ``q / T``.

LENGTH = LONGEST_WINDOW + 1

HISTORY_FIELDS: list[tuple[Any, ...]] = [
    ("window", "<i8"),
    ("past_times", "<f8", (LENGTH,)),
    ("past_positions", "<f8", (LENGTH, 2)),
]
"""Ring buffer of the newest samples: sample k is at index k modulo `LENGTH`."""


@merged_kernel
def remember(s: Any, x: float, y: float) -> None:
    """Store the sample (x, y) [m], which has number ``s.samples``."""
    place = s.samples % LENGTH
    s.past_times[place] = s.time
    s.past_positions[place, 0], s.past_positions[place, 1] = x, y


@merged_kernel
def difference(s: Any, x: float, y: float) -> None:
    """Set ``s.velocity`` to the mean over the window, or over all samples if there are fewer."""
    remember(s, x, y)
    last = s.samples
    new, old = last % LENGTH, (last - min(s.window, last)) % LENGTH
    elapsed = s.past_times[new] - s.past_times[old]
    for i in range(2):
        s.velocity[i] = (s.past_positions[new, i] - s.past_positions[old, i]) / elapsed


# --- first-order adaptive windowing -----------------------------------------------------------------------------------
#
# First-order adaptive windowing: the longest window that a line fits.
#
# See Janabi-Sharifi, Hayward and Chen 2000.
#
# For each coordinate, the window grows backwards from the newest sample as long as every sample in it is within one
# count of the line. It is long in slow motion, where a short window would show the encoder steps, and short where the
# motion changes. The velocity is the slope of the line: through the ends of the window (*end-fit*), or by least squares
# (*best-fit*). It refers to the middle of the window and therefore lags by half its length.

_ROUNDING = 1e-6  # additional tolerance for rounding of positions, as a fraction of a count


@kernel
def _fits(s: Any, i: int, count: int, slope: float, time: float, position: float) -> bool:
    """Return True if the last ``count + 1`` samples are within a count of a line at (time, position)."""
    margin = (1.0 + _ROUNDING) * s.resolution
    for k in range(count + 1):
        place = (s.samples - k) % LENGTH
        if abs(s.past_positions[place, i] - position - slope * (s.past_times[place] - time)) > margin:
            return False
    return True


@merged_kernel
def end_fit(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m] by the end-fit variant (section III-A)."""
    remember(s, x, y)
    new = s.samples % LENGTH
    time = s.past_times[new]
    for i in range(2):
        position = s.past_positions[new, i]
        for count in range(1, min(s.samples, LONGEST_FIT) + 1):
            old = (s.samples - count) % LENGTH
            slope = (position - s.past_positions[old, i]) / (time - s.past_times[old])
            if count > 1 and not _fits(s, i, count, slope, time, position):
                break
            s.velocity[i] = slope


@merged_kernel
def best_fit(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m] by the best-fit variant.

    See section III-B of the paper.

    Times and positions are relative to the newest sample to preserve precision in the sums.
    """
    remember(s, x, y)
    new = s.samples % LENGTH
    time = s.past_times[new]
    for i in range(2):
        position = s.past_positions[new, i]
        sum_t = sum_x = sum_tt = sum_tx = 0.0
        for count in range(1, min(s.samples, LONGEST_FIT) + 1):
            old = (s.samples - count) % LENGTH
            t, z = s.past_times[old] - time, s.past_positions[old, i] - position
            sum_t, sum_x, sum_tt, sum_tx = sum_t + t, sum_x + z, sum_tt + t * t, sum_tx + t * z
            n = count + 1
            slope = (n * sum_tx - sum_t * sum_x) / (n * sum_tt - sum_t * sum_t)
            middle = position + (sum_x - slope * sum_t) / n
            if count > 1 and not _fits(s, i, count, slope, time, middle):
                break
            s.velocity[i] = slope


# --- times of encoder count changes -----------------------------------------------------------------------------------
#
# Velocity from the times at which the encoder counts.
#
# For each coordinate, a change of the position means that the handle has just crossed an edge, half a count before the
# new position. Between two edges the velocity is their distance divided by the time. Until the next edge, the velocity
# is bounded by the value at which the edge would be reached now, and decays as ``q / t``. A count back and forth
# crosses the same edge twice, and the velocity is then zero without any threshold. Positions need not be on a grid. A
# step of less than half a count is not a crossing.

CROSSING_FIELDS: list[tuple[Any, ...]] = [*fields("<f8", "counted edge edge_time edge_velocity", 2)]
"""Per coordinate: position at the last change, edge crossed then, its time, resulting velocity."""


@merged_kernel
def begin_crossing(s: Any, x: float, y: float) -> None:
    """Initialise at (x, y) [m], in the middle of a count."""
    s.counted[0], s.counted[1] = s.edge[0], s.edge[1] = x, y
    s.edge_time[0] = s.edge_time[1] = s.time
    s.edge_velocity[0] = s.edge_velocity[1] = 0.0


@merged_kernel
def crossing(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m]."""
    q, time = s.resolution, s.time
    for i in range(2):
        step = (x if i == 0 else y) - s.counted[i]
        if abs(step) >= 0.5 * q:
            s.counted[i] += step
            edge = s.counted[i] - math.copysign(0.5 * q, step)
            s.edge_velocity[i] = (edge - s.edge[i]) / (time - s.edge_time[i])
            s.edge[i], s.edge_time[i] = edge, time
            s.velocity[i] = s.edge_velocity[i]
        else:
            fastest = q / (time - s.edge_time[i])
            s.velocity[i] = min(max(s.edge_velocity[i], -fastest), fastest)


# --- tracker ----------------------------------------------------------------------------------------------------------
#
# Increments of a tracked position: low noise, without drift from the encoder.
#
# A sample :math:`z` of an encoder of resolution :math:`q`, ``T`` after the last one, is processed in three steps.
#
# *Tracking.* The prediction :math:`p = \hat x + T \hat v` has the residual :math:`r = z - p`. With a fading
# :math:`\theta = e^{-T/\tau}` the estimates become :math:`\hat x = p + (1 - \theta^2) r` and :math:`\hat v \leftarrow
# \hat v + (1 - \theta)^2 r / T`: the end and the slope of the least-squares line whose squared errors have weights that
# decrease by the factor :math:`\theta` per sample (fading memory of first degree, Morrison 1969). The memory
# :math:`\tau` is short at rest. In travel it is longer by the time in which the hand could stop, but reaches back over
# at most `_LONGEST_REACH` counts: over 40 counts a circle of 800 counts radius deviates from its tangent by one. A
# handle that oscillates about a place does not travel: the speed of the rest position counts, see below. Where the
# tracked position would deviate from the sample by more than `LARGEST_MISS`, :math:`\theta` is reduced to reach exactly
# this deviation.
#
# *Lead.* The output position is half a nominal period ahead, :math:`\hat x + \frac12 T_0 \hat v`, so that its
# increments are the velocity at the present time and not half a period before.
#
# *Rest.* A held handle has one count that flickers, and the coupling turns it into a buzz. Within `REST_ZONE` counts of
# a rest position, motion is attenuated by a small gain; beyond, it has full gain. The rest position follows slowly. A
# static gain has no phase: unlike a low-pass filter or a hysteresis it does not reduce the stability of the coupling.
#
# The velocity is the increment of the output position divided by the time. Its sum differs from the displacement of the
# encoder by at most ``LARGEST_MISS + (1 - gain) REST_ZONE`` counts and half a period of motion, for a run of any
# length: an element that integrates the velocity cannot drift away from the hand. Positions need not be on a grid.

LARGEST_MISS = 1.5
"""Maximum distance of the tracked position from the sample [counts]."""

_LONGEST_REACH = 40.0  # maximum reach of the memory, in addition to the memory at rest [counts]

_LEAD = 0.5  # lead of the output position [nominal periods]

REST_ZONE = 1.75
"""Distance from the rest position within which motion is attenuated [counts]: one count plus a margin."""

REST_RATE = 4.5
"""Rate at which the rest position follows [1/s]; outside its zone it increases with the distance."""

_FASTEST_FOLLOWING = 4.0  # maximum factor on this rate

TRACKER_FIELDS: list[tuple[Any, ...]] = [
    *fields("<f8", "tracked_position tracked_velocity rest_position", 2),
    ("rest_speed", "<f8"),
    ("passed_position", "<f8", (2,)),
]
"""Estimated position and velocity, rest position and its speed, output position."""


@merged_kernel
def begin_tracker(s: Any, x: float, y: float) -> None:
    """Initialise at rest at (x, y) [m]."""
    s.tracked_position[0], s.tracked_position[1] = x, y
    s.tracked_velocity[0] = s.tracked_velocity[1] = s.rest_speed = 0.0
    for i in range(2):
        s.rest_position[i] = s.passed_position[i] = s.tracked_position[i]


@merged_kernel
def tracker(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m]."""
    elapsed = s.elapsed
    speed = min(math.hypot(s.tracked_velocity[0], s.tracked_velocity[1]), s.rest_speed)
    reach, a = _LONGEST_REACH * s.resolution, s.acceleration
    memory = s.memory + (reach / speed if speed * speed > a * reach else speed / a)
    fading = math.exp(-elapsed / memory)
    for i in range(2):
        s.tracked_position[i] += elapsed * s.tracked_velocity[i]
    miss_x, miss_y = x - s.tracked_position[0], y - s.tracked_position[1]
    miss, allowed = math.hypot(miss_x, miss_y), LARGEST_MISS * s.resolution
    if fading * fading * miss > allowed:
        fading = math.sqrt(allowed / miss)
    gain, velocity_gain = 1.0 - fading * fading, (1.0 - fading) ** 2 / elapsed
    s.tracked_position[0] += gain * miss_x
    s.tracked_position[1] += gain * miss_y
    s.tracked_velocity[0] += velocity_gain * miss_x
    s.tracked_velocity[1] += velocity_gain * miss_y
    lead, zone = _LEAD * s.period, REST_ZONE * s.resolution
    away_x = s.tracked_position[0] + lead * s.tracked_velocity[0] - s.rest_position[0]
    away_y = s.tracked_position[1] + lead * s.tracked_velocity[1] - s.rest_position[1]
    away = math.hypot(away_x, away_y)
    gain, rate = s.rest_gain, REST_RATE
    if away > zone:
        gain = 1.0 - (1.0 - gain) * zone / away
        rate *= _FASTEST_FOLLOWING if away > _FASTEST_FOLLOWING * zone else away / zone
    s.rest_speed, following = rate * away, 1.0 - math.exp(-rate * elapsed)
    for i in range(2):
        away_i = away_x if i == 0 else away_y
        passed = s.rest_position[i] + gain * away_i
        s.rest_position[i] += following * away_i
        s.velocity[i] = (passed - s.passed_position[i]) / elapsed
        s.passed_position[i] = passed


# --- Kalman filter ----------------------------------------------------------------------------------------------------
#
# Kalman filter of position and velocity under a random acceleration, with time-varying gain.
#
# The measurement has the variance of rounding to a count, q^2/12. The acceleration is white with the intensity ``a^2
# tau``: of size ``a`` for a time ``tau`` (`VelocitySettings`). Both coordinates share one covariance, which does not
# depend on the measurements. The velocity is a separate estimate, not the increment of the estimated position.

_UNKNOWN = 1.0  # initial standard deviation of the velocity [m/s]

KALMAN_FIELDS: list[tuple[Any, ...]] = [("covariance", "<f8", (2, 2))]
"""Covariance of position and velocity; the estimates are in the fields of the tracker."""


@merged_kernel
def begin_kalman(s: Any, x: float, y: float) -> None:
    """Initialise with a position uncertainty of one count and an unknown velocity."""
    begin_tracker(s, x, y)
    s.covariance[0, 0], s.covariance[1, 1] = s.resolution**2 / 12.0, _UNKNOWN**2
    s.covariance[0, 1] = s.covariance[1, 0] = 0.0


@merged_kernel
def kalman(s: Any, x: float, y: float) -> None:
    """Predict to the present time, correct with the position (x, y) [m], and update ``s.velocity``."""
    P, T = s.covariance, s.elapsed
    S = s.acceleration**2 * s.memory
    P[0, 0] += 2.0 * T * P[0, 1] + T * T * P[1, 1] + S * T**3 / 3.0
    P[0, 1] += T * P[1, 1] + S * T * T / 2.0
    P[1, 1] += S * T
    total = P[0, 0] + s.resolution**2 / 12.0
    gain, velocity_gain = P[0, 0] / total, P[0, 1] / total
    for i in range(2):
        miss = (x if i == 0 else y) - s.tracked_position[i] - T * s.tracked_velocity[i]
        s.tracked_position[i] += T * s.tracked_velocity[i] + gain * miss
        s.tracked_velocity[i] += velocity_gain * miss
        s.velocity[i] = s.tracked_velocity[i]
    P[1, 1] -= velocity_gain * P[0, 1]
    P[0, 1] *= 1.0 - gain
    P[0, 0] *= 1.0 - gain
    P[1, 0] = P[0, 1]


# --- interface --------------------------------------------------------------------------------------------------------

VELOCITY = np.dtype(
    [
        *fields("<i8", "kind step"),
        *fields("<f8", "resolution period memory acceleration rest_gain"),
        ("samples", "<i8"),
        *fields("<f8", "time elapsed"),
        *HISTORY_FIELDS,
        *TRACKER_FIELDS,
        *KALMAN_FIELDS,
        *CROSSING_FIELDS,
        ("velocity", "<f8", (2,)),
    ]
)
"""Record of an estimator, as a field of a device record.

It contains the kind and the address of the part, the parameters, the number of samples, the time of the newest sample
and since the one before [s], the state, and the result [m/s].
"""

# Kernels ``(record, x, y)`` of each estimator, for the first sample and for later samples.
_STEPS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "difference": (remember, difference),
    "end-fit": (remember, end_fit),
    "best-fit": (remember, best_fit),
    "kalman": (begin_kalman, kalman),
    "level-crossing": (begin_crossing, crossing),
    "tracker": (begin_tracker, tracker),
}


@functools.cache
def _part(name: str) -> Callable[..., None]:
    begin, estimate = _STEPS[name]

    @kernel
    def step(s: Any, x: float, y: float) -> None:
        if s.samples == 0:
            s.velocity[0], s.velocity[1] = 0.0, 0.0
            begin(s, x, y)
        else:
            estimate(s, x, y)

    return step


@merged_kernel
def update_velocity(s: Any, time: float, x: float, y: float) -> None:
    """Update ``s.velocity`` [m/s] with the sample (x, y) [m] at `time` [s]; `s` has dtype `VELOCITY`.

    Samples are ignored if they are not finite or their time does not increase. The velocity is nan if the record was
    not prepared.
    """
    if s.step == 0:
        s.velocity[0] = s.velocity[1] = math.nan
        return
    if not math.isfinite(time + x + y) or (s.samples > 0 and time <= s.time):
        return
    s.elapsed = time - s.time
    s.time = time
    call_part(s.step, s, x, y)
    s.samples += 1


@kernel
def _update(record: Any, time: float, x: float, y: float) -> None:
    update_velocity(record[0], time, x, y)


def fill_velocity(record: NDArray[Any], settings: VelocitySettings, resolution: float, period: float) -> None:
    """Write an estimator to a record; call `prepare_velocity` before `update_velocity`.

    Parameters
    ----------
    record : (1,) structured array
        Record of dtype `VELOCITY`; its state is reset.
    settings : VelocitySettings
        Estimator and its parameters.
    resolution : float
        Smallest step of the positions [m]; 0 if they are exact.
    period : float
        Nominal time between two samples [s].

    Raises
    ------
    ConfigurationError
        If the estimator requires a resolution greater than 0.
    """
    name = settings.velocity_estimator
    if name == "level-crossing" and not resolution > 0.0:
        raise ConfigurationError(
            f"velocity_estimator = {name!r}: needs an encoder, that is a resolution greater than 0 m."
        )
    record["kind"] = ESTIMATORS.index(name)
    record["resolution"], record["period"] = resolution, period
    for field in ("window", "memory", "acceleration", "rest_gain"):
        record[field] = getattr(settings, f"velocity_{field}")
    record["samples"], record["velocity"] = 0, 0.0


def prepare_velocity(record: NDArray[Any]) -> None:
    """Compile the estimator selected by `fill_velocity`, and store its address in the record."""
    record["step"] = address_of_part(_part(ESTIMATORS[int(record["kind"][0])]), VELOCITY)


class VelocityEstimator:
    """Velocity estimator for drivers written in Python.

    Parameters
    ----------
    resolution : float
        Smallest step of the positions [m]; 0 if they are exact.
    period : float
        Nominal time between two samples [s].
    settings : VelocitySettings, optional
        Estimator and its parameters.

    Attributes
    ----------
    velocity : (2,) float array
        Newest velocity [m/s]; zero before the second sample. The array is reused.

    Raises
    ------
    ConfigurationError
        If the estimator requires a resolution greater than 0.
    """

    def __init__(self, resolution: float, period: float, settings: VelocitySettings | None = None) -> None:
        self._record = np.zeros(1, VELOCITY)
        fill_velocity(self._record, settings or VelocitySettings(), resolution, period)
        self.velocity: Vector = self._record["velocity"][0]

    def reset(self) -> None:
        """Clear the sample buffer."""
        self._record["samples"] = 0
        self.velocity[:] = 0.0

    def update(self, time: float, x: float, y: float) -> Vector:
        """Update the estimate with a position (x, y) [m] at `time` [s] and return the velocity, (2,) [m/s]."""
        if not self._record["step"][0]:
            prepare_velocity(self._record)
        _update(self._record, time, x, y)
        return self.velocity
