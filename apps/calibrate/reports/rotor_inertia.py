"""Whether the torque that a robot's drives report holds that of the rotors: a table of what is too much, by joint.

Run as ``python -m apps.calibrate.reports.rotor_inertia RECORDING.npz``, a recording as of
`calibration.data.serial_robot`.
"""

from __future__ import annotations

import sys

import numpy as np

from calibration.data.joint_recording import JointRecording
from calibration.data.serial_robot import read_serial_robot
from calibration.fitting.regression import least_squares
from haptics.reading import read_npz


def excess(seen: JointRecording) -> float:
    """Return the inertia [kg m^2] that is left in the friction beside an offset, dry and viscous friction."""
    columns = np.column_stack((np.ones(len(seen)), seen.direction(), seen.smooth_velocity, seen.known_acceleration))
    return float(least_squares(columns, seen.friction).coefficients[3])


def table(path: str) -> str:
    """Return the table, as Markdown."""
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
