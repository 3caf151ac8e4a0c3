"""Check whether the drive torques of a robot include rotor inertia, as a table by joint.

Run as ``python -m apps.calibrate.rotor_inertia RECORDING.npz``. The recording has the format of
`calibration.data.reading`.
"""

from __future__ import annotations

import sys

import numpy as np

from calibration.data.joint_recording import JointRecording
from calibration.data.reading import read_serial_robot
from calibration.fitting.regression import least_squares
from haptics.files import read_npz


def excess(seen: JointRecording) -> float:
    """Return the inertia [kg m^2] fitted to the friction, besides offset, dry and viscous friction."""
    columns = np.column_stack((np.ones(len(seen)), seen.direction(), seen.smooth_velocity, seen.known_acceleration))
    return float(least_squares(columns, seen.friction).coefficients[3])


def table(path: str) -> str:
    """Return the comparison of all joints as a Markdown table."""
    arrays = read_npz(path)
    rotors = arrays["motor_inertia"] * arrays["gear_ratio"] ** 2
    links = arrays["link_inertia"]
    rows = [
        f"| {joint + 1} | {rotors[joint]:.0f} | {links[:, joint].min():.0f} to {links[:, joint].max():.0f} "
        f"| {found:.0f} | {found / rotors[joint]:.2f} |"
        for joint, found in enumerate(map(excess, read_serial_robot(path)))
    ]
    head = "| joint | rotor, link side (kg m^2) | link inertia of the data | found | found by rotor |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(table(sys.argv[1]) + "\n")
