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

from devices.arm.device_kernels import (
    ARM,
    CHANNELS,
    SENSOR_LOST,
    SENSOR_SILENT,
    TOO_FAR,
    fill_linkage,
    give_arm,
    take_arm,
    take_pose,
)
from devices.arm.motors import MotorStage, make_stage
from devices.arm.motors.streaming import SILENCE
from devices.arm.sensors.choosing import make_sensor
from devices.arm.sensors.force_sensor import ForceSensor
from devices.arm.servo.references import MotorReferences
from devices.arm.settings import ArmSettings
from devices.common.driver import Driver
from devices.common.waking import Wake
from haptics.clock import Clock, go_on, pause
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "arm"

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


class Arm(Driver):
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
        self._references = MotorReferences(
            own.references, body.model_links, body.model_joints, self._clock.period, body.linkage
        )
        record["servo"], record["refer"], record["follows"] = self._references.places
        fill_linkage(record, body.linkage)
        self._orientation = record["orientation"][0]
        self._state.channels = record["channels"][0][: sum(size for _, _, size in CHANNELS)]
        self._stage: MotorStage | None = None
        self._sensor: ForceSensor | None = None
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
        self._prepare()
        self._references.start(self._home_angles)  # it is compiled now, and not when the motors are driven
        self._begin_log(self.settings.log)
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
        self._end_log()
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

    def _threads(self) -> Wake:
        return self._open_parts()[0].wake

    def _words(self, fault: int) -> DeviceFault:
        """Return what is said about a ``fault`` of motors or sensor."""
        stage, sensor = self._open_parts()
        if fault == TOO_FAR:
            return stage.too_far(self._record["goal"][0])
        if fault in (SENSOR_LOST, SENSOR_SILENT):
            return sensor.trouble(float(sensor.record["age"][0]))
        return DeviceFault(stage.failure)

    def _look(self, stage: MotorStage) -> None:
        """Take the latest angles and speeds of the joints."""
        stage.look()
        take_pose(self._record)

    def _connect(self, resources: contextlib.ExitStack) -> tuple[MotorStage, ForceSensor]:
        """Make the motors and the sensor; `resources` gets what undoes it."""
        far_end, table = self._far_end(resources)
        own, record = self.settings, self._record
        stage, sensor = make_stage(own.motor_table, self._clock.period, own.demands, far_end), make_sensor(table)
        record["motors"], record["sensor"] = stage.record.ctypes.data, sensor.record.ctypes.data
        return stage, sensor

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
