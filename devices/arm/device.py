"""Driver of the arm: two motors that track joint angles, and a force sensor in the handle.

    device = Arm({"at_home": True, "sensor": {"name": "ati", "address": "192.168.1.1"}})

The driver returns the hand's force and accepts a position reference. ``docs/arm.md`` describes the use. The motors are
behind `devices.arm.motors.MotorStage`, and the sensor is a `devices.arm.sensors.force_sensor.ForceSensor`. Their
threads do the communication, so that a tick never blocks on it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from devices.arm.body import PLACE, ArmBody
from devices.arm.mechanics.linkage import LINKAGE, flange_angle, inverse, jacobian, position
from devices.arm.motors import CanStage, MotorStage, OdriveStage
from devices.arm.motors.settings import CAN, Demands, DriveGains, OdriveSettings
from devices.arm.motors.stage import MOTORS, SILENCE, give_motors, take_motors
from devices.arm.sensors.force_sensor import SENSOR, STANDARD_GRAVITY, ForceSensor, SensorSettings, Wire, take_reading
from devices.arm.sensors.optoforce import OptoForceSettings, OptoForceWire
from devices.arm.sensors.rdt import AtiSettings, AtiWire, OnRobotSettings, OnRobotWire
from devices.arm.servo.kernels import part_address, refer_motors, refer_part, start_servos
from devices.arm.servo.linear import DrivenArm, Grip, least_mass
from devices.arm.servo.servo import new_references
from devices.arm.servo.settings import ServoSettings
from devices.common.driver import Driver
from devices.common.kernels import DRIVER_FIELDS, LOST, NOT_FINITE, record_command, record_time
from devices.common.latch import Wake
from devices.common.settings import RunSettings, Workspace
from haptics.clock import Clock, pause, raise_if_cancelled
from haptics.design import FIRM_GRIP
from haptics.device import Causality, Channel, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.jit import float_at, kernel, merged_kernel, record_at
from haptics.records import fields
from haptics.settings import bounded, build, check, documented, flag, unknown_name, unrestricted

# --- settings ---------------------------------------------------------------------------------------------------------

SENSORS: dict[str, tuple[type[SensorSettings], Callable[..., Wire]]] = {
    "ati": (AtiSettings, AtiWire),
    "onrobot-hex": (OnRobotSettings, OnRobotWire),
    "optoforce": (OptoForceSettings, OptoForceWire),
}
"""Force sensors by name: class of the settings, and of the communication."""

_GRID = 33  # number of grid points along each side of the workspace at which the joint speeds are evaluated


def make_sensor(table: Mapping[str, Any] | None) -> ForceSensor:
    """Create the force sensor that a settings table describes, not opened.

    Parameters
    ----------
    table : mapping
        ``name`` and the settings of the sensor.

    Raises
    ------
    ConfigurationError
        If the sensor is unknown or a setting is invalid.
    """
    if not isinstance(table, Mapping) or "name" not in table:
        raise ConfigurationError(
            f"device.sensor = {table!r}: must be a table such as {{name = 'ati'}}; names are {', '.join(SENSORS)}."
        )
    given = dict(table)
    name = str(given.pop("name"))
    if name not in SENSORS:
        raise unknown_name("force sensor", name, SENSORS)
    settings_class, wire = SENSORS[name]
    settings = build(settings_class, given, "device.sensor")
    return ForceSensor(wire(settings), settings)


@documented
@dataclass(frozen=True)
class ArmSettings(RunSettings):
    """Settings of the arm, in addition to `RunSettings`; its parts have separate tables."""

    arm: Any = unrestricted(None, "a table", doc="the arm, see below; for a real arm, its model")
    motors: Any = unrestricted(None, "a table", doc="drive and motors, see below; by default with the arm's reduction")
    sensor: Any = unrestricted(
        None, "a table with a name", doc="force sensor, see below; by default with the handle and gravity of the arm"
    )
    servo: Any = unrestricted(None, "a table", doc="references of the motors, see below")
    half_width: float = bounded(0.2, minimum=0.01, maximum=2.0, unit="m", doc="half of the width of the workspace")
    half_height: float = bounded(0.15, minimum=0.01, maximum=2.0, unit="m", doc="half of the height of the workspace")
    force_range: float = bounded(50.0, above=0.0, maximum=10_000.0, unit="N", doc="largest force the sensor measures")
    max_speed: float = bounded(0.5, above=0.0, maximum=5.0, unit="m/s", doc="largest speed of the end effector")
    max_acceleration: float = bounded(20.0, above=0.0, maximum=500.0, unit="m/s^2", doc="its largest acceleration")
    max_following_error: float = bounded(
        0.02, above=0.0, maximum=1000.0, unit="m", doc="largest distance from the reference; 1000 to disable this limit"
    )
    delay: float = bounded(
        0.0,
        minimum=0.0,
        maximum=0.2,
        unit="s",
        doc="time from a sample to the reference computed from it, measured by haptics calibrate servo; 0: two periods",
    )
    servo_frequency: float = bounded(
        0.0, minimum=0.0, maximum=1000.0, unit="Hz", doc="natural frequency of the servo, measured likewise; 0: unknown"
    )
    servo_damping_ratio: float = bounded(
        1.0, above=0.0, maximum=100.0, doc="damping ratio of the position servo, measured in the same way"
    )
    at_home: bool = flag(False, doc="whether you hold the end effector at its home; for encoders that lose their zero")
    home_x: float = bounded(0.0, **PLACE, doc="x of that home, in the coordinates of the device")
    home_y: float = bounded(0.0, **PLACE, doc="y of that home, in the coordinates of the device")
    homing_timeout: float = bounded(
        30.0, minimum=0.1, maximum=600.0, unit="s", doc="time to bring the end effector into the workspace"
    )
    tare: bool = flag(True, doc="whether the force sensor is tared before motors are armed, with the handle released")

    def __post_init__(self) -> None:
        check(self, "device")
        for name in ("arm", "motors", "sensor", "servo"):
            value = getattr(self, name)
            if not (value is None or isinstance(value, Mapping)):
                raise ConfigurationError(f"device.{name} = {value!r}: must be a table.")
        if self.body.encoder != "motor":
            raise ConfigurationError(
                f"device.arm.encoder = {self.body.encoder!r}: must be 'motor'; the drive has its encoders there."
            )
        self.body.linkage.require_workspace(self.workspace.lower, self.workspace.upper)
        _ = self.motor_settings, self.references
        make_sensor(self.sensor_table)

    @property
    def home(self) -> tuple[float, float]:
        """Home position [m]."""
        return self.home_x, self.home_y

    @property
    def held(self) -> bool:
        """Whether the end effector is held at its home."""
        return self.at_home

    @property
    def identity(self) -> str:
        """Identification of the arm, for display."""
        return self.motor_settings.serial or "the only drive"

    @property
    def workspace(self) -> Workspace:
        """Rectangular workspace of the end effector."""
        return Workspace((-self.half_width, -self.half_height), (self.half_width, self.half_height))

    @property
    def body(self) -> ArmBody:
        """Model of the arm."""
        return build(ArmBody, self.arm or {}, "device.arm")

    @property
    def references(self) -> ServoSettings:
        """Settings of the references."""
        return build(ServoSettings, self.servo or {}, "device.servo")

    @property
    def motor_settings(self) -> OdriveSettings:
        """Settings of the motors, with the arm's reductions as defaults."""
        reduction = self.body.reduction
        table = {"reduction_1": reduction, "reduction_2": reduction, **(self.motors or {})}
        return build(OdriveSettings, table, "device.motors")

    @property
    def drive_gains(self) -> DriveGains | None:
        """Gains of the drive, None if unknown."""
        return self.motor_settings.gains()

    def least_mass(self, period: float) -> float | None:
        """Return the smallest virtual mass that does not destabilize the arm [kg]; None if gains are unknown."""
        if self.drive_gains is None:
            return None
        motors, body, places = self.motor_settings, self.body, (self.workspace.centre, *self.workspace.corners)
        reductions = motors.reduction_1, motors.reduction_2
        arm = DrivenArm(
            body, body.model_joints, self.references, self.drive_gains, reductions, self.delay or 2.0 * period
        )
        return least_mass(arm, Grip(*FIRM_GRIP), period, places)

    @property
    def demands(self) -> Demands:
        """Requirements on the motors: maximum torque, and maximum speeds in the workspace.

        The end effector moves in any direction: a joint speed is the norm of a row of the inverse Jacobian.
        """
        own = self.motor_settings
        linkage, corners = self.body.linkage, (self.workspace.lower, self.workspace.upper)
        grid = np.stack(np.meshgrid(*np.linspace(*corners, _GRID).T), axis=-1).reshape(-1, 2)
        back = np.linalg.inv(linkage.jacobians(linkage.joints(grid)))
        joints = self.max_speed * np.linalg.norm(back, axis=2).max(axis=0)
        turns = np.abs(joints * (own.reduction_1, own.reduction_2)) / math.tau
        speed = f"device.max_speed = {self.max_speed:g} m/s"
        return Demands(self.body.torque_limit, (float(turns[0]), float(turns[1])), "device.arm.torque_limit", speed)

    @property
    def sensor_name(self) -> str:
        """Name of the force sensor."""
        return str((self.sensor or {}).get("name", "ati"))

    @property
    def sensor_table(self) -> dict[str, Any]:
        """Settings table of the sensor, with the arm's handle and gravity as defaults."""
        body = self.body
        down = (0.0, -body.gravity, -(max(STANDARD_GRAVITY**2 - body.gravity**2, 0.0) ** 0.5))
        return {"name": self.sensor_name, "handle_mass": body.handle_mass, "gravity": down, **(self.sensor or {})}


NAME = "arm"

_AGREE = 1e-3  # maximum distance between two consecutive positions that agree before the first tick [m]

_AGREE_FORCE = 5.0  # maximum difference between two consecutive forces that agree before the first tick [N]

_FIRST = 1.0  # timeout for two samples that agree [s]

_NEWER = 1e-4  # minimum time between two measurements of the force that count as different [s]

_PAUSE = 2e-3  # polling interval while the device is opened [s]

SENSOR_LOST, SENSOR_SILENT, TOO_FAR = 3, 4, 5
"""Further values of ``fault``: the sensor has failed; the sensor has sent no usable force for too long; the motors
cannot execute the command.
"""

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""Channels in addition to the sample: joint angles, wrench in the axes of the sensor (nan if unusable), and gravity in
the axes of the sensor.
"""

ARM = np.dtype(
    [
        *DRIVER_FIELDS,
        *fields("<i8", "motors sensor servo refer"),
        ("linkage", LINKAGE),
        ("orientation", "<f8", (3, 3)),
        *fields("<f8", "goal load", 2),
    ]
)
"""Record of the arm's driver. ``motors``, ``sensor`` and ``servo`` are the addresses of their records, and ``refer`` is
the address of the function that updates the references. ``orientation`` is the orientation of the flange, ``goal`` the
joint angles of the latest command [rad], and ``load`` the joint torques caused by the hand [N m].
"""


# --- kernels of a tick ------------------------------------------------------------------------------------------------


@merged_kernel
def take_joints(s: Any, m: Any) -> None:
    """Copy joint angles and speeds from the motors and compute the pose; nan where the links do not meet."""
    first, second = m.angles[0], m.angles[1]
    s.position[0], s.position[1] = position(s.linkage, first, second)
    xx, xy, yx, yy = jacobian(s.linkage, first, second)
    s.velocity[0] = xx * m.speeds[0] + xy * m.speeds[1]
    s.velocity[1] = yx * m.speeds[0] + yy * m.speeds[1]
    angle = flange_angle(s.linkage, first, second)
    cosine, sine = math.cos(angle), math.sin(angle)
    s.orientation[0, 0] = s.orientation[1, 1] = cosine
    s.orientation[0, 1], s.orientation[1, 0] = -sine, sine


@kernel
def take_arm(s: Any, now: float, elapsed: float) -> None:
    """Take the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s].

    The time of the sample is the time of the older of its two parts.
    """
    record_time(s, now, elapsed)
    m, q = record_at(s.motors, MOTORS), record_at(s.sensor, SENSOR)
    if float_at(m.lost) != 0.0:
        s.fault = LOST
    elif float_at(q.lost) != 0.0:
        s.fault = SENSOR_LOST
    if s.fault != 0:
        return
    take_motors(m)
    take_joints(s, m)
    if not take_reading(q, s.instant, s.orientation):
        s.fault = SENSOR_SILENT
        return
    s.force[0], s.force[1] = q.wrench[0], q.wrench[1]
    xx, xy, yx, yy = jacobian(s.linkage, m.angles[0], m.angles[1])
    s.load[0] = xx * s.force[0] + yx * s.force[1]
    s.load[1] = xy * s.force[0] + yy * s.force[1]
    for i in range(2):
        s.channels[i] = m.angles[i]
    for i in range(6):
        s.channels[2 + i] = q.raw[i]
    for i in range(3):
        s.channels[8 + i] = q.gravity[i]
    s.time = min(m.sampled, q.usable) - s.origin


@kernel
def take_pose(records: Any) -> None:
    """Update position, velocity and orientation from the latest motor angles; `records` is (1,)."""
    s = records[0]
    take_joints(s, record_at(s.motors, MOTORS))


@kernel
def give_arm(s: Any, x: float, y: float) -> None:
    """Command the motors to the position reference (x, y) [m]; set a fault if it is out of reach."""
    s.goal[0], s.goal[1] = inverse(s.linkage, x, y)
    if not math.fabs(s.goal[0]) + math.fabs(s.goal[1]) < math.inf:
        s.fault = NOT_FINITE
        return
    m = record_at(s.motors, MOTORS)
    refer_motors(s.servo, s.refer, s.goal, s.load, m.command)
    if not give_motors(m, s.instant):
        s.fault = TOO_FAR
        return
    record_command(s, x, y)
    if float_at(m.lost) != 0.0:
        s.fault = LOST


# --- driver -----------------------------------------------------------------------------------------------------------


class Arm(Driver):
    """Arm of the admittance kind.

    Parameters
    ----------
    settings : mapping, optional
        Settings of `ArmSettings`.
    clock : Clock, optional
        Clock of the run; without it, times count from ``open``.

    Raises
    ------
    ConfigurationError
        If a setting is invalid.
    """

    name = NAME
    commands = "finite, and within reach"
    of_samples = SENSOR_LOST, SENSOR_SILENT
    settings_class: ClassVar[type[ArmSettings]] = ArmSettings

    def __init__(self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> None:
        self.settings = own = build(self.settings_class, settings or {}, "device")
        self._home = own.home
        self._body = own.body
        self._home_angles = self._body.angles(*self._home)
        if not math.isfinite(sum(self._home_angles)):
            raise ConfigurationError(
                f"device.home_x = {own.home_x:g} m, device.home_y = {own.home_y:g} m: the arm does not reach there."
            )
        super().__init__(ARM, (take_arm, give_arm), clock, own.period)
        body, record = self._body, self._record
        references = own.references, body.model_links, body.model_joints, self._clock.period, body.linkage
        self._references = new_references(*references)
        record["servo"], record["refer"] = self._references.ctypes.data, part_address(self._references, refer_part)
        record["linkage"] = body.linkage.record
        self._orientation = record["orientation"][0]
        self._orientation[:] = np.eye(3)
        self._state.channels = record["channels"][0][: sum(size for _, _, size in CHANNELS)]
        self._stage: MotorStage | None = None
        self._sensor: ForceSensor | None = None
        self._resources = contextlib.ExitStack()

    @property
    def spec(self) -> DeviceSpec:
        """Data sheet. Its watchdog is the watchdog of the drive, which disables the motors."""
        own = self.settings
        motors = own.motor_settings
        jacobian_at_centre = self._body.linkage.jacobians(np.array([self._body.angles(0.0, 0.0)]))[0]
        return DeviceSpec(
            name=NAME,
            causality=Causality.ADMITTANCE,
            identity=own.identity,
            rate_min=100.0,
            rate_max=1000.0,
            workspace_min=own.workspace.lower,
            workspace_max=own.workspace.upper,
            max_force=own.force_range,
            max_force_rate=10_000.0,
            max_speed=own.max_speed,
            max_acceleration=own.max_acceleration,
            max_sample_age=20e-3,
            max_following_error=own.max_following_error,
            watchdog=SILENCE + motors.watchdog,
            position_resolution=float(self._body.resolution * np.linalg.norm(jacobian_at_centre, 2)),
            mass=float(np.linalg.eigvalsh(self._body.mass_at(0.0, 0.0))[0]),
            delay=own.delay or 2.0 * self._clock.period,
            servo_frequency=own.servo_frequency or None,
            servo_damping_ratio=own.servo_damping_ratio,
            servo_knows_velocity=True,
            handle_mass=self._body.handle_mass,
            least_mass=own.least_mass(self._clock.period),
            channels=CHANNELS,
        )

    # --- device contract ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, home the encoders if necessary, tare the sensor and enable the motors.

        Does nothing if already open.

        Raises
        ------
        DeviceNotFoundError
            If the drive or the sensor is not found.
        DeviceOpenError
            If one of them cannot be used, or the position of the arm is unknown; the message contains the remedy.
        """
        if self._stage is not None:
            return
        self._prepare()
        start_servos(self._references, np.array(self._home_angles))  # compile before the motors are enabled
        self._begin_log(self.settings.log)
        own, record = self.settings, self._record
        resources = contextlib.ExitStack()
        try:
            far_end, table = self._far_end(resources)
            motors, sensor = own.motor_settings, make_sensor(table)
            stage_class = CanStage if motors.protocol == CAN else OdriveStage
            stage: MotorStage = stage_class(motors, far_end=far_end, demands=own.demands)
            record["motors"], record["sensor"] = stage.record.ctypes.data, sensor.record.ctypes.data
            take_pose(record.copy())  # compile before the sensor streams: its samples must not become too old
            sensor.open()
            resources.callback(sensor.close)
            stage.open()
            resources.callback(stage.close)
            if not stage.homed:
                if not own.held:
                    raise DeviceOpenError(
                        f"{NAME}: its encoders lose their zero when the power goes. Hold the end effector at its home "
                        f"({own.home_x:g} m, {own.home_y:g} m) with the elbow on its side, and start again with "
                        "device.at_home=true; or choose another place with device.home_x and device.home_y."
                    )
                stage.home(np.array(self._home_angles))
            self._await_inside(stage)
            if own.tare:
                sensor.tare(self._orientation)
            raise_if_cancelled()
            stage.arm()
            self._await_agreement(stage, sensor)
        except BaseException:
            with contextlib.suppress(DeviceFault):  # report the first error
                resources.close()
            raise
        start_servos(self._references, np.array(stage.read_angles()))
        self._stage, self._sensor, self._resources = stage, sensor, resources

    def close(self) -> None:
        """Disable the motors and disconnect; do nothing if not open.

        Raises
        ------
        DeviceFault
            If the motors may still be enabled.
        """
        if self._stage is None:
            return
        self._stage = self._sensor = None
        self._end_log()
        self._resources.close()

    # --- information for observers -----------------------------------------------------------------------------------

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the drive reports, such as its limits, for the recording; empty if not open."""
        return {"motors": dict(self._stage.facts)} if self._stage is not None else {}

    @property
    def tally(self) -> Mapping[str, int]:
        """Counters of received and missing measurements of the force sensor, by name; empty if not open."""
        return self._sensor.tally if self._sensor is not None else {}

    # --- private -----------------------------------------------------------------------------------------------------

    def _open_parts(self) -> tuple[MotorStage, ForceSensor]:
        if self._stage is None or self._sensor is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._stage, self._sensor

    def _wake(self) -> Wake:
        return self._open_parts()[0].wake

    def _fault_error(self, fault: int) -> DeviceFault:
        """Return the error for ``fault`` of motors or sensor."""
        stage, sensor = self._open_parts()
        if fault == TOO_FAR:
            goal = self._record["goal"][0]
            return DeviceFault(f"the motors were given the command {goal}: it must be finite, and not that far.")
        if fault in (SENSOR_LOST, SENSOR_SILENT):
            return sensor.trouble(float(sensor.record["age"][0]))
        return DeviceFault(stage.failure)

    def _update_state(self, stage: MotorStage) -> None:
        """Update position, velocity and orientation from the latest angles and speeds of the joints."""
        stage.read_angles()
        take_pose(self._record)

    def _far_end(self, resources: contextlib.ExitStack) -> tuple[Any, dict[str, Any]]:
        """Return the far end of an emulated drive (None for a real one) and the sensor's settings.

        Clean-up is added to `resources`.
        """
        return None, self.settings.sensor_table

    def _await_inside(self, stage: MotorStage) -> None:
        """Wait, with the motors disabled, until the end effector is in the workspace."""
        latest = time.monotonic() + self.settings.homing_timeout
        while True:
            self._update_state(stage)
            if self.settings.workspace.contains(*self._state.position):
                return
            if time.monotonic() > latest:
                x, y = self._state.position
                raise DeviceOpenError(
                    f"{NAME}: the end effector is at ({x:.3g}, {y:.3g}) m and was not brought into the workspace "
                    f"({self.settings.workspace}) within {self.settings.homing_timeout:g} s."
                )
            pause(_PAUSE)

    def _await_agreement(self, stage: MotorStage, sensor: ForceSensor) -> None:
        """Wait for two consecutive new samples that agree, so that no wrong sample starts a run."""
        latest = time.monotonic() + _FIRST
        before = np.full(4, math.nan)
        stamp = force_stamp = -math.inf
        while time.monotonic() < latest:
            self._update_state(stage)
            reading = sensor.latest(self._orientation)
            measured = time.perf_counter() - reading.age
            if stage.sampled > stamp and measured > force_stamp + _NEWER:
                stamp, force_stamp = stage.sampled, measured
                now = np.array((*self._state.position, *reading.wrench[:2]))
                apart = np.abs(now - before)
                if max(apart[:2]) < _AGREE and max(apart[2:]) < _AGREE_FORCE:
                    return
                before = now
            pause(_PAUSE)
        raise DeviceOpenError(
            f"{NAME}: no two samples agreed within {_FIRST:g} s after the motors were armed: keep the arm at rest, do "
            "not pull at it, and check the cables of encoders and sensor."
        )
