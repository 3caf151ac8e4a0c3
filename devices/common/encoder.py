"""Quantisation of a position, an angle or a force."""

from __future__ import annotations

import math

from haptics.jit import inlined_kernel


@inlined_kernel
def quantise(x: float, resolution: float) -> float:
    """Round to the nearest multiple of `resolution`; 0 leaves `x` unchanged."""
    return math.floor(x / resolution + 0.5) * resolution if resolution > 0.0 else x
