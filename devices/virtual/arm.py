"""A virtual arm of the admittance kind: it measures the hand's force and goes where it is told.

The position servo has a finite bandwidth and the arm a mass, so the hand deflects it a little:
``m x'' = m w^2 (r - x) + 2 z m w (r' - x') + h`` with the reference ``r``, which moves linearly from one command to
the next during the period after the command. The force sensor has noise, a bias, a resolution and a range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.virtual.device import PlantSettings, VirtualDevice, split
from devices.virtual.noise import NOISE_FIELDS, normal_pair
from devices.virtual.plant import (
    PLANT_FIELDS,
    encode,
    expect_hand,
    pull_handle,
    quantise,
    require_stable,
    settle_hand,
)
from haptics._jit import kernel
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.settings import bounded, free

ARM = np.dtype(
    [
        *PLANT_FIELDS,
        *NOISE_FIELDS,
        ("servo_stiffness", "<f8"),
        ("servo_damping", "<f8"),
        ("velocity_reference", "<f8"),
        ("reference", "<f8", (2,)),
        ("force_noise", "<f8"),
        ("force_bias", "<f8", (2,)),
        ("force_resolution", "<f8"),
        ("force_range", "<f8"),
        ("workspace_min", "<f8", (2,)),
        ("workspace_max", "<f8", (2,)),
    ]
)
"""The whole arm in one record."""


@dataclass(frozen=True)
class ArmSettings(PlantSettings):
    """Settings of the virtual arm, besides those in `PlantSettings`.

    Attributes
    ----------
    mass : float
        Moving mass [kg].
    natural_frequency : float
        Of the mass on the position servo [Hz].
    damping_ratio : float
        Of the position servo, relative to critical.
    velocity_reference : bool
        Whether the servo knows the velocity of the reference; without, it lags behind a moving one.
    resolution : float
        Smallest step of the encoder [m]; 0 for a perfect one.
    force_noise : float
        Root mean square of the sensor's white noise, per axis [N].
    force_bias_x, force_bias_y : float
        What the sensor shows without load [N].
    force_range, force_resolution : float
        Largest force it can show, per axis, and its smallest step [N]; resolution 0 for a perfect one.
    """

    half_width: float = bounded(0.2, minimum=0.01, maximum=1.0, unit="m", doc="half the width of the workspace")
    half_height: float = bounded(0.15, minimum=0.01, maximum=1.0, unit="m", doc="half the height of the workspace")
    mass: float = bounded(5.0, minimum=0.1, maximum=200.0, unit="kg", doc="moving mass")
    natural_frequency: float = bounded(30.0, minimum=1.0, maximum=300.0, unit="Hz", doc="of the position servo")
    damping_ratio: float = bounded(1.0, minimum=0.05, maximum=5.0, doc="of the position servo")
    velocity_reference: bool = free(True, "true or false", "whether the servo is told the reference's velocity")
    resolution: float = bounded(1e-6, minimum=0.0, maximum=1e-3, unit="m", doc="step of the encoder")
    force_noise: float = bounded(0.05, minimum=0.0, maximum=5.0, unit="N", doc="rms noise of the force sensor")
    force_bias_x: float = bounded(0.1, minimum=-10.0, maximum=10.0, unit="N", doc="bias of the force sensor")
    force_bias_y: float = bounded(-0.05, minimum=-10.0, maximum=10.0, unit="N", doc="bias of the force sensor")
    force_range: float = bounded(50.0, above=0.0, maximum=1000.0, unit="N", doc="range of the force sensor")
    force_resolution: float = bounded(0.01, minimum=0.0, maximum=1.0, unit="N", doc="step of the force sensor")

    @property
    def servo_stiffness(self) -> float:
        """What the servo puts up against a deflection, m w^2 [N/m]."""
        return self.mass * (2.0 * math.pi * self.natural_frequency) ** 2

    @property
    def servo_damping(self) -> float:
        """2 z m w [N s/m]."""
        return 2.0 * self.damping_ratio * self.mass * 2.0 * math.pi * self.natural_frequency


@kernel
def _substep(s: Any, i: int, reference: float, reference_velocity: float) -> None:
    """Integrate coordinate `i` for one substep."""
    force = s.servo_stiffness * (reference - s.handle[i]) + s.hand_force[i]
    force += s.servo_damping * (s.velocity_reference * reference_velocity - s.handle_velocity[i])
    s.handle_velocity[i] += s.substep * force / s.mass
    s.handle[i] += s.substep * s.handle_velocity[i]


@kernel
def _sense(s: Any) -> None:
    """Measure the hand's force."""
    noise = normal_pair(s)
    for i in range(2):
        shown = quantise(s.hand_force[i] + s.force_bias[i] + s.force_noise * noise[i], s.force_resolution)
        s.force[i] = min(max(shown, -s.force_range), s.force_range)


@kernel
def _advance(record: Any, steps: int, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    s = record[0]
    expect_hand(s, x, y, push_x, push_y, grip)
    for i in range(2):  # an arm cannot be sent out of its workspace
        s.command[i] = min(max(s.command[i], s.workspace_min[i]), s.workspace_max[i])
    count = steps - s.steps
    rate = 1.0 / (max(count, 1) * s.substep)
    for k in range(count):
        pull_handle(s, k / count, rate)
        for i in range(2):
            way = s.command[i] - s.reference[i]
            _substep(s, i, s.reference[i] + (k + 1) / count * way, rate * way)
        s.steps += 1
    pull_handle(s, 1.0, rate)
    for i in range(2):
        s.reference[i] = s.command[i]
    settle_hand(s)
    encode(s)
    _sense(s)


class VirtualArm(VirtualDevice):
    """An arm of the admittance kind: the hand's force in the sample, a position reference in the command.

    Parameters
    ----------
    settings : mapping, optional
        Those of `ArmSettings`, and a table ``hand`` (`devices.virtual.hands.make_hand`).
    clock : Clock, optional
        The run's clock; without one every ``read`` advances by one period.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    advance = staticmethod(_advance)

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings, hand = split(ArmSettings, settings)
        own = self.settings
        require_stable(own.mass, own.servo_stiffness + hand.stiffness, own.servo_damping + hand.damping, own.substep)
        super().__init__(own, hand, clock)

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet."""
        own = self.settings
        return DeviceSpec(
            name="virtual-arm",
            causality=Causality.ADMITTANCE,
            identity=f"virtual, seed {own.seed}",
            rate_min=100.0,
            rate_max=4000.0,
            workspace_min=own.workspace.lower,
            workspace_max=own.workspace.upper,
            max_force=own.force_range,
            max_force_rate=10_000.0,
            max_speed=1.0,
            max_acceleration=50.0,
            max_sample_age=5e-3,
            position_resolution=own.resolution,
            mass=own.mass,
            delay=0.0,
            servo_frequency=own.natural_frequency,
            servo_damping_ratio=own.damping_ratio,
            servo_knows_velocity=own.velocity_reference,
            grip_stiffness=self._hand.stiffness,
            grip_damping=self._hand.damping,
        )

    def _new_record(self) -> NDArray[Any]:
        record, own = np.zeros(1, ARM), self.settings
        self._common_fields(record, own.resolution)
        for name in ("mass", "servo_stiffness", "servo_damping", "velocity_reference"):
            record[name] = getattr(own, name)
        for name in ("force_noise", "force_resolution", "force_range"):
            record[name] = getattr(own, name)
        record["force_bias"] = own.force_bias_x, own.force_bias_y
        record["noise_state"] = own.seed
        record["reference"] = record["command"] = self._hand.start
        record["workspace_min"], record["workspace_max"] = own.workspace
        return record

    def _safe_command(self) -> tuple[float, float]:
        x, y = self._command.tolist()
        return x, y
