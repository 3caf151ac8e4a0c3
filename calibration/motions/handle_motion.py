"""Moving the handle of an impedance device by its own motors, and recording it.

Nobody holds the handle: a position controller follows the reference of `calibration.motions.excitation`, and its forces
are what moves the handle against its friction. Every round is a motion of its own (`haptics.rendering.motion`), which
the envelope bounds; whoever reads the recording finds it by its label.
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
"""Natural frequency of the controller times its delay: far from where the delay would make it swing."""

_DAMPING_RATIO, _MEMORY = 0.7, 0.1
"""Of the controller: damping relative to critical, and how slow its integrator is."""

_STRENGTH = 0.8
"""Part of the device's force that is used at most."""

_ASTRAY = 0.02
"""A handle farther from where it should be does not follow [m]."""

_RACING = 0.3
"""A handle that is so much faster than any stroke runs away [m/s]."""

_UNKNOWN_MASS, _UNKNOWN_DELAY = 0.3, 2e-3


@dataclass(frozen=True)
class Gains:
    """PID gains of a position controller for a mass, with as much stiffness as its delay allows.

    Attributes
    ----------
    stiffness, damping, memory : float
        Force per error [N/m], per error of the velocity [N s/m], and rate at which an error adds up [N/(m s)].
    """

    stiffness: float
    damping: float
    memory: float

    @classmethod
    def of(cls, spec: DeviceSpec, period: float) -> Gains:
        """Return the gains for a device that is looked at once per `period` [s]."""
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
        A device of the impedance kind, nobody's hand on it.
    excitation : Excitation
        The motions.
    folder : Path
        The recording, which does not exist yet.
    facts : dict, optional
        What the recording is to say besides.
    progress : callable
        Gets the time that has gone by [s].

    Returns
    -------
    Path
        The recording.

    Raises
    ------
    ConfigurationError
        If the device takes no forces, or cannot do the motions.
    HapticError
        As of `calibration.motions.drive`; also if the handle does not follow or runs away. What was recorded stays.
    """
    spec = mover.spec
    require_free(spec)
    drive(mover, rounds(excitation, spec, mover.period), folder, facts, progress, settings={"excitation": excitation})
    return folder


def round_label(axis: str, number: int) -> str:
    """Return what the motion of a round of an axis is called, the first one being number 1."""
    return f"{axis} {number}"


def rounds(excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Give the motions of an excitation: hold, go to the middle, and each round of each axis.

    Raises
    ------
    ConfigurationError
        If the device leaves no room for the speeds that are asked for.
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
    """Raise `ConfigurationError` if a device takes no forces, or none while nobody holds it."""
    if spec.causality is not Causality.IMPEDANCE:
        raise ConfigurationError(
            f"{spec.name} is an admittance device and does not report its motor forces: record its joints and give "
            "the file with --data."
        )
    if spec.dead_man != "none":
        raise ConfigurationError(
            f"{spec.name} gives force only while a {spec.dead_man} is held, and nobody may hold the handle meanwhile."
        )
