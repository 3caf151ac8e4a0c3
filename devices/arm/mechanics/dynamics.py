r"""Rigid dynamics of an arm with two revolute joints in a vertical plane: H, C and G.

.. math::
    \tau = H(q) \ddot q + C(q, \dot q) \dot q + G(q) + J_c(q)^T F

with the force ``F`` that the end effector exerts on its surroundings (Machado et al. 2002, (1) to (3); the paper prints
a minus, which applies to the force on the arm). Each link is a rod of mass m, with a centre of mass along its
length and a moment of inertia about it. The defaults describe the arm of the paper (Table I), which has the masses at
the ends; its rotors are part of the drives (`devices.arm.mechanics.drive`).

Position and Jacobian of the end effector follow from the linkage (`devices.arm.mechanics.linkage`), of which
there are three kinds. Two links have two kinds of joint angles:

- **relative** (motors in the joints): :math:`q_1` against the x axis, :math:`q_2` between the links;
- **absolute** (motors on the base): both links against the x axis. There are only centrifugal and no Coriolis terms
  then, and H depends on the difference of the angles.

The third kind is a five-bar linkage. The kinetic energy of a rod is a quadratic form in the velocities of its ends a
and b. With its mass m, its centre of mass at the fraction c of its length, and k = I/l^2 of its moment of inertia,

.. math::
    2 T = \bigl(m (1 - c)^2 + k\bigr) |\dot a|^2 + (m c^2 + k) |\dot b|^2
        + 2 \bigl(m c (1 - c) - k\bigr) \dot a \cdot \dot b .

The energy of the linkage is therefore a constant quadratic form in the velocities of the two elbows and of the end
effector, without the angles of the outer links. With r_i the derivatives of these points with respect to the joint
angles, :math:`H_{ij} = \sum m_{ab} \, r_{a,i} \cdot r_{b,j}`, and the matrix of the Christoffel symbols is
:math:`C_{ij} = \sum m_{ab} \, r_{a,i} \cdot \dot r_{b,j}`.

`coriolis_matrix` is the matrix of the Christoffel symbols: dH/dt - 2 C is skew-symmetric, so that
:math:`\frac{d}{dt} \frac12 \dot q^T H \dot q = \dot q^T (\tau - G - J_c^T F)` holds exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.mechanics.linkage import (
    ABSOLUTE,
    FIVE_BAR,
    LINKAGE,
    PlacedLinkage,
    SerialTwoLink,
    bend,
    directions,
    jacobian,
    jacobian_of_bars,
    jacobian_rate_of_bars,
    position,
    turning_acceleration,
)
from devices.common.linkage import FiveBar
from haptics.errors import ConfigurationError
from haptics.jit import inlined_kernel, kernel
from haptics.records import Rows, fields
from haptics.settings import bounded, check, documented, flag, unrestricted


@inlined_kernel
def _elbows(s: Any, q1: float, q2: float) -> tuple[Any, Any, Any, Any]:
    """Return the positions of both elbows, each relative to its motor [m]."""
    p1, p2 = q1 + s.offsets[0], q2 + s.offsets[1]
    left, right = s.lengths[0], s.lengths[3]
    return left * math.cos(p1), left * math.sin(p1), right * math.cos(p2), right * math.sin(p2)


@kernel
def inertia_of_bars(s: Any, q1: float, q2: float) -> tuple[float, float, float]:
    """Return (H_11, H_12, H_22) [kg m^2]."""
    lx, ly, rx, ry = _elbows(s.linkage, q1, q2)
    xx, xy, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
    m, left, right = s.end_mass, s.shared_masses[0], s.shared_masses[1]
    h11 = m * (xx * xx + yx * yx) + 2.0 * left * (lx * yx - ly * xx)
    h12 = m * (xx * xy + yx * yy) + left * (lx * yy - ly * xy) + right * (rx * yx - ry * xx)
    h22 = m * (xy * xy + yy * yy) + 2.0 * right * (rx * yy - ry * xy)
    return h11 + s.inertias[0] + s.joint_inertias[0], h12, h22 + s.inertias[1] + s.joint_inertias[1]


@kernel
def coriolis_of_bars(s: Any, q1: float, q2: float, w1: float, w2: float) -> tuple[float, float, float, float]:
    """Return (C_11, C_12, C_21, C_22) [N m s] at the joint speeds w [rad/s]."""
    lx, ly, rx, ry = _elbows(s.linkage, q1, q2)
    xx, xy, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
    a, b, c, d = jacobian_rate_of_bars(s.linkage, q1, q2, w1, w2)
    m, left, right = s.end_mass, s.shared_masses[0], s.shared_masses[1]
    c11 = m * (xx * a + yx * c) + left * (lx * c - ly * a - (lx * xx + ly * yx) * w1)
    c12 = m * (xx * b + yx * d) + left * (lx * d - ly * b) - right * (rx * xx + ry * yx) * w2
    c21 = m * (xy * a + yy * c) + right * (rx * c - ry * a) - left * (lx * xy + ly * yy) * w1
    c22 = m * (xy * b + yy * d) + right * (rx * d - ry * b - (rx * xy + ry * yy) * w2)
    return c11, c12, c21, c22


LINKS = np.dtype(
    [
        ("linkage", LINKAGE),
        ("inertias", "<f8", (2,)),
        ("coupling", "<f8"),
        *fields("<f8", "moments joint_inertias", 2),
        ("end_mass", "<f8"),
        ("shared_masses", "<f8", (2,)),
        ("end_weight", "<f8"),
    ]
)
"""Kernel record of the rigid arm, in the coefficients of its equations: ``inertias`` about the joint that carries each
link (including the mass beyond its end), ``coupling`` m_2 r_1 c_2 [kg m^2], ``moments`` of weight [N m]. For a five-bar
linkage also the mass [kg] and weight [N] attributed to the end effector, and in ``shared_masses`` the mass shared by
each elbow and the end effector (`devices.arm.mechanics.dynamics`); it has no ``coupling``.
"""

TERMS = np.dtype(
    [
        *fields("<f8", "inertia coriolis", 2, 2),
        *fields("<f8", "gravity position", 2),
        ("jacobian", "<f8", (2, 2)),
        ("turning", "<f8", (2,)),
    ]
)
"""Terms of the equations of motion in one pose, as returned by `Links.terms`."""


@inlined_kernel
def inertia(s: Any, q1: float, q2: float) -> tuple[float, float, float]:
    """Return (H_11, H_12, H_22) [kg m^2]; (2a)."""
    if s.linkage.kind == FIVE_BAR:
        return inertia_of_bars(s, q1, q2)
    a, b, i, j = s.inertias[0], s.inertias[1], s.joint_inertias[0], s.joint_inertias[1]
    c = s.coupling * math.cos(bend(s.linkage, q1, q2))
    if s.linkage.kind == ABSOLUTE:
        return a + i, c, b + j
    return a + b + 2.0 * c + i, b + c, b + j


@inlined_kernel
def coriolis_matrix(s: Any, q1: float, q2: float, w1: float, w2: float) -> tuple[float, float, float, float]:
    """Return (C_11, C_12, C_21, C_22) [N m s], from Christoffel symbols, at the joint speeds w [rad/s]."""
    if s.linkage.kind == FIVE_BAR:
        return coriolis_of_bars(s, q1, q2, w1, w2)
    c = s.coupling * math.sin(bend(s.linkage, q1, q2))
    if s.linkage.kind == ABSOLUTE:
        return 0.0, -c * w2, c * w1, 0.0
    return -c * w2, -c * (w1 + w2), c * w1, 0.0


@inlined_kernel
def centrifugal(s: Any, q1: float, q2: float, w1: float, w2: float) -> tuple[float, float]:
    """Return the centrifugal and Coriolis torques [N m]; (2b)."""
    c11, c12, c21, c22 = coriolis_matrix(s, q1, q2, w1, w2)
    return c11 * w1 + c12 * w2, c21 * w1 + c22 * w2


@inlined_kernel
def gravity(s: Any, q1: float, q2: float) -> tuple[float, float]:
    """Return the gravity torques G [N m], which hold the arm (gravity compensation); (2c)."""
    if s.linkage.kind == FIVE_BAR:
        _, _, yx, yy = jacobian_of_bars(s.linkage, q1, q2)
        left = s.moments[0] * math.cos(q1 + s.linkage.offsets[0]) + s.end_weight * yx
        return left, s.moments[1] * math.cos(q2 + s.linkage.offsets[1]) + s.end_weight * yy
    p1, p2 = directions(s.linkage, q1, q2)
    inner, outer = s.moments[0] * math.cos(p1), s.moments[1] * math.cos(p2)
    return (inner, outer) if s.linkage.kind == ABSOLUTE else (inner + outer, outer)


@inlined_kernel
def into_frame(angle: float, x: float, y: float) -> tuple[float, float]:
    """Return (x_c, y_c), normal to and along a plane that rises at `angle` [rad], of (x, y); (4b)."""
    c, s = math.cos(angle), math.sin(angle)
    return s * x - c * y, c * x + s * y


@inlined_kernel
def frame_jacobian(s: Any, angle: float, q1: float, q2: float) -> tuple[float, float, float, float]:
    """Return (dx_c/dq1, dx_c/dq2, dy_c/dq1, dy_c/dq2) [m/rad]; (4b).

    C_theta11, S_theta11 in the paper are C_theta1, S_theta1.
    """
    xx, xy, yx, yy = jacobian(s.linkage, q1, q2)
    a, c = into_frame(angle, xx, yx)
    b, d = into_frame(angle, xy, yy)
    return a, b, c, d


@kernel
def _fill_terms(links: Rows, q: Any, w: Any, results: Rows) -> None:
    """Compute `results`, (n,) of dtype `TERMS`, for the angles q and speeds w, both (n, 2)."""
    s = links[0]
    for k in range(len(q)):
        q1, q2, w1, w2 = q[k, 0], q[k, 1], w[k, 0], w[k, 1]
        r = results[k]
        r.inertia[0, 0], r.inertia[0, 1], r.inertia[1, 1] = inertia(s, q1, q2)
        r.inertia[1, 0] = r.inertia[0, 1]
        r.coriolis[0, 0], r.coriolis[0, 1], r.coriolis[1, 0], r.coriolis[1, 1] = coriolis_matrix(s, q1, q2, w1, w2)
        r.gravity[0], r.gravity[1] = gravity(s, q1, q2)
        r.position[0], r.position[1] = position(s.linkage, q1, q2)
        r.jacobian[0, 0], r.jacobian[0, 1], r.jacobian[1, 0], r.jacobian[1, 1] = jacobian(s.linkage, q1, q2)
        r.turning[0], r.turning[1] = turning_acceleration(s.linkage, q1, q2, w1, w2)


_INERTIA: dict[str, Any] = {"minimum": 0.0, "maximum": 1e6, "unit": "kg m^2"}
_GRAVITY: dict[str, Any] = {"minimum": 0.0, "maximum": 100.0, "unit": "m/s^2"}
_PART: dict[str, Any] = {"minimum": -2.0, "maximum": 2.0}


class Links(ABC):
    """Rigid dynamics of an arm, from the dimensions and masses of its links."""

    @property
    @abstractmethod
    def linkage(self) -> SerialTwoLink | FiveBar:
        """Kinematics of the links."""

    @property
    @abstractmethod
    def coefficients(self) -> dict[str, Any]:
        """Inertial parameters by field of a record of dtype `LINKS`."""

    def fill(self, record: NDArray[Any], placed: PlacedLinkage | None = None) -> None:
        """Write the arm into a record, (1,) of dtype `LINKS`, or a field of that type in another record.

        Parameters
        ----------
        record : (1,) structured array
            Destination.
        placed : PlacedLinkage, optional
            Placement of the same linkage and side of its elbows; by default upright with the left motor in the origin.
        """
        record["linkage"] = (placed or PlacedLinkage(self.linkage)).record
        for name, value in self.coefficients.items():
            record[name] = value

    def terms(self, angles: ArrayLike, speeds: ArrayLike = (0.0, 0.0), placed: PlacedLinkage | None = None) -> Rows:
        """Return the terms of the equations of motion, (n,) of dtype `TERMS`, without rotors.

        Parameters
        ----------
        angles, speeds : (n, 2) array, or (2,) for all
            Joint angles [rad] and their rates [rad/s].
        placed : PlacedLinkage, optional
            As for `fill`.

        Raises
        ------
        ConfigurationError
            If they are not finite, or not pairs.
        """
        q, w = np.asarray(angles, np.float64), np.asarray(speeds, np.float64)
        if not (q.shape[-1:] == w.shape[-1:] == (2,) and np.isfinite(q).all() and np.isfinite(w).all()):
            raise ConfigurationError(f"angles = {angles!r}, speeds = {speeds!r}: must be pairs of finite numbers.")
        q, w = (np.ascontiguousarray(array.reshape(-1, 2)) for array in np.broadcast_arrays(q, w))
        record, results = np.zeros(1, LINKS), np.zeros(len(q), TERMS)
        self.fill(record, placed)
        _fill_terms(record, q, w, results)
        return results


@documented
@dataclass(frozen=True)
class TwoLinks(Links):
    """Dimensions and masses of an arm with two links."""

    length_1: float = bounded(1.0, above=0.0, maximum=10.0, unit="m", doc="length of the inner link")
    length_2: float = bounded(0.8, above=0.0, maximum=10.0, unit="m", doc="length of the outer link")
    mass_1: float = bounded(0.5, minimum=0.0, maximum=1e4, unit="kg", doc="mass of the inner link")
    mass_2: float = bounded(6.25, minimum=0.0, maximum=1e4, unit="kg", doc="mass of the outer link")
    centre_1: float = bounded(1.0, **_PART, doc="centre of mass of the inner link, as part of its length; 1 at its end")
    centre_2: float = bounded(1.0, **_PART, doc="centre of mass of the outer link, as part of its length; 1 at its end")
    inertia_1: float = bounded(0.0, **_INERTIA, doc="moment of inertia of the inner link about its centre of mass")
    inertia_2: float = bounded(0.0, **_INERTIA, doc="moment of inertia of the outer link about its centre of mass")
    joint_inertia_1: float = bounded(4.0, **_INERTIA, doc="further inertia at the first joint, such as gears")
    joint_inertia_2: float = bounded(4.0, **_INERTIA, doc="likewise with the second joint")
    gravity: float = bounded(9.81, **_GRAVITY, doc="gravity along -y; 0 for an arm in a horizontal plane")
    absolute: bool = flag(False, doc="whether the joint angles are the links' against the base (motors on the base)")

    def __post_init__(self) -> None:
        check(self, "links")
        own = self.coefficients
        (inner, outer), c = own["inertias"], own["coupling"]
        first, second = self.joint_inertia_1, self.joint_inertia_2
        # least determinant of H over all poses: it is concave in the cosine of the angle between the links
        if self.absolute:
            least = (inner + first) * (outer + second) - c * c
        else:
            least = (inner + outer + first) * (outer + second) - outer**2 - c * c - 2.0 * abs(c) * second
        if not (outer + second > 0.0 and least > 0.0):
            raise ConfigurationError(
                "links: with these masses and inertias there is a pose in which a joint has no inertia; give each link "
                "a mass, an inertia or a joint_inertia above 0."
            )

    @property
    def linkage(self) -> SerialTwoLink:  # noqa: D102 (inherited)
        return SerialTwoLink(self.length_1, self.length_2, self.absolute)

    @property
    def coefficients(self) -> dict[str, Any]:  # noqa: D102 (inherited)
        inner = self.mass_1 * (self.centre_1 * self.length_1) ** 2 + self.inertia_1
        outer = self.mass_2 * (self.centre_2 * self.length_2) ** 2 + self.inertia_2
        moment = (self.mass_1 * self.centre_1 + self.mass_2) * self.length_1
        return {
            "inertias": (inner + self.mass_2 * self.length_1**2, outer),
            "coupling": self.mass_2 * self.length_1 * self.centre_2 * self.length_2,
            "moments": (self.gravity * moment, self.gravity * self.mass_2 * self.centre_2 * self.length_2),
            "joint_inertias": (self.joint_inertia_1, self.joint_inertia_2),
        }


Four = tuple[float, float, float, float]


@documented
@dataclass(frozen=True)
class FiveBarLinks(Links):
    """Dimensions and masses of a five-bar linkage.

    All groups of four are in the order left inner, left outer, right outer, right inner link.

    Attributes
    ----------
    bars : FiveBar
        Kinematics of the links.

    Raises
    ------
    ConfigurationError
        If a value is invalid, or an inner link has no inertia about its motor.
    """

    bars: FiveBar
    masses: Four = unrestricted((0.0, 0.0, 0.0, 0.0), "four masses [kg]", doc="masses of the links")
    centres: Four = unrestricted(
        (0.5, 0.5, 0.5, 0.5),
        "four numbers",
        doc="centre of mass of each link, as a part of its length: from the motor of an inner link, from the "
        "elbow of an outer one",
    )
    inertias: Four = unrestricted(
        (0.0, 0.0, 0.0, 0.0), "four moments of inertia [kg m^2]", doc="of each link about its centre of mass"
    )
    tip_mass: float = bounded(0.0, minimum=0.0, maximum=1e6, unit="kg", doc="mass at the end effector")
    joint_inertia_1: float = bounded(0.0, **_INERTIA, doc="further inertia at the left motor, such as gears")
    joint_inertia_2: float = bounded(0.0, **_INERTIA, doc="likewise, at the right motor")
    gravity: float = bounded(9.81, **_GRAVITY, doc="gravity along -y; 0 for a linkage in a horizontal plane")

    def __post_init__(self) -> None:
        check(self, "links")
        inner = self._about_the_motors
        if not (inner[0] + self.joint_inertia_1 > 0.0 and inner[1] + self.joint_inertia_2 > 0.0):
            raise ConfigurationError(
                "links: an inner link has no inertia about its motor; give it a mass, an inertia or a joint_inertia "
                "above 0."
            )

    @property
    def linkage(self) -> FiveBar:  # noqa: D102 (inherited)
        return self.bars

    @property
    def _about_the_motors(self) -> tuple[float, float]:
        """Moments of inertia of the inner links about their motors [kg m^2]."""
        m, c, i, bars = self.masses, self.centres, self.inertias, self.bars
        left = m[0] * (c[0] * bars.left_inner) ** 2 + i[0]
        return left, m[3] * (c[3] * bars.right_inner) ** 2 + i[3]

    @property
    def coefficients(self) -> dict[str, Any]:  # noqa: D102 (inherited)
        m, c, g, bars, inner = self.masses, self.centres, self.gravity, self.bars, self._about_the_motors
        # mass of each outer link attributed to its elbow, to the end effector and to their product [kg]
        left, right = (
            (m[i] * (1.0 - c[i]) ** 2 + k, m[i] * c[i] * c[i] + k, m[i] * c[i] * (1.0 - c[i]) - k)
            for i, k in ((1, self.inertias[1] / bars.left_outer**2), (2, self.inertias[2] / bars.right_outer**2))
        )
        return {
            "inertias": (inner[0] + left[0] * bars.left_inner**2, inner[1] + right[0] * bars.right_inner**2),
            "end_mass": left[1] + right[1] + self.tip_mass,
            "shared_masses": (left[2], right[2]),
            "moments": (
                g * bars.left_inner * (m[0] * c[0] + m[1] * (1.0 - c[1])),
                g * bars.right_inner * (m[3] * c[3] + m[2] * (1.0 - c[2])),
            ),
            "end_weight": g * (m[1] * c[1] + m[2] * c[2] + self.tip_mass),
            "joint_inertias": (self.joint_inertia_1, self.joint_inertia_2),
        }
