"""Physiological tremor: a few sinusoids between 8 and 12 Hz with random phases and directions."""

from __future__ import annotations

import math
import random
from typing import Any

from numpy.typing import NDArray

WAVES = 5
LOWEST, HIGHEST = 8.0, 12.0

TREMOR_FIELDS: list[tuple[Any, ...]] = [("trembles", "<i8"), ("waves", "<f8", (WAVES, 4))]
"""Of a hand's record: whether it trembles; for each wave its angular frequency [rad/s], its phase [rad] and its force
(x, y) [N]."""


def fill_tremor(record: NDArray[Any], amplitude: float, seed: int) -> None:
    """Write the tremor into a record, (1,), with `TREMOR_FIELDS`.

    Parameters
    ----------
    amplitude : float
        Root mean square of the norm of the force [N].
    seed : int
        Equal seeds tremble equally.
    """
    generator = random.Random(seed)
    size = amplitude * math.sqrt(2.0 / WAVES)
    record["trembles"] = amplitude > 0.0
    record["waves"] = [_wave(generator, size) for _ in range(WAVES)]


def _wave(generator: random.Random, size: float) -> tuple[float, float, float, float]:
    frequency = LOWEST + (HIGHEST - LOWEST) * generator.random()
    phase, direction = (2.0 * math.pi * generator.random() for _ in range(2))
    return 2.0 * math.pi * frequency, phase, size * math.cos(direction), size * math.sin(direction)
