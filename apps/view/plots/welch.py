"""Spectrum of a vector signal by Welch's method (Welch 1967). No Qt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apps.view.history import Floats

SEGMENT = 1.0
"""Maximum length of a segment [s]."""


@dataclass(frozen=True)
class Spectrum:
    """One-sided power spectral density, summed over both components of a vector.

    Attributes
    ----------
    frequency : (m,) float array
        From 0 to half the rate [Hz].
    density : (m,) float array
        Power spectral density, in the squared unit of the signal per hertz. Its integral is the variance.
    seconds : float
        Length of a segment [s].
    segments : int
        Number of segments averaged.
    """

    frequency: Floats
    density: Floats
    seconds: float
    segments: int

    @property
    def resolution(self) -> float:
        """Frequency resolution [Hz]: the noise bandwidth of the Hann window, 1.5 bins."""
        return 1.5 / self.seconds

    @property
    def method(self) -> str:
        """Description of the method."""
        return (
            f"Welch: Hann window {self.seconds:.2g} s, {self.segments} segments that overlap by half, "
            f"resolution {self.resolution:.2g} Hz"
        )


def welch(x: Floats, y: Floats, rate: float) -> Spectrum | None:
    """Return the spectrum of the vector (x, y), sampled at `rate` [Hz]; None for fewer than 16 rows.

    Segments of `SEGMENT`, or the whole signal if it is shorter, overlap by half. The mean of each segment is removed.
    """
    size = min(len(x), round(SEGMENT * rate))
    if size < 16:
        return None
    starts = np.arange(0, len(x) - size + 1, max(size // 2, 1))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    density = np.zeros(size // 2 + 1)
    for values in (x, y):
        parts = np.lib.stride_tricks.sliding_window_view(values, size)[starts]
        parts = (parts - parts.mean(axis=1, keepdims=True)) * window
        density += (np.abs(np.fft.rfft(parts, axis=1)) ** 2).mean(axis=0)
    density *= 2.0 / (rate * (window**2).sum())
    density[0] /= 2.0
    if size % 2 == 0:
        density[-1] /= 2.0
    frequency = np.linspace(0.0, rate / 2 if size % 2 == 0 else rate / 2 * (size - 1) / size, len(density))
    return Spectrum(frequency, np.asarray(density, np.float64), size / rate, len(starts))
