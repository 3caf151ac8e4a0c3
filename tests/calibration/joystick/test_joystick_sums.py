"""Firmware that cannot add effects up is found when a stick is calibrated, and driven by one effect from then on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibration.joystick import procedure
from calibration.joystick.emulated import EmulatedPerson
from calibration.joystick.person import Look, Place
from calibration.joystick.pushes import agree
from calibration.joystick.response import Response
from devices.emulators.pid.profiles.known import PROFILES
from haptics.errors import ConfigurationError
from tests.calibration.benches import attempt, bench, left_alone, near, truth_of


@pytest.fixture(params=["latest", "turns"])
def profile(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, request.param, replace(PROFILES["openffboard"], sums=request.param))
        yield request.param


@pytest.mark.slow
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


def answer(first: tuple[float, float], second: tuple[float, float]) -> Response:
    return Response(np.array((first, second)).T, 0.0, 0.0, 0.0, 0.0, 0.0, ())


@pytest.mark.parametrize(("alone", "effects"), [(1.0, 2), (1.5, 1)])
def test_effects_that_push_more_alone_than_together_are_not_added_up(
    alone: float, effects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pushes themselves are in the slow test above."""
    said: list[str] = []

    def push(*_: Any, effects: int, what: str, before: Any = ()) -> Any:
        part = 1.0 if what == "pushes" else alone
        return procedure._Pushed([], 1, 0.1, answer((part * 30.0, 0.0), (0.0, part * 30.0)))

    monkeypatch.setattr(procedure, "_push", push)
    stick: Any = SimpleNamespace(axes=SimpleNamespace(usages=(1, 2)))
    person: Any = SimpleNamespace(tell=said.append)
    nobody: Any = None
    found, number = procedure._pushes(nobody, stick, person, nobody, nobody, {})
    assert number == effects
    assert bool(said) is (effects == 1)
    assert found.response.acceleration[0, 0] == pytest.approx(30.0 * alone)


class Holding(EmulatedPerson):
    """Does not let go."""

    def let_go(self, look: Look) -> None:
        pass

    def bring(self, place: Place, look: Look) -> None:
        super().bring(place, look)


@pytest.mark.slow
def test_a_handle_that_moves_with_neither_is_told_as_before(tmp_path: Path) -> None:
    table = bench("openffboard", Holding)
    with pytest.raises(ConfigurationError, match=r"effect 1 does not move the handle: .* at level 0\.05"):
        attempt(table, tmp_path / "run", push_level=0.05)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["run_pushes", "run_pushes_of_one"]
    assert left_alone(table.stick)


@pytest.mark.parametrize(
    ("alone", "alike"),
    [
        ((10.0, 0.0), True),
        ((12.0, 1.0), True),
        ((20.0, 0.0), False),
        ((5.0, 0.0), False),
        ((0.0, 10.0), False),
        ((-10.0, 0.0), False),
    ],
)
def test_answers_agree_in_which_each_effect_does_alike(alone: tuple[float, float], alike: bool) -> None:
    both = answer((10.0, 0.0), (0.0, 20.0))
    assert agree(answer(alone, (0.0, 20.0)), both) == alike
    assert agree(answer((10.0, 0.0), (2.0 * alone[1], 2.0 * alone[0])), both) == alike
