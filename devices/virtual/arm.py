"""Virtual admittance arm: it measures the force of the hand and follows a position reference.

The simulation includes the effects that make an arm hard to control: friction in the joints, elastic gears with lost
motion, encoders with steps (`devices.arm.body`), and a force sensor with noise, bias and drift that measures the weight
and inertia of the handle (`devices.virtual.wrench`). Its servo follows the reference by the selected law
(`devices.arm.servo`), so that the laws can be compared by their effect on a hand. `devices.virtual.arm`
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
from devices.arm.mechanics.drive import DRIVE
from devices.arm.mechanics.linkage import flange_angle, inverse, jacobian, position
from devices.arm.mechanics.plant import PLANT, step_plant
from devices.arm.servo.kernels import SERVO, servo_start
from devices.arm.servo.linear import Grip, ServoedArm, least_mass
from devices.arm.servo.servo import new_servo
from devices.arm.servo.settings import ServoSettings
from devices.common.kernels import quantise
from devices.virtual import device as plant
from devices.virtual import wrench
from devices.virtual.device import PlantSettings, VirtualDevice
from devices.virtual.wrench import WrenchSettings
from haptics.clock import Clock
from haptics.device import Causality, Channel, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.jit import call_part, kernel, merged_kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, build, documented

# --- kernels ----------------------------------------------------------------------------------------------------------

CLAMP_STIFFNESS, CLAMP_DAMPING = 1e6, 1e3
"""Stiffness [N/m] and damping [N s/m] of the clamp that blocks the arm; it yields 1 mm under 1000 N."""

BODY_FIELDS: list[tuple[Any, ...]] = [
    *plant.PLANT_FIELDS,
    ("arm", PLANT),
    ("drives", DRIVE, (2,)),
    ("motor_torque", "<f8", (2,)),
    ("scratch", "<f8", (4,)),
    *fields("<i8", "clamp_first clamp_end"),
    *fields("<f8", "clamp clamp_force", 2),
]
"""Fields of an arm held by a hand: `PLANT_FIELDS`, and the state of the arm in ``arm``.

``motor_torque`` is at the shafts [N m]. From substep ``clamp_first`` to ``clamp_end`` a clamp holds the last link at
its position at that time, ``clamp`` [m], with ``clamp_force`` [N].
"""

BODY = np.dtype(BODY_FIELDS)

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("motor_torques", "N m", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""Additional channels of the arm.

They are the joint angles of the encoders, the motor torques at the shafts, the output of the force sensor in its own
axes including bias and weight (three forces, three torques), and gravity in these axes.
"""

ARM = np.dtype(
    [
        *BODY_FIELDS,
        ("servo", SERVO),
        ("servo_steps", "<i8"),
        ("sensor", wrench.WRENCH),
        *fields("<f8", "rotor_step joint_step"),
        ("shows_joint", "<i8"),
        *fields("<f8", "measured angle_command last_velocity workspace_min workspace_max", 2),
    ]
)
"""Record of the virtual arm.

Encoder steps refer to the joint [rad]. ``shows_joint`` selects the encoder for ``measured`` and for the position of the
sample. ``acting`` is the command limited to the workspace [m], and ``angle_command`` the last one in joint angles.
``channels`` begins with `CHANNELS`, one after the other.
"""


@kernel
def place_handle(s: Any) -> None:
    """Set position and velocity of the handle from the links."""
    q1, q2, w1, w2 = s.arm.angle[0], s.arm.angle[1], s.arm.speed[0], s.arm.speed[1]
    s.handle[0], s.handle[1] = position(s.arm.links.linkage, q1, q2)
    xx, xy, yx, yy = jacobian(s.arm.links.linkage, q1, q2)
    s.handle_velocity[0], s.handle_velocity[1] = xx * w1 + xy * w2, yx * w1 + yy * w2


@merged_kernel
def move_body(s: Any, part: float, rate: float) -> None:
    """Advance an arm with `BODY_FIELDS` by one substep under ``s.motor_torque``.

    `part` (0 to 1) is the elapsed fraction of the interval for which the intentions of the hand are known, and `rate`
    its inverse length.
    """
    plant.pull_handle(s, part, rate)
    blocked = s.clamp_first <= s.steps < s.clamp_end  # between the arm and the force sensor
    if s.steps == s.clamp_first:
        s.clamp[0], s.clamp[1] = s.handle[0], s.handle[1]
    for i in range(2):
        force = CLAMP_STIFFNESS * (s.clamp[i] - s.handle[i]) - CLAMP_DAMPING * s.handle_velocity[i]
        s.clamp_force[i] = force if blocked else 0.0
        s.arm.hand_force[i] = s.hand_force[i] + s.clamp_force[i]
    step_plant(s.arm, s.drives, s.motor_torque, s.scratch)
    place_handle(s)
    s.steps += 1


@kernel
def _read_encoders(s: Any) -> None:
    """Read the encoders."""
    for i in range(2):
        s.servo.motor[i] = quantise(s.arm.rotor[i], s.rotor_step)
        s.servo.link[i] = quantise(s.arm.angle[i], s.joint_step)
        s.measured[i] = s.servo.link[i] if s.shows_joint else s.servo.motor[i]


@merged_kernel
def _sense(s: Any, period: float) -> None:
    """Measure the sample: position and velocity from the encoders, the force of the hand from the sensor."""
    _read_encoders(s)
    q1, q2 = s.measured[0], s.measured[1]
    s.position[0], s.position[1] = position(s.arm.links.linkage, q1, q2)
    plant.estimate_velocity(s)
    rate = 1.0 / period if period > 0.0 else 0.0
    ax = rate * (s.handle_velocity[0] - s.last_velocity[0])
    ay = rate * (s.handle_velocity[1] - s.last_velocity[1])
    s.last_velocity[0], s.last_velocity[1] = s.handle_velocity[0], s.handle_velocity[1]
    wrench.true_wrench(
        s.sensor,
        flange_angle(s.arm.links.linkage, s.arm.angle[0], s.arm.angle[1]),
        s.hand_force[0],
        s.hand_force[1],
        ax,
        ay,
    )
    wrench.measure_wrench(s.sensor, period)
    s.force[0], s.force[1] = wrench.hand_force(s.sensor, flange_angle(s.arm.links.linkage, q1, q2))
    for i in range(2):
        s.channels[i], s.channels[2 + i] = s.measured[i], s.motor_torque[i]
    for i in range(6):
        s.channels[4 + i] = s.sensor.shown[i]
    s.channels[10], s.channels[11], s.channels[12] = wrench.gravity_seen(
        s.sensor, flange_angle(s.arm.links.linkage, q1, q2)
    )
    xx, xy, yx, yy = jacobian(s.arm.links.linkage, q1, q2)
    s.servo.hand[0] = xx * s.force[0] + yx * s.force[1]
    s.servo.hand[1] = xy * s.force[0] + yy * s.force[1]


@kernel
def _act(s: Any, x: float, y: float) -> None:
    """Set the command to (x, y) [m], limited to the workspace."""
    s.acting[0] = min(max(x, s.workspace_min[0]), s.workspace_max[0])
    s.acting[1] = min(max(y, s.workspace_min[1]), s.workspace_max[1])


@kernel
def begin_arm(record: Rows) -> None:
    """Initialise handle, servo reference and command at the position of the arm."""
    s = record[0]
    place_handle(s)
    _read_encoders(s)
    x, y = position(s.arm.links.linkage, s.measured[0], s.measured[1])
    _act(s, x, y)
    s.angle_command[0], s.angle_command[1] = s.measured[0], s.measured[1]
    servo_start(s.servo, s.measured[0], s.measured[1])


@merged_kernel
def _advance(s: Any, steps: int) -> None:
    """Integrate up to substep number `steps`, with the hand sampled at that time, and measure the sample.

    The reference of the servo moves linearly from one command to the next, in joint angles.
    """
    q1, q2 = inverse(s.arm.links.linkage, s.acting[0], s.acting[1])
    way_1, way_2 = q1 - s.angle_command[0], q2 - s.angle_command[1]
    count = steps - s.steps
    rate = 1.0 / (max(count, 1) * s.substep)
    for k in range(count):
        if s.steps % s.servo_steps == 0:
            _read_encoders(s)
            part = k / count
            s.servo.command[0] = s.angle_command[0] + part * way_1
            s.servo.command[1] = s.angle_command[1] + part * way_2
            call_part(s.servo.step, s.servo, 0.0, 0.0)
            s.motor_torque[0], s.motor_torque[1] = s.servo.torque[0], s.servo.torque[1]
        move_body(s, k / count, rate)
    plant.pull_handle(s, 1.0, rate)
    s.angle_command[0], s.angle_command[1] = q1, q2
    _sense(s, count * s.substep)


take_arm = plant.taking(_advance)


@kernel
def give_arm(s: Any, x: float, y: float) -> None:
    """Process a position reference [m]."""
    if plant.accept(s, x, y):
        _act(s, x, y)


# --- device -----------------------------------------------------------------------------------------------------------

_TABLES = ("arm", "servo", "sensor")


@documented
@dataclass(frozen=True)
class ArmSettings(PlantSettings):
    """Settings of the virtual arm, in addition to `PlantSettings`; its parts have separate tables."""

    half_width: float = bounded(0.2, minimum=0.01, maximum=1.0, unit="m", doc="half of the width of the workspace")
    half_height: float = bounded(0.15, minimum=0.01, maximum=1.0, unit="m", doc="half of the height of the workspace")
    max_following_error: float = bounded(
        0.01,
        above=0.0,
        maximum=1000.0,
        unit="m",
        doc="largest distance of the end effector from its reference; 1000 disables the check",
    )
    blocked_at: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="s", doc="time at which the arm is blocked, for device.blocked_for"
    )
    blocked_for: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="s", doc="duration for which the last link is blocked; 0 for never"
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

    channels = CHANNELS

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        table = dict(settings or {})
        tables = {name: table.pop(name, {}) for name in _TABLES}
        for name, part in tables.items():
            if not isinstance(part, Mapping):
                raise ConfigurationError(f"device.{name} = {part!r}: must be a table.")
        self.settings, hand = plant.split(ArmSettings, table)
        own = self.settings
        self.body, self.servo, self.sensor = (
            build(ArmBody, tables["arm"], "device.arm"),
            build(ServoSettings, tables["servo"], "device.servo"),
            build(WrenchSettings, tables["sensor"], "device.sensor"),
        )
        period, substep = self.servo.period, own.substep
        self._servo_steps = round(period / substep)
        if self._servo_steps < 1 or not math.isclose(period, self._servo_steps * substep, rel_tol=1e-9):
            raise ConfigurationError(
                f"device.servo.period = {period:g} s: must be a multiple of device.substep = {substep:g} s."
            )
        self.body.linkage.require_workspace(*own.workspace)
        places, blocked = (own.workspace.centre, *own.workspace.corners), own.blocked_for > 0.0
        lightest = min(float(np.linalg.eigvalsh(self.body.mass_at(*place, rotors=False))[0]) for place in places)
        stiffness = hand.stiffness + (CLAMP_STIFFNESS if blocked else 0.0)
        plant.require_stable(lightest, stiffness, hand.damping + (CLAMP_DAMPING if blocked else 0.0), substep)
        super().__init__(own, hand, clock)

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet of the device."""
        own, hand, servo, body = self.settings, self.hand, self.servo, self.body
        frequency, ratio = servo.bandwidth, servo.damping_ratio
        if servo.law != "fractional" and servo.position_gain != 0.0:  # with joint and rotor as one inertia
            links = body.links.terms(body.linkage.home)["inertia"][0]
            inertia = 0.5 * float(links.trace()) + body.rotor_inertia * body.reduction**2
            natural_frequency = math.sqrt(servo.position_gain / inertia)
            frequency = natural_frequency / math.tau
            ratio = servo.velocity_gain / (2.0 * inertia * natural_frequency)
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
            max_sample_age=plant.MAX_SAMPLE_AGE,
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
            channels=self.channels,
        )

    @property
    def clamp_force(self) -> NDArray[np.float64]:
        """Force of the clamp that blocks the arm (`ArmSettings.blocked_for`), (2,) [N].

        The force sensor does not measure it.
        """
        return np.array(self._record["clamp_force"][0])

    @functools.cached_property
    def _least_mass(self) -> float:
        """Smallest virtual mass that is stable on the arm [kg]."""
        grip = Grip(self.hand.stiffness, self.hand.damping)
        places = (self.settings.workspace.centre, *self.settings.workspace.corners)
        arm = ServoedArm(self.body, self.body.model_joints, self.servo)
        return least_mass(arm, grip, self._clock.period, places)

    @property
    def _resolution(self) -> float:
        """Upper bound of the encoder resolution at the end effector, in the centre of the workspace [m]."""
        jacobian = self.body.linkage.jacobians(np.array([self.body.linkage.home]))[0]
        return float(np.linalg.norm(jacobian, 2)) * self.body.resolution

    def _parts(self) -> tuple[plant.Part, plant.Part]:
        return take_arm, give_arm

    def _new_record(self) -> NDArray[Any]:
        record, own, body = np.zeros(1, ARM), self.settings, self.body
        self._common_fields(record, self._resolution)
        record["drives"] = body.new_plant(record["arm"], self.hand.start, own.substep)
        record["clamp_first"] = round(own.blocked_at / own.substep)
        record["clamp_end"] = round((own.blocked_at + own.blocked_for) / own.substep)
        record["servo"] = new_servo(
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
        record["servo_steps"] = self._servo_steps
        record["rotor_step"], record["joint_step"] = body.resolutions
        record["shows_joint"] = body.encoder != "motor"
        record["workspace_min"], record["workspace_max"] = own.workspace
        wrench.fill_wrench(record["sensor"], self.sensor, body.handle_mass, body.gravity, own.seed)
        if self.sensor.tare:
            wrench.tare_wrench(record["sensor"], wrench.TARE_SAMPLES, self._clock.period, 0.0)
        begin_arm(record)
        return record

    def _safe_command(self) -> tuple[float, float]:
        x, y = self._record["acting"][0].tolist()
        return x, y
