"""Physiological tremor: a few sinusoids between 8 and 12 Hz with random phases and directions."""

from __future__ import annotations

import math
import random
from typing import Any

from numpy.typing import NDArray

WAVES = 5
LOWEST, HIGHEST = 8.0, 12.0

TREMOR_FIELDS: list[tuple[Any, ...]] = [("trembles", "<i8"), ("waves", "<f8", (WAVES, 4))]
"""Tremor fields of the record of a hand.

``trembles`` enables the tremor. Each row of ``waves`` contains the angular frequency [rad/s], the phase [rad] and the
force (x, y) [N] of a wave.
"""


def fill_tremor(record: NDArray[Any], amplitude: float, seed: int) -> None:
    """Write the tremor to a record, (1,), with `TREMOR_FIELDS`.

    Parameters
    ----------
    amplitude : float
        Root mean square of the norm of the force [N].
    seed : int
        Seed of the random numbers.
    """
    generator = random.Random(seed)
    size = amplitude * math.sqrt(2.0 / WAVES)
    record["trembles"] = amplitude > 0.0
    record["waves"] = [_wave(generator, size) for _ in range(WAVES)]


def _wave(generator: random.Random, size: float) -> tuple[float, float, float, float]:
    frequency = LOWEST + (HIGHEST - LOWEST) * generator.random()
    phase, direction = (2.0 * math.pi * generator.random() for _ in range(2))
    return 2.0 * math.pi * frequency, phase, size * math.cos(direction), size * math.sin(direction)
