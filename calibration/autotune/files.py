"""Parameter file of a tuned device, with units in the keys.

Sessions read it with `haptics.design.measured`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from calibration.autotune.answers import NAMES
from calibration.autotune.boundary import Boundary
from calibration.autotune.procedure import Tuned, TunedAxis
from calibration.autotune.settings import Autotune
from calibration.parameters.parameters import Provenance

_KEYS = {
    "mass": "mass_kg",
    "damping": "damping_ns_per_m",
    "friction": "friction_force_n",
    "offset": "offset_force_n",
    "delay": "delay_s",
}
_RESOLUTION = "resolution_m"


def tables_of(tuned: Tuned, wish: Autotune, rate: float, provenance: Provenance) -> dict[str, Any]:
    """Return the tables of the file."""
    return {
        "provenance": asdict(provenance),
        "suggestion": {
            "rate_hz": rate,
            "friction_force_n": wish.force,
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
    found, fit = axis.identified, axis.identified.fit
    table: dict[str, Any] = {_KEYS[name]: float(getattr(fit.plant, name)) for name in NAMES}
    table[_RESOLUTION] = found.resolution
    table["residual_m"] = fit.residual
    table["doubts"] = list(axis.doubts)
    intervals = {_KEYS[name]: list(fit.interval(name)) for name in NAMES}
    if found.resolution > 0.0:
        spread = min(found.resolution_error, 0.5 * found.resolution)
        intervals[_RESOLUTION] = [found.resolution - spread, found.resolution + found.resolution_error]
    table["interval_95"] = intervals
    if axis.boundary is not None:
        table["boundary"] = boundary_table(axis.boundary, rate, velocity_lag)
    return table


def boundary_table(boundary: Boundary, rate: float, velocity_lag: float) -> dict[str, Any]:
    """Return the table of a stability limit, without unknown values."""
    table: dict[str, Any] = {
        "rate_hz": rate,
        "damping_ns_per_m": boundary.damping,
        "velocity_lag_s": velocity_lag,
        "expected_stiffness_n_per_m": boundary.expected,
        "trials": len(boundary.trials),
        "doubt": boundary.doubt,
    }
    if boundary.stiffness is not None:
        table["stiffness_n_per_m"] = boundary.stiffness
    if boundary.stable > 0.0:
        table["stable_stiffness_n_per_m"] = boundary.stable
    if boundary.unstable < float("inf"):
        table["unstable_stiffness_n_per_m"] = boundary.unstable
    return table
