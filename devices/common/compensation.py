"""Friction compensation: the motors add a force equal to the identified friction of the device.

The friction that acts on the handle is not measured but rendered. On every axis a massless contact behind a spring and
a damper follows the measured motion under the identified law, by the exact implicit solution of Kikuuwe et al. 2006,
(38). While it slides, its force is the force of the law at that speed. When the motion reverses, the force changes its
sign over the travel of the spring. This avoids a sign function of a noisy velocity, which would chatter at rest. Where
the motion and the force of the contact have opposite directions, the motors brake.

The added force must never exceed the friction, or the handle would move by itself:

- Only a fraction (`share`) of every level is compensated. The residual friction is the smallest friction that the
  device can render.
- Where the command itself brakes the motion, the same amount of the residual friction is compensated too, so that only
  the command brakes the handle.
- At rest the spring of the contact relaxes, so that a released handle receives no force.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.friction import AXIS_LAWS, HandleFriction, axis_friction, law_kinds, law_records, read_own_friction
from haptics.friction.laws import GaussianStribeck, Law, Stribeck
from haptics.jit import address_of_part, call_part, kernel, merged_kernel
from haptics.records import fields
from haptics.settings import bounded, documented, string

TRAVEL = 2e-4
"""Displacement over which the force of the contact builds up with a fine encoder [m]."""

COUNTS = 20.0
"""Minimum of this displacement in encoder counts."""

_LARGEST_DAMPING = 100.0  # maximum damping of the contact [N s/m]; more would amplify the noise of the velocity

STEEPNESS = 0.8
"""Maximum fall of a law as a fraction of the limit of a unique solution (15)."""

_REST_SPEED = 1e-3  # speed below which the spring relaxes [m/s]

_RELAXATION = 0.5  # time constant of the relaxation at rest [s]; long enough for stop-and-go motion

_LEAST_LEVEL = 0.01  # minimum level for which the stiffness of the contact is designed [N]

COMPENSATION = np.dtype(
    [
        ("step", "<i8"),
        AXIS_LAWS,
        *fields("<f8", "share gain period"),
        *fields("<f8", "stiffness damping displacement friction_force command force total", 2),
    ]
)
"""Record of the compensation.

``step`` is the address of its part. The laws and the contact, whose force is ``friction_force``, follow. ``force`` is
added to a ``command``, and ``total`` is the sum of both.
"""


@documented
@dataclass(frozen=True)
class CompensationSettings:
    """Settings of the friction compensation of a device."""

    friction_parameters: str = string(
        "",
        allowed="a file",
        doc="file with the friction of the device, from haptics calibrate friction --device; empty for none",
    )
    compensation: float = bounded(
        0.9, minimum=0.0, maximum=0.98, doc="fraction of the device friction that is compensated"
    )


@functools.cache
def _part(kinds: tuple[int, ...]) -> Callable[..., None]:
    """Return the part that adds the friction of laws of these kinds to ``command``."""
    friction = axis_friction(kinds)

    @kernel
    def add(s: Any, vx: float, vy: float) -> None:
        """Add the friction at the velocity (vx, vy) [m/s]; call once per period.

        A massless contact on each axis, whose far end moves at u, has the friction f (38). Its displacement e relaxes
        at rest. A share of f is compensated, plus as much of the residual friction as the command itself brakes. With a
        gain of zero no force is added, and the contact is reset.
        """
        for i in range(2):
            if s.gain == 0.0:
                s.displacement[i] = s.friction_force[i] = s.force[i] = 0.0
                s.total[i] = s.command[i]
                continue
            u = vx if i == 0 else vy
            T, K, B, e = s.period, s.stiffness[i], s.damping[i], s.displacement[i]
            x = u + K / (B + T * K) * e
            f, v = friction(s.axis_laws[i, 0 if x >= 0.0 else 1], x, 1.0 / (B + T * K))
            e = e + T * u if v == 0.0 else (B * e + T * f) / (B + T * K)
            if abs(u) < _REST_SPEED:
                e *= math.exp(-(1.0 - abs(u) / _REST_SPEED) * T / _RELAXATION)
            s.displacement[i], s.friction_force[i] = e, f
            against = max(-s.command[i] if f > 0.0 else s.command[i], 0.0)
            s.force[i] = s.gain * math.copysign(min(abs(f), s.share * abs(f) + against), f)
            s.total[i] = s.command[i] + s.force[i]

    return add


@merged_kernel
def add_friction(added: Any, share: float, x: float, y: float, vx: float, vy: float) -> None:
    """Set ``added.total`` to a command (x, y) [N] plus a `share` of the compensation at (vx, vy) [m/s].

    Call once per period. Without a compiled part in the record no force is added.
    """
    if added.step == 0:
        added.total[0], added.total[1] = x, y
        return
    added.gain = min(max(share, 0.0), 1.0)
    added.command[0], added.command[1] = x, y
    call_part(added.step, added, vx, vy)


class Compensation:
    """Friction compensation of a device.

    Parameters
    ----------
    own : HandleFriction
        Identified friction of the device.
    share : float
        Fraction of it to compensate.
    period : float
        Period of a tick [s].
    resolution : float
        Smallest step of the position [m].

    Attributes
    ----------
    record : (1,) structured array
        Compensation record of dtype `COMPENSATION` for a device, without the address of the part.
    least_friction : float
        Smallest friction that the device can render [N], equal to its residual friction in the worst case including
        the uncertainty of the levels.
    """

    def __init__(self, own: HandleFriction, share: float, period: float, resolution: float) -> None:
        self.record: NDArray[Any] = np.zeros(1, COMPENSATION)
        record = self.record
        record["share"], record["period"] = share, period
        travel = max(TRAVEL, COUNTS * resolution)
        gentle = []
        for i, laws in enumerate(own.laws):
            stiffness = max(*(law.breakaway_force for law in laws), _LEAST_LEVEL) / travel
            fall = max(-law.slopes[0] for law in laws)
            damping = min(max(fall / STEEPNESS - period * stiffness, 0.0), _LARGEST_DAMPING)
            record["stiffness"][0, i], record["damping"][0, i] = stiffness, damping
            slope = STEEPNESS * (damping + period * stiffness)
            gentle.append((_gentler(laws[0], slope), _gentler(laws[1], slope)))
        rendered = gentle[0], gentle[1]
        record["axis_laws"] = law_records(rendered)
        own_laws = [law for laws in own.laws for law in laws]
        self.least_friction = (1.0 - share) * max(law.breakaway_force for law in own_laws) + own.doubt
        self._viscosity, self._kinds = max(law.slopes[1] for law in own_laws), law_kinds(rendered)

    @functools.cached_property
    def address(self) -> int:
        """Address of the part that modifies ``command``, compiled on first use."""
        return address_of_part(_part(self._kinds), COMPENSATION)

    def left_of(self, damping: float) -> float:
        """Return the guaranteed device damping [N s/m] that remains under friction compensation."""
        return max(damping - self._viscosity, 0.0)


def _gentler(law: Law, slope: float) -> Law:
    """Return the law with its peak lowered so that it falls by at most `slope` [N s/m].

    This reduces the compensation.
    """
    if not isinstance(law, Stribeck | GaussianStribeck) or -law.slopes[0] <= slope:
        return law
    peak = (slope + law.viscosity) * law.stribeck_velocity / law.steepness
    return replace(law, static_force=law.kinetic_force + peak)


def compensation_of(
    settings: CompensationSettings, device: str, identity: str, period: float, resolution: float
) -> Compensation | None:
    """Return the friction compensation for these settings, or None if the friction is unknown.

    Parameters
    ----------
    settings : CompensationSettings
        Settings of the device.
    device, identity : str
        Owner of the friction; see `devices.common.friction.read_own_friction`.
    period : float
        Period of a tick [s].
    resolution : float
        Smallest step of the position [m].

    Raises
    ------
    ConfigurationError
        If the file is invalid.
    """
    if not settings.friction_parameters:
        return None
    own = read_own_friction(settings.friction_parameters, device, identity)
    return Compensation(own, settings.compensation, period, resolution)
