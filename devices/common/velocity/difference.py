"""Difference quotient over a window of samples.

Over ``n`` periods of ``T`` an encoder of resolution ``q`` gives velocities in steps of ``q / (n T)`` with a lag of
``n T / 2``. With the backward difference (n = 1) the sum of velocity times period is exactly the displacement of the
encoder, so that quantisation cannot cause drift of an element, but one count is a velocity of ``q / T``.
"""

from __future__ import annotations

from typing import Any

from devices.common.velocity.settings import LONGEST_WINDOW
from haptics.jit import merged_kernel

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
