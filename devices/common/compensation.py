r"""Friction compensation: the motors add what a device's own friction takes away, as far as it is known.

The friction that acts on the handle is not measured but rendered: per axis a massless contact behind a spring and a
damper follows the measured motion under the identified law, by the exact implicit solution of Kikuuwe et al. 2006,
(38). While it slides its force is the law's at that speed; when the motion turns it changes sign over the travel of the
spring. So there is no sign function of a noisy velocity that could chatter at rest, and where the motion and the force
of the contact disagree, the motors brake.

What is added must never be more than what the friction takes, or the handle would move by itself:

- Of every level only a *share* is compensated. What is left is the smallest friction that the device can render.
- Where the command itself brakes the motion, that much of the rest is compensated too: the handle is then braked by
  the command alone.
- At rest the spring of the contact relaxes: a handle that is left alone gets no force.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.friction import AXIS_LAWS, axis_friction, law_kinds, law_records
from devices.common.friction_file import OwnFriction, read_own_friction
from haptics.friction.law import Law
from haptics.friction.laws import GaussianStribeck, Stribeck
from haptics.jit import kernel, merged_kernel
from haptics.parts import address_of_part, call_part
from haptics.settings import bounded, documented, string

TRAVEL = 2e-4
"""Way over which the force of the contact comes up, where the encoder is fine [m]."""

COUNTS = 20.0
"""The same way is at least so many counts of the encoder."""

LARGEST_DAMPING = 100.0
"""Of the contact [N s/m]: more would make a force of the noise of the velocity."""

STEEPNESS = 0.8
"""How near a falling law may come to the limit of a unique solution (15)."""

REST_SPEED = 1e-3
"""Slower motion lets the spring relax [m/s]."""

RELAXATION = 0.5
"""Time in which it does so at rest [s]: long enough for motion that stops and goes, and no force that stays."""

_LEAST_LEVEL = 0.01
"""The contact is as stiff as for this level at least [N]."""

COMPENSATION = np.dtype(
    [
        ("step", "<i8"),
        AXIS_LAWS,
        ("share", "<f8"),
        ("gain", "<f8"),
        ("period", "<f8"),
        ("stiffness", "<f8", (2,)),
        ("damping", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
        ("friction_force", "<f8", (2,)),
        ("command", "<f8", (2,)),
        ("force", "<f8", (2,)),
        ("total", "<f8", (2,)),
    ]
)
"""All of it in one record: where its part lies (``step``), the laws and the contact, whose force is ``friction_force``;
``force`` is what is added to a ``command``, ``total`` both together."""


@documented
@dataclass(frozen=True)
class CompensationSettings:
    """Settings of the friction compensation of a device."""

    friction_parameters: str = string(
        "", allowed="a file", doc="file of its own friction, from haptics calibrate friction --device; empty for none"
    )
    compensation: float = bounded(
        0.9, minimum=0.0, maximum=0.98, doc="fraction of its own friction that is compensated"
    )


@merged_kernel
def _relaxed(e: float, u: float, T: float) -> Any:
    """Return the displacement e [m] of the contact a period later, as far as it relaxes at rest."""
    return e * math.exp(-(1.0 - abs(u) / REST_SPEED) * T / RELAXATION) if abs(u) < REST_SPEED else e


@merged_kernel
def _restrained(f: float, command: float, share: float) -> Any:
    """Return how much of the friction f [N] to compensate under a command [N] along the same axis.

    A share of it, and of the rest as much as the command takes from the motion by itself.
    """
    against = max(-command if f > 0.0 else command, 0.0)
    return math.copysign(min(abs(f), share * abs(f) + against), f)


@functools.cache
def _part(kinds: tuple[int, ...]) -> Callable[..., None]:
    """Return the part that adds to ``command`` the friction of laws of these kinds."""
    friction = axis_friction(kinds)

    @merged_kernel
    def contact_force(s: Any, i: int, u: float) -> Any:
        """Friction f [N] of the massless contact of axis i, whose far end moves at u [m/s]; (38). It relaxes."""
        T, K, B, e = s.period, s.stiffness[i], s.damping[i], s.displacement[i]
        x = u + K / (B + T * K) * e
        f, v = friction(s.axis_laws[i, 0 if x >= 0.0 else 1], x, 1.0 / (B + T * K))
        e = e + T * u if v == 0.0 else (B * e + T * f) / (B + T * K)
        s.displacement[i] = _relaxed(e, u, T)
        s.friction_force[i] = f
        return f

    @kernel
    def add(s: Any, vx: float, vy: float) -> None:
        """Add the friction that acts at the velocity (vx, vy) [m/s]; once a period.

        With a gain of zero nothing is added, and the contact is forgotten.
        """
        for i in range(2):
            if s.gain == 0.0:
                s.displacement[i] = s.friction_force[i] = s.force[i] = 0.0
                s.total[i] = s.command[i]
            else:
                f = contact_force(s, i, vx if i == 0 else vy)
                s.force[i] = s.gain * _restrained(f, s.command[i], s.share)
                s.total[i] = s.command[i] + s.force[i]

    return add


@merged_kernel
def add_friction(added: Any, share: float, x: float, y: float, vx: float, vy: float) -> None:
    """Set ``added.total`` to a command (x, y) [N] and a `share` of what there is to add at (vx, vy) [m/s].

    Once a period. In a record without a part nothing is added.
    """
    if added.step == 0:
        added.total[0], added.total[1] = x, y
        return
    added.gain = min(max(share, 0.0), 1.0)
    added.command[0], added.command[1] = x, y
    call_part(added.step, added, vx, vy)


class Compensation:
    """What a device adds to its commands.

    Parameters
    ----------
    own : OwnFriction
        The device's friction.
    share : float
        Share of it to compensate.
    period : float
        Of a tick [s].
    resolution : float
        Smallest step of the position [m].
    """

    def __init__(self, own: OwnFriction, share: float, period: float, resolution: float) -> None:
        self._record = record = np.zeros(1, COMPENSATION)
        record["share"], record["period"] = share, period
        travel = max(TRAVEL, COUNTS * resolution)
        gentle = []
        for i, laws in enumerate(own.laws):
            stiffness = max(*(law.breakaway_force for law in laws), _LEAST_LEVEL) / travel
            fall = max(-law.slopes[0] for law in laws)
            damping = min(max(fall / STEEPNESS - period * stiffness, 0.0), LARGEST_DAMPING)
            record["stiffness"][0, i], record["damping"][0, i] = stiffness, damping
            slope = STEEPNESS * (damping + period * stiffness)
            gentle.append((_gentler(laws[0], slope), _gentler(laws[1], slope)))
        rendered = gentle[0], gentle[1]
        record["axis_laws"] = law_records(rendered)
        self._own, self._share, self._kinds = own, share, law_kinds(rendered)

    @property
    def record(self) -> NDArray[Any]:
        """All of it but where the part lies, (1,) of dtype `COMPENSATION`: what a device takes over into its own."""
        return self._record

    @functools.cached_property
    def address(self) -> int:
        """Where the part lies that adds to ``command``, compiled now if it never was."""
        return address_of_part(_part(self._kinds), COMPENSATION)

    @property
    def least_friction(self) -> float:
        """The smallest friction that the device can render [N]: what is left of its own."""
        return self._own.least_friction(self._share)

    def left_of(self, damping: float) -> float:
        """Return what can be counted on of the device's own `damping` [N s/m] under friction compensation."""
        return max(damping - self._own.viscosity, 0.0)


def _gentler(law: Law, slope: float) -> Law:
    """Return the law with its peak lowered until it falls by no more than `slope` [N s/m]: less is compensated."""
    if not isinstance(law, Stribeck | GaussianStribeck) or -law.slopes[0] <= slope:
        return law
    peak = (slope + law.viscosity) * law.stribeck_velocity / law.steepness
    return replace(law, static_force=law.kinetic_force + peak)


def compensation_of(
    settings: CompensationSettings, device: str, identity: str, period: float, resolution: float
) -> Compensation | None:
    """Return what a device with these settings adds to its commands, None where its friction is not known.

    Parameters
    ----------
    settings : CompensationSettings
        The device's.
    device, identity : str
        Whose friction it must be; see `devices.common.friction_file.read_own_friction`.
    period : float
        Of a tick [s].
    resolution : float
        Smallest step of the position [m].

    Raises
    ------
    ConfigurationError
        If the file cannot be used.
    """
    if not settings.friction_parameters:
        return None
    own = read_own_friction(settings.friction_parameters, device, identity)
    return Compensation(own, settings.compensation, period, resolution)
