r"""How a released contact rings: the rate at which its swing grows or dies out, from what was seen of it.

The swing is demodulated at its own frequency, window by window. Dry friction takes the same from every period,
:math:`4 c / (m w^2)`, whatever the swing; what is left is the rate of the linear loop, which large swings have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW_COUNTS = 2.0
"""A swing of fewer counts of the encoder than this tells nothing."""

_PERIODS, _SHORTEST = 2.0, 8
"""Length of a window in periods of the swing, and in ticks at least."""

_NYQUIST = 0.1
"""A swing that is nearer to the Nyquist frequency is taken to be there [rad per tick]."""


@dataclass(frozen=True)
class Ring:
    """What was seen.

    Attributes
    ----------
    rate : float
        At which the swing grows [1/s]; less than 0 where it dies out, nan where too little of it was seen.
    frequency : float
        Of the swing [rad/s].
    windows : int
        From so many windows.
    """

    rate: float
    frequency: float
    windows: int


def ring_of(displacement: Array, period: float, frequency: float, loss: float, step: float) -> Ring:
    """Return the rate of a swing.

    Parameters
    ----------
    displacement : (n,) float array
        At each tick after the release [m].
    period : float
        Time between two ticks [s].
    frequency : float
        What is expected [rad/s].
    loss : float
        What dry friction takes from the amplitude, times the square of the frequency [m/s^2 per period], 4 c/m.
    step : float
        Of the encoder [m].
    """
    if len(displacement) < 2 * _SHORTEST:
        return Ring(math.nan, frequency, 0)
    w = _frequency(displacement, period, frequency)
    apart = min(w * period, max(math.pi - w * period, _NYQUIST))  # from its image about the Nyquist frequency, too
    length = max(math.ceil(_PERIODS * 2.0 * math.pi / apart), _SHORTEST)
    hop = max(length // 2, 1)
    if len(displacement) < 2 * length:
        return Ring(math.nan, w, 0)
    shape = np.hanning(length + 2)[1:-1]
    wave = shape * np.exp(-1j * w * period * np.arange(length)) * 2.0 / shape.sum()
    starts = np.arange(0, len(displacement) - length + 1, hop)
    swing = np.abs([np.sum(wave * displacement[at : at + length]) for at in starts])
    good = _leading(swing > FEW_COUNTS * max(step, 1e-9))
    if good < 3:
        return Ring(math.nan, w, good)
    swing = swing[:good]
    taken = loss / w**2 * hop * period * w / (2.0 * math.pi)
    before, after = swing[:-1], swing[1:] + taken
    ratio = float(before @ after) / float(before @ before)
    return Ring(math.log(max(ratio, 1e-9)) / (hop * period), w, good)


def _frequency(displacement: Array, period: float, expected: float) -> float:
    """Return the frequency of the largest swing within a factor of 2 of what is expected [rad/s]."""
    size = 8 * max(len(displacement), 16)
    early = displacement[: max(len(displacement) // 2, 16)]
    spectrum = np.abs(np.fft.rfft((early - early.mean()) * np.hanning(len(early)), size))
    frequencies = 2.0 * np.pi * np.fft.rfftfreq(size, period)
    near = (frequencies > 0.5 * expected) & (frequencies < min(2.0 * expected, math.pi / period * 1.0001))
    if not near.any():
        return expected
    return float(frequencies[near][np.argmax(spectrum[near])])


def _leading(good: NDArray[np.bool_]) -> int:
    """Return how many of the first are good."""
    bad = np.flatnonzero(~good)
    return int(bad[0]) if len(bad) else len(good)
