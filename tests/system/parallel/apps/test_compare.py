"""Comparison of a run with its repetition under another law."""

import numpy as np
import pytest

from apps.cli import main
from apps.compare.again import twice
from haptics.recording.recording import Recording
from tests.processes import NO_PICTURE


def test_run_is_repeated_exactly_and_with_another_law(tmp_path):
    asked = ["run", "--device", "virtual-joystick", "--model", "C", "--headless", "--clock", "off", "--duration", "1"]
    assert main([*asked, "--set", "law.force=3", *NO_PICTURE, "--record", str(tmp_path / "recordings")]) == 0
    (found,) = (tmp_path / "recordings").iterdir()
    recording = Recording(found)
    first, second = twice(recording, ["law.force=1.5"], tmp_path / "runs")
    assert (first.rows["position"] == recording.rows["position"]).all()
    assert (first.rows["command"] == recording.rows["command"]).all()
    sliding = second.rows["sticking"] == 0
    assert sliding.sum() > 100
    force = np.hypot(*second.rows["friction_force"][sliding].T)
    assert np.median(force) == pytest.approx(1.5)
    assert len(second.rows) == len(recording.rows)
