"""Comparison of two measurements of the device's friction by their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibration.parameters import Found, ParameterFile

_LEVELS = ("coulomb", "static", "viscosity", "offset")
"""Name prefixes of parameters that are friction levels, as opposed to Stribeck velocities."""


@dataclass(frozen=True)
class Change:
    """Earlier and current value of a friction parameter.

    Attributes
    ----------
    axis, name : str
        Axis and parameter.
    earlier, now : float
        Values in the SI units of the parameter: force [N] or viscosity [N s/m].
    doubt : float
        Half-width of the 95 % interval of the difference.
    """

    axis: str
    name: str
    earlier: float
    now: float
    doubt: float

    @property
    def beyond(self) -> bool:
        """Whether the difference is larger than the measurement uncertainty."""
        return abs(self.now - self.earlier) > self.doubt

    @property
    def words(self) -> str:
        """Description of the change."""
        unit = "N s/m" if self.name.startswith("viscosity") else "N"
        return (
            f"{self.name.replace('_', ' ')} of {self.axis} is {self.now:.3g} {unit} and was {self.earlier:.3g} {unit} "
            f"(a difference of up to {self.doubt:.2g} {unit} may be chance)"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the change as a journal entry."""
        return {**asdict(self), "beyond": self.beyond}


def changes(earlier: ParameterFile, now: ParameterFile) -> list[Change]:
    """Return the changes of all friction levels for which both measurements have an interval."""
    then = {joint.name: joint.friction for joint in earlier.joints}
    return [
        change
        for joint in now.joints
        if joint.friction is not None and (old := then.get(joint.name)) is not None
        for change in _of_axis(joint.name, old, joint.friction)
    ]


def _of_axis(axis: str, earlier: Found, now: Found) -> list[Change]:
    both = [name for name in now.values if name in earlier.values and name.startswith(_LEVELS)]
    return [
        Change(
            axis,
            name,
            float(earlier.values[name]),
            float(now.values[name]),
            math.hypot(_half(earlier.intervals, name), _half(now.intervals, name)),
        )
        for name in both
        if name in earlier.intervals and name in now.intervals
    ]


def _half(intervals: Mapping[str, tuple[float, float]], name: str) -> float:
    low, high = intervals[name]
    return 0.5 * (high - low)
