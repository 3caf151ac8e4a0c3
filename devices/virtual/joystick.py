"""Virtual backdrivable joystick: the commanded force moves the handle against a hand.

The handle is a mass with some viscous friction and optional dry friction. The force follows the command with a delay
and the saturation of the motors. An encoder measures the handle. Stiff end-stops limit the workspace.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.compensation import COMPENSATION, CompensationSettings, add_friction, compensation_of
from devices.common.friction import AXIS_LAWS, AxisLaws, axis_friction, law_kinds, law_records, parse_friction
from devices.common.kernels import quantise
from devices.common.settings import velocity_lag
from devices.virtual import device as plant
from devices.virtual.device import PlantSettings, VirtualDevice
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.friction.laws import require_solvable
from haptics.jit import kernel, merged_kernel
from haptics.records import fields
from haptics.rendering.envelope import limit_norm
from haptics.settings import bounded, documented, unrestricted

# --- kernels ----------------------------------------------------------------------------------------------------------

STOP_STIFFNESS = 1e6
"""Stiffness of the end-stops [N/m]; 100 N push the handle 0.1 mm into them."""

DELAY_LINE = 256

JOYSTICK = np.dtype(
    [
        *plant.PLANT_FIELDS,
        *fields("<f8", "damping max_force"),
        *fields("<i8", "delay_steps watchdog_steps"),
        ("delay_line", "<f8", (DELAY_LINE, 2)),
        ("stop_damping", "<f8"),
        *fields("<f8", "workspace_min workspace_max", 2),
        AXIS_LAWS,
        ("compensation", COMPENSATION),
    ]
)
"""Record of the joystick; ``acting`` is the motor force including friction compensation [N]."""


@merged_kernel
def stop_force(s: Any, i: int) -> Any:
    """Return the force of the end-stops on coordinate `i` [N]; it is never attractive."""
    beyond = max(s.handle[i] - s.workspace_max[i], 0.0) + min(s.handle[i] - s.workspace_min[i], 0.0)
    force = -STOP_STIFFNESS * beyond - s.stop_damping * s.handle_velocity[i]
    if beyond > 0.0:
        return min(force, 0.0)
    if beyond < 0.0:
        return max(force, 0.0)
    return 0.0


@functools.cache
def take_joystick(kinds: tuple[int, ...]) -> Callable[..., None]:
    """Return the part that reads a sample (`devices.virtual.device.taking`), for dry friction of these kinds."""
    friction = axis_friction(kinds)

    @merged_kernel
    def advance(s: Any, steps: int) -> None:
        force_x, force_y, _ = limit_norm(s.acting[0], s.acting[1], s.max_force)
        count = steps - s.steps
        for k in range(count):
            plant.pull_handle(s, k / count, 1.0 / (count * s.substep))
            if s.steps - s.commanded >= s.watchdog_steps:
                force_x, force_y = 0.0, 0.0
            now, then = s.steps % DELAY_LINE, (s.steps - s.delay_steps) % DELAY_LINE
            s.delay_line[now, 0], s.delay_line[now, 1] = force_x, force_y
            for i in range(2):
                force = s.delay_line[then, i] + s.hand_force[i] + stop_force(s, i) - s.damping * s.handle_velocity[i]
                # Dry friction comes last and is implicit, so that a sticking handle does not creep.
                free = s.handle_velocity[i] + s.substep * force / s.mass
                _, s.handle_velocity[i] = friction(s.axis_laws[i, 0 if free >= 0.0 else 1], free, s.substep / s.mass)
            for i in range(2):
                s.handle[i] += s.substep * s.handle_velocity[i]
            s.steps += 1
        for i in range(2):
            s.position[i] = quantise(s.handle[i], s.resolution)
        plant.estimate_velocity(s)

    return plant.taking(advance)


@kernel
def give_joystick(s: Any, x: float, y: float) -> None:
    """Process a force command [N] and add friction compensation, if enabled."""
    if not plant.accept(s, x, y):
        return
    add_friction(s.compensation, s.assistance, x, y, s.velocity[0], s.velocity[1])
    s.acting[0], s.acting[1] = s.compensation.total[0], s.compensation.total[1]


# --- device -----------------------------------------------------------------------------------------------------------

NAME = "virtual-joystick"

_STOP_DAMPING_RATIO = 0.5  # damping ratio of the end-stops; the handle rebounds slightly


@documented
@dataclass(frozen=True)
class JoystickSettings(CompensationSettings, PlantSettings):
    """Settings of the virtual joystick, in addition to `PlantSettings` and `CompensationSettings`."""

    mass: float = bounded(0.2, minimum=0.01, maximum=20.0, unit="kg", doc="moving mass")
    damping: float = bounded(1.0, minimum=0.0, maximum=100.0, unit="N s/m", doc="viscous friction of the device")
    resolution: float = bounded(
        10e-6, minimum=0.0, maximum=1e-3, unit="m", doc="step of the encoder; 0 for a perfect one"
    )
    delay: float = bounded(
        0.5e-3, minimum=0.0, maximum=0.1, unit="s", doc="delay from command to force, a whole number of substeps"
    )
    max_force: float = bounded(10.0, above=0.0, maximum=100.0, unit="N", doc="largest norm of the force of the motors")
    watchdog: float = bounded(
        0.02, above=0.0, maximum=10.0, unit="s", doc="time without a command after which the force is zero"
    )
    friction: Any = unrestricted(
        None, "tables x and y of levels [N]", doc="dry friction of the device, by axis and direction"
    )

    @property
    def delay_steps(self) -> int:
        """Delay in substeps."""
        return round(self.delay / self.substep)

    @property
    def stop_damping(self) -> float:
        """Damping of the end-stops [N s/m]."""
        return 2.0 * _STOP_DAMPING_RATIO * math.sqrt(STOP_STIFFNESS * self.mass)

    @functools.cached_property
    def axis_laws(self) -> AxisLaws | None:
        """Intrinsic dry friction, or None."""
        return parse_friction(self.friction)

    def __post_init__(self) -> None:
        super().__post_init__()
        for laws in self.axis_laws or ():
            for law in laws:
                require_solvable(law, self.substep / self.mass, "a larger device.mass, or a smaller device.substep")
        longest = (DELAY_LINE - 1) * self.substep
        whole = math.isclose(self.delay, self.delay_steps * self.substep, rel_tol=1e-9, abs_tol=1e-12)
        if not whole or self.delay_steps >= DELAY_LINE:
            raise ConfigurationError(
                f"device.delay = {self.delay:g} s: must be a multiple of device.substep = {self.substep:g} s and "
                f"at most {longest:g} s."
            )


class VirtualJoystick(VirtualDevice):
    """Virtual impedance joystick: samples contain the motion, commands are forces.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `JoystickSettings`, and a table ``hand`` (`devices.virtual.hands.registry.make_hand`).
    clock : Clock, optional
        Clock of the run; without a clock every ``read`` advances by one period.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        own, hand = plant.split(JoystickSettings, settings)
        self.settings = own
        stiffness = STOP_STIFFNESS + hand.stiffness
        plant.require_stable(own.mass, stiffness, own.stop_damping + hand.damping + own.damping, own.substep)
        period = own.period if clock is None else clock.period
        self._compensation = compensation_of(own, NAME, "", period, own.resolution)
        super().__init__(own, hand, clock)

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device."""
        own, added = self.settings, self._compensation
        return DeviceSpec(
            name=NAME,
            causality=Causality.IMPEDANCE,
            identity=f"virtual, seed {own.seed}",
            rate_min=100.0,
            rate_max=8000.0,
            workspace_min=own.workspace.lower,
            workspace_max=own.workspace.upper,
            max_force=own.max_force,
            max_force_rate=10_000.0,
            max_speed=2.0,
            max_acceleration=own.max_force / own.mass,
            max_sample_age=plant.MAX_SAMPLE_AGE,
            watchdog=own.watchdog,
            position_resolution=own.resolution,
            mass=own.mass,
            damping=added.left_of(own.damping) if added else own.damping,
            delay=own.delay,
            velocity_lag=velocity_lag(own, own.resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
        )

    def compensate(self, share: float) -> None:
        """Apply a fraction, 0 to 1, of the friction compensation in the settings; 0 after ``open``."""
        self._record["assistance"] = share

    def constrain_to_x_axis(self) -> None:
        """Reset the handle to the x axis without transverse velocity, like a linear bearing."""
        for name in ("handle", "handle_velocity"):
            self._record[name][0, 1] = 0.0

    def _parts(self) -> tuple[plant.Part, plant.Part]:
        laws = self.settings.axis_laws
        return take_joystick(law_kinds(laws) if laws else ()), give_joystick

    def _new_record(self) -> NDArray[Any]:
        record, own = np.zeros(1, JOYSTICK), self.settings
        self._common_fields(record, own.resolution)
        for name in ("mass", "damping", "max_force", "delay_steps", "stop_damping"):
            record[name] = getattr(own, name)
        record["watchdog_steps"] = max(round(own.watchdog / own.substep), 1)
        record["workspace_min"], record["workspace_max"] = own.workspace
        if own.axis_laws is not None:
            record["axis_laws"] = law_records(own.axis_laws)
        if self._compensation is not None:
            record["compensation"] = self._compensation.record
        return record

    def _prepare(self) -> None:
        super()._prepare()
        if self._compensation is not None:
            self._record["compensation"]["step"] = self._compensation.address
