"""Firmware that cannot add effects up is found when a stick is calibrated, and driven by one effect from then on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibration.joystick import procedure
from calibration.joystick.pushes import agree
from calibration.joystick.response import Response


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
