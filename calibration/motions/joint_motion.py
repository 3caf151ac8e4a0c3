"""Motion of the joints of an arm by its servo, one at a time, with recording of motor torques.

An arm is position-controlled, so that its reference defines the motion, and its motor torques move it against friction.
The torques for gravity and for the motion of the other joint follow from the model of the arm; inertia is identified
together with friction. Every round of a joint is a separate motion (`haptics.rendering.motion`), identified by its
label.

After a reversal of a joint, its gear first winds up in the other direction: the motor moves while the friction of the
joint still reverses. These samples are excluded.
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
from calibration.motions.excitation import Excitation, go_to, hold_still, to_and_fro
from calibration.motions.procedure_runner import usable_rows
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
"""Default excitation: joint speeds [rad/s] and acceleration [rad/s^2]."""

ANGLES, TORQUES = "joint_angles", "motor_torques"
"""Required channels of an arm: angles of both joints [rad], and torques at both motor shafts [N m]."""

_WOUND_UP = 3.0
"""Excluded travel after a reversal, as a multiple of the travel in which the modelled gear winds up.

It includes the decay of the oscillation that the reversal excites.
"""

_ROOM = 0.9
"""Fraction of the distance to the edge of the workspace that is used."""

_ASTRAY = 0.02
"""Maximum following error of the end effector [m]."""

_CATCHING_UP = 1.5
"""Maximum speed of a lagging reference relative to the planned speed."""


def excite_arm(
    mover: Mover,
    excitation: Excitation,
    folder: Path,
    facts: dict[str, Any] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> dict[str, list[JointRecording]]:
    """Move the joints of an arm and return the recordings of each joint by round.

    Parameters
    ----------
    mover : Mover
        Arm that reports its joints, with no hand on its handle.
    excitation : Excitation
        Motions of each joint: speeds in rad/s, acceleration in rad/s^2.
    folder : Path
        Folder of the recording; must not exist.
    facts : dict, optional
        Additional metadata of the recording.
    progress : callable
        Callback with the elapsed time [s].

    Raises
    ------
    ConfigurationError
        If the device is not an arm that reports its joints, or cannot perform the motions.
    HapticError
        As in `calibration.motions.drive`; also if it does not follow. The recording is kept.
    """
    body = body_of(mover)
    procedure = rounds(body, excitation, mover.spec, mover.period)
    recording = drive(mover, procedure, folder, facts, progress, settings={"excitation": excitation})
    return joint_recordings(recording, body)


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


def rounds(body: ArmBody, excitation: Excitation, spec: DeviceSpec, period: float) -> Procedure:
    """Yield the motions of an excitation: hold, motion to the home pose, and each round of each joint."""
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
    """Return the joint angles [rad] at each tick, (n, 2), and the ticks of the rounds of each joint."""
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
    """Return the angle by which a joint can turn from home in both directions within the workspace [rad]."""
    turns = np.linspace(0.0, 1.0, 201)
    sides = np.concatenate((turns, -turns))
    places = body.linkage.positions(np.array(body.linkage.home) + np.outer(sides, np.eye(2)[joint]))
    inside = ((places >= spec.workspace_min) & (places <= spec.workspace_max)).all(axis=1).reshape(2, -1).all(axis=0)
    last = int(np.argmin(inside)) - 1 if not inside.all() else len(turns) - 1
    return float(_ROOM * turns[max(last, 0)])


def joint_recordings(recording: Recording, body: ArmBody) -> dict[str, list[JointRecording]]:
    """Return the recordings of each joint by round; only complete rounds are used.

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
        effort=smooth(time, effort, moved.cutoff)[kept],  # the same filter as the acceleration
        source=source,
        acceleration=moved.acceleration[kept],
        instrument=moved.instrument[kept],
        velocity_noise=moved.velocity_noise,
    )


def _load(body: ArmBody, time: Array, angles: Array) -> Array:
    """Return the torques of the links for gravity and velocity effects, (n, 2) [N m]."""
    speeds = np.diff(angles, axis=0, prepend=angles[:1]) / np.diff(time, prepend=time[0] - 1.0)[:, None]
    terms = body.model_links.terms(angles, speeds)
    return np.asarray(terms["gravity"] + np.einsum("nij,nj->ni", terms["coriolis"], speeds))


def _since_turning(position: Array, velocity: Array) -> Array:
    """Return the travel of a joint since its last reversal [rad]."""
    turns = np.flatnonzero(np.diff(np.signbit(velocity))) + 1
    last = np.concatenate(([0], turns))[np.searchsorted(turns, np.arange(len(position)), side="right")]
    return np.asarray(np.abs(position - position[last]))
