"""Random numbers for kernels: splitmix64 and the Box-Muller transform.

The state is part of the kernel record. In contrast to numba's global generator, this keeps devices independent of each
other, and a device that is opened again reproduces its sequence exactly.
"""

from __future__ import annotations

import math
from typing import Any

from haptics.jit import kernel

NOISE_FIELDS: list[tuple[Any, ...]] = [("noise_state", "<u8")]
"""Field of a kernel record; any initial value is a valid seed."""

_MASK = 0xFFFFFFFFFFFFFFFF
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


@kernel
def random_bits(s: Any) -> int:
    """Advance the generator and return 64 random bits (splitmix64, Steele et al. 2014)."""
    # The masks have no effect in compiled code. In interpreted code they limit Python's integers to 64 bits.
    z = (int(s.noise_state) + _GAMMA) & _MASK
    s.noise_state = z
    z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
    z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
    return z ^ (z >> 31)


@kernel
def uniform(s: Any) -> float:
    """Return a random number, uniform in [0, 1), with 53 random bits."""
    return float(random_bits(s) >> 11) * 2.0**-53


@kernel
def normal_pair(s: Any) -> tuple[float, float]:
    """Return two independent random numbers of the standard normal distribution (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(s)))  # 1 - u is in (0, 1], so that the logarithm is finite
    angle = 2.0 * math.pi * uniform(s)
    return radius * math.cos(angle), radius * math.sin(angle)
