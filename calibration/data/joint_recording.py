"""A recording of one joint: what was measured, and the derived signals that friction models are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.data.saturation import Saturation, find_saturation
from calibration.data.signals import smooth
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

LEAST = 100
"""Samples that are needed to choose terms."""
UNNAMED = "joint"
"""What a joint is called that has no name in its file."""
CUTOFF = 20.0
"""Where half of the velocity's amplitude is taken for ripple and half for the motion [Hz]."""
_SIGNALS = (
    *("time", "velocity", "effort", "position", "acceleration", "load", "published"),
    *("drive", "instrument", "reference"),
)
_AT_REST, _START = 0.02, 0.1
"""At rest is slower than this share of the highest speed; the start is so long [s]."""
_BOTH_WAYS = 0.02
"""Share of the samples that has to move in a direction."""
_GLIDE = 1e-3
_GAP = 10.0
"""Longest time between samples over which a velocity is integrated, in median times between samples."""
_MOVED_OFF, _NOT_YET = 0.3, 0.1
"""Shares of a distance: by then the direction of the motion is clear; before that the joint still stood."""


@dataclass(frozen=True, eq=False)
class JointRecording:
    """A recording of one joint, or slide, in SI units.

    Attributes
    ----------
    joint : str
        Its name.
    rotary : bool
        Whether it turns (rad, N m) or slides (m, N).
    time : (n,) float array
        When the samples were taken, increasing [s].
    velocity : (n,) float array
        As measured [rad/s] or [m/s].
    effort : (n,) float array
        Torque [N m] or force [N] that the joint gives: minus the friction F where nothing drives it and it carries no
        load (Guedelha et al. 2018, (19)).
    source : Source
        Where it comes from.
    acceleration, position : (n,) float array or None
        As far as they were measured, or commanded.
    load : (n,) float array or None
        The part of minus the effort that is known not to be friction: inertia, gravity and the like. None: nothing.
    published : (n,) float array or None
        The friction that others have identified, at this velocity, to compare with.
    drive : (n,) float array or None
        Command to the motor.
    drive_unit : str
        Its unit: ``percent``, ``count``, ``duty``, ``a`` or ``v``.
    instrument : (n,) float array or None
        The acceleration without noise to speak of (`calibration.data.signals.Motion`).
    velocity_noise : float or None
        Standard deviation of the error of the velocity, where it is known [rad/s] or [m/s].
    reference : (n,) float array or None
        The position that a controller was to keep, where the motion was commanded.
    cutoff : float or None
        Of the filter that the effort went through, where it did [Hz].

    Raises
    ------
    ConfigurationError
        Where lengths differ, a number is not finite or times do not increase.
    """

    joint: str
    rotary: bool
    time: Array
    velocity: Array
    effort: Array
    source: Source
    acceleration: Array | None = None
    position: Array | None = None
    load: Array | None = None
    published: Array | None = None
    drive: Array | None = None
    drive_unit: str = ""
    instrument: Array | None = None
    velocity_noise: float | None = None
    reference: Array | None = None
    cutoff: float | None = None

    def __post_init__(self) -> None:
        for name in _SIGNALS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), float))
                self._check(name)
        if not bool(np.all(np.diff(self.time) > 0.0)):
            raise self.error("the times of a recording must increase")

    def _check(self, name: str) -> None:
        values = getattr(self, name)
        if values.ndim != 1 or values.shape != np.shape(self.time):
            raise self.error(f"{name} has the shape {values.shape}; must be that of time {np.shape(self.time)}")
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise self.error(f"{name} is not a finite number in sample {bad[0]} (and {len(bad) - 1} others)")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """From the first sample to the last [s]."""
        return float(self.time[-1] - self.time[0])

    @property
    def where(self) -> str:
        """The file and the joint, for messages."""
        return self.source.path if self.joint == UNNAMED else f"{self.source.path}, joint {self.joint}"

    def error(self, message: str) -> ConfigurationError:
        """Return the error that says what is wrong with it."""
        return ConfigurationError(f"{self.where}: {message}.")

    def part(self, first: float, last: float) -> JointRecording:
        """Return the samples between two shares of its length, 0 to 1."""
        cut = slice(*(round(share * len(self)) for share in (first, last)))
        return replace(self, **{name: getattr(self, name)[cut] for name in _SIGNALS if getattr(self, name) is not None})

    def require_terms(self) -> None:
        """Raise a `ConfigurationError` where terms of friction cannot be told apart.

        There are too few samples, the velocity never changes, or nothing was measured that errors could be relative to.
        """
        if len(self) < LEAST:
            raise self.error(f"{len(self)} samples are too few to choose terms; must be at least {LEAST}")
        if not np.ptp(self.velocity) > 0.0:
            raise self.error("the velocity never changes; friction cannot be told from an offset")
        if not self.effort.any():
            raise self.error("the torque or force is 0 in every sample: there is nothing to explain")

    @cached_property
    def friction(self) -> Array:
        """What opposed the motion, with the direction of the velocity: minus the effort, without the load."""
        return -self.effort if self.load is None else -self.effort - self.load

    @cached_property
    def saturation(self) -> Saturation | None:
        """The limits of the sensor that the effort reached, if any."""
        return find_saturation(self.effort)

    @property
    def _ripple_cutoff(self) -> float:
        """The cut-off between motion and ripple, below half the sampling rate [Hz]."""
        return min(CUTOFF, 0.4 / float(np.median(np.diff(self.time))))

    @cached_property
    def smooth_velocity(self) -> Array:
        """The motion without ripple."""
        return smooth(self.time, self.velocity, self._ripple_cutoff)

    @cached_property
    def ripple(self) -> Array:
        """What the velocity has above the cut-off."""
        return self.velocity - self.smooth_velocity

    @cached_property
    def path(self) -> Array:
        """The position, smoothed, from 0 on."""
        if self.position is not None:
            place = smooth(self.time, self.position, self._ripple_cutoff)
            return np.asarray(place - place[0])
        speed = self.smooth_velocity
        return np.concatenate(([0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(self.time))))

    @property
    def displacement(self) -> Array | None:
        """The position as measured, or the integral of the velocity; None where that has gaps."""
        if self.position is not None:
            return self.position
        steps = np.diff(self.time)
        if float(steps.max()) > _GAP * float(np.median(steps)):
            return None
        return np.concatenate(([0.0], np.cumsum(0.5 * (self.velocity[1:] + self.velocity[:-1]) * steps)))

    @cached_property
    def travel(self) -> Array:
        """How far it has gone, there and back, since the first sample."""
        return np.concatenate(([0.0], np.cumsum(np.abs(np.diff(self.path)))))

    @cached_property
    def known_acceleration(self) -> Array:
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
        gone = np.abs(self.path) > _MOVED_OFF * distance
        began = int(np.argmax(gone)) if gone.any() else len(self) - 1
        before = self.travel < _NOT_YET * distance
        return np.where(before, np.sign(self.path[began]), self.direction())
