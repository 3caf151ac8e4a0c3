r"""Increments of a tracked position: low noise, without drift from the encoder.

A sample :math:`z` of an encoder of resolution :math:`q`, ``T`` after the last one, is processed in three steps.

*Tracking.* The prediction :math:`p = \hat x + T \hat v` has the residual :math:`r = z - p`. With a fading
:math:`\theta = e^{-T/\tau}` the estimates become :math:`\hat x = p + (1 - \theta^2) r` and
:math:`\hat v \leftarrow \hat v + (1 - \theta)^2 r / T`: the end and the slope of the least-squares line whose squared
errors have weights that decrease by the factor :math:`\theta` per sample (fading memory of first degree, Morrison
1969). The memory :math:`\tau` is short at rest. In travel it is longer by the time in which the hand could stop, but
reaches back over at most `LONGEST_REACH` counts: over 40 counts a circle of 800 counts radius deviates from its tangent
by one. A handle that oscillates about a place does not travel: the speed of the rest position counts, see below. Where
the tracked position would deviate from the sample by more than `LARGEST_MISS`, :math:`\theta` is reduced to reach
exactly this deviation.

*Lead.* The output position is half a nominal period ahead, :math:`\hat x + \frac12 T_0 \hat v`, so that its increments
are the velocity at the present time and not half a period before.

*Rest.* A held handle has one count that flickers, and the coupling turns it into a buzz. Within `REST_ZONE` counts of a
rest position, motion is attenuated by a small gain; beyond, it has full gain. The rest position follows slowly. A
static gain has no phase: unlike a low-pass filter or a hysteresis it does not reduce the stability of the coupling.

The velocity is the increment of the output position divided by the time. Its sum differs from the displacement of the
encoder by at most ``LARGEST_MISS + (1 - gain) REST_ZONE`` counts and half a period of motion, for a run of any length:
an element that integrates the velocity cannot drift away from the hand. Positions need not be on a grid.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import merged_kernel

LARGEST_MISS = 1.5
"""Maximum distance of the tracked position from the sample [counts]."""

LONGEST_REACH = 40.0
"""Maximum reach of the memory, in addition to the memory at rest [counts]."""

LEAD = 0.5
"""Lead of the output position [nominal periods]."""

REST_ZONE = 1.75
"""Distance from the rest position within which motion is attenuated [counts]: one count plus a margin."""

REST_RATE = 4.5
"""Rate at which the rest position follows [1/s]; outside its zone it increases with the distance."""

FASTEST_FOLLOWING = 4.0
"""Maximum factor on this rate."""

TRACKER_FIELDS: list[tuple[Any, ...]] = [
    ("tracked_position", "<f8", (2,)),
    ("tracked_velocity", "<f8", (2,)),
    ("rest_position", "<f8", (2,)),
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
def _memory(s: Any) -> Any:
    """Return the present memory of the tracker [s]."""
    speed = min(math.hypot(s.tracked_velocity[0], s.tracked_velocity[1]), s.rest_speed)
    reach, a = LONGEST_REACH * s.resolution, s.acceleration
    return s.memory + (reach / speed if speed * speed > a * reach else speed / a)


@merged_kernel
def _track(s: Any, elapsed: float, x: float, y: float) -> None:
    """Correct the tracked state with the sample (x, y) [m], `elapsed` [s] after the last one."""
    fading = math.exp(-elapsed / _memory(s))
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


@merged_kernel
def tracker(s: Any, x: float, y: float) -> None:
    """Update ``s.velocity`` with the position (x, y) [m]."""
    elapsed = s.elapsed
    _track(s, elapsed, x, y)
    lead, zone = LEAD * s.period, REST_ZONE * s.resolution
    away_x = s.tracked_position[0] + lead * s.tracked_velocity[0] - s.rest_position[0]
    away_y = s.tracked_position[1] + lead * s.tracked_velocity[1] - s.rest_position[1]
    away = math.hypot(away_x, away_y)
    gain, rate = s.rest_gain, REST_RATE
    if away > zone:
        gain = 1.0 - (1.0 - gain) * zone / away
        rate *= FASTEST_FOLLOWING if away > FASTEST_FOLLOWING * zone else away / zone
    s.rest_speed, following = rate * away, 1.0 - math.exp(-rate * elapsed)
    for i in range(2):
        away_i = away_x if i == 0 else away_y
        passed = s.rest_position[i] + gain * away_i
        s.rest_position[i] += following * away_i
        s.velocity[i] = (passed - s.passed_position[i]) / elapsed
        s.passed_position[i] = passed
