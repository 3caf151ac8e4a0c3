"""Long computations for the topic of tests/devices/arm/can/test_can_stage.py."""

from __future__ import annotations

import time

import numpy as np
import pytest

from haptics.device import Vector
from tests.devices.arm.can.test_can_stage import armed
from tests.devices.arm.conftest import stepped  # noqa: F401
from tests.devices.arm.odrive_rig import HOME, run

pytestmark = pytest.mark.usefixtures("stepped")


def test_the_motors_follow_position_and_speed() -> None:
    def reference(now: float) -> tuple[Vector, Vector]:
        return HOME + 0.4 * (1.0 - np.cos(6.0 * now)), np.full(2, 2.4 * np.sin(6.0 * now))

    errors = []
    with armed(reduction_1=2.0, reduction_2=-2.0) as (stage, _, _):
        start = time.perf_counter()

        def command(now: float) -> Vector:
            angles = stage.look()
            errors.append(angles - reference(stage.sampled - start)[0])
            return reference(now)[0]

        run(stage, 0.6, command)
    assert np.abs(errors[100:]).max() < 0.05
