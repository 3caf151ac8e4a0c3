"""Samples of one joint as a friction fit takes them, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.signals import best_cutoff, edge_of, motion, noise_left, quiet_cutoff, smooth, white_noise
from calibration.friction.commanded import Commanded
from calibration.friction.motion import Motion, Travel
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

LEAST = 50
"""Samples that a fit needs."""
_FEWEST = 8
_ONE_SIDED, _STEADY = 0.02, 1e-6
_RESTING, _FARTHER = 0.01, 1.5
"""Of a handle that a controller moves: speed that counts as rest, in parts of the top speed, and how much farther from
rest and turns samples are left out."""
_ERRATIC = 0.3
"""Change from sample to sample, in standard deviations of the velocity, that cannot all be noise."""


@dataclass(frozen=True)
class Samples:
    """Samples of velocity and friction that a law is fitted to, with their noise and weights.

    They come of a recording of a joint (`calibration.data.joint_recording`), smoothed as is wished, or of several.

    Attributes
    ----------
    time : array, (n,)
        Increasing [s].
    velocity : array, (n,)
        Of the joint [rad/s] or slide [m/s].
    friction : array, (n,)
        What opposed it [N m or N], with the direction of the velocity: minus the measured torque.
    acceleration : array, (n,), optional
        Needed where the inertia is to be found too [rad/s² or m/s²].
    velocity_noise : float, optional
        Standard deviation of the error of `velocity`. By default that of white noise, which `white_noise` sees, or 0
        where the velocity is `erratic`; noise that was smoothed has to be stated.
    edge : int
        Samples at both ends that are not to be used.
    weights : array, (n,), optional
        What each squared residual counts for.
    instrument : array, (n,), optional
        An acceleration without noise to speak of (`calibration.data.signals.Motion`): the inertia is then found with it
        as an instrumental variable, so noise on `acceleration` does not make it too small.
    turning : array, (n,), optional
        Not 0 where the filter that made velocity and acceleration saw the motion turn back: the acceleration jumps
        there, and a filter smears that. Left out where the inertia is found too.
    commanded : Commanded, optional
        The motion that was commanded, where a controller made the forces: delay, viscosity and inertia are then found
        with it as instrumental variables.
    travel : Travel, optional
        Displacement over the complete recording. Needed for presliding.
    angle : array, (n,), optional
        Angle of a joint that turns [rad]. Needed for harmonics.
    recording : int array, (n,), optional
        Number of the recording of each sample, where several are joined.
    saturated : bool array, (n,), optional
        Samples that are left out because the sensor was at a limit of its range, or is expected there
        (`calibration.friction.saturation`).

    Raises
    ------
    ConfigurationError
        Where a number is not finite, lengths differ, times do not increase or samples are fewer than 8.
    """

    time: Array
    velocity: Array
    friction: Array
    acceleration: Array | None = None
    velocity_noise: float | None = None
    edge: int = 0
    weights: Array | None = None
    instrument: Array | None = None
    turning: Array | None = None
    guessed: bool = False
    """Whether a `velocity_noise` that is given was only seen, in a recording that this is a part of."""
    commanded: Commanded | None = None
    rounds: tuple[int, ...] = ()
    """Lengths of the rounds in which the same motion was commanded again and again."""
    travel: Travel | None = None
    angle: Array | None = None
    recording: NDArray[np.intp] | None = None
    saturated: NDArray[np.bool_] | None = None
    noise: float = field(init=False)
    """Standard deviation of the error of the velocity, stated or seen."""

    def __post_init__(self) -> None:
        for name in ("time", "velocity", "friction", "acceleration", "weights", "instrument", "turning", "angle"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._column(name))
        if len(self.time) - 2 * self.edge < _FEWEST:
            raise ConfigurationError(f"{len(self.time) - 2 * self.edge} samples: at least {_FEWEST} are needed")
        if not bool(np.all(np.diff(self.time) > 0.0)):
            raise ConfigurationError("the times of a recording must increase from sample to sample")
        noise = self._seen_noise() if self.velocity_noise is None else float(self.velocity_noise)
        if not 0.0 <= noise < np.inf:
            raise ConfigurationError(f"velocity_noise {noise:g}: must be a finite number of at least 0")
        object.__setattr__(self, "noise", noise)

    def _column(self, name: str) -> Array:
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
        if name == "weights" and float(values.min()) < 0.0:
            raise ConfigurationError(f"weights hold {values.min():g}: must be at least 0")
        return values

    def _seen_noise(self) -> float:
        return 0.0 if self.erratic else white_noise(self.velocity)

    @property
    def noise_is_guessed(self) -> bool:
        """Whether nobody stated the noise: noise that was smoothed may then hide."""
        return self.guessed or self.velocity_noise is None

    @property
    def erratic(self) -> bool:
        """Whether neighbouring velocities have so little to do with each other that noise cannot be told from motion.

        So are samples that are not in the order of time.
        """
        return white_noise(self.velocity) > _ERRATIC * float(self.velocity.std())

    def require_law(self) -> None:
        """Raise a `ConfigurationError` where samples show no friction law.

        The velocity is constant or in one direction only, or nothing opposed it.
        """
        if not self.friction.any():
            raise ConfigurationError("the torque or force is 0 in every sample: there is nothing to explain")
        if self._steady():
            raise ConfigurationError(
                f"the velocity is constant ({self.velocity[0]:g}): friction shows only where it changes"
            )
        if not self.shows_law:
            word = "backward" if self.velocity.mean() > 0.0 else "forward"
            raise ConfigurationError(f"less than 2 % of the samples move {word}: a fit needs both directions")

    @property
    def shows_law(self) -> bool:
        """Whether the velocity of the samples that are not saturated changes and takes both directions."""
        least = 0.01 * float(np.abs(self.velocity).max())
        usable = np.ones(len(self.velocity), bool) if self.saturated is None else ~self.saturated
        shares = (float(np.mean((sign * self.velocity > least) & usable)) for sign in (1.0, -1.0))
        return not self._steady() and min(shares) >= _ONE_SIDED

    def _steady(self) -> bool:
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
        """Return samples of a joint that its motor does not drive (Guedelha et al. 2018, (19), (21)).

        Parameters
        ----------
        time, velocity, torque : array, (n,)
            Torque with the sign of a measured joint torque: minus the friction where nothing accelerates.
        acceleration : array, (n,), optional
            Of the joint.
        inertia : float
            Of what moves on the joint's side of the sensor [kg m² or kg].
        **others
            As of the class.
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
        """Return samples with velocity, acceleration and their noise from positions (`calibration.data.signals`).

        A `reference` is the position that a controller was to keep.
        """
        found = motion(time, position, cutoff)
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
            commanded=None if reference is None else Commanded.of_reference(time, reference, torque, found.cutoff),
        )

    @classmethod
    def from_noisy_velocity(
        cls, time: Array, velocity: Array, torque: Array, inertia: float = 0.0, cutoff: float | None = None
    ) -> Samples:
        """Return samples with the velocity smoothed, its noise, and the acceleration that follows from it.

        For recordings without positions, of velocities whose noise is white (`calibration.data.signals.smooth`).
        """
        cutoff = best_cutoff(time, velocity) if cutoff is None else cutoff
        speed, rise = smooth(time, velocity, cutoff), smooth(time, velocity, cutoff, derivative=1)
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
        """Which samples do not lie at the edges."""
        mask = np.zeros(len(self.time), bool)
        mask[self.edge : len(self.time) - self.edge] = True
        return mask

    def faster_than(self, band: float) -> NDArray[np.bool_]:
        """Return which samples are not at the edges, not saturated and faster than a band around rest."""
        moving = self.inner & (np.abs(self.velocity) > band)
        return moving if self.saturated is None else moving & ~self.saturated

    @property
    def motion(self) -> Motion:
        """The motion, as friction models take it."""
        return Motion(self.velocity, self.travel, self.angle, self.recording)

    @property
    def recordings(self) -> int:
        """Number of recordings that the samples come from."""
        return 1 if self.recording is None else int(self.recording.max()) + 1

    def part(self, chosen: NDArray[np.intp]) -> Samples:
        """Return some of the samples, with the noise of all."""
        chosen = chosen[self.inner[chosen]]

        def of(values: NDArray[Any] | None) -> Any:
            return None if values is None else values[chosen]

        return replace(
            self,
            time=self.time[chosen],
            velocity=self.velocity[chosen],
            friction=self.friction[chosen],
            acceleration=of(self.acceleration),
            weights=of(self.weights),
            instrument=of(self.instrument),
            turning=of(self.turning),
            angle=of(self.angle),
            recording=of(self.recording),
            saturated=of(self.saturated),
            velocity_noise=self.noise,
            edge=0,
            guessed=self.noise_is_guessed,
            commanded=None if self.commanded is None else self.commanded.of(chosen),
            rounds=(),
            travel=None if self.travel is None else self.travel.at(chosen),
        )


def turning(velocity: Array, reach: int, resting: bool = False) -> Array:
    """Return 1 for samples that are at most `reach` from where the velocity changes its sign, 0 for the others.

    With `resting`, also near where there is hardly any motion, and half as far again: a handle that is moved by a
    controller comes to rest and breaks away, and the acceleration jumps then too.
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
    """Return several recordings of one joint as one, in the order given; their edges are left out.

    Accelerations, weights, instruments, turns, displacements and angles are kept where all recordings have them.
    """
    if len(recordings) == 1:
        return recordings[0]
    steps = [np.gradient(one.time)[one.inner] for one in recordings]
    parts = [one.part(np.flatnonzero(one.inner)) for one in recordings]
    lengths = [len(part.time) for part in parts]

    def whole(name: str) -> Array | None:
        known = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        return np.concatenate(known) if len(known) == len(parts) else None

    commanded = [part.commanded for part in parts if part.commanded is not None]
    travels = tuple(part.travel for part in parts if part.travel is not None)
    repeated = len(commanded) == len(parts)
    saturated = [np.zeros(len(part.time), bool) if part.saturated is None else part.saturated for part in parts]
    return Samples(
        np.cumsum(np.concatenate(steps)),
        np.concatenate([part.velocity for part in parts]),
        np.concatenate([part.friction for part in parts]),
        whole("acceleration"),
        math.sqrt(float(np.mean([part.noise**2 for part in parts]))),
        0,
        whole("weights"),
        whole("instrument"),
        whole("turning"),
        any(part.noise_is_guessed for part in parts),
        Commanded.joined(commanded) if repeated else None,
        tuple(lengths) if repeated else (),
        Travel.joined(travels) if len(travels) == len(parts) else None,
        whole("angle"),
        np.repeat(np.arange(len(parts)), lengths),
        np.concatenate(saturated) if any(part.saturated is not None for part in parts) else None,
    )
