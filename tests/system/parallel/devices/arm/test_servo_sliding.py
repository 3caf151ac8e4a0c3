"""Long computations beside tests/devices/arm/test_servo_sliding.py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haptics.clock import Clock
from haptics.design import Severity, advise
from haptics.device import DeviceSpec
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb
from tests.devices.arm.test_servo_sliding import TICK, arm

LOUD, CALM = 4.0, 2.0
"""A loop that shakes has more than so many N rms above 40 Hz; encoders, friction and noise make less than that [N]."""


def circling_hand(folder: Path, stiffness: float, damping: float) -> dict[str, Any]:
    """Return a hand that leads the handle round a circle of .1 m once in a second: the contact slides all the time."""
    time = np.arange(0.0, 3.0, 2e-3)
    turn = 2.0 * math.pi * np.where(time < 0.5, time**2, time - 0.25)
    rows = np.column_stack((time, 0.1 * np.cos(turn), 0.1 * np.sin(turn)))
    np.savetxt(folder / "circle.csv", rows, delimiter=",", header="time,x,y", comments="")
    return {"name": "recorded", "file": str(folder / "circle.csv"), "stiffness": stiffness, "damping": damping}


@pytest.fixture
def circling(tmp_path: Path) -> dict[str, Any]:
    return circling_hand(tmp_path, 400.0, 8.0)


def loudness(forces: np.ndarray) -> float:
    """Return what forces, one a tick, have above 40 Hz after 1.5 s, rms [N]."""
    steady = forces[1500:] - forces[1500:].mean(axis=0)
    spectrum = np.fft.rfft(steady * np.hanning(len(steady))[:, None], axis=0)
    loud = spectrum[np.fft.rfftfreq(len(steady), TICK) > 40.0]
    return math.sqrt(2.0 * float((np.abs(loud) ** 2).sum()) / (0.375 * len(steady) ** 2))


def shaking(law: str, mass: float, hand: dict[str, Any]) -> tuple[float, DeviceSpec]:
    """Render model A with 6 N on the default arm; return the force above 40 Hz while it slides, rms [N], and it."""
    clock = Clock(TICK)
    device, element = arm(law, clock, hand=hand), RigidAdmittance(Coulomb(6.0), mass)
    reference, forces = device.read().position.copy(), np.zeros((2500, 2))
    for tick in range(len(forces)):
        clock.wait(tick)
        forces[tick] = device.read().force
        reference += TICK * element.step(forces[tick])
        device.write(reference)
    return loudness(forces), device.spec


def warned(mass: float, spec: DeviceSpec) -> bool:
    found = advise(RigidAdmittance(Coulomb(6.0), mass), spec)
    return any(advice.bound == "mass" and advice.severity is Severity.WARNING for advice in found)


LATER = [
    (law, masses)
    for law, masses in {
        "flatness": (0.2, 0.3, 0.5, 0.7, 1.0),
        "rigid": (0.3, 0.5, 0.7, 1.1, 2.0),
        "fractional": (0.3, 0.4, 0.55, 0.7, 1.0),
        "linearising": (0.2, 0.3, 0.5, 0.7, 1.0),
    }.items()
]


@pytest.mark.parametrize(("law", "masses"), [("pid", (0.3, 0.5, 0.8, 1.0)), *LATER])
def test_a_mass_is_warned_of_where_it_shakes_and_not_where_it_is_calm(
    law: str, masses: tuple[float, ...], circling: dict[str, Any]
) -> None:
    seen = set()
    for mass in masses:
        force, spec = shaking(law, mass, circling)
        assert not CALM < force < LOUD, "the masses of this test are clear cases"
        assert warned(mass, spec) is (force > LOUD), (mass, force, spec.least_mass)
        seen.add(force > LOUD)
    assert seen == {True, False}
