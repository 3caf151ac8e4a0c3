"""The arm as a linear system: it answers as the simulated arm does, and a mass lighter than it allows shakes that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devices
from devices.arm.servo.mechanism import Grip
from devices.arm.servo.sliding import sampled_arm
from devices.virtual.arm import VirtualArm
from haptics.clock import Clock

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


def test_the_heavier_the_handle_behind_the_sensor_the_more_mass_it_takes() -> None:
    limits = []
    for mass in (0.0, 0.3, 0.6):
        limit = devices.create_device("virtual-arm", {"arm": {"handle_mass": mass}}).spec.least_mass
        assert limit is not None
        limits.append(limit)
    assert limits[0] < 0.5 * limits[1]
    assert limits[2] > 1.5 * limits[1]
