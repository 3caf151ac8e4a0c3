"""Virtual admittance arm: it measures the force of the hand and follows a position reference.

The simulation includes the effects that make an arm hard to control: friction in the joints, elastic gears with lost
motion, encoders with steps (`devices.arm.body`), and a force sensor with noise, bias and drift that measures the weight
and inertia of the handle (`devices.virtual.wrench`). Its servo follows the reference by the selected law
(`devices.arm.servo`), so that the laws can be compared by their effect on a hand. `devices.virtual.arm_kernels`
computes one tick.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.servo.linear import Grip, ServoedArm, least_mass
from devices.arm.servo.servo import new_servo
from devices.arm.servo.settings import ServoSettings
from devices.virtual.arm_kernels import (
    ARM,
    CHANNELS,
    CLAMP_DAMPING,
    CLAMP_STIFFNESS,
    begin_arm,
    give_arm,
    take_arm,
)
from devices.virtual.device import MAX_SAMPLE_AGE, Part, PlantSettings, VirtualDevice, split
from devices.virtual.hands.hand import Hand
from devices.virtual.plant import require_stable
from devices.virtual.wrench import TARE_SAMPLES, WrenchSettings, fill_wrench, tare_wrench
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, documented

_TABLES = ("arm", "servo", "sensor")


@documented
@dataclass(frozen=True)
class ArmSettings(PlantSettings):
    """Settings of the virtual arm, in addition to `PlantSettings`; its parts have separate tables."""

    half_width: float = bounded(0.2, minimum=0.01, maximum=1.0, unit="m", doc="half the width of the workspace")
    half_height: float = bounded(0.15, minimum=0.01, maximum=1.0, unit="m", doc="half the height of the workspace")
    max_following_error: float = bounded(
        0.01,
        above=0.0,
        maximum=1000.0,
        unit="m",
        doc="largest distance of the end effector from its reference; 1000 where it is not to be watched",
    )
    blocked_at: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="s", doc="when something begins to hold the arm, with device.blocked_for"
    )
    blocked_for: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="s", doc="for how long its last link is held; 0 if nothing does"
    )


class VirtualArm(VirtualDevice):
    """Virtual admittance arm: samples contain the force of the hand, commands are position references.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `ArmSettings`, and the tables ``arm`` (`ArmBody`), ``servo`` (`ServoSettings`), ``sensor``
        (`WrenchSettings`) and ``hand`` (`devices.virtual.hands.registry.make_hand`).
    clock : Clock, optional
        Clock of the run; without a clock every ``read`` advances by one period.

    Raises
    ------
    ConfigurationError
        If a setting is invalid, or the arm does not reach its workspace.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        own = dict(settings or {})
        body, servo, sensor = (_table(own.pop(name, {}), name) for name in _TABLES)
        self.settings, hand = split(ArmSettings, own)
        self.body = build(ArmBody, body, "device.arm")
        self.servo = build(ServoSettings, servo, "device.servo")
        self.sensor = build(WrenchSettings, sensor, "device.sensor")
        self._servo_steps = _whole_steps(self.servo.period, self.settings.substep)
        self.body.require_workspace(*self.settings.workspace)
        _require_slow(self.body, hand, self.settings)
        super().__init__(self.settings, hand, clock)

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device."""
        own, hand = self.settings, self._hand
        frequency, ratio = self._servo_poles
        return DeviceSpec(
            name="virtual-arm",
            causality=Causality.ADMITTANCE,
            identity=f"virtual, seed {own.seed}",
            rate_min=100.0,
            rate_max=4000.0,
            workspace_min=own.workspace.lower,
            workspace_max=own.workspace.upper,
            max_force=self.sensor.range,
            max_force_rate=10_000.0,
            max_speed=1.0,
            max_acceleration=50.0,
            max_sample_age=MAX_SAMPLE_AGE,
            max_following_error=own.max_following_error,
            position_resolution=self._resolution,
            mass=float(np.linalg.eigvalsh(self.body.mass_at(0.0, 0.0)).mean()),
            delay=0.0,
            servo_frequency=frequency,
            servo_damping_ratio=ratio,
            servo_knows_velocity=True,
            grip_stiffness=hand.stiffness,
            grip_damping=hand.damping,
            handle_mass=self.body.handle_mass,
            least_mass=self._least_mass,
            channels=CHANNELS,
        )

    @property
    def joint_angles(self) -> NDArray[np.float64]:
        """Joint angles measured by the encoders, (2,) [rad]."""
        return np.array(self._record["measured"][0])

    @property
    def motor_torques(self) -> NDArray[np.float64]:
        """Motor torques at their shafts, (2,) [N m]."""
        return np.array(self._record["motor_torque"][0])

    @property
    def raw_wrench(self) -> NDArray[np.float64]:
        """Output of the force sensor in its own axes, including bias and weight, (6,) [N], [N m]."""
        return np.array(self._record["sensor"]["shown"][0])

    @property
    def sensor_gravity(self) -> NDArray[np.float64]:
        """Gravity in the axes of the force sensor, (3,) [m/s^2]."""
        return np.array(self._record["channels"][0, 10:13])

    @property
    def clamp_force(self) -> NDArray[np.float64]:
        """Force of the clamp that blocks the arm (`ArmSettings.blocked_for`), (2,) [N].

        The force sensor does not measure it.
        """
        return np.array(self._record["clamp_force"][0])

    @property
    def _servo_poles(self) -> tuple[float, float]:
        """Frequency [Hz] and damping ratio of the servo, with joint and rotor as one inertia."""
        servo, body = self.servo, self.body
        if servo.law == "fractional" or servo.position_gain == 0.0:
            return servo.bandwidth, servo.damping_ratio
        links = body.links.terms(body.linkage.home)["inertia"][0]
        inertia = 0.5 * float(links.trace()) + body.rotor_inertia * body.reduction**2
        natural_frequency = math.sqrt(servo.position_gain / inertia)
        return natural_frequency / math.tau, servo.velocity_gain / (2.0 * inertia * natural_frequency)

    @functools.cached_property
    def _least_mass(self) -> float:
        """Smallest virtual mass that is stable on the arm [kg]."""
        grip = Grip(self._hand.stiffness, self._hand.damping)
        places = (self.settings.workspace.centre, *self.settings.workspace.corners)
        arm = ServoedArm(self.body, self.body.model_joints, self.servo)
        return least_mass(arm, grip, self._clock.period, places)

    @property
    def _resolution(self) -> float:
        """Upper bound of the encoder resolution at the end effector, in the centre of the workspace [m]."""
        jacobian = self.body.linkage.jacobians(np.array([self.body.linkage.home]))[0]
        return float(np.linalg.norm(jacobian, 2)) * self.body.resolution

    def _begin(self) -> None:
        super()._begin()
        self._state.channels = self._record["channels"][0, : sum(size for _, _, size in CHANNELS)]

    @property
    def _take_part(self) -> Part:
        return take_arm

    @property
    def _give_part(self) -> Part:
        return give_arm

    def _new_record(self) -> NDArray[Any]:
        record, own, body = np.zeros(1, ARM), self.settings, self.body
        self._common_fields(record, self._resolution)
        record["drives"] = body.new_plant(record["arm"], self._hand.start, own.substep)
        record["clamp_first"] = round(own.blocked_at / own.substep)
        record["clamp_end"] = round((own.blocked_at + own.blocked_for) / own.substep)
        record["servo"] = self._new_servo()
        record["servo_steps"] = self._servo_steps
        record["rotor_step"], record["joint_step"] = body.resolutions
        record["shows_joint"] = body.encoder != "motor"
        record["workspace_min"], record["workspace_max"] = own.workspace
        fill_wrench(record["sensor"], self.sensor, body.handle_mass, body.gravity, own.seed)
        if self.sensor.tare:
            tare_wrench(record["sensor"], TARE_SAMPLES, self._clock.period, 0.0)
        begin_arm(record)
        return record

    def _new_servo(self) -> NDArray[Any]:
        body = self.body
        return new_servo(
            self.servo,
            body.model_links,
            body.model_joints,
            body.linkage.home,
            encoders=body.encoder,
            resolution=(body.resolution,) * 2,
            torque_limit=(body.torque_limit,) * 2,
            placed=body.linkage,
            tick=self._clock.period,
        )

    def _safe_command(self) -> tuple[float, float]:
        x, y = self._record["acting"][0].tolist()
        return x, y


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"device.{name} = {value!r}: must be a table.")
    return value


def _whole_steps(period: float, substep: float) -> int:
    """Return the number of substeps in a `period` of the servo [s]."""
    steps = round(period / substep)
    if steps < 1 or not math.isclose(period, steps * substep, rel_tol=1e-9):
        raise ConfigurationError(
            f"device.servo.period = {period:g} s: must be a multiple of device.substep = {substep:g} s."
        )
    return steps


def _require_slow(body: ArmBody, hand: Hand, settings: ArmSettings) -> None:
    """Raise `ConfigurationError` if grip and clamp are too stiff for the links and the substep."""
    places = settings.workspace.centre, *settings.workspace.corners
    lightest = min(float(np.linalg.eigvalsh(body.mass_at(*place, rotors=False))[0]) for place in places)
    blocked = settings.blocked_for > 0.0
    stiffness = hand.stiffness + (CLAMP_STIFFNESS if blocked else 0.0)
    damping = hand.damping + (CLAMP_DAMPING if blocked else 0.0)
    require_stable(lightest, stiffness, damping, settings.substep)
