"""Motion of the handle of an impedance device by its motors, with recording.

The handle must be free: a position controller follows the reference of `calibration.motions.excitation`, and its forces
move the handle against its friction. Every round is a separate motion (`haptics.rendering.motion`), bounded by the
safety envelope and identified in the recording by its label.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.motions import Mover, Procedure, drive
from calibration.motions.excitation import Excitation, go_to, hold_still, plan
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.rendering.motion import Motion, reference

AXES = ("x", "y")

_QUICKNESS = 0.25
"""Product of the controller's natural frequency and its delay, far below the stability limit."""

_DAMPING_RATIO, _MEMORY = 0.7, 0.1
"""Damping ratio of the controller, and relative speed of its integrator."""

_STRENGTH = 0.8
"""Maximum fraction of the device's force that is used."""

_ASTRAY = 0.02
"""Maximum following error [m]."""

_RACING = 0.3
"""Margin of the speed limit above the fastest stroke [m/s]."""

_UNKNOWN_MASS, _UNKNOWN_DELAY = 0.3, 2e-3


@dataclass(frozen=True)
class Gains:
    """PID gains of a position controller for a mass, with the stiffness that its delay permits.

    Attributes
    ----------
    stiffness, damping, memory : float
        Proportional [N/m], derivative [N s/m] and integral gain [N/(m s)].
    """

    stiffness: float
    damping: float
    memory: float

    @classmethod
    def of(cls, spec: DeviceSpec, period: float) -> Gains:
        """Return the gains for a device that is sampled once per `period` [s]."""
        mass = spec.mass or _UNKNOWN_MASS
        delay = (_UNKNOWN_DELAY if spec.delay is None else spec.delay) + period
        natural_frequency = _QUICKNESS / delay
        stiffness = mass * natural_frequency**2
        return cls(stiffness, 2.0 * _DAMPING_RATIO * mass * natural_frequency, _MEMORY * natural_frequency * stiffness)


def excite(
    mover: Mover,
    excitation: Excitation,
    folder: Path,
    facts: dict[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Path:
    """Move the handle of a device and record it.

    Parameters
    ----------
    mover : Mover
        Impedance device, with no hand on its handle.
    excitation : Excitation
        Settings of the motions.
    folder : Path
        Folder of the recording; must not exist.
    facts : dict, optional
        Additional metadata of the recording.
    progress : callable
        Callback with the elapsed time [s].

    Returns
    -------
    Path
        Folder of the recording.

    Raises
    ------
    ConfigurationError
        If the device accepts no forces, or cannot perform the motions.
    HapticError
        As in `calibration.motions.drive`; also if the handle does not follow or runs away. The recording is kept.
    """
    spec = mover.spec
    require_free(spec)
    drive(mover, rounds(excitation, spec, mover.period), folder, facts, progress, settings={"excitation": excitation})
    return folder


def round_label(axis: str, number: int) -> str:
    """Return the label of the motion of a round of an axis, numbered from 1."""
    return f"{axis} {number}"


def rounds(excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Yield the motions of an excitation: hold, motion to the middle, and each round of each axis.

    Raises
    ------
    ConfigurationError
        If the limits of the device do not permit the requested speeds.
    """
    whole, gains = plan(excitation, spec, period), Gains.of(spec, period)
    motion = functools.partial(
        Motion,
        Causality.IMPEDANCE,
        bound=_STRENGTH * spec.max_force,
        max_error=_ASTRAY,
        max_speed=excitation.fastest + _RACING,
        period=period,
        stiffness=gains.stiffness,
        damping=gains.damping,
        integration=gains.memory,
    )
    held = yield from hold_still(motion, period)
    yield from go_to(motion, held, whole.position[0], period)
    for axis, parts in zip(AXES, whole.parts, strict=True):
        for number, part in enumerate(parts, 1):
            yield motion(reference(whole.position[part], whole.velocity[part]), label=round_label(axis, number))


def require_free(spec: DeviceSpec) -> None:
    """Raise `ConfigurationError` unless the device accepts forces and operates without a hand on it."""
    if spec.causality is not Causality.IMPEDANCE:
        raise ConfigurationError(
            f"{spec.name} is an admittance device and does not report its motor forces: record its joints and give "
            "the file with --data."
        )
    if spec.dead_man != "none":
        raise ConfigurationError(
            f"{spec.name} gives force only while a {spec.dead_man} is held, and nobody may hold the handle meanwhile."
        )
