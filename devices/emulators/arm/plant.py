"""The arm that the emulated drive turns, the hand on its handle, and what goes through its force sensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.mechanics.linkage_kernels import flange_angle
from devices.arm.mechanics.plant import step_plant
from devices.common.workspace import Workspace
from devices.emulators.odrive.control_kernels import AXIS, STEP, iterate
from devices.emulators.odrive.plant import Pair
from devices.virtual.arm_kernels import BODY_FIELDS, move_body, place_handle
from devices.virtual.hands.registry import make_hand
from devices.virtual.plant import expect_hand, settle_hand
from devices.virtual.wrench import WRENCH, WrenchSettings, fill_wrench, measure_wrench, true_wrench
from haptics.device import Vector
from haptics.jit import kernel

SLICES = 8
"""Steps for which the hand knows what it wants; in between it goes straight there."""

SETTLING = 8000
"""Steps in which gears that have yielded to the weight of the links spring back, while nobody drives the motors."""

_NEVER = 2**62
"""A step that does not come."""

SCENE = np.dtype(
    [
        *BODY_FIELDS,
        ("sensor", WRENCH),
        ("last_velocity", "<f8", (2,)),
        ("acceleration", "<f8", (2,)),
        ("ratio", "<f8", (2,)),
        ("sign", "<f8", (2,)),
    ]
)
"""Arm, hand and sensor in one record; ``acceleration`` of the handle is its mean over the latest slices [m/s^2],
``ratio`` the turns of each motor per turn of its joint, ``sign`` the sign of that."""


@kernel
def _settle(record: Any, steps: int) -> None:
    """Let the loose arm come to rest on its friction."""
    s = record[0]
    for _ in range(steps):
        step_plant(s.arm, s.drives, s.motor_torque, s.scratch)


@kernel
def _place(record: Any) -> None:
    """Put the handle where the arm is."""
    place_handle(record[0])


@kernel
def _expect(record: Any, rate: float, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Go on to the next slices, of inverse length `rate` [1/s]: what was expected of the hand has come to pass."""
    s = record[0]
    settle_hand(s)
    expect_hand(s, x, y, push_x, push_y, grip)
    for i in range(2):
        s.acceleration[i] = rate * (s.handle_velocity[i] - s.last_velocity[i])
        s.last_velocity[i] = s.handle_velocity[i]


@kernel
def _run(axes: Any, record: Any, first: int, count: int) -> None:
    """Let `count` control iterations go by, `first` to within a slice: those of both axes, then a step of the arm."""
    s = record[0]
    rate = 1.0 / (SLICES * STEP)
    for k in range(first, first + count):
        for i in range(2):
            iterate(axes[i], s.arm.rotor[i] * s.ratio[i] / math.tau)
        for i in range(2):
            s.motor_torque[i] = s.sign[i] * axes[i].torque
        move_body(s, k / SLICES, rate)


@kernel
def _sense(record: Any, period: float) -> None:
    """Measure the wrench; `period` [s] went by since the last time."""
    s = record[0]
    angle = flange_angle(s.arm.links.linkage, s.arm.angle[0], s.arm.angle[1])
    true_wrench(s.sensor, angle, s.hand_force[0], s.hand_force[1], s.acceleration[0], s.acceleration[1])
    measure_wrench(s.sensor, period)


class ArmPlant:
    """An arm in front of a person (`devices.emulators.odrive.plant.Plant`).

    Its operator holds it where the hand begins. From `begin` on the hand holds the handle and does what it does.

    Parameters
    ----------
    body : ArmBody
        What the arm is like.
    ratios : (float, float)
        Turns of each motor per turn of its joint; the signs say which way the motors are built in.
    workspace : Workspace
        Where the hand may go.
    hand : mapping or None
        The table of the hand (`devices.virtual.hands.registry`).
    seed : int
        Decides everything random.
    sensor : WrenchSettings, optional
        What the force sensor is like and how it sits on the flange.
    """

    def __init__(
        self,
        body: ArmBody,
        ratios: Pair,
        workspace: Workspace,
        hand: Mapping[str, Any] | None = None,
        seed: int = 0,
        sensor: WrenchSettings | None = None,
    ) -> None:
        self._hand = make_hand(hand, seed, workspace)
        self._ratios = ratios
        self._record = np.zeros(1, SCENE)
        record = self._record
        record["substep"] = STEP
        record["ratio"], record["sign"] = ratios, np.copysign(1.0, ratios)
        record["drives"] = body.new_plant(record["arm"], self._hand.start, STEP)
        record["grip_stiffness"], record["grip_damping"] = self._hand.stiffness, self._hand.damping
        if body.gravity > 0.0:
            _settle(record, SETTLING)
        _place(record)
        fill_wrench(record["sensor"], sensor or WrenchSettings(), body.handle_mass, body.gravity, seed)
        record["target"] = record["next_target"] = record["handle"]
        self._rotor, self._rotor_speed = record["arm"]["rotor"][0], record["arm"]["rotor_speed"][0]
        self._begun = False
        self._slice = self._steps = self._seen = 0
        copy = record.copy()  # on which everything is compiled before anybody waits for it
        _expect(copy, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        _run(np.zeros(2, AXIS), copy, 0, 0)
        _sense(copy, STEP)
        self._hand.prepare()

    def begin(self) -> None:
        """Let the hand take hold."""
        self._begun = True
        self._slice = self._steps = self._seen = 0

    @property
    def held(self) -> bool:
        """Whether something holds the last link where it is, in front of the force sensor, which does not feel it."""
        return bool(self._record["steps"][0] < self._record["clamp_end"][0])

    @held.setter
    def held(self, value: bool) -> None:
        record = self._record
        record["clamp_first"] = record["clamp_end"] = record["steps"]
        if value:
            record["clamp_end"] = _NEVER

    # --- what the motors see -----------------------------------------------------------------------------------------

    @property
    def angles(self) -> Pair:
        """Of the motors' shafts [turn]."""
        return self._turns(self._rotor)

    @property
    def speeds(self) -> Pair:
        """Of the motors' shafts [turn/s]."""
        return self._turns(self._rotor_speed)

    def _turns(self, values: Vector) -> Pair:
        first, second = self._ratios
        return float(values[0]) * first / math.tau, float(values[1]) * second / math.tau

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Let `count` control iterations go by; see `devices.emulators.odrive.plant.Plant`."""
        while count > 0:
            if self._begun and self._slice == 0:
                self._ask_hand()
            steps = min(SLICES - self._slice, count)
            _run(axes, self._record, self._slice, steps)
            self._steps += steps
            self._slice = (self._slice + steps) % SLICES
            count -= steps

    def _ask_hand(self) -> None:
        """Have the hand say what it wants at the end of the coming slices."""
        hand = self._hand.sample((self._steps + SLICES) * STEP, self.handle)
        rate = 1.0 / (SLICES * STEP)
        _expect(self._record, rate, hand.x, hand.y, hand.force_x, hand.force_y, hand.grip)

    # --- what the sensor and an observer see -------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return what the sensor shows now, (6,) [N], [N m], in its axes."""
        _sense(self._record, (self._steps - self._seen) * STEP)
        self._seen = self._steps
        shown: list[float] = self._record["sensor"]["shown"][0].tolist()
        return shown

    @property
    def handle(self) -> Vector:
        """Where the handle really is, (2,) [m]."""
        return np.array(self._record["handle"][0])

    @property
    def hand_force(self) -> Vector:
        """What the hand really does to it, (2,) [N]."""
        return np.array(self._record["hand_force"][0])
