"""A virtual backdrivable joystick: the commanded force moves the handle, against a hand.

The handle is a mass with a little viscous friction of its own. Between the command and the force lie a delay and the
motors' saturation; between the handle and the sample an encoder; at the edge of the workspace stiff end-stops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.velocity import velocity_lag
from devices.virtual.device import PlantSettings, VirtualDevice, split
from devices.virtual.plant import PLANT_FIELDS, encode, expect_hand, pull_handle, require_stable, settle_hand
from haptics._jit import kernel
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.envelope import limit_norm
from haptics.errors import ConfigurationError
from haptics.settings import bounded

STOP_STIFFNESS = 1e6
"""Stiffness of the end-stops [N/m]: 100 N push the handle a tenth of a millimetre into them."""

STOP_DAMPING_RATIO = 0.5
"""Damping of the end-stops relative to critical: the handle bounces off a little."""

_DELAY_LINE = 256

JOYSTICK = np.dtype(
    [
        *PLANT_FIELDS,
        ("damping", "<f8"),
        ("max_force", "<f8"),
        ("delay_steps", "<i8"),
        ("watchdog_steps", "<i8"),
        ("delay_line", "<f8", (_DELAY_LINE, 2)),
        ("stop_damping", "<f8"),
        ("workspace_min", "<f8", (2,)),
        ("workspace_max", "<f8", (2,)),
    ]
)
"""The whole joystick in one record."""


@dataclass(frozen=True)
class JoystickSettings(PlantSettings):
    """Settings of the virtual joystick, besides those in `PlantSettings`.

    Attributes
    ----------
    mass : float
        Moving mass [kg].
    damping : float
        Viscous friction of its own [N s/m].
    resolution : float
        Smallest step of the encoder [m]; 0 for a perfect one.
    delay : float
        From command to force [s], a whole number of substeps.
    max_force : float
        Largest force of the motors [N]; more is cut to this norm.
    watchdog : float
        After this long without a command the motors give no force any more [s].
    """

    mass: float = bounded(0.2, minimum=0.01, maximum=20.0, unit="kg", doc="moving mass")
    damping: float = bounded(1.0, minimum=0.0, maximum=100.0, unit="N s/m", doc="own viscous friction")
    resolution: float = bounded(10e-6, minimum=0.0, maximum=1e-3, unit="m", doc="step of the encoder")
    delay: float = bounded(0.5e-3, minimum=0.0, maximum=0.1, unit="s", doc="delay from command to force")
    max_force: float = bounded(10.0, above=0.0, maximum=100.0, unit="N", doc="saturation of the force")
    watchdog: float = bounded(0.02, above=0.0, maximum=10.0, unit="s", doc="no force after so long without a command")

    @property
    def delay_steps(self) -> int:
        """The delay in substeps."""
        return round(self.delay / self.substep)

    @property
    def watchdog_steps(self) -> int:
        """The time of the watchdog in substeps."""
        return max(round(self.watchdog / self.substep), 1)

    @property
    def stop_damping(self) -> float:
        """Damping of the end-stops [N s/m]."""
        return 2.0 * STOP_DAMPING_RATIO * math.sqrt(STOP_STIFFNESS * self.mass)

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = (_DELAY_LINE - 1) * self.substep
        whole = math.isclose(self.delay, self.delay_steps * self.substep, rel_tol=1e-9, abs_tol=1e-12)
        if not whole or self.delay_steps >= _DELAY_LINE:
            raise ConfigurationError(
                f"device.delay = {self.delay:g} s: must be a multiple of device.substep = {self.substep:g} s and "
                f"at most {longest:g} s."
            )


@kernel
def _stop_force(s: Any, i: int) -> float:
    """Force of the end-stops on coordinate `i` [N]: they push back, they do not hold on."""
    beyond = max(s.handle[i] - s.workspace_max[i], 0.0) + min(s.handle[i] - s.workspace_min[i], 0.0)
    force: float = -STOP_STIFFNESS * beyond - s.stop_damping * s.handle_velocity[i]
    if beyond > 0.0:
        return min(force, 0.0)
    if beyond < 0.0:
        return max(force, 0.0)
    return 0.0


@kernel
def _substep(s: Any, force_x: float, force_y: float) -> None:
    """Integrate one substep under the command (force_x, force_y) [N] that was given just before it."""
    now = s.steps % _DELAY_LINE
    s.delay_line[now, 0], s.delay_line[now, 1] = force_x, force_y
    then = (s.steps - s.delay_steps) % _DELAY_LINE
    for i in range(2):
        force = s.delay_line[then, i] + s.hand_force[i] + _stop_force(s, i) - s.damping * s.handle_velocity[i]
        s.handle_velocity[i] += s.substep * force / s.mass
    for i in range(2):
        s.handle[i] += s.substep * s.handle_velocity[i]
    s.steps += 1


@kernel
def _advance(record: Any, steps: int, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    s = record[0]
    expect_hand(s, x, y, push_x, push_y, grip)
    force_x, force_y, _ = limit_norm(s.command[0], s.command[1], s.max_force)
    count = steps - s.steps
    for k in range(count):
        pull_handle(s, k / count, 1.0 / (count * s.substep))
        if s.steps - s.commanded >= s.watchdog_steps:
            force_x, force_y = 0.0, 0.0
        _substep(s, force_x, force_y)
    settle_hand(s)
    encode(s)


class VirtualJoystick(VirtualDevice):
    """A joystick of the impedance kind: motion in the sample, force in the command.

    Parameters
    ----------
    settings : mapping, optional
        Those of `JoystickSettings`, and a table ``hand`` (`devices.virtual.hands.make_hand`).
    clock : Clock, optional
        The run's clock; without one every ``read`` advances by one period.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    advance = staticmethod(_advance)

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings, hand = split(JoystickSettings, settings)
        own = self.settings
        stiffness = STOP_STIFFNESS + hand.stiffness
        require_stable(own.mass, stiffness, own.stop_damping + hand.damping + own.damping, own.substep)
        super().__init__(own, hand, clock)

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet."""
        own = self.settings
        return DeviceSpec(
            name="virtual-joystick",
            causality=Causality.IMPEDANCE,
            identity=f"virtual, seed {own.seed}",
            rate_min=100.0,
            rate_max=4000.0,
            workspace_min=own.workspace.lower,
            workspace_max=own.workspace.upper,
            max_force=own.max_force,
            max_force_rate=10_000.0,
            max_speed=2.0,
            max_acceleration=own.max_force / own.mass,
            max_sample_age=5e-3,
            watchdog=own.watchdog,
            position_resolution=own.resolution,
            mass=own.mass,
            damping=own.damping,
            delay=own.delay,
            velocity_lag=velocity_lag(own, own.resolution, self._clock.period),
        )

    def _new_record(self) -> NDArray[Any]:
        record, own = np.zeros(1, JOYSTICK), self.settings
        self._common_fields(record, own.resolution)
        for name in ("mass", "damping", "max_force", "delay_steps", "watchdog_steps", "stop_damping"):
            record[name] = getattr(own, name)
        record["workspace_min"], record["workspace_max"] = own.workspace
        return record

    def _safe_command(self) -> tuple[float, float]:
        return 0.0, 0.0
