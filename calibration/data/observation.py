"""One recording of a joint, with the derived signals that terms of a model are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import smooth
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

LEAST = 100
"""Samples that are needed to choose terms."""
CUTOFF = 20.0
"""Where half of the velocity's amplitude is taken for ripple and half for the motion [Hz]."""
_SIGNALS = ("time", "velocity", "friction", "position", "acceleration", "load", "published")
_AT_REST, _START = 0.02, 0.1
"""At rest is slower than this share of the highest speed; the start is so long [s]."""
_BOTH_WAYS = 0.02
"""Share of the samples that has to move in a direction."""
_GLIDE = 1e-3
_MOVED_OFF, _NOT_YET = 0.3, 0.1
"""Shares of a distance: by then the direction of the motion is clear; before that the joint still stood."""


@dataclass(frozen=True, eq=False)
class Observation:
    """One recording of one joint, or slide; everything in SI units.

    Attributes
    ----------
    time : array, (n,)
        Increasing [s].
    velocity : array, (n,)
        Of the joint [rad/s] or slide [m/s], as measured: what ripple it has is used.
    friction : array, (n,)
        What is to be explained [N m or N], with the direction of the velocity: the measured torque of the motor without
        the `load`, or minus the torque that the joint gives where nothing drives it.
    position : array, (n,), optional
        By default the integral of the smoothed velocity.
    acceleration : array, (n,), optional
        By default the derivative of the smoothed velocity.
    load : array, (n,), optional
        What was taken off the measured torque to get `friction`: inertia, gravity and the like. By default nothing.
    published : array, (n,), optional
        The friction [N m or N] that others have identified, at this velocity, to compare with.
    rotary : bool
        Whether the joint turns.
    cutoff : float
        Of the zero-phase filter that separates motion from ripple [Hz].

    Raises
    ------
    ConfigurationError
        Where lengths differ, a number is not finite, times do not increase, there are too few samples or no motion.
    """

    time: Array
    velocity: Array
    friction: Array
    position: Array | None = None
    acceleration: Array | None = None
    load: Array | None = None
    published: Array | None = None
    rotary: bool = True
    cutoff: float = CUTOFF

    def __post_init__(self) -> None:
        for name in _SIGNALS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), float))
                self._check(name)
        if len(self.time) < LEAST:
            raise ConfigurationError(f"{len(self.time)} samples are too few to choose terms; must be at least {LEAST}")
        if not bool(np.all(np.diff(self.time) > 0.0)):
            raise ConfigurationError("the times of an observation must increase")
        if not np.ptp(self.velocity) > 0.0:
            raise ConfigurationError("the velocity never changes; friction cannot be told from an offset")
        if not self.cutoff > 0.0:
            raise ConfigurationError(f"cut-off {self.cutoff:g} Hz; must be above 0")

    def _check(self, name: str) -> None:
        values = getattr(self, name)
        if values.ndim != 1 or values.shape != np.shape(self.time):
            raise ConfigurationError(f"{name} has the shape {values.shape}; must be that of time {np.shape(self.time)}")
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ConfigurationError(f"{name} is not a finite number in sample {bad[0]} (and {len(bad) - 1} others)")

    def __len__(self) -> int:
        return len(self.time)

    def part(self, first: float, last: float) -> Observation:
        """Return the samples between two shares of its length, 0 to 1."""
        cut = slice(*(round(share * len(self)) for share in (first, last)))
        parts = {name: getattr(self, name)[cut] for name in _SIGNALS if getattr(self, name) is not None}
        return Observation(**parts, rotary=self.rotary, cutoff=self.cutoff)

    @property
    def _cutoff(self) -> float:
        """The cut-off, but below half the sampling rate."""
        return min(self.cutoff, 0.4 / float(np.median(np.diff(self.time))))

    @property
    def measured(self) -> Array:
        """The torque or force that was measured, load and all."""
        return self.friction if self.load is None else self.friction + self.load

    def require_torque(self) -> None:
        """Raise a `ConfigurationError` where nothing was measured that errors could be relative to."""
        if not self.measured.any():
            raise ConfigurationError("the torque or force is 0 in every sample: there is nothing to explain")

    @cached_property
    def smooth_velocity(self) -> Array:
        """The motion without ripple."""
        return smooth(self.time, self.velocity, self._cutoff)

    @cached_property
    def ripple(self) -> Array:
        """What the velocity has above the cut-off."""
        return self.velocity - self.smooth_velocity

    @cached_property
    def way(self) -> Array:
        """The position, smoothed, from 0 on."""
        if self.position is not None:
            place = smooth(self.time, self.position, self._cutoff)
            return np.asarray(place - place[0])
        speed = self.smooth_velocity
        return np.concatenate(([0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(self.time))))

    @cached_property
    def travel(self) -> Array:
        """How far it has gone, there and back, since the first sample."""
        return np.concatenate(([0.0], np.cumsum(np.abs(np.diff(self.way)))))

    @cached_property
    def rise(self) -> Array:
        """The acceleration, measured or derived."""
        return np.gradient(self.smooth_velocity, self.time) if self.acceleration is None else self.acceleration

    @property
    def top_speed(self) -> float:
        """The highest speed."""
        return float(np.abs(self.smooth_velocity).max())

    @property
    def both_ways(self) -> bool:
        """Whether it moves forward and backward: in one direction friction cannot be told from an offset."""
        slow = _AT_REST * self.top_speed
        return all(float(np.mean(sign * self.smooth_velocity > slow)) > _BOTH_WAYS for sign in (1.0, -1.0))

    @cached_property
    def starts_at_rest(self) -> bool:
        """Whether it stood when the recording began."""
        first = self.time <= self.time[0] + _START
        return bool(np.abs(self.smooth_velocity[first]).max() < _AT_REST * self.top_speed)

    def direction(self, width: float | None = None) -> Array:
        """Return the sign of the velocity, with a smooth change over a width of velocity."""
        return np.tanh(self.smooth_velocity / (_GLIDE * self.top_speed if width is None else width))

    def direction_from_rest(self, distance: float) -> Array:
        """Return the direction, where it still stood that of the motion to come."""
        gone = np.abs(self.way) > _MOVED_OFF * distance
        began = int(np.argmax(gone)) if gone.any() else len(self) - 1
        before = self.travel < _NOT_YET * distance
        return np.where(before, np.sign(self.way[began]), self.direction())
