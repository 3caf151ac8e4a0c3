"""Make `examples/data/joint.csv`: a joint of known friction, swung by hand with its motor off.

The recording is synthetic. Its true parameters are in `JOINT`, for comparison with those that `haptics calibrate
friction` identifies. Torques follow the convention of the command: with no drive the measured torque is minus the
friction.
"""

import sys
from pathlib import Path

import numpy as np

JOINT = {
    "coulomb_torque_nm": 3.0,
    "static_torque_nm": 4.2,
    "stribeck_velocity_rad_per_s": 0.05,
    "viscosity_nms_per_rad": 2.0,
}
NOISE = 0.1
"""Standard deviation of the torque sensor's noise [N m]."""

FILE = Path(__file__).parent / "data" / "joint.csv"


def record(duration: float = 60.0, rate: float = 50.0, seed: int = 1) -> np.ndarray:
    """Return the columns time [s], velocity [rad/s] and torque [N m], (n, 3)."""
    time = np.arange(0.0, duration, 1.0 / rate)
    velocity = 0.6 * (0.52 + 0.48 * np.cos(0.13 * time)) * np.sin(0.9 * time)  # strokes, ever faster and slower
    speed = np.abs(velocity)
    fall = np.exp(-speed / JOINT["stribeck_velocity_rad_per_s"])
    level = JOINT["coulomb_torque_nm"] + (JOINT["static_torque_nm"] - JOINT["coulomb_torque_nm"]) * fall
    friction = np.sign(velocity) * (level + JOINT["viscosity_nms_per_rad"] * speed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(len(time))
    return np.column_stack((time, velocity, noise - friction))


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(file, record(), fmt="%.6f", delimiter=",", header="time_s,velocity_rad_per_s,torque_nm", comments="")
    print(f"{file}: {len(record())} samples of a joint with {JOINT}")
