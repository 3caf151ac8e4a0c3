"""Per-tick computation of the pantograph: forward kinematics, and force to motor torques."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.kernels import accept, begin_sample, copy_sample, estimate_velocity, exchange_fields, send_command
from devices.common.linkage import close_linkage, motor_torques
from devices.pantograph.board import Board
from devices.pantograph.mechanisms import CLEARANCE, MAX_TORQUE, Mechanism
from haptics.jit import kernel, merged_kernel

_close = kernel(close_linkage)
_torques = kernel(motor_torques)

NO_LINKAGE = 3
"""Additional value of ``fault``: the mechanism cannot have the measured angles."""

# Record fields for the arguments of `close_linkage`, in order; NumPy reserves the name ``base``.
_SHAPE = ("left_inner", "left_outer", "right_outer", "right_inner", "motor_distance", "side")

PANTOGRAPH = np.dtype(
    [
        *exchange_fields(Board.sample_size, Board.command_size),
        *((name, "<i8" if name == "side" else "<f8") for name in _SHAPE),
        ("centre", "<f8", (2,)),
        ("angles", "<f8", (2,)),
        ("torques", "<f8", (2,)),
    ]
)
"""Record of the pantograph: geometry, angles of the inner links [rad] and torques of the motors [N m]."""


def fill_mechanism(record: NDArray[Any], mechanism: Mechanism) -> None:
    """Initialize the geometry, with the links at the home pose."""
    for name, value in zip(_SHAPE, mechanism.linkage.shape, strict=True):
        record[name] = value
    record["centre"] = mechanism.centre
    record["angles"] = np.radians(mechanism.home)


@merged_kernel
def place_handle(s: Any, left: float, right: float) -> None:
    """Set ``s.position`` [m] for angles of the inner links [degree]; nan if the linkage cannot have them."""
    s.angles[0], s.angles[1] = math.radians(left), math.radians(right)
    x, y, _, _, _, _, _, _ = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    s.position[0], s.position[1] = x - s.centre[0], y - s.centre[1]


@merged_kernel
def drive_motors(s: Any, fx: float, fy: float) -> None:
    """Compute the torques [N m] for a force (fx, fy) [N] at the latest angles.

    Near the pose with the outer links in line, the torques per force grow without bound, and the handle can still
    yield. From `CLEARANCE` to half of it the force fades to zero, and it stays zero beyond. If the torque of one motor
    would exceed its maximum, both torques are scaled down, so that the direction of the force is kept.
    """
    _, _, left_x, left_y, right_x, right_y, left_lever, right_lever = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    clearance = abs(left_x * right_y - left_y * right_x) / (s.left_outer * s.right_outer)
    if not clearance > 0.5 * CLEARANCE:  # also true for nan
        s.torques[0] = s.torques[1] = 0.0
        return
    left, right = _torques(fx, fy, left_x, left_y, right_x, right_y, left_lever, right_lever)
    part = min(2.0 * clearance / CLEARANCE - 1.0, 1.0)
    largest = max(abs(left), abs(right)) * part
    if largest > MAX_TORQUE:
        part *= MAX_TORQUE / largest
    s.torques[0], s.torques[1] = part * left, part * right


@kernel
def take_pantograph(s: Any, now: float, elapsed: float) -> None:
    """Read the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    if not begin_sample(s, now, elapsed):
        return
    if copy_sample(s):
        place_handle(s, s.sample[1], s.sample[2])
    if not math.isfinite(s.position[0]):
        s.fault = NO_LINKAGE
        return
    estimate_velocity(s)


@kernel
def give_pantograph(s: Any, x: float, y: float) -> None:
    """Publish the torques for a force [N]."""
    if not accept(s, x, y):
        return
    drive_motors(s, s.compensation.total[0], s.compensation.total[1])
    s.given[0], s.given[1] = s.torques[0], s.torques[1]
    send_command(s)
