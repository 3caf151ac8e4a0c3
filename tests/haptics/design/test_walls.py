"""The largest stable stiffness of a wall, against a simulated handle that is pressed to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from devices.virtual.arm import VirtualArm
from devices.virtual.joystick import VirtualJoystick
from haptics import Coulomb, MasslessImpedance, RigidAdmittance
from haptics.design import Coupling, Handle, Severity, advise_walls, stiffness_limit, wall_limit
from haptics.elements.models import Element
from haptics.records import NEUTRAL
from haptics.rendering.rendering import Rendering
from haptics.scenes.shapes import HalfPlane
from haptics.scenes.walls import Wall
from tests.haptics.wall_runs import among

T = 1e-3
PRESSED = ((0.0, 0.0, 0.0), (0.5, 5.0, 0.0), (1.0, 5.0, 0.0), (1.005, 6.0, 0.0), (1.01, 5.0, 0.0))
"""A hand that leans on the wall with 5 N and, after a second, gives it a knock."""

WALL = HalfPlane((0.0, 0.0), (-1.0, 0.0))


def swing(wall: Wall, element: Element, delay: float, *others: Wall) -> float:
    """Return by how much the bare handle still swings three seconds after the knock, peak to peak [m]."""
    settings: dict[str, Any] = {"mass": 0.2, "damping": 0.0, "delay": delay, "resolution": 0.0}
    hand = {"name": "scripted-force", "script": PRESSED}
    plant = VirtualJoystick({**settings, "velocity_estimator": "difference", "hand": hand})
    rendering = Rendering(among(element, (wall, *others)), replace(plant.spec, fade_in=0.0))
    row, places = NEUTRAL.copy(), np.zeros(4000)
    with plant:
        for tick in range(len(places)):
            plant.write(rendering.tick(plant.read(), 0.0, row, 0, (tick, tick * T, 0.0, 0)))
            places[tick] = plant.handle[0]
    return float(np.ptp(places[-200:]))


@pytest.mark.parametrize("delay", [0.0, 1e-3, 2e-3])
def test_a_wall_rings_above_the_limit_and_not_below(delay: float) -> None:
    element = MasslessImpedance(Coulomb(0.0), 6000.0, 10.0)
    limit = wall_limit(Handle(mass=0.2, delay=delay), 10.0, T)
    assert swing(Wall(WALL, 0.8 * limit, 10.0, 0.0), element, delay) < 2e-6
    assert swing(Wall(WALL, 1.25 * limit, 10.0, 0.0), element, delay) > 5e-5


def test_beside_a_contact_that_sticks_less_is_left() -> None:
    """The element alone is stable, and so is the wall; together they ring where the rule says so."""
    delay, element = 2e-3, MasslessImpedance(Coulomb(20.0), 3000.0, 5.0)
    beside = Coupling(3000.0, 5.0, T)
    handle = Handle(mass=0.2, delay=delay)
    limit = wall_limit(handle, 10.0, T, beside)
    assert 0.0 < 1.25 * limit < stiffness_limit(handle, 10.0, T)
    assert swing(Wall(WALL, 0.8 * limit, 10.0, 0.0), element, delay) < 2e-6
    assert swing(Wall(WALL, 1.25 * limit, 10.0, 0.0), element, delay) > 5e-5


def test_advice_has_words_and_a_margin() -> None:
    spec, element = VirtualJoystick().spec, MasslessImpedance(Coulomb(4.0), 6000.0, 10.0)
    handle = Handle.of(spec)
    assert handle is not None
    limit = wall_limit(handle, 10.0, T, Coupling(6000.0, 10.0, T))
    assert advise_walls((), element, spec) == []
    assert advise_walls((Wall(WALL, 0.4 * limit),), element, spec) == []
    smooth = replace(spec, position_resolution=None)
    (note,) = advise_walls((Wall(WALL, 0.4 * limit), Wall(WALL, 0.7 * limit)), element, smooth)
    assert note.severity is Severity.NOTE and note.value == pytest.approx(0.7 * limit)
    warning, flicker = advise_walls((Wall(WALL, 1.5 * limit),), element, spec)
    assert warning.severity is Severity.WARNING and warning.limit == pytest.approx(limit)
    assert "wall.stiffness" in warning.text and "lower it" in warning.text
    assert flicker.severity is Severity.NOTE and flicker.value == pytest.approx(1.5 * limit * 1e-5)


def test_an_arm_bears_any_wall() -> None:
    assert advise_walls((Wall(WALL, 1e7),), RigidAdmittance(Coulomb(4.0), 2.0), VirtualArm().spec) == []


def test_a_wall_without_damping_on_a_device_without_has_no_limit_that_holds() -> None:
    assert wall_limit(Handle(mass=0.2, delay=1e-3), 0.0, T) == 0.0
