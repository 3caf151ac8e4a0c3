"""The arm on a drive as a linear system: it answers as the emulated one does, and tells which mass shakes that."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
from devices.arm.body import ArmBody
from devices.arm.servo.driven import RATE, DrivenArm
from devices.arm.servo.mechanism import Grip
from devices.arm.servo.references import MotorReferences
from devices.arm.servo.settings import ServoSettings
from devices.arm.settings import ArmSettings
from devices.common.workspace import Workspace
from devices.emulators.arm.gains import gains_for
from devices.emulators.arm.plant import SLICES, ArmPlant
from devices.emulators.odrive.control_kernels import AXIS, CLOSED_LOOP, PASS_THROUGH, POSITION_CONTROL, iterate
from devices.virtual.arm_kernels import move_body
from haptics.design import FIRM_GRIP
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb
from haptics.jit import kernel
from tests.devices.arm.test_servo_sliding import CALM, LOUD, STRAIGHT, circling_hand, holding, loudness, warned

TICK = 1e-3
STEPS = round(TICK * RATE)


@kernel
def _run(axes: Any, record: Any, first: int, count: int, fine: int) -> None:
    """Let iterations of the drive go by, each with so many steps of the arm."""
    s = record[0]
    for k in range(first, first + count):
        for i in range(2):
            iterate(axes[i], s.arm.rotor[i] * s.ratio[i] / math.tau)
        for i in range(2):
            s.motor_torque[i] = s.sign[i] * axes[i].torque
        for j in range(fine):
            move_body(s, (k + j / fine) / SLICES, 1.0 / TICK)


class Driven:
    """The emulator's drive and arm, its kernels called in step, and commands that arrive so many of its steps late."""

    def __init__(self, body: ArmBody, settings: ServoSettings, hand: dict[str, Any], late: int, fine: int) -> None:
        self.body, ratio, self._fine = body, body.reduction, fine
        self._plant = ArmPlant(body, (ratio, -ratio), Workspace((-0.2, -0.15), (0.2, 0.15)), hand)
        self._plant._record["substep"] = self._plant._record["arm"]["step"] = 1.0 / (RATE * fine)
        self._signs, self._late = np.array((1.0, -1.0)), late
        self._references = MotorReferences(settings, body.model_links, body.model_joints, TICK, body.linkage)
        self._references.start(body.angles(*self._plant.handle))
        self._axes, gains = np.zeros(2, AXIS), gains_for(body)
        for name, value in {
            **{"state": CLOSED_LOOP, "control_mode": POSITION_CONTROL, "input_mode": PASS_THROUGH},
            **{"position_gain": gains.position, "speed_gain": gains.speed, "integrator_gain": gains.integrator},
            **{"counts_per_turn": body.encoder_counts, "bandwidth": 1000.0, "integrator_limit": math.inf},
            **{"torque_limit": body.torque_limit, "current_limit": math.inf, "torque_constant": 1.0},
        }.items():
            self._axes[name] = value
        self._axes["position"] = self._axes["input_position"] = self._plant.angles
        self._waiting = [self._axes[["input_position", "input_speed", "input_torque"]].copy()] * (late // STEPS + 1)
        self._plant.begin()
        self._velocity = np.zeros(2)
        self.force = np.zeros(2)

    @property
    def handle(self) -> np.ndarray:
        return self._plant.handle

    def tick(self, place: np.ndarray) -> None:
        """Command a place, and go on to the next tick."""
        angles = self.body.angles(*place)
        here = self.body.angles(*self.handle)
        hand = self.body.linkage.jacobians([here])[0].T @ self.force
        wanted = self._axes[["input_position", "input_speed", "input_torque"]].copy()
        told = self._references.step(angles, hand)
        to_motor = self.body.reduction * self._signs
        for name, value, factor in zip(
            wanted.dtype.names, told, (to_motor / math.tau, to_motor / math.tau, 1.0 / to_motor), strict=True
        ):
            wanted[name] = value * factor
        self._waiting.append(wanted)
        self._plant._ask_hand()
        self._plant._steps += STEPS
        part = self._late % STEPS
        self._go_on(0, part)
        self._waiting.pop(0)  # the next one has arrived
        self._go_on(part, STEPS - part)
        before, self._velocity = self._velocity, self._plant._record["handle_velocity"][0].copy()
        self.force = self._plant.hand_force - self.body.handle_mass * (self._velocity - before) / TICK

    def _go_on(self, first: int, count: int) -> None:
        for name in self._waiting[0].dtype.names:
            self._axes[name] = self._waiting[0][name]
        _run(self._axes, self._plant._record, first, count, self._fine)


# --- the linear system answers as the kernels do ----------------------------------------------------------------------


@pytest.mark.parametrize("law", ["pid", "flatness", "rigid"])
@pytest.mark.parametrize(
    ("own", "servo", "place", "late"),
    [
        ({}, {}, (0.0, 0.0), 0),
        ({"handle_mass": 0.6}, {"knows_hand": True}, (0.05, 0.1), 5),
        ({"model_inertia": 0.8, "stiffness": 6e3}, {"reference": "smooth"}, (-0.1, 0.1), 8),
        ({"coupling": "rigid"}, {}, (0.0, -0.1), 19),
    ],
)
def test_the_linear_arm_answers_as_the_emulated_one(
    law: str, own: dict[str, Any], servo: dict[str, Any], place: tuple[float, float], late: int
) -> None:
    body, settings = ArmBody(**(STRAIGHT | own)), ServoSettings(law=law, **servo)
    rig = Driven(body, settings, holding(*place), late, 12)
    arm = DrivenArm(body, body.model_joints, settings, gains_for(body), (body.reduction,) * 2, late / RATE)
    linear = arm.sampled(Grip(400.0, 8.0), TICK, body.angles(*place))
    generator, state, velocity, way = np.random.default_rng(1), np.zeros(len(linear.transition)), 0.0, np.zeros(2)
    shown, foretold = np.zeros((2, 60, 2))
    for tick in range(60):
        shown[tick], foretold[tick] = rig.force, linear.force @ state
        velocity = velocity + 1e-4 * generator.normal(size=2)
        way = way + TICK * velocity
        rig.tick(np.array(place) + way)
        state = linear.transition @ state + linear.command @ way
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()


# --- what a hand feels ------------------------------------------------------------------------------------------------


GONE = 200.0
"""No hand holds a handle against that [N]: the loop has long been ended."""


def shaking(law: str, mass: float, late: int, hand: dict[str, Any]) -> float:
    """Render model A with 6 N on the default arm; return the force above 40 Hz while it slides, rms [N]."""
    rig = Driven(ArmSettings().body, ServoSettings(law=law), hand, late, fine=4)
    element = RigidAdmittance(Coulomb(6.0), mass)
    reference, forces = rig.handle.copy(), np.zeros((2500, 2))
    for tick in range(len(forces)):
        forces[tick] = rig.force
        if not np.hypot(*forces[tick]) < GONE:
            return math.inf
        reference += TICK * element.step(forces[tick])
        rig.tick(reference)
    return loudness(forces)


@pytest.mark.parametrize(("law", "calm"), [("pid", 1.15), ("rigid", 1.15), ("flatness", 1.3)])
@pytest.mark.parametrize("late", [7, 16])
def test_a_mass_is_warned_of_where_it_shakes_and_not_where_it_is_calm(
    tmp_path: Path, law: str, calm: float, late: int
) -> None:
    spec = devices.create_device("arm", {"emulated": True, "delay": late / RATE, "servo": {"law": law}}).spec
    hand, limit = circling_hand(tmp_path, *FIRM_GRIP), spec.least_mass
    assert limit is not None
    assert shaking(law, 0.85 * limit, late, hand) > LOUD
    assert shaking(law, calm * limit, late, hand) < CALM
    assert [warned(part * limit, spec) for part in (0.85, calm)] == [True, False]


def test_an_arm_whose_drive_s_gains_nobody_knows_states_no_least_mass() -> None:
    has = gains_for(ArmSettings().body)
    gains = {"position_gain": has.position, "speed_gain": has.speed, "integrator_gain": has.integrator}
    assert devices.create_device("arm", {}).spec.least_mass is None
    for missing in gains:
        some = {name: value for name, value in gains.items() if name != missing}
        assert devices.create_device("arm", {"motors": some}).spec.least_mass is None
        assert devices.create_device("arm", {"emulated": True, "motors": some}).spec.least_mass is not None
    emulated = devices.create_device("arm", {"emulated": True}).spec
    assert devices.create_device("arm", {"motors": gains}).spec.least_mass == pytest.approx(emulated.least_mass)


def test_gains_that_are_given_count_in_place_of_the_drive_s() -> None:
    stiff = {"position_gain": 80.0}
    limits = [
        devices.create_device("arm", {"emulated": True, **own}).spec.least_mass for own in ({}, {"motors": stiff})
    ]
    assert limits[0] != limits[1]
