"""Boards by USB identity, and their pantographs, commercial or published: geometry, home pose, wiring, workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from devices.common.linkage import FiveBar

IDENTITIES = ("2341:804d", "2341:824d", "2a03:804e", "03eb:2157", "2341:003e", "2a03:003e", "2341:003d", "2a03:003d")
"""USB identities (vendor:product) of the Arduino Zero, M0 and Due boards that serve as hAPI boards."""

MAX_TORQUE = 0.123
"""Limit of the motor torque in the firmware [N m]."""

CLEARANCE = 0.15
"""Clearance from the pose with outer links in line below which forces fade; see `FiveBar.clearance`."""


@dataclass(frozen=True)
class Mechanism:
    """Five-bar linkage on two motors of the board.

    Attributes
    ----------
    linkage : FiveBar
        Linkage, with its x axis from the left to the right motor.
    home : (float, float)
        Angles of the left and the right inner link in the home pose [degree].
    counts : float
        Encoder counts per revolution of an inner link.
    ports : (int, int)
        Motor ports of the left and the right arm, from 1.
    direction : int
        Direction byte of motors and encoders in the firmware.
    centre, half_size : (float, float)
        Workspace: a rectangle about `centre`, in the frame of the linkage [m], well clear of all singular poses. The
        device's origin is the centre.
    pose : str
        Description of the home pose.
    """

    linkage: FiveBar
    home: tuple[float, float]
    counts: float
    ports: tuple[int, int]
    direction: int
    centre: tuple[float, float]
    half_size: tuple[float, float]
    pose: str

    def contains(self, angles: Sequence[float]) -> bool:
        """Return True if the handle is in the workspace at these angles of the inner links [degree]."""
        end = self.linkage.positions(np.radians([angles]))[0] - self.centre
        return bool((np.abs(end) <= self.half_size).all())

    def largest_lever(self) -> float:
        """Return the largest ratio of motor torque to handle force in the workspace [N m/N]."""
        axes = (np.linspace(-half, half, 33) + middle for half, middle in zip(self.half_size, self.centre, strict=True))
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        columns = np.hypot(*np.moveaxis(self.linkage.jacobians(self.linkage.joints(grid)), 1, 0))
        return float(columns.max())


MECHANISMS = {
    "gen-1": Mechanism(
        FiveBar(0.05, 0.07, 0.07, 0.05, 0.02),
        home=(180.0, 0.0),
        counts=13824.0,
        ports=(1, 2),
        direction=0,
        centre=(0.01, 0.06),
        half_size=(0.045, 0.036),
        pose="both inner links in line with the two motors, pointing outwards",
    ),
    "2diy": Mechanism(
        FiveBar(0.07, 0.09, 0.09, 0.07, 0.0),
        home=(97.23, 82.77),
        counts=2048 * 2.5 * 1.0194,
        ports=(1, 2),
        direction=0,
        centre=(0.0, 0.08),
        half_size=(0.065, 0.05),
        pose="the handle straight away from the motors, as far as the stops let it",
    ),
    "2diy-38mm": Mechanism(
        FiveBar(0.07, 0.09, 0.09, 0.07, 0.038),
        home=(241.0, -61.0),
        counts=10752.0,
        ports=(2, 1),
        direction=1,
        centre=(0.019, 0.0775),
        half_size=(0.06, 0.045),
        pose="the handle drawn in, both inner links at their stops behind the motors",
    ),
}
"""Mechanisms by name, from public examples of the manufacturer and of IMAGE-HAPI; not tested."""
