"""Emulated arm: a drive on an emulated bus and a force sensor at real sockets or a pseudo-terminal.

Both belong to one arm, which is moved by the motors and held by a hand. They run in one process, so that drive and
sensor survive their driver. The parts are `devices.emulators.odrive`, `devices.emulators.rdt` and
`devices.emulators.optoforce`. After its standard input has ended the process continues while a motor is armed, like the
drive alone (`devices.emulators.odrive.server`).
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.mechanics.linkage import flange_angle
from devices.arm.mechanics.plant import step_plant
from devices.arm.motors.settings import DriveGains
from devices.common.settings import Workspace
from devices.emulators.odrive.axis import AXIS, STEP, iterate
from devices.emulators.odrive.board import EmulatedOdrive, EmulatedOdriveBackend
from devices.emulators.odrive.server import serving
from devices.emulators.optoforce import OptoForceUnit
from devices.emulators.rdt import RdtBox
from devices.emulators.usb_bus import WallTime
from devices.emulators.wire_faults import MOTORS, SENSOR, WireFaults, of_part, sensor_faults
from devices.virtual.arm import BODY_FIELDS, move_body, place_handle
from devices.virtual.device import expect_hand, settle_hand
from devices.virtual.hands.registry import make_hand
from devices.virtual.wrench import WRENCH, WrenchSettings, fill_wrench, measure_wrench, true_wrench
from haptics.device import Vector
from haptics.jit import kernel
from haptics.settings import build

POSITION_BANDWIDTH, SPEED_BANDWIDTH = 40.0, 300.0
"""Bandwidths of the drive's loops [rad/s], limited by its estimate of the speed."""

CURRENT = 10.0
"""Maximum current of a motor [A]."""

SPEED_LIMIT = 100.0
"""Minimum of the speed limit of the motors [turn/s]."""

RESERVE = 1.2
"""Speed limit of the motors as a multiple of the speed that the arm requires, if that is larger."""

WATCHDOG_TESTED = 1.5
"""Time in multiples of its timeout after which a tested watchdog has disarmed its motor."""

SLICES = 8
"""Steps between two samples of the hand's intention, which is interpolated linearly."""

SETTLING = 8000
"""Steps in which gears deflected by the weight of the links relax while the motors are disarmed."""

_NEVER = 2**62
"""Step number that is never reached."""

_VECTORS = ("last_velocity", "acceleration", "ratio", "sign")

SCENE = np.dtype([*BODY_FIELDS, ("sensor", WRENCH), *((name, "<f8", (2,)) for name in _VECTORS)])
"""Record of arm, hand and sensor; ``acceleration`` of the handle is its mean over the latest slices [m/s^2], ``ratio``
the turns of each motor per turn of its joint, ``sign`` the sign of the ratio.
"""


@kernel
def _place(record: Any, steps: int) -> None:
    """Simulate the disarmed arm until friction stops it, and compute the position of the handle."""
    s = record[0]
    for _ in range(steps):
        step_plant(s.arm, s.drives, s.motor_torque, s.scratch)
    place_handle(s)


@kernel
def _expect(record: Any, rate: float, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Set the hand's intention at the end of the next slices, of inverse length `rate` [1/s]."""
    s = record[0]
    settle_hand(s)
    expect_hand(s, x, y, push_x, push_y, grip)
    for i in range(2):
        s.acceleration[i] = rate * (s.handle_velocity[i] - s.last_velocity[i])
        s.last_velocity[i] = s.handle_velocity[i]


@kernel
def _run(axes: Any, record: Any, first: int, count: int) -> None:
    """Simulate `count` control iterations from index `first` of a slice: both axes, then the arm."""
    s = record[0]
    rate = 1.0 / (SLICES * STEP)
    for k in range(first, first + count):
        for i in range(2):
            iterate(axes[i], s.arm.rotor[i] * s.ratio[i] / math.tau)
        for i in range(2):
            s.motor_torque[i] = s.sign[i] * axes[i].torque
        move_body(s, k / SLICES, rate)


@kernel
def _sense(record: Any, period: float) -> None:
    """Measure the wrench `period` [s] after the last measurement."""
    s = record[0]
    angle = flange_angle(s.arm.links.linkage, s.arm.angle[0], s.arm.angle[1])
    true_wrench(s.sensor, angle, s.hand_force[0], s.hand_force[1], s.acceleration[0], s.acceleration[1])
    measure_wrench(s.sensor, period)


class ArmPlant:
    """Arm held by a hand (`devices.emulators.odrive.axis.Plant`).

    Its operator holds it at the start position of the hand. From `begin` on, the hand holds and moves the handle.

    Parameters
    ----------
    body : ArmBody
        Model of the arm.
    ratios : (float, float)
        Turns of each motor per turn of its joint; the signs are the mounting directions of the motors.
    workspace : Workspace
        Workspace of the hand.
    hand : mapping or None
        Table of the hand (`devices.virtual.hands.registry`).
    seed : int
        Seed of the random numbers.
    sensor : WrenchSettings, optional
        Properties and mounting of the force sensor.
    """

    def __init__(
        self,
        body: ArmBody,
        ratios: tuple[float, float],
        workspace: Workspace,
        hand: Mapping[str, Any] | None = None,
        seed: int = 0,
        sensor: WrenchSettings | None = None,
    ) -> None:
        self._hand = make_hand(hand, seed, workspace)
        self._ratios = np.array(ratios)
        self._record = np.zeros(1, SCENE)
        record = self._record
        record["substep"] = STEP
        record["ratio"], record["sign"] = ratios, np.copysign(1.0, ratios)
        record["drives"] = body.new_plant(record["arm"], self._hand.start, STEP)
        record["grip_stiffness"], record["grip_damping"] = self._hand.stiffness, self._hand.damping
        _place(record, SETTLING if body.gravity > 0.0 else 0)
        fill_wrench(record["sensor"], sensor or WrenchSettings(), body.handle_mass, body.gravity, seed)
        record["target"] = record["next_target"] = record["handle"]
        self._begun = False
        self._slice = self._steps = self._seen = 0
        copy = record.copy()  # copy on which all kernels are compiled in advance
        _expect(copy, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        _run(np.zeros(2, AXIS), copy, 0, 0)
        _sense(copy, STEP)
        self._hand.prepare()

    def begin(self) -> None:
        """Make the hand grasp the handle."""
        self._begun = True
        self._slice = self._steps = self._seen = 0

    def clamp(self, clamped: bool = True) -> None:
        """Clamp the last link in place, or release it; the force sensor does not measure the clamping force."""
        record = self._record
        record["clamp_first"] = record["clamp_end"] = record["steps"]
        if clamped:
            record["clamp_end"] = _NEVER

    # --- interface to the motors -------------------------------------------------------------------------------------

    @property
    def angles(self) -> Vector:
        """Angles of the motors' shafts, (2,) [turn]."""
        return np.asarray(self._record["arm"]["rotor"][0] * self._ratios / math.tau)

    @property
    def speeds(self) -> Vector:
        """Speeds of the motors' shafts, (2,) [turn/s]."""
        return np.asarray(self._record["arm"]["rotor_speed"][0] * self._ratios / math.tau)

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations; see `devices.emulators.odrive.axis.Plant`."""
        while count > 0:
            if self._begun and self._slice == 0:  # sample the hand's intention at the end of the next slices
                hand = self._hand.sample((self._steps + SLICES) * STEP, self.handle)
                rate = 1.0 / (SLICES * STEP)
                _expect(self._record, rate, hand.x, hand.y, hand.force_x, hand.force_y, hand.grip)
            steps = min(SLICES - self._slice, count)
            _run(axes, self._record, self._slice, steps)
            self._steps += steps
            self._slice = (self._slice + steps) % SLICES
            count -= steps

    # --- interface to sensor and observers ---------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return the present measurement of the sensor, (6,) [N], [N m], in its axes."""
        _sense(self._record, (self._steps - self._seen) * STEP)
        self._seen = self._steps
        shown: list[float] = self._record["sensor"]["shown"][0].tolist()
        return shown

    @property
    def handle(self) -> Vector:
        """True position of the handle, (2,) [m]."""
        return np.array(self._record["handle"][0])

    @property
    def hand_force(self) -> Vector:
        """True force of the hand on the handle, (2,) [N]."""
        return np.array(self._record["hand_force"][0])


def gains_for(body: ArmBody) -> DriveGains:
    """Return gains of the drive for the inertia that the motors of an arm turn, in the middle of the workspace."""
    inertia = body.links.terms(body.angles(0.0, 0.0))["inertia"][0]
    links = float(0.5 * inertia.trace()) / body.reduction**2  # mean at a motor [kg m^2]
    speed = SPEED_BANDWIDTH * math.tau * (body.rotor_inertia + links)
    return DriveGains(POSITION_BANDWIDTH, speed, 0.5 * POSITION_BANDWIDTH * speed)


class ArmBoard(EmulatedOdrive):
    """Emulated drive with an arm behind it, configured for that arm.

    The hand grasps the handle when the motors have been armed for longer than a tested watchdog would allow. All fault
    times count from then.

    Parameters
    ----------
    plant : ArmPlant
        The arm.
    body : ArmBody
        Model of the arm, for the configuration.
    motor_faults : iterable of str
        Faults of the drive (`devices.emulators.odrive.board`).
    sensor_faults : WireFaults, optional
        Faults of the force sensor.
    time : WallTime, optional
        Clock; by default real time.
    fastest : float
        Speed that the arm requires of its motors [turn/s].
    watchdog : float
        Timeout of its enabled watchdogs [s]; 0 if the driver enables them.
    """

    plant: ArmPlant

    def __init__(
        self,
        plant: ArmPlant,
        body: ArmBody,
        motor_faults: Iterable[str] = (),
        sensor_faults: WireFaults | None = None,
        time: WallTime | None = None,
        fastest: float = 0.0,
        watchdog: float = 0.0,
    ) -> None:
        super().__init__(plant, time=time, faults=motor_faults)
        self._sensor_faults = sensor_faults or WireFaults({})
        self.faults.origin = self._sensor_faults.origin = math.inf
        self._test_duration, self._driven_since = WATCHDOG_TESTED * watchdog, math.inf
        gains = gains_for(body)
        for axis in self.inside.axes:
            axis.values.update(
                {
                    "motor.config.torque_constant": body.torque_limit / CURRENT,
                    "motor.config.current_lim": CURRENT,
                    "encoder.config.cpr": body.encoder_counts,
                    "controller.config.vel_limit": max(SPEED_LIMIT, RESERVE * fastest),
                    "controller.config.pos_gain": gains.position,
                    "controller.config.vel_gain": gains.speed,
                    "controller.config.vel_integrator_gain": gains.integrator,
                    "config.watchdog_timeout": watchdog,
                    "config.enable_watchdog": watchdog > 0.0,
                }
            )

    def catch_up(self) -> frozenset[str]:
        """Advance to the present time; return the names of the active faults."""
        with self.lock:
            if math.isinf(self.faults.origin):
                driven = all(axis.driven for axis in self.inside.axes)
                self._driven_since = min(self._driven_since, self.now) if driven else math.inf
                if self.now - self._driven_since >= self._test_duration:
                    self.faults.origin = self._sensor_faults.origin = self.now
                    self.plant.begin()
            return super().catch_up()

    # --- interface to the sensor -------------------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return the present measurement of the sensor, (6,) [N], [N m]."""
        with self.lock:
            self.catch_up()
            return self.plant.wrench()

    def sensor_faults(self) -> frozenset[str]:
        """Return the names of the active faults of the sensor."""
        return self._sensor_faults.at(self.now)


def make_sensor(
    name: str, table: dict[str, Any], wrench: Callable[[], Sequence[float]], active: Callable[[], Set[str]]
) -> tuple[RdtBox | OptoForceUnit, dict[str, Any]]:
    """Return an emulated sensor, which serves as a context manager, and the settings that locate it.

    Parameters
    ----------
    name : str
        ``ati``, ``onrobot-hex`` or ``optoforce``.
    table : dict
        The driver's own settings of the sensor.
    wrench : callable
        Returns the present measurement of the sensor, (6,) [N], [N m].
    active : callable
        Returns the names of the active faults.
    """
    if name == "optoforce":
        unit = OptoForceUnit(wrench, [counts / load for counts, load in table["sensitivity"]], active)
        return unit, {"port": unit.port}
    box = RdtBox(wrench, active=active, is_hex=name == "onrobot-hex")
    return box, box.address if name == "onrobot-hex" else box.web_address


@contextlib.contextmanager
def emulator(table: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build an arm; yield the address of its drive with the settings that locate its sensor, and its server.

    Parameters
    ----------
    table : dict
        ``arm`` (`devices.arm.body.ArmBody`), ``ratios``, ``half_width``, ``half_height``, ``hand`` and ``seed`` as for
        `ArmPlant`; ``fastest``, the required speed of its motors [turn/s]; ``watchdog``, the timeout of its enabled
        watchdogs [s], or 0; ``sensor``, the driver's settings of its sensor, and ``mounting``, its true orientation on
        the flange; ``faults`` (`devices.emulators.wire_faults.arm_faults`); ``log``, a file for the final state of the
        motors.
    """
    body = build(ArmBody, table["arm"], "device.arm")
    upper = table["half_width"], table["half_height"]
    workspace = Workspace((-upper[0], -upper[1]), upper)
    mounting = WrenchSettings(**table["mounting"])
    plant = ArmPlant(body, table["ratios"], workspace, table["hand"], table["seed"], mounting)
    name = table["sensor"]["name"]
    faults = WireFaults(sensor_faults(name), of_part(SENSOR, table["faults"]))
    timing = {name: table[name] for name in ("fastest", "watchdog")}
    board = ArmBoard(plant, body, of_part(MOTORS, table["faults"]), faults, **timing)
    sensor, located = make_sensor(name, table["sensor"], board.wrench, board.sensor_faults)
    with serving(EmulatedOdriveBackend(board), table["log"]) as (address, loop, serve), sensor.within(loop):
        yield f"{address} {json.dumps(located)}", serve
