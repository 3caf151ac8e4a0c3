"""Long computations for the topic of tests/calibration/servo/test_motion.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.motions import Mover
from calibration.servo.motion import MeasuredServo, measure_servo, servo_of
from haptics.recording.recording import Recording
from tests.calibration.servo.test_motion import SHORT

STILL = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


SMOOTH = {"kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0}


def measured(folder: Path, **arm: object) -> MeasuredServo:
    """Return what is found of a virtual arm that nobody holds."""
    mover = Mover.of("virtual-arm", {"seed": 1, "hand": STILL, "arm": arm})
    return measure_servo(mover, SHORT, folder)


def test_dry_friction_does_not_matter(tmp_path: Path) -> None:
    rough = measured(tmp_path / "rough", coupling="rigid")  # 11 N m in each joint
    smooth = measured(tmp_path / "smooth", coupling="rigid", **SMOOTH)
    assert rough.fit.frequency == pytest.approx(smooth.fit.frequency, rel=0.03)
    assert rough.fit.damping_ratio == pytest.approx(smooth.fit.damping_ratio, rel=0.06)
    assert rough.fit.lag == pytest.approx(smooth.fit.lag, abs=1e-4)
    assert rough.fit.warnings == smooth.fit.warnings == ()


def test_the_age_of_samples_is_part_of_the_delay(tmp_path: Path) -> None:
    fresh = measured(tmp_path / "run", coupling="rigid")
    assert fresh.age == 0.0
    recording = Recording(tmp_path / "run")
    rows, late = np.array(recording.rows), 3
    rows["position"][late:] = rows["position"][:-late].copy()
    rows["sample_age"] = late * 1e-3
    recording.rows = rows
    old = servo_of(recording, SHORT, knows_velocity=True)
    assert old.age == pytest.approx(3e-3)
    assert old.fit.lag == pytest.approx(fresh.fit.lag, abs=2e-5)
    assert old.fit.frequency == pytest.approx(fresh.fit.frequency, rel=0.01)
    assert old.delay == pytest.approx(3e-3 + fresh.fit.lag, abs=2e-5)
