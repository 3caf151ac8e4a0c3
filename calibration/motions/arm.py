"""Measurements of an arm: motion of its joints by the servo, and poses in which its force sensor is read.

An arm is position-controlled, so that its reference defines the motion, and its motor torques move it against friction.
The torques for gravity and for the motion of the other joint follow from the model of the arm; inertia is identified
together with friction. Every round of a joint is a separate motion (`haptics.rendering.programs`), identified by its
label. After a reversal of a joint, its gear first winds up in the other direction: the motor moves while the friction
of the joint still reverses. These samples are excluded.

The poses are a grid in the workspace with the largest possible rotation of the flange, traversed in both directions so
that a drifting bias is separable from the weight. The motion to a pose and the rest there are motions of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording, Source
from calibration.data.signals import motion, smooth
from calibration.handle import LEAST_POSES, RestingWrenches
from calibration.motions.excitation import Excitation, approach, go_to, hold_still, repeated, to_and_fro
from calibration.motions.procedure import (
    Measurement,
    Mover,
    Procedure,
    complete_rounds,
    rows_of,
    source_of,
    usable_rows,
)
from devices.arm.body import ArmBody
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording.recording import Recording
from haptics.records import CHANNEL, Rows
from haptics.rendering.programs import Motion, reference
from haptics.settings import bounded, check, documented

# --- joints -----------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

JOINTS = ("1", "2")
DEFAULT = Excitation(slowest=5e-3, fastest=0.5, stroke_time=1.5, strokes=1)
"""Default excitation: joint speeds [rad/s] and acceleration [rad/s^2]."""

ANGLES, TORQUES = "joint_angles", "motor_torques"
"""Required channels of an arm: angles of both joints [rad], and torques at both motor shafts [N m]."""

_WOUND_UP = 3.0
"""Excluded travel after a reversal, as a multiple of the travel in which the modelled gear winds up.

It includes the decay of the oscillation that the reversal excites.
"""

_ROOM = 0.9
"""Fraction of the workspace, or of the distance to its edge, that is used."""

_ASTRAY = 0.02
"""Maximum following error of the end effector [m]."""

_CATCHING_UP = 1.5
"""Maximum speed of a lagging reference relative to the planned speed."""


class JointExcitation(Measurement[dict[str, list[JointRecording]]]):
    """Motion of the joints of an arm, one at a time; the result are the rounds of each joint.

    Parameters
    ----------
    settings : Excitation
        Motions of each joint: speeds in rad/s, acceleration in rad/s^2.
    """

    table = "excitation"

    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device is an arm that reports its joints."""
        body_of(mover)

    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the duration [s] and the limits of the motion."""
        angles, _ = plan_joints(body_of(mover), self.settings, mover.spec, mover.period)
        return len(angles) * mover.period, f"its joints with up to {self.settings.fastest:g} rad/s"

    def motions(self, mover: Mover) -> Procedure:
        """Yield the motions: hold, motion to the home pose, and each round of each joint."""
        spec, period, body = mover.spec, mover.period, body_of(mover)
        angles, parts = plan_joints(body, self.settings, spec, period)
        places = body.linkage.positions(angles)
        fastest = float(np.hypot(*np.diff(places, axis=0).T).max()) / period
        move = yield from _start_motions(mover, places[0])
        bound = min(_CATCHING_UP * fastest, spec.max_speed)
        for joint, rounds in zip(JOINTS, parts, strict=True):
            for number, part in enumerate(rounds, 1):
                yield move(reference(places[part], period=period), bound=bound, label=f"{joint} {number}")

    def estimate(self, recording: Recording, mover: Mover) -> dict[str, list[JointRecording]]:
        """Return the rounds of each joint."""
        return joint_recordings(recording, body_of(mover))


def _start_motions(mover: Mover, start: Array) -> Generator[Motion, Rows, Callable[..., Motion]]:
    """Move an arm slowly to its start; return the function that makes its motions."""
    spec, period = mover.spec, mover.period
    move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
    held = yield from hold_still(move, period)
    yield from go_to(move, held, start, period)
    return move


def body_of(mover: Mover) -> ArmBody:
    """Return the model of an arm.

    Raises `ConfigurationError` unless the arm reports its joint angles and motor torques.
    """
    spec, body = mover.spec, getattr(mover.make(), "body", None)
    shown = {name for name, *_ in spec.channels}
    if spec.causality is not Causality.ADMITTANCE or not {ANGLES, TORQUES} <= shown or not isinstance(body, ArmBody):
        raise ConfigurationError(
            f"{spec.name} does not report joint angles and motor torques: record them with other means and give the "
            "file with --data."
        )
    return body


def is_of_joints(recording: Recording) -> bool:
    """Return True if the recording contains an excitation of the joints of an arm."""
    return any(label.partition(" ")[0] in JOINTS for label, _ in rows_of(recording))


def recorded_joints(recording: Recording) -> dict[str, list[JointRecording]]:
    """Return `joint_recordings` for the arm in the metadata of the recording."""
    table = dict(recording.metadata.get("configuration", {}).get("device", {}))
    mover = Mover.of(str(table.pop("name", "")), table)
    return joint_recordings(recording, body_of(mover))


def plan_joints(
    body: ArmBody, excitation: Excitation, spec: DeviceSpec, period: float
) -> tuple[Array, list[list[slice]]]:
    """Return the joint angles [rad] at each tick, (n, 2), and the ticks of the rounds of each joint."""
    home, ways, turns = np.array(body.linkage.home), [], np.linspace(0.0, 1.0, 201)
    for joint in range(2):
        # the angle by which the joint can turn from home in both directions within the workspace
        places = body.linkage.positions(home + np.outer(np.concatenate((turns, -turns)), np.eye(2)[joint]))
        within = ((places >= spec.workspace_min) & (places <= spec.workspace_max)).all(axis=1)
        inside = within.reshape(2, -1).all(axis=0)
        last = int(np.argmin(inside)) - 1 if not inside.all() else len(turns) - 1
        reach = float(_ROOM * turns[max(last, 0)])
        along = to_and_fro(excitation, 2.0 * reach, excitation.acceleration, np.inf, period)
        ways.append(home + np.outer(along, np.eye(2)[joint]))
    return repeated(ways, excitation.rounds)


def joint_recordings(recording: Recording, body: ArmBody) -> dict[str, list[JointRecording]]:
    """Return the recordings of each joint by round; only complete rounds are used.

    Raises
    ------
    ConfigurationError
        If a joint was not moved.
    """
    rounds = complete_rounds(recording, JOINTS)
    if not all(rounds):
        raise ConfigurationError(f"{recording.folder}: was interrupted before both joints had been moved.")
    source = source_of(recording)
    return {
        joint: [_measured(rows, number, body, source) for rows in rounds[number]] for number, joint in enumerate(JOINTS)
    }


def _measured(rows: Rows, joint: int, body: ArmBody, source: Source) -> JointRecording:
    rows = usable_rows(rows)
    time, angles = np.array(rows["time"]), np.array(rows[CHANNEL + ANGLES])
    # torques of the links for gravity and velocity effects
    speeds = np.diff(angles, axis=0, prepend=angles[:1]) / np.diff(time, prepend=time[0] - 1.0)[:, None]
    terms = body.model_links.terms(angles, speeds)
    load = np.asarray(terms["gravity"] + np.einsum("nij,nj->ni", terms["coriolis"], speeds))
    effort = load[:, joint] - body.reduction * rows[CHANNEL + TORQUES][:, joint]
    moved = motion(time, angles[:, joint])
    # the travel since the last reversal
    turns = np.flatnonzero(np.diff(np.signbit(moved.velocity))) + 1
    last = np.concatenate(([0], turns))[np.searchsorted(turns, np.arange(len(time)), side="right")]
    way = _WOUND_UP * 2.0 * (body.lost_motion + body.static_friction / body.stiffness)
    kept = np.abs(moved.position - moved.position[last]) > way
    return JointRecording(
        joint=JOINTS[joint],
        rotary=True,
        time=time[kept] - time[kept][0],
        velocity=moved.velocity[kept],
        effort=smooth(time, effort, moved.cutoff)[kept],  # the same filter as the acceleration
        source=source,
        acceleration=moved.acceleration[kept],
        instrument=moved.instrument[kept],
        velocity_noise=moved.velocity_noise,
    )


# --- poses ------------------------------------------------------------------------------------------------------------

WRENCH, GRAVITY = "raw_wrench", "sensor_gravity"
"""Required channels of an arm: wrench [N], [N m] and gravity [m/s^2] in the axes of the sensor."""

_POSE = "pose"

_USABLE = 0.5
"""Minimum fraction of valid sensor samples in a pose."""


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
        move, begin = (yield from _start_motions(mover, places[0])), 0
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
