"""Long computations for the topic of tests/calibration/joystick/test_joystick_sums.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.joystick.emulated import EmulatedPerson
from calibration.joystick.person import Look, Place
from devices.emulators.pid.profiles.known import PROFILES
from haptics.errors import ConfigurationError
from tests.calibration.benches import attempt, bench, left_alone, near, truth_of


@pytest.fixture(params=["latest", "turns"])
def profile(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, request.param, replace(PROFILES["openffboard"], sums=request.param))
        yield request.param


def test_firmware_that_cannot_add_is_found_and_calibrated_with_one_effect(profile: str, tmp_path: Path) -> None:
    table = bench(profile)
    found = attempt(table, tmp_path / "run")
    own, truth = found.parameters, truth_of(table.stick)
    assert own.force.effects == 1 == found.facts["effects"]
    near(own.axes.counts_to_m, truth.axes.counts_to_m, 0.005)
    scale = np.linalg.norm(own.force.newton_to_level, 2) / np.linalg.norm(truth.force.newton_to_level, 2)
    near(own.force.newton_to_level, scale * np.array(truth.force.newton_to_level), 0.03)
    assert scale == pytest.approx(1.0, abs=0.06), "the stated force is that of the weaker axis, or of a whole effect"
    assert left_alone(table.stick)


class Holding(EmulatedPerson):
    """Does not let go."""

    def let_go(self, look: Look) -> None:
        pass

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place, look)


def test_a_handle_that_moves_with_neither_is_told_as_before(tmp_path: Path) -> None:
    table = bench("openffboard", Holding)
    with pytest.raises(ConfigurationError, match=r"effect 1 does not move the handle: .* at level 0\.05"):
        attempt(table, tmp_path / "run", push_level=0.05)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["run_pushes", "run_pushes_of_one"]
    assert left_alone(table.stick)
