"""A virtual backdrivable joystick: the commanded force moves the handle, against a hand.

The handle is a mass with a little viscous friction of its own, and dry friction where that is wished. Between the
command and the force lie a delay and the motors' saturation; between the handle and the sample an encoder; at the edge
of the workspace stiff end-stops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.compensation import Compensated, CompensationSettings, compensation_of
from devices.friction import AXIS_LAWS, AxisLaws, axis_friction, law_records, parse_friction
from devices.velocity import velocity_lag
from devices.virtual.device import MAX_SAMPLE_AGE, PlantSettings, VirtualDevice, split
from devices.virtual.plant import PLANT_FIELDS, encode, expect_hand, pull_handle, require_stable, settle_hand
from haptics._jit import kernel
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec, Vector
from haptics.envelope import limit_norm
from haptics.errors import ConfigurationError
from haptics.law import require_solvable
from haptics.settings import bounded, free

NAME = "virtual-joystick"

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
        ("rubs", "<i8"),
        AXIS_LAWS,
    ]
)
"""The whole joystick in one record."""


@dataclass(frozen=True)
class JoystickSettings(CompensationSettings, PlantSettings):
    """Settings of the virtual joystick, besides those in `PlantSettings` and `CompensationSettings`.

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
    friction : mapping or None
        Its own dry friction: tables ``x`` and ``y`` of `devices.friction.AxisFriction`.
    """

    mass: float = bounded(0.2, minimum=0.01, maximum=20.0, unit="kg", doc="moving mass")
    damping: float = bounded(1.0, minimum=0.0, maximum=100.0, unit="N s/m", doc="own viscous friction")
    resolution: float = bounded(10e-6, minimum=0.0, maximum=1e-3, unit="m", doc="step of the encoder")
    delay: float = bounded(0.5e-3, minimum=0.0, maximum=0.1, unit="s", doc="delay from command to force")
    max_force: float = bounded(10.0, above=0.0, maximum=100.0, unit="N", doc="saturation of the force")
    watchdog: float = bounded(0.02, above=0.0, maximum=10.0, unit="s", doc="no force after so long without a command")
    friction: Any = free(None, "tables x and y of levels [N]", "own dry friction, by axis and direction")

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

    @property
    def axis_laws(self) -> AxisLaws | None:
        """Its own dry friction, None where there is none."""
        return parse_friction(self.friction)

    def __post_init__(self) -> None:
        super().__post_init__()
        for laws in self.axis_laws or ():
            for law in laws:
                require_solvable(law, self.substep / self.mass, "a larger device.mass, or a smaller device.substep")
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
        velocity = s.handle_velocity[i] + s.substep * force / s.mass
        if s.rubs != 0:  # dry friction last of all, and implicitly: a handle that it holds does not creep
            law = s.axis_laws[i, 0 if velocity >= 0.0 else 1]
            _, velocity = axis_friction(law, velocity, s.substep / s.mass)
        s.handle_velocity[i] = velocity
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


class VirtualJoystick(Compensated, VirtualDevice):
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
        self._compensation = compensation_of(own, NAME, "", self._clock.period, own.resolution)

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet."""
        own, added = self.settings, self._compensation
        return DeviceSpec(
            name=NAME,
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
            max_sample_age=MAX_SAMPLE_AGE,
            watchdog=own.watchdog,
            position_resolution=own.resolution,
            mass=own.mass,
            damping=added.left_of(own.damping) if added else own.damping,
            delay=own.delay,
            velocity_lag=velocity_lag(own, own.resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
        )

    def open(self) -> None:
        """Start the plant at time zero; nothing happens if it is running."""
        if self._compensation is not None:
            self._compensation.warm_up()
        super().open()

    def write(self, command: Vector) -> None:
        """Take a force, (2,) [N]; the motors add what friction takes away, where that is known and allowed.

        Raises
        ------
        DeviceFault
            If it is not finite.
        """
        super().write(command)
        if self._compensation is not None:
            self._command[:] = self._compensation.added_to(command, self._state.velocity)

    def close(self) -> None:
        """Leave the device without force and stop the plant; nothing happens if it is not running."""
        self.compensate(0.0)
        super().close()

    def _new_record(self) -> NDArray[Any]:
        record, own = np.zeros(1, JOYSTICK), self.settings
        self._common_fields(record, own.resolution)
        for name in ("mass", "damping", "max_force", "delay_steps", "watchdog_steps", "stop_damping"):
            record[name] = getattr(own, name)
        record["workspace_min"], record["workspace_max"] = own.workspace
        if own.axis_laws is not None:
            record["rubs"] = 1
            record["axis_laws"] = law_records(own.axis_laws)
        return record

    def _safe_command(self) -> tuple[float, float]:
        return 0.0, 0.0
