"""Motion of a joint for friction models: velocity, displacement, angle and recording of each sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_ELEMENTS, _SPREAD = 6, 0.8
"""Number of elastic-plastic elements of the presliding state, and spread of their deflections.

They equal the defaults of `haptics.elements.classic.Iwan`, which therefore renders the identified law.
"""
_IGNORED = 1e-5
"""Reversals smaller than this fraction of the range of the path are treated as noise."""
_REMEMBERED = 16


@dataclass(frozen=True, eq=False)
class Travel:
    """Displacement over complete recordings, from which the presliding state of each sample follows.

    Attributes
    ----------
    path : (m,) float array
        Position of the joint, with the recordings concatenated [rad or m].
    starts : tuple of int
        Index of the first sample of each recording.
    chosen : (n,) int array
        Indices of the samples in `path`.
    """

    path: Array
    starts: tuple[int, ...]
    chosen: Index
    _turns: Index = field(init=False, repr=False)
    """Indices in `path` at which recordings start or the direction changes, increasing."""
    _states: dict[float, Array] = field(default_factory=dict, init=False, repr=False)
    """Cache of the latest states by distance, because searches request the same ones repeatedly."""

    def __post_init__(self) -> None:
        bounds = zip(self.starts, (*self.starts[1:], len(self.path)), strict=True)
        turns = np.concatenate([first + _reversals(self.path[first:last]) for first, last in bounds])
        object.__setattr__(self, "_turns", turns)

    @classmethod
    def whole(cls, path: Array) -> Travel:
        """Return the travel of all samples of one recording."""
        return cls(np.asarray(path, float), (0,), np.arange(len(path)))

    @property
    def range(self) -> float:
        """Largest range of the path in one recording [rad or m]."""
        return max(float(np.ptp(part)) for part in np.split(self.path, self.starts[1:]))

    def at(self, chosen: NDArray[np.bool_] | Index) -> Travel:
        """Return the travel of selected samples; their state still depends on the complete path."""
        part = object.__new__(Travel)  # bypasses __post_init__: the reversals are the same
        for name, value in (vars(self) | {"chosen": self.chosen[chosen], "_states": {}}).items():
            object.__setattr__(part, name, value)
        return part

    @staticmethod
    def joined(parts: tuple[Travel, ...]) -> Travel:
        """Concatenate the travels of several recordings."""
        offsets = np.cumsum([0, *(len(part.path) for part in parts[:-1])])
        return Travel(
            np.concatenate([part.path for part in parts]),
            tuple(int(offset) + start for offset, part in zip(offsets, parts, strict=True) for start in part.starts),
            np.concatenate([offset + part.chosen for offset, part in zip(offsets, parts, strict=True)]),
        )

    def state(self, distance: float) -> Array:
        r"""Return the presliding state z (n,), from -1 to 1, of Iwan's model (Iwan 1966).

        The state is the mean of elastic-plastic elements in parallel, :math:`z = \sum_i e_i / (n l)` with deflections
        :math:`|e_i| \le c_i l` and c_i spaced evenly from 0.2 to 1.8: z = 1 while sliding forward, -1 while sliding
        backward. Each recording starts without deflection.

        Parameters
        ----------
        distance : float
            Mean break-away deflection l [rad or m].
        """
        if distance in self._states:
            return self._states[distance]
        limits = distance * (1.0 + _SPREAD * np.linspace(-1.0, 1.0, _ELEMENTS))
        begin = np.zeros((len(self._turns), _ELEMENTS))
        ends = np.append(self._turns[1:], len(self.path) - 1)
        moved = self.path[ends] - self.path[self._turns]
        starting = np.isin(ends, self.starts)
        deflection = np.zeros(_ELEMENTS)
        for number, step in enumerate(moved):
            begin[number] = deflection
            deflection = np.zeros(_ELEMENTS) if starting[number] else np.clip(deflection + step, -limits, limits)
        segment = np.searchsorted(self._turns, self.chosen, side="right") - 1
        moved = self.path[self.chosen] - self.path[self._turns[segment]]
        state = np.clip(begin[segment] + moved[:, None], -limits, limits).mean(axis=1) / distance
        if len(self._states) == _REMEMBERED:
            self._states.clear()
        self._states[distance] = state
        return np.asarray(state)


def _reversals(path: Array) -> Index:
    """Return the indices of the first sample and of all reversals larger than noise, increasing."""
    least = _IGNORED * float(np.ptp(path))
    steps = np.diff(path)
    # Only local extremes can be reversals. Those with sufficient motion in between are kept.
    extremes = 1 + np.flatnonzero(np.signbit(steps[1:]) != np.signbit(steps[:-1]))
    found, last, direction = [0], 0, 0.0
    for index in extremes.tolist():
        step = path[index] - path[last]
        if step * direction > 0.0 or (direction == 0.0 and abs(step) > least):
            last, direction = index, np.sign(step)
        elif abs(step) > least:
            found.append(last)
            last, direction = index, -direction
    if last != found[-1]:
        found.append(last)
    return np.array(found, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Motion:
    """Input of the columns of a friction model.

    Attributes
    ----------
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    travel : Travel, optional
        Displacement for presliding. Without it presliding is complete: z is the sign of the velocity.
    angle : (n,) float array, optional
        Angle of the joint, for harmonics [rad]. Without it the harmonics are zero.
    recording : (n,) int array, optional
        Number of the recording of each sample, for its offset. Without it the offset is the mean of all recordings.
    """

    velocity: Array
    travel: Travel | None = None
    angle: Array | None = None
    recording: Index | None = None

    @classmethod
    def of(cls, motion: Motion | Array) -> Motion:
        """Convert velocities to a motion; a motion is returned unchanged."""
        return motion if isinstance(motion, Motion) else cls(np.asarray(motion, float))

    def at_velocity(self, velocity: Array) -> Motion:
        """Return the same motion with other velocities."""
        return replace(self, velocity=velocity)

    def part(self, chosen: NDArray[np.bool_] | Index) -> Motion:
        """Return the motion of selected samples."""
        return Motion(
            self.velocity[chosen],
            None if self.travel is None else self.travel.at(chosen),
            None if self.angle is None else self.angle[chosen],
            None if self.recording is None else self.recording[chosen],
        )

    def presliding(self, distance: float) -> Array:
        """Return the presliding state (n,) for a mean break-away deflection [rad or m]."""
        return np.sign(self.velocity) if self.travel is None else self.travel.state(distance)
