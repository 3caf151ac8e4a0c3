"""Calibrating a wheel: angles instead of corners, one effect, metres along its rim."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from calibration.joystick.axes import counts_of, fit_rim
from calibration.joystick.emulated import EmulatedPerson
from calibration.joystick.person import TURNS, Look, Place
from calibration.joystick.request import Request
from devices.emulators.pid.profiles.known import PROFILES
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.calibration.benches import attempt, bench, left_alone, near, truth_of

WHEEL = "openffboard-wheel"
METRES, NEWTONS = 0.005, 0.03


@pytest.mark.parametrize("turn", [90.0, 360.0])
def test_a_wheel_is_found_to_be_what_it_is(turn: float, tmp_path: Path) -> None:
    table = bench(WHEEL, turn=turn)
    found = attempt(table, tmp_path / "run", turn=turn)
    own, truth = found.parameters, truth_of(table.stick)
    near(own.axes.counts_to_m, truth.axes.counts_to_m, METRES)
    near(own.force.newton_to_level, truth.force.newton_to_level, NEWTONS)
    assert own.axes.centre_counts == pytest.approx((0.0, 0.0), abs=3.0)
    assert own.axes.workspace_max_m == pytest.approx(truth.axes.workspace_max_m, rel=0.01)
    assert own.axes.rim_radius_m == truth.axes.rim_radius_m
    assert own.handle.moving_mass_kg == pytest.approx(truth.handle.moving_mass_kg, rel=0.1)
    assert own.force.release_s == pytest.approx(0.2, abs=0.03)
    assert own.device == truth.device
    assert "a rim of 0.125 m radius" in own.provenance.method
    assert len({fields["block"] for fields in table.stick.received("constant")}) == 1, "one effect"
    assert left_alone(table.stick)
    assert np.abs(Recording(tmp_path / "run_pushes").rows["position"][:, 0]).max() < 0.1, "it is turned a little"
    assert verify(Recording(tmp_path / "run_pushes")).verdict == "ok"


class Backwards(EmulatedPerson):
    """Turns left where right is called."""

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place._replace(x=-place.x), look)


class Askew(EmulatedPerson):
    """Does not look where straight ahead is."""

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place._replace(x=place.x or 0.4), look)


class Idle(EmulatedPerson):
    """Says that it is done, and has done nothing."""

    def bring(self, place: Place, look: Look) -> None:
        self._wait(0.01)


@pytest.mark.parametrize(
    ("kind", "words"), [(Backwards, "but it did not"), (Askew, "do not fit together"), (Idle, "are those at")]
)
def test_a_person_who_does_something_else_is_told(kind: type[EmulatedPerson], words: str, tmp_path: Path) -> None:
    table = bench(WHEEL, kind)
    with pytest.raises(ConfigurationError, match=words):
        attempt(table, tmp_path / "run")
    assert left_alone(table.stick)


def test_a_wheel_that_is_calibrated_as_a_stick_is_told_to_be_one(tmp_path: Path) -> None:
    table = bench(WHEEL)
    with pytest.raises(DeviceOpenError, match=r"is a wheel.*haptics calibrate joystick --rim-radius M"):
        attempt(table, tmp_path / "run", rim_radius=None, travel_x=0.2, travel_y=0.16)
    assert left_alone(table.stick)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the size is needed, of a stick or of a wheel"),
        ({"travel_x": 0.1}, "--travel-x M and --travel-y M, from stop to stop, or --rim-radius M"),
        ({"travel_x": 0.1, "travel_y": 0.1, "rim_radius": 0.15}, "of a stick or of a wheel"),
        ({"rim_radius": 0.0}, "--rim-radius = 0: must be at least 0.02 and at most 1 m"),
        ({"rim_radius": 0.15, "turn": 5.0}, "--turn = 5: must be at least 20 and at most 720 degrees"),
        ({"rim_radius": 0.15, "weight": 0.2, "stated_max_force": None}, "--weight is for sticks.*--stated-max-force N"),
    ],
)
def test_a_wrong_request_is_named(given: dict[str, float | None], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Request(**{"stated_max_force": 20.0, **given})


def test_counts_are_linear_in_the_angle_whatever_their_sense_and_centre() -> None:
    radius, turn, centre, per_turn = 0.15, math.pi / 2.0, 137.0, -5000.0
    counts = np.array([centre + per_turn * place.x for place in TURNS])
    axes, misfit = fit_rim(TURNS, counts, radius, turn, ((-32767, 32767),))
    assert misfit == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(counts_of(axes, np.array((0.01, 0.0))), (centre - 5000.0 * 0.01 / (radius * turn), 0.0))
    assert axes.workspace_max_m[0] == pytest.approx((32767 - 137) / 5000.0 * radius * turn)
    assert axes.workspace_min_m[0] == -axes.workspace_max_m[0]


def test_an_angle_beyond_the_range_of_the_axis_is_refused() -> None:
    limit = PROFILES[WHEEL].handle.limit
    with pytest.raises(ConfigurationError, match="axis X is at the end of its range"):
        fit_rim(TURNS, np.array((limit, -limit, 0.0)), 0.15, 1.0, ((-limit, limit),))
