"""A tick of the pantograph, as the parts of its port: forward kinematics, and force to motor torques."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.driver_kernels import FORCE_DRIVER_FIELDS, LOST, accept, estimate_velocity, note_time
from devices.common.latch import copy_latest, leave
from devices.common.linkage import close_linkage, motor_torques
from devices.pantograph.exchange import Exchange
from devices.pantograph.mechanisms import CLEARANCE, MAX_TORQUE, Mechanism
from haptics.jit import kernel, merged_kernel
from haptics.parts import float_at

_close = kernel(close_linkage)
_torques = kernel(motor_torques)

NO_LINKAGE = 3
"""What ``fault`` says besides those of a driver: no linkage of this mechanism has such angles."""

_SHAPE = ("left_inner", "left_outer", "right_outer", "right_inner", "motor_distance", "side")
"""Fields for what `close_linkage` wants to know, in its order; a record's ``base`` is something else to NumPy."""

PANTOGRAPH = np.dtype(
    [
        *FORCE_DRIVER_FIELDS,
        *((name, "<i8" if name == "side" else "<f8") for name in _SHAPE),
        ("centre", "<f8", (2,)),
        ("samples", "<i8"),
        ("wanted", "<i8"),
        ("lost", "<i8"),
        ("sample", "<f8", (3,)),
        ("given", "<f8", (3,)),
        ("angles", "<f8", (2,)),
        ("torques", "<f8", (2,)),
    ]
)
"""The whole pantograph in one record: what `devices.pantograph.exchange` shares with the tick lies at ``samples``,
``wanted`` and ``lost``; ``sample`` is the latest one, ``given`` what was left last."""


def fill_mechanism(record: NDArray[Any], mechanism: Mechanism) -> None:
    """Fill in the geometry, with the links at the home pose."""
    for name, value in zip(_SHAPE, mechanism.linkage.shape, strict=True):
        record[name] = value
    record["centre"] = mechanism.centre
    record["angles"] = np.radians(mechanism.home)


def connect(record: NDArray[Any], exchange: Exchange) -> None:
    """Fill in where the exchange is, which must live as long as the record is used."""
    record["samples"], record["wanted"] = exchange.samples.place, exchange.torques.place
    record["lost"] = exchange.lost.ctypes.data


@merged_kernel
def place_handle(s: Any, left: float, right: float) -> None:
    """Set ``s.position`` [m] for angles of the inner links [degree]; nan where no linkage has such angles."""
    s.angles[0], s.angles[1] = math.radians(left), math.radians(right)
    x, y, _, _, _, _, _, _ = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    s.position[0], s.position[1] = x - s.centre[0], y - s.centre[1]


@merged_kernel
def drive_motors(s: Any, fx: float, fy: float) -> None:
    """Compute the torques [N m] for a force (fx, fy) [N] at the latest angles.

    Where the outer links come into one line, torques per force grow beyond limits and the handle can give way all the
    same. From `CLEARANCE` to half of it the force fades to nothing, and beyond there is none. What would ask more of a
    motor than it can give is made smaller in both, so that the force keeps its direction.
    """
    _, _, left_x, left_y, right_x, right_y, left_lever, right_lever = _close(
        s.angles[0], s.angles[1], s.left_inner, s.left_outer, s.right_outer, s.right_inner, s.motor_distance, s.side
    )
    clearance = abs(left_x * right_y - left_y * right_x) / (s.left_outer * s.right_outer)
    if not clearance > 0.5 * CLEARANCE:  # nor where it is none
        s.torques[0] = s.torques[1] = 0.0
        return
    left, right = _torques(fx, fy, left_x, left_y, right_x, right_y, left_lever, right_lever)
    part = min(2.0 * clearance / CLEARANCE - 1.0, 1.0)
    largest = max(abs(left), abs(right)) * part
    if largest > MAX_TORQUE:
        part *= MAX_TORQUE / largest
    s.torques[0], s.torques[1] = part * left, part * right


@merged_kernel
def _is_lost(s: Any) -> bool:
    """Tell whether there will be no more samples."""
    return float_at(s.lost) != 0.0


@kernel
def take_pantograph(s: Any, now: float, elapsed: float) -> None:
    """Take the newest sample at the nominal time `now`, `elapsed` after the clock's zero [s]."""
    note_time(s, now, elapsed)
    if _is_lost(s):
        s.fault = LOST
    if s.fault != 0:
        return
    if copy_latest(s.samples, s.sample):
        place_handle(s, s.sample[1], s.sample[2])
        s.time = s.sample[0] - s.origin
    if not math.isfinite(s.position[0]):
        s.fault = NO_LINKAGE
        return
    estimate_velocity(s)


@kernel
def give_pantograph(s: Any, x: float, y: float) -> None:
    """Leave the torques for a force [N]."""
    if not accept(s, x, y):
        return
    drive_motors(s, s.compensation.total[0], s.compensation.total[1])
    s.given[0], s.given[1], s.given[2] = s.torques[0], s.torques[1], s.instant
    leave(s.wanted, s.given)
    if _is_lost(s):
        s.fault = LOST
