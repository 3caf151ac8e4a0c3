"""Hidden devices are tuned: numbers inside their intervals, the boundary near the true one, no handle out of bounds."""

import pytest

from tests.calibration.autotune.device_figures import HALF_WIDTH, NEAR
from tests.calibration.autotune.hidden import Truth, tuned


def test_a_device_is_found_out_and_brought_to_its_boundary() -> None:
    truth = Truth(mass=0.15, damping=1.0, friction=0.08, delay_steps=40, resolution=1e-5, rate=1000.0)
    found = tuned(truth, pushes=24)
    assert all(found.held.values()), found.held
    assert found.tuned.axes[0].doubts == ()
    assert found.ratio == pytest.approx(1.0, abs=NEAR)
    assert found.farthest < 0.3 * HALF_WIDTH
    boundary = found.tuned.axes[0].boundary
    assert boundary is not None
    assert boundary.stiffness is not None
    assert boundary.stable < truth.boundary(boundary.damping) * (1.0 + NEAR)
    assert boundary.unstable / boundary.stable <= 1.05 + 1e-9
    assert found.tuned.stiffness <= 0.5 * boundary.stiffness * (1.0 + 1e-9)
    assert "delay" in found.tuned.limited_by[0] or len(found.tuned.limited_by) > 1
