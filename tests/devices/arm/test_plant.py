"""An arm in a hand: what a force on the end effector does, for every linkage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from devices.arm.mechanics.dynamics import Links, TwoLinks
from devices.arm.mechanics.five_bar import FiveBarLinks
from devices.arm.mechanics.joint import Drive, Motor
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import PLANT, new_plant, run_plant
from devices.arm.mechanics.surface import Surface
from devices.common.linkage import FiveBar
from haptics import Coulomb, Stribeck

Array = NDArray[Any]

BARS = FiveBarLinks(
    FiveBar(0.3, 0.4, 0.45, 0.32, 0.15), (1.0, 0.6, 0.7, 1.1), inertias=(0.01, 0.008, 0.009, 0.012), gravity=0.0
)
SERIAL = TwoLinks(0.4, 0.35, 2.0, 1.5, 0.5, 0.5, 0.03, 0.02, 0.05, 0.05, gravity=0.0)
PARALLEL = TwoLinks(0.4, 0.35, 2.0, 1.5, 0.5, 0.4, 0.03, 0.02, 0.05, 0.05, gravity=0.0, absolute=True)
LINKS = {"serial": SERIAL, "parallel": PARALLEL, "five-bar": BARS}
every_linkage = pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)

LIGHT = Drive(Motor(1e-9))
FORCES = st.tuples(st.floats(-20.0, 20.0), st.floats(-20.0, 20.0)).map(np.array)


class Held:
    """An arm in its workspace, with a hand on it."""

    def __init__(self, links: Links, drive: Drive = LIGHT, step: float = 1e-4, rotation: float = 0.7) -> None:
        self.links = links
        self.placed = PlacedLinkage(links.linkage, (0.05, 0.45), rotation)
        self.plant = np.zeros(1, PLANT)
        self.drives = new_plant(self.plant, links, (drive, drive), Surface(), self.placed.home, placed=self.placed)
        self.plant["step"] = step

    def push(self, force: Any, count: int) -> Array:
        """Hold a force for `count` steps; return the states after each."""
        self.plant["hand_force"] = force
        rows = np.zeros(count, PLANT)
        run_plant(self.plant, self.drives, np.zeros((count, 2)), rows)
        return rows

    def velocities(self, rows: Array) -> Array:
        return np.asarray(np.einsum("nij,nj->ni", self.placed.jacobians(rows["angle"]), rows["speed"]))

    def energy(self, rows: Array) -> Array:
        inertia = self.links.terms(rows["angle"])["inertia"]
        return np.asarray(0.5 * np.einsum("ni,nij,nj->n", rows["speed"], inertia, rows["speed"]))


@every_linkage
@given(FORCES)
@settings(max_examples=5)
def test_a_hand_accelerates_what_it_feels_of_the_arm(links: Links, force: Array) -> None:
    """From rest the end effector gains J H^-1 J^T F T, in the axes of the device whichever way the base is turned."""
    arm = Held(links)
    home = np.array(arm.placed.home)
    jacobian = arm.placed.jacobians([home])[0]
    expected = jacobian @ np.linalg.solve(links.terms(home)["inertia"][0], jacobian.T @ force) * 1e-4
    speed = arm.push(force, 1)[0]["speed"]
    np.testing.assert_allclose(jacobian @ speed, expected, rtol=1e-6, atol=1e-12)


@every_linkage
def test_work_of_the_hand_is_the_energy_of_the_arm(links: Links) -> None:
    """Without friction and weight, along a path of several centimetres; the error shrinks with the step."""
    errors = []
    for step in (2e-4, 1e-4, 5e-5):
        arm, work, energy = Held(links, step=step), 0.0, 0.0
        for k in range(8):
            before = arm.placed.positions(arm.plant["angle"])
            rows = arm.push(12.0 * np.array([math.cos(0.9 * k), math.sin(1.7 * k)]), round(0.02 / step))
            path = np.concatenate((before, arm.placed.positions(rows["angle"])))
            work += float(np.sum(np.diff(path, axis=0) @ rows["hand_force"][0]))
            energy = float(arm.energy(rows)[-1])
        assert energy > 0.01
        errors.append(abs(work - energy))
    assert errors[2] < 0.03 * energy
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.3)


@every_linkage
def test_joints_hold_against_a_hand_up_to_their_friction(links: Links) -> None:
    arm = Held(links, Drive(Motor(1e-4), ratio=100.0, friction=Stribeck(2.0, 3.0, 0.05, 1.0)))
    jacobian = arm.placed.jacobians([arm.placed.home])[0]
    direction = np.array([0.8, -0.6])
    breaks = 3.0 / np.abs(jacobian.T @ direction).max()
    rows = arm.push(0.999 * breaks * direction, 500)
    assert (rows["angle"] == rows["angle"][0]).all()
    np.testing.assert_allclose(rows["friction"][-1], 0.999 * breaks * jacobian.T @ direction, rtol=1e-9)
    assert np.abs(arm.push(1.05 * breaks * direction, 500)["speed"][-1]).max() > 1e-3


@every_linkage
def test_a_locked_rotor_leaves_the_hand_a_spring(links: Links) -> None:
    """With rotors that stick the end yields by J K^-1 J^T F."""
    motor = Motor(1e-4, friction=Coulomb(5.0))
    arm = Held(links, Drive(motor, ratio=100.0, coupling="elastic", stiffness=2e5, damping=2e3), step=1e-3)
    jacobian = arm.placed.jacobians([arm.placed.home])[0]
    force = np.array([6.0, 4.0])
    rows = arm.push(force, 3000)
    assert (rows["rotor"] == arm.placed.home).all()
    np.testing.assert_allclose(
        arm.placed.positions(rows["angle"][-1:])[0], jacobian @ jacobian.T @ force / 2e5, rtol=1e-3
    )


@every_linkage
def test_an_arm_that_is_let_go_slows_down_and_stops(links: Links) -> None:
    arm = Held(links, Drive(Motor(1e-4), ratio=100.0, friction=Coulomb(0.5)))
    arm.push((5.0, -3.0), 200)
    rows = arm.push((0.0, 0.0), 2000)
    assert (np.diff(arm.energy(rows)) <= 1e-12).all()
    assert (rows["speed"][-1] == 0.0).all()
