"""Moving the joints of an arm by its own servo, one after the other, and recording what its motors do.

An arm goes where it is told, so its reference is the motion, and the torques of its motors are what moves it against
friction. What the links' weight and the motion of the other joint take is known from the model of the arm; inertia
is found with the friction. The recording is a CSV file that is written as it goes.

Where a joint turns back, its gear is first wound up the other way: the motor moves, and the friction of the joint is
still turning over. What was measured on that way is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.excitation import Excitation, approach, to_and_fro
from calibration.measured_files import Source
from calibration.measurements import Measurement
from calibration.signals import motion, smooth
from devices.arm.body import ArmBody
from haptics.clock import Clock
from haptics.device import Causality, Device, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault

Array = NDArray[np.float64]

JOINTS = ("1", "2")
DEFAULT = Excitation(slowest=5e-3, fastest=0.5, stroke_time=1.5, strokes=1)
"""Speeds of joints [rad/s] and their acceleration [rad/s^2]."""

_WOUND_UP = 3.0
"""A gear has turned over, and what that set swinging has died down, after so many times the way that its model takes
to turn over."""

_ROOM = 0.9
"""Part of the way to the edge of the workspace that is used."""

_ASTRAY = 0.02
"""An end effector farther from where it should be does not follow [m]."""

_WRITE = 100
"""Ticks after which they are written to the disk."""

_QUANTITIES = ("position_rad", "velocity_rad_per_s", "torque_nm")
_COLUMNS = ["time_s", *(f"{joint}.{quantity}" for joint in JOINTS for quantity in _QUANTITIES)]


class ShowsJoints(Protocol):
    """What an arm must show besides."""

    body: ArmBody

    @property
    def joint_angles(self) -> Array:
        """Of both joints [rad]."""
        ...

    @property
    def motor_torques(self) -> Array:
        """Of both motors, at their shafts [N m]."""
        ...


def excite_arm(
    device: Any,
    excitation: Excitation,
    file: Path,
    clock: Clock,
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, list[Measurement]]:
    """Move the joints of an arm and return what was measured of each, round by round.

    Parameters
    ----------
    device : Device with `ShowsJoints`
        Not yet open, nobody's hand on it.
    excitation : Excitation
        The motions of each joint: speeds in rad/s, acceleration in rad/s^2.
    file : Path
        The recording, a CSV file that does not exist yet.
    clock : Clock
        The device's clock.
    progress : callable
        Gets the share that is done.

    Raises
    ------
    ConfigurationError
        If the device is no arm that shows its joints, or cannot do the motions.
    DeviceFault
        If it does not follow. What was recorded stays.
    """
    require_joints(device)
    body = device.body
    angles, parts = plan_joints(body, excitation, device.spec, clock.period)
    file.parent.mkdir(parents=True, exist_ok=True)
    device.open()
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(f"# {device.spec.name} {device.spec.identity}, moved by itself\n")
            log = _Log(body, out, clock.period)
            try:
                _follow(device, body.linkage.positions(angles), clock, log, progress)
            finally:
                log.write()
    finally:
        device.close()
    source = Source(
        str(file), hashlib.sha256(file.read_bytes()).hexdigest(), f"{device.spec.name} {device.spec.identity}"
    )
    table = np.concatenate(log.tables)
    way = _WOUND_UP * 2.0 * (body.lost_motion + body.static_friction / body.stiffness)
    return {joint: [_measured(table[part], k, way, source) for part in parts[k]] for k, joint in enumerate(JOINTS)}


def require_joints(device: Device) -> None:
    """Raise `ConfigurationError` unless the device is an arm that shows its joints and what its motors do."""
    shows = all(hasattr(type(device), name) for name in ("joint_angles", "motor_torques")) and hasattr(device, "body")
    if device.spec.causality is not Causality.ADMITTANCE or not shows:
        raise ConfigurationError(
            f"{device.spec.name} does not show its joints and the torques of its motors here: record them and give the "
            "file with --data."
        )


def plan_joints(
    body: ArmBody, excitation: Excitation, spec: DeviceSpec, period: float
) -> tuple[Array, list[list[slice]]]:
    """Return the joint angles [rad] at each tick, (n, 2), and the ticks that belong to the rounds of each joint."""
    home, ways, count = np.array(body.linkage.home), [], 0
    parts: list[list[slice]] = [[], []]
    for joint in range(2):
        along = to_and_fro(excitation, 2.0 * _reach(body, joint, spec), excitation.acceleration, np.inf, period)
        for _ in range(excitation.rounds):
            ways.append(home + np.outer(along, np.eye(2)[joint]))
            parts[joint].append(slice(count, count + len(along)))
            count += len(along)
    return np.concatenate(ways), parts


def _reach(body: ArmBody, joint: int, spec: DeviceSpec) -> float:
    """Return how far a joint can turn from home, in both directions, within the workspace [rad]."""
    turns = np.linspace(0.0, 1.0, 201)
    sides = np.concatenate((turns, -turns))
    places = body.linkage.positions(np.array(body.linkage.home) + np.outer(sides, np.eye(2)[joint]))
    inside = ((places >= spec.workspace_min) & (places <= spec.workspace_max)).all(axis=1).reshape(2, -1).all(axis=0)
    last = int(np.argmin(inside)) - 1 if not inside.all() else len(turns) - 1
    return float(_ROOM * turns[max(last, 0)])


class _Log:
    """What is measured of an arm, tick by tick; it is written to a file as it comes."""

    def __init__(self, body: ArmBody, out: IO[str], period: float) -> None:
        self._links, self._reduction = body.model_links, body.reduction
        self._out, self._period = out, period
        self._new: list[tuple[float, ...]] = []
        self._last: Array | None = None
        self.tables: list[Array] = []
        out.write(f"{','.join(_COLUMNS)}\n")

    def append(self, time: float, device: Any) -> None:
        """Take what the arm shows now, as often as it was missed before."""
        self._new.append((time, *device.joint_angles, *device.motor_torques))

    def write(self) -> None:
        """Write what is new. A torque is minus what is left of the motor's for friction and inertia."""
        if not self._new:
            return
        rows = np.array(self._new)
        angles = rows[:, 1:3]
        before = angles[:1] if self._last is None else self._last
        speeds = np.diff(angles, axis=0, prepend=before) / self._period
        terms = self._links.terms(angles, speeds)
        load = terms["gravity"] + np.einsum("nij,nj->ni", terms["coriolis"], speeds)
        torques = load - self._reduction * rows[:, 3:5]
        table = np.column_stack((rows[:, 0], np.stack((angles, speeds, torques), axis=2).reshape(len(rows), -1)))
        np.savetxt(self._out, table, "%.9g", ",")
        self._out.flush()
        self.tables.append(table)
        self._last = angles[-1:]
        self._new.clear()


def _follow(device: Any, positions: Array, clock: Clock, log: _Log, progress: Callable[[float], None]) -> None:
    """Go to the first position and follow them all, with a row of the log for each of them."""
    clock.start()
    way, _ = approach(np.array(device.read().position), positions[0], clock.period)
    places, begun, tick = np.concatenate((way, positions)), len(way), 0
    done = begun
    while tick < len(places):
        late = clock.wait(tick)
        if late >= clock.period:
            tick = min(tick + int(late / clock.period), len(places) - 1)
            clock.tick = tick
        _step(device, places[tick], tick)
        for missed in range(done, tick + 1):  # what was missed is as it is now
            log.append(missed * clock.period, device)
        done, tick = max(done, tick + 1), tick + 1
        if tick % _WRITE == 0:
            log.write()
            progress(tick / len(places))
    log.write()


def _step(device: Any, place: Array, tick: int) -> None:
    away = float(np.hypot(*(device.read().position - place)))
    if not away <= _ASTRAY:
        raise DeviceFault(
            f"{device.spec.name}: the end effector is {1e3 * away:.0f} mm from where it should be at tick {tick}; see "
            "that nothing is in its way, or choose slower motions."
        )
    device.write(place)


def _measured(table: Array, joint: int, way: float, source: Source) -> Measurement:
    time, position, effort = table[:, 0], table[:, 1 + 3 * joint], table[:, 3 + 3 * joint]
    moved = motion(time, position)
    kept = _since_turning(moved.position, moved.velocity) > way
    return Measurement(
        joint=JOINTS[joint],
        rotary=True,
        time=time[kept] - time[kept][0],
        velocity=moved.velocity[kept],
        effort=smooth(time, effort, moved.cutoff)[kept],  # as smooth as the acceleration
        source=source,
        acceleration=moved.acceleration[kept],
        instrument=moved.instrument[kept],
        velocity_noise=moved.velocity_noise,
    )


def _since_turning(position: Array, velocity: Array) -> Array:
    """Return how far a joint has come since it turned back last [rad]."""
    turns = np.flatnonzero(np.diff(np.signbit(velocity))) + 1
    last = np.concatenate(([0], turns))[np.searchsorted(turns, np.arange(len(position)), side="right")]
    return np.asarray(np.abs(position - position[last]))
