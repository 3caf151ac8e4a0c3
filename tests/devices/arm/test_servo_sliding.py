"""The arm as a linear system: it answers as the simulated arm does, and a mass lighter than it allows shakes that."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from devices.arm.servo.mechanism import Grip
from devices.arm.servo.sliding import sampled_arm
from devices.virtual.arm import VirtualArm
from haptics.clock import Clock
from haptics.design import Severity, advise
from haptics.device import DeviceSpec
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb

TICK = 1e-3
LAWS = ("pid", "flatness", "rigid", "fractional", "linearising")


def arm(law: str, clock: Clock, **tables: dict[str, Any]) -> VirtualArm:
    tables["arm"] = {"encoder": "both" if law == "linearising" else "motor", **tables.get("arm", {})}
    tables["servo"] = {"law": law, **tables.get("servo", {})}
    device = devices.open_device("virtual-arm", tables, clock=clock)
    assert isinstance(device, VirtualArm)
    return device


# --- the linear system answers as the kernels do ----------------------------------------------------------------------

GRIP = Grip(400.0, 8.0)
STRAIGHT = {
    **{"coupling": "spring", "lost_motion": 0.0, "kinetic_friction": 0.0, "static_friction": 0.0, "asymmetry": 0.0},
    **{"encoder_counts": 2**31, "joint_counts": 2**31, "model_friction": 0.0},
}
"""An arm that is linear but for its geometry."""

QUIET = {"noise": 0.0, "drift": 0.0, "resolution": 0.0, "bias": [0.0] * 6}


def holding(x: float, y: float) -> dict[str, Any]:
    still = {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    return {"name": "minimum-jerk", "points": [[x, y], [x, y]], "stiffness": 400.0, "damping": 8.0, **still}


def answers(law: str, own: dict[str, Any], servo: dict[str, Any], place: tuple[float, float]) -> np.ndarray:
    """Move the reference at random by some um; return the forces shown by the device and foretold, (2, n, 2) [N]."""
    clock, generator = Clock(TICK), np.random.default_rng(1)
    device = arm(law, clock, arm=STRAIGHT | own, servo=servo, hand=holding(*place), sensor=QUIET, substep=1e-5)  # type: ignore[arg-type]
    body = device.body
    linear = sampled_arm(body, body.model_joints, device.servo, GRIP, TICK, body.angles(*place))
    state, velocity, way = np.zeros(len(linear.transition)), np.zeros(2), np.zeros(2)
    forces = np.zeros((2, 50, 2))
    for tick in range(50):
        clock.wait(tick)
        forces[:, tick] = device.read().force, linear.force @ state
        velocity += 1e-4 * generator.normal(size=2)
        way = way + TICK * velocity
        device.write(np.array(place) + way)
        state = linear.transition @ state + linear.command @ way
    return forces


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("own", "servo", "place"),
    [
        ({}, {}, (0.0, 0.0)),
        ({"kind": "serial", "rotation": 20.0, "handle_mass": 0.6}, {"knows_hand": True, "integral": 0.0}, (0.05, 0.1)),
        ({"encoder": "both", "model_inertia": 0.8}, {"reference": "smooth", "bandwidth": 30.0}, (-0.1, 0.1)),
    ],
)
def test_the_linear_arm_answers_as_the_simulated_one(
    law: str, own: dict[str, Any], servo: dict[str, Any], place: tuple[float, float]
) -> None:
    if law == "linearising":
        own = {**own, "encoder": "both"}
    shown, foretold = answers(law, own, servo, place)
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()  # what the steps of the integration make


@pytest.mark.parametrize(
    ("law", "own", "servo"),
    [
        ("pid", {"coupling": "rigid"}, {"position_gain": 3e3, "velocity_gain": 60.0, "integral_gain": 100.0}),
        ("rigid", {"encoder": "joint"}, {"bandwidth": 1.0}),
        ("flatness", {}, {"feedback": "conventional"}),
        ("fractional", {"coupling": "rigid"}, {"terms": 3, "proportional": 500.0}),
    ],
)
def test_so_it_does_with_other_gains_couplings_and_encoders(law: str, own: dict[str, Any], servo: Any) -> None:
    shown, foretold = answers(law, own, servo, (0.0, 0.0))
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()


# --- what a hand feels ------------------------------------------------------------------------------------------------

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


def test_the_heavier_the_handle_behind_the_sensor_the_more_mass_it_takes() -> None:
    limits = []
    for mass in (0.0, 0.3, 0.6):
        limit = devices.create_device("virtual-arm", {"arm": {"handle_mass": mass}}).spec.least_mass
        assert limit is not None
        limits.append(limit)
    assert limits[0] < 0.5 * limits[1]
    assert limits[2] > 1.5 * limits[1]
