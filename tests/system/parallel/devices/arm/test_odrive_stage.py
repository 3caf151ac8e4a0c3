"""Long computations for the topic of tests/devices/arm/test_odrive_stage.py."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from tests.devices.arm.conftest import stepped  # noqa: F401
from tests.devices.arm.odrive_rig import (
    HOME,
    armed,
    go_on,
)
from tests.devices.arm.test_odrive_stage import _own_cache  # noqa: F401

pytestmark = pytest.mark.usefixtures("stepped")


def test_the_motors_follow_position_and_speed() -> None:
    def reference(now: float) -> tuple[np.ndarray, np.ndarray]:
        phase = math.tau * 2.0 * now
        swing = 0.2 * np.array((1.0 - math.cos(phase), math.sin(phase) - phase * math.exp(-40.0 * now)))
        return HOME + swing, 0.2 * math.tau * 2.0 * np.array((math.sin(phase), math.cos(phase)))

    with armed(integrator_gain=0.0) as (stage, _):
        start, errors = time.perf_counter(), []
        while (now := time.perf_counter() - start) < 0.6:
            command, speeds = reference(now)
            angles = stage.tick(command, speeds)
            if now > 0.2:
                errors.append(angles - reference(stage.sampled - start)[0])
            go_on(stage)
        assert np.abs(errors).max() < 0.05  # without the speed it would lag by 0.13 rad
