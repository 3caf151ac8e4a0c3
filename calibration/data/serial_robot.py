"""Recordings of the joints of a serial robot with known load.

The format is that used by the recordings of Weigand et al. 2020: one NPZ file per run, arrays of shape (n, joints) in
SI units, motor torques and angles on the motor side of the gear unless their names state otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.data.files import Source, read_columns
from calibration.data.joint_recording import JointRecording
from haptics.errors import ConfigurationError
from haptics.reading import read_npz

Array = NDArray[np.float64]

_TELLING = {"motor_torque", "gear_ratio", "link_inertia"}
_LOAD = ("acceleration_torque", "coriolis_torque", "gravity_torque")
_CONSTANTS = ("gear_ratio", "motor_inertia", "gravity_torque_home")
_NEEDED = (
    "time",
    *_CONSTANTS,
    "motor_torque",
    "motor_velocity_link_side",
    "motor_angle_link_side",
    "link_acceleration_ref",
    "link_inertia",
    *_LOAD,
)

_PUBLISHED = ("asymmetry", "viscous", "coulomb", "smoothness", "a", "b")
"""Friction parameters identified by the robot's owners, prefixed by ``friction_``; optional."""


def is_serial_robot(names: Iterable[str]) -> bool:
    """Return True if the array names identify a recording of a robot, complete or not."""
    return _TELLING <= set(names)


def read_serial_robot(path: str | Path) -> tuple[JointRecording, ...]:
    """Read the recordings of all joints of a robot, named 1, 2, ...

    On the link side, friction is u tau_M - M q'' - tau_A - tau_CC - g - J u^2 q'' of Weigand et al. 2020, (1) and (2),
    with the total gravity torque g and the accelerations of the reference. If the file has the friction parameters of
    the robot's owners, `published` is the friction that they predict.

    Parameters
    ----------
    path : str or Path
        NPZ file with the arrays time, gear_ratio, motor_inertia, motor_torque, motor_velocity_link_side,
        motor_angle_link_side, link_acceleration_ref, link_inertia, acceleration_torque, coriolis_torque, gravity_torque
        (relative to the home pose) and gravity_torque_home.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or an array is missing.
    """
    found = read_npz(path)
    arrays = {name: np.asarray(found[name], float) for name in _known() if name in found}
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise ConfigurationError(f"{path}: has no array {missing[0]}; a robot's recording has {', '.join(_NEEDED)}.")
    count, joints = len(np.atleast_1d(arrays["time"])), np.size(arrays["gear_ratio"])
    for name in _NEEDED:
        shape = (count,) if name == "time" else (joints,) if name in _CONSTANTS else (count, joints)
        if arrays[name].shape != shape:
            raise ConfigurationError(f"{path}: {name} has the shape {arrays[name].shape}; must be {shape}.")
    source = read_columns(str(path), {}).source
    return tuple(_joint(arrays, joint, source) for joint in range(joints))


def _joint(arrays: dict[str, Array], joint: int, source: Source) -> JointRecording:
    acceleration = arrays["link_acceleration_ref"][:, joint]
    ratio = arrays["gear_ratio"][joint]
    load = (arrays["link_inertia"][:, joint] + arrays["motor_inertia"][joint] * ratio**2) * acceleration
    load += sum(arrays[name][:, joint] for name in _LOAD) + arrays["gravity_torque_home"][joint]
    velocity = arrays["motor_velocity_link_side"][:, joint]
    return JointRecording(
        joint=str(joint + 1),
        rotary=True,
        time=arrays["time"],
        velocity=velocity,
        effort=-ratio * arrays["motor_torque"][:, joint],
        source=source,
        position=arrays["motor_angle_link_side"][:, joint],
        acceleration=acceleration,
        load=load,
        published=_published(arrays, joint, velocity),
    )


def _known() -> tuple[str, ...]:
    return (*_NEEDED, *(f"friction_{name}" for name in _PUBLISHED))


def _published(arrays: dict[str, Array], joint: int, velocity: Array) -> Array | None:
    """Return the published friction tau_F of Weigand et al. 2020; None if the file lacks the parameters."""
    shape = arrays["gear_ratio"].shape
    if not all(name in arrays and arrays[name].shape == shape for name in _known()[len(_NEEDED) :]):
        return None
    asymmetry, viscous, coulomb, smoothness, a, b = (arrays[f"friction_{name}"][joint] for name in _PUBLISHED)
    return np.asarray(
        asymmetry + viscous * velocity + coulomb * np.tanh(smoothness * velocity) + a * np.tanh(b * velocity)
    )
