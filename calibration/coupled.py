r"""Joints that several motors drive together through a differential.

The velocities of the joints are :math:`\omega_j = T \omega_g`, with :math:`\omega_g` the velocities of the motor shafts
behind their gears (Guedelha et al. 2018, (11), (33)). The transmission is lossless, so that
:math:`\tau_j = T^{-T} \tau_g` (12), (34). In shaft coordinates every motor is a separate joint. It is identified while
it moves alone and the other motors are held (section 3.4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.data.joint_recording import JointRecording
from calibration.data.reading import FEWEST
from haptics.errors import ConfigurationError

Array = NDArray[np.float64]

ALONE = 0.05
"""Maximum speed of the other motors while one moves alone, as a fraction of its largest speed."""

_WORST_CONDITION = 1e6


@dataclass(frozen=True, eq=False)
class Coupling:
    """Coupling of joints and motors.

    Attributes
    ----------
    joints, motors : tuple of str
        Names, equal in number.
    matrix : (n, n) float array
        T: joint velocities from the velocities of the motor shafts.

    Raises
    ------
    ConfigurationError
        If the matrix is singular or does not match the names.
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    matrix: Array

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        n = len(self.joints)
        if len(self.motors) != n or matrix.shape != (n, n) or n < 2:
            raise ConfigurationError(
                f"coupling: {n} joints, {len(self.motors)} motors and a matrix of {matrix.shape}: must be n joints, n "
                "motors and an n x n matrix, n at least 2."
            )
        for name in ("joints", "motors"):
            if len(set(getattr(self, name))) < n:
                raise ConfigurationError(f"coupling.{name} = {getattr(self, name)}: must be different names.")
        if not np.isfinite(matrix).all() or np.linalg.cond(matrix) > _WORST_CONDITION:
            raise ConfigurationError(
                f"coupling.matrix = {matrix.tolist()}: must be finite numbers and must have an inverse."
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    def motor_velocity(self, joint_velocity: ArrayLike) -> Array:
        """Return the velocities of the motor shafts from the joint velocities, (..., n) [rad/s]; (33)."""
        return np.asarray(np.linalg.solve(self.matrix, np.asarray(joint_velocity, dtype=np.float64)[..., None])[..., 0])

    def motor_effort(self, joint_effort: ArrayLike) -> Array:
        """Return the torques of the motor shafts from the joint torques, (..., n) [N m]; (34).

        The torque of one motor is the product of its column of the matrix with the joint torques.
        """
        return np.asarray(joint_effort, dtype=np.float64) @ self.matrix


_SHOULDER = ((1.0, 0.0, 0.0), (1.0, 0.625, 0.0), (0.0, -0.625, 0.625))
"""From the pulley radii: 25 mm at the motors of the shoulder, 40 mm at its joints."""

_TORSO = ((0.55, 0.275, 0.275), (0.0, 0.5, 0.5), (0.0, -0.5, 0.5))

COUPLINGS = {
    f"icub-{name}": Coupling(tuple(f"{prefix}_{axis}" for axis in axes), ("motor_a", "motor_b", "motor_c"), matrix)
    for name, prefix, axes, matrix in (
        ("torso", "torso", ("yaw", "roll", "pitch"), np.array(_TORSO)),
        ("right-shoulder", "r_shoulder", ("pitch", "roll", "yaw"), np.array(_SHOULDER)),
        ("left-shoulder", "l_shoulder", ("pitch", "roll", "yaw"), -np.array(_SHOULDER)),
    )
}
"""Couplings of the humanoid robot iCub from its configuration files, by their command line names."""


def decouple(recordings: Sequence[JointRecording], coupling: Coupling) -> tuple[JointRecording, ...]:
    """Transform joint recordings to motor coordinates, with the samples in which each motor moves alone.

    Parameters
    ----------
    recordings : sequence of JointRecording
        Recordings of all joints of the coupling, made together.
    coupling : Coupling
        Coupling of joints and motors.

    Returns
    -------
    tuple of JointRecording
        Recordings of the motors that moved alone for long enough, with those samples only. The drive signal of a motor
        is taken from the joint with the same index.

    Raises
    ------
    ConfigurationError
        If a joint is missing or prismatic, or no motor ever moved alone.
    """
    by_name = {recording.joint: recording for recording in recordings}
    missing = [name for name in coupling.joints if name not in by_name]
    if missing:
        path = recordings[0].source.path if recordings else "no file"
        raise ConfigurationError(
            f"{path}: has no joint {missing[0]}; the coupling is of {', '.join(coupling.joints)}, with columns such as "
            f"{coupling.joints[0]}.torque_nm."
        )
    joints = [by_name[name] for name in coupling.joints]
    for joint in joints:
        if not joint.rotary:
            raise joint.error("slides; coupled joints turn")
    velocity = coupling.motor_velocity(np.column_stack([joint.velocity for joint in joints]))
    effort = coupling.motor_effort(np.column_stack([joint.effort for joint in joints]))
    optional: dict[str, Any] = {}  # in motor coordinates, None if a joint lacks them
    for name in ("acceleration", "position"):
        series = [getattr(joint, name) for joint in joints]
        known = all(values is not None for values in series)
        optional[name] = coupling.motor_velocity(np.column_stack(series)) if known else None
    found = []
    for motor, name in enumerate(coupling.motors):
        speed = np.abs(velocity)
        others = np.delete(speed, motor, axis=1).max(axis=1)
        alone = np.asarray(others <= ALONE * speed[:, motor].max())
        if np.count_nonzero(alone) < FEWEST or not velocity[alone, motor].any():
            continue
        drive = joints[motor].drive
        found.append(
            replace(
                joints[motor],
                joint=name,
                time=joints[0].time[alone],
                velocity=velocity[alone, motor],
                effort=effort[alone, motor],
                acceleration=None if optional["acceleration"] is None else optional["acceleration"][alone, motor],
                position=None if optional["position"] is None else optional["position"][alone, motor],
                drive=None if drive is None else drive[alone],
                instrument=None,
                reference=None,
            )
        )
    if not found:
        raise ConfigurationError(
            f"{joints[0].source.path}: no motor of {', '.join(coupling.motors)} ever moves alone; hold all but one, "
            "move that one, and do so with each."
        )
    return tuple(found)
