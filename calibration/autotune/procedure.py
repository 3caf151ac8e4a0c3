"""Tuning procedure: identification of the axes, suggested coupling, measured stability limit.

The limiting effects are determined by removing one effect at a time from the identified handle (delay, lag of the
velocity, sampling) and computing the gain in stable stiffness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration.autotune.boundary import Boundary, find_boundary
from calibration.autotune.pushing import IdentifiedPlant, Pusher
from calibration.autotune.settings import TABLE, Autotune
from calibration.data.files import Source
from calibration.motions import Mover, Procedure, drive, source_of
from haptics.design import MARGIN, Handle, Suggestion, stiffness_limit, suggest
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.rendering.motion import constant_reference

_UNCERTAIN = 0.25
"""Maximum relative half width of the interval of mass or delay without a doubt."""
_MISFIT = 1.0
"""Maximum root mean square of the position residuals without a doubt, in encoder counts."""
_LEAST_MISFIT = 2e-6
_CONFIRMED = 0.8, 1.25
"""Ratios of measured to predicted limit within which the parameters count as confirmed."""
_SHORT_DELAY = 0.5
"""Accepted uncertainty of the delay, as a fraction of a period."""
_SLIGHTLY = 1.2
"""Minimum gain in stiffness for which an effect counts as limiting."""


@dataclass(frozen=True)
class TunedAxis:
    """Result for one axis.

    Attributes
    ----------
    identified : Identified
        Fit and encoder resolution.
    boundary : Boundary or None
        Measured stability limit; None if it was not measured.
    doubts : tuple of str
        Reasons to doubt the parameters.
    """

    identified: IdentifiedPlant
    boundary: Boundary | None
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class Tuned:
    """Result for a device.

    Attributes
    ----------
    axes : tuple of TunedAxis
        Measured axes.
    handle : Handle
        Worst axis, with the lowest limit at the suggested damping.
    suggestion : Suggestion
        Suggestion for that handle, from its parameters alone.
    stiffness : float
        Recommended initial stiffness [N/m]: the suggested one, limited to the measured limit with a margin.
    limited_by : tuple of str
        Changes that would raise the limit.
    source : Source
        Recording.
    """

    axes: tuple[TunedAxis, ...]
    handle: Handle
    suggestion: Suggestion
    stiffness: float
    limited_by: tuple[str, ...]
    source: Source


def require_forces(spec: DeviceSpec) -> None:
    """Raise `ConfigurationError` unless the device accepts forces and operates without a hand on it."""
    if spec.causality is not Causality.IMPEDANCE:
        raise ConfigurationError(
            f"{spec.name} follows positions: haptics calibrate servo measures how, haptics calibrate arm the rest."
        )
    if spec.dead_man != "none":
        raise ConfigurationError(
            f"{spec.name} gives force only while a {spec.dead_man} is held, and nobody may hold the handle meanwhile."
        )


def tune(
    mover: Mover,
    wish: Autotune,
    folder: Path,
    facts: Mapping[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Tuned:
    """Move a device with its motors and return its parameters and a suggested coupling.

    Parameters
    ----------
    mover : Mover
        Device that accepts forces, with no hand on its handle.
    wish : Autotune
        Settings of the procedure.
    folder : Path
        Folder of the recording; must not exist.
    facts : mapping, optional
        Additional metadata of the recording.
    progress : callable
        Callback with the elapsed time [s].

    Raises
    ------
    ConfigurationError
        If the device does not accept forces or does not respond to them.
    HapticError
        As in `calibration.motions.drive`. The recording is kept.
    """
    spec = mover.spec
    require_forces(spec)
    course = _Course(spec, wish, mover.period)
    recording = drive(mover, course.motions(), folder, facts, progress, settings={TABLE: wish})
    return course.tuned(source_of(recording))


class _Course:
    """Procedure with its intermediate results."""

    def __init__(self, spec: DeviceSpec, wish: Autotune, period: float) -> None:
        self._spec, self._wish, self._period = spec, wish, period
        self._pusher = Pusher(spec, wish, period)
        self._found: list[IdentifiedPlant] = []
        self._boundaries: dict[str, Boundary] = {}

    def motions(self) -> Procedure:
        """Yield all motions in sequence."""
        for axis in self._wish.measured_axes:
            self._found.append((yield from self._pusher.identify(axis)))
        if not self._wish.boundary:
            return
        _, suggestion = self._suggested()
        rows = yield self._pusher.move(constant_reference(0.05, self._period), relative=True, label="hold")
        for one in self._found:
            search = find_boundary(self._pusher, one.fit.plant, self._handle(one), one.axis, suggestion.damping, rows)
            self._boundaries[one.axis] = yield from search

    def tuned(self, source: Source) -> Tuned:
        """Return the result of the procedure."""
        handle, suggestion = self._suggested()
        known = [one.stiffness for one in self._boundaries.values() if one.stiffness is not None]
        stiffness = min([suggestion.stiffness, *(one / MARGIN for one in known)])
        axes = tuple(TunedAxis(one, self._boundaries.get(one.axis), self._doubts(one)) for one in self._found)
        limited = limits_of(handle, suggestion.damping, self._period)
        return Tuned(axes, handle, suggestion, stiffness, limited, source)

    def _handle(self, one: IdentifiedPlant) -> Handle:
        plant = one.fit.plant
        return Handle(plant.mass, plant.damping, plant.delay, one.resolution, self._spec.velocity_lag)

    def _suggested(self) -> tuple[Handle, Suggestion]:
        """Return the axis with the lowest suggested stiffness, and its suggestion."""
        pairs = [(handle, suggest(handle, self._wish.force, self._period)) for handle in map(self._handle, self._found)]
        return min(pairs, key=lambda pair: pair[1].stiffness)

    def _doubts(self, one: IdentifiedPlant) -> tuple[str, ...]:
        """Return the reasons to doubt the parameters of an axis."""
        fit, plant = one.fit, one.fit.plant
        doubts = []
        if fit.errors["mass"] > _UNCERTAIN * plant.mass:
            doubts.append("the mass can hardly be told: longer or stronger pushes would show it (autotune.strength)")
        if fit.errors["delay"] > max(_UNCERTAIN * plant.delay, _SHORT_DELAY * self._period):
            doubts.append("the delay can hardly be told: faster pushes would show it (autotune.speed)")
        if fit.residual > max(_MISFIT * one.resolution, _LEAST_MISFIT):
            doubts.append(
                f"{1e6 * fit.residual:.3g} um of the motion are not explained by a mass with damping, dry friction and "
                "a delay: something else moves, bends or pulls, or the delay changes, and the intervals are too narrow"
            )
        boundary = self._boundaries.get(one.axis)
        if boundary is not None and boundary.stiffness is not None:
            part = boundary.stiffness / boundary.expected
            if not _CONFIRMED[0] < part < _CONFIRMED[1]:
                doubts.append(
                    f"the boundary is {part:.2g} of what this handle should stand: the loop is later, or has other "
                    "masses and springs, than pushes show; sessions go by the boundary"
                )
        if one.resolution_error >= one.resolution > 0.0:
            doubts.append("the places seen are not multiples of one step: the encoder's is told within a factor of 2")
        if one.resolution == 0.0:
            doubts.append("no step of the encoder was seen: it is finer than the motion tells")
        return tuple(doubts)


def limits_of(handle: Handle, damping: float, period: float) -> tuple[str, ...]:
    """Return the changes that would raise the stiffness limit at this damping, the most effective first."""
    limit = stiffness_limit(handle, damping, period)
    if limit <= 0.0:
        return ("damping: no stiffness is stable with it.",)
    without = {
        f"delay: without its {1e3 * handle.delay:.3g} ms": replace(handle, delay=0.0),
        f"velocity: without the lag of its estimate, {1e3 * handle.velocity_lag:.3g} ms": replace(
            handle, velocity_lag=0.0
        ),
    }
    gains = {words: stiffness_limit(other, damping, period) / limit for words, other in without.items()}
    faster = f"sampling: at {2.0 / period:g} Hz in place of {1.0 / period:g} Hz"
    gains[faster] = stiffness_limit(handle, damping, 0.5 * period) / limit
    gains[f"damping: with twice the {damping:.3g} N s/m of the contact"] = (
        stiffness_limit(handle, 2.0 * damping, period) / limit
    )
    ranked = sorted(gains.items(), key=lambda pair: -pair[1])
    return tuple(f"{words} it would be {gain:.1f} times as stiff." for words, gain in ranked if gain > _SLIGHTLY)
