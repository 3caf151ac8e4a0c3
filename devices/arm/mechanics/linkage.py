"""Forward and inverse kinematics of an arm: linkages, their placement, and workspace checks.

An arm has two links in series, with its motors in the joints or both on the base, or is a five-bar linkage
(`devices.common.linkage`). `PlacedLinkage` adds the position and rotation of the base in the axes of the device and
the sides of the elbows. Its interface is the same for all linkages. The kernels of a tick are in
`devices.arm.mechanics.linkage_kernels`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.mechanics.linkage_kernels import (
    ABSOLUTE,
    FIVE_BAR,
    LINKAGE,
    RELATIVE,
    fill_jacobians,
    fill_joints,
    fill_positions,
)
from devices.common.linkage import OUTWARDS, FiveBar, Points
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, documented, flag

Pair = tuple[float, float]

_GRID = 65
"""Number of grid points along each side of a workspace at which the outer links of a five-bar linkage are checked."""


@documented
@dataclass(frozen=True)
class SerialTwoLink:
    """Two links in series on a base at the origin."""

    length_1: float = bounded(above=0.0, maximum=10.0, unit="m", doc="length of the inner link")
    length_2: float = bounded(above=0.0, maximum=10.0, unit="m", doc="length of the outer link")
    absolute: bool = flag(
        False,
        doc="whether both joint angles are those of the links against the base (both motors stand there); else "
        "the second is the angle between the links (a motor in each joint)",
    )

    def __post_init__(self) -> None:
        check(self, "linkage")


@dataclass(frozen=True)
class PlacedLinkage:
    """Linkage placed in the axes of the device, whose origin is the centre of the workspace.

    Attributes
    ----------
    linkage : SerialTwoLink or FiveBar
        The linkage; its own coordinates have their origin in the base, at the left motor of a five-bar linkage.
    centre : (float, float)
        Centre of the workspace in the linkage's own coordinates [m].
    rotation : float
        Angle of the base in the axes of the device, counter-clockwise [rad].
    elbows : (int, int)
        Side of each elbow relative to the line from its motor to the end effector: left (1) or right (-1). Two links in
        series use the first only: with 1 their relative second angle is negative.

    Raises
    ------
    ConfigurationError
        If a value is invalid.
    """

    linkage: SerialTwoLink | FiveBar
    centre: Pair = (0.0, 0.0)
    rotation: float = 0.0
    elbows: tuple[int, int] = OUTWARDS

    def __post_init__(self) -> None:
        if not _finite_pair(self.centre):
            raise ConfigurationError(f"centre = {self.centre!r}: must be two finite numbers [m].")
        if not math.isfinite(self.rotation):
            raise ConfigurationError(f"rotation = {self.rotation!r}: must be a finite angle [rad].")
        if len(self.elbows) != 2 or any(elbow not in (-1, 1) for elbow in self.elbows):
            raise ConfigurationError(f"elbows = {self.elbows!r}: must be two of 1 (left) and -1 (right).")

    def positions(self, joints: ArrayLike) -> Points:
        """Return the end effector, (n, 2) [m], at joint angles (n, 2) [rad]; nan if not closed."""
        angles = _pairs(joints)
        results = np.empty_like(angles)
        fill_positions(self.record, angles, results)
        return results

    def joints(self, positions: ArrayLike) -> Points:
        """Return the joint angles, (n, 2) [rad], for positions (n, 2) [m]; nan out of reach.

        The angles are within half a turn of `home`: they are continuous along a path inside the workspace.
        """
        ends = _pairs(positions)
        results = np.empty_like(ends)
        fill_joints(self.record, ends, results)
        return results

    def jacobians(self, joints: ArrayLike) -> NDArray[np.float64]:
        """Return the derivatives of `positions` with respect to the joint angles, (n, 2, 2) [m/rad].

        Rows are x and y, columns the joints.
        """
        angles = _pairs(joints)
        results = np.empty((len(angles), 2, 2))
        fill_jacobians(self.record, angles, results)
        return results

    def clearance(self, joints: ArrayLike) -> NDArray[np.float64]:
        """Return the distance from singular poses at joint angles (n, 2): (n, k), 0 if singular, at most 1.

        Two links have one kind of singular pose (k = 1), stretched and folded; the distance is the sine of the angle
        between the links. For a five-bar linkage see `devices.common.linkage.FiveBar.clearance`.
        """
        angles = _pairs(joints)
        if isinstance(self.linkage, FiveBar):
            return self.linkage.clearance(angles)
        bend = angles[:, 1:] - angles[:, :1] if self.linkage.absolute else angles[:, 1:]
        return np.asarray(np.abs(np.sin(bend)))

    @property
    def home(self) -> Pair:
        """Joint angles at the device's origin [rad]; nan if the arm does not reach it."""
        first, second = self.joints((0.0, 0.0))[0]
        return float(first), float(second)

    @functools.cached_property
    def record(self) -> NDArray[Any]:
        """Kernel record of the linkage, (1,) of dtype `LINKAGE`."""
        record = np.zeros(1, LINKAGE)
        cosine, sine = math.cos(self.rotation), math.sin(self.rotation)
        linkage, (x, y) = self.linkage, self.centre
        record["centre"] = cosine * x - sine * y, sine * x + cosine * y
        record["elbows"] = self.elbows
        if isinstance(linkage, FiveBar):
            record["kind"], record["side"] = FIVE_BAR, linkage.side
            record["lengths"] = linkage.shape[:4]
            record["motor"] = linkage.base * cosine, linkage.base * sine
            record["offsets"] = linkage.left_offset + self.rotation, linkage.right_offset + self.rotation
        else:
            record["kind"] = ABSOLUTE if linkage.absolute else RELATIVE
            record["lengths"][0, :2] = linkage.length_1, linkage.length_2
            record["offsets"] = self.rotation, self.rotation if linkage.absolute else 0.0
        home = np.empty((1, 2))
        fill_joints(record, np.zeros((1, 2)), home)
        record["home"] = home if np.isfinite(home).all() else 0.0
        return record

    def fill(self, record: NDArray[Any]) -> None:
        """Write the linkage into a record, (1,) of dtype `LINKAGE`, or a field of that type in another record."""
        record[...] = self.record

    def least_clearance(self, lower: Pair, upper: Pair) -> float:
        """Return the minimum clearance in a rectangle; 0 if a part of it is out of reach.

        The angle between an inner and an outer link depends only on the distance from their motor, which gives the
        minimum sine over the whole rectangle in closed form. The clearance of the outer links of a five-bar linkage
        from a common line is evaluated on a grid.

        Parameters
        ----------
        lower, upper : (float, float)
            Lower left and upper right corner in the axes of the device [m].

        Raises
        ------
        ConfigurationError
            If the corners do not form a rectangle.
        """
        if not (_finite_pair(lower) and _finite_pair(upper) and lower[0] < upper[0] and lower[1] < upper[1]):
            raise ConfigurationError(f"workspace from {lower!r} to {upper!r}: must be the corners of a rectangle [m].")
        corners, s = np.array((lower, upper)), self.record[0]
        left = _least_bend(corners + s["centre"], s["lengths"][0], s["lengths"][1])
        if not isinstance(self.linkage, FiveBar):
            return left
        right = _least_bend(corners + s["centre"] - s["motor"], s["lengths"][3], s["lengths"][2])
        grid = np.stack(np.meshgrid(*np.linspace(lower, upper, _GRID).T), axis=-1).reshape(-1, 2)
        between = self.linkage.clearance(self.joints(grid))[:, 0].min()
        return min(left, right, float(between)) if np.isfinite(between) else 0.0

    def require_workspace(self, lower: Pair, upper: Pair, clearance: float) -> None:
        """Raise an error if a pose in a workspace is out of reach or too close to a singular pose.

        Raises
        ------
        ConfigurationError
            With the minimum clearance and the remedy.
        """
        least = self.least_clearance(lower, upper)
        if not least >= clearance:
            where = f"workspace from ({lower[0]:g}, {lower[1]:g}) to ({upper[0]:g}, {upper[1]:g}) m about its centre"
            what = f"comes within {least:.3g} of a singular pose" if least > 0.0 else "is not all within reach"
            raise ConfigurationError(
                f"{where}: {what} of the linkage, and {clearance:g} is needed (0 singular, 1 best): choose a smaller "
                "one, another centre or other lengths."
            )


def _least_bend(corners: Points, inner: float, outer: float) -> float:
    """Return the minimum sine of the angle between two links over a rectangle, relative to their motor.

    The sine increases with the distance until the links are at right angles and decreases beyond. The minimum is
    therefore at the nearest or the farthest point of the rectangle.
    """
    nearest = np.hypot(*np.maximum(np.maximum(corners[0], -corners[1]), 0.0))
    farthest = np.hypot(*np.abs(corners).max(axis=0))
    cosines = (np.array((nearest, farthest)) ** 2 - inner**2 - outer**2) / (2.0 * inner * outer)
    return float(np.sqrt(np.maximum(1.0 - cosines**2, 0.0)).min())


def _finite_pair(pair: Pair) -> bool:
    return len(pair) == 2 and bool(np.isfinite(pair).all())


def _pairs(values: ArrayLike) -> Points:
    return np.ascontiguousarray(np.asarray(values, np.float64).reshape(-1, 2))
