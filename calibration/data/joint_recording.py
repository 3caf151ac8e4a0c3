"""Recording of one joint: measured signals, and derived signals that friction models are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import integral, smooth
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

LEAST = 100
"""Minimum number of samples for the selection of terms."""
UNNAMED = "joint"
"""Name of a joint without a name in its file."""
CUTOFF = 20.0
"""Cut-off frequency between motion and ripple of the velocity, at half amplitude [Hz]."""
_SIGNALS = tuple("time velocity effort position acceleration load published drive instrument reference".split())
_AT_REST, _START = 0.02, 0.1
"""Maximum speed at rest as a fraction of the top speed; duration of the start [s]."""
_BOTH_WAYS = 0.02
"""Minimum fraction of samples that move in each direction."""
_GLIDE = 1e-3
_GAP = 10.0
"""Maximum time between samples for the integration of a velocity, in median sample intervals."""
_MOVED_OFF, _NOT_YET = 0.3, 0.1
"""Fractions of a distance above which the direction is known, and below which the joint is at rest."""


@dataclass(frozen=True)
class Source:
    """Origin of a measurement.

    Attributes
    ----------
    path : str
        File or folder.
    sha256 : str
        Hash of the file content.
    device : str
        Measured device, if the file states it.
    """

    path: str
    sha256: str
    device: str = ""


@dataclass(frozen=True, eq=False)
class JointRecording:
    """Recording of one rotary or prismatic joint, in SI units.

    Attributes
    ----------
    joint : str
        Name of the joint.
    rotary : bool
        Whether the joint is rotary (rad, N m) or prismatic (m, N).
    time : (n,) float array
        Times of the samples, increasing [s].
    velocity : (n,) float array
        Measured velocity [rad/s] or [m/s].
    effort : (n,) float array
        Torque [N m] or force [N] that the joint exerts: minus the friction F if it is not driven and carries no load
        (Guedelha et al. 2018, (19)).
    source : Source
        Origin of the recording.
    acceleration, position : (n,) float array or None
        Measured or commanded values, None if unknown.
    load : (n,) float array or None
        Known part of minus the effort that is not friction, such as inertia and gravity; None for zero.
    published : (n,) float array or None
        Friction at this velocity as identified by other authors, for comparison.
    drive : (n,) float array or None
        Command to the motor.
    drive_unit : str
        Unit of the drive: ``percent``, ``count``, ``duty``, ``a`` or ``v``.
    instrument : (n,) float array or None
        Acceleration with negligible noise (`calibration.data.signals.Motion`).
    velocity_noise : float or None
        Standard deviation of the velocity error, if known [rad/s] or [m/s].
    reference : (n,) float array or None
        Position reference of the controller, for commanded motion.
    cutoff : float or None
        Cut-off frequency of the filter of the effort, if any [Hz].
    gaps : (n,) bool array or None
        Samples near a gap of the measurement, which are excluded from fits.

    Raises
    ------
    ConfigurationError
        If lengths differ, a number is not finite or times do not increase.
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
    gaps: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.gaps is not None and np.shape(self.gaps) != np.shape(self.time):
            raise self.error(
                f"gaps has the shape {np.shape(self.gaps)}; must be the shape of time {np.shape(self.time)}"
            )
        for name in _SIGNALS:
            if getattr(self, name) is None:
                continue
            values = np.asarray(getattr(self, name), float)
            object.__setattr__(self, name, values)
            if values.ndim != 1 or values.shape != np.shape(self.time):
                raise self.error(
                    f"{name} has the shape {values.shape}; must be the shape of time {np.shape(self.time)}"
                )
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise self.error(f"{name} is not a finite number in sample {bad[0]} (and {len(bad) - 1} others)")
        if not bool(np.all(np.diff(self.time) > 0.0)):
            raise self.error("the times of a recording must increase")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0])

    def error(self, message: str) -> ConfigurationError:
        """Return an error that names the file and the joint."""
        joint = "" if self.joint == UNNAMED else f", joint {self.joint}"
        return ConfigurationError(f"{self.source.path}{joint}: {message}.")

    def part(self, first: float, last: float) -> JointRecording:
        """Return the samples between two fractions of the length, 0 to 1."""
        cut = slice(*(round(share * len(self)) for share in (first, last)))
        names = (*_SIGNALS, "gaps")
        return replace(self, **{name: getattr(self, name)[cut] for name in names if getattr(self, name) is not None})

    def require_terms(self) -> None:
        """Raise `ConfigurationError` if terms of friction are not identifiable.

        This is the case with too few samples, a constant velocity, or zero effort, to which errors could not be
        relative.
        """
        if len(self) < LEAST:
            raise self.error(f"{len(self)} samples are too few to choose terms; must be at least {LEAST}")
        if not np.ptp(self.velocity) > 0.0:
            raise self.error("the velocity never changes; friction cannot be separated from an offset")
        if not self.effort.any():
            raise self.error("the torque or force is 0 in every sample: there is nothing to explain")

    @cached_property
    def friction(self) -> Array:
        """Opposing force or torque, with the sign of the velocity: minus the effort, without the load."""
        return -self.effort if self.load is None else -self.effort - self.load

    @cached_property
    def saturation(self) -> Saturation | None:
        """Limits of the sensor that the effort reached, None if none."""
        return find_saturation(self.effort)

    def _smoothed(self, values: Array) -> Array:
        """Return a signal without ripple: its cut-off frequency is below half the sampling rate."""
        return smooth(self.time, values, min(CUTOFF, 0.4 / float(np.median(np.diff(self.time)))))

    @cached_property
    def smooth_velocity(self) -> Array:
        """Velocity without ripple."""
        return self._smoothed(self.velocity)

    @cached_property
    def ripple(self) -> Array:
        """Velocity component above the cut-off frequency."""
        return self.velocity - self.smooth_velocity

    @cached_property
    def path(self) -> Array:
        """Smoothed position, starting at 0."""
        if self.position is None:
            return integral(self.time, self.smooth_velocity)
        place = self._smoothed(self.position)
        return np.asarray(place - place[0])

    @property
    def displacement(self) -> Array | None:
        """Measured position, or the integral of the velocity; None if the times have gaps."""
        steps = np.diff(self.time)
        if self.position is None and float(steps.max()) > _GAP * float(np.median(steps)):
            return None
        return integral(self.time, self.velocity) if self.position is None else self.position

    @cached_property
    def travel(self) -> Array:
        """Path length since the first sample, including reversals."""
        return np.concatenate(([0.0], np.cumsum(np.abs(np.diff(self.path)))))

    @cached_property
    def known_acceleration(self) -> Array:
        """Measured acceleration, or the derivative of the smoothed velocity."""
        return np.gradient(self.smooth_velocity, self.time) if self.acceleration is None else self.acceleration

    @property
    def top_speed(self) -> float:
        """Maximum speed."""
        return float(np.abs(self.smooth_velocity).max())

    @property
    def both_ways(self) -> bool:
        """Whether the joint moves in both directions; otherwise friction and offset are not separable."""
        slow = _AT_REST * self.top_speed
        return all(float(np.mean(sign * self.smooth_velocity > slow)) > _BOTH_WAYS for sign in (1.0, -1.0))

    @cached_property
    def starts_at_rest(self) -> bool:
        """Whether the joint is at rest at the start of the recording."""
        first = self.time <= self.time[0] + _START
        return bool(np.abs(self.smooth_velocity[first]).max() < _AT_REST * self.top_speed)

    def direction(self, width: float | None = None) -> Array:
        """Return the sign of the velocity, with a smooth transition over a width of velocity."""
        return np.tanh(self.smooth_velocity / (_GLIDE * self.top_speed if width is None else width))

    def direction_from_rest(self, distance: float) -> Array:
        """Return the direction of motion; during the initial rest, the direction of the motion that follows."""
        gone = np.abs(self.path) > _MOVED_OFF * distance
        began = int(np.argmax(gone)) if gone.any() else len(self) - 1
        before = self.travel < _NOT_YET * distance
        return np.where(before, np.sign(self.path[began]), self.direction())


# --- saturation of the sensor -----------------------------------------------------------------------------------------

_SHARE, _RUN = 0.005, 3
"""Minimum fraction of samples at a value, and minimum length of their runs, for a sensor limit."""
_REPEATED = 0.2
"""Maximum rate of repeated values among other samples, relative to the rate at the limit."""
_NEAR = 0.8
"""Fraction of the limit above which values are near it. A clipped signal also takes such values."""


@dataclass(frozen=True)
class Saturation:
    """Sensor limits that were reached.

    Attributes
    ----------
    low, high : float
        Limits [N m or N]; infinite if not reached.
    share : float
        Fraction of the samples at a limit.
    """

    low: float
    high: float
    share: float

    @property
    def values(self) -> str:
        """Limits as text for messages."""
        return " and ".join(f"{value:g}" for value in (self.low, self.high) if np.isfinite(value))


def find_saturation(effort: Array) -> Saturation | None:
    """Detect sensor limits: extreme values that repeat in runs, unlike all other values.

    Parameters
    ----------
    effort : (n,) float array
        Measured torque or force in the order of time [N m or N].

    Returns
    -------
    Saturation or None
        None if no limit was reached. Coarsely quantised signals, whose values all repeat, and signals that jump to an
        extreme value are not reported.
    """
    low, high = (_limit(side * effort) for side in (-1.0, 1.0))
    if low is None and high is None:
        return None
    # A sensor has limits on both sides. Once one is known, the other may also be reached by a jump.
    low = _limit(-effort, high) if low is None else low
    high = _limit(effort, low) if high is None else high
    bottom, top = -np.inf if low is None else -low, np.inf if high is None else high
    return Saturation(bottom, top, float(np.mean((effort <= bottom) | (effort >= top))))


def _limit(values: Array, other: float | None = None) -> float | None:
    """Return the maximum if it is a sensor limit; `other` is the limit on the other side, if known."""
    top = float(values.max())
    at_top = values == top
    edges = np.flatnonzero(np.diff(np.concatenate(([False], at_top, [False])).astype(int)))
    longest = int((edges[1::2] - edges[::2]).max(initial=0))
    if top <= 0.0 or float(at_top.mean()) < _SHARE or longest < _RUN:
        return None
    near = (values >= _NEAR * top) & ~at_top
    if float(near.mean()) < _SHARE and top != other:
        return None
    repeated = np.diff(values) == 0.0
    inside, outside = at_top[1:] & at_top[:-1], ~at_top[1:] & (values[1:] > values.min())
    among_limit = float(inside.sum()) / float(at_top.sum())
    return top if float(repeated[outside].mean()) < _REPEATED * among_limit else None
