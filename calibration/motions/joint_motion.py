"""Moving the joints of an arm by its own servo, one after the other, and recording what its motors do.

An arm goes where it is told, so its reference is the motion, and the torques of its motors are what moves it against
friction. What the links' weight and the motion of the other joint take is known from the model of the arm; inertia is
found with the friction. Every round of a joint is a motion of its own (`haptics.rendering.motion`), found by its label.

Where a joint turns back, its gear is first wound up the other way: the motor moves, and the friction of the joint is
still turning over. What was measured on that way is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.data.signals import motion, smooth
from calibration.motions import Mover, Procedure, drive, rows_of, source_of
from calibration.motions.course import usable_rows
from calibration.motions.excitation import Excitation, go_to, hold_still, to_and_fro
from devices.arm.body import ArmBody
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.columns import CHANNEL
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.motion import Motion, reference

Array = NDArray[np.float64]

JOINTS = ("1", "2")
DEFAULT = Excitation(slowest=5e-3, fastest=0.5, stroke_time=1.5, strokes=1)
"""Speeds of joints [rad/s] and their acceleration [rad/s^2]."""

ANGLES, TORQUES = "joint_angles", "motor_torques"
"""Channels that an arm must have: of both joints [rad], and of both motors at their shafts [N m]."""

_WOUND_UP = 3.0
"""A gear has turned over, and what that set swinging has died down, after so many times the way that its model takes
to turn over."""

_ROOM = 0.9
"""Part of the way to the edge of the workspace that is used."""

_ASTRAY = 0.02
"""An end effector farther from where it should be does not follow [m]."""

_CATCHING_UP = 1.5
"""The reference may be so much faster than it was planned, where it has fallen behind."""


def excite_arm(
    mover: Mover,
    excitation: Excitation,
    folder: Path,
    facts: dict[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> dict[str, list[JointRecording]]:
    """Move the joints of an arm and return what was measured of each, round by round.

    Parameters
    ----------
    mover : Mover
        An arm that shows its joints, nobody's hand on it.
    excitation : Excitation
        The motions of each joint: speeds in rad/s, acceleration in rad/s^2.
    folder : Path
        The recording, which does not exist yet.
    facts : dict, optional
        What the recording is to say besides.
    progress : callable
        Gets the time that has gone by [s].

    Raises
    ------
    ConfigurationError
        If the device is no arm that shows its joints, or cannot do the motions.
    HapticError
        As of `calibration.motions.drive`; also if it does not follow. What was recorded stays.
    """
    body = body_of(mover)
    procedure = rounds(body, excitation, mover.spec, mover.period)
    recording = drive(mover, procedure, folder, facts, progress, settings={"excitation": excitation})
    return joint_recordings(recording, body)


def body_of(mover: Mover) -> ArmBody:
    """Return the model of an arm; raise `ConfigurationError` unless it shows its joints and what its motors do."""
    spec, body = mover.spec, getattr(mover.make(), "body", None)
    shown = {name for name, *_ in spec.channels}
    if spec.causality is not Causality.ADMITTANCE or not {ANGLES, TORQUES} <= shown or not isinstance(body, ArmBody):
        raise ConfigurationError(
            f"{spec.name} does not report joint angles and motor torques: record them with other means and give the "
            "file with --data."
        )
    return body


def is_of_joints(recording: Recording) -> bool:
    """Tell whether it is the recording of an arm whose joints were moved to be measured."""
    return any(label.partition(" ")[0] in JOINTS for label, _ in rows_of(recording))


def recorded_joints(recording: Recording) -> dict[str, list[JointRecording]]:
    """Return what `joint_recordings` does, for the arm that the recording says it was made on."""
    table = dict(recording.metadata.get("configuration", {}).get("device", {}))
    mover = Mover.of(str(table.pop("name", "")), table)
    return joint_recordings(recording, body_of(mover))


def rounds(body: ArmBody, excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Give the motions of an excitation: hold, go to the home of the joints, and each round of each joint."""
    angles, parts = plan_joints(body, excitation, spec, period)
    places = body.linkage.positions(angles)
    fastest = float(np.hypot(*np.diff(places, axis=0).T).max()) / period
    move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
    held = yield from hold_still(move, period)
    yield from go_to(move, held, places[0], period)
    for joint, own in zip(JOINTS, parts, strict=True):
        for number, part in enumerate(own, 1):
            bound = min(_CATCHING_UP * fastest, spec.max_speed)
            yield move(reference(places[part], period=period), bound=bound, label=f"{joint} {number}")


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


def joint_recordings(recording: Recording, body: ArmBody) -> dict[str, list[JointRecording]]:
    """Return what was measured of each joint, round by round; of an interrupted recording, the rounds that are whole.

    Raises
    ------
    ConfigurationError
        If a joint was not moved.
    """
    found: dict[str, list[JointRecording]] = {joint: [] for joint in JOINTS}
    for label, rows in rows_of(recording):
        joint = label.partition(" ")[0]
        if joint in found and len(rows) and rows["sticking"][-1]:
            found[joint].append(_measured(rows, JOINTS.index(joint), body, source_of(recording)))
    if not all(found.values()):
        raise ConfigurationError(f"{recording.folder}: was interrupted before both joints had been moved.")
    return found


def _measured(rows: Rows, joint: int, body: ArmBody, source: Source) -> JointRecording:
    rows = usable_rows(rows)
    time, angles = np.array(rows["time"]), np.array(rows[CHANNEL + ANGLES])
    position = angles[:, joint]
    effort = _load(body, time, angles)[:, joint] - body.reduction * rows[CHANNEL + TORQUES][:, joint]
    moved = motion(time, position)
    way = _WOUND_UP * 2.0 * (body.lost_motion + body.static_friction / body.stiffness)
    kept = _since_turning(moved.position, moved.velocity) > way
    return JointRecording(
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


def _load(body: ArmBody, time: Array, angles: Array) -> Array:
    """Return what the links take for their weight and for their motion, (n, 2) [N m]."""
    speeds = np.diff(angles, axis=0, prepend=angles[:1]) / np.diff(time, prepend=time[0] - 1.0)[:, None]
    terms = body.model_links.terms(angles, speeds)
    return np.asarray(terms["gravity"] + np.einsum("nij,nj->ni", terms["coriolis"], speeds))


def _since_turning(position: Array, velocity: Array) -> Array:
    """Return how far a joint has come since it turned back last [rad]."""
    turns = np.flatnonzero(np.diff(np.signbit(velocity))) + 1
    last = np.concatenate(([0], turns))[np.searchsorted(turns, np.arange(len(position)), side="right")]
    return np.asarray(np.abs(position - position[last]))
