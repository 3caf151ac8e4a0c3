"""Validated samples of one joint as input of a friction fit.

Commanded motion serves as instrumental variables (`Commanded`).

A controller converts the noise of its position measurement into forces. Velocity and acceleration contain the same
noise, so that least squares yields a biased delay and viscosity and underestimates the mass. The reference of the
controller is free of noise, and the residual forces must be uncorrelated with it (Soederstroem and Stoica 1989, section
8; for robots Janot et al. 2014). An error of the delay leaves a residual proportional to the rate of the force. The
instruments are therefore made orthogonal to that rate, so that the estimates are independent of small errors of the
delay, and its interval accounts for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import best_cutoff, edge_of, motion, noise_left, quiet_cutoff, smooth, white_noise
from calibration.friction.model import Motion, Travel, select
from haptics.errors import ConfigurationError

# --- commanded motion -------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

LEAST = 50
"""Minimum number of samples of a fit."""
_FEWEST = 8
_ONE_SIDED, _STEADY = 0.02, 1e-6
_RESTING, _FARTHER = 0.01, 1.5
"""Criteria for a controlled handle.

Maximum speed at rest as a fraction of the top speed, and factor on the excluded time around rest and reversals.
"""
_OPTIONAL = ("acceleration", "instrument", "turning", "angle")
"""Names of the optional columns that are kept if all joined recordings have them."""
_ERRATIC = 0.3
"""Minimum sample-to-sample change that cannot be noise alone, in standard deviations of the velocity."""


@dataclass(frozen=True)
class Commanded:
    """Commanded motion, smoothed like the measurement.

    Attributes
    ----------
    velocity, acceleration, jerk : array, (n,)
        Derivatives of the reference.
    force_rate : array, (n,)
        Negative derivative of the measured force.
    """

    velocity: Array
    acceleration: Array
    jerk: Array
    force_rate: Array

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Commanded:
        """Return the motion at selected samples."""
        return Commanded(*(column[chosen] for column in vars(self).values()))


@dataclass(frozen=True)
class Samples:
    """Samples of velocity and friction for the fit of a law, with their noise and weights.

    They come from one or several recordings of a joint (`calibration.data.joint_recording`), optionally smoothed.

    Attributes
    ----------
    time : array, (n,)
        Increasing times [s].
    velocity : array, (n,)
        Velocity of the joint [rad/s or m/s].
    friction : array, (n,)
        Opposing torque or force [N m or N], with the sign of the velocity: minus the measured torque.
    acceleration : array, (n,), optional
        Acceleration [rad/s² or m/s²], required for the fit of the inertia.
    velocity_noise : float, optional
        Standard deviation of the error of `velocity`. By default it is estimated by `white_noise`, or 0 if the velocity
        is `erratic`; noise that was smoothed has to be stated.
    edge : int
        Number of unused samples at both ends.
    instrument : array, (n,), optional
        Acceleration with negligible noise (`calibration.data.signals.Motion`). It serves as an instrumental variable
        for the inertia, which noise on `acceleration` would bias towards zero.
    turning : array, (n,), optional
        Nonzero near reversals, within the support of the filter: the acceleration jumps there, which the filter smears.
        These samples are excluded from fits of the inertia.
    commanded : Commanded, optional
        Commanded motion, if a controller generated the forces. It serves as instrumental variables for delay, viscosity
        and inertia.
    travel : Travel, optional
        Displacement over the complete recording, required for presliding.
    angle : array, (n,), optional
        Angle of a rotary joint [rad], required for harmonics.
    recording : int array, (n,), optional
        Number of the recording of each sample, if several are joined.
    saturated : bool array, (n,), optional
        Samples that are excluded because the sensor was at a limit of its range, or is expected there
        (`calibration.friction.fit`).
    gaps : bool array, (n,), optional
        Samples that are excluded because they are near a gap of the measurement.

    Raises
    ------
    ConfigurationError
        If a number is not finite, lengths differ, times do not increase or there are fewer than 8 samples.
    """

    time: Array
    velocity: Array
    friction: Array
    acceleration: Array | None = None
    velocity_noise: float | None = None
    edge: int = 0
    instrument: Array | None = None
    turning: Array | None = None
    guessed: bool = False
    """Whether the given `velocity_noise` was estimated, from the recording that these samples are part of."""
    commanded: Commanded | None = None
    rounds: tuple[int, ...] = ()
    """Lengths of the rounds in which the same motion was commanded repeatedly."""
    travel: Travel | None = None
    angle: Array | None = None
    recording: NDArray[np.intp] | None = None
    saturated: NDArray[np.bool_] | None = None
    gaps: NDArray[np.bool_] | None = None
    noise: float = field(init=False)
    """Standard deviation of the velocity error, stated or estimated."""

    def __post_init__(self) -> None:
        for name in ("time", "velocity", "friction", *_OPTIONAL):
            if getattr(self, name) is None:
                continue
            values = np.asarray(getattr(self, name), float)
            if values.ndim != 1 or len(values) != len(self.time):
                raise ConfigurationError(
                    f"{name} has the shape {values.shape}: one number is needed for each of {len(self.time)} times"
                )
            bad = ~np.isfinite(values)
            if bad.any():
                raise ConfigurationError(
                    f"{name} is not finite in {int(bad.sum())} samples, the first is number {int(bad.argmax())}"
                )
            object.__setattr__(self, name, values)
        if len(self.time) - 2 * self.edge < _FEWEST:
            raise ConfigurationError(f"{len(self.time) - 2 * self.edge} samples: at least {_FEWEST} are needed")
        if not bool(np.all(np.diff(self.time) > 0.0)):
            raise ConfigurationError("the times of a recording must increase from sample to sample")
        if self.velocity_noise is not None:
            noise = float(self.velocity_noise)
        else:
            noise = 0.0 if self.erratic else white_noise(self.velocity)
        if not 0.0 <= noise < np.inf:
            raise ConfigurationError(f"velocity_noise {noise:g}: must be a finite number of at least 0")
        object.__setattr__(self, "noise", noise)

    @property
    def noise_is_guessed(self) -> bool:
        """Whether the noise was estimated instead of stated; smoothed noise is then not detected."""
        return self.guessed or self.velocity_noise is None

    @property
    def erratic(self) -> bool:
        """Whether adjacent velocities are so unrelated that noise and motion cannot be separated.

        This also holds for samples that are not in the order of time.
        """
        return white_noise(self.velocity) > _ERRATIC * float(self.velocity.std())

    def require_law(self) -> None:
        """Raise `ConfigurationError` if the samples do not determine a friction law.

        This is the case if the velocity is constant or in one direction only, or nothing opposed the motion.
        """
        if not self.friction.any():
            raise ConfigurationError("the torque or force is 0 in every sample: there is nothing to explain")
        if self.steady:
            raise ConfigurationError(
                f"the velocity is constant ({self.velocity[0]:g}): friction shows only where it changes"
            )
        if not self.shows_law:
            word = "backward" if self.velocity.mean() > 0.0 else "forward"
            raise ConfigurationError(f"less than 2 % of the samples move {word}: a fit needs both directions")

    @property
    def shows_law(self) -> bool:
        """Whether the velocity of the usable samples varies and takes both directions."""
        least = 0.01 * float(np.abs(self.velocity).max())
        shares = (float(np.mean((sign * self.velocity > least) & self.usable)) for sign in (1.0, -1.0))
        return not self.steady and min(shares) >= _ONE_SIDED

    @property
    def steady(self) -> bool:
        """Whether the velocity is constant."""
        return float(np.ptp(self.velocity)) <= _STEADY * float(np.abs(self.velocity).max())

    @classmethod
    def from_torque(
        cls,
        time: Array,
        velocity: Array,
        torque: Array,
        acceleration: Array | None = None,
        inertia: float = 0.0,
        **others: object,
    ) -> Samples:
        """Return samples of an undriven joint (Guedelha et al. 2018, (19), (21)).

        Parameters
        ----------
        time, velocity, torque : array, (n,)
            Torque with the sign of a measured joint torque: minus the friction without acceleration.
        acceleration : array, (n,), optional
            Acceleration of the joint.
        inertia : float
            Inertia of the moving parts on the joint side of the sensor [kg m² or kg].
        **others
            Further arguments of the class.
        """
        if inertia != 0.0 and acceleration is None:
            raise ConfigurationError(f"inertia {inertia:g} without accelerations: both are needed, or neither")
        inertial = 0.0 if acceleration is None else inertia * np.asarray(acceleration, float)
        return cls(time, velocity, -(np.asarray(torque, float) + inertial), acceleration, **others)  # type: ignore[arg-type]

    @classmethod
    def from_positions(
        cls,
        time: Array,
        position: Array,
        torque: Array,
        inertia: float = 0.0,
        cutoff: float | None = None,
        reference: Array | None = None,
    ) -> Samples:
        """Return samples with velocity, acceleration and their noise from positions.

        See `calibration.data.signals`. `reference` is the position reference of a controller.
        """
        found, commanded = motion(time, position, cutoff), None
        if reference is not None:
            speed, rise = (smooth(time, reference, found.cutoff, order) for order in (1, 2))
            jerk, rate = (smooth(time, one, found.cutoff, 1) for one in (rise, torque))
            commanded = Commanded(speed, rise, jerk, -rate)
        return cls.from_torque(
            found.time,
            found.velocity,
            torque,
            found.acceleration,
            inertia,
            velocity_noise=found.velocity_noise,
            edge=found.edge,
            instrument=found.instrument,
            turning=turning(found.velocity, found.edge, reference is not None),
            commanded=commanded,
        )

    @classmethod
    def from_noisy_velocity(
        cls, time: Array, velocity: Array, torque: Array, inertia: float = 0.0, cutoff: float | None = None
    ) -> Samples:
        """Return samples with the velocity smoothed, its noise, and the resulting acceleration.

        For recordings without positions, with white noise on the velocity (`calibration.data.signals.smooth`).
        """
        cutoff = best_cutoff(time, velocity) if cutoff is None else cutoff
        speed, rise = (smooth(time, velocity, cutoff, derivative) for derivative in (0, 1))
        noise = white_noise(velocity)
        slower = quiet_cutoff(time, rise, cutoff, lambda slower: noise * noise_left(time, slower, 1))
        return cls.from_torque(
            time,
            speed,
            torque,
            rise,
            inertia,
            velocity_noise=noise * noise_left(time, cutoff),
            edge=edge_of(time, cutoff),
            instrument=smooth(time, velocity, slower, derivative=1),
            turning=turning(speed, edge_of(time, cutoff)),
        )

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Mask of the samples that are not at the edges."""
        mask = np.zeros(len(self.time), bool)
        mask[self.edge : len(self.time) - self.edge] = True
        return mask

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Mask of the samples that are neither saturated nor near a gap."""
        mask = np.ones(len(self.time), bool)
        for excluded in (self.saturated, self.gaps):
            if excluded is not None:
                mask &= ~excluded
        return mask

    def faster_than(self, band: float) -> NDArray[np.bool_]:
        """Return a mask of the usable samples away from the edges, faster than a band around rest."""
        return self.inner & self.usable & (np.abs(self.velocity) > band)

    @property
    def motion(self) -> Motion:
        """Motion for friction models."""
        return Motion(self.velocity, self.travel, self.angle, self.recording)

    def part(self, chosen: NDArray[np.intp]) -> Samples:
        """Return selected samples, with the noise of all."""
        chosen = chosen[self.inner[chosen]]
        names = ("time", "velocity", "friction", *_OPTIONAL, "recording", "saturated", "gaps", "commanded", "travel")
        columns = {name: select(getattr(self, name), chosen) for name in names}
        return replace(self, **columns, velocity_noise=self.noise, edge=0, guessed=self.noise_is_guessed, rounds=())


def turning(velocity: Array, reach: int, resting: bool = False) -> Array:
    """Return 1 for samples at most `reach` from a change of sign of the velocity, 0 for others.

    With `resting`, also for samples near rest, and with a reach half as large again: a controlled handle stops and
    breaks away, and the acceleration jumps then, too.
    """
    near = np.zeros(len(velocity))
    turns = np.flatnonzero(np.diff(np.signbit(velocity)))
    if resting:
        reach = round(_FARTHER * reach)
        slow = np.abs(velocity) < _RESTING * float(np.abs(velocity).max())
        turns = np.union1d(turns, np.flatnonzero(np.diff(slow)))
        near[slow] = 1.0
    for turn in turns:
        near[max(turn + 1 - reach, 0) : turn + 1 + reach] = 1.0
    return near


def joined(recordings: Sequence[Samples]) -> Samples:
    """Concatenate several recordings of one joint in the given order, without their edges.

    Accelerations, instruments, turns, displacements and angles are kept if all recordings have them.
    """
    if len(recordings) == 1:
        return recordings[0]
    steps = [np.gradient(one.time)[one.inner] for one in recordings]
    parts = [one.part(np.flatnonzero(one.inner)) for one in recordings]
    lengths = [len(part.time) for part in parts]

    def whole(name: str) -> Any:
        known = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        return np.concatenate(known) if len(known) == len(parts) else None

    def mask(name: str) -> NDArray[np.bool_] | None:
        masks = [getattr(part, name) for part in parts]
        if all(one is None for one in masks):
            return None
        return np.concatenate(
            [np.zeros(n, bool) if one is None else one for n, one in zip(lengths, masks, strict=True)]
        )

    commanded = [part.commanded for part in parts if part.commanded is not None]
    travels = tuple(part.travel for part in parts if part.travel is not None)
    repeated = len(commanded) == len(parts)
    together = zip(*(vars(one).values() for one in commanded), strict=True)
    columns: dict[str, Any] = {name: whole(name) for name in ("velocity", "friction", *_OPTIONAL)}
    return Samples(
        np.cumsum(np.concatenate(steps)),
        **columns,
        velocity_noise=math.sqrt(float(np.mean([part.noise**2 for part in parts]))),
        guessed=any(part.noise_is_guessed for part in parts),
        commanded=Commanded(*map(np.concatenate, together)) if repeated else None,
        rounds=tuple(lengths) if repeated else (),
        travel=Travel.joined(travels) if len(travels) == len(parts) else None,
        recording=np.repeat(np.arange(len(parts)), lengths),
        saturated=mask("saturated"),
        gaps=mask("gaps"),
    )
