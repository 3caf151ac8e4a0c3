"""Arm that the emulated drive turns, the hand on its handle, and the load of its force sensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.body import ArmBody
from devices.arm.mechanics.linkage_kernels import flange_angle
from devices.arm.mechanics.plant import step_plant
from devices.common.settings import Workspace
from devices.emulators.odrive.control_kernels import AXIS, STEP, iterate
from devices.emulators.odrive.plant import Pair
from devices.virtual.arm_kernels import BODY_FIELDS, move_body, place_handle
from devices.virtual.hands.registry import make_hand
from devices.virtual.plant import expect_hand, settle_hand
from devices.virtual.wrench import WRENCH, WrenchSettings, fill_wrench, measure_wrench, true_wrench
from haptics.device import Vector
from haptics.jit import kernel

SLICES = 8
"""Steps between two samples of the hand's intention, which is interpolated linearly."""

SETTLING = 8000
"""Steps in which gears deflected by the weight of the links relax while the motors are disarmed."""

_NEVER = 2**62
"""Step number that is never reached."""

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
"""Record of arm, hand and sensor; ``acceleration`` of the handle is its mean over the latest slices [m/s^2], ``ratio``
the turns of each motor per turn of its joint, ``sign`` the sign of the ratio.
"""


@kernel
def _settle(record: Any, steps: int) -> None:
    """Simulate the disarmed arm until friction stops it."""
    s = record[0]
    for _ in range(steps):
        step_plant(s.arm, s.drives, s.motor_torque, s.scratch)


@kernel
def _set_position(record: Any) -> None:
    place_handle(record[0])


@kernel
def _expect(record: Any, rate: float, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Set the hand's intention at the end of the next slices, of inverse length `rate` [1/s]."""
    s = record[0]
    settle_hand(s)
    expect_hand(s, x, y, push_x, push_y, grip)
    for i in range(2):
        s.acceleration[i] = rate * (s.handle_velocity[i] - s.last_velocity[i])
        s.last_velocity[i] = s.handle_velocity[i]


@kernel
def _run(axes: Any, record: Any, first: int, count: int) -> None:
    """Simulate `count` control iterations from index `first` of a slice: both axes, then the arm."""
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
    """Measure the wrench `period` [s] after the last measurement."""
    s = record[0]
    angle = flange_angle(s.arm.links.linkage, s.arm.angle[0], s.arm.angle[1])
    true_wrench(s.sensor, angle, s.hand_force[0], s.hand_force[1], s.acceleration[0], s.acceleration[1])
    measure_wrench(s.sensor, period)


class ArmPlant:
    """Arm held by a hand (`devices.emulators.odrive.plant.Plant`).

    Its operator holds it at the start position of the hand. From `begin` on, the hand holds and moves the handle.

    Parameters
    ----------
    body : ArmBody
        Model of the arm.
    ratios : (float, float)
        Turns of each motor per turn of its joint; the signs are the mounting directions of the motors.
    workspace : Workspace
        Workspace of the hand.
    hand : mapping or None
        Table of the hand (`devices.virtual.hands.registry`).
    seed : int
        Seed of the random numbers.
    sensor : WrenchSettings, optional
        Properties and mounting of the force sensor.
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
        _set_position(record)
        fill_wrench(record["sensor"], sensor or WrenchSettings(), body.handle_mass, body.gravity, seed)
        record["target"] = record["next_target"] = record["handle"]
        self._rotor, self._rotor_speed = record["arm"]["rotor"][0], record["arm"]["rotor_speed"][0]
        self._begun = False
        self._slice = self._steps = self._seen = 0
        copy = record.copy()  # copy on which all kernels are compiled in advance
        _expect(copy, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        _run(np.zeros(2, AXIS), copy, 0, 0)
        _sense(copy, STEP)
        self._hand.prepare()

    def begin(self) -> None:
        """Make the hand grasp the handle."""
        self._begun = True
        self._slice = self._steps = self._seen = 0

    @property
    def held(self) -> bool:
        """Whether the last link is clamped in place; the force sensor does not measure the clamping force."""
        return bool(self._record["steps"][0] < self._record["clamp_end"][0])

    @held.setter
    def held(self, value: bool) -> None:
        record = self._record
        record["clamp_first"] = record["clamp_end"] = record["steps"]
        if value:
            record["clamp_end"] = _NEVER

    # --- interface to the motors -------------------------------------------------------------------------------------

    @property
    def angles(self) -> Pair:
        """Angles of the motors' shafts [turn]."""
        return self._turns(self._rotor)

    @property
    def speeds(self) -> Pair:
        """Speeds of the motors' shafts [turn/s]."""
        return self._turns(self._rotor_speed)

    def _turns(self, values: Vector) -> Pair:
        first, second = self._ratios
        return float(values[0]) * first / math.tau, float(values[1]) * second / math.tau

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations; see `devices.emulators.odrive.plant.Plant`."""
        while count > 0:
            if self._begun and self._slice == 0:
                self._ask_hand()
            steps = min(SLICES - self._slice, count)
            _run(axes, self._record, self._slice, steps)
            self._steps += steps
            self._slice = (self._slice + steps) % SLICES
            count -= steps

    def _ask_hand(self) -> None:
        """Sample the hand's intention at the end of the next slices."""
        hand = self._hand.sample((self._steps + SLICES) * STEP, self.handle)
        rate = 1.0 / (SLICES * STEP)
        _expect(self._record, rate, hand.x, hand.y, hand.force_x, hand.force_y, hand.grip)

    # --- interface to sensor and observers ---------------------------------------------------------------------------

    def wrench(self) -> list[float]:
        """Return the present measurement of the sensor, (6,) [N], [N m], in its axes."""
        _sense(self._record, (self._steps - self._seen) * STEP)
        self._seen = self._steps
        shown: list[float] = self._record["sensor"]["shown"][0].tolist()
        return shown

    @property
    def handle(self) -> Vector:
        """True position of the handle, (2,) [m]."""
        return np.array(self._record["handle"][0])

    @property
    def hand_force(self) -> Vector:
        """True force of the hand on the handle, (2,) [N]."""
        return np.array(self._record["hand_force"][0])
