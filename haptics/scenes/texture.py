"""Textures: spatial modulation of the friction level, by a grating or by noise.

The forces of a law are multiplied by ``1 + amplitude * g`` with a pattern ``g`` between -1 and 1; its other numbers do
not change. A grating is a sine. Noise is a tile of `CELLS` by `CELLS` random values, one per wavelength, with smooth
transitions, repeated over the plane. The same seed gives the same noise on every machine.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.scenes.shapes import Floats, as_points
from haptics.settings import bounded, check, choice, documented

PATTERNS = ("grating", "noise")

CELLS = 32
"""Number of values along each side of a tile of noise."""

_WORD = (1 << 64) - 1


@documented
@dataclass(frozen=True)
class Texture:
    """Spatial modulation of the friction level."""

    pattern: str = choice("grating", PATTERNS, doc="what the modulation looks like")
    amplitude: float = bounded(0.3, minimum=0.0, maximum=0.9, doc="largest change of the level, as a share of it")
    wavelength: float = bounded(
        0.002, minimum=2e-4, maximum=1.0, unit="m", doc="length of a period, or of a cell of noise"
    )
    angle: float = bounded(0.0, minimum=-6.3, maximum=6.3, unit="rad", doc="direction in which a grating changes")
    seed: int = bounded(1, minimum=0, maximum=2**31, doc="seed of noise")

    def __post_init__(self) -> None:
        check(self, "texture")

    @property
    def wave(self) -> tuple[float, float]:
        """Unit vector of the pattern's axis divided by the wavelength [1/m]."""
        return math.cos(self.angle) / self.wavelength, math.sin(self.angle) / self.wavelength

    @property
    def tile(self) -> Floats:
        """Values of the noise, (`CELLS`, `CELLS`), between -1 and 1."""
        return noise_tile(self.seed)

    def pattern_at(self, points: ArrayLike) -> Floats:
        """Return the pattern at points (n, 2) [m]: an (n,) array of numbers between -1 and 1."""
        rows, (kx, ky) = as_points(points), self.wave
        if self.pattern == "grating":
            return np.asarray(np.sin(2.0 * math.pi * (kx * rows[:, 0] + ky * rows[:, 1])))
        x, y = kx * rows[:, 0] + ky * rows[:, 1], kx * rows[:, 1] - ky * rows[:, 0]
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        u, v = _smooth(x - column), _smooth(y - row)
        j, i, tile = column % CELLS, row % CELLS, self.tile
        following_j, following_i = (j + 1) % CELLS, (i + 1) % CELLS
        low = tile[i, j] + u * (tile[i, following_j] - tile[i, j])
        high = tile[following_i, j] + u * (tile[following_i, following_j] - tile[following_i, j])
        return np.asarray(low + v * (high - low))

    def factor_at(self, points: ArrayLike) -> Floats:
        """Return the factor on the forces of the law at points (n, 2) [m]: an (n,) array."""
        return 1.0 + self.amplitude * self.pattern_at(points)


def _smooth(share: Floats) -> Floats:
    return share * share * (3.0 - 2.0 * share)


@functools.lru_cache(maxsize=64)
def noise_tile(seed: int) -> NDArray[np.float64]:
    """Return the values of the noise, (`CELLS`, `CELLS`), row by row from a SplitMix64 generator.

    See Steele et al. 2014.
    """
    values, state = [], seed & _WORD
    for _ in range(CELLS * CELLS):
        state = (state + 0x9E3779B97F4A7C15) & _WORD
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        values.append(((mixed ^ (mixed >> 31)) >> 11) * 2.0**-52 - 1.0)
    tile = np.array(values).reshape(CELLS, CELLS)
    tile.flags.writeable = False
    return tile
