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

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording, Source
from calibration.data.signals import motion, smooth
from calibration.motions.driving import Measurement
from calibration.motions.excitation import Excitation, go_to, hold_still, to_and_fro
from calibration.motions.procedure import Mover, Procedure, complete_rounds, rows_of, source_of, usable_rows
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
        move = functools.partial(Motion, Causality.ADMITTANCE, bound=spec.max_speed, max_error=_ASTRAY, period=period)
        held = yield from hold_still(move, period)
        yield from go_to(move, held, places[0], period)
        bound = min(_CATCHING_UP * fastest, spec.max_speed)
        for joint, rounds in zip(JOINTS, parts, strict=True):
            for number, part in enumerate(rounds, 1):
                yield move(reference(places[part], period=period), bound=bound, label=f"{joint} {number}")

    def estimate(self, recording: Recording, mover: Mover) -> dict[str, list[JointRecording]]:
        """Return the rounds of each joint."""
        return joint_recordings(recording, body_of(mover))


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
    home, ways, count = np.array(body.linkage.home), [], 0
    parts: list[list[slice]] = [[], []]
    for joint in range(2):
        # the angle by which the joint can turn from home in both directions within the workspace
        turns = np.linspace(0.0, 1.0, 201)
        places = body.linkage.positions(home + np.outer(np.concatenate((turns, -turns)), np.eye(2)[joint]))
        inside = (
            ((places >= spec.workspace_min) & (places <= spec.workspace_max)).all(axis=1).reshape(2, -1).all(axis=0)
        )
        last = int(np.argmin(inside)) - 1 if not inside.all() else len(turns) - 1
        reach = float(_ROOM * turns[max(last, 0)])
        along = to_and_fro(excitation, 2.0 * reach, excitation.acceleration, np.inf, period)
        for _ in range(excitation.rounds):
            ways.append(home + np.outer(along, np.eye(2)[joint]))
            parts[joint].append(slice(count, count + len(along)))
            count += len(along)
    return np.concatenate(ways), parts


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
