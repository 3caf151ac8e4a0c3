"""First-order adaptive windowing (Janabi-Sharifi, Hayward and Chen 2000): the longest window that a line fits.

Per coordinate, the window grows backwards from the latest sample as long as every sample in it lies within one count of
the line. It is long in slow motion, where a short one would show the encoder's steps, and short where the motion
changes. The velocity is the slope of the line: through the ends of the window (*end-fit*), or by least squares
(*best-fit*). It is that of the middle of the window: late by half of it.
"""

from __future__ import annotations

from typing import Any

from devices.common.velocity.difference import LENGTH, remember
from devices.common.velocity.settings import LONGEST_FIT
from haptics.jit import kernel, merged_kernel

_ROUNDING = 1e-6
"""Part of a count by which a sample may miss the line besides: positions are rounded numbers."""


@kernel
def _fits(s: Any, i: int, count: int, slope: float, time: float, position: float) -> bool:
    """Tell whether the latest ``count + 1`` samples lie within a count of the line through (time, position)."""
    margin = (1.0 + _ROUNDING) * s.resolution
    for k in range(count + 1):
        place = (s.samples - k) % LENGTH
        if abs(s.past_positions[place, i] - position - slope * (s.past_times[place] - time)) > margin:
            return False
    return True


@merged_kernel
def end_fit(s: Any, x: float, y: float) -> None:
    """Take the position (x, y) [m] and set ``s.velocity`` by the end-fit variant (their section III-A)."""
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
    """Take the position (x, y) [m] and set ``s.velocity`` by the best-fit variant (their section III-B).

    Times and positions are taken relative to the latest sample, so that the sums lose no digits.
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
