"""Surface on which an arm presses: a plane that is compliant in its normal direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devices.arm.mechanics.dynamics import frame_jacobian, into_frame
from devices.arm.mechanics.linkage_kernels import position, turning_acceleration
from haptics.jit import kernel
from haptics.settings import bounded, check, documented


@documented
@dataclass(frozen=True)
class Surface:
    """Plane that is compliant in its normal direction and smooth tangentially.

    The end effector never leaves it.

    Its force is (3) of Machado et al. 2002.
    """

    mass: float = bounded(
        0.0, minimum=0.0, maximum=1e6, unit="kg", doc="mass M of F = M x'' + B x' + K x; all 0 for no surface"
    )
    damping: float = bounded(0.0, minimum=0.0, maximum=1e9, unit="N s/m", doc="damping B of the surface")
    stiffness: float = bounded(0.0, minimum=0.0, maximum=1e12, unit="N/m", doc="stiffness K of the surface")
    angle: float = bounded(
        0.0, minimum=-7.0, maximum=7.0, unit="rad", doc="angle against the x axis; with pi/2 the arm presses along x"
    )

    def __post_init__(self) -> None:
        check(self, "surface")


@kernel
def frame_position(s: Any, q1: float, q2: float) -> tuple[float, float]:
    """Return the position of the end effector normal to and along the plane [m] at the joint angles q."""
    x, y = position(s.links.linkage, q1, q2)
    return into_frame(s.plane, x, y)


@kernel
def contact_offset(s: Any) -> Any:
    """Return the depth of the end effector in the surface [m]."""
    return frame_position(s, s.angle[0], s.angle[1])[0] - s.rest


@kernel
def contact_motion(s: Any) -> tuple[float, float, float]:
    """Return normal depth [m], speed [m/s] and the acceleration due to the speeds [m/s^2]."""
    q1, q2, w1, w2 = s.angle[0], s.angle[1], s.speed[0], s.speed[1]
    a, b, _, _ = frame_jacobian(s.links, s.plane, q1, q2)
    x, y = turning_acceleration(s.links.linkage, q1, q2, w1, w2)
    return contact_offset(s), a * w1 + b * w2, into_frame(s.plane, x, y)[0]
