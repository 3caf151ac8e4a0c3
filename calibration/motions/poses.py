"""Motion of an arm to several poses with recording of its force sensor, with no hand at the handle.

The poses are a grid in the workspace with the largest possible rotation of the flange, traversed in both directions so
that a drifting bias is separable from the weight. The motion to a pose and the rest there are motions
(`haptics.rendering.motion`), identified by their labels.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import Source
from calibration.handle import LEAST_POSES, RestingWrenches
from calibration.motions.driving import Measurement
from calibration.motions.excitation import approach, go_to, hold_still
from calibration.motions.procedure import Mover, Procedure, rows_of, source_of
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.columns import CHANNEL
from haptics.recording.recording import Recording
from haptics.rendering.motion import Motion, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

WRENCH, GRAVITY = "raw_wrench", "sensor_gravity"
"""Required channels of an arm: wrench [N], [N m] and gravity [m/s^2] in the axes of the sensor."""

_POSE = "pose"

_ROOM = 0.9
"""Fraction of the workspace that is used."""

_USABLE = 0.5
"""Minimum fraction of valid sensor samples in a pose."""

_ASTRAY = 0.02
"""Maximum following error of the end effector [m]."""


@documented
@dataclass(frozen=True)
class Poses:
    """Settings of the poses and the motions between them."""

    columns: int = bounded(4, minimum=1, maximum=12, doc="columns of the grid of poses")
    rows: int = bounded(3, minimum=1, maximum=12, doc="rows of the grid of poses")
    rounds: int = bounded(
        2, minimum=1, maximum=12, doc="how often the arm goes through all poses: there, back, and so on"
    )
    settle: float = bounded(
        0.3, minimum=0.0, maximum=10.0, unit="s", doc="waiting time in each pose, before it measures"
    )
    hold: float = bounded(0.5, minimum=0.05, maximum=10.0, unit="s", doc="measuring time in each pose")
    speed: float = bounded(0.1, minimum=1e-3, maximum=1.0, unit="m/s", doc="speed between the poses")

    def __post_init__(self) -> None:
        check(self, "poses")
        count = self.columns * self.rows * self.rounds
        if count < LEAST_POSES:
            raise ConfigurationError(f"poses: there are {count} of them; must be at least {LEAST_POSES}.")


class PoseMeasurement(Measurement[tuple[RestingWrenches, Source]]):
    """Wrenches of the force sensor of an arm in several poses, and the recording.

    Parameters
    ----------
    settings : Poses
        Settings of the poses.
    """

    table = "poses"

    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device is an arm that reports its force sensor."""
        spec = mover.spec
        if not {WRENCH, GRAVITY} <= {name for name, *_ in spec.channels}:
            raise ConfigurationError(
                f"{spec.name}: has no force sensor that carries a handle; choose virtual-arm or arm."
            )

    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the duration [s] and the limits of the motion."""
        places, holds = plan_poses(self.settings, mover.spec, mover.period)
        return len(places) * mover.period, f"to {len(holds)} poses with up to {self.settings.speed:g} m/s"

    def motions(self, mover: Mover) -> Procedure:
        """Yield the motions: hold, motion to the first pose, rest there, and the same for the other poses."""
        spec, period = mover.spec, mover.period
        places, holds = plan_poses(self.settings, spec, period)
        move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
        held = yield from hold_still(move, period)
        yield from go_to(move, held, places[0], period)
        begin = 0
        for number, hold in enumerate(holds, 1):
            if hold.start > begin:
                yield move(reference(places[begin : hold.start], period=period), label=f"to {number}")
            yield move(reference(places[hold], period=period), label=f"{_POSE} {number}")
            begin = hold.stop

    def estimate(self, recording: Recording, mover: Mover) -> tuple[RestingWrenches, Source]:
        """Return mean time, gravity and wrench of every pose, and the recording.

        Raises
        ------
        DeviceFault
            If the sensor has too few valid samples in a pose.
        """
        means = []
        for label, rows in rows_of(recording):
            if not label.startswith(_POSE):
                continue
            table = np.column_stack((rows["time"], rows["position"], rows[CHANNEL + GRAVITY], rows[CHANNEL + WRENCH]))
            usable = table[np.isfinite(table).all(axis=1)]
            if len(usable) < _USABLE * len(table):
                raise DeviceFault(
                    f"{recording.metadata['device']['name']}: only {len(usable)} of {len(table)} measurements of its "
                    "force sensor were usable in a pose."
                )
            means.append(usable.mean(axis=0))
        mean = np.array(means)
        return RestingWrenches(mean[:, 0], mean[:, 3:6], mean[:, 6:]), source_of(recording)


def plan_poses(poses: Poses, spec: DeviceSpec, period: float) -> tuple[Array, list[slice]]:
    """Return the reference of the end effector at each tick, (n, 2) [m], and measured ticks by pose."""
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    middle, half = 0.5 * (lower + upper), 0.5 * _ROOM * (upper - lower)
    across, along = (
        np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1) for count in (poses.columns, poses.rows)
    )
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
