"""Settings of the arm with its motors and its force sensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.arm.body import PLACE, ArmBody
from devices.arm.motors.settings import Demands, DriveGains, OdriveSettings
from devices.arm.sensors.force_sensor import STANDARD_GRAVITY, ForceSensor, SensorSettings, Wire
from devices.arm.sensors.optoforce import OptoForceSettings, OptoForceWire
from devices.arm.sensors.rdt import AtiSettings, AtiWire, OnRobotSettings, OnRobotWire
from devices.arm.servo.linear import DrivenArm, Grip, least_mass
from devices.arm.servo.settings import ServoSettings
from devices.common.settings import RunSettings, Workspace
from haptics.design import FIRM_GRIP
from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, documented, flag, unknown_name, unrestricted

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
        self.body.require_workspace(self.workspace.lower, self.workspace.upper)
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
    def motor_table(self) -> dict[str, Any]:
        """Settings table of the motors, with the arm's reductions as defaults."""
        reduction = self.body.reduction
        return {"reduction_1": reduction, "reduction_2": reduction, **(self.motors or {})}

    @property
    def motor_settings(self) -> OdriveSettings:
        """Settings of the motors."""
        return build(OdriveSettings, self.motor_table, "device.motors")

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
