"""Every fault in a contact that slides, with one model on each device: a part of the table in test_fault_table.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from devices.faults import FAULTS
from haptics.device import Causality
from haptics.rendering.envelope import UNUSABLE
from haptics.servo.loop_kernels import FAULT_AFTER
from tests.safety_runs import Case, run
from tests.safety_table import AFTER_ALL, FATAL, HARMLESS, RAISING, UNSEEN


@pytest.mark.parametrize(("device", "model"), [("virtual-joystick", "C"), ("virtual-arm", "A")])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_comes_to_what_the_table_says(fault: str, device: str, model: str, tmp_path: Path) -> None:
    found = run(Case(fault, device, model, "slip"), tmp_path)
    assert found.phase_is_right
    assert np.isfinite(found.commands).all() and found.largest <= 1.0 + 1e-9
    assert (found.verification.ticks, found.verification.mismatches) == (len(found.rows), 0)
    noticed = fault in UNSEEN and found.causality is Causality.ADMITTANCE
    assert bool(found.message) is (fault in FATAL or noticed)
    if found.message:
        assert found.safe_after is not None and found.safe_after <= 2
        assert found.fault_after == pytest.approx(0.0 if fault in RAISING else FAULT_AFTER, abs=1e-9)
        assert found.refused[0] == found.case.first or noticed
        assert ("does not follow" in found.message) is noticed
    elif fault in AFTER_ALL:
        assert len(found.refused) > 0
        assert not (found.rows["status"][found.rows["time"] > found.case.start + 0.06] & UNUSABLE).any()
    elif fault in HARMLESS:
        assert len(found.refused) == 0
