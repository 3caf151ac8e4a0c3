"""Masking noise and tones of the participant's screen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

RATE = 44100
"""Sampling rate [1/s]."""

NOISE_LENGTH = 1 << 19
"""Length of the noise loop [samples], 12 s."""

_LOWEST, _HIGHEST = 40.0, 16000.0
_TONE, _LONG, _EDGE, _PAUSE = 880.0, 0.08, 0.005, 0.08


def pink_noise(length: int, seed: int = 1) -> NDArray[np.float64]:
    """Return pink noise (power 1/f) between 40 Hz and 16 kHz with a peak of 1.

    All components have whole periods, so that the noise can be looped without a click.

    Parameters
    ----------
    length : int
        Number of samples.
    """
    frequency = np.fft.rfftfreq(length, 1 / RATE)
    within = (frequency >= _LOWEST) & (frequency <= _HIGHEST)
    amplitude = np.zeros(len(frequency))
    amplitude[within] = 1 / np.sqrt(frequency[within])
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(frequency))
    noise = np.fft.irfft(amplitude * np.exp(1j * phase), length)
    return np.asarray(noise / np.abs(noise).max())


def tones(count: int) -> NDArray[np.float64]:
    """Return `count` short tones with pauses, with soft edges and a peak of 1."""
    time = np.arange(round(_LONG * RATE)) / RATE
    edge = np.clip(np.minimum(time, _LONG - time) / _EDGE, 0, 1)
    one = np.sin(2 * np.pi * _TONE * time) * edge
    pause = np.zeros(round(_PAUSE * RATE))
    return np.concatenate([part for _ in range(count) for part in (one, pause)])


def samples(wave: NDArray[np.float64], level: float) -> bytes:
    """Return a wave as 16-bit samples with an amplitude relative to full scale."""
    return np.round(32767 * level * wave).astype("<i2").tobytes()


class Sound:
    """Player of the noise and the tones.

    Parameters
    ----------
    noise_level, tone_level : float
        Amplitudes relative to full scale.

    Attributes
    ----------
    obstacle : str
        Reason why no sound is available, empty if it is.
    """

    def __init__(self, noise_level: float, tone_level: float) -> None:
        self._noise_level, self._tone_level = noise_level, tone_level
        self.obstacle = ""
        try:
            import pyglet.media
            from pyglet.media.drivers.silent.adaptation import SilentDriver

            driver = pyglet.media.get_audio_driver()
        except Exception as error:  # pyglet propagates all exceptions of the system's libraries
            self.obstacle = f"no sound can be played here: {error}."
        else:
            if driver is None or isinstance(driver, SilentDriver):
                self.obstacle = "no sound can be played here: pyglet finds no sound device (PulseAudio or OpenAL)."
        self._noise: Any = None
        self._tone: Any = None

    def noise(self, on: bool) -> None:
        """Start or pause the noise."""
        if self.obstacle or not self._noise_level:
            return
        if on and self._noise is None:
            self._noise = _player(samples(pink_noise(NOISE_LENGTH), self._noise_level), endless=True)
        if self._noise is not None:
            (self._noise.play if on else self._noise.pause)()

    def tone(self, count: int = 1) -> None:
        """Play `count` short tones, and stop earlier ones."""
        if self.obstacle or not self._tone_level:
            return
        if self._tone is not None:
            self._tone.delete()
        self._tone = _player(samples(tones(count), self._tone_level), endless=False)
        self._tone.play()

    def close(self) -> None:
        """Stop all sounds."""
        for player in (self._noise, self._tone):
            if player is not None:
                player.delete()


def _player(data: bytes, endless: bool) -> Any:
    """Return a player of a wave, which is looped if `endless`."""
    from pyglet.media import Player
    from pyglet.media.codecs.base import AudioData, AudioFormat, Source

    class Wave(Source):  # type: ignore[misc]
        """Audio source of the wave, played once or looped."""

        def __init__(self) -> None:
            self.audio_format = AudioFormat(channels=1, sample_size=16, sample_rate=RATE)
            self._at = 0

        def is_precise(self) -> bool:
            """Return True: `get_audio_data` returns exactly the requested length."""
            return True

        def get_audio_data(self, num_bytes: float, compensation_time: float = 0.0) -> Any:
            """Return the next part of the wave, or None at the end."""
            part = part_of(data, self._at, int(num_bytes), endless)
            stamp = self._at / (2 * RATE)
            self._at += len(part)
            return AudioData(part, len(part), stamp, len(part) / (2 * RATE), []) if part else None

    player = Player()
    player.queue(Wave())
    return player


def part_of(data: bytes, start: int, size: int, endless: bool) -> bytes:
    """Return `size` bytes from `start` on.

    If `endless`, the data are repeated.
    """
    if not endless:
        return data[start : start + size]
    start %= len(data)
    return (data[start:] + data * (size // len(data) + 1))[:size]
