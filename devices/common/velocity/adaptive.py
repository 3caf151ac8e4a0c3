"""First-order adaptive windowing: the longest window that a line fits.

See Janabi-Sharifi, Hayward and Chen 2000.

For each coordinate, the window grows backwards from the newest sample as long as every sample in it is within one count
of the line. It is long in slow motion, where a short window would show the encoder steps, and short where the motion
changes. The velocity is the slope of the line: through the ends of the window (*end-fit*), or by least squares
(*best-fit*). It refers to the middle of the window and therefore lags by half its length.
"""

from __future__ import annotations

from typing import Any

from devices.common.velocity.difference import LENGTH, remember
from devices.common.velocity.settings import LONGEST_FIT
from haptics.jit import kernel, merged_kernel

_ROUNDING = 1e-6
"""Additional tolerance for rounding of positions, as a fraction of a count."""


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
