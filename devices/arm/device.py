"""The arm behind the device contract: two motors that follow angles, and a force sensor that the hand holds.

    device = Arm({"at_home": True, "sensor": {"name": "ati", "address": "192.168.1.1"}})

The hand's force goes out, a position reference comes in (`devices.arm.settings` has the settings, ``docs/arm.md`` tells
how it is used). The motors are behind `devices.arm.motors.MotorStage`, the sensor is a
`devices.arm.sensors.force_sensor.ForceSensor`; threads of theirs talk to both, the tick never waits for a wire.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from devices.arm.device_kernels import aim, new_record, take_force, take_joints
from devices.arm.motors import MotorStage, make_stage
from devices.arm.motors.streaming import SILENCE
from devices.arm.sensors.choosing import make_sensor
from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.servo.references import MotorReferences
from devices.arm.settings import ArmSettings
from devices.common.driver import Managed
from devices.common.log import CommandLog
from haptics.clock import Clock, WallClock, go_on, pause
from haptics.device import Causality, Channel, DeviceSpec, State, Vector
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "arm"

CHANNELS: tuple[Channel, ...] = (
    ("joint_angles", "rad", 2),
    ("raw_wrench", "N, N m", 6),
    ("sensor_gravity", "m/s^2", 3),
)
"""What it shows beside its handle: its joints, what the force sensor shows in its own axes (nan where that is not
usable), and gravity in those axes."""

AGREE = 1e-3
"""Two samples in a row that agree are this close to each other before the first tick [m]."""

AGREE_FORCE = 5.0
"""So are their forces [N]."""

_FIRST = 1.0
"""Time for two samples that agree [s]."""

_NEWER = 1e-4
"""A measurement this much later is another one [s]."""

_PAUSE = 2e-3
"""Between two looks while nothing moves by itself [s]."""


class Arm(Managed):
    """An arm of the admittance kind.

    Parameters
    ----------
    settings : mapping, optional
        Those of `ArmSettings`.
    clock : Clock, optional
        The run's clock; without one, time since ``open`` counts.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

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
        self._clock = clock or WallClock(own.period)
        body = self._body
        self._references = MotorReferences(
            own.references, body.model_links, body.model_joints, self._clock.period, body.linkage
        )
        self._record = new_record(body.linkage)
        record = self._record
        self._force, self._load, self._goal = record["force"][0], record["load"][0], record["goal"][0]
        self._orientation = record["orientation"][0]
        self._state = State(0.0, record["position"][0], record["velocity"][0], self._force)
        self._channels = self._state.channels = np.full(sum(size for _, _, size in CHANNELS), math.nan)
        self._stage: MotorStage | None = None
        self._sensor: ForceSensor | None = None
        self._log: CommandLog | None = None
        self._resources = contextlib.ExitStack()

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet. Its watchdog is that of the drive, which lets go of the motors."""
        own = self.settings
        motors = own.motor_settings
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
            position_resolution=self._resolution,
            mass=float(np.linalg.eigvalsh(self._body.mass_at(0.0, 0.0))[0]),
            delay=own.delay_at(self._clock.period),
            servo_frequency=own.servo_frequency or None,
            servo_damping_ratio=own.servo_damping_ratio,
            servo_knows_velocity=True,
            handle_mass=self._body.handle_mass,
            least_mass=own.least_mass(self._clock.period),
            channels=CHANNELS,
        )

    # --- the contract ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, home the encoders if they need it, tare the sensor, drive the motors; nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError
            If drive or sensor is not there.
        DeviceOpenError
            If one of them cannot be used, or it is not known where the arm is; says what to do.
        """
        if self._stage is not None:
            return
        self._warm_up()
        self._log = CommandLog(self.settings.log) if self.settings.log else None
        resources = contextlib.ExitStack()
        try:
            stage, sensor = self._connect(resources)
            sensor.open()
            resources.callback(sensor.close)
            stage.open()
            resources.callback(stage.close)
            self._find_home(stage)
            self._await_inside(stage)
            if self.settings.tare:
                sensor.tare(self._orientation)
            go_on()
            stage.arm()
            self._await_agreement(stage, sensor)
        except BaseException:
            with contextlib.suppress(DeviceFault):  # the first error is the one to report
                resources.close()
            raise
        first, second = stage.look().tolist()
        self._references.start((first, second))
        self._stage, self._sensor, self._resources = stage, sensor, resources

    def read(self) -> State:
        """Return the newest sample at once, as old as the older of its two parts; the arrays are reused.

        Raises
        ------
        DeviceFault
            If there will be no more.
        """
        stage, sensor = self._open_parts()
        self._look(stage)
        reading = sensor.latest(self._orientation)
        take_force(self._record, reading.wrench[0], reading.wrench[1])
        state, channels = self._state, self._channels
        channels[2:8], channels[8:11] = sensor.raw(), sensor.gravity(self._orientation)
        state.time = self._clock.elapsed() - max(time.perf_counter() - stage.sampled, reading.age)
        return state

    def write(self, command: Vector) -> None:
        """Take a position reference, (2,) [m]; it is on its way when this returns.

        Raises
        ------
        DeviceFault
            If it is not finite, the arm does not reach there, or the motors do not follow any more.
        """
        stage, _ = self._open_parts()
        x, y = float(command[0]), float(command[1])
        aim(self._record, x, y)
        if not math.isfinite(self._goal[0] + self._goal[1]):
            raise DeviceFault(f"{NAME} was given the command ({x:g}, {y:g}): it must be finite, and within reach.")
        stage.tick(*self._references.step(self._goal, self._load))
        if self._log is not None:
            self._log.append(self._state.time, x, y)

    def close(self) -> None:
        """Let go of the motors and disconnect; nothing happens if it is not open.

        Raises
        ------
        DeviceFault
            If it is not certain that the motors are loose.
        """
        if self._stage is None:
            return
        self._stage = self._sensor = None
        self._log = None
        self._resources.close()

    # --- for an observer ---------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Mapping[str, Any]:
        """What its drive says of itself, such as its limits, for the recording; empty if it is not open."""
        return {"motors": dict(self._stage.facts)} if self._stage is not None else {}

    @property
    def tally(self) -> Mapping[str, int]:
        """What came of the force sensor and what did not, by name; empty if it is not open."""
        return self._sensor.tally if self._sensor is not None else {}

    @property
    def raw_wrench(self) -> NDArray[np.float64]:
        """What the force sensor shows now in its own axes, (6,) [N], [N m]; nan if that is not usable."""
        return self._open_parts()[1].raw()

    @property
    def sensor_gravity(self) -> NDArray[np.float64]:
        """Gravity in the axes of the force sensor at the latest sample, (3,) [m/s^2]."""
        return self._open_parts()[1].gravity(self._orientation)

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _resolution(self) -> float:
        """Smallest step of the encoders at the end effector in the middle of the workspace [m]."""
        jacobian = self._body.linkage.jacobians(np.array([self._body.angles(0.0, 0.0)]))[0]
        return float(self._body.resolution * np.linalg.norm(jacobian, 2))

    def _open_parts(self) -> tuple[MotorStage, ForceSensor]:
        if self._stage is None or self._sensor is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._stage, self._sensor

    def _look(self, stage: MotorStage) -> None:
        """Take the latest angles and speeds of the joints."""
        first, second = stage.look().tolist()
        first_speed, second_speed = stage.speeds.tolist()
        take_joints(self._record, first, second, first_speed, second_speed)
        self._channels[0], self._channels[1] = first, second

    def _warm_up(self) -> None:
        """Compile what a tick needs before anything moves."""
        record = self._record.copy()
        take_joints(record, 0.0, 1.0, 0.0, 0.0)
        take_force(record, 0.0, 0.0)
        aim(record, 0.0, 0.0)
        self._references.start(self._home_angles)
        self._references.step(self._home_angles, self._load)

    def _connect(self, resources: contextlib.ExitStack) -> tuple[MotorStage, ForceSensor]:
        """Make the motors and the sensor; `resources` gets what undoes it."""
        far_end, sensor = self._far_end(resources)
        own = self.settings
        return make_stage(own.motor_table, self._clock.period, own.demands, far_end), make_sensor(sensor)

    def _far_end(self, resources: contextlib.ExitStack) -> tuple[Any, dict[str, Any]]:
        """Return what a drive that is none is reached by, and the table of the sensor; `resources` undoes it."""
        return None, self.settings.sensor_table

    def _find_home(self, stage: MotorStage) -> None:
        """Have the encoders count from the arm's zero, if they do not."""
        if stage.homed:
            return
        own = self.settings
        if not own.held:
            raise DeviceOpenError(
                f"{NAME}: its encoders lose their zero when the power goes. Hold the end effector at its home "
                f"({own.home_x:g} m, {own.home_y:g} m) with the elbow on its side, and start again with "
                "device.at_home=true; or choose another place with device.home_x and device.home_y."
            )
        stage.home(np.array(self._home_angles))

    def _await_inside(self, stage: MotorStage) -> None:
        """Wait until the end effector is in the workspace; the motors are loose."""
        latest = time.monotonic() + self.settings.homing_timeout
        while True:
            self._look(stage)
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
        """Wait for two samples in a row, all parts of them new, that say the same: nothing begins with a wrong one."""
        latest = time.monotonic() + _FIRST
        before = np.full(4, math.nan)
        stamp = force_stamp = -math.inf
        while time.monotonic() < latest:
            self._look(stage)
            reading = sensor.latest(self._orientation)
            measured = time.perf_counter() - reading.age
            if stage.sampled > stamp and measured > force_stamp + _NEWER:
                stamp, force_stamp = stage.sampled, measured
                now = np.array((*self._state.position, *reading.wrench[:2]))
                apart = np.abs(now - before)
                if max(apart[:2]) < AGREE and max(apart[2:]) < AGREE_FORCE:
                    return
                before = now
            pause(_PAUSE)
        raise DeviceOpenError(
            f"{NAME}: no two samples agreed within {_FIRST:g} s after the motors were armed: keep the arm at rest, do "
            "not pull at it, and check the cables of encoders and sensor."
        )
