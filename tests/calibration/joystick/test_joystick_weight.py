"""The scale of forces by a weight, where the answer of the handle is known: nothing is pushed but against the weight.

The whole of it is in test_joystick_calibration.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.joystick.looking import Seen
from calibration.joystick.procedure import Bench, _scale
from calibration.joystick.response import Response
from devices.emulated.joystick import EmulatedStickSettings
from tests.calibration.benches import bench, left_alone, moved_here, near, request, truth_of

NEWTONS = 0.03


def test_what_a_weight_weighs_is_the_scale_of_the_forces(tmp_path: Path) -> None:
    table = bench("openffboard")
    truth, mass = truth_of(table.stick), table.stick.profile.handle.mass
    response = Response(np.linalg.inv(truth.force.newton_to_level) / mass, 0.0, 0.0, 0.0, 0.0, 0.0, ())
    seen = Seen(truth.device, truth.axes, misfit=0.0, quantum=1, full_scale=10000)
    with moved_here(table) as mover:
        here = Bench(EmulatedStickSettings(emulated=True), mover, table.backend)
        asked = request(table.stick, weight=0.2)
        force, found = _scale(here, seen, response, 2, table.person, asked, tmp_path / "run", {})
    assert found == pytest.approx(mass, rel=NEWTONS)
    near(force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    assert force.max_force_n == pytest.approx(truth.force.max_force_n, rel=NEWTONS)
    assert force.source == "weight"
    assert left_alone(table.stick)
