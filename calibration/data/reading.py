"""Reader of joint recordings from all supported files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from calibration.data.joint_recording import JointRecording
from calibration.data.serial_robot import is_serial_robot, read_serial_robot
from calibration.data.tables import read_table
from haptics.reading import read_npz
from haptics.settings import unknown_name


def read_joint_recordings(
    path: str | Path, columns: Mapping[str, str] | None = None, joints: tuple[str, ...] = ()
) -> tuple[JointRecording, ...]:
    """Read the recordings of the joints in a file.

    Parameters
    ----------
    path : str or Path
        Table (`calibration.data.tables`): a CSV or NPZ file, or the folder of a recording. Or an NPZ file of a serial
        robot (`calibration.data.serial_robot`), whose joints are named 1, 2, ...
    columns : mapping, optional
        Standard names to names in the table, if they differ: ``{"torque_nm": "motor_torque:0"}``, with a colon and the
        column number for arrays with several columns.
    joints : tuple of str, optional
        Names of the joints to return, in this order; by default all.

    Raises
    ------
    ConfigurationError
        If the file cannot be used; names the file.
    """
    if not _is_robot(path):
        return read_table(path, columns, joints)
    found = {one.joint: one for one in read_serial_robot(path)}
    for name in joints:
        if name not in found:
            raise unknown_name(f"joint in {path}", name, found)
    return tuple(found[name] for name in joints or found)


def _is_robot(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".npz" and is_serial_robot(read_npz(path))
