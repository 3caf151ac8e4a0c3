r"""The increments of a tracked position: quiet, and yet what they add up to never leaves the encoder.

Three things happen to a sample :math:`z` of an encoder of resolution :math:`q`, ``T`` after the last one.

*Tracking.* The prediction :math:`p = \hat x + T \hat v` misses it by :math:`r = z - p`. With a fading
:math:`\theta = e^{-T/\tau}` the estimates become :math:`\hat x = p + (1 - \theta^2) r` and
:math:`\hat v \leftarrow \hat v + (1 - \theta)^2 r / T`: the end and the slope of the line that fits all samples best
when their squared errors count :math:`\theta` times less with each sample (fading memory of first degree, Morrison
1969). The memory :math:`\tau` is short at rest. In travel it is longer by the time in which the hand could stop, but
reaches back over `LONGEST_REACH` counts at most: over 40 counts a circle of 800 counts radius leaves its tangent by
one. A handle that swings about a place does not travel: the speed of the place of rest counts, see below. Where the
tracked position would miss the sample by more than `LARGEST_MISS`, :math:`\theta` is reduced just so that it does not.

*Lead.* The position passed on is half a nominal period ahead, :math:`\hat x + \frac12 T_0 \hat v`, so that its
increments are the velocity now and not half a period ago.

*Rest.* A handle that is held has one count that goes forth and back, and the coupling makes a buzz of it. About a place
of rest, up to `REST_ZONE` counts away from it, motion is passed on at a small gain; beyond, in full. The place follows
slowly. A static gain has no phase: unlike a low-pass or a hysteresis it costs the coupling no stability.

The velocity is the increment of the position so passed on, over the time. Its sum differs from the displacement of the
encoder by at most ``LARGEST_MISS + (1 - gain) REST_ZONE`` counts and half a period of motion, however long it runs: an
element that integrates the velocity cannot drift away from the hand. No grid of positions is assumed.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import merged_kernel

LARGEST_MISS = 1.5
"""How far the tracked position may be from the sample [counts]."""

LONGEST_REACH = 40.0
"""How far the memory reaches back at most, besides the one at rest [counts]."""

LEAD = 0.5
"""How far ahead the position is passed on [nominal periods]."""

REST_ZONE = 1.75
"""How far from the place of rest motion is passed on at a small gain [counts]: a count, and some to spare."""

REST_RATE = 4.5
"""Rate at which the place of rest follows [1/s]; outside its zone as much faster as the handle is farther away."""

FASTEST_FOLLOWING = 4.0
"""How much faster at most."""

TRACKER_FIELDS: list[tuple[Any, ...]] = [
    ("tracked_position", "<f8", (2,)),
    ("tracked_velocity", "<f8", (2,)),
    ("rest_position", "<f8", (2,)),
    ("rest_speed", "<f8"),
    ("passed_position", "<f8", (2,)),
]
"""Estimated position and velocity; place of rest and its speed; the position whose increments are the velocity."""


@merged_kernel
def begin_tracker(s: Any, x: float, y: float) -> None:
    """Begin at rest in (x, y) [m]."""
    s.tracked_position[0], s.tracked_position[1] = x, y
    s.tracked_velocity[0] = s.tracked_velocity[1] = s.rest_speed = 0.0
    for i in range(2):
        s.rest_position[i] = s.passed_position[i] = s.tracked_position[i]


@merged_kernel
def _memory(s: Any) -> Any:
    """Return how long the tracker remembers at present [s]."""
    speed = min(math.hypot(s.tracked_velocity[0], s.tracked_velocity[1]), s.rest_speed)
    reach, a = LONGEST_REACH * s.resolution, s.acceleration
    return s.memory + (reach / speed if speed * speed > a * reach else speed / a)


@merged_kernel
def _track(s: Any, elapsed: float, x: float, y: float) -> None:
    """Correct the tracked position and velocity with the sample (x, y) [m], `elapsed` [s] after the last one."""
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
    """Take the position (x, y) [m] and set ``s.velocity``."""
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
