r"""Growth or decay rate of the oscillation of a released contact, estimated from its displacement.

The oscillation is demodulated at its frequency in consecutive windows. Dry friction reduces the amplitude by
:math:`4 c / (m w^2)` per period, independent of the amplitude; the remaining change is the rate of the linear loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW_COUNTS = 2.0
"""Minimum amplitude of a usable oscillation, in encoder counts."""

_PERIODS, _SHORTEST = 2.0, 8
"""Length of a window in periods of the oscillation, and its minimum in ticks."""

_NYQUIST = 0.1
"""Minimum distance of the oscillation from the Nyquist frequency [rad per tick]."""


@dataclass(frozen=True)
class Ring:
    """Observed oscillation.

    Attributes
    ----------
    rate : float
        Growth rate [1/s]; negative for decay, nan if too little was observed.
    frequency : float
        Frequency of the oscillation [rad/s].
    windows : int
        Number of windows used.
    """

    rate: float
    frequency: float
    windows: int


def ring_of(displacement: Array, period: float, frequency: float, loss: float, step: float) -> Ring:
    """Return the growth rate of an oscillation.

    Parameters
    ----------
    displacement : (n,) float array
        Displacement at each tick after the release [m].
    period : float
        Time between two ticks [s].
    frequency : float
        Expected frequency [rad/s].
    loss : float
        Amplitude loss by dry friction times the square of the frequency, 4 c/m [m/s^2 per period].
    step : float
        Step of the encoder [m].
    """
    if len(displacement) < 2 * _SHORTEST:
        return Ring(math.nan, frequency, 0)
    w = _frequency(displacement, period, frequency)
    apart = min(w * period, max(math.pi - w * period, _NYQUIST))  # also from the image about Nyquist
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
    """Return the frequency of the largest spectral line within a factor of 2 of the expected one [rad/s]."""
    size = 8 * max(len(displacement), 16)
    early = displacement[: max(len(displacement) // 2, 16)]
    spectrum = np.abs(np.fft.rfft((early - early.mean()) * np.hanning(len(early)), size))
    frequencies = 2.0 * np.pi * np.fft.rfftfreq(size, period)
    near = (frequencies > 0.5 * expected) & (frequencies < min(2.0 * expected, math.pi / period * 1.0001))
    if not near.any():
        return expected
    return float(frequencies[near][np.argmax(spectrum[near])])


def _leading(good: NDArray[np.bool_]) -> int:
    """Return the number of leading True values."""
    bad = np.flatnonzero(~good)
    return int(bad[0]) if len(bad) else len(good)
