"""What is measured of the joints of an arm: the friction that they have, in both directions, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.motions import Mover
from calibration.motions.excitation import Excitation
from calibration.motions.joint_motion import JOINTS, excite_arm
from devices.arm.body import ArmBody

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
SHORT = Excitation(slowest=0.1, fastest=0.3, speeds=2, rounds=2, strokes=1, stroke_time=0.4)


def test_effort_is_against_the_motion_and_as_large_as_the_friction(tmp_path: Path) -> None:
    """Rough, and on motions of seconds: how well friction is identified is in test_joint_motion.py."""
    body = ArmBody()
    measured = excite_arm(Mover.of("virtual-arm", {"hand": NOBODY}), SHORT, tmp_path / "run")
    inertias = np.diag(body.links.terms(body.linkage.home)["inertia"][0]) + body.rotor_inertia * body.reduction**2
    for joint, inertia in zip(JOINTS, inertias, strict=True):
        assert len(measured[joint]) == SHORT.rounds
        for one in measured[joint]:
            friction = -one.effort - inertia * one.acceleration
            for way, more in ((1.0, 1.0 + body.asymmetry), (-1.0, 1.0 - body.asymmetry)):
                moving = way * one.velocity > 0.05
                assert moving.sum() > 100
                assert np.median(way * friction[moving]) == pytest.approx(more * body.kinetic_friction, rel=0.15)
