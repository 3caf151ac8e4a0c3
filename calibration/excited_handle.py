"""Bringing an arm to several poses and recording what its force sensor shows there, with nobody at the handle.

The poses are a grid in the workspace, so that the flange turns as far as it can, there and back again, so that a bias
that wanders is not taken for weight. The recording is a CSV file that is written as it goes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.excitation import approach
from calibration.handle import LEAST_POSES, RestingWrenches
from calibration.measured_files import Source
from haptics.clock import Clock
from haptics.device import Device, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault
from haptics.settings import bounded, check

Array = NDArray[np.float64]

_ROOM = 0.9
"""Part of the workspace that is used."""

_USABLE = 0.5
"""At least this part of what the sensor showed in a pose must be usable."""

_ASTRAY, _PATIENCE = 0.01, 1.0
"""An end effector farther than this from where it should be [m] is waited for, so long [s]."""

_WRITE = 100
"""Ticks after which they are written to the disk."""

_COLUMNS = (
    "time_s,x_m,y_m,gravity_x_m_per_s2,gravity_y_m_per_s2,gravity_z_m_per_s2,"
    "force_x_n,force_y_n,force_z_n,torque_x_nm,torque_y_nm,torque_z_nm"
)


@dataclass(frozen=True)
class Poses:
    """Where the arm rests, and how it gets there.

    Attributes
    ----------
    columns, rows : int
        Of the grid of poses.
    rounds : int
        How often the arm goes through them: there, and back, and so on.
    settle, hold : float
        In each pose it waits and then measures for so long [s].
    speed : float
        Between the poses [m/s].
    """

    columns: int = bounded(4, minimum=1, maximum=12, doc="poses beside each other")
    rows: int = bounded(3, minimum=1, maximum=12, doc="poses above each other")
    rounds: int = bounded(2, minimum=1, maximum=12, doc="how often the arm goes through all of them")
    settle: float = bounded(0.3, minimum=0.0, maximum=10.0, unit="s", doc="waiting in each pose")
    hold: float = bounded(0.5, minimum=0.05, maximum=10.0, unit="s", doc="measuring in each pose")
    speed: float = bounded(0.1, minimum=1e-3, maximum=1.0, unit="m/s", doc="between the poses")

    def __post_init__(self) -> None:
        check(self, "poses")
        for name in ("columns", "rows", "rounds"):
            if not isinstance(getattr(self, name), int):
                raise ConfigurationError(f"poses.{name} = {getattr(self, name)!r}: must be a whole number.")
        count = self.columns * self.rows * self.rounds
        if count < LEAST_POSES:
            raise ConfigurationError(f"poses: there are {count} of them; must be at least {LEAST_POSES}.")


class ShowsWrench(Protocol):
    """What an arm must show besides."""

    @property
    def raw_wrench(self) -> Array:
        """What its sensor shows in its own axes, (6,) [N], [N m]; nan where that cannot be trusted."""
        ...

    @property
    def sensor_gravity(self) -> Array:
        """Gravity in the axes of the sensor, (3,) [m/s^2]."""
        ...


def require_wrench(device: Device) -> None:
    """Raise `ConfigurationError` unless the device is an arm that shows what its force sensor shows."""
    if not all(hasattr(type(device), name) for name in ("raw_wrench", "sensor_gravity")):
        raise ConfigurationError(
            f"{device.spec.name}: has no force sensor that carries a handle; choose virtual-arm or arm."
        )


def measure_wrenches(
    device: Any,
    poses: Poses,
    file: Path,
    clock: Clock,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[RestingWrenches, Source]:
    """Bring an arm to the poses; return what its sensor showed there, and the recording.

    Parameters
    ----------
    device : Device with `ShowsWrench`
        Not yet open, nobody's hand on it.
    poses : Poses
        Where to go.
    file : Path
        The recording, a CSV file that does not exist yet.
    clock : Clock
        The device's clock.
    progress : callable
        Gets the share that is done.

    Raises
    ------
    ConfigurationError
        If the device is no such arm.
    DeviceFault
        If it does not follow, or its sensor shows nothing usable. What was recorded stays.
    """
    require_wrench(device)
    places, holds = plan_poses(poses, device.spec, clock.period)
    file.parent.mkdir(parents=True, exist_ok=True)
    device.open()
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(f"# {device.spec.name} {device.spec.identity}, its handle left alone\n{_COLUMNS}\n")
            log = _Log(out)
            try:
                _visit(device, places, clock, log, progress)
            finally:
                log.write()
    finally:
        device.close()
    source = Source(
        str(file), hashlib.sha256(file.read_bytes()).hexdigest(), f"{device.spec.name} {device.spec.identity}"
    )
    table = np.concatenate(log.tables)
    means = np.array([_mean(table[hold], device.spec.name) for hold in holds])
    return RestingWrenches(means[:, 0], means[:, 3:6], means[:, 6:]), source


def plan_poses(poses: Poses, spec: DeviceSpec, period: float) -> tuple[Array, list[slice]]:
    """Return where the end effector is to be at each tick, (n, 2) [m], and the ticks of each pose that count."""
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    middle, half = 0.5 * (lower + upper), 0.5 * _ROOM * (upper - lower)
    across, along = _spread(poses.columns), _spread(poses.rows)
    grid = [(x, y) for k, y in enumerate(along) for x in (across if k % 2 == 0 else across[::-1])]
    stations = middle + half * np.array([place for k in range(poses.rounds) for place in grid[:: 1 - 2 * (k % 2)]])
    settle, hold = round(poses.settle / period), max(round(poses.hold / period), 1)
    ways, holds, count = [], [], 0
    for before, station in zip([stations[0], *stations[:-1]], stations, strict=True):
        way, _ = approach(before, station, period, min(poses.speed, 0.5 * spec.max_speed))
        ways += [way, np.tile(station, (settle + hold, 1))]
        count += len(way) + settle + hold
        holds.append(slice(count - hold, count))
    return np.concatenate(ways), holds


def _visit(device: Any, places: Array, clock: Clock, log: _Log, progress: Callable[[float], None]) -> None:
    """Go to the first place and on through all of them, with a row of the log for each."""
    clock.start()
    way, _ = approach(np.array(device.read().position), places[0], clock.period)
    whole, tick, k, waited = np.concatenate((way, places)), 0, 0, 0
    while k < len(whole):
        late = clock.wait(tick)
        if late >= clock.period:  # then it takes longer; nothing goes faster for it
            tick += int(late / clock.period)
            clock.tick = tick
        away = float(np.hypot(*(device.read().position - whole[k])))
        device.write(whole[k])
        tick += 1
        if not away <= _ASTRAY:  # the way waits for the arm, for a while
            waited += 1
            if waited * clock.period > _PATIENCE:
                raise DeviceFault(
                    f"{device.spec.name}: the end effector is {1e3 * away:.0f} mm from where it should be at tick "
                    f"{tick}; see that nothing is in its way."
                )
            continue
        if k >= len(way):
            log.append(tick * clock.period, device)
        if k % _WRITE == 0:
            log.write()
            progress(k / len(whole))
        waited, k = 0, k + 1


def _spread(count: int) -> Array:
    return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)


def _mean(rows: Array, name: str) -> Array:
    usable = rows[np.isfinite(rows).all(axis=1)]
    if len(usable) < _USABLE * len(rows):
        raise DeviceFault(
            f"{name}: only {len(usable)} of {len(rows)} measurements of its force sensor were usable in a pose."
        )
    return np.asarray(usable.mean(axis=0))


class _Log:
    """Where the end effector is and what the sensor shows, tick by tick; written to a file as it comes."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._new: list[Array] = []
        self.tables: list[Array] = []

    def append(self, time: float, device: Any) -> None:
        """Take what the arm shows now."""
        self._new.append(np.array([time, *device.read().position, *device.sensor_gravity, *device.raw_wrench]))

    def write(self) -> None:
        """Write what is new."""
        if not self._new:
            return
        table = np.array(self._new)
        np.savetxt(self._out, table, "%.9g", ",")
        self._out.flush()
        self.tables.append(table)
        self._new.clear()
