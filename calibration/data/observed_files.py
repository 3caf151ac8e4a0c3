"""Observations of joints from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from calibration.data.files import Source, read_columns
from calibration.data.measurements import Measurement, read_measurements
from calibration.data.observation import Observation
from calibration.data.serial_robot import is_serial_robot, read_serial_robot
from haptics.errors import ConfigurationError
from haptics.reading import read_npz
from haptics.settings import unknown


@dataclass(frozen=True, eq=False)
class Observed:
    """What a file has of one joint.

    Attributes
    ----------
    joint : str
        Its name.
    observation : Observation
        What was seen of it.
    source : Source
        Where from.
    """

    joint: str
    observation: Observation
    source: Source


def read_observations(
    path: str, columns: Mapping[str, str] | None = None, joints: tuple[str, ...] = ()
) -> tuple[Observed, ...]:
    """Read what was seen of the joints in a file.

    Parameters
    ----------
    path : str
        What `calibration.data.measurements.read_measurements` takes, or a robot's recording
        (`calibration.data.serial_robot`), of which the joints are called 1, 2, ...
    columns, joints
        As of `read_measurements`.

    Raises
    ------
    ConfigurationError
        If it cannot be used, naming the file.
    """
    if not _is_robot(path):
        return tuple(
            Observed(one.joint, observation_of(one), one.source) for one in read_measurements(path, columns, joints)
        )
    source = read_columns(path, {}).source
    found = {str(number): seen for number, seen in enumerate(read_serial_robot(path), start=1)}
    for name in joints:
        if name not in found:
            raise unknown(f"joint in {path}", name, found)
    return tuple(Observed(name, found[name], source) for name in joints or found)


def observation_of(measurement: Measurement) -> Observation:
    """Return a measurement as an observation: its friction is minus what the joint gives.

    Raises
    ------
    ConfigurationError
        If it is too short, or of constant velocity or no torque.
    """
    try:
        seen = Observation(
            time=measurement.time,
            velocity=measurement.velocity,
            friction=-measurement.effort,
            position=measurement.position,
            acceleration=measurement.acceleration,
            rotary=measurement.rotary,
        )
        seen.require_torque()
        return seen
    except ConfigurationError as error:
        raise measurement.error(str(error).rstrip(".")) from error


def _is_robot(path: str) -> bool:
    return Path(path).suffix.lower() == ".npz" and is_serial_robot(read_npz(path))
