"""Interpretation of the direction in a set-effect report by each family of sticks.

Each function returns the force of magnitude 1 along the device's axes. A direction is where the force comes from,
clockwise, and 0 is away from the user. Along the axes of the HID class, X to the right and Y towards the user, the
force of magnitude M from the direction θ is M (-sin θ, cos θ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Pair = tuple[float, float]

_ENABLE = 0b100
"""Bit of direction enable, above the bits of the axes."""


def openffboard(fields: Mapping[str, int]) -> Pair:
    """Return the force for hundredths of a degree; without direction enable, for a fraction of each axis."""
    first, second = fields["direction"], fields["direction_y"]
    if fields["axes"] & _ENABLE:
        angle = math.radians(first / 100.0)
        return -math.sin(angle), math.cos(angle)
    return (first - 18000) / 18000.0, (second - 18000) / 18000.0


def openffboard_wheel(fields: Mapping[str, int]) -> Pair:
    """Return the force as `openffboard`, with one axis: the second bit is direction enable."""
    angle = math.radians(fields["direction"] / 100.0)
    if fields["axes"] & _ENABLE >> 1:
        return -math.sin(angle), 0.0
    return (fields["axes"] & 1) * (fields["direction"] - 18000) / 18000.0, 0.0


def sidewinder(fields: Mapping[str, int]) -> Pair:
    """Return the force for 8 bits per circle; without direction enable, full force on each enabled axis."""
    if fields["axes"] & _ENABLE:
        angle = 2.0 * math.pi * fields["direction"] / 255.0
        return -math.sin(angle), math.cos(angle)
    return float(fields["axes"] & 1), float(fields["axes"] >> 1 & 1)


def arduino(fields: Mapping[str, int]) -> Pair:
    """Return the force for 8 bits per circle, with inverted sign; enabled axes have separate directions."""
    first, second = (2.0 * math.pi * fields[name] / 255.0 for name in ("direction", "direction_y"))
    return math.sin(first), -math.cos(first if fields["axes"] == _ENABLE else second)
