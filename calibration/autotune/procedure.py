"""Tuning procedure: identification of the axes, suggested coupling, measured stability limit.

The limiting effects are determined by removing one effect at a time from the identified handle (delay, lag of the
velocity, sampling) and computing the gain in stable stiffness.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from calibration.autotune.boundary import Boundary, find_boundary
from calibration.autotune.plant import NAMES
from calibration.autotune.pushing import TABLE, Autotune, IdentifiedPlant, Pusher
from calibration.data.joint_recording import Source
from calibration.motions.procedure import Measurement, Mover, Procedure, require_forces, source_of
from calibration.parameters import Provenance
from haptics.design import MARGIN, Handle, Suggestion, stiffness_limit, suggest
from haptics.device import DeviceSpec
from haptics.recording.recording import Recording
from haptics.rendering.programs import constant_reference

_UNCERTAIN = 0.25
"""Maximum relative half width of the interval of mass or delay without a doubt."""
_MISFIT = 1.0
"""Maximum root mean square of the position residuals without a doubt, in encoder counts."""
_LEAST_MISFIT = 2e-6
_CONFIRMED = 0.8, 1.25
"""Ratios of measured to predicted limit within which the parameters count as confirmed."""
_SHORT_DELAY = 0.5
"""Accepted uncertainty of the delay, as a fraction of a period."""
_EXPECTED_TIME = 20.0, 40.0
"""Expected duration of the identification and of the boundary measurement, for each axis [s]."""
_SLIGHTLY = 1.2
"""Minimum gain in stiffness for which an effect counts as limiting."""


@dataclass(frozen=True)
class TunedAxis:
    """Result for one axis.

    Attributes
    ----------
    identified : IdentifiedPlant
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


class Tuning(Measurement[Tuned]):
    """Identification of a device by its motors, with a suggested coupling and the measured stability limit.

    Parameters
    ----------
    settings : Autotune
        Settings of the procedure.
    """

    table = TABLE

    def __init__(self, settings: Autotune) -> None:
        super().__init__(settings)
        self._found: list[IdentifiedPlant] = []
        self._boundaries: dict[str, Boundary] = {}

    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device accepts forces and operates without a hand on it."""
        require_forces(
            mover.spec, "follows positions: haptics calibrate servo measures how, haptics calibrate arm the rest."
        )

    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the expected duration [s] and the limits of the motion."""
        settings = self.settings
        duration = sum(_EXPECTED_TIME[: 1 + settings.boundary]) * len(settings.measured_axes)
        force = min(2.0 * settings.strength, 0.9) * mover.spec.max_force
        return duration, f"with up to {force:.3g} N and {3.0 * settings.speed:g} m/s"

    def motions(self, mover: Mover) -> Procedure:
        """Yield all motions in sequence."""
        spec, period = mover.spec, mover.period
        pusher = Pusher(spec, self.settings, period)
        for axis in self.settings.measured_axes:
            self._found.append((yield from pusher.identify(axis)))
        if not self.settings.boundary:
            return
        _, suggestion = self._suggested(spec, period)
        rows = yield pusher.move(constant_reference(0.05, period), relative=True, label="hold")
        for one in self._found:
            handle = _handle(one, spec)
            search = find_boundary(pusher, one.fit.plant, handle, one.axis, suggestion.damping, rows)
            self._boundaries[one.axis] = yield from search

    def estimate(self, recording: Recording, mover: Mover) -> Tuned:
        """Return the result of the procedure."""
        spec, period = mover.spec, mover.period
        handle, suggestion = self._suggested(spec, period)
        known = [one.stiffness for one in self._boundaries.values() if one.stiffness is not None]
        stiffness = min([suggestion.stiffness, *(one / MARGIN for one in known)])
        pairs = [(one, self._boundaries.get(one.axis)) for one in self._found]
        axes = tuple(TunedAxis(*pair, tuple(_doubts(*pair, period))) for pair in pairs)
        limited = limits_of(handle, suggestion.damping, period)
        return Tuned(axes, handle, suggestion, stiffness, limited, source_of(recording))

    def _suggested(self, spec: DeviceSpec, period: float) -> tuple[Handle, Suggestion]:
        """Return the axis with the lowest suggested stiffness, and its suggestion."""
        handles = [_handle(one, spec) for one in self._found]
        pairs = [(handle, suggest(handle, self.settings.force, period)) for handle in handles]
        return min(pairs, key=lambda pair: pair[1].stiffness)


def _handle(found: IdentifiedPlant, spec: DeviceSpec) -> Handle:
    plant = found.fit.plant
    return Handle(plant.mass, plant.damping, plant.delay, found.resolution, spec.velocity_lag)


def _doubts(found: IdentifiedPlant, boundary: Boundary | None, period: float) -> Iterator[str]:
    """Yield the reasons to doubt the parameters of an axis."""
    fit, plant = found.fit, found.fit.plant
    if fit.errors["mass"] > _UNCERTAIN * plant.mass:
        yield "the mass can hardly be told: longer or stronger pushes would show it (autotune.strength)"
    if fit.errors["delay"] > max(_UNCERTAIN * plant.delay, _SHORT_DELAY * period):
        yield "the delay can hardly be told: faster pushes would show it (autotune.speed)"
    if fit.residual > max(_MISFIT * found.resolution, _LEAST_MISFIT):
        yield (
            f"{1e6 * fit.residual:.3g} um of the motion are not explained by a mass with damping, dry friction and "
            "a delay: something else moves, bends or pulls, or the delay changes, and the intervals are too narrow"
        )
    if boundary is not None and boundary.stiffness is not None:
        part = boundary.stiffness / boundary.expected
        if not _CONFIRMED[0] < part < _CONFIRMED[1]:
            yield (
                f"the boundary is {part:.2g} of what this handle should stand: the loop is later, or has other "
                "masses and springs, than pushes show; sessions go by the boundary"
            )
    if found.resolution_error >= found.resolution > 0.0:
        yield "the places seen are not multiples of one step: the encoder's is told within a factor of 2"
    if found.resolution == 0.0:
        yield "no step of the encoder was seen: it is finer than the motion tells"


def limits_of(handle: Handle, damping: float, period: float) -> tuple[str, ...]:
    """Return the changes that would raise the stiffness limit at this damping, the most effective first."""
    limit = stiffness_limit(handle, damping, period)
    if limit <= 0.0:
        return ("damping: no stiffness is stable with it.",)
    delay, lag = 1e3 * handle.delay, 1e3 * handle.velocity_lag
    changes: tuple[tuple[str, Handle, float, float], ...] = (
        (f"delay: without its {delay:.3g} ms", replace(handle, delay=0.0), damping, period),
        (
            f"velocity: without the lag of its estimate, {lag:.3g} ms",
            replace(handle, velocity_lag=0.0),
            damping,
            period,
        ),
        (f"sampling: at {2.0 / period:g} Hz in place of {1.0 / period:g} Hz", handle, damping, 0.5 * period),
        (f"damping: with twice the {damping:.3g} N s/m of the contact", handle, 2.0 * damping, period),
    )
    gains = [(words, stiffness_limit(other, b, time) / limit) for words, other, b, time in changes]
    ranked = sorted(gains, key=lambda pair: -pair[1])
    return tuple(f"{words} it would be {gain:.1f} times as stiff." for words, gain in ranked if gain > _SLIGHTLY)


# --- parameter file ---------------------------------------------------------------------------------------------------

_KEYS = {"mass": "mass_kg", "damping": "damping_ns_per_m", "friction": "friction_force_n"}
_KEYS |= {"offset": "offset_force_n", "delay": "delay_s"}
_RESOLUTION = "resolution_m"


def tables_of(tuned: Tuned, settings: Autotune, rate: float, provenance: Provenance) -> dict[str, Any]:
    """Return the tables of the file."""
    return {
        "provenance": asdict(provenance),
        "suggestion": {
            "rate_hz": rate,
            "friction_force_n": settings.force,
            "stiffness_n_per_m": tuned.stiffness,
            "damping_ns_per_m": tuned.suggestion.damping,
            "settling_s": tuned.suggestion.settling,
            "reasons": list(tuned.suggestion.reasons),
            "limited_by": list(tuned.limited_by),
        },
        "axis": {one.identified.axis: axis_table(one, rate, tuned.handle.velocity_lag) for one in tuned.axes},
    }


def axis_table(axis: TunedAxis, rate: float, velocity_lag: float) -> dict[str, Any]:
    """Return the table of an axis."""
    found, fit, boundary = axis.identified, axis.identified.fit, axis.boundary
    intervals = {_KEYS[name]: list(fit.interval(name)) for name in NAMES}
    if found.resolution > 0.0:
        spread = min(found.resolution_error, 0.5 * found.resolution)
        intervals[_RESOLUTION] = [found.resolution - spread, found.resolution + found.resolution_error]
    table: dict[str, Any] = {
        **{_KEYS[name]: float(getattr(fit.plant, name)) for name in NAMES},
        _RESOLUTION: found.resolution,
        "residual_m": fit.residual,
        "doubts": list(axis.doubts),
        "interval_95": intervals,
    }
    if boundary is not None:  # without unknown values
        known = {
            "stiffness_n_per_m": boundary.stiffness,
            "stable_stiffness_n_per_m": boundary.stable or None,
            "unstable_stiffness_n_per_m": boundary.unstable if boundary.unstable < math.inf else None,
        }
        table["boundary"] = {
            "rate_hz": rate,
            "damping_ns_per_m": boundary.damping,
            "velocity_lag_s": velocity_lag,
            "expected_stiffness_n_per_m": boundary.expected,
            "trials": len(boundary.trials),
            "doubt": boundary.doubt,
            **{name: value for name, value in known.items() if value is not None},
        }
    return table
